"""The nest of summaries, and those on demand: complete, made once, each message covered once."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from time import sleep
from typing import Any

import pytest

from memstore import InvalidInput
from memstore._compat import to_thread
from memstore.client.conversation import AsyncConversationScope
from memstore.client.store import AsyncMemoryStore
from memstore.derive.summaries.extractive import EMPTY_SUMMARY

PICTURE = [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]
START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)


def history(sessions: int, each: int = 2) -> list[dict[str, object]]:
    """Short sessions, a day apart."""
    return [
        {
            "role": "user",
            "content": f"On trip {day} I saw the village of Hill{day}x{n}, and my friend Ada{day} sold {n + 3} boats.",
            "occurred_at": START + timedelta(days=day, minutes=n),
        }
        for day in range(sessions)
        for n in range(each)
    ]


async def test_every_level_stands_on_four_of_the_one_below(store: AsyncMemoryStore) -> None:
    trip = store.user("alice").conversation("lisbon")
    await trip.add_many(history(4 * 4 * 4 * 2 + 4 + 4 + 2))
    await store.derive()
    found = await trip.summaries()
    assert Counter(one.level for one in found) == {1: 138, 2: 34, 3: 8, 4: 2}
    for one in found:
        under = [
            other for other in found if other.level == one.level - 1 and one.from_seq <= other.from_seq <= one.to_seq
        ]
        if one.level > 1:
            assert len(under) == 4
            assert (one.from_seq, one.to_seq) == (under[0].from_seq, under[-1].to_seq)
            assert (one.occurred_at, one.occurred_until) == (under[0].occurred_at, under[-1].occurred_until)
            below = "\n".join(other.text for other in under)
            lines = [line.partition(": ")[2] or line.strip() for line in one.text.splitlines()]
            assert all(line in below for line in lines), "nothing that was not said below"


async def test_recall_finds_what_was_said_in_one_summary_and_not_in_all_that_repeat_it(store: AsyncMemoryStore) -> None:
    trip = store.user("alice").conversation("lisbon")
    await trip.add_many(history(20, 1))
    await store.derive()
    assert max(one.level for one in await trip.summaries()) == 3
    hits = await trip.user.recall("Hill0x0", tiers=["summaries"], limit=50)
    levels = {one.id: one.level for one in await trip.summaries()}
    assert {levels[hit.id] for hit in hits} == {1}
    assert sum("Hill0x0" in hit.text for hit in hits) == 1


async def test_another_recipe_goes_on_where_the_last_one_ended(
    store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    trip = store.user("alice").conversation("lisbon")
    await trip.add_many(history(13))
    await store.derive()
    old = (await trip.summaries())[0].recipe
    monkeypatch.setattr("memstore.derive.summaries.extractive.ExtractiveSummarizer.recipe", "extractive/test")
    await trip.add_many([one | {"occurred_at": START + timedelta(days=100 + n)} for n, one in enumerate(history(5, 1))])
    await store.derive()
    first = await trip.summaries(level=1)
    assert {one.recipe for one in first} == {old, "extractive/test"}
    covered = [seq for one in first for seq in range(one.from_seq, one.to_seq + 1)]
    assert covered == list(range(1, 32))
    assert [one.recipe for one in await trip.summaries(level=2)] == [old] * 3 + ["extractive/test"]


async def outline(trip: AsyncConversationScope) -> list[tuple[object, ...]]:
    return [(one.level, one.from_seq, one.to_seq, one.text) for one in await trip.summaries()]


@pytest.mark.parametrize("seed", range(2))
async def test_the_same_history_gives_the_same_summaries_however_it_was_cut(store: AsyncMemoryStore, seed: int) -> None:
    """Each piece is over by the clock when it is derived, and some of them go on with the next one."""
    draw, at, said = Random(seed), START, []
    for n in range(60):
        at += timedelta(minutes=draw.choice([1, 30, 200, 239, 240, 241, 2000]))
        words = " ".join(f"word{draw.randrange(300)}" for _ in range(draw.choice([4, 20, 150])))
        said.append({"role": draw.choice(["user", "assistant"]), "content": f"Part {n}: {words}.", "occurred_at": at})
    at_once, in_pieces = (store.user(name).conversation("lisbon") for name in ("alice", "bob"))
    await at_once.add_many(said)
    while said:
        size = draw.choice([1, 1, 2, 5, 11])
        await in_pieces.add_many(said[:size])
        said = said[size:]
        await store.derive()
        covered = [seq for one in await in_pieces.summaries(level=1) for seq in range(one.from_seq, one.to_seq + 1)]
        assert covered == list(range(1, 61 - len(said))), "what is over has a summary"
    assert await outline(in_pieces) == await outline(at_once)
    assert max(one.level for one in await at_once.summaries()) >= 3
    assert await store.backfills.verify() == []


async def test_a_session_is_over_when_another_conversation_begins(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    trip, other = alice.conversation("lisbon"), alice.conversation("porto")
    for n in range(3):
        await trip.add("user", f"In Lisbon I saw the village of Hill{n}.")
    await store.derive()
    assert await trip.summaries() == []
    await store.user("bob").conversation("rome").add("user", "Somebody else begins.")
    await store.derive()
    assert await trip.summaries() == []
    await other.add("user", "Let us talk of Porto.")
    await store.derive()
    [over] = await trip.summaries()
    assert (over.from_seq, over.to_seq) == (1, 3)
    assert await other.summaries() == []
    await trip.add("user", "And in Lisbon I met Zoe.")
    await store.derive()
    assert await trip.summaries() == [over], "until it is over again, it keeps the summary that it has"
    await alice.conversation("faro").add("user", "The third.")
    await store.derive()
    [whole] = await trip.summaries()
    assert (whole.from_seq, whole.to_seq) == (1, 4)
    assert len(await other.summaries()) == 1
    hits = await alice.recall("Zoe", tiers=["summaries"])
    assert [hit.id for hit in hits if "Zoe" in hit.text] == [whole.id]


async def test_a_session_is_over_by_the_clock(
    url: str, twin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for world in ("memstore", "memstore._sync"):
        monkeypatch.setattr(f"{world}.derive.summaries.deriver.SESSION_GAP", timedelta(seconds=1))
    settings = {"embedder": "hashing:256"}
    async with await AsyncMemoryStore.open(url, settings=settings) as store:
        alice = store.user("alice")
        await alice.conversation("lisbon").add("user", "I fly to Lisbon.")
        await alice.conversation("ahead").add("user", "I fly to Mars.", occurred_at=datetime(2999, 1, 1, tzinfo=UTC))
        await store.derive()
        await alice.export(tmp_path / "alice.jsonl")
        assert (await store.stats())["pending"] == 0
        await to_thread(sleep, 1.2)
        await store.derive()
        for name in ("lisbon", "ahead"):
            assert [one.to_seq for one in await alice.conversation(name).summaries()] == [1], name
    async with await AsyncMemoryStore.open(twin, settings=settings) as other:
        await other.import_file(tmp_path / "alice.jsonl")
        await other.derive()
        assert [one.to_seq for one in await other.user("alice").conversation("lisbon").summaries()] == [1]


async def test_a_context_covers_what_is_older_once_and_the_oldest_coarsely(store: AsyncMemoryStore) -> None:
    trip = store.user("alice").conversation("lisbon")
    stored = await trip.add_many(history(40, 8))
    await store.derive()
    await trip.summarize()
    context = await trip.context("What did I see?", budget=6_000)
    known = {one.id: one for one in await trip.summaries()}
    seqs = {one.id: one.seq for one in stored}
    inside = sorted(
        [known[one.id] for one in context.receipt.included if one.id in known], key=lambda one: one.from_seq
    )
    shown = min(seqs[one.id] for one in context.receipt.included if one.section == "recent" and one.id)
    assert [one.from_seq for one in inside] == [1, *(one.to_seq + 1 for one in inside[:-1])]
    assert inside[-1].to_seq >= shown - 1
    assert inside[-1].from_seq < shown
    levels = [one.level for one in inside]
    assert levels == sorted(levels, reverse=True)
    assert len(set(levels)) > 1
    assert 0 not in levels


async def test_a_summary_on_demand_is_made_once_and_found(store: AsyncMemoryStore) -> None:
    trip = store.user("alice").conversation("lisbon")
    await trip.add_many(history(5))
    made = await trip.summarize(3, 6)
    assert (made.level, made.from_seq, made.to_seq) == (0, 3, 6)
    assert "Ada1" in made.text
    assert "Ada0" not in made.text
    assert "Ada3" not in made.text
    assert await trip.summarize(3, 6) == made
    assert await trip.summaries(level=0) == [made]
    [hit] = await trip.user.recall("Ada1", tiers=["summaries"])
    assert hit.id == made.id
    assert hit.sources == tuple(one.id for one in await trip.messages(from_seq=3, to_seq=6))
    whole = await trip.summarize()
    assert (whole.from_seq, whole.to_seq) == (1, 10)
    await trip.add("user", "One more.")
    assert (await trip.summarize()).to_seq == 11
    report = await store.derive()
    assert report.failed == ()
    assert len(await trip.summaries(level=1)) == 5


async def test_a_range_that_is_not_there_is_refused(store: AsyncMemoryStore) -> None:
    trip = store.user("alice").conversation("lisbon")
    with pytest.raises(InvalidInput, match="no messages"):
        await trip.summarize()
    assert await trip.info() is None
    await trip.add_many(history(5))
    ranges: list[Any] = [(0, 2), (3, 2), (1, 11), (-1, None), (11, None), ("1", 2), (1.0, 2), (True, 2)]
    for begin, end in ranges:
        with pytest.raises(InvalidInput, match="has 1 to 10"):
            await trip.summarize(begin, end)


async def test_a_stretch_in_which_nothing_was_said_keeps_its_row_and_says_nothing(store: AsyncMemoryStore) -> None:
    trip = store.user("alice").conversation("lisbon")
    for day in range(3):
        said = PICTURE if day == 2 else f"On trip {day} I saw the village of Hill{day}."
        await trip.add("user", said, occurred_at=START + timedelta(days=day))
    await trip.add("user", "word " * 600)
    await store.derive()
    first = await trip.summaries(level=1)
    assert [one.text == EMPTY_SUMMARY for one in first][:3] == [False, False, True]
    assert [(one.from_seq, one.to_seq) for one in first][:3] == [(1, 1), (2, 2), (3, 3)]
    assert not [
        hit for hit in await trip.user.recall("nothing summarized in words", limit=50) if hit.text == EMPTY_SUMMARY
    ]
    for strategy in ([], ["summary_buffer"], ["hierarchical"]):
        context = await trip.context("And?", budget=700, strategy=strategy)
        assert EMPTY_SUMMARY not in str(context.messages)
    context = await trip.context("And?", budget=400)
    assert first[1].id in [one.id for one in context.receipt.included if one.section == "summaries"]
    assert EMPTY_SUMMARY not in str(context.messages)


async def test_calls_of_tools_alone_are_summarized_and_recalled(store: AsyncMemoryStore) -> None:
    work = store.user("alice").conversation("work")
    for n in range(3):
        made = {"id": f"c{n}", "function": {"name": "deploy", "arguments": f'{{"service": "ledger-{n}"}}'}}
        log = "\n".join([*(f"layer {one} pushed" for one in range(500)), f"Deployed revision r-44{n}"])
        await work.add("assistant", tool_calls=[made])
        await work.add("tool", log, tool_call_id=f"c{n}")
    await work.add("user", "Thanks.")
    await store.derive()
    first = await work.summaries(level=1)
    assert [(one.from_seq, one.to_seq) for one in first] == [(1, 2), (3, 4), (5, 6)]
    for n, one in enumerate(first):
        assert f"deploy(service=ledger-{n}) gave: " in one.text
        assert f"Deployed revision r-44{n}" in one.text
    hits = await work.user.recall("which revision of ledger-1 was deployed", tiers=["summaries"])
    assert hits[0].id == first[1].id
