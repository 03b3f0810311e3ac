"""What operations report: derivation, jobs, backfills, exports, embedding models, erasures, counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from pydantic import ValidationError
from sqlalchemy import BigInteger, SmallInteger, Text
from sqlmodel import Field, SQLModel

from memstore.models.contexts import adapter, as_json
from memstore.models.messages import Json, Time, column


class DeadLetter(SQLModel):
    """An answer of a chat model that could not be used. The messages it is about are not lost."""

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


class Usage(NamedTuple):
    """What calls of a model cost."""

    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class DeriveReport:
    """What `derive` made.

    `redone` are conversations that were made anew, `vectors` those of units that had none, `quarantined` facts that
    wait for `confirm_fact`. `letters` are unusable answers of a chat model, for which the rules stepped in. `failed`
    names the conversations that could not be derived, and why; `waiting` the derivers whose chat model is unavailable
    or has used up its tokens: their messages stay pending.
    """

    messages: int = 0
    units: int = 0
    summaries: int = 0
    facts: int = 0
    redone: int = 0
    letters: int = 0
    vectors: int = 0
    quarantined: int = 0
    failed: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


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

    `messages` counts each deriver's. `reason` says why it is paused: "by hand", or a cap of "tokens".
    `worked_seconds` are those until it was last paused.
    """

    id: UUID
    state: str
    reason: str | None
    only_user: UUID | None
    derivers: list[str]
    messages: int
    max_tokens: int | None
    spent_tokens: int
    taken_tokens: int
    worked_seconds: float
    plan: Json
    created_at: datetime
    resumed_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class BackfillStatus:
    """The progress of a backfill. `left` and `done` count each deriver's messages, `failing` conversations.

    `rate` is in messages a second; `seconds_left` follows from it, and is None before the first message.
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

    `answers` says how the tokens of answers are known: "assumed", or "known" from the model's calls so far; None
    without calls. `call_seconds` is the time of a call so far.
    """

    conversations: int
    messages: int
    tokens: int
    calls: int
    prompt_tokens: int
    answer_tokens: int
    answers: str | None = None
    call_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class BackfillPlan:
    """What a backfill costs, by deriver. `seconds` follows from this store's earlier backfills; None without any."""

    derivers: dict[str, DeriverPlan]
    seconds: float | None = None

    @property
    def model_tokens(self) -> int:
        """The tokens of all calls, prompts and answers."""
        return sum(plan.prompt_tokens + plan.answer_tokens for plan in self.derivers.values())

    @property
    def model_seconds(self) -> float | None:
        """The time of all calls, one after the other; None if no call was timed yet."""
        calls = [plan for plan in self.derivers.values() if plan.calls]
        seconds = [plan.calls * plan.call_seconds for plan in calls if plan.call_seconds is not None]
        return sum(seconds) if seconds and len(seconds) == len(calls) else None


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
    """An embedding model of some users: `state` is serving, building or retired; `missing` units have no vector."""

    name: str
    dimensions: int
    state: str
    users: int
    units: int
    vectors: int
    missing: int


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """Users whose embedding model changed, and vectors that were made or removed for it."""

    users: int
    vectors: int


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


@dataclass(frozen=True, slots=True)
class LargeUser:
    """A user with more units than a process holds. `indexed` says whether recall over them has its indexes."""

    id: UUID
    name: str
    units: int
    indexed: bool


class ErasureScope(StrEnum):
    """What was erased. `retention` is of messages older than they are kept."""

    USER = "user"
    CONVERSATION = "conversation"
    MESSAGE = "message"
    FACT = "fact"
    RETENTION = "retention"


@dataclass(frozen=True, slots=True)
class ScanResult:
    """The search of every table for the erased `ids`: `found` counts the rows that still have one, by table."""

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
    many conversations each deriver looks at again, since something rested on erased and other messages. `id` is None
    for a `dry_run`, and where there was nothing to erase.
    """

    scope: ErasureScope
    user_id: UUID
    erased: tuple[UUID, ...] = ()
    conversation_id: UUID | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    tombstones: int = 0
    again: Mapping[str, int] = field(default_factory=dict)
    scan: ScanResult = field(default_factory=ScanResult)
    hints: tuple[str, ...] = ()
    id: UUID | None = None
    recorded_at: datetime | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to remove."""
        return not any(self.counts.values())

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
        if not certificate.erased:  # every erasure names one id: of none, all would be found to be gone
            raise ValueError("it names nothing that was erased")
        return certificate


@dataclass(frozen=True, slots=True)
class LeftoverReport:
    """Rows in which something that was erased still stands, by table."""

    looked_for: int
    tables: int
    found: Mapping[str, int] = field(default_factory=dict)
    hints: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return not self.found

    def as_dict(self) -> Json:
        """Return the report as JSON."""
        return as_json(self, exclude_defaults=False)
