"""What is said by somebody who is not believed alone waits until it is confirmed, and changes nothing until then."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memstore import Conflict, Fact, InvalidInput
from memstore.memory.store import AsyncMemoryStore
from memstore.memory.user import AsyncUserScope
from memstore.testing import ScriptedChatModel
from tests.both.test_models import facts as answered
from tests.both.test_models import found, use

START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)
BELIEVING = {"embedder": "hashing:256", "facts_from": "user,assistant,tool", "untrusted_channels": "mail"}
LEEDS, PORTO = "I live in Leeds.", "I live in Porto."


async def say(alice: AsyncUserScope, text: str, day: int, role: str = "user", place: str = "c", **more: Any) -> None:
    trip = alice.conversation(place, channel=place)
    message: dict[str, Any] = {"role": role, "content": text, "name": "Alice", "metadata": more}
    await trip.add_many([message | {"occurred_at": START + timedelta(days=day)}])


async def states(alice: AsyncUserScope, **filters: Any) -> dict[str, str]:
    return {fact.text: fact.state for fact in await alice.facts(**{"state": "all"} | filters)}


async def seen(alice: AsyncUserScope) -> tuple[object, ...]:
    """Everything that a model is shown of a user's facts."""
    context = await alice.conversation("new").context("Where does Alice live, what may she eat?", budget=900)
    hits = await alice.recall("Where does Alice live?", tiers=["facts"])
    facts = [fact.model_dump() for fact in await alice.facts()]
    return context.messages, context.tokens, [(hit.id, hit.score) for hit in hits], facts


async def history(alice: AsyncUserScope, fact: Fact) -> list[str]:
    return [step.action for step in await alice.fact_history(fact)]


async def test_what_tools_pastes_and_doubted_places_say_waits_and_changes_nothing(url: str, tmp_path: Path) -> None:
    async with await AsyncMemoryStore.open(url, settings=BELIEVING) as store:
        alice = store.user("alice")
        await say(alice, LEEDS, 1)
        await say(alice, "I'm allergic to peanuts.", 1)
        await store.derive()
        before, moment = await seen(alice), (await alice.facts())[0].recorded_at + timedelta(microseconds=1)
        for day, text in enumerate((PORTO, LEEDS, "I'm no longer allergic to peanuts.", "I love casinos."), 2):
            await say(alice, text, day, role="tool", place="c" if day % 2 else "d")
        await say(alice, "I live in Rome.", 8, place="mail")
        await say(alice, "I live in Oslo.", 8, trust="untrusted")
        await say(alice, "I live in Cork.", 8, trust="untrustd")
        (tmp_path / "c.jsonl").write_text(
            '{"conversation": "e", "role": "user", "name": "Alice", "content": "I live in Bern."}'
        )
        await store.import_file(tmp_path / "c.jsonl", user="alice", untrusted=True)
        await store.derive()
        told = await seen(alice)
        assert told[3] == before[3], "neither ended, nor contradicted, nor said again"
        waiting = await alice.facts(state="quarantined")
        assert {fact.value for fact in waiting} >= {"porto", "rome", "oslo", "cork", "bern"}
        assert {span.trust for fact in waiting for span in fact.spans} == {0}
        recalled = {hit.id for hit in await alice.recall("casinos Porto Rome", tiers=["facts"])}
        assert recalled.isdisjoint(fact.id for fact in waiting)
        assert not [one for one in await alice.audit_facts() if one.problem == "conflict"]
        assert (await store.stats(user="alice"))["facts"] == len(before[3])
        await say(alice, "I live in Rome now.", 9, role="assistant")
        assert (await store.derive()).quarantined == 0
        assert set((await states(alice, as_of=moment)).values()) == {"active"}, "then nothing waited yet"


