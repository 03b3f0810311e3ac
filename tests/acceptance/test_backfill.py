"""Backfills: what is pending is planned, begun, stopped and gone on with, within its caps, and verified in the end."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import psycopg
import pytest

import memstore
from memstore.client.worker import WorkingStore
from memstore.derive.worker import enqueue_pending
from memstore.models import BackfillStatus
from tests.command_line import Run
from tests.helpers.fakes import ScriptedChatModel
from tests.helpers.user_rows import rows
from tests.working import HASHING, fill, pending, said, until, working

BYTES_A_TOKEN = 4  # the scripted model counts bytes


def summary(messages: Sequence[Any]) -> dict[str, str]:
    return {"summary": "Plans for the week were noted, point by point, and where people live."}


def facts(messages: Sequence[Any]) -> dict[str, list[Any]]:
    return {"facts": []}


def models() -> tuple[ScriptedChatModel, ...]:
    return tuple(ScriptedChatModel(itertools.repeat(one), context_tokens=60_000) for one in (summary, facts))


def test_a_backfill_is_planned_run_and_verified(url: str, twin: str, cli: Run) -> None:
    users = fill(url, users=2, conversations=3, messages=25)
    fill(twin, users=2, conversations=3, messages=25)
    with memstore.open(twin, settings=HASHING) as store:
        store.derive()
    at = ("-d", url)
    found = cli("backfill", "verify", "--json", *at)
    assert (found.code, {one["problem"] for one in found.json}) == (1, {"messages wait for a deriver"})
    planned = cli("backfill", "plan", "--json", *at).json
    assert {
        name: (one["conversations"], one["messages"]) for name, one in planned["derivers"].items()
    } == dict.fromkeys(("chunks", "summaries", "facts"), (6, 150))
    assert planned["model_tokens"] == 0
    assert pending(url) == 450, "a plan writes nothing"
    ran = cli("backfill", "run", "--json", *at)
    assert (ran.code, ran.json["backfill"]["state"], ran.json["done"], ran.json["left"]) == (0, "done", 450, {}), (
        ran.err
    )
    assert rows(url, *users) == rows(twin, *users)
    assert cli("backfill", "verify", *at).code == 0


async def test_jobs_and_backfills_of_an_erased_user_are_gone(url: str) -> None:
    async with await WorkingStore.open(url, settings=HASHING) as store:
        alice = store.user("alice")
        for name, room in (("alice", "lisbon"), ("alice", "work"), ("bob", "work")):
            await store.user(name).conversation(room).add("user", "I live in Leeds.")
        await store.backfills.begin(user="alice")
        await enqueue_pending(store._database)
        assert (await store.job_counts()).waiting == 3
        place = await alice.conversation("lisbon").erase()
        assert place.counts["jobs"] == 1
        await alice.erase()
        with psycopg.connect(url) as superuser:
            assert superuser.execute("SELECT count(*) FROM backfills").fetchone() == (0,)
        assert (await store.job_counts()).waiting == 1
        assert (await store.derive()).messages == 1


async def test_what_is_paused_or_cancelled_is_left_alone_and_what_is_new_is_not(url: str) -> None:
    fill(url, users=1, conversations=2, messages=20)

    def reaches(left: int) -> Callable[[], Awaitable[bool]]:
        async def is_reached() -> bool:
            return pending(url) == left

        return is_reached

    async with await WorkingStore.open(url, settings=HASHING) as store:
        backfill = await store.backfills.begin()
        await enqueue_pending(store._database)
        assert (await store.job_counts()).waiting == 2, "jobs that are there already find that it is paused"
        assert (await store.backfills.pause()).backfill.state == "paused"
        with pytest.raises(memstore.InvalidInput, match="is paused"):
            await store.backfills.pause(backfill)
        await store.user("user0").conversation("today").add_many(said("today", 4))
        async with working(store):
            await until(reaches(120))
            await asyncio.sleep(2.5)
            assert pending(url) == 120, "today's is derived, and the paused backfill's is not"
            await store.backfills.cancel(backfill)
            await store.backfills.begin(only=["chunks"])
            await until(reaches(80))  # the second one is of chunks alone


async def backfilled(url: str, *, resume: bool = False, **caps: Any) -> BackfillStatus:
    """Run a backfill whose models are scripts, or go on with it."""
    async with await WorkingStore.open(url, settings=HASHING) as store:
        store._runtime.__dict__["chat_models"] = models()
        if resume:
            backfill = (await store.backfills.resume(**caps)).backfill.id
        else:
            backfill = await store.backfills.begin(**caps)
        return await store.work_until_done(backfill, lambda _: None, concurrency=3)


def model_usage(url: str) -> list[int]:
    """Give the calls of models, the tokens of their prompts, and those of their answers."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "select coalesce(sum(calls), 0), coalesce(sum(prompt_tokens), 0), coalesce(sum(completion_tokens), 0)"
            " from model_usage"
        ).fetchone()
    assert row is not None
    return [int(one) for one in row]


async def planned(url: str) -> Any:
    async with await WorkingStore.open(url, settings=HASHING) as store:
        store._runtime.__dict__["chat_models"] = models()
        return await store.backfills.plan()


async def test_calls_of_models_never_pass_the_cap(url: str) -> None:
    await asyncio.to_thread(fill, url, users=3, conversations=2, messages=60)
    whole = BYTES_A_TOKEN * (await planned(url)).model_tokens
    found = await backfilled(url, max_tokens=whole // 3)
    assert (found.backfill.state, found.backfill.reason) == ("paused", "tokens")
    _, prompts, answers = model_usage(url)
    assert found.backfill.spent_tokens == prompts + answers <= whole // 3
    assert prompts + answers > whole // 6, "it came near"
    found = await backfilled(url, resume=True, max_tokens=whole * 2)
    assert (found.backfill.state, found.left) == ("done", {})


def test_what_is_wrong_is_found(url: str) -> None:
    harms = {
        "delete from item_text where tier = 'messages' and seq = 3": "messages under the watermark have no chunk",
        "delete from item_vectors where item_id in (select id from messages where seq = 5)": "chunks have no vector",
        "delete from fact_sources where message_id in (select id from messages where seq > 10)": "facts have no source",
        "delete from facts where text like '%Street 0,%'": "chunks are of nothing",
        "update users set chunks = chunks + 1": "the user's chunks are counted wrongly",
        "update derivations set done_seq = 1 where deriver = 'summaries'": "summaries are of no messages",
        "update conversations set last_seq = last_seq + 1": "watermarks do not know of the last message",
    }
    fill(url, users=2, conversations=1, messages=25)
    with memstore.open(url, settings=HASHING) as store:
        waits = [(one.problem, one.rows) for one in store.backfills.verify(user="user0")]
        assert waits == [("messages wait for a deriver", 25)], "each is counted once, whatever waits for it"
        store.derive()
        assert store.backfills.verify() == []
        with psycopg.connect(url) as connection:
            for harm in harms:
                assert connection.execute(harm).rowcount
        found = store.backfills.verify(user="user0")
    assert {one.problem for one in found} >= set(harms.values())
    assert {one.user for one in found} == {"user0"}
