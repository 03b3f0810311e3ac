"""Facts before they are stored: where they come from, and whether they hold at once or wait to be confirmed. Pure.

A tool's output is never believed alone, whatever is set: it is a page, a file or a mail that somebody unknown wrote.
Nor are pasted or quoted texts, or messages that the application marks as untrusted. A message can only lower the trust
of its role: the writer of an imported file writes its metadata too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from memstore import ids
from memstore.derive.dependencies import DerivedBatch
from memstore.derive.facts.guidelines import NO_GUIDELINES, Guidelines
from memstore.derive.facts.slots import SINGLE, Slot
from memstore.ingest.redaction import load_detectors
from memstore.models import (
    QUARANTINED,
    TRUST,
    TRUSTED,
    FactColumns,
    FactSpan,
    Message,
    RememberedFact,
    Role,
)
from memstore.providers import Vectors
from memstore.settings import Settings

STATEMENT = "statement"
DRAFT_COLUMNS = ("text", "type", "kind", "subject", "confidence", "language", "valid_from", "valid_to")
LOOKBACK_MESSAGES = 3
UNNAMED_SPEAKERS = {Role.USER: "The user", Role.ASSISTANT: "The assistant", Role.TOOL: "The tool"}
TRUST_LEVELS = {Role.USER: 2, Role.ASSISTANT: 1, Role.TOOL: 0}
BY_HAND, UNTRUSTED = 3, 0
# A fence of any length, closed or not; ticks anywhere, tildes where a line begins: elsewhere they are a tone of voice.
_FENCED = re.compile(
    r"(`{3,}+).*?(?:\1|\Z)|^[^\w\n]{0,20}?(~{3,}+).*?(?:^[^\w\n]{0,20}?\2|\Z)", re.DOTALL | re.MULTILINE
)
_QUOTED = re.compile(
    r"(?:^|[\r\v\f\x85\u2028\u2029])(?:[^\S\n]|[\u200b-\u200f\ufeff]){0,20}"
    r"(?:(?:[-*+•]|\d{1,3}[.)])[^\S\n]{1,5})?[>＞][^\n]*",
    re.MULTILINE,
)
_MARKS = ("```", "~~~", ">", "＞")


@dataclass(frozen=True, slots=True)
class TrustPolicy:
    """The roles that facts are taken from, and those of them whose facts hold at once."""

    roles: frozenset[str]
    trusted: frozenset[str]

    @classmethod
    def of(cls, settings: Settings) -> TrustPolicy:
        """Return the policy of the settings."""
        roles = frozenset(settings.fact_roles)
        return cls(roles, roles & frozenset(settings.trusted_roles))

    def recipe(self, recipe: str) -> str:
        """Return a recipe with the roles of facts, unless only users, and those that are not trusted."""
        if self.roles != {Role.USER}:
            recipe = f"{recipe} from {','.join(sorted(self.roles)) or 'nobody'}"
        if waiting := self.roles - self.trusted:
            recipe = f"{recipe} doubting {','.join(sorted(waiting))}"
        return recipe

    def level(self, message: Message, start: int, stop: int) -> int:
        """Return how far the characters from `start` to `stop` of a message are trusted: 0, 1 or 2."""
        if message.meta.get(TRUST, TRUSTED) != TRUSTED or is_pasted(message, start, stop):
            return UNTRUSTED
        return TRUST_LEVELS[Role(message.role)]

    def is_trusted(self, message: Message, level: int) -> bool:
        """Whether facts at this level are active at once."""
        return level > UNTRUSTED and message.role in self.trusted


def is_pasted(message: Message, start: int, stop: int) -> bool:
    """Whether characters of a message touch text that was pasted into it, or quoted line by line."""
    return any(begin < stop and start < end for begin, end in pasted(message.text or ""))


def pasted(text: str) -> list[tuple[int, int]]:
    """Return the stretches of a text that were pasted into it, or quoted line by line."""
    if not any(mark in text for mark in _MARKS):
        return []
    return [match.span() for pattern in (_FENCED, _QUOTED) for match in pattern.finditer(text)]


@dataclass(frozen=True, slots=True)
class FactDraft:
    """A fact as a message says it, before it has a source, an id or an embedding.

    `text` is a sentence in plain words, or the speaker's words after the name. `kind` is what sort of memory its
    type is: episodic, semantic or procedural. `subject` is whom it is about, as the text names them. `confidence` is
    from 0 to 1; `language` is ISO 639-1, "und" where the words do not tell it. `start` and `stop` are the
    characters of the message that say it. It holds from `valid_from` to `valid_to`, where the speaker said so. Without
    a slot its `attribute` and `value` may be known, such as "residence" and "porto". If it `may_change` known ones, it
    is compared with them: not what friends tell each other.
    """

    text: str
    type: str
    kind: str
    subject: str
    confidence: float
    language: str
    start: int
    stop: int
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    slot: Slot | None = None
    attribute: str | None = None
    value: str | None = None
    may_change: bool = False


@dataclass(frozen=True, slots=True)
class FactBatch:
    """Messages to be read; the first `before` of them were read already. `to_seq` is the last one.

    `known` are the user's facts that a model is shown.
    """

    to_seq: int
    messages: list[Message]
    before: int
    guidelines: Guidelines = NO_GUIDELINES
    known: Sequence[RememberedFact] = ()


class Successor(NamedTuple):
    """What holds instead of a fact, and since when."""

    begins_at: datetime
    id: UUID


@dataclass(frozen=True, slots=True)
class ExtractedFact:
    """A new fact: its columns, the slot that it fills, its spans, and its vector.

    Its state is "quarantined" if its speaker is not trusted alone. `said_by_subject` is also true of what speakers say
    of their own kin, pets and things. `learned_at` is when memstore learnt of it: later changes by hand were made
    knowing that. An extracted fact has one span; one that a person enters has several, or none. `ends` are known
    facts that no longer hold; `successor` is the first that was said later and makes it outdated. Facts of its subject
    may be known under the `alias`. `said` are the subject's sentences that a model quotes.
    """

    fact: FactColumns
    slot: Slot | None
    said_by_subject: bool
    learned_at: datetime
    speaker: str = ""
    conversation_id: UUID | None = None
    spans: tuple[FactSpan, ...] = ()
    vector: Vectors | None = None
    may_change: bool = False
    ends: tuple[UUID, ...] = ()
    successor: Successor | None = None
    alias: str = ""
    said: tuple[str, ...] = ()

    @property
    def compared_attribute(self) -> str | None:
        """The attribute whose known values it is compared with, however far they are: its slot's, or a single one."""
        return self.fact.attribute if self.slot is not None or self.fact.attribute in SINGLE else None


