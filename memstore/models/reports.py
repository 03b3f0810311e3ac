"""What operations report: derivation, jobs, backfills, exports, embedding models, erasures, events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from pydantic import ValidationError
from sqlalchemy import BigInteger, SmallInteger, Text
from sqlmodel import Field, SQLModel

from memstore.ids import uuid7
from memstore.models.contexts import adapter, as_json
from memstore.models.messages import Json, Time, column


class UserSize(NamedTuple):
    """How many conversations a user has, and how many messages they have got, with those erased since."""

    conversations: int = 0
    messages: int = 0


class InvalidResponse(SQLModel):
    """An answer of a chat model that could not be used, or what of it was not believed. The messages are not lost."""

    user_id: UUID = Field(primary_key=True)
    id: UUID = Field(primary_key=True)
    conversation_id: UUID
    deriver: str = column(Text)
    from_seq: int = column(BigInteger)
    to_seq: int = column(BigInteger)
    recipe: str = column(Text)
    error: str = column(Text)
    payload: str = column(Text)
    attempts: int = column(SmallInteger, default="1")
    recorded_at: datetime = column(Time, default="now()")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a deriver's calls of a chat model cost; `cost` is money, of the calls that had a price in the settings."""

    deriver: str
    model: str
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    cost: float | None = None

    @property
    def tokens_per_second(self) -> float:
        """The tokens of answers to a second of waiting for them."""
        return self.completion_tokens / self.seconds if self.seconds else 0.0

    def plus(self, other: Usage) -> Usage:
        """Return the sum of this and what further calls by the same deriver and model cost."""
        costs = [each.cost for each in (self, other) if each.cost is not None]
        names = ("calls", "prompt_tokens", "completion_tokens", "seconds")
        sums: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in names}
        return replace(other, **sums, cost=sum(costs) if costs else None)


@dataclass(frozen=True, slots=True)
class CallProgress:
    """A call of a chat model begins, or `has_ended`: what such calls of this run cost until now.

    `asked_at` is when the oldest call was begun that waits for its answer, by `time.monotonic()`; None where none does.
    The deriver has `done` of `total` messages; 0 of 0 in a worker, which does not know how many come. `refused` counts
    answers, or parts of them, that were of no use or not believed. `seconds_left` follows from how fast this run was
    until now; it is None before the first messages are done.
    """

    usage: Usage
    has_ended: bool
    asked_at: float | None = None
    done: int = 0
    total: int = 0
    refused: int = 0
    seconds_left: float | None = None


