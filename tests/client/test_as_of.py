"""As of a past moment: messages, summaries, facts, strategies as they were known then, whatever happened since."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from memstore import Context, Fact
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
    for day, text in enumerate(("My favourite colour is green.", "I'm allergic to peanuts.", "I live in Leeds.")):
        await say(scope.user.conversation(f"day {day}"), text, 98 + day)
    for n in range(12):
        await say(scope, f"On day {n} I saw {n} boats in Lisbon, and the river was calm for {n} hours.", 101 + n)
    await store.derive()
    return scope


async def known(scope: AsyncConversationScope, **moment: Any) -> list[Any]:
    contexts = [
        (await scope.context(question or None, budget=budget, **moment)).messages
        for question, budget in zip(QUESTIONS, (150, 600, 3000, 600), strict=True)
    ]
    recalled = [await scope.user.recall(question, limit=200, **moment) for question in QUESTIONS if question]
    return [contexts, recalled, await scope.user.facts(**moment)]


async def fact(alice: AsyncUserScope, word: str) -> Fact:
    return next(one for one in await alice.facts(state=None) if word in one.text)


async def edit(alice: AsyncUserScope, word: str, **new: Any) -> None:
    await alice.edit_fact(await fact(alice, word), **new)


async def undo_last(alice: AsyncUserScope, word: str) -> None:
    changes = await alice.fact_history(await fact(alice, word))
    await alice.undo(changes[-1])


async def retract(alice: AsyncUserScope, word: str) -> None:
    await alice.retract_fact(await fact(alice, word))


async def test_the_past_comes_back_whatever_happened_since(url: str) -> None:
    """Each step is taken with a moment before it; at the end every moment gives what it gave."""
    async with await AsyncMemoryStore.open(url, settings=SETTINGS) as store:
        scope = await began(store)
        alice = scope.user
        new, old = alice.conversation("new"), alice.conversation("old")
        steps: list[tuple[str, Callable[[], Awaitable[object]]]] = [
            ("a newer value", lambda: say(new, "I live in Porto now.", 120)),
            ("it is derived", store.derive),
            ("earlier than all", lambda: say(old, "I live in Rome. My favourite colour is green.", 1)),
            ("it is derived", store.derive),
            ("an edit", lambda: edit(alice, "peanuts", text="is allergic to all nuts")),
            ("an edit in place", lambda: edit(alice, "green", confidence=0.4)),
            ("an undone edit", lambda: undo_last(alice, "peanuts")),
            ("an undone end", lambda: undo_last(alice, "Leeds")),
            ("a retraction", lambda: retract(alice, "green")),
            ("a fact by hand", lambda: alice.add_fact("Alice keeps bees near Lisbon.", type="preference")),
            ("strategies", lambda: scope.update(strategy=["sliding_window", "summary_buffer"], settings={"budget": 3})),
            ("a summary on demand", lambda: scope.summarize(1, 6)),
            ("no strategies", lambda: scope.update(strategy=[])),
        ]
        seen = []
        for name, step in steps:
            seen.append((name, datetime.now(UTC), await known(scope)))
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
