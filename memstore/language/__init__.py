"""Words of languages: tokenizers, and lists of words and phrases by what they are for. Pure.

The lists of a language are in its `<code>.toml`. A list counts in the languages that have it, or in those that are
asked for: `load_words("kin")`, `load_phrases("again", "en", "de")`. Each is made once, so callers name it where they
use it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from itertools import count

LANGUAGES = ("en", "de", "fr", "es")

# Words as a program sees them, words of letters alone, and words as they are spoken, "don't" being one.
WORD = re.compile(r"\w+")
LETTERS = re.compile(r"[^\W\d_]+")
SPOKEN_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
QUESTION_MARKS = ("?", "？", "؟")

_LISTS: dict[str, dict[str, str]] = {
    code: tomllib.loads((files("memstore.language") / f"{code}.toml").read_text(encoding="utf-8")) for code in LANGUAGES
}


def _lists(name: str, codes: Iterable[str]) -> list[str]:
    lists = [_LISTS[code][name] for code in codes or LANGUAGES if name in _LISTS[code]]
    if not lists:
        raise KeyError(f"{name}: no list of this name in {', '.join(codes or LANGUAGES)}")
    return lists


def word_set(words: str) -> frozenset[str]:
    """Return the words of a list."""
    return frozenset(words.split())


@cache
def load_words(name: str, *codes: str) -> frozenset[str]:
    """Return the words of the lists of this name, as they are written there."""
    return word_set(" ".join(_lists(name, codes)).replace("/", " "))


def load_days(*codes: str) -> frozenset[str]:
    """Return the days of the week, and each with an s: "on Mondays"."""
    days = load_words("weekdays", *codes)
    return days.union(f"{day}s" for day in days)


def load_groups(name: str, *codes: str) -> list[list[str]]:
    """Return the words of the lists of this name in their order; those between slashes are one group."""
    return [group.split("/") for text in _lists(name, codes) for group in text.split()]


def number_words(name: str, *codes: str, start: int = 1, step: int = 1) -> dict[str, int]:
    """Return the number of each word by its place in its list; words between slashes have one place.

    >>> number_words("weekdays", "en")["sunday"]
    7
    """
    return {
        word: number
        for text in _lists(name, codes)
        for number, places in zip(count(start, step), text.split(), strict=False)
        for word in places.split("/")
    }


def load_numbers(*codes: str) -> dict[str, int]:
    """Return what number words mean, those of tens too."""
    return number_words("tens", *codes, start=10, step=10) | number_words("numbers", *codes)


def german_compounds() -> dict[str, int]:
    """Return the number words that German makes of others: "fünfundzwanzig", "zweihundert"."""
    numbers = load_numbers("de") | {"ein": 1}
    units = {word: number for word, number in numbers.items() if number < 10}
    tens = {word: number for word, number in numbers.items() if number in range(20, 100, 10)}
    compounds = {f"{unit}und{ten}": units[unit] + tens[ten] for unit in units for ten in tens}
    return compounds | {f"{unit}hundert": 100 * number for unit, number in units.items()}


@cache
def load_phrases(name: str, *codes: str, ignore_case: bool = True, opens: bool = False) -> re.Pattern[str]:
    """Return what finds the phrases of the lists of this name: `compile_phrases`."""
    return compile_phrases(",".join(_lists(name, codes)), ignore_case=ignore_case, opens=opens)


@cache
def compile_phrases(text: str, *, ignore_case: bool = True, opens: bool = False) -> re.Pattern[str]:
    """Return what finds phrases, which stand between commas, as whole words.

    A star stands for any letters of a word, a star alone for any word, and an apostrophe for a typographic one too.
    With `opens` signs may stand before a phrase: with them it matches where a text begins.

    >>> found = compile_phrases("no longer, *n't just, stopp*").search
    >>> [bool(found(text)) for text in ("He stopped", "She didn’t just", "It is longer", "unstoppable")]
    [True, True, False, False]
    """
    listed = "|".join(_pattern(phrase) for phrase in dict.fromkeys(filter(None, map(str.strip, text.split(",")))))
    before = r"\W*" if opens else r"(?<!\w)"
    return re.compile(rf"{before}(?:{listed})(?!\w)", re.IGNORECASE if ignore_case else re.NOFLAG)


def _pattern(phrase: str) -> str:
    return " ".join(
        r"\w+" if word == "*" else re.escape(word).replace(r"\*", r"\w*").replace("'", "['’]")
        for word in phrase.split()
    )


def has_word(text: str, word: str, *, ignore_case: bool = True) -> bool:
    """Return whether a text has a word or a name in it, and not as a part of another."""
    flags = re.IGNORECASE if ignore_case else re.NOFLAG
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, flags) is not None


def is_question(text: str) -> bool:
    """Return whether a text ends with a question: "Really?!" too."""
    return text.rstrip("\"'”’)»*!！ ").endswith(QUESTION_MARKS)
