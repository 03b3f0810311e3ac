"""From messages to facts, before the database is asked what they mean for the known ones. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Protocol

from memstore import ids
from memstore.fences import unfenced
from memstore.ingest.asked import Asked
from memstore.ingest.rules.drafts import FactDraft, Said
from memstore.ingest.rules.slots import Slot
from memstore.ingest.rules.slotted import slotted
from memstore.ingest.tools import Tools
from memstore.models import FactColumns, Message, Role, Span, Tier, Unit
from memstore.providers import Vectors

RECIPE = "rules/2"
BEFORE = 3  # messages that may be needed to understand one
MOST = 256  # facts of one message: what says more is a paste, and each one is settled with the user's row locked
TRUST = {Role.USER: 2, Role.ASSISTANT: 1, Role.TOOL: 0}
NOBODY = {Role.USER: "The user", Role.ASSISTANT: "The assistant", Role.TOOL: "The tool"}  # speakers without a name


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages to be read; the first `before` of them were read already. `to_seq` is the last one."""

    to_seq: int
    messages: list[Message]
    before: int


@dataclass(frozen=True, slots=True)
class Draft:
    """A fact as a rule reads it, the message that says it and where, and what it fills."""

    draft: FactDraft
    message: Message
    span: Span
    slot: Slot | None


@dataclass(frozen=True, slots=True)
class Found:
    """A fact as it was found: its columns, what it fills, where it is said, its unit of recall and vector.

    `heard_at` is when memstore learnt what says it: what a person has done to a fact later was done knowing that.
    """

    fact: FactColumns
    slot: Slot | None
    span: Span
    unit: Unit
    vector: Vectors | None
    said_by_subject: bool
    heard_at: datetime


@dataclass(frozen=True, slots=True)
class Made:
    """The facts of the messages up to `to_seq`, and where a model was asked for them, what that cost."""

    to_seq: int
    found: list[Found]
    asked: Asked | None = None


class Reader(Protocol):
    """Reads facts out of messages: by rules, or by asking a model. Pure but for the models that it asks."""

    @property
    def batch(self) -> int:
        """How many messages it reads at once."""

    @property
    def asks(self) -> bool:
        """Whether it asks a chat model."""

    @property
    def recipe(self) -> str:
        """How it reads them. May raise `ModelUnavailable`."""

    def read(self, batches: Sequence[Batch]) -> list[Made]:
        """Give the facts of each batch."""


class Rules:
    """Reads facts by rules."""

    batch = 512  # enough for the encoder to sort them by length
    asks = False

    def __init__(self, tools: Tools) -> None:
        self.tools = tools
        self.roles = frozenset(tools.settings.facts_from)

    @property
    def recipe(self) -> str:
        """The rules, and whom else than people they are read for."""
        return RECIPE if self.roles == {Role.USER} else f"{RECIPE} from {','.join(sorted(self.roles))}"

    def read(self, batches: Sequence[Batch]) -> list[Made]:
        """Extract and embed; texts of all conversations go to the encoder together."""
        told = [list(drafts(batch.messages, batch.before, self.roles)) for batch in batches]
        vectors = iter(self.tools.embed([one.draft.text for some in told for one in some]))
        read = [
            [found(one, vector, self.recipe) for one, vector in zip(some, islice(vectors, len(some)), strict=True)]
            for some in told
        ]
        return [Made(batch.to_seq, some) for batch, some in zip(batches, read, strict=True)]


def drafts(said: Sequence[Message], begin: int, roles: frozenset[str]) -> Iterator[Draft]:
    """Give the facts that messages from the one at `begin` on say; those before it help to understand them.

    Only people, assistants and tools are read, those of them that are among `roles`.
    """
    for place in range(begin, len(said)):
        message = said[place]
        if message.text and message.role in roles and message.role in TRUST:
            yield from _of_message(message, said[max(0, place - BEFORE) : place])


def _of_message(message: Message, before: Sequence[Message]) -> Iterator[Draft]:
    said = replace(_said(message), role=Role.USER)  # whoever is trusted is read as a person is
    read = slotted(said, [_said(one) for one in before])
    once = {(one.draft.subject, one.draft.text): one for one in reversed(read)}.values()  # each where it is said first
    for draft, slot in islice(reversed(once), MOST):
        span = Span(message.id, draft.start, draft.stop, TRUST[Role(message.role)])
        yield Draft(draft, message, span, slot)


def _said(message: Message) -> Said:
    speaker = message.name or (None if message.role == Role.USER else NOBODY.get(Role(message.role)))
    return Said(unfenced(message.text or ""), message.role, speaker, message.occurred_at)


def found(one: Draft, vector: Vectors | None, recipe: str) -> Found:
    """Give a draft as a fact that can be stored."""
    draft, message, slot = one.draft, one.message, one.slot
    fact = FactColumns.model_construct(
        user_id=message.user_id,
        id=ids.fact_id(message.user_id, draft.subject, draft.text),
        type=draft.type,
        kind=draft.kind,
        subject=draft.subject,
        attribute=slot.attribute if slot else None,
        value=slot.value if slot else None,
        text=draft.text,
        language=draft.language,
        confidence=draft.confidence,
        state="active",
        valid_from=draft.valid_from,
        valid_to=draft.valid_to,
        recipe=recipe,
        occurred_at=message.occurred_at,
    )
    speaker = (message.name or NOBODY[Role(message.role)]).casefold()
    own = fact.subject.casefold() == speaker or fact.subject.casefold().startswith(f"{speaker}'s ")
    return Found(fact, slot, one.span, unit_of(fact, message), vector, own, message.recorded_at)


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
