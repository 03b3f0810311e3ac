"""Facts by a chat model: one call for each segment. Where its answer is of no use, the rules read the segment.

A model may invent a fact; it cannot invent its source. Every quote must stand in the message that it names, word for
word, white space apart, and one of them must be from a trusted role: what the assistant says is shown for
understanding, and makes no fact alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, NamedTuple
from unicodedata import category
from uuid import UUID

from pydantic import AfterValidator, BaseModel, Field

from memstore.derive import llm
from memstore.derive.chunking import split_segments
from memstore.derive.dependencies import Dependencies
from memstore.derive.facts.normalization import is_denied, parse_slot
from memstore.derive.facts.rule_extractor import (
    UNTRUSTED,
    ExtractedBatch,
    ExtractedFact,
    FactBatch,
    FactDraft,
    RuleExtractor,
    to_fact,
)
from memstore.derive.llm import (
    LLMRequest,
    LLMSession,
    Passage,
    complete_all,
    make_passages,
    split_to_window,
    total_usage,
)
from memstore.derive.rules.slots import Modality, Slot
from memstore.models import QUARANTINED, FactKind, FactType, Message, Role, kind_of
from memstore.providers import ChatModel
from memstore.text import blank_fenced_blocks, json_line

BATCH_MESSAGES = 64  # thought about at once: what is lost when the model goes away in the middle
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

    `attribute` and `value` say the same in two phrases, where it can be said so, and it is `single` where a later value
    ends it. `valid_from` and `valid_to` (the first moment at which it no longer holds) are days, in the time zone of
    the first source.
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

    def draft(self, said: SourceSpan) -> FactDraft:
        """Return the fact as one of its sources says it."""
        columns = (self.text, self.type, self.kind, self.subject, self.confidence, self.language or "und")
        return FactDraft(*columns, said.start, said.stop, self.valid_from, self.valid_to)


@dataclass(frozen=True, slots=True)
class FoundFacts:
    """The facts of a segment, and what the calls cost."""

    facts: tuple[ModelFact, ...]
    calls: int
    prompt_tokens: int
    completion_tokens: int


def recipe(model: ChatModel) -> str:
    """Return the recipe of this model's facts. Raises `ModelUnavailable` where its server is away."""
    return llm.make_recipe("llm-facts", VERSION, model, llm.load_prompt("facts"))


def ask_for_facts(
    segment: Sequence[Message],
    model: ChatModel,
    *,
    trusted: Collection[str] = (Role.USER,),
    max_tokens: int = MAX_TOKENS,
) -> FoundFacts:
    """Ask what a segment of a conversation says that lasts: one call, or more where it is longer than the window.

    `trusted` are the roles that facts are taken from. Users and assistants are always shown; system prompts and the
    output of tools are kept from the model otherwise. `max_tokens` limits the answer to one call. Raises what
    `ChatModel.complete` raises, and then nothing of the segment is returned.
    """
    system = llm.load_prompt("facts").text
    rows = split_to_window(system, make_passages(segment, trusted), model, max_tokens)
    asked = [shown for shown in rows if any(passage.role in trusted for passage in shown)]
    made = complete_all(model, [llm.make_chat(system, shown) for shown in asked], _Facts, max_tokens, _ask_rest)
    checked = [
        _checked(fact, shown, trusted)
        for shown, parts in zip(asked, made, strict=True)
        for part in parts
        for fact in part.answer.facts
    ]
    usage = total_usage([part for parts in made for part in parts])
    return FoundFacts(tuple(fact for fact in checked if fact is not None), *usage)


def _ask_rest(answer: _Facts) -> str:
    known = "\n".join(json_line({"text": fact.text}) for fact in answer.facts)
    return f"These facts are written down already; give the others alone, or an empty list:\n{known}"


def _checked(fact: _Fact, shown: Sequence[Passage], trusted: Collection[str]) -> ModelFact | None:
    """Return the fact with the sources that stand; None where none of a trusted role does."""
    cited = [(shown[each.message - 1], each.quote) for each in fact.sources if 0 < each.message <= len(shown)]
    found = [
        (passage, SourceSpan(passage.item_id, passage.start + span[0], passage.start + span[1]))
        for passage, quote in cited
        if (span := find_quote(passage.text, quote)) is not None
    ]
    if not any(passage.role in trusted for passage, _ in found):
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


