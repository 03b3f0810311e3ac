"""What callers give wrongly is refused in memstore's own words: never by Python's, nor by the database's."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import pytest

from memstore import DatabaseError, InvalidInput, Section
from memstore.client.conversation import AsyncConversationScope
from memstore.client.store import AsyncMemoryStore
from memstore.client.user import AsyncUserScope
from memstore.errors import MemstoreError

WRONG: list[Any] = [
    0, -1, 1.5, float("nan"), True, None, "x", "\ud800", "a\0b", b"x", [], [1], ["\ud800"], {}, {"a": "\ud800"},
    object(), datetime(2024, 1, 1), 2**70,
]  # fmt: skip
OF_A_USER: dict[str, tuple[list[Any], list[str]]] = {
    "conversations": ([], ["channel"]),
    "recall": (
        ["fence"],
        [
            "query", "limit", "tiers", "conversation", "roles", "tags", "since", "until", "as_of", "min_score",
            "viewer", "visibility",
        ],
    ),
    "facts": ([], ["state", "type", "subject", "kind", "as_of"]),
    "entity": (["Alice"], ["name"]),
    "receipt": ([None], ["receipt"]),
    "replay": ([None], ["receipt"]),
    "fact_history": ([None], ["fact"]),
    "retract_fact": ([None], ["fact"]),
    "undo": ([None], ["change"]),
    "invalid_responses": ([], ["limit"]),
    "events": ([], ["after", "types", "limit"]),
}  # fmt: skip
OF_A_CONVERSATION: dict[str, tuple[list[Any], list[str]]] = {
    "add": (
        ["user"],
        [
            "role", "content", "name", "occurred_at", "external_id", "tool_calls", "tool_call_id", "tags", "metadata",
            "on_conflict",
        ],
    ),
    "messages": ([], ["from_seq", "to_seq", "roles", "tags", "metadata", "since", "until", "limit"]),
    "summaries": ([], ["level"]),
    "summarize": ([], ["from_seq", "to_seq"]),
    "update": ([], ["title", "channel", "strategy", "sections", "settings"]),
    "context": (
        ["fence"],
        [
            "query", "budget", "system", "reserve", "strategy", "sections", "viewer", "visibility", "as_of", "model",
            "tools", "format",
        ],
    ),
    "receipts": ([], ["limit"]),
    "recent": ([], ["limit"]),
}  # fmt: skip
FIRST = {"recall": "query", "entity": "name", "add": "role", "context": "query"}
FIRST |= {"receipt": "receipt", "replay": "receipt", "fact_history": "fact", "retract_fact": "fact", "undo": "change"}


async def talked(store: AsyncMemoryStore, name: str = "c") -> AsyncConversationScope:
    scope = store.user("alice").conversation(name)
    await scope.add("user", "We painted the garden fence blue.", tags=["home"])
    return scope


async def refused(call: Callable[..., Awaitable[Any]], positional: list[Any], first: str | None, name: str) -> None:
    """Call with each wrong value under one name: it works, or is refused in words of ours."""
    given = {} if first is None else {first: positional[0]}
    for wrong in WRONG:
        try:
            await call(**given | {name: wrong})
        except DatabaseError as error:
            pytest.fail(f"{name}={wrong!r}: {error}")
        except MemstoreError:
            pass
        except Exception as error:
            pytest.fail(f"{name}={wrong!r}: {type(error).__name__}: {error}")


@pytest.mark.parametrize("method", OF_A_USER)
async def test_what_is_wrong_for_a_user_is_refused(store: AsyncMemoryStore, method: str) -> None:
    await talked(store)
    positional, names = OF_A_USER[method]
    user: AsyncUserScope = store.user("alice")
    for name in names:
        await refused(getattr(user, method), positional, FIRST.get(method), name)


@pytest.mark.parametrize("method", OF_A_CONVERSATION)
async def test_what_is_wrong_for_a_conversation_is_refused(store: AsyncMemoryStore, method: str) -> None:
    scope = await talked(store)
    positional, names = OF_A_CONVERSATION[method]
    for name in names:
        call = getattr(store.user("alice").conversation(name) if method == "add" else scope, method)
        await refused(call, positional, FIRST.get(method), name)
    assert await scope.messages()


async def test_wrong_arguments_are_refused_with_what_to_give(store: AsyncMemoryStore) -> None:
    scope, user = await talked(store), store.user("alice")
    fact = await user.add_fact("I dance.", type="event")
    turned = {"valid_from": "2024-05-01", "valid_to": "2024-04-01"}
    calls: list[tuple[str, Callable[[], Any]]] = [
        ("limit=None", lambda: user.recall("fence", limit=None)),  # type: ignore[call-overload]
        ("messages, summaries, facts", lambda: user.recall("fence", tiers=["message"])),
        ("since='soon' is no time", lambda: user.recall("fence", since="soon")),
        ("since=.* has no time zone", lambda: user.recall("fence", since="2024-01-01T10:00")),
        ("limit=-1", lambda: scope.messages(limit=-1)),
        ("min_score=nan", lambda: user.recall("fence", min_score=float("nan"))),
        ("state='actve'", lambda: user.facts(state="actve")),
        ("tags: .* valid list", lambda: scope.add("user", "hello", tags="home")),
        ("on_conflict", lambda: scope.add("user", "hello", on_conflict="eror")),  # type: ignore[arg-type]
        ("a list of messages", lambda: scope.add_many({"role": "user", "content": "hi"})),  # type: ignore[arg-type]
        ("metadata=0", lambda: scope.messages(metadata=0)),  # type: ignore[arg-type]
        ("roles='user'", lambda: scope.messages(roles="user")),
        ("budget='100'", lambda: scope.context("fence", budget="100")),  # type: ignore[arg-type]
        ("importance=None: give one of pinned", lambda: user.edit_fact(fact, importance=None)),
        ("importance=None: give one of pinned", lambda: user.add_fact("I sing.", type="event", importance=None)),  # type: ignore[arg-type]
        ("valid_to=.* is before valid_from", lambda: user.add_fact("I sing.", type="event", **turned)),
        ("valid_to=.* is before valid_from", lambda: user.edit_fact(fact, **turned)),
        ("'abc' is no id", lambda: user.summary("abc")),  # type: ignore[arg-type]
        ("'a' is no time", lambda: user.conversations(before=("a", "b"))),  # type: ignore[arg-type]
        ("'b' is no id", lambda: user.facts(before="b", limit=1)),  # type: ignore[arg-type]
        ("time and the id of the last one", lambda: user.conversations(before="2024-01-01")),  # type: ignore[arg-type]
        ("'abc' is no id", lambda: store.tokens.revoke("abc")),  # type: ignore[arg-type]
        ("a number of days", lambda: store.tokens.create(days="3")),  # type: ignore[arg-type]
        ("'x' is no id", lambda: store.backfills.status("x")),  # type: ignore[arg-type]
        ("max_tokens=-1", lambda: store.backfills.begin(max_tokens=-1)),
        ("max_tokens=-1", lambda: store.backfills.resume(max_tokens=-1)),
        ("limit=-1", lambda: store.jobs(limit=-1)),
        ("a key of where is a text, not 5", lambda: user.documents().search(where={5: 1})),  # type: ignore[dict-item]
        ("facts", lambda: scope.context("x", sections=[Section("facts", minimum=None)])),  # type: ignore[arg-type]
    ]
    for words, call in calls:
        with pytest.raises(InvalidInput, match=words):
            await call()
    with pytest.raises(InvalidInput, match="half a surrogate"):
        user.conversation("c", title="\ud800")
    assert [one.text for one in await scope.messages(limit=None)] == ["We painted the garden fence blue."]
