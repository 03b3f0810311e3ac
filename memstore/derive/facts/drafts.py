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
from typing import Any, NamedTuple
from uuid import UUID

from memstore import ids
from memstore.derive.dependencies import DerivedBatch
from memstore.derive.facts.guidelines import NO_GUIDELINES, Guidelines
from memstore.derive.facts.slots import SINGLE, Slot
from memstore.ingest.redaction import load_detectors
from memstore.models import QUARANTINED, TRUST, TRUSTED, FactColumns, FactSpan, KnownFact, Message, Role, kind_of
from memstore.providers import Vectors
from memstore.settings import Settings

STATEMENT = "statement"
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
        roles = frozenset(settings.fact_roles)
        return cls(roles, roles & frozenset(settings.trusted_roles))

    def recipe(self, recipe: str) -> str:
        if self.roles != {Role.USER}:
            recipe = f"{recipe} from {','.join(sorted(self.roles)) or 'nobody'}"
        if waiting := self.roles - self.trusted:
            recipe = f"{recipe} doubting {','.join(sorted(waiting))}"
        return recipe

    def level(self, message: Message, start: int, stop: int) -> int:
        if message.meta.get(TRUST, TRUSTED) != TRUSTED or is_pasted(message, start, stop):
            return UNTRUSTED
        return TRUST_LEVELS[Role(message.role)]

    def is_trusted(self, message: Message, level: int) -> bool:
        return level > UNTRUSTED and message.role in self.trusted


def is_pasted(message: Message, start: int, stop: int) -> bool:
    return any(begin < stop and start < end for begin, end in pasted(message.text or ""))


def pasted(text: str) -> list[tuple[int, int]]:
    """Return the stretches of a text that were pasted into it, or quoted line by line."""
    if not any(mark in text for mark in _MARKS):
        return []
    return [match.span() for pattern in (_FENCED, _QUOTED) for match in pattern.finditer(text)]


class Successor(NamedTuple):
    begins_at: datetime
    id: UUID


@dataclass(frozen=True, slots=True)
class FactDraft:
    """A fact from when it is extracted, or entered by a person, until it is stored: its columns and the slot it fills.

    An extractor gives the characters `start` to `stop` of the message that say it, and whether it `may_change` known
    facts: not what friends tell each other. `attribute_to` adds the message; until then `fact` has no id. Its state is
    "quarantined" if its speaker is not trusted alone. `said_by_subject` is also true of what speakers say of their own
    kin, pets and things. `learned_at` is when memstore learnt of it: later changes by hand were made knowing that. It
    is None for what a person enters, which has several spans, or none; others have one. `ends` are known facts that no
    longer hold; `successor` is the first that was said later and makes it outdated. Facts of its subject may be known
    under the `alias`. `said` are the subject's sentences that a model quotes.
    """

    fact: FactColumns
    slot: Slot | None = None
    start: int = 0
    stop: int = 0
    may_change: bool = False
    said_by_subject: bool = False
    learned_at: datetime | None = None
    speaker: str = ""
    conversation_id: UUID | None = None
    spans: tuple[FactSpan, ...] = ()
    vector: Vectors | None = None
    ends: tuple[UUID, ...] = ()
    successor: Successor | None = None
    alias: str = ""
    said: tuple[str, ...] = ()

    @property
    def compared_attribute(self) -> str | None:
        """The attribute whose known values it is compared with, however far they are: its slot's, or a single one."""
        return self.fact.attribute if self.slot is not None or self.fact.attribute in SINGLE else None

    def with_columns(self, **columns: Any) -> FactDraft:
        return replace(self, fact=self.fact.model_copy(update=columns))


def draft_fact(
    text: str,
    type: str,
    subject: str,
    confidence: float,
    language: str,
    start: int = 0,
    stop: int = 0,
    *,
    slot: Slot | None = None,
    **columns: Any,
) -> FactDraft:
    """Return the draft of what a text says; `columns` are when it holds, and an attribute with its value.

    `text` is a sentence in plain words, or the speaker's words after the name; `subject` is whom it is about, as the
    text names them. `confidence` is from 0 to 1; `language` is ISO 639-1, "und" where the words do not tell it.
    """
    values: dict[str, Any] = dict.fromkeys(("valid_from", "valid_to", "attribute", "value")) | columns
    if slot is not None:
        values |= {"attribute": slot.attribute, "value": slot.value}
    values |= {"kind": kind_of(type), "subject": subject, "confidence": confidence, "language": language}
    return FactDraft(FactColumns.model_construct(text=text, type=type, state="active", **values), slot, start, stop)


@dataclass(frozen=True, slots=True)
class FactBatch:
    """Messages to be read; the first `before` of them were read already. `to_seq` is the last one.

    `known` are the user's facts that a model is shown.
    """

    to_seq: int
    messages: list[Message]
    before: int
    guidelines: Guidelines = NO_GUIDELINES
    known: Sequence[KnownFact] = ()


@dataclass(frozen=True, slots=True)
class ExtractedBatch(DerivedBatch):
    """The facts of messages.

    `invalid` counts a model's unusable answers, `refused` the facts of others that were not believed.
    """

    facts: list[FactDraft]
    invalid: int = 0
    refused: int = 0


def without_secrets(extracted: ExtractedBatch, messages: Sequence[Message]) -> ExtractedBatch:
    """Return a batch without the facts that tell a password, a key or what else masking masks, masked or not."""
    find, texts = load_detectors().find, {each.id: each.text or "" for each in messages}

    def tells_secret(new_fact: FactDraft) -> bool:
        said = (texts.get(span.message_id, "") for span in new_fact.spans)
        secrets = {text[secret.start : secret.stop] for text in said for secret in find(text)}
        fact = new_fact.fact
        told = "\n".join(filter(None, (fact.text, fact.subject, fact.attribute, fact.value)))
        return bool(find(told)) or any(secret in told for secret in secrets)

    return replace(extracted, facts=[new_fact for new_fact in extracted.facts if not tells_secret(new_fact)])


def attribute_to(
    draft: FactDraft, message: Message, vector: Vectors | None, recipe: str, trust: TrustPolicy
) -> FactDraft:
    level = trust.level(message, draft.start, draft.stop)
    speaker = message.name or UNNAMED_SPEAKERS[Role(message.role)]
    subject, owner = draft.fact.subject.casefold(), speaker.casefold()
    attributed = draft.with_columns(
        user_id=message.user_id,
        id=ids.fact_id(message.user_id, draft.fact.subject, draft.fact.text),
        state="active" if trust.is_trusted(message, level) else QUARANTINED,
        recipe=recipe,
        occurred_at=message.occurred_at,
    )
    return replace(
        attributed,
        said_by_subject=subject == owner or subject.startswith(f"{owner}'s "),
        learned_at=message.recorded_at,
        speaker=speaker,
        conversation_id=message.conversation_id,
        spans=(FactSpan(message.id, draft.start, draft.stop, level),),
        vector=vector,
    )
