"""Secrets in what is said, masked: before it is stored, or before anything is derived from it. Pure.

Before storing, a secret becomes a mark such as "[masked card]", and the message says in its metadata how many of which
kind there were: what is stored is counted, embedded and read so. Before deriving, it becomes as many dots, so that
every character keeps its place: the message stays as it was said, and nothing that is derived from it holds the secret.

The same text always gives the same one, and a masked text itself, but for one in which more than eight secrets came to
light one after the other: an import adds nothing the second time.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from itertools import chain, count
from typing import Any, NamedTuple, TypeVar, overload

from memstore.characters import UNSTORABLE
from memstore.errors import InvalidInput
from memstore.ingest import secret_numbers
from memstore.ingest.check import TEXT_PARTS
from memstore.ingest.secret_shapes import (
    DOCUMENT,
    JWT,
    KEYS,
    LIST_NAME,
    LISTED,
    LONGEST_LIST_NAME,
    NAMED,
    PASSWORD,
    PRIVATE_KEY,
    QUOTED,
    SOCIAL_SECURITY,
    TOKEN,
    URL_PASSWORD,
)
from memstore.models import Json, Message
from memstore.providers import recognizers
from memstore.providers.recognizers import Recognizers
from memstore.settings import Settings

T = TypeVar("T")
NOTHING: frozenset[str] = frozenset()
PIECE, OVERLAP = 2000, 250  # characters that are searched at once: of a line of megabytes no pattern may take long
SHORTEST, LONGEST_NAME = 4, 200  # characters: of a secret, and of the end of a name that is read for each value
MOST_PASSES = 8  # only what is made for it brings out one secret after the other, as many as there are
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
_BARE_TOKEN = re.compile(r"tokens?", re.IGNORECASE)
_MIXED = re.compile(r"(?<=[A-Za-z])\d|(?<=\d)[A-Za-z]")  # letters beside digits, as in no word and in no number


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
        for _ in range(MOST_PASSES):  # a mark may part what was no secret before
            if not (found := self.found(text)):
                break
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
        numbers = count(2)  # for all of them: each is tried once, whatever the names are
        for name, one in value.items():
            told = masked = self.marked(name, counts) if isinstance(name, str) else name
            while told in made:
                told = f"{masked} {next(numbers)}"
            made[told] = self._within(one, counts, str(name)[-LONGEST_NAME:], opaque)
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
        if "password" in self.kinds and _is_named(key, text) and not _MARK.fullmatch(text):
            counts["password"] += 1
            return "[masked password]"
        if len(text) < SHORTEST:
            return text
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
        for kind, find in _OVER_LINES.items():
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
    yield from (found.span("value") for found in PASSWORD.finditer(piece) if _is_like_one(found["value"]))
    if _LONG.search(piece):
        yield from (found.span("value") for found in TOKEN.finditer(piece) if _is_token(found["value"]))


def _listed_passwords(text: str, _: Recognizers) -> Places:
    for found in LISTED.finditer(text):
        if not LIST_NAME.search(text, max(0, found.start() - LONGEST_LIST_NAME), found.start()):
            continue
        for one in QUOTED.finditer(text, *found.span("values")):
            if _is_like_one(one["value"]):
                yield one.span("value")


def _documents(piece: str, known: Recognizers) -> Places:
    for found in DOCUMENT.finditer(piece):
        yield found.span("number" if found["number"] else "zh")
    yield from (found.span() for found in SOCIAL_SECURITY.finditer(piece) if known.is_social_security(found[0]))


def _accounts(text: str, known: Recognizers) -> Places:
    return secret_numbers.accounts(text, known.is_account)


def _cards(text: str, _: Recognizers) -> Places:
    return secret_numbers.cards(text)


Finders = Mapping[str, Callable[[str, Recognizers], Places]]
_OVER_LINES: Finders = {"account": _accounts, "card": _cards, "password": _listed_passwords}
_FINDERS: Finders = {"key": _keys, "password": _passwords, "document": _documents}


def _is_like_one(value: str) -> bool:
    """Whether what is called a password may be one, and is neither a word nor code that reads it from elsewhere."""
    return bool(_LIKE_ONE.search(value)) and not _CODE.match(value) and not set("()[]{}<>") & set(value)


def _is_token(value: str) -> bool:
    """Whether what is called a token is one of a service, and none of a text, a page or a count."""
    return len(value) >= 16 and len(_MIXED.findall(value)) > 1 and not _CODE.match(value) and " " not in value


def _is_named(key: str, value: str) -> bool:
    """Whether the name of a value in JSON tells that it is a secret; under "passwords" a number may be how many."""
    if _BARE_TOKEN.fullmatch(key):
        return _is_token(value)
    return bool(value) and NAMED.fullmatch(key) is not None and (len(value) >= SHORTEST or key[-1] not in "sS")


def _is_bytes(value: str, key: str, opaque: Set[str]) -> bool:
    """Whether a value of a part is bytes as letters. A document of text stands under the same name as one of bytes."""
    return (key in opaque or value.startswith(BYTES)) and _BYTES.fullmatch(value) is not None


def _is_count(told: tuple[object, object]) -> bool:
    kind, count = told
    return (kind in _OVER_LINES or kind in _FINDERS) and type(count) is int and 0 < count < MOST_TOLD


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
