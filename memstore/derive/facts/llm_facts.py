"""Facts that a chat model finds, each held to the words it was found in. Pure but for the model's call.

A model may invent a fact; it cannot invent its source. Every quote must stand in the message that it names, word for
word, white space apart, and one of them must be from somebody who is believed: what the assistant says is shown for
understanding, and makes no fact alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, NamedTuple
from unicodedata import category
from uuid import UUID

from pydantic import AfterValidator, BaseModel, Field

from memstore.derive import llm
from memstore.derive.llm import Passage, complete_all, make_passages, split_to_window, total_usage
from memstore.models import FactKind, FactType, Message, Role
from memstore.providers import ChatModel

VERSION = 2
MAX_TOKENS = 1024  # of an answer: about twelve facts with their quotes

_DAY = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?")
_SPACES = re.compile(r"[\s\0]+")  # NUL as well: Postgres cannot keep it


def _not_blank(text: str) -> str:
    if not _folded(text):
        raise ValueError("it is blank")
    return text


class _Quote(BaseModel):
    message: int
    quote: str


class _Fact(BaseModel):
    """A fact as the model writes it: first the words, then what follows from them."""

    sources: list[_Quote]
    text: Annotated[str, AfterValidator(_not_blank)]
    type: FactType
    kind: FactKind
    subject: Annotated[str, AfterValidator(_not_blank)]
    attribute: str | None
    value: str | None
    single: bool = False  # of a model that leaves it out nothing is superseded by what it calls an attribute
    confidence: Annotated[float, Field(ge=0, le=1)]
    language: str | None
    valid_from: str | None
    valid_to: str | None


class _Facts(BaseModel):
    facts: list[_Fact]


class SourceSpan(NamedTuple):
    """Where a fact is said: a message, and the characters `start` to `stop` of its text."""

    message_id: UUID
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class ModelFact:
    """A fact as a model found it, with at least one source that was checked.

    `type` is a `FactType`, `kind` a `FactKind`. `subject` is whom it is about, "The user" where a user has no name.
    `attribute` and `value` say the same in two phrases, where it can be said so, and it is `single` where a later value
    ends it. `confidence` is the model's, from 0 to
    1. `language` are two letters. `valid_from` and `valid_to` (the first moment at which it no longer holds) are days,
    in the time zone of the first source.
    """

    text: str
    type: str
    kind: str
    subject: str
    attribute: str | None
    value: str | None
    single: bool
    confidence: float
    language: str | None
    valid_from: datetime | None
    valid_to: datetime | None
    sources: tuple[SourceSpan, ...]


@dataclass(frozen=True, slots=True)
class FoundFacts:
    """The facts of a stretch, how many were rejected as nobody said so, and the calls with their cost in tokens."""

    facts: tuple[ModelFact, ...]
    rejected: int
    calls: int
    prompt_tokens: int
    completion_tokens: int


def recipe(model: ChatModel) -> str:
    """Give what the facts of this model are kept under. Raises ModelUnavailable where its server is away."""
    return llm.make_recipe("llm-facts", VERSION, model, llm.load_prompt("facts"))


def facts_of(
    stretch: Sequence[Message],
    model: ChatModel,
    *,
    believed: Collection[str] = (Role.USER,),
    max_tokens: int = MAX_TOKENS,
) -> FoundFacts:
    """Give what a stretch of a conversation says that lasts: one call, or more where it is longer than the window.

    `believed` are the roles that facts are taken from. Users and assistants are always shown; system prompts and the
    output of tools are kept from the model otherwise. `max_tokens` limits the answer to one call. Raises what
    `ChatModel.complete` raises, and then nothing of the stretch is given.
    """
    system = llm.load_prompt("facts").text
    rows = split_to_window(system, make_passages(stretch, believed), model, max_tokens)
    asked = [shown for shown in rows if any(passage.role in believed for passage in shown)]
    made = complete_all(model, [llm.make_chat(system, shown) for shown in asked], _Facts, max_tokens)
    checked = [
        _checked(fact, shown, believed) for shown, one in zip(asked, made, strict=True) for fact in one.answer.facts
    ]
    facts = tuple(fact for fact in checked if fact is not None)
    return FoundFacts(facts, checked.count(None), *total_usage(made))


def _checked(fact: _Fact, shown: Sequence[Passage], believed: Collection[str]) -> ModelFact | None:
    """Give the fact with the sources that stand; None where none does, or none of somebody who is believed."""
    cited = [(shown[each.message - 1], each.quote) for each in fact.sources if 0 < each.message <= len(shown)]
    found = [(passage, span) for passage, quote in cited if (span := _span(passage, quote)) is not None]
    if not any(passage.role in believed for passage, _ in found):
        return None
    said = found[0][0].said
    begins, ends = _day(fact.valid_from, said), _day(fact.valid_to, said)
    return ModelFact(
        text=_folded(fact.text),
        type=fact.type,
        kind=fact.kind,
        subject=_subject(fact.subject),
        attribute=_folded(fact.attribute or "") or None,
        value=_folded(fact.value or "") or None,
        single=fact.single,
        confidence=fact.confidence,
        language=_language(fact.language),
        valid_from=begins,
        valid_to=ends if ends and not (begins and ends <= begins) else None,
        sources=tuple(dict.fromkeys(span for _, span in found)),
    )


def _span(passage: Passage, quote: str) -> SourceSpan | None:
    span = find_quote(passage.text, quote)
    return span and SourceSpan(passage.item_id, passage.start + span[0], passage.start + span[1])


def find_quote(text: str, quote: str) -> tuple[int, int] | None:
    """Give where a text has these words, in characters; None where it has not. White space of any kind is alike.

    The words must be whole: "ate" is not said in "I hate it". In scripts without upper and lower case, which hardly
    part their words, any place will do.
    """
    words = quote.split()
    if not any(each.isalnum() or category(each) == "So" for each in quote):  # a word or an emoji
        return None
    for found in re.finditer(r"\s+".join(map(re.escape, words)), text):
        start, stop = found.span()
        if not (_joined(text[start - 1 : start + 1] if start else "") or _joined(text[stop - 1 : stop + 1])):
            return start, stop
    return None


def _joined(pair: str) -> bool:
    """Whether two neighbours are of one word."""
    return len(pair) == 2 and all(each.isdigit() or each.lower() != each.upper() for each in pair)


def _day(written: str | None, said: datetime) -> datetime | None:
    """Give the start of a day, month or year that the model wrote; None for anything else."""
    found = _DAY.match((written or "").strip())
    if not found:
        return None
    year, month, day = (int(number or 1) for number in found.groups())
    try:
        return datetime(year, month, day, tzinfo=said.tzinfo)
    except ValueError:
        return None


def _subject(written: str) -> str:
    return "The user" if _folded(written).casefold() in ("user", "the user") else _folded(written)


def _language(written: str | None) -> str | None:
    code = (written or "").strip().lower()
    return code if re.fullmatch("[a-z]{2}", code) else None


def _folded(text: str) -> str:
    return _SPACES.sub(" ", text).strip()
