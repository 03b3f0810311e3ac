"""Facts as they are extracted, before the database is asked what they mean for the known ones. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memstore import ids
from memstore.derive.facts.llm_facts import ModelFact
from memstore.derive.facts.trust import Trust
from memstore.derive.llm import LLMSession
from memstore.derive.rules.extract import FactDraft
from memstore.derive.rules.slots import Slot
from memstore.models import QUARANTINED, FactColumns, FactSpan, Message, Role, Tier, Unit
from memstore.providers import Vectors

UNNAMED = {Role.USER: "The user", Role.ASSISTANT: "The assistant", Role.TOOL: "The tool"}  # speakers without a name


@dataclass(frozen=True, slots=True)
class FactBatch:
    """Messages to be read; the first `before` of them were read already. `to_seq` is the last one."""

    to_seq: int
    messages: list[Message]
    before: int


@dataclass(frozen=True, slots=True)
class Maker:
    """By which recipe facts are made, and how far those who say them are trusted, there."""

    recipe: str
    trust: Trust


@dataclass(frozen=True, slots=True)
class ExtractedFact:
    """A fact as it was extracted: its columns, what it fills, where it is said, its unit of recall and vector.

    It is said in one place, by `speaker`, as facts name them; one that a person enters may have several, or none.

    `heard_at` is when memstore learnt what says it: what a person has done to a fact later was done knowing that. Its
    state is "quarantined" where who says it is not believed alone.
    """

    fact: FactColumns
    slot: Slot | None
    spans: tuple[FactSpan, ...]
    unit: Unit
    vector: Vectors | None
    said_by_subject: bool
    heard_at: datetime
    speaker: str = ""


@dataclass(frozen=True, slots=True)
class MadeFacts:
    """The facts of the messages up to `to_seq`, and where a model was asked for them, what that cost."""

    to_seq: int
    facts: list[ExtractedFact]
    llm_session: LLMSession | None = None


def extracted(
    told: FactDraft | ModelFact,
    message: Message,
    place: tuple[int, int],
    vector: Vectors | None,
    maker: Maker,
    slot: Slot | None = None,
) -> ExtractedFact:
    """Give a fact that the characters `place` of a message say as it can be stored.

    Its attribute and value are those of the slot that it fills, or what a model called them.
    """
    phrases = slot if slot is not None or isinstance(told, FactDraft) else told
    level = maker.trust.level(message, *place)
    fact = FactColumns.model_construct(
        user_id=message.user_id,
        id=ids.fact_id(message.user_id, told.subject, told.text),
        type=told.type,
        kind=told.kind,
        subject=told.subject,
        attribute=phrases.attribute if phrases else None,
        value=phrases.value if phrases else None,
        text=told.text,
        language=told.language or "und",
        confidence=told.confidence,
        state="active" if maker.trust.is_trusted(message, level) else QUARANTINED,
        valid_from=told.valid_from,
        valid_to=told.valid_to,
        recipe=maker.recipe,
        occurred_at=message.occurred_at,
    )
    span = FactSpan(message.id, *place, level)
    return ExtractedFact(
        fact,
        slot,
        (span,),
        unit_of(fact, message),
        vector,
        _of_speaker(fact.subject, message),
        message.recorded_at,
        _speaker(message),
    )


def _of_speaker(subject: str, message: Message) -> bool:
    """Whether a fact is about the speaker of a message, or about somebody or something of theirs."""
    speaker = _speaker(message).casefold()
    return subject.casefold() == speaker or subject.casefold().startswith(f"{speaker}'s ")


def _speaker(message: Message) -> str:
    return message.name or UNNAMED[Role(message.role)]


def unit_of(fact: FactColumns, message: Message | None = None) -> Unit:
    """Give a fact's unit of recall; `message` is the first that said it."""
    return Unit(
        item_id=fact.id,
        chunk=0,
        tier=Tier.FACTS,
        conversation_id=None if message is None else message.conversation_id,
        seq=None,
        role=None,
        speaker=fact.subject,
        start=0,
        stop=len(fact.text),
        occurred_at=fact.occurred_at,
    )
