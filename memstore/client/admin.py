"""What operators do: tokens of the servers, changes of the embedding model, and backfills.

A backfill is a long history that workers derive under a plan, with caps, and that can be paused. Pending messages are
assigned to it in `derivations`, so pausing it changes one row and undoes nothing. New messages in conversations that
are not assigned to it are derived first. Workers keep within its cap (`derive.worker`).
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from math import ceil
from uuid import UUID

from memstore import ids
from memstore._compat import to_thread
from memstore.client.runtime import Runtime
from memstore.derive import embedding_migration
from memstore.derive.dependencies import Dependencies
from memstore.errors import InvalidInput, NotFound
from memstore.ingest.validation import check_choice, check_names
from memstore.models import (
    ApiToken,
    Backfill,
    BackfillPlan,
    BackfillStatus,
    DerivationProblem,
    DeriverPlan,
    EmbeddingStatus,
    MigrationReport,
)
from memstore.providers import Embedder, TokenCounter, load_embedder, load_stored_embedder
from memstore.settings import Settings
from memstore.store import api_tokens, backfills, llm_usage, messages, queue, watermarks
from memstore.store.api_tokens import Holder
from memstore.store.database import Transaction
from memstore.store.llm_usage import MeanCost
from memstore.store.watermarks import DERIVERS, PendingMessages

TOKEN_PREFIX = "mst_"  # nosec B105  # by which people, and scanners of repositories, know one
TOKEN_BYTES = 32
SECONDS_A_DAY = 86_400.0
MOST_DAYS = 36_500
ChunkProgress = Callable[[int, int], None]
ANSWER_TOKENS = {"summaries": 120.0, "facts": 600.0}  # of an answer, until calls of the model were measured
LINE_TOKENS = 25  # of a prompt for each message beside its text: number, day, speaker
PROMPTS = {"summaries": "summary", "facts": "facts"}


class AsyncTokens:
    """`store.tokens`: the tokens that let callers of a server in. Only their SHA-256 is stored."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._database = runtime.database

    async def create(self, *, user: str | None = None, name: str | None = None, days: float | None = None) -> ApiToken:
        """Make a token for the memory of `user`, or of everybody (the operator's); only now it has its `secret`.

        `name` says what it is for. It expires after `days`, if they are given.
        """
        check_names(user=user, token=name)
        if days is not None and not 0 < days <= MOST_DAYS:
            raise InvalidInput(f"days={days!r}: give a number of days up to {MOST_DAYS:,}, or none.")
        self._runtime.redactor.reject_secret_names(user=user)
        secret = TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
        async with self._database.admin_transaction() as scope:
            token = await api_tokens.add(
                scope,
                ids.uuid7(),
                hash_token(secret),
                owner=None if user is None else ids.user_id(user),
                user_name=user,
                name=self._runtime.redactor.redact(name),
                seconds=None if days is None else days * SECONDS_A_DAY,
            )
        return replace(token, secret=secret)

    async def all(self) -> list[ApiToken]:
        """Return every token without its secret, the latest first, revoked and expired ones too."""
        async with self._database.admin_transaction() as scope:
            return await api_tokens.tokens(scope)

    async def revoke(self, token: ApiToken | UUID) -> ApiToken:
        """Revoke a token. Raises `NotFound` if there is none of this id."""
        id = token.id if isinstance(token, ApiToken) else token
        async with self._database.admin_transaction() as scope:
            revoked = await api_tokens.revoke(scope, id)
        if revoked is None:
            raise NotFound(f"There is no token {id}; memstore token list shows them.")
        return revoked

    async def holder(self, token_hash: bytes) -> Holder | None:
        """Return whom the token of this SHA-256 lets in; None if it is unknown, expired or revoked."""
        async with self._database.admin_transaction() as scope:
            return await api_tokens.holder(scope, token_hash)

    async def exist(self) -> bool:
        """Whether a token was ever made, even if it was revoked since."""
        async with self._database.admin_transaction() as scope:
            return await api_tokens.exist(scope)


def hash_token(secret: str) -> bytes:
    """Return what is stored of a token. It is random and long, so that no slow hash is needed."""
    return sha256(secret.encode()).digest()


