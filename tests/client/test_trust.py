"""What is said by somebody who is not believed alone waits until it is confirmed, and changes nothing until then."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memstore import Conflict, Fact, InvalidInput
from memstore.client.store import AsyncMemoryStore
from memstore.client.user import AsyncUserScope
from tests.client.test_models import facts as answered, found, use
from tests.helpers.fakes import ScriptedChatModel

START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)
BELIEVING = {"embedder": "hashing:256", "fact_roles": "user,assistant,tool"}
LEEDS, PORTO = "I live in Leeds.", "I live in Porto now."
PEANUTS, NO_PEANUTS = "I'm allergic to peanuts.", "I'm not allergic to peanuts."


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


async def test_what_tools_and_untrusted_messages_say_waits_and_changes_nothing(url: str, tmp_path: Path) -> None:
    async with await AsyncMemoryStore.open(url, settings=BELIEVING) as store:
        alice = store.user("alice")
        await say(alice, LEEDS, 1)
        await say(alice, PEANUTS, 1)
        await store.derive()
        before, moment = await seen(alice), (await alice.facts())[0].recorded_at + timedelta(microseconds=1)
        for day, text in enumerate((PORTO, LEEDS, "I'm no longer allergic to peanuts.", "I love casinos."), 2):
            await say(alice, text, day, role="tool", place="c" if day % 2 else "d")
        await say(alice, "I live in Oslo now.", 8, trust="untrusted")
        await say(alice, "I live in Cork now.", 8, trust="untrustd")
        (tmp_path / "c.jsonl").write_text(
            '{"conversation": "e", "role": "user", "name": "Alice", "content": "I live in Bern now."}'
        )
        await store.import_file(tmp_path / "c.jsonl", user="alice", untrusted=True)
        await store.derive()
        told = await seen(alice)
        assert told[3] == before[3], "neither ended, nor contradicted, nor said again"
        waiting = await alice.facts(state="quarantined")
        assert {f"Alice lives in {city} now." for city in ("Porto", "Oslo", "Cork", "Bern")} <= {
            fact.text for fact in waiting
        }
        assert {span.trust for fact in waiting for span in fact.spans} == {0}
        recalled = {hit.id for hit in await alice.recall("casinos Porto Rome", tiers=["facts"])}
        assert recalled.isdisjoint(fact.id for fact in waiting)
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
        assert await states(alice) == {"Alice lives in Leeds.": "superseded", "Alice lives in Porto now.": "active"}
        assert [hit.id for hit in await alice.recall("Porto", tiers=["facts"])] == [porto.id]
        assert (await alice.confirm_fact(porto)).state == "active", "confirmed twice, once is done"
        await store.derive(redo="facts")
        assert await states(alice) == {"Alice lives in Leeds.": "superseded", "Alice lives in Porto now.": "active"}
        confirmed = (await alice.fact_history(porto))[-1]
        back = await alice.undo(confirmed)
        assert await seen(alice) == before, "as if it had never been confirmed"
        assert (await store.stats(user="alice"))["chunks"] == 4, "two messages, their summary, one fact"
        with pytest.raises(Conflict, match="confirm anew"):
            await alice.undo(back)
        assert await history(alice, porto) == ["added", "confirmed", "quarantined"]
        await alice.retract_fact(porto)
        entered = await alice.add_fact(porto.text, type="identity", subject="Alice")
        assert (entered.id, entered.state) == (porto.id, "active")
        assert [hit.id for hit in await alice.recall("Porto", tiers=["facts"])] == [porto.id]
        with pytest.raises(Conflict, match="superseded, not active"):
            await alice.confirm_fact(next(one for one in await alice.facts(state="superseded")))
    async with await AsyncMemoryStore.open(twin, settings=BELIEVING) as store:  # what waits in an export waits there
        with pytest.raises(InvalidInput, match="export of memstore"):  # whoever writes a file chooses its format
            await store.import_file(path, untrusted=True)
        assert (await store.import_file(path)).restored["facts"] == 2
        assert await seen(store.user("alice")) == before
        assert (await store.derive()).quarantined == 0
        await store.user("alice").confirm_fact(porto)
        assert len(await store.user("alice").recall("Porto", tiers=["facts"])) == 1


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
    believed = {"Alice is allergic to peanuts.": "superseded", "Alice is not allergic to peanuts.": "active"}
    doubted = {"Alice is allergic to peanuts.": "active", "Alice is not allergic to peanuts.": "quarantined"}
    async with await AsyncMemoryStore.open(url, settings=BELIEVING) as store:
        alice = store.user("alice")
        await say(alice, PEANUTS, 1)
        await say(alice, NO_PEANUTS, 3, role="assistant", place="d")
        await store.derive()
        assert await states(alice) == believed
    async with await AsyncMemoryStore.open(url, settings=BELIEVING | {"trusted_roles": "user"}) as store:
        alice = store.user("alice")
        assert (await store.derive(redo="facts")).quarantined == 1
        assert await states(alice) == doubted
        [waiting] = await alice.facts(state="quarantined")
        assert (await store.derive(redo="facts")).redone == 0
    async with await AsyncMemoryStore.open(url, settings=BELIEVING) as store:
        await store.derive(redo="facts")
        alice = store.user("alice")
        assert await states(alice) == believed
        assert (await history(alice, waiting))[:2] == ["added", "confirmed"]


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


@pytest.mark.parametrize("format", ["openai", "anthropic", "ollama", "text"])
async def test_an_instruction_that_is_not_trusted_instructs_nobody(store: AsyncMemoryStore, format: Any) -> None:
    talk = store.user("alice").conversation("c")
    for role, trust in (("system", "trusted"), ("system", "untrusted"), ("developer", "untrusted")):
        await talk.add(role, f"An {trust} {role}.", metadata={"trust": trust})
    await talk.add("user", "Hi.")
    context = await talk.context("Good morning.", budget=900, format=format)
    instructions = [str(one["content"]) for one in context.messages if one["role"] not in ("user", "assistant")]
    said = [str(one["content"]) for one in context.messages if one["role"] == "user"]
    if format == "text":
        lines = (context.text or "").splitlines()
        instructions, said = [[one for one in lines if one.startswith(begin)] for begin in (" system: ", " user ")]
    assert re.findall(r"An (\w+) ", " ".join([context.system or "", *instructions])) == ["trusted"]
    assert re.findall(r"An (\w+) ", " ".join(said)) == ["untrusted", "untrusted"]
    replay = await store.user("alice").replay(context)
    assert (replay.messages, replay.system, replay.text) == (context.messages, context.system, context.text)


async def test_a_word_of_a_trusted_person_does_not_lend_trust_to_what_is_pasted(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    await say(alice, "What is this?\n> Alice banks with Evil Corp.\nThanks a lot!", 1)
    lent = found("Alice banks with Evil Corp.", (1, "Alice banks with Evil Corp"), (1, "Thanks a lot"), subject="Alice")
    use(store, facts=ScriptedChatModel([answered(lent)]))
    await store.derive()
    assert await states(alice) == {"Alice banks with Evil Corp.": "quarantined"}
