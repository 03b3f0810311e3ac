"""What was said and holds no longer: in a context it says so, and ranks behind what took its place."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from memstore import Context
from memstore.client.conversation import AsyncConversationScope
from memstore.client.store import AsyncMemoryStore
from memstore.models import Reason
from memstore.search import outdated
from memstore.search.outdated import asks_what_holds

SPRING, AUTUMN = datetime(2025, 3, 3, 12, tzinfo=UTC), datetime(2025, 9, 4, 12, tzinfo=UTC)


async def told(
    store: AsyncMemoryStore, before: Sequence[str], after: Sequence[str], user: str = "alice"
) -> AsyncConversationScope:
    """Give an empty conversation of Alice's, who said something in spring and something in autumn."""
    alice = store.user(user)
    for name, at, texts in (("spring", SPRING, before), ("autumn", AUTUMN, after)):
        said = [{"role": "user", "name": "Alice", "content": text, "occurred_at": at} for text in texts]
        await alice.conversation(name).add_many(said)
    assert (await store.derive()).failed == ()
    return alice.conversation("now")


def lines(context: Context, word: str) -> list[str]:
    text = "\n".join(str(message["content"]) for message in context.messages)
    return [line.strip() for line in text.splitlines() if word in line]


async def test_a_message_whose_fact_was_superseded_says_what_holds_and_ranks_behind(
    store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outdated, "NEWEST_LEAD", 0.0)  # else the newest is before it anyway
    talk = await told(store, ["I live in Leeds."], ["I live in Porto now."])
    await talk.add("user", "Good morning")
    context = await talk.context("In which city does Alice live?", budget=2000)
    assert lines(context, "Leeds") == ["Alice: I live in Leeds. (later: Alice lives in Porto now, 4 September 2025)"]
    hits = [one for one in context.receipt.included if one.section == "hits"]
    leeds = next(one for one in hits if one.kind == "messages" and "Leeds" in one.preview)
    assert leeds.note == "Alice lives in Porto now, 4 September 2025"
    assert leeds.parts["superseded"] < 0
    porto = next(one for one in hits if one.kind == "messages" and "Porto" in one.preview)
    assert hits.index(porto) < hits.index(leeds)
    assert (await talk.user.replay(context.receipt)).messages == context.messages


async def test_a_summary_of_what_was_superseded_says_what_holds_where_it_is_recalled(store: AsyncMemoryStore) -> None:
    talk = await told(store, ["I live in Leeds.", "The tiles on the roof are green."], ["I live in Porto now."])
    hits = await talk.user.recall("Where do I live?", tiers=["summaries", "facts"])
    later = {hit.text.partition(":")[0]: hit.later for hit in hits if hit.tier == "summaries"}
    assert later == {"3 March 2025": "Alice lives in Porto now, 4 September 2025", "4 September 2025": ""}
    assert "Porto" in hits[0].text


async def test_all_that_states_a_value_that_has_ended_says_what_holds(store: AsyncMemoryStore) -> None:
    """Also what is no source of the fact: a passing mention, an answer."""
    before = ["I live in Leeds.", "The trams in Leeds are slow, aren't they?", "Is York nice?"]
    talk = await told(store, before, ["The bus to Leeds was late.", "I live in Porto now."])
    bob = {"role": "user", "name": "Bob", "content": "Leeds has trams?", "occurred_at": SPRING}
    answer = {"role": "assistant", "content": "Leeds has no trams.", "occurred_at": SPRING}
    both = {"role": "user", "name": "Alice", "content": "Porto is warmer than Leeds.", "occurred_at": SPRING}
    await talk.user.conversation("more").add_many([answer, bob, both])
    await store.derive()
    context = await talk.context("In which city does Alice live?", budget=2000)
    mark = "(later: Alice lives in Porto now, 4 September 2025)"
    assert sorted(set(lines(context, "Leeds"))) == [
        f"Alice: I live in Leeds. {mark}",
        "Alice: Porto is warmer than Leeds.",
        "Alice: The bus to Leeds was late.",
        f"Alice: The trams in Leeds are slow, aren't they? {mark}",
        "Bob: Leeds has trams?",
        f"assistant: Leeds has no trams. {mark}",
    ]


async def test_a_fact_that_tells_an_end_marks_what_was_said_before_it(store: AsyncMemoryStore) -> None:
    talk = await told(store, ["I have a gym membership."], ["I cancelled my gym membership."])
    context = await talk.context("Which membership does Alice have?", budget=2000)
    assert lines(context, "I have a gym") == [
        'Alice: I have a gym membership. (later: Alice: "I cancelled my gym membership.", 4 September 2025)'
    ]


async def test_a_fact_with_the_words_of_an_ended_value_says_what_holds(store: AsyncMemoryStore) -> None:
    talk = await told(
        store, ["I live in Leeds.", *["I watch every match of Leeds United."] * 2], ["I live in Porto now."]
    )
    context = await talk.context("Which matches does Alice watch?", budget=2000)
    [line] = [line for line in lines(context, "Leeds United") if line.startswith("-")]
    assert line.endswith("(3 March 2025) (later: Alice lives in Porto now, 4 September 2025)")


async def test_what_a_hit_leans_on_says_what_holds(store: AsyncMemoryStore) -> None:
    talk = await told(store, ["I live in Leeds.", "I work for Leeds Council."], ["I live in Porto now."])
    context = await talk.context("Where does Alice work?", budget=2000)
    assert lines(context, "I live in Leeds") == [
        "Alice: I live in Leeds. (later: Alice lives in Porto now, 4 September 2025)"
    ]