class AsyncEmbeddings:
    """`store.embeddings`: changes of the embedding model, while recall goes on.

    Each call may be killed and made again. `progress(done, total)` counts chunks. While another process migrates, all
    but `status` raise `Conflict`.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._database = runtime.database

    async def migrate(self, to: str, *, progress: ChunkProgress | None = None) -> MigrationReport:
        """Move every user to the embedder `to`, such as "sentence-transformers:FOLDER".

        Its vectors are made beside the old ones, which serve until a user has all of them; then one transaction
        switches the user. Open stores go on as they are; the setting `embedder` says what new users get. To move back
        is to migrate to the former embedder: only what came since is embedded, until `clean` removes the rest. Raises
        `ProviderMissing` and the like before anything is done, if the embedder cannot be had.
        """
        check_names(to=to)
        embedder = await to_thread(_load_target, to, self._runtime.settings)
        return await embedding_migration.migrate(
            self._database, self._resources(embedder), embedder, progress or _ignore
        )

    async def status(self) -> list[EmbeddingStatus]:
        """Return the embedders that serve, are being built or are retired, for how many users, and what is missing."""
        return await embedding_migration.status(self._database)

    async def clean(self) -> MigrationReport:
        """Remove the vectors of retired embedders: a migration back would make them anew.

        Raises `Conflict` while a migration is not finished.
        """
        return await embedding_migration.clean(self._database)

    def _resources(self, embedder: Embedder | None) -> Dependencies:
        # Neither the store's own embedder nor a chat model need be loaded to make vectors.
        runtime = self._runtime
        return Dependencies(runtime.counter, embedder, runtime.settings, exactly=runtime.embedder_by_name)


def _load_target(name: str, settings: Settings) -> Embedder:
    embedder = load_embedder(name, settings)
    if embedder is None:
        raise InvalidInput('"none" makes no vectors: name the embedder that is to serve, as kind:model.')
    # Other processes must find it by the name that is stored with its vectors.
    return embedder if name == embedder.name else load_stored_embedder(embedder.name, embedder.dimensions, settings)


def _ignore(done: int, total: int) -> None:
    pass


class AsyncBackfills:
    """`store.backfills`: long histories that workers derive under a plan. Without an id the latest one is meant."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._database = runtime.database

    async def plan(self, *, user: str | None = None, only: Sequence[str] = ()) -> BackfillPlan:
        """Return what is pending of every user or of one, and about what it costs.

        `only` names some of "chunks", "summaries" and "facts". Nothing is written, no chat model is asked. Rates are
        those that this store has measured so far. Raises `ModelUnavailable` if the server of a chat model is away.
        """
        settings = self._runtime.settings
        gap, full = settings.session_gap_hours * 3600.0, settings.segment_tokens
        totals = {name: PendingMessages(name, 0, 0, 0, 0) for name in _derivers(only)}
        async for owner, _ in self._users(user):
            async with self._database.user_transaction(owner) as scope:
                for pending in await watermarks.pending_messages(scope, gap_seconds=gap, segment_tokens=full):
                    if pending.deriver in totals:
                        totals[pending.deriver] = totals[pending.deriver].plus(pending)
        async with self._database.admin_transaction() as scope:
            costs = await llm_usage.mean_costs(scope)
            rate = await backfills.measured_rate(scope, list(totals))
        plans = {
            name: DeriverPlan(pending.conversations, pending.messages, pending.tokens, 0, 0, 0)
            for name, pending in totals.items()
        }
        total = sum(pending.messages for pending in totals.values())
        if total:
            for name, model in zip(("summaries", "facts"), self._runtime.chat_models, strict=True):
                if model is not None and name in plans:
                    cost = costs.get(model.name)
                    plans[name] = _add_calls(plans[name], totals[name], cost, self._runtime.counter)
        return BackfillPlan(plans, 0.0 if not total else total / rate if rate else None)

    async def _users(self, only: str | None) -> AsyncIterator[tuple[UUID, str]]:
        check_names(user=only)
        if only is not None:
            yield ids.user_id(only), only
            return
        async for owner in messages.everybody(self._database):
            yield owner

    async def begin(
        self,
        *,
        user: str | None = None,
        only: Sequence[str] = (),
        max_tokens: int | None = None,
    ) -> UUID:
        """Make what is pending a backfill and return its id; workers take it up.

        It is paused before calls of chat models take more than `max_tokens`. What another open backfill has stays with
        that one. If the process is killed meanwhile, the backfill is left paused with a part of what is pending.
        """
        check_names(user=user)
        derivers, backfill = _derivers(only), ids.uuid7()
        await to_thread(queue.prepare_queue, self._database.url)
        async with self._database.admin_transaction() as scope:
            only_user = None if user is None else ids.user_id(user)
            await backfills.add(scope, backfill, only_user=only_user, derivers=derivers, max_tokens=max_tokens)
            others = [id for id, state in (await backfills.states(scope)).items() if state != backfills.CANCELLED]
        async for owner, _ in self._users(user):
            async with self._database.user_transaction(owner) as own:
                await watermarks.assign(own, backfill, derivers, unlike=others)
        async with self._database.admin_transaction() as scope:
            backlog = await watermarks.backfill_backlog(scope, backfill)
            await backfills.set_messages(scope, backfill, sum(entry.messages for entry in backlog))
            await backfills.resume(scope, backfill)
        return backfill

    async def status(self, backfill: UUID | None = None) -> BackfillStatus:
        """Return its progress. Raises `NotFound` if there is none."""
        async with self._database.admin_transaction() as scope:
            row = await _find(scope, backfill)
            backlog = await watermarks.backfill_backlog(scope, row.id)
        left = {entry.deriver: entry.messages for entry in backlog}
        seconds = row.worked_seconds
        if row.state == backfills.RUNNING:
            seconds += (datetime.now(UTC) - row.resumed_at).total_seconds()
        done = max(0, row.messages - sum(left.values()))
        rate = done / seconds if seconds > 0 else 0.0
        seconds_left = sum(left.values()) / rate if rate else None
        failing = max((entry.failing for entry in backlog), default=0)
        return BackfillStatus(row, left, failing, done, seconds, rate, seconds_left)

    async def pause(self, backfill: UUID | None = None) -> BackfillStatus:
        """Pause it; steps under way are finished. Raises `InvalidInput` where it does not run."""
        return await self._halt(backfill, backfills.PAUSED)

    async def cancel(self, backfill: UUID | None = None) -> BackfillStatus:
        """End it. What it has derived stays; workers leave the rest alone until it is asked for."""
        return await self._halt(backfill, backfills.CANCELLED)

    async def resume(self, backfill: UUID | None = None, *, max_tokens: int | None = None) -> BackfillStatus:
        """Resume a paused one, with another cap if given. Raises `InvalidInput` if it is not paused."""
        async with self._database.admin_transaction() as scope:
            row = await _find(scope, backfill)
            if not await backfills.resume(scope, row.id, max_tokens=max_tokens):
                raise InvalidInput(f"The backfill {row.id} is not paused but {row.state}.")
        return await self.status(row.id)

    async def verify(self, *, user: str | None = None) -> list[DerivationProblem]:
        """Return what is not derived, not whole or wrongly counted, of every user or of one; [] if all is well."""
        problems = []
        async for owner, name in self._users(user):
            async with self._database.user_transaction(owner) as scope:
                found = await watermarks.find_problems(scope)
            problems += [DerivationProblem(name, problem, rows) for problem, rows in found.items()]
        has_queue = (await queue.state(self._database)).made
        if has_queue and (failed := (await queue.counts(self._database)).failed):
            problems.append(DerivationProblem(None, "jobs were given up: memstore jobs --failed", failed))
        return problems

    async def _halt(self, backfill: UUID | None, state: str) -> BackfillStatus:
        async with self._database.admin_transaction() as scope:
            row = await _find(scope, backfill)
            if not await backfills.halt(scope, row.id, state, backfills.BY_HAND):
                raise InvalidInput(f"The backfill {row.id} is {row.state}: there is nothing to be {state}.")
        return await self.status(backfill)