@dataclass(frozen=True, slots=True)
class DeriveReport:
    """What `derive` made.

    `redone` are conversations that were made anew, `quarantined` facts that wait for `confirm_fact`.
    `invalid_responses` are unusable answers of a chat model, which `redo` asks again, and `refused` what of its answers
    was not believed; `user.invalid_responses()` has both. `failed` names conversations that could not be derived, and
    why, and messages that the embedder refused: their words alone find them. `waiting` names the derivers whose chat
    model is unavailable or has used up its tokens: their messages stay pending. `usage` is what calls of chat models
    cost, by deriver.
    """

    messages: int = 0
    chunks: int = 0
    summaries: int = 0
    facts: int = 0
    redone: int = 0
    invalid_responses: int = 0
    refused: int = 0
    quarantined: int = 0
    failed: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    usage: tuple[Usage, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """A job of the queue. `error` has the types of errors by deriver, and never a message's text."""

    id: int
    user_id: UUID
    conversation_id: UUID
    status: str
    priority: int
    attempts: int
    scheduled_at: datetime | None
    error: str | None


@dataclass(frozen=True, slots=True)
class JobCounts:
    """How many jobs and workers there are. Of those `waiting`, some are of backfills, some are due `later`."""

    waiting: int = 0
    backfilling: int = 0
    later: int = 0
    running: int = 0
    failed: int = 0
    workers: int = 0


@dataclass(frozen=True, slots=True)
class Backfill:
    """A history that workers derive under a plan. `state` is "running", "paused", "cancelled" or "done".

    `messages` are those that each deriver was to derive. `reason` says why it is paused: "by hand", or at its cap of
    "tokens". `worked_seconds` are those until it was last paused. `spent_tokens` are of prompts and answers together.
    """

    id: UUID
    state: str
    reason: str | None
    only_user: UUID | None
    derivers: list[str]
    messages: dict[str, int]
    max_tokens: int | None
    calls: int
    call_seconds: float
    spent_tokens: int
    answer_tokens: int
    taken_tokens: int
    worked_seconds: float
    created_at: datetime
    resumed_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class BackfillStatus:
    """The progress of a backfill. `left` and `done` count each deriver's messages, `failing` conversations.

    `rate` is in messages a second. `seconds_left` follows from that of the slowest deriver, and is None before the
    first message of each.
    """

    backfill: Backfill
    left: dict[str, int]
    failing: int
    done: int
    seconds: float
    rate: float
    seconds_left: float | None


@dataclass(frozen=True, slots=True)
class DeriverPlan:
    """What is pending for one deriver, with an estimate of its chat model's calls and tokens.

    The tokens follow from the averages of the model's calls so far; before the first one they are assumed.
    """

    conversations: int
    messages: int
    tokens: int
    calls: int
    prompt_tokens: int
    answer_tokens: int


@dataclass(frozen=True, slots=True)
class BackfillPlan:
    """What is pending, and the tokens that it will take, by deriver."""

    derivers: dict[str, DeriverPlan]

    @property
    def model_tokens(self) -> int:
        """The tokens of all calls, prompts and answers."""
        return sum(plan.prompt_tokens + plan.answer_tokens for plan in self.derivers.values())


@dataclass(frozen=True, slots=True)
class DerivationProblem:
    """Something that is not derived as it should be, of a user (None: of nobody's), and how many rows it concerns."""

    user: str | None
    problem: str
    rows: int


@dataclass(frozen=True, slots=True)
class ExportReport:
    """How much an export holds."""

    users: int
    conversations: int
    messages: int
    summaries: int
    facts: int
    documents: int = 0


@dataclass(frozen=True, slots=True)
class EmbeddingStatus:
    """An embedding model of the store: `state` is serving, building or retired.

    `users` have vectors of it; of the store's `chunks` as many as are `missing` have none, of a retired one 0.
    """

    name: str
    dimensions: int
    state: str
    users: int
    chunks: int
    vectors: int
    missing: int


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """How many vectors of an embedding model were made or removed, and of how many users.

    `refused` names the items whose text the embedder refuses. They have no vector, so they are found by words alone.
    """

    users: int
    vectors: int
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A server's token: for the memory of one `user`, or of all users as the operator (None).

    `secret` is the token itself. It is there once, when the token is made, and never stored.
    """

    id: UUID
    user: str | None
    name: str | None
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    secret: str | None = field(default=None, repr=False)


class Access(StrEnum):
    """What a member of a space may do there: an admin may also grant, revoke and erase."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Grant:
    """The access of a member, a user by name, to a space."""

    space: str
    member: str
    access: str
    granted_at: datetime


class WebhookEvent(StrEnum):
    """What a webhook may be sent. docs/how-to/webhooks.md has the keys of their data."""

    FACT_CREATED = "fact.created"
    FACT_SUPERSEDED = "fact.superseded"
    ERASURE_DONE = "erasure.done"


@dataclass(frozen=True, slots=True)
class Webhook:
    """A URL that is sent events. It is disabled by an answer of 410; `last_error` is why a delivery failed last.

    `secret` signs them. It is there once, when the webhook is added.
    """

    id: UUID
    url: str
    events: list[str]
    created_at: datetime
    disabled_at: datetime | None = None
    failed_at: datetime | None = None
    last_error: str | None = None
    secret: str | None = field(default=None, repr=False)


class ErasureScope(StrEnum):
    """What was erased. `retention` is of messages older than they are kept."""

    USER = "user"
    CONVERSATION = "conversation"
    MESSAGE = "message"
    FACT = "fact"
    RETENTION = "retention"


@dataclass(frozen=True, slots=True)
class ScanResult:
    """The search of tables for so many erased `ids`: `found` counts the rows that still have one, by table."""

    tables: int = 0
    ids: int = 0
    found: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return not self.found


@dataclass(frozen=True, slots=True)
class Certificate:
    """What an erasure removed: ids and numbers, never a text.

    `erased` are the ids that were asked for: of the user, the conversation, the messages or the facts. `counts` are the
    removed rows by table; `tombstones` how many keyed hashes keep messages and facts from coming back. `again` says how
    many conversations each deriver looks at again, since something rested on erased and other messages. `spaces` are
    the certificates of what a user said in spaces, by the space's name. `id` is None for a `dry_run`, and where there
    was nothing to erase.
    """

    scope: ErasureScope
    user_id: UUID
    erased: tuple[UUID, ...] = ()
    conversation_id: UUID | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    tombstones: int = 0
    again: Mapping[str, int] = field(default_factory=dict)
    scan: ScanResult = field(default_factory=ScanResult)
    spaces: Mapping[str, Certificate] = field(default_factory=dict)
    hints: tuple[str, ...] = ()
    id: UUID | None = None
    recorded_at: datetime | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to remove."""
        return not any(self.counts.values()) and all(each.is_empty for each in self.spaces.values())

    def as_dict(self) -> Json:
        """Return the certificate as JSON, which `Certificate.from_dict` reads back."""
        return as_json(self, exclude_defaults=False)

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> Certificate:
        """Return the certificate that `as_dict` wrote. Raises `ValueError` for anything else, naming what is wrong."""
        try:
            certificate: Certificate = adapter(Certificate).validate_python(body)
        except ValidationError as error:
            wrong = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
            raise ValueError("; ".join(wrong)) from None
        return certificate


class EventType(StrEnum):
    """The kinds of events. docs/reference/events.md has the keys of their bodies.

    Events are stored in the transaction in which they happened.
    """

    MESSAGE_ADDED = "message_added"
    SUMMARIZATION_COMPLETED = "summarization_completed"
    SUMMARIZATION_FAILED = "summarization_failed"
    FACTS_EXTRACTED = "facts_extracted"
    FACT_SUPERSEDED = "fact_superseded"
    CONTEXT_ASSEMBLED = "context_assembled"
    ERASED = "erased"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a user's memory: ids, numbers and reasons, never a text.

    `cursor` is its place in the outbox.
    """

    user_id: UUID
    type: EventType
    conversation_id: UUID | None = None
    body: dict[str, Any] = field(default_factory=dict)
    id: UUID = field(default_factory=uuid7)
    recorded_at: datetime = field(default_factory=partial(datetime.now, UTC))
    cursor: str | None = None
