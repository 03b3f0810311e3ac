"""Scopes: what was said in one project is not told in another, but for what protects and who somebody is."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from memstore.client.store import AsyncMemoryStore
from memstore.client.user import AsyncUserScope
from memstore.errors import InvalidInput
from memstore.models import Context, Scope
from memstore.search.recall import in_scope
from memstore.store.chunks import Filters

SAID = {
    "otter": "In this project always answer in French and never use an ORM.",
    "lynx": "In this project always write tests first.",
    None: "I am allergic to peanuts and my name is Ann.",
}
ASKED = "How should I write the code, and what should I avoid?"


async def fill(store: AsyncMemoryStore) -> AsyncUserScope:
    alice = store.user("alice")
    for scope, text in SAID.items():
        await alice.conversation(f"in {scope}", scope=scope).add("user", text)
    await store.derive()
    return alice


def shown(context: Context) -> str:
    return "\n".join(str(message["content"]) for message in context.messages)


@pytest.mark.parametrize(
    "scope, seen",
    [(None, {"ORM", "tests first", "peanuts"}), ("otter", {"ORM", "peanuts"}), (["otter"], {"ORM", "peanuts"}),
     (["lynx", "otter"], {"ORM", "tests first", "peanuts"}), ([None], {"peanuts"})],
)  # fmt: skip
async def test_each_way_to_ask_sees_its_scopes(store: AsyncMemoryStore, scope: Any, seen: set[str]) -> None:
    alice = await fill(store)
    words = {"ORM", "tests first", "peanuts"}
    profile = await alice.profile(1000, "The user", scope=scope)
    context = await alice.conversation("new").context(ASKED, budget=3000, scope=scope)
    for told in (
        "\n".join(hit.text for hit in await alice.recall(ASKED, limit=50, scope=scope)),
        "\n".join(fact.text for fact in await alice.facts(scope=scope)),
        "\n".join(fact.text for fact in await alice.facts(scope=scope, limit=50)),
        profile.text,
        shown(context),
    ):
        assert {word for word in words if word in told} <= seen, told
    assert {word for word in words if word in shown(context)} == seen
    # What is not of this scope is found all the same where it protects.
    assert "peanuts" in profile.text
    assert context.receipt.arguments.get("scope") == (["otter", None] if scope == "otter" else scope)


async def test_an_instruction_stands_in_its_own_scope_alone(store: AsyncMemoryStore) -> None:
    alice = await fill(store)
    asked, budget = "hello there", 3000
    for name, scope in (("in otter", None), ("a new conversation of otter", "otter")):
        context = await alice.conversation(name, scope=scope).context(asked, budget=budget)
        standing = {one.preview for one in context.receipt.included if one.standing}
        assert any("ORM" in text for text in standing) and not any("tests" in text for text in standing)
    elsewhere = await alice.conversation("new").context(asked, budget=budget)
    standing = {one.preview for one in elsewhere.receipt.included if one.standing}
    assert any("peanuts" in text for text in standing)
    assert not any("ORM" in text or "tests" in text for text in standing)
    # Said in another scope as well, it stands there, too.
    await alice.conversation("in lynx").add("user", SAID["otter"])
    await store.derive()
    context = await alice.conversation("in lynx").context(asked, budget=budget)
    assert any("ORM" in one.preview for one in context.receipt.included if one.standing)


async def test_a_value_of_one_scope_does_not_end_that_of_another(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    for scope, database in (("otter", "Postgres"), ("lynx", "MySQL"), ("otter", "SQLite")):
        await alice.conversation(f"{scope}", scope=scope).add("user", f"Our database is {database} now.")
        await store.derive()
    active = {fact.text for fact in await alice.facts()}
    assert any("MySQL" in text for text in active) and any("SQLite" in text for text in active), active


@pytest.mark.parametrize("first", [["otter", "lynx"], [None]])
async def test_what_is_said_elsewhere_too_is_not_ended(store: AsyncMemoryStore, first: list[str | None]) -> None:
    alice = store.user("alice")
    for number, scope in enumerate([*first, "lynx"]):
        said = "Our database is MySQL now." if number == len(first) else "Our database is Postgres."
        await alice.conversation(f"{number}", scope=scope).add("user", said)
        await store.derive()
    assert any("Postgres" in fact.text for fact in await alice.facts(scope=first[:1]))


async def test_at_a_past_moment_it_was_said_in_no_other_scope(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    decision = "We decided to use Kotlin for the app."
    await alice.conversation("l", scope="lynx").add("user", decision)
    await store.derive()
    then = datetime.now(UTC)
    await alice.conversation("o", scope="otter").add("user", decision)
    await store.derive()
    assert any("Kotlin" in fact.text for fact in await alice.facts(scope="otter"))
    assert not [fact for fact in await alice.facts(scope="otter", as_of=then) if "Kotlin" in fact.text]


async def test_a_conversation_recalls_its_own_turns_whatever_is_asked(store: AsyncMemoryStore) -> None:
    talk = store.user("alice").conversation("l", scope="lynx")
    await talk.add("user", "The code word of the vault is walnut.")
    await talk.add_many([{"role": "user", "content": f"Line {number} of the long talk."} for number in range(120)])
    await store.derive()
    assert "walnut" in shown(await talk.context("What is the code word of the vault?", budget=500, scope="otter"))


async def test_a_stored_scope_counts_and_not_that_of_an_older_handle(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    talk = alice.conversation("o", scope="otter")
    await talk.add("user", SAID["otter"])
    await store.derive()
    await talk.update(scope="lynx")
    context = await talk.context("hello there", budget=3000)
    assert any("ORM" in one.preview for one in context.receipt.included if one.standing)


async def test_where_nothing_is_hidden_nothing_is_filtered(store: AsyncMemoryStore) -> None:
    """With filters every chunk is looked at once more, and the indexes of large users are asked in rounds."""
    alice = await fill(store)
    async with store._database.user_transaction(alice.id) as tx:
        everywhere = await in_scope(tx, Filters(), None)
        in_all = await in_scope(tx, Filters(), Scope(("otter", "lynx"), unscoped=True))
        in_otter = await in_scope(tx, Filters(), Scope(("otter",), unscoped=True))
    assert (everywhere.is_unfiltered, in_all.is_unfiltered, in_otter.is_unfiltered) == (True, True, False)


async def test_who_somebody_is_holds_in_every_scope_and_ends_in_every_scope(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    await alice.conversation("o", scope="otter").add("user", "I live in Porto.")
    await store.derive()
    assert any("Porto" in hit.text for hit in await alice.recall("Where do I live?", scope="lynx", tiers=["facts"]))
    await alice.conversation("l", scope="lynx").add("user", "I moved to Cork, I live in Cork now.")
    await store.derive()
    assert not [fact.text for fact in await alice.facts() if "Porto" in fact.text]


async def test_a_scope_is_set_kept_and_changed(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    talk = alice.conversation("c", scope="otter")
    await talk.add("user", "We deploy on Fridays.")
    assert (await alice.conversation("c").info()).scope == "otter"  # type: ignore[union-attr]
    await talk.update(scope="lynx")
    assert (await talk.info()).scope == "lynx"  # type: ignore[union-attr]
    await store.derive()
    assert not await alice.recall("When do we deploy?", scope="otter", tiers=["messages"])
    assert await alice.recall("When do we deploy?", scope="lynx", tiers=["messages"])


@pytest.mark.parametrize("scope", [[], 5, {"otter": 1}, [5], ""])
async def test_what_is_no_scope_is_refused(store: AsyncMemoryStore, scope: Any) -> None:
    with pytest.raises(InvalidInput, match="scope"):
        await store.user("alice").recall("Which?", scope=scope)


WORDS = st.sampled_from(["walnut", "harbour", "violin", "granite", "saffron", "lantern"])
SCOPES = st.sampled_from(["otter", "lynx", "heron", None])


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(said=st.lists(st.tuples(SCOPES, WORDS), min_size=3, max_size=12), asked=st.sampled_from(["otter", "lynx"]))
@pytest.mark.parametrize("in_memory", [True, False])
async def test_nothing_of_another_scope_is_in_anything(
    store: AsyncMemoryStore, said: list[tuple[str | None, str]], asked: str, in_memory: bool
) -> None:
    """In hits, contexts and lists of facts, by arrays and by the database's indexes."""
    alice = store.user("alice")
    await alice.erase()
    store._database.cache.max_chunks = 150_000 if in_memory else 0
    for number, (scope, word) in enumerate(said):
        text = f"We decided to call release {number} {word} of {scope or 'nobody'}."
        await alice.conversation(f"{number}", scope=scope).add("user", text)
    await store.derive()
    question = f"What did we decide to call the release, {said[0][1]}?"
    context = await alice.conversation("new").context(question, budget=4000, scope=asked)
    told = [hit.text for hit in await alice.recall(question, limit=50, scope=asked)]
    told += [fact.text for fact in await alice.facts(state="all", scope=asked)] + [shown(context)]
    for scope in {"otter", "lynx", "heron"} - {asked}:
        assert not any(f"of {scope}" in text for text in told)
    if any(scope == asked for scope, _ in said):
        assert f"of {asked}" in shown(context)