def find_quote(text: str, quote: str) -> tuple[int, int] | None:
    """Return where a text has these words, in characters, or None. White space of any kind is alike.

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
    """Return the start of a day, month or year that the model wrote; None for anything else."""
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


class LLMExtractor:
    """Extracts facts by asking a chat model."""

    batch_size = BATCH_MESSAGES
    uses_llm = True

    def __init__(self, resources: Dependencies, model: ChatModel) -> None:
        self.resources, self.model = resources, model
        self.rules = RuleExtractor(resources)

    @property
    def recipe(self) -> str:
        """The model, its prompt, and the roles that are read and trusted. Raises `ModelUnavailable`."""
        return self.rules.trust.recipe(recipe(self.model))

    def extract(self, batches: Sequence[FactBatch]) -> list[ExtractedBatch]:
        """Return the facts of each batch: one question for each of its segments."""
        return [self._extract(batch, self.recipe) for batch in batches]

    def _extract(self, batch: FactBatch, recipe: str) -> ExtractedBatch:
        asked = LLMSession(self.model.name, self.resources.token_budget)
        facts: list[ExtractedFact] = []
        for begin, segment in self._segments(batch):
            inquiry = LLMRequest(segment[0].conversation_id, "facts", segment[0].seq, segment[-1].seq, recipe)
            try:
                answer = asked.ask(inquiry, partial(self._ask, segment))
            except Exception:  # what was paid for is kept; asked from here on, the model fails again, and that is told
                if begin == batch.before:
                    raise
                return ExtractedBatch(segment[0].seq - 1, facts, asked)
            if answer is None:
                read = batch.messages[: begin + len(segment)]
                facts += self.rules.extract([FactBatch(segment[-1].seq, read, begin)])[0].facts
            else:
                facts += self._facts(answer.facts, segment, recipe)
        return ExtractedBatch(batch.to_seq, facts, asked)

    def _segments(self, batch: FactBatch) -> Iterator[tuple[int, Sequence[Message]]]:
        """Return the segments of a batch, the one that is still open too, and where each begins."""
        settings, begin = self.resources.settings, batch.before
        gap = timedelta(hours=settings.session_gap_hours)
        for segment in split_segments(batch.messages[begin:], gap, settings.segment_tokens):
            yield begin, segment
            begin += len(segment)
        if begin < len(batch.messages):
            yield begin, batch.messages[begin:]

    def _ask(self, segment: Sequence[Message]) -> FoundFacts:
        shown = [message.model_copy(update={"text": blank_fenced_blocks(message.text or "")}) for message in segment]
        return ask_for_facts(shown, self.model, trusted=self.rules.trust.roles)

    def _facts(self, found: Sequence[ModelFact], segment: Sequence[Message], recipe: str) -> Iterator[ExtractedFact]:
        """Return each fact once for each message that says it: the first makes it, the others are further sources.

        Where a trusted one says it, it is active, and rests on no paste.
        """
        messages = {message.id: message for message in segment}
        for fact, vector in zip(found, self.resources.embed([fact.text for fact in found]), strict=True):
            slot = slot_of(fact)
            made = [
                to_fact(
                    replace(fact.draft(said), slot=slot), messages[said.message_id], vector, recipe, self.rules.trust
                )
                for said in fact.sources
            ]
            active = any(one.fact.state != QUARANTINED for one in made)
            for one in made:
                if slot is None:
                    one.fact.attribute, one.fact.value = fact.attribute, fact.value
                if active and one.spans[0].trust == UNTRUSTED:
                    continue
                if active:
                    one.fact.state = "active"
                yield one


def slot_of(fact: ModelFact) -> Slot | None:
    """Return the slot that the rules read in a fact's sentence; else the model's own, unless that is denied.

    A model names attributes as it likes: its "home city" of today would never meet its "residence" of tomorrow, nor
    what the rules have read. "hobby: chess" takes nothing from "hobby: go", as no hobby is `single`.
    """
    read = parse_slot(fact.text, fact.subject, fact.language or "und")
    if read is not None or fact.valid_to is not None:
        return read
    if not fact.attribute or not fact.value or is_denied(fact.text):  # "no longer in Leeds" is no residence
        return None
    single = fact.single and kind_of(fact.type) != "episodic"
    return Slot(fact.attribute.casefold(), fact.value, not single, Modality.HOLDS)
