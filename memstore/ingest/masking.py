"""Secrets in what is said, masked: before it is stored, or before anything is derived from it. Pure.

Before storing, a secret becomes a mark such as "[masked card]", and the message says in its metadata how many of which
kind there were: what is stored is counted, embedded and read so. Before deriving, it becomes as many dots, so that
every character keeps its place: the message stays as it was said, and nothing that is derived from it holds the secret.

The same text always gives the same one, and a masked text itself: an import adds nothing the second time.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, NamedTuple, TypeVar, overload

from memstore.characters import UNSTORABLE
from memstore.errors import InvalidInput
from memstore.ingest.check import TEXT_PARTS
from memstore.ingest.secret_shapes import (
    DIGEST,
    DIGITS,
    DOCUMENT,
    GROUP,
    IBAN,
    JWT,
    KEYS,
    NAMED,
    PASSWORD,
    PRIVATE_KEY,
    SOCIAL_SECURITY,
    URL_PASSWORD,
    WRAPPED_DIGITS,
)
from memstore.models import Json, Message
from memstore.providers import recognizers
from memstore.providers.recognizers import Recognizers
from memstore.settings import Settings

T = TypeVar("T")
NOTHING: frozenset[str] = frozenset()
CARD, ACCOUNT = range(13, 20), range(15, 35)  # characters
MOST_WRAPPED = 23  # digits over several lines: a card, and until when it is valid
LONGEST_DIGEST = 128
PIECE, OVERLAP = 2000, 250  # characters that are searched at once: of a line of megabytes no pattern may take long
DOT = "•"
TOLD = "masked"  # of the metadata: how many of which kind
IDS = frozenset({"id", "tool_call_id", "tool_use_id", "call_id"})  # what pairs calls with results: read by themselves
OPAQUE = frozenset({"data", "file_data", "signature"})  # of parts, where they are bytes as letters, and no prose
NUL = "\0"
MOST_TOLD = 10**6  # secrets that a message may say were masked before: a larger number may be one itself
BYTES = "data:"  # so begins what may be bytes under any name
GIVEN = {"arguments", "input"}  # of a call: whatever stands there is said, under any name
_MARK = re.compile(r"\[masked [a-z]{3,8}\]")
_LONG = re.compile(r"\S{16}")  # no key is shorter
# Without one of these there is no secret; a password has a digit, or a sign that does not end a sentence.
_ANY = re.compile(r"[\d@#$%^&*~+]|[!?][^\s\"'“”„«»`,;!?)]|-----BEGIN|\S{16}")
_BYTES = re.compile(
    r"data:(?:image|audio|video)/\S+|(?:data:[\w.+-]+/[\w.+-]+(?:;[\w.+=-]+)*;base64,)?[A-Za-z0-9+/_=\r\n-]{64,}"
)
_CODE = re.compile(
    r"[$<{%*]|(?:your|my|xxx|\.\.\.|os\.|env|process\.|https?:|/)|[A-Za-z_]+(?:\.[A-Za-z_]\w*)+$", re.IGNORECASE
)
_SAMPLES = {"pass", "passwd", "password", "secret"}  # what documentation writes into URLs
_LIKE_ONE = re.compile(r"[\d!@#$%^&*?~+]")


class Secret(NamedTuple):
    """Where a secret stands, in characters, and of which kind it is."""

    start: int
    stop: int
    kind: str


@dataclass(frozen=True, slots=True)
class Masking:
    """Masks secrets of some kinds: card, account, document, key, password. Of no kind it gives back what it is given.

    Whatever is stored because somebody gave it comes through here: a message by `store`, text and JSON by `text` and
    `json`, and names that ids follow from, where a mark would make one of two, by `refuse`.
    """

    kinds: frozenset[str]
    known: Recognizers | None

    def found(self, text: str) -> list[Secret]:
        """Give the secrets of a text in order, apart from each other. What stands inside of a mark is none."""
        if not self.kinds or not _ANY.search(text):
            return []
        marks = [found.span() for found in _MARK.finditer(text)]
        apart: list[Secret] = []
        for one in sorted(self._every(text)):
            place = bisect_right(marks, (one.start, len(text)))
            if place and one.stop <= marks[place - 1][1]:
                continue
            if apart and one.start < apart[-1].stop:
                apart[-1] = apart[-1]._replace(stop=max(apart[-1].stop, one.stop))
            else:
                apart.append(one)
        return apart

    def marked(self, text: str, counts: Counter[str]) -> str:
        """Give a text with a mark in the place of each secret, which are counted."""
        while found := self.found(text):  # a mark may part what was no secret before
            text = _replaced(text, found, mark)
            counts.update(one.kind for one in found)
        return text

    def covered(self, text: str) -> str:
        """Give a text with dots in the place of each secret: every character keeps its place."""
        return _replaced(text, self.found(text), lambda one: DOT * (one.stop - one.start))

    @overload
    def text(self, text: str, counts: Counter[str] | None = None) -> str: ...

    @overload
    def text(self, text: str | None, counts: Counter[str] | None = None) -> str | None: ...

    def text(self, text: str | None, counts: Counter[str] | None = None) -> str | None:
        """Give a text with a mark in the place of each secret; None where there is none."""
        return text and self.marked(text, Counter() if counts is None else counts)

    def json(self, value: T, counts: Counter[str] | None = None) -> T:
        """Give JSON with marks in its texts and names; a name may tell that its value is a secret."""
        made: T = self._within(value, Counter() if counts is None else counts, opaque=NOTHING) if self.kinds else value
        return made

    def refuse(self, **names: str | None) -> None:
        """Raise `InvalidInput` where a name holds a secret: ids follow from names, so that they are kept as given."""
        for what, name in names.items():
            if name is not None and (found := self.found(name)):
                raise InvalidInput(
                    f"The {what.replace('_', ' ')} holds what looks like a secret ({found[0].kind}), and names are not "
                    "masked, since ids follow from them. Nothing was stored: give another name, or take the kind out "
                    "of mask_kinds."
                )

    def store(self, draft: Message) -> bool:
        """Mark the secrets of a message that is not stored yet; whether there were any.

        Raises `InvalidInput` where its `external_id` is one.
        """
        if not self.kinds:
            return False
        self.refuse(external_id=draft.external_id)
        counts: Counter[str] = Counter()
        parts = self._within(draft.parts and self._across(draft.parts, counts), counts)
        calls = self._within(draft.tool_calls, counts)
        masked = {
            "text": _text_of(parts) if parts is not None else self.text(draft.text, counts),
            "parts": parts,
            "tool_calls": calls,
            "tool_call_id": self.text(draft.tool_call_id, counts),
            "name": self.text(draft.name, counts),
            "tags": [self.marked(tag, counts) for tag in draft.tags],
            "meta": self._told_apart(draft.meta, counts),
        }
        if counts:
            masked["meta"] |= {TOLD: dict(sorted(counts.items()))}
            vars(draft).update(masked)
        return bool(counts)

    def _across(self, parts: list[Json], counts: Counter[str]) -> list[Json]:
        """Give parts without the secrets that stand over several: a mark is in the first, and the rest is taken out."""
        texts = [str(one.get("text") or "") for one in parts if _is_said(one)]
        apart = NUL.join(texts)  # which no text holds that can be stored
        over = [one for one in self.found("\n".join(texts)) if NUL in apart[one.start : one.stop]]
        if not over:
            return parts
        counts.update(one.kind for one in over)
        cut = _replaced(apart, over, lambda one: mark(one) + NUL * apart.count(NUL, one.start, one.stop)).split(NUL)
        left = iter(cut)
        return [one | {"text": next(left)} if _is_said(one) else one for one in parts]

    def _told_apart(self, meta: Json, counts: Counter[str]) -> Json:
        """Give metadata with marks, but for what says how many secrets of which kind were masked before."""
        told = meta.get(TOLD)
        if not isinstance(told, dict) or not all(map(_is_count, told.items())):
            return self.json(meta, counts)
        return self.json({name: one for name, one in meta.items() if name != TOLD}, counts) | {TOLD: told}

    def seen(self, message: Message) -> Message:
        """Give a message as derivers see it; the same one where it has no secret."""
        text = self.covered(message.text) if message.text else message.text
        return message if message.text == text else message.model_copy(update={"text": text})

    def _within(self, value: Any, counts: Counter[str], key: str = "", opaque: Set[str] = OPAQUE) -> Any:
        """Give JSON with marks in its texts and names, those apart that are no prose."""
        if key in GIVEN:
            opaque = NOTHING
            if isinstance(value, str):
                return self._arguments(value, counts)
        if isinstance(value, Mapping):
            return self._object(value, counts, opaque)
        if isinstance(value, list | tuple):
            return [self._within(one, counts, key, opaque) for one in value]
        if type(value) not in (str, int) or (opaque and _is_bytes(str(value), key, opaque)):
            return value
        marked = self.marked(str(value), counts) if key in IDS else self._value(str(value), counts, key)
        return marked if marked != str(value) else value

    def _object(self, value: Mapping[Any, Any], counts: Counter[str], opaque: Set[str]) -> dict[Any, Any]:
        """Give an object of JSON with marks; names that become the same mark are numbered."""
        made: dict[Any, Any] = {}
        for name, one in value.items():
            told = masked = self.marked(name, counts) if isinstance(name, str) else name
            while told in made:
                told = f"{masked} {len(made) + 1}"
            made[told] = self._within(one, counts, str(name), opaque)
        return made

    def _arguments(self, text: str, counts: Counter[str]) -> str:
        """Give the arguments of a call, where they are JSON as JSON again: a mark for a bare number would be none."""
        found: Counter[str] = Counter()
        try:
            masked = self._within(json.loads(text), found, opaque=NOTHING)
            written = json.dumps(masked, ensure_ascii=False)
        except (ValueError, RecursionError):
            return self.marked(text, counts)
        counts.update(found)
        if not found:
            return text
        return json.dumps(masked) if UNSTORABLE.search(written) else written

    def _value(self, text: str, counts: Counter[str], key: str) -> str:
        """Give a value with marks; its name may tell that all of it is a secret."""
        if NAMED.fullmatch(key) and "password" in self.kinds and text and not _MARK.fullmatch(text):
            counts["password"] += 1
            return "[masked password]"
        told = f"{key.replace('_', ' ')}: "  # a number is of a passport where it is called one
        found = [one for one in self.found(told + text) if one.start >= len(told)]
        counts.update(one.kind for one in found)
        return self.marked(_replaced(told + text, found, mark)[len(told) :], counts)

    def _every(self, text: str) -> Iterator[Secret]:
        if "key" in self.kinds and "-----BEGIN" in text:
            yield from (Secret(*found.span(), "key") for found in PRIVATE_KEY.finditer(text))
        if "key" in self.kinds and "eyJ" in text:
            yield from (Secret(*found.span(), "key") for found in JWT.finditer(text))
        if self.known is None:
            return
        for kind, find in _NUMBERS.items():
            if kind in self.kinds:
                yield from (Secret(start, stop, kind) for start, stop in find(text, self.known))
        for begin, piece in _pieces(text):
            for kind, find in _FINDERS.items():
                if kind in self.kinds:
                    yield from (Secret(begin + start, begin + stop, kind) for start, stop in find(piece, self.known))


Places = Iterator[tuple[int, int]]


def _keys(piece: str, known: Recognizers) -> Places:
    if not _LONG.search(piece):
        return
    yield from (found.span() for found in KEYS.finditer(piece))
    in_urls = (found.span("value") for found in URL_PASSWORD.finditer(piece))
    for start, stop in chain(known.keys(piece), in_urls):
        word = piece[start:stop]
        if stop - start >= 16 or not (_CODE.match(word) or word.lower() in _SAMPLES):
            yield start, stop


def _passwords(piece: str, _: Recognizers) -> Places:
    for found in PASSWORD.finditer(piece):
        value = found["value"]
        if _LIKE_ONE.search(value) and not _CODE.match(value) and not set("()[]{}<>") & set(value):
            yield found.span("value")


def _documents(piece: str, known: Recognizers) -> Places:
    for found in DOCUMENT.finditer(piece):
        yield found.span("number" if found["number"] else "zh")
    yield from (found.span() for found in SOCIAL_SECURITY.finditer(piece) if known.is_social_security(found[0]))


def _accounts(text: str, known: Recognizers) -> Places:
    for found in IBAN.finditer(text):
        groups = [one.span() for one in GROUP.finditer(text, *found.span("number"))]
        if (last := _longest(text, groups, 0, ACCOUNT, known.is_account)) is not None:
            yield found.start(), groups[last][1]


def _cards(text: str, known: Recognizers) -> Places:
    """Give the cards: on a line anywhere among digits, over several where little else stands beside one.

    Columns of numbers have a card by chance in every few dozen lines, and digests and UUIDs one in thousands.
    """
    wrapped = (found for found in WRAPPED_DIGITS.finditer(text) if sum(map(str.isdigit, found[0])) <= MOST_WRAPPED)
    for run in chain(DIGITS.finditer(text), wrapped):
        groups = [found.span() for found in GROUP.finditer(text, *run.span())]
        first = 0
        while first < len(groups):
            last = _longest(text, groups, first, CARD, known.is_card)
            if last is not None and not _is_hexadecimal(text, groups[first][0], groups[last][1]):
                yield groups[first][0], groups[last][1]
            first = 1 + (first if last is None else last)


_NUMBERS: Mapping[str, Callable[[str, Recognizers], Places]] = {"account": _accounts, "card": _cards}
_FINDERS: Mapping[str, Callable[[str, Recognizers], Places]] = {
    "key": _keys,
    "password": _passwords,
    "document": _documents,
}


def _longest(
    text: str, groups: Sequence[tuple[int, int]], first: int, sizes: range, check: Callable[[str], bool]
) -> int | None:
    """Give the last group of the longest row from one on that is valid: beside a number may stand a date, or a word."""
    size, longest = 0, None
    for last, (start, stop) in enumerate(groups[first : first + sizes.stop], first):
        size += stop - start
        if size >= sizes.stop:
            break
        if size in sizes and check(text[groups[first][0] : stop]):
            longest = last
    return longest


def _is_hexadecimal(text: str, start: int, stop: int) -> bool:
    """Whether digits stand inside of a digest or a UUID."""
    around = text[max(0, start - LONGEST_DIGEST) : stop + LONGEST_DIGEST]
    return any(text[start:stop] in found[0] for found in DIGEST.finditer(around))


def _is_bytes(value: str, key: str, opaque: Set[str]) -> bool:
    """Whether a value of a part is bytes as letters. A document of text stands under the same name as one of bytes."""
    return (key in opaque or value.startswith(BYTES)) and _BYTES.fullmatch(value) is not None


def _is_count(told: tuple[object, object]) -> bool:
    kind, count = told
    return (kind in _NUMBERS or kind in _FINDERS) and type(count) is int and 0 < count < MOST_TOLD


def mark(one: Secret) -> str:
    """Give what stands in the place of a secret."""
    return f"[masked {one.kind}]"


def _replaced(text: str, found: Sequence[Secret], by: Callable[[Secret], str]) -> str:
    kept, stop = [], 0
    for one in found:
        kept += [text[stop : one.start], by(one)]
        stop = one.stop
    return "".join([*kept, text[stop:]])


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Give the lines of a text with where they begin, long ones in pieces that overlap."""
    begin = 0
    for line in text.splitlines(keepends=True):
        if _ANY.search(line):
            for start in range(0, max(1, len(line) - OVERLAP), PIECE - OVERLAP):
                yield begin + start, line[start : start + PIECE]
        begin += len(line)


def _text_of(parts: Iterable[Json]) -> str:
    return "\n".join(str(part.get("text") or "") for part in parts if _is_said(part))


def _is_said(part: Json) -> bool:
    return str(part.get("type")) in TEXT_PARTS


UNMASKED = Masking(frozenset(), None)


@cache
def _loaded(kinds: frozenset[str]) -> Masking:
    return Masking(kinds, recognizers.load())


def before_storing(settings: Settings) -> Masking:
    """Give what masks whatever is given to be stored: `UNMASKED` where nothing does. Raises `ProviderMissing`."""
    return _loaded(frozenset(settings.mask_kinds)) if settings.mask_secrets == "before_storing" else UNMASKED


def before_deriving(settings: Settings) -> Masking | None:
    """Give what masks messages before anything is derived from them, or None. Raises `ProviderMissing`."""
    return _loaded(frozenset(settings.mask_kinds)) if settings.mask_secrets == "before_deriving" else None
