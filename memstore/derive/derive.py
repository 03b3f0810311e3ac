"""Runs the derivers over what is pending, here and now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Lock
from typing import Any, Protocol, cast
from uuid import UUID

from memstore._compat import run_all, to_thread
from memstore.derive import indexes, reports
from memstore.derive.embed import Embed
from memstore.derive.facts.deriver import Facts
from memstore.derive.resources import Resources
from memstore.derive.retention import retain
from memstore.derive.steps import (
    UNIVERSAL,
    B,
    Deriver,
    M,
    Progress,
    Run,
    fail,
    keep_cost,
    of_user,
    recipe_of,
    state,
    step,
)
from memstore.derive.summaries.deriver import Summarize
from memstore.derive.vectors import embed_missing
from memstore.errors import EmbedderMismatch, InvalidInput, ModelUnavailable
from memstore.models import QUARANTINED, DeriveReport
from memstore.settings import Settings
from memstore.store import derivations, erasures, events, messages, model_calls, receipts
from memstore.store.database import Database, Transaction
from memstore.store.embedders import OtherServes
from memstore.store.watermarks import LostRace, Outdated, Pending

VECTORS = "vectors"
REDOABLE = {"facts": "facts", "summaries": "summarize", VECTORS: VECTORS}  # what users call it, and the deriver


class Redoable(Deriver[B, M], Protocol):
    """A deriver whose rows can be made anew, a conversation at a time."""

    async def reread(self, scope: Transaction, work: Pending, limit: int, made: Sequence[M]) -> B:
        """Give what `read` gives, as if nothing were stored of this conversation but what is `made`."""

    async def rewrite(self, scope: Transaction, conversation: UUID, made: Sequence[M], recipe: str) -> dict[str, int]:
        """Put what is made by a recipe in the place of all that the conversation had; give how many rows were new."""


@dataclass(frozen=True, slots=True)
class Part:
    """What of everything is to be derived: of one user, one conversation, by some derivers only."""

    user: UUID | None = None
    conversation: UUID | None = None
    derivers: Sequence[str] = derivations.DERIVERS


EVERYTHING = Part()


async def derive(
    database: Database,
    resources: Resources,
    part: Part = EVERYTHING,
    *,
    redo: str | None = None,
    progress: Progress = lambda *_: None,
) -> DeriveReport:
    """Derive what is pending; give what was made and what failed.

    `redo` names a deriver: what it made by another recipe is made anew first, a conversation at a time. With "vectors"
    units that lack one get it.
    """
    if redo == VECTORS and resources.embedder is None:
        raise InvalidInput("There is no embedder to make vectors: set embedder (settings, or MEMSTORE_EMBEDDER).")
    async with database.operator() as scope:
        run = Run(progress, await derivations.backlog(scope, only=part.user))
        resources.allowance.left = await model_calls.left(scope, resources.settings.llm_daily_tokens)
    embed, summarize, facts = derivers_of(resources)
    if summarize.method.asks or facts.method.asks:  # one model, one question at a time
        for deriver in (embed, summarize, facts):
            await _derive_by(database, deriver, part, redo, run)
    else:
        await _concurrently(database, (embed, summarize, facts), part, redo, run)
    if redo == VECTORS:
        await _fill(database, resources, part, run)
    await tend(database, run.users, resources.settings)
    kinds = ("units", "summaries", "facts", "redone", "letters", VECTORS, QUARANTINED)
    counts = {kind: run.made[kind] for kind in kinds}
    return DeriveReport(run.done["embed"], **counts, failed=tuple(run.failed), waiting=tuple(run.waiting))


def derivers_of(resources: Resources) -> tuple[Deriver[Any, Any], ...]:
    """Give the derivers."""
    return Embed(resources), Summarize(resources), Facts(resources)


async def _fill(database: Database, resources: Resources, part: Part, run: Run) -> None:
    """Give a vector to every unit that has none of the present embedder, user by user."""
    async for user, _ in messages.everybody(database):
        if part.user in (None, user):
            await _fill_user(database, resources, user, run)


async def _fill_user(database: Database, resources: Resources, user: UUID, run: Run) -> None:
    async with database.scope(user) as scope:
        counts = await messages.counts(scope)
    total = run.done[VECTORS] + counts["units"] - counts["vectors"]

    def told(units: int) -> None:
        run.done[VECTORS] += units
        run.progress(VECTORS, run.done[VECTORS], total)

    try:
        run.made[VECTORS] += await embed_missing(database, resources, user, told)
    except EmbedderMismatch as error:  # of this user; the others go on
        run.failed.append(f"{VECTORS} of user {user}: {type(error).__name__}: {error}")


async def tend(database: Database, users: Iterable[UUID], settings: Settings) -> None:
    """Let nothing of these users be kept for longer than it is to be, and large ones have their indexes."""
    now = datetime.now(UTC)
    for user in users:
        await retain(database, user, settings)
        async with database.scope(user) as scope:
            await events.trim(scope, now - timedelta(days=settings.event_retention_days))
            await receipts.trim(scope, now - timedelta(days=settings.receipt_retention_days))
        await indexes.tend(database, user)


async def _redo_all(database: Database, deriver: Redoable[B, M], part: Part, run: Run) -> None:
    after: Outdated | None = None
    recipe = await recipe_of(deriver)
    while True:
        async with database.operator() as scope:
            page = await derivations.outdated(scope, deriver.name, recipe, only=part.user, after=after)
        if not page:
            return
        after = page[-1]
        for work in page:
            if run.stop_requested.is_set():
                return
            try:
                await _redo(database, deriver, work, recipe, run)
            except UNIVERSAL:
                raise
            except Exception as error:  # a conversation that cannot be made anew stays as it is, and the others go on
                await fail(database, work, recipe, error, run)


async def _redo(database: Database, deriver: Redoable[B, M], work: Outdated, recipe: str, run: Run) -> None:
    """Make what a conversation has anew, batch by batch, and put it in its place in one transaction."""
    made: list[M] = []
    try:
        at = 0
        async with database.scope(work.user_id, first=state) as scope:
            epoch, known = await state(scope)
        own = cast(Redoable[B, M], await of_user(database, deriver, known))
        while at < work.done_seq:
            rest = Pending(work.user_id, work.conversation_id, work.deriver, at, work.done_seq)
            async with database.scope(work.user_id) as scope:
                batch = await own.reread(scope, rest, own.method.batch, made)
            made += await to_thread(own.think, [batch])
            at = made[-1].to_seq
        async with erasures.unless_erased(database, work.user_id, epoch) as scope:
            counts = await own.rewrite(scope, work.conversation_id, made, recipe)
            scope.events += reports.redone(work, recipe, counts)
            await derivations.redone(scope, work, None if counts.get("letters") else recipe)
    except Exception as error:  # whatever it is goes on, after what the answers cost was kept
        await keep_cost(database, work, made)
        if isinstance(error, OtherServes):
            return await _redo(database, deriver, work, recipe, run)
        if isinstance(error, LostRace):
            return None  # somebody else derives this conversation, or some of it was erased
        raise
    run.made.update(counts)
    run.made["redone"] += 1
    return None


async def _concurrently(
    database: Database, derivers: Sequence[Deriver[Any, Any]], part: Part, redo: str | None, run: Run
) -> None:
    """Run derivers at the same time: rules read while vectors are computed and rows are written."""
    lock = Lock()

    def progress(name: str, done: int, total: int) -> None:
        with lock:
            run.progress(name, done, total)

    runs = [Run(progress, run.totals, stop_requested=run.stop_requested) for _ in derivers]
    calls = [
        partial(_derive_by, database, deriver, part, redo, own) for deriver, own in zip(derivers, runs, strict=True)
    ]
    try:
        await run_all(calls, run.stop_requested.set)
    finally:
        for own in runs:
            run.add(own)


async def _derive_by(database: Database, deriver: Deriver[Any, Any], part: Part, redo: str | None, run: Run) -> None:
    """Run a deriver over what is pending; what waits for a model that is away is noted."""
    try:
        if deriver.name == redo:
            await _redo_all(database, cast(Redoable[Any, Any], deriver), part, run)
        if deriver.name in part.derivers:
            await _all(database, deriver, part, run)
    except ModelUnavailable as error:  # what is pending waits, and the product goes on with what it has
        run.waiting.append(f"{deriver.name}: {error}")


async def _all(database: Database, deriver: Deriver[B, M], part: Part, run: Run) -> None:
    after: Pending | None = None
    while True:
        async with database.operator() as scope:
            page = await derivations.pending(
                scope, deriver.name, only=part.user, conversation=part.conversation, after=after
            )
        if not page:
            return
        after = page[-1]
        for group in _groups(page, 0 if deriver.method.asks else deriver.method.batch):
            if run.stop_requested.is_set():
                return
            await _finish(database, deriver, group, run)


def _groups(page: Sequence[Pending], most: int) -> list[list[Pending]]:
    """Gather short conversations, so that the encoder is not fed them one by one."""
    groups: list[list[Pending]] = [[]]
    size = 0
    for work in page:
        if groups[-1] and size + work.last_seq - work.done_seq > most:
            groups.append([])
            size = 0
        groups[-1].append(work)
        size += work.last_seq - work.done_seq
    return groups


async def _finish(database: Database, deriver: Deriver[B, M], group: list[Pending], run: Run) -> None:
    """Step until nothing of the group is left; where a step fails, go on with each conversation by itself."""
    while group and not run.stop_requested.is_set():
        try:
            taken = await step(database, deriver, group, run)
            group = [replace(one.work, done_seq=one.done_seq) for one in taken if one.done_seq < one.work.last_seq]
        except UNIVERSAL:
            raise
        except Exception as error:  # one conversation that cannot be derived must not hold up the others
            if len(group) == 1:
                await fail(database, group[0], await recipe_of(deriver), error, run)
                return
            for work in group:
                await _finish(database, deriver, [work], run)
            return
