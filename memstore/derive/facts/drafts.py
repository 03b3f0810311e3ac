"""Facts before they are stored: their source, and whether they are active at once or wait to be confirmed. Pure.

Output of tools is never trusted, whatever the settings say: somebody unknown wrote the page, the file or the mail.
Pasted and quoted text is not trusted, nor are messages that the application marks as untrusted. Metadata can lower the
trust of a message's role and never raise it, since the writer of an imported file writes its metadata too.
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
# A fence of any length, closed or not. Ticks count anywhere, tildes only where a line begins: "yes~~~" is no fence.
_FENCED = re.compile(
    r"(`{3,}+).*?(?:\1|\Z)|^[^\w\n]{0,20}?(~{3,}+).*?(?:^[^\w\n]{0,20}?\2|\Z)", re.DOTALL | re.MULTILINE
)
_QUOTED = re.compile(
    r"(?:^|[\r\v\f\x85\u2028\u2029])(?:[^\S\n]|[\u200b-\u200f\ufeff]){0,20}"
    r"(?:(?:[-*+•]|\d{1,3}[.)])[^\S\n]{1,5})?[>＞][^\n]*",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class TrustPolicy:
    """The roles that facts are taken from; facts of the `trusted` ones are active at once."""

    roles: frozenset[str]
    trusted: frozenset[str]

    @classmethod
    def of(cls, settings: Settings) -> TrustPolicy:
        roles = frozenset(settings.fact_roles)
        return cls(roles, roles & frozenset(settings.trusted_roles))

    def extend_recipe(self, recipe: str) -> str:
        if self.roles != {Role.USER}:
            recipe = f"{recipe} from {','.join(sorted(self.roles)) or 'nobody'}"
        if waiting := self.roles - self.trusted:
            recipe = f"{recipe} doubting {','.join(sorted(waiting))}"
        return recipe

    def trust_level(self, message: Message, start: int, stop: int) -> int:
        if message.meta.get(TRUST, TRUSTED) != TRUSTED or is_pasted(message, start, stop):
            return UNTRUSTED
        return TRUST_LEVELS[Role(message.role)]

    def is_trusted(self, message: Message, level: int) -> bool:
        return level > UNTRUSTED and message.role in self.trusted


def is_pasted(message: Message, start: int, stop: int) -> bool:
    return any(begin < stop and start < end for begin, end in pasted(message.text or ""))


def pasted(text: str) -> list[tuple[int, int]]:
    """Return the stretches of a text that were pasted into it, or quoted line by line."""
    if not any(mark in text for mark in ("```", "~~~", ">", "＞")):
        return []
    return [match.span() for pattern in (_FENCED, _QUOTED) for match in pattern.finditer(text)]


class Successor(NamedTuple):
    begins_at: datetime
    id: UUID


@dataclass(frozen=True, slots=True)
class FactDraft:
    """A fact that is not stored yet: an extractor read it in a message, or a person enters it.

    An extractor sets `fact` (without an id) and the `slot` it fills; `start` and `stop`, the characters that say it;
    `may_change`, whether it may change known facts (false among friends); the known facts it `ends`; `alias`, another
    name of its subject; `said`, the subject's sentences that a chat model quotes.

    `bind_to_message` sets the id; the state "quarantined" if the message is not trusted; `said_by_subject`, true also
    of the speaker's own kin, pets and things; `learned_at`, after which changes by hand win; one span. A fact entered
    by a person has no `learned_at` and any number of spans. Comparing it with known facts sets `ends`, and `successor`,
    the first later fact that makes it outdated.
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
        """The attribute whose known values it is compared with, even if their words differ."""
        return self.fact.attribute if self.slot is not None or self.fact.attribute in SINGLE else None

    def plans_again(self, known: KnownFact) -> bool:
        """Whether this says a plan that a person ended, since then, and after its end."""
        ended, decided = known.fact.valid_to, known.by_hand_at
        is_later = decided is not None and self.learned_at is not None and decided < self.learned_at
        return known.by_hand == "edited" and is_later and ended is not None and ended <= self.fact.occurred_at

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
    """Return the draft of a fact; `columns` are any of `valid_from`, `valid_to`, `attribute` and `value`.

    `text` is a sentence, or the speaker's words after the name, and names the `subject`. `confidence` is from 0 to 1;
    `language` is ISO 639-1, or "und" if it is unknown.
    """
    values: dict[str, Any] = dict.fromkeys(("valid_from", "valid_to", "attribute", "value")) | columns
    if slot is not None:
        values |= {"attribute": slot.attribute, "value": slot.value}
    values |= {"kind": kind_of(type), "subject": subject, "confidence": confidence, "language": language}
    return FactDraft(FactColumns.model_construct(text=text, type=type, state="active", **values), slot, start, stop)


@dataclass(frozen=True, slots=True)
class FactBatch:
    """Messages up to `to_seq`, of which the first `already_read` only help to understand the others.

    `known` are the facts that a chat model is shown.
    """

    to_seq: int
    messages: list[Message]
    already_read: int
    guidelines: Guidelines = NO_GUIDELINES
    known: Sequence[KnownFact] = ()


@dataclass(frozen=True, slots=True)
class ExtractedBatch(DerivedBatch):
    """The facts of a batch. `invalid` counts a model's unusable answers, `refused` its facts that are not believed."""

    facts: list[FactDraft]
    invalid: int = 0
    refused: int = 0


def without_secrets(extracted: ExtractedBatch, messages: Sequence[Message]) -> ExtractedBatch:
    """Return the batch without facts that contain a secret (a password, a key), in plain or masked."""
    find, texts = load_detectors().find, {each.id: each.text or "" for each in messages}

    def tells_secret(new_fact: FactDraft) -> bool:
        said = (texts.get(span.message_id, "") for span in new_fact.spans)
        secrets = {text[secret.start : secret.stop] for text in said for secret in find(text)}
        fact = new_fact.fact
        told = "\n".join(filter(None, (fact.text, fact.subject, fact.attribute, fact.value)))
        return bool(find(told)) or any(secret in told for secret in secrets)

    return replace(extracted, facts=[new_fact for new_fact in extracted.facts if not tells_secret(new_fact)])


def bind_to_message(
    draft: FactDraft, message: Message, vector: Vectors | None, recipe: str, trust: TrustPolicy
) -> FactDraft:
    """Return the draft with the id, the state and the source that it has as a fact of this message."""
    level = trust.trust_level(message, draft.start, draft.stop)
    speaker = message.name or UNNAMED_SPEAKERS[Role(message.role)]
    subject, owner = draft.fact.subject.casefold(), speaker.casefold()
    bound = draft.with_columns(
        user_id=message.user_id,
        id=ids.fact_id(message.user_id, draft.fact.subject, draft.fact.text),
        state="active" if trust.is_trusted(message, level) else QUARANTINED,
        recipe=recipe,
        occurred_at=message.occurred_at,
    )
    return replace(
        bound,
        said_by_subject=subject == owner or subject.startswith(f"{owner}'s "),
        learned_at=message.recorded_at,
        speaker=speaker,
        conversation_id=message.conversation_id,
        spans=(FactSpan(message.id, draft.start, draft.stop, level),),
        vector=vector,
    )