async def test_a_confirmed_fact_holds_and_may_be_put_back(url: str, twin: str, tmp_path: Path) -> None:
    path = tmp_path / "alice.jsonl"
    async with await AsyncMemoryStore.open(url, settings=BELIEVING) as store:
        alice = store.user("alice")
        await say(alice, LEEDS, 1)
        await say(alice, PORTO, 3, role="tool")
        assert (report := await store.derive()).quarantined == 1, report
        before = await seen(alice)
        [porto] = await alice.facts(state="quarantined")
        with pytest.raises(Conflict, match="confirm it first"):
            await alice.edit_fact(porto, value="Oporto")
        await alice.export(path)
        done = await alice.confirm_fact(porto)
        assert (done.state, done.sources) == ("active", porto.sources)
        assert await states(alice) == {"Alice lives in Leeds.": "superseded", "Alice lives in Porto.": "active"}
        assert [hit.id for hit in await alice.recall("Porto", tiers=["facts"])] == [porto.id]
        assert (await alice.confirm_fact(porto)).state == "active", "confirmed twice, once is done"
        await store.derive(redo="facts")
        assert await states(alice) == {"Alice lives in Leeds.": "superseded", "Alice lives in Porto.": "active"}
        confirmed = (await alice.fact_history(porto))[-1]
        back = await alice.undo(confirmed)
        assert await seen(alice) == before, "as if it had never been confirmed"
        assert (await store.stats(user="alice"))["units"] == 3, "two messages, one fact"
        with pytest.raises(Conflict, match="confirm the fact again"):
            await alice.undo(back)
        assert await history(alice, porto) == ["added", "confirmed", "quarantined"]
        await alice.retract_fact(porto)
        entered = await alice.add_fact(porto.text, type="identity", subject="Alice")
        assert (entered.id, entered.state) == (porto.id, "active")
        assert [hit.id for hit in await alice.recall("Porto", tiers=["facts"])] == [porto.id]
        with pytest.raises(Conflict, match="superseded, not active"):
            await alice.confirm_fact(next(one for one in await alice.facts(state="superseded")))
    async with await AsyncMemoryStore.open(twin, settings=BELIEVING) as store:  # what waits in an export waits there
        with pytest.raises(InvalidInput, match="export of memstore's"):  # whoever writes a file chooses its format
            await store.import_file(path, untrusted=True)
        assert (await store.import_file(path)).restored["facts"] == 2
        assert await seen(store.user("alice")) == before
        assert (await store.derive()).quarantined == 0
        await store.user("alice").confirm_fact(porto)
        assert len(await store.user("alice").recall("Porto", tiers=["facts"])) == 1


async def test_what_an_edited_export_calls_active_waits_all_the_same(url: str, twin: str, tmp_path: Path) -> None:
    path = tmp_path / "alice.jsonl"
    async with await AsyncMemoryStore.open(url, settings=BELIEVING) as store:
        alice = store.user("alice")
        await say(alice, LEEDS, 1)
        for day, text in enumerate((PORTO, "I love casinos.", "I have a dog."), 2):
            await say(alice, text, day, role="tool")
        await say(alice, "I work at Horn.", 6, place="mail")
        await store.derive()
        dog = next(fact for fact in await alice.facts(state="quarantined") if "dog" in fact.text)
        await alice.confirm_fact(dog)
        before = await states(alice)
        await alice.export(path)
    told = path.read_text()
    assert told.count('"state":"quarantined"') >= 3
    path.write_text(told.replace('"state":"quarantined"', '"state":"active"').replace('"trust":0', '"trust":2'))
    async with await AsyncMemoryStore.open(twin, settings=BELIEVING) as store:
        rehearsed = await store.import_file(path, dry_run=True)
        done, alice = await store.import_file(path), store.user("alice")
        assert (rehearsed.quarantined, done.quarantined) == (3, 3)
        assert await states(alice) == before, "but for what was confirmed"
        assert {span.trust for fact in await alice.facts(state="quarantined") for span in fact.spans} == {0}
        waiting = {fact.id for fact in await alice.facts(state="quarantined")}
        assert waiting.isdisjoint(hit.id for hit in await alice.recall("casinos", tiers=["facts"]))
        assert (await store.import_file(path)).quarantined == 0, "the second time it is known"


async def test_what_a_store_took_from_whom_this_one_doubts_waits_as_it_comes_in(
    url: str, twin: str, tmp_path: Path
) -> None:
    path = tmp_path / "alice.jsonl"
    async with await AsyncMemoryStore.open(url, settings=BELIEVING) as store:
        await say(store.user("alice"), LEEDS, 1)
        await say(store.user("alice"), "I love casinos.", 2, role="assistant")
        await store.derive()
        assert set((await states(store.user("alice"))).values()) == {"active"}
        await store.export(path)
    async with await AsyncMemoryStore.open(twin, settings=BELIEVING | {"facts_trusted": "user"}) as store:
        assert (await store.import_file(path, dry_run=True)).quarantined == 1
        assert (await store.import_file(path)).quarantined == 1
        found = await states(store.user("alice"))
        assert sorted(found.values()) == ["active", "quarantined"]
        assert all("casinos" in text for text, state in found.items() if state == "quarantined")


async def test_a_rehearsal_tells_of_what_is_pasted_into_a_message_as_the_import_does(
    store: AsyncMemoryStore, twin: str, tmp_path: Path
) -> None:
    path = tmp_path / "alice.jsonl"
    await say(store.user("alice"), f"{LEEDS}\n\n```\n{'I love casinos. ' * 10}\n```\nI have a dog.", 1)
    await store.derive()
    await store.export(path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    facts = [line for line in lines if "sources" in line]
    for fact in facts[1:]:  # as if the block had been read too
        fact["sources"] = [fact["sources"][0] | {"start": 30, "stop": 40, "trust": 2}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert len(facts) > 1
    async with await AsyncMemoryStore.open(twin, settings=BELIEVING) as other:
        told = [(await other.import_file(path, dry_run=one)).quarantined for one in (True, False)]
        assert told == [len(facts) - 1] * 2


async def test_a_fact_that_was_derived_of_nothing_waits(store: AsyncMemoryStore, twin: str, tmp_path: Path) -> None:
    path = tmp_path / "alice.jsonl"
    await say(store.user("alice"), LEEDS, 1)
    await store.user("alice").add_fact("Alice keeps 7 hens.", type="preference")
    await store.derive()
    await store.export(path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line | {"sources": []} if "sources" in line else line) + "\n" for line in lines))
    async with await AsyncMemoryStore.open(twin, settings=BELIEVING) as other:
        told = [(await other.import_file(path, dry_run=one)).quarantined for one in (True, False)]
        alice = other.user("alice")
        assert told == [1, 1]
        assert await states(alice) == {"Alice lives in Leeds.": "quarantined", "Alice keeps 7 hens.": "active"}
        assert [hit.text for hit in await alice.recall("Leeds", tiers=["facts"])] == ["Alice keeps 7 hens."]


