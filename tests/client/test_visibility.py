"""What a viewer is shown: by the rules, everywhere in a context, and nothing of what it may not see."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from memstore.client.conversation import AsyncConversationScope
from memstore.client.store import AsyncMemoryStore
from memstore.errors import InvalidInput
from memstore.models import Context, Message, Reason

ASKED = "What is to be done now?"
Said = dict[str, Any]


def shown(context: Context) -> str:
    return "\n".join(str(message["content"]) for message in context.messages)


def reasons(context: Context) -> list[Reason | None]:
    return [one.reason for one in context.receipt.left_out]


async def test_the_newest_question_is_the_newest_that_is_seen(store: AsyncMemoryStore) -> None:
    room = store.user("world").conversation("room")
    await room.add("user", "Who has seen the ladder?")
    await room.add("user", "@carol where is the hammer?")
    context = await room.context(budget=500, viewer="bob")
    assert context.messages[-1]["content"] == "Who has seen the ladder?"
    asked = await room.context("@carol where is the hammer?", budget=500, viewer="bob")
    assert asked.messages[-1] == {"role": "user", "content": "@carol where is the hammer?"}


async def test_hits_facts_and_summaries_are_filtered_and_told_of(store: AsyncMemoryStore) -> None:
    world = store.user("world")
    await world.conversation("old").add("user", "@carol My name is Ann and I live in Lisbon.")
    await world.conversation("old").add("user", "I am allergic to peanuts.")
    room = world.conversation("room")
    await room.add("user", "@carol I live in Lisbon, remember.")
    await store.derive()
    assert any("Lisbon" in fact.text for fact in await world.facts())
    context = await room.context("Where do I live, and what am I allergic to?", budget=2000, viewer="bob")
    assert "peanuts" in shown(context)
    assert "Lisbon" not in shown(context)
    filtered = {one.section for one in context.receipt.left_out if "not visible to bob" in one.note}
    assert {"recent", "hits", "facts"} <= filtered
    assert Reason.NOT_VISIBLE in reasons(context)
    assert Reason.NOT_VISIBLE not in reasons(await room.context(ASKED, budget=2000))


async def test_a_summary_is_seen_where_all_of_it_is(store: AsyncMemoryStore) -> None:
    room, other = (store.user("world").conversation(name) for name in ("room", "other"))
    await room.add_many(
        [{"role": "user", "content": f"The {place} gate opens at noon."} for place in ("north", "south")]
    )
    await room.summarize()
    await room.add("user", "@carol The vault code is walnut.")
    await room.summarize()
    hits = await store.user("world").recall("gate vault code", tiers=["summaries"], viewer="bob")
    assert len(hits) == 1
    assert "walnut" not in hits[0].text
    assert "walnut" not in shown(await other.context("gate vault code", budget=3000, viewer="bob"))
    assert "walnut" in shown(await other.context("gate vault code", budget=3000, viewer="carol"))


async def test_other_rules(store: AsyncMemoryStore) -> None:
    room = store.user("world").conversation("room")
    await room.add("user", "@property def area(self): circle")
    await room.add("user", "@carol the code is walnut")

    def quiet(message: Message, viewer: str) -> bool:
        return "walnut" not in (message.text or "")

    async def told(**more: Any) -> list[bool]:
        text = shown(await room.context(ASKED, budget=900, viewer="bob", **more))
        return ["circle" in text, "walnut" in text]

    assert await told() == [False, False]
    assert await told(visibility=quiet) == [True, False]
    assert await told(visibility="everything") == [True, True]
    await room.update(settings={"context_viewer": "carol", "visibility": "everything"})
    assert "walnut" in shown(await room.context(ASKED, budget=900))
    with pytest.raises(InvalidInput, match="visibility"):
        await room.update(settings={"visibility": "nobody knows it"})
    with pytest.raises(InvalidInput, match="viewer"):
        await room.context(ASKED, budget=900, viewer=" ")


SPEAKERS = st.sampled_from(
    [
        ("user", "ann"),
        ("user", None),
        ("assistant", "bob"),
        ("assistant", "carol"),
        ("assistant", None),
        ("system", "bob"),
        ("system", "carol"),
        ("system", None),
    ]
)
OPENINGS = st.sampled_from(["", "@bob ", "@carol: ", "@all ", "Hi @bob, ", "> @bob\n", "@carol, @dave: "])
DRAWN = st.lists(st.tuples(SPEAKERS, OPENINGS, st.booleans()), min_size=1, max_size=24)


def drawn_messages(drawn: list[Any], prefix: str) -> list[Said]:
    """Give messages of which each has a word that no other text has."""
    said: list[Said] = []
    for number, ((role, name), opening, calls) in enumerate(drawn):
        word = f"{prefix}zq{number}x"
        told = {"role": role, "content": f"{opening}I like {word} and live in {word.title()}."}
        said.append(told | ({"name": name} if name else {}))
        if calls and role == "assistant":
            said[-1]["tool_calls"] = [{"id": f"{word}c", "function": {"name": "look", "arguments": "{}"}}]
            said.append({"role": "tool", "content": f"Found {word}r.", "tool_call_id": f"{word}c"})
    return said


def hidden_words(said: list[Said], prefix: str) -> set[str]:
    """Give the words of messages that bob may not see, by the rules as a reader would apply them."""
    found, above = set(), False
    for message in said:
        text, name, role = message["content"], message.get("name"), message["role"]
        bob = text.startswith(("@bob ", "@all "))
        carol = text.startswith("@carol")
        if role == "tool":
            visible = above
        elif role == "system":
            visible = bob or (name == "bob" and not carol)
        else:
            visible = name == "bob" or bob or (role == "user" and not carol)
        above = visible
        if not visible:
            found.add(next(word for word in text.replace(".", " ").split() if word.startswith(f"{prefix}zq")))
    return found


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    here=DRAWN,
    there=DRAWN,
    budget=st.integers(200, 4000),
    strategy=st.sampled_from([None, "summary_buffer", "hierarchical"]),
)
async def test_no_text_of_what_is_hidden_is_in_a_context(
    store: AsyncMemoryStore,
    here: list[Any],
    there: list[Any],
    budget: int,
    strategy: str | None,
) -> None:
    known = [name async for name in store.users()]
    world = store.user(f"world {len(known)}")
    rooms: list[AsyncConversationScope] = []
    hidden: set[str] = set()
    for prefix, drawn in (("a", here), ("b", there)):
        said = drawn_messages(drawn, prefix)
        hidden |= hidden_words(said, prefix)
        rooms.append(world.conversation(prefix))
        await rooms[-1].add_many(said)
        await rooms[-1].summarize()
    await store.derive(user=world.name)
    for query in ("Who likes what, and where do they live?", None):
        context = await rooms[0].context(query, budget=budget, viewer="bob", strategy=strategy)
        text = shown(context).lower()
        assert not [word for word in hidden if word in text]
        assert context.tokens <= budget
    recalled = " ".join(hit.text for hit in await world.recall("Who likes what?", viewer="bob", limit=100)).lower()
    assert not [word for word in hidden if word in recalled]