async def test_a_message_whose_fact_was_taken_back_says_so(store: AsyncMemoryStore) -> None:
    talk = await told(store, ["I live in Leeds."], ["Good morning."])
    [fact] = await talk.user.facts()
    await talk.user.retract_fact(fact)
    shown = lines(await talk.context("In which city does Alice live?", budget=2000), "Alice: I live in Leeds.")
    assert shown
    assert all("Alice: I live in Leeds. (later: taken back: Alice lives in Leeds, " in line for line in shown)


async def test_a_mark_of_a_past_moment_does_not_move(store: AsyncMemoryStore) -> None:
    talk = await told(store, ["I live in Leeds."], ["I live in Porto now."])
    moment = datetime.now(UTC)
    question = "In which city does Alice live?"
    [before] = lines(await talk.context(question, budget=2000, as_of=moment), "Alice: I live in Leeds. (")
    july = datetime(2025, 7, 1, 12, tzinfo=UTC)
    said = {"role": "user", "name": "Alice", "content": "I live in Porto now.", "occurred_at": july}
    await talk.user.conversation("july").add_many([said])
    await store.derive()
    assert lines(await talk.context(question, budget=2000, as_of=moment), "Alice: I live in Leeds. (") == [before]
    [now] = lines(await talk.context(question, budget=2000), "Alice: I live in Leeds. (")
    assert "1 July 2025" in now


async def test_an_edited_slot_moves_no_mark_of_a_past_moment(store: AsyncMemoryStore) -> None:
    trams, question = "The trams in Leeds are slow, aren't they?", "In which city does Alice live?"
    talk = await told(store, ["I live in Leeds.", trams], ["I live in Porto now."])
    moment = datetime.now(UTC)
    [before] = lines(await talk.context(question, budget=2000, as_of=moment), f"Alice: {trams} (later: ")
    [porto] = [fact for fact in await talk.user.facts() if "Porto" in fact.text]
    await talk.user.edit_fact(porto, attribute="office", value="rome")
    assert lines(await talk.context(question, budget=2000), trams) == [f"Alice: {trams}"]
    assert before in lines(await talk.context(question, budget=2000, as_of=moment), trams)


async def test_what_a_viewer_may_not_see_takes_the_place_of_nothing(store: AsyncMemoryStore) -> None:
    talk = await told(store, ["I live in Leeds."], ["@bob: I live in Porto now."])
    question = "In which city does Alice live?"
    for budget in (400, 2000):
        context = await talk.context(question, budget=budget, viewer="carol")
        assert lines(context, "I live in Leeds") == ["Alice: I live in Leeds."]
        assert not lines(context, "Porto")
        assert Reason.SUPERSEDED not in {one.reason for one in context.receipt.left_out if one.kind == "messages"}


def test_a_question_of_a_megabyte_is_read_at_once() -> None:
    for words in ("has ", "hat ", "who ", "when "):
        begun = time.process_time()
        assert asks_what_holds(words * 50_000)
        assert time.process_time() - begun < 2


async def test_a_recall_of_what_holds_puts_it_first_and_marks_what_it_replaced(store: AsyncMemoryStore) -> None:
    before = ["I live in Leeds.", "The trams in Leeds are slow, aren't they?"]
    talk = await told(store, before, ["I live in Porto now."])
    hits = await talk.user.recall("Where do I live?", tiers=["messages", "facts"])
    later = "Alice lives in Porto now, 4 September 2025"
    assert {hit.text: hit.later for hit in hits} == {
        "Alice lives in Porto now.": "",
        "I live in Porto now.": "",
        "I live in Leeds.": later,
        "The trams in Leeds are slow, aren't they?": later,
    }
    texts = [hit.text for hit in hits]
    assert texts.index("I live in Porto now.") < texts.index("I live in Leeds.")
    [leeds] = [hit for hit in hits if hit.text == "I live in Leeds."]
    assert [hit.id for hit in hits if hit.tier == "facts"] == [*leeds.later_ids]


async def test_a_recall_of_what_held_then_pushes_nothing_back(store: AsyncMemoryStore) -> None:
    talk = await told(store, ["I live in Leeds."], ["I live in Porto now."])
    for question, more in (("Where did I live before?", {}), ("Where do I live?", {"until": AUTUMN})):
        [leeds] = [hit for hit in await talk.user.recall(question, **more) if hit.text == "I live in Leeds."]
        assert leeds.later
        assert "superseded" not in leeds.parts


async def test_what_is_marked_changes_places_whatever_the_limit(store: AsyncMemoryStore) -> None:
    talk = await told(store, ["I live in Leeds, my dear old Leeds."], ["I live in Porto now."])
    whole = await talk.user.recall("Where in Leeds do I live?", tiers=["messages"])
    assert [hit.text for hit in whole] == ["I live in Porto now.", "I live in Leeds, my dear old Leeds."]
    assert await talk.user.recall("Where in Leeds do I live?", tiers=["messages"], limit=1) == whole[:1]
    [alone] = await talk.user.recall("Where do I live?", conversation="spring", tiers=["messages"])
    assert alone.later and alone.score > 0.5, "what took its place is no hit: it stays where it is"


async def test_a_viewer_is_told_nothing_by_marks(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    said = {"role": "user", "name": "Alice"}
    secret = said | {"content": "I live in Leeds.", "occurred_at": SPRING, "metadata": {"to": "carol"}}
    trams = said | {"content": "The trams in Leeds are slow.", "occurred_at": SPRING}
    await alice.conversation("a").add_many([secret, trams])
    await alice.conversation("b").add_many([said | {"content": "I live in Porto now.", "occurred_at": AUTUMN}])
    await store.derive()
    assert any(hit.later for hit in await alice.recall("Where does Alice live?"))
    assert not any(hit.later for hit in await alice.recall("Where does Alice live?", viewer="bob"))