async def _find(scope: Transaction, backfill: UUID | None) -> Backfill:
    rows = await backfills.backfills(scope, backfill, limit=1)
    if not rows:
        raise NotFound(f"There is no backfill {backfill}." if backfill else "There is no backfill yet.")
    return rows[0]


def _derivers(only: Sequence[str]) -> Sequence[str]:
    for name in only:
        check_choice("only", name, DERIVERS)
    return [name for name in DERIVERS if name in only] or DERIVERS


def _add_calls(
    plan: DeriverPlan, pending: PendingMessages, cost: MeanCost | None, counter: TokenCounter
) -> DeriverPlan:
    from memstore.derive.llm import load_prompt

    calls = _count_calls(pending)
    if not calls:
        return plan
    if cost is not None:
        prompts, answers = calls * cost.prompt_tokens, cost.answer_tokens
    else:
        overhead = calls * counter.count(load_prompt(PROMPTS[pending.deriver]).text) + plan.messages * LINE_TOKENS
        prompts, answers = plan.tokens + overhead, ANSWER_TOKENS[pending.deriver]
    tokens = {"prompt_tokens": round(prompts), "answer_tokens": round(calls * answers)}
    return replace(plan, calls=calls, **tokens, assumed=cost is None)


def _count_calls(pending: PendingMessages) -> int:
    """Return about how many calls a deriver makes: a segment is about one."""
    from memstore.derive.facts.llm_extractor import MOST_MESSAGES
    from memstore.derive.summaries.extractive import GROUP

    if pending.deriver == "facts":
        return max(pending.segments, ceil(pending.messages / MOST_MESSAGES))
    closed = pending.segments - pending.conversations  # the last segment of a conversation waits for more
    return closed + closed // (GROUP - 1)  # and every four summaries are summarized again
