"""As of a past moment: messages, summaries, facts, strategies as they were known then, whatever happened since."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from memstore import Context
from memstore.client.conversation import AsyncConversationScope
from memstore.client.store import AsyncMemoryStore
from memstore.client.user import AsyncUserScope

START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)
QUESTIONS = ("Where do I live?", "What am I allergic to?", "What of the boats in Lisbon?", "")
SETTINGS: dict[str, Any] = {"embedder": "hashing:256", "segment_tokens": 120}


async def say(scope: AsyncConversationScope, text: str, day: int) -> None:
    await scope.add("user", text, name="Alice", occurred_at=START + timedelta(days=day))
    await scope.add("assistant", f"You said: {text}", occurred_at=START + timedelta(days=day, minutes=1))


async def began(store: AsyncMemoryStore) -> AsyncConversationScope:
    scope = store.user("alice").conversation("c")
    await say(scope, "I live in Leeds. I'm allergic to peanuts. My favourite colour is green.", 100)
    for n in range(12):
        await say(scope, f"On day {n} I saw {n} boats in Lisbon, and the river was calm for {n} hours.", 101 + n)
    await store.derive()
    return scope


async def known(scope: AsyncConversationScope, **moment: Any) -> list[Any]:
    contexts = [
        (await scope.context(question or None, budget=budget, **moment)).messages
        for question in QUESTIONS
        for budget in (150, 600, 3000)
    ]
    recalled = [await scope.user.recall(question, limit=200, **moment) for question in QUESTIONS if question]
    return [contexts, recalled, await scope.user.facts(**moment)]


async def fact(alice: AsyncUserScope, word: str, **filters: Any) -> Any:
    return next(one for one in await alice.facts(state=None, **filters) if word in one.text)


async def test_the_past_comes_back_whatever_happened_since(url: str) -> None:
    """Each step is taken with a moment before it; at the end every moment gives what it gave."""
    async with await AsyncMemoryStore.open(url, settings=SETTINGS) as store:
        scope = await began(store)
        alice = scope.user

        async def supersede() -> None:
            await say(scope, "I live in Porto.", 120)
            await store.derive()

        async def earlier_than_all() -> None:
            await say(alice.conversation("old"), "I live in Rome. My favourite colour is green.", 1)
            await store.derive()

        async def not_yet_derived() -> None:
            await say(scope, "I saw whales in Lisbon.", 130)

        async def edit() -> None:
            await alice.edit_fact(await fact(alice, "peanuts", type="constraint"), text="is allergic to all nuts")

        async def edit_in_place() -> None:
            await alice.edit_fact(await fact(alice, "green"), confidence=0.4)

        async def undo_the_edit() -> None:
            changes = await alice.fact_history(await fact(alice, "peanuts"))
            await alice.undo(changes[-1])

        async def undo() -> None:
            changes = await alice.fact_history(await fact(alice, "Leeds"))
            await alice.undo(changes[-1])

        async def retract() -> None:
            await alice.retract_fact(await fact(alice, "green"))

        async def by_hand() -> None:
            await alice.add_fact("Alice keeps bees near Lisbon.", type="preference")

        async def compress() -> None:
            await scope.update(strategy=["sliding_window", "summary_buffer"], settings={"budget": 3})

        async def compress_no_more() -> None:
            await scope.update(strategy=[])

        async def ask_for_a_summary() -> None:
            await scope.summarize(1, 6)

        async def derive() -> None:
            await store.derive()

        steps: list[Callable[[], Awaitable[None]]] = [
            supersede, earlier_than_all, not_yet_derived, derive, edit, edit_in_place, undo_the_edit, undo,
            retract, by_hand, compress, ask_for_a_summary, compress_no_more,
        ]  # fmt: skip
        seen = []
        for step in steps:
            seen.append((step.__name__, datetime.now(UTC), await known(scope)))
            await step()
        assert len({str(then) for _, _, then in seen}) > len(seen) - 3, "steps change what is known"
        for name, moment, then in seen:
            for was, now, what in zip(
                then, await known(scope, as_of=moment), ("context", "recall", "facts"), strict=True
            ):
                assert now == was, f"{what} before {name}"
    async with await AsyncMemoryStore.open(url, settings=SETTINGS) as fresh:
        other = fresh.user("alice").conversation("c")
        for name, moment, then in seen[::4]:
            assert await known(other, as_of=moment) == then, f"in another process, before {name}"


async def test_of_an_imported_history_nothing_was_known_before(store: AsyncMemoryStore) -> None:
    scope = await began(store)
    context: Context = await scope.context("Where do I live?", budget=500, as_of=START + timedelta(days=400))
    assert "Leeds" not in str(context.messages)
    assert await scope.user.recall("Leeds", as_of=START + timedelta(days=400)) == []
    assert await scope.user.recall("Leeds", until=START + timedelta(days=400))