@dataclass(frozen=True, slots=True)
class ExtractedBatch(DerivedBatch):
    """The facts of messages.

    `invalid` counts a model's unusable answers, `refused` the facts of others that were not believed.
    """

    facts: list[ExtractedFact]
    invalid: int = 0
    refused: int = 0


def without_secrets(extracted: ExtractedBatch, messages: Sequence[Message]) -> ExtractedBatch:
    """Return a batch without the facts that tell a password, a key or what else masking masks, masked or not."""
    find, texts = load_detectors().find, {each.id: each.text or "" for each in messages}

    def tells_secret(new_fact: ExtractedFact) -> bool:
        said = (texts.get(span.message_id, "") for span in new_fact.spans)
        secrets = {text[secret.start : secret.stop] for text in said for secret in find(text)}
        return bool(find(new_fact.fact.text)) or any(secret in new_fact.fact.text for secret in secrets)

    return replace(extracted, facts=[new_fact for new_fact in extracted.facts if not tells_secret(new_fact)])


def to_fact(
    draft: FactDraft, message: Message, vector: Vectors | None, recipe: str, trust: TrustPolicy
) -> ExtractedFact:
    """Return a fact that a message says as it can be stored."""
    slot, level = draft.slot, trust.level(message, draft.start, draft.stop)
    columns = {name: getattr(draft, name) for name in DRAFT_COLUMNS}
    fact = FactColumns.model_construct(
        user_id=message.user_id,
        id=ids.fact_id(message.user_id, draft.subject, draft.text),
        attribute=slot.attribute if slot else draft.attribute,
        value=slot.value if slot else draft.value,
        state="active" if trust.is_trusted(message, level) else QUARANTINED,
        recipe=recipe,
        occurred_at=message.occurred_at,
        **columns,
    )
    speaker = message.name or UNNAMED_SPEAKERS[Role(message.role)]
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
        may_change=draft.may_change,
    )
