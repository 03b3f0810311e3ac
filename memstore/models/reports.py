"""What derivers and chat models leave behind."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import DOUBLE_PRECISION, BigInteger, SmallInteger, Text
from sqlmodel import Field, SQLModel

from memstore.models.rows import Json, Time, column


class DeadLetter(SQLModel):
    """What a model answered about a stretch and nobody could use; messages are not lost, this is beside them."""

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


class Drift(SQLModel):
    """How far a counter was from what a model's server told of its prompts, over all calls that were observed.

    `predicted` and `observed` are sums of tokens. The largest miss of one call is in tokens, whichever of the two was
    more, and as a share of what the server told.
    """

    user_id: UUID = Field(primary_key=True)
    model: str = Field(sa_type=Text, primary_key=True)
    counter: str = Field(sa_type=Text, primary_key=True)
    calls: int = column(BigInteger, default="0")
    predicted: int = column(BigInteger, default="0")
    observed: int = column(BigInteger, default="0")
    largest_miss: int = column(BigInteger, default="0")
    largest_share: float = column(DOUBLE_PRECISION, default="0")
    last_seen: datetime = column(Time, default="now()")


class Usage(NamedTuple):
    """What calls of a model cost."""

    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class DeriveReport:
    """What a run of `derive` made; `redone` conversations were made anew, and `vectors` of units that had none.

    `quarantined` are facts that wait until somebody confirms them.

    `letters` are answers of a chat model that could not be used; rules did what they were for. `failed` names the
    conversations that stayed as they were, and why; `waiting` the derivers whose chat model is away, or may do no more
    today: what is pending waits.
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
class Backfill:
    """History that is derived under a plan: `state` is "running", "paused", "cancelled" or "done".

    `messages` counts each deriver's. `reason` says why it is paused: "by hand", or a cap of "tokens" or "seconds".
    `worked_seconds` are those until it was paused last.
    """

    id: UUID
    state: str
    reason: str | None
    only_user: UUID | None
    derivers: list[str]
    messages: int
    max_tokens: int | None
    max_seconds: float | None
    spent_tokens: int
    taken_tokens: int
    worked_seconds: float
    plan: Json
    created_at: datetime
    resumed_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class Job:
    """A job; `error` has the types of what went wrong in its conversation, by deriver, and never what was said."""

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
    """How many jobs there are, and workers; of those `waiting` so many of backfills, and so many for `later`."""

    waiting: int = 0
    backfilling: int = 0
    later: int = 0
    running: int = 0
    failed: int = 0
    workers: int = 0


@dataclass(frozen=True, slots=True)
class BackfillStatus:
    """How far a backfill is. `left` and `done` are messages, each deriver's counted; `failing` conversations.

    `seconds` are those that it has worked, `rate` is messages a second since it began, and `seconds_left` what that
    rate says, None where nothing is done yet.
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
    """What is pending for a deriver: conversations, messages, their tokens, and an estimate of its chat model's calls.

    `answers` says how the tokens of calls are known: "assumed", or "known" from the model's calls so far; None without
    calls. `call_seconds` is how long a call took so far.
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
    """What a backfill costs, deriver by deriver.

    `seconds` is how long it takes at the rate of this store's earlier backfills by the same derivers; None before the
    first one.
    """

    derivers: dict[str, DeriverPlan]
    seconds: float | None = None

    @property
    def model_tokens(self) -> int:
        """The tokens of all calls, prompts and answers."""
        return sum(one.prompt_tokens + one.answer_tokens for one in self.derivers.values())

    @property
    def model_seconds(self) -> float | None:
        """How long all calls take one after the other; None if no call was timed yet."""
        calls = [one for one in self.derivers.values() if one.calls]
        seconds = [one.calls * one.call_seconds for one in calls if one.call_seconds is not None]
        return sum(seconds) if seconds and len(seconds) == len(calls) else None


@dataclass(frozen=True, slots=True)
class Wrong:
    """Something that is not as it should be, of a user (None: of nobody's), and how many rows that concerns."""

    user: str | None
    problem: str
    rows: int


@dataclass(frozen=True, slots=True)
class Exported:
    """How much an export holds."""

    users: int
    conversations: int
    messages: int
    summaries: int
    facts: int
    documents: int = 0


@dataclass(frozen=True, slots=True)
class EmbeddingStatus:
    """What an embedder is to some users, `state`: it is serving, building (its vectors are being made) or retired.

    Of so many users: their units, the vectors of it, and how many are missing.
    """

    name: str
    dimensions: int
    state: str
    users: int
    units: int
    vectors: int
    missing: int


@dataclass(frozen=True, slots=True)
class Moved:
    """Users to whom another embedder came or went, and vectors that were made or removed for it."""

    users: int
    vectors: int
