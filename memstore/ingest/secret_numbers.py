"""Numbers of cards and accounts in a text, by their check digits, however their groups are parted. Pure.

Of a row of digits each group may begin a number, and of each number every length is tried: what is tried is bounded for
a group, so that a text of digits alone takes time in proportion to its length.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain
from string import ascii_letters
from unicodedata import decimal

from memstore.ingest.secret_shapes import DIGEST, DIGITS, GROUP, IBAN, PARTED_DIGITS, WORD_AFTER, WRAPPED_DIGITS

CARD, ACCOUNT = range(13, 20), range(15, 35)  # characters
MOST_WRAPPED = 23  # digits over several lines: a card, and until when it is valid
LONGEST_DIGEST = 128
# The first digits say who issued a card: of the numbers that pass the check digit by chance they rule out nine in ten,
# such as times in milliseconds.
_ISSUED = re.compile(
    r"4\d{12}(?:\d{3}){0,2}"  # Visa
    r"|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}"  # Mastercard
    r"|3[47]\d{13}"  # American Express
    r"|(?:6011|64[4-9]\d|65\d\d)\d{12}"  # Discover
    r"|(?:35|62)\d{14}"  # JCB, UnionPay
    r"|3(?:0[0-5]|[68]\d)\d{11}"  # Diners Club
    r"|(?:5018|5020|5038|5893|6304|6759|676[1-3])\d{12}"  # Maestro
)
_DOUBLED = bytes.maketrans(b"0123456789", b"0246813579")  # and of two digits their sum
_AS_DIGITS = str.maketrans({one: str(int(one, 36)) for one in ascii_letters})


def cards(text: str) -> Iterator[tuple[int, int]]:
    """Give where cards stand: on a line anywhere among digits, over several where little else stands beside one.

    Columns of numbers have a card by chance in every few dozen lines, and digests and UUIDs one in thousands.
    """
    wrapped = (found for found in WRAPPED_DIGITS.finditer(text) if sum(map(str.isdigit, found[0])) <= MOST_WRAPPED)
    for run in chain(DIGITS.finditer(text), wrapped, PARTED_DIGITS.finditer(text)):
        groups, digits, ends = _grouped(text, *run.span())
        if WORD_AFTER.match(text, run.end()):  # not in the pattern, which would then be tried from each group on
            groups, ends = groups[:-1], ends[:-1]
            digits = digits[: ends[-1]]
        if not digits.isascii():  # of another script
            digits = "".join(str(decimal(one)) for one in digits)
        first = 0
        while first < len(groups):
            last = _longest(digits, ends, first, CARD, is_card)
            if last is not None and not _is_hexadecimal(text, groups[first][0], groups[last][1]):
                yield groups[first][0], groups[last][1]
            first = 1 + (first if last is None else last)


def accounts(text: str, is_one: Callable[[str], bool]) -> Iterator[tuple[int, int]]:
    """Give where IBANs stand: what has the right check digits, and is one by `is_one` too."""
    for found in IBAN.finditer(text):
        groups, signs, ends = _grouped(text, *found.span("number"))
        last = _longest(signs, ends, 0, ACCOUNT, lambda number: _is_checked(number) and is_one(number))
        if last is not None:
            yield found.start(), groups[last][1]


def is_card(digits: str) -> bool:
    """Whether digits of ASCII are the number of a card that somebody issues, with its check digit (Luhn)."""
    if not _ISSUED.fullmatch(digits):
        return False
    signs = digits.encode()
    return (sum(signs[-1::-2]) + sum(signs[-2::-2].translate(_DOUBLED)) - len(signs) * ord("0")) % 10 == 0


def _is_checked(signs: str) -> bool:
    """Whether the third and fourth sign are the check digits of the others (ISO 13616): modulo 97 it is 1."""
    return signs.isascii() and int((signs[4:] + signs[:4]).translate(_AS_DIGITS)) % 97 == 1


def _grouped(text: str, start: int, stop: int) -> tuple[list[tuple[int, int]], str, list[int]]:
    """Give where groups of letters and digits stand, their characters, and where among these groups begin and end."""
    groups = [found.span() for found in GROUP.finditer(text, start, stop)]
    ends = [0, *accumulate(stop - start for start, stop in groups)]
    return groups, "".join(text[start:stop] for start, stop in groups), ends


def _longest(signs: str, ends: Sequence[int], first: int, sizes: range, check: Callable[[str], bool]) -> int | None:
    """Give the last group of the longest row from one on that is valid: beside a number may stand a date, or a word."""
    begin = ends[first]
    last = bisect_left(ends, begin + sizes.stop, first) - 1
    while last > first and ends[last] - begin >= sizes.start:
        if check(signs[begin : ends[last]]):
            return last - 1
        last -= 1
    return None


def _is_hexadecimal(text: str, start: int, stop: int) -> bool:
    """Whether digits stand inside of a digest or a UUID."""
    begin = max(0, start - LONGEST_DIGEST)
    around = DIGEST.finditer(text[begin : stop + LONGEST_DIGEST])  # cut out: no further is looked back
    return any(begin + found.start() <= start and stop <= begin + found.end() for found in around)
