"""Messages → facts by rules, as they can be stored, before the database is asked what they mean for known ones. Pure.

No model is asked, and the same messages give the same facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from uuid import UUID

from memstore import ids
from memstore.derive.dependencies import Dependencies
from memstore.derive.facts.trust import LEVELS, TrustPolicy
from memstore.derive.llm import LLMSession
from memstore.derive.rules.extract import Extracted, FactDraft, Utterance, extract
from memstore.derive.rules.slots import Slot
from memstore.models import QUARANTINED, FactColumns, FactSpan, Message, Role
from memstore.providers import Vectors
from memstore.text import blank_fenced_blocks

RECIPE = "rules/11"
BEFORE = 3  # messages that may be needed to understand one
MOST = 256  # facts of one message: what says more is a paste, and each one is applied with the user's row locked
UNNAMED = {Role.USER: "The user", Role.ASSISTANT: "The assistant", Role.TOOL: "The tool"}  # speakers without a name


@dataclass(frozen=True, slots=True)
class FactBatch:
    """Messages to be read; the first `before` of them were read already. `to_seq` is the last one."""

    to_seq: int
    messages: list[Message]
    before: int


@dataclass(frozen=True, slots=True)
class ExtractedFact:
    """A fact that comes in: its columns, the slot that it fills, where it is said, and its vector.

    Its state is "quarantined" where who says it is not trusted alone. `said_by_subject` is also true of what speakers
    say of their own kin, pets and things. `learned_at` is when memstore learnt of it: what a person did to a fact later
    was done knowing that. A fact that is extracted has one span; one that a person enters several, or none.
    """

    fact: FactColumns
    slot: Slot | None
    said_by_subject: bool
    learned_at: datetime
    speaker: str = ""  # as facts name them
    conversation_id: UUID | None = None
    spans: tuple[FactSpan, ...] = ()
    vector: Vectors | None = None


@dataclass(frozen=True, slots=True)
class ExtractedBatch:
    """The facts of the messages up to `to_seq`, and where a model was asked for them, what that cost."""

    to_seq: int
    facts: list[ExtractedFact]
    llm_session: LLMSession | None = None


class RuleExtractor:
    """Extracts facts by rules."""

    batch_size = 512  # enough for the encoder to sort them by length
    uses_llm = False

    def __init__(self, resources: Dependencies) -> None:
        self.resources = resources
        self.trust = TrustPolicy.of(resources.settings)

    @property
    def recipe(self) -> str:
        """The version of the rules, and the roles that are read and trusted."""
        return self.trust.recipe(RECIPE)

    def extract(self, batches: Sequence[FactBatch]) -> list[ExtractedBatch]:
        """Return the facts of each batch; texts of all batches go to the encoder together."""
        read = [list(self._read(batch)) for batch in batches]
        vectors = iter(self.resources.embed([found.draft.text for facts in read for _, found in facts]))
        recipe = self.recipe
        return [
            ExtractedBatch(
                batch.to_seq,
                [to_fact(draft, message, slot, next(vectors), recipe, self.trust) for message, (draft, slot) in facts],
            )
            for batch, facts in zip(batches, read, strict=True)
        ]

    def _read(self, batch: FactBatch) -> Iterator[tuple[Message, Extracted]]:
        for place in range(batch.before, len(batch.messages)):
            message = batch.messages[place]
            if not message.text or message.role not in self.trust.roles or message.role not in LEVELS:
                continue
            utterance = replace(_utterance(message), role=Role.USER)  # whoever is read is read as a person is
            found = extract(utterance, [_utterance(one) for one in batch.messages[max(0, place - BEFORE) : place]])
            first = {(one.draft.subject, one.draft.text): one for one in reversed(found)}  # each where it is said first
            for one in islice(reversed(first.values()), MOST):
                yield message, one


def _utterance(message: Message) -> Utterance:
    speaker = message.name or (None if message.role == Role.USER else UNNAMED.get(Role(message.role)))
    return Utterance(blank_fenced_blocks(message.text or ""), message.role, speaker, message.occurred_at)


def to_fact(
    draft: FactDraft, message: Message, slot: Slot | None, vector: Vectors | None, recipe: str, trust: TrustPolicy
) -> ExtractedFact:
    """Return a fact that a message says as it can be stored."""
    level = trust.level(message, draft.start, draft.stop)
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
        state="active" if trust.is_trusted(message, level) else QUARANTINED,
        valid_from=draft.valid_from,
        valid_to=draft.valid_to,
        recipe=recipe,
        occurred_at=message.occurred_at,
    )
    speaker = message.name or UNNAMED[Role(message.role)]
    subject, owner = fact.subject.casefold(), speaker.casefold()
    return ExtractedFact(
        fact,
        slot,
        said_by_subject=subject == owner or subject.startswith(f"{owner}'s "),
        learned_at=message.recorded_at,
        speaker=speaker,
        conversation_id=message.conversation_id,
        spans=(FactSpan(message.id, draft.start, draft.stop, level),),
        vector=vector,
    )