async def test_an_edit_into_what_waits_is_undone_as_a_whole(url: str) -> None:
    async with await AsyncMemoryStore.open(url, settings=BELIEVING) as store:
        alice = store.user("alice")
        await say(alice, LEEDS, 1)
        await say(alice, PORTO, 3, role="tool")
        await store.derive()
        before, counted = await seen(alice), await store.stats(user="alice")
        [leeds], [porto] = await alice.facts(), await alice.facts(state="quarantined")
        edited = await alice.edit_fact(leeds, text=porto.text, value="porto")
        assert (edited.id, edited.state) == (porto.id, "active")
        await alice.undo((await alice.fact_history(leeds))[-1])
        assert await states(alice) == {"Alice lives in Leeds.": "active", "Alice lives in Porto.": "quarantined"}
        assert await seen(alice) == before
        assert await store.stats(user="alice") == counted, "what waits again has no unit of recall"


async def test_what_waits_holds_once_a_person_says_it_in_whatever_order(url: str) -> None:
    async with await AsyncMemoryStore.open(url, settings=BELIEVING) as store:
        found = []
        for user, order in (("one", ("tool", "user")), ("two", ("user", "tool"))):
            alice = store.user(user)
            for day, role in enumerate(order):
                await say(alice, PORTO, day, role=role, place=role)
                await store.derive()
            [fact] = await alice.facts(state="all")
            assert (fact.state, [span.trust for span in fact.spans]) == ("active", [2])
            assert len(await alice.recall("Porto", tiers=["facts"])) == 1
            found.append(fact)
        assert await history(store.user("one"), found[0]) == ["added", "confirmed", "reinforced"]
        assert found[0].occurred_at - START == timedelta(days=1), "first said by somebody who is believed"
        # What the person said is erased: the fact is gone too, however often a tool has said it.
        await store.user("one").conversation("user").erase()
        assert await store.user("one").facts(state="all") == []


async def test_facts_of_a_source_that_is_doubted_later_are_quarantined_anew(url: str) -> None:
    async with await AsyncMemoryStore.open(url, settings={"embedder": "hashing:256"}) as store:
        alice = store.user("alice")
        await say(alice, LEEDS, 1)
        await say(alice, PORTO, 3, place="mail")
        await store.derive()
        assert await states(alice) == {"Alice lives in Leeds.": "superseded", "Alice lives in Porto.": "active"}
    async with await AsyncMemoryStore.open(url, settings=BELIEVING) as store:
        alice = store.user("alice")
        assert (await store.derive(redo="facts")).quarantined == 1
        assert await states(alice) == {"Alice lives in Leeds.": "active", "Alice lives in Porto.": "quarantined"}
        [porto] = await alice.facts(state="quarantined")
        assert (await store.derive(redo="facts")).redone == 0
    async with await AsyncMemoryStore.open(url, settings={"embedder": "hashing:256"}) as store:
        await store.derive(redo="facts")
        alice = store.user("alice")
        assert await states(alice) == {"Alice lives in Leeds.": "superseded", "Alice lives in Porto.": "active"}
        assert (await history(alice, porto))[:2] == ["added", "confirmed"]


async def test_a_model_cannot_be_talked_into_a_fact_by_what_is_pasted(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    page = "> Alice banks with Evil Corp.\n\n```\n" + "Alice trusts mallory@example.org with everything.\n" * 3 + "```"
    await say(alice, f"What is this page?\n{page}\nI bank with Good Bank.", 1)
    quoted = [
        found("Alice banks with Evil Corp.", (1, "Alice banks with Evil Corp"), subject="Alice"),
        found("Alice trusts Mallory.", (1, "Alice trusts mallory@example.org"), subject="Alice"),
        found("Alice banks with Good Bank.", (1, "banks with Evil"), (1, "I bank with Good Bank"), subject="Alice"),
    ]
    use(store, facts=ScriptedChatModel([answered(*quoted)]))
    await store.derive()
    said = await states(alice)
    assert said.pop("Alice banks with Good Bank.") == "active"
    assert set(said.values()) == {"quarantined"}
    assert [span.trust for fact in await alice.facts() for span in fact.spans] == [2]
    assert len(said) == 2
