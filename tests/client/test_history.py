"""History in, into a real database: what is new, known, skipped, in conflict, and what a dry run says of it."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memstore import InvalidInput
from memstore.client.store import AsyncMemoryStore
from memstore.ingest import add, history
from memstore.ingest.importers import ImportReport

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(*lines: dict[str, Any] | str, name: str = "history.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in lines))
        return path

    return write


def said(number: int, content: str = "hello", **more: Any) -> dict[str, Any]:
    kept = {"user": "ann", "conversation": "c", "role": "user", "external_id": f"m{number}"}
    return kept | {"content": content, "occurred_at": f"2024-05-01T12:00:{number:02d}Z"} | more


def counts(done: ImportReport) -> tuple[int, int, int]:
    return done.new, done.known, done.skipped


async def contents(store: AsyncMemoryStore, conversation: str = "c", user: str = "ann") -> list[Any]:
    return [message.content for message in await store.user(user).conversation(conversation).messages()]


async def test_a_second_import_adds_nothing_and_a_longer_file_only_what_is_new(
    store: AsyncMemoryStore, write: Write
) -> None:
    path = write(*(said(number, f"say {number}") for number in range(5)))
    assert counts(await store.import_file(path)) == (5, 0, 0)
    assert counts(await store.import_file(path)) == (0, 5, 0)
    assert counts(await store.import_file(write(*(said(n, f"say {n}") for n in range(7))))) == (2, 5, 0)
    assert await contents(store) == [f"say {number}" for number in range(7)]


async def test_one_bad_message_among_hundreds_of_several_conversations_costs_itself(
    store: AsyncMemoryStore, write: Write
) -> None:
    lines = [said(number % 60, f"say {number}", conversation=f"c{number // 60}") for number in range(540)]
    lines[250]["name"] = "N" * 201
    done = await store.import_file(write(*lines))
    assert counts(done) == (539, 0, 1)
    assert [skip.where for skip in done.problems] == ["history.jsonl, line 251"]
    for number in range(9):
        expected = [f"say {n}" for n in range(number * 60, number * 60 + 60) if n != 250]
        stored = await store.user("ann").conversation(f"c{number}").messages()
        assert [message.content for message in stored] == expected
        assert [message.seq for message in stored] == list(range(1, len(expected) + 1))


async def test_conflicts_in_several_conversations_are_each_named_and_hold_up_nothing(
    store: AsyncMemoryStore, write: Write
) -> None:
    await store.import_file(write(*(said(n % 5, f"say {n}", conversation=f"c{n // 5}") for n in range(15))))
    changed = {3: "changed", 11: "changed too"}
    again = [said(n % 5, changed.get(n, f"say {n}"), conversation=f"c{n // 5}") for n in range(20)]
    path = write(*again)
    done = await store.import_file(path)
    assert counts(done) == (5, 13, 2)
    assert [skip.where for skip in done.problems] == ["history.jsonl, line 4", "history.jsonl, line 12"]
    assert all("known with other content" in skip.reason for skip in done.problems)
    for number in range(4):
        assert await contents(store, f"c{number}") == [f"say {n}" for n in range(number * 5, number * 5 + 5)]


@pytest.mark.parametrize("batch", [500, 3])
async def test_an_id_that_comes_twice_in_a_file_is_one_message(
    store: AsyncMemoryStore, write: Write, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(history, "MAX_BATCH_ITEMS", batch)
    path = write(said(1), said(2), said(1), said(3), said(2, "changed"), said(1), said(4))
    done = await store.import_file(path)
    assert counts(done) == (4, 2, 1)
    assert [skip.where for skip in done.problems] == ["history.jsonl, line 5"]
    assert [message.external_id for message in await store.user("ann").conversation("c").messages()] == [
        "m1",
        "m2",
        "m3",
        "m4",
    ]


async def test_what_somebody_else_stores_while_a_batch_is_counted_is_stored_once(
    store: AsyncMemoryStore, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look for known messages and the lock another import is done, then one of the messages changes."""
    path = write(*(said(n, f"say {n}") for n in range(8)))
    others = [[said(n, f"say {n}") for n in (0, 1)], [said(2, "changed"), said(9, "by somebody else")]]
    real = add.store.lock_several

    async def late(scope: Any, conversations: Any) -> dict[Any, int]:
        if others:
            await store.import_file(write(*others.pop(0), name="other.jsonl"))
        return await real(scope, conversations)

    monkeypatch.setattr(add.store, "lock_several", late)
    done = await store.import_file(path)
    assert counts(done) == (5, 2, 1)
    assert [skip.where for skip in done.problems] == ["history.jsonl, line 3"]
    stored = await store.user("ann").conversation("c").messages()
    assert sorted(message.content for message in stored) == sorted(
        ["changed", "by somebody else", *(f"say {n}" for n in range(8) if n != 2)]
    )
    assert [message.seq for message in stored] == list(range(1, 10))


async def test_conversations_that_a_file_mixes_keep_their_order(
    store: AsyncMemoryStore, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MAX_BATCH_ITEMS", 3)
    lines = [said(number % 60, f"say {number}", conversation=f"c{number * 7 % 4}") for number in range(50)]
    assert counts(await store.import_file(write(*lines))) == (50, 0, 0)
    for name in {line["conversation"] for line in lines}:
        assert await contents(store, name) == [line["content"] for line in lines if line["conversation"] == name]


async def test_imported_conversations_have_the_times_of_their_messages_and_are_sorted_by_them(
    store: AsyncMemoryStore, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MAX_BATCH_ITEMS", 3)
    ann, noon = store.user("ann"), datetime(2024, 5, 1, 12, tzinfo=UTC)
    lines = [said(n, conversation=name) for name, n in [("b", 9), ("b", 7), ("a", 2), ("a", 30), ("c", 8), ("b", 8)]]
    await store.import_file(write(*lines))
    found = await ann.conversations()
    assert [(one.name, (one.created_at - noon).seconds, (one.updated_at - noon).seconds) for one in found] == [
        ("a", 2, 30),
        ("b", 7, 9),
        ("c", 8, 8),
    ]
    assert await ann.conversations(before=(found[0].updated_at, found[0].id)) == found[1:]
    await ann.conversation("c").add("user", "And now?")
    now, *others = await ann.conversations()
    assert (now.name, now.created_at) == ("c", found[2].created_at)
    assert others == found[:2]
    await store.import_file(write(said(1, conversation="c"), said(40, conversation="b")))
    after = await ann.conversations()
    assert [(one.name, one.updated_at.year) for one in after] == [("c", now.updated_at.year), ("b", 2024), ("a", 2024)]
    assert after[0].updated_at == now.updated_at
    assert (after[0].created_at - noon).seconds == 1


async def test_a_report_names_the_first_of_much_nonsense_and_counts_the_rest(
    store: AsyncMemoryStore, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memstore.ingest.importers.base.MAX_PROBLEMS", 10)
    done = await store.import_file(write(*["nonsense"] * 50))
    assert (done.skipped, len(done.problems)) == (50, 10)


async def test_an_answer_that_is_dated_before_its_question_stands_behind_it(
    store: AsyncMemoryStore, write: Write
) -> None:
    """A history's clocks go back at times: within a conversation the order is that in which messages came."""
    lines = [
        said(10, "Which pond plants help the newts?", conversation="ponds"),
        said(
            9,
            "Hornwort helps newts in a pond" + ", and it feeds its snails" * 20,
            conversation="ponds",
            role="assistant",
        ),
        said(12, "And what do the newts of the pond eat?", conversation="ponds"),
        said(11, "Newts of a pond eat larvae" + ", and what falls in" * 20, conversation="ponds", role="assistant"),
        said(8, "My newts live in the pond of a friend.", conversation="friends"),
    ]
    await store.import_file(write(*lines))
    ann = store.user("ann")
    await store.derive()
    in_order = [lines[place]["content"] for place in (4, 0, 1, 2, 3)]
    hits = await ann.recall("newts in the pond", limit=10)
    assert [one.content for one in await ann.messages([hit.id for hit in hits])] == in_order
    context = await ann.conversation("new").context(budget=1000, query="newts in the pond")
    places = [str(context.messages).index(text) for text in in_order]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("empty.jsonl", "", "it is empty; get it whole"),
        ("conversations.json", "[]", "it holds no messages of the format chatgpt"),
    ],
)
async def test_a_file_without_a_message_is_a_problem(
    store: AsyncMemoryStore, tmp_path: Path, name: str, content: str, reason: str
) -> None:
    (tmp_path / name).write_text(content)
    done = await store.import_file(tmp_path / name, user="ann")
    assert [problem.reason for problem in done.problems] == [reason]


async def test_a_name_that_no_file_can_have_is_refused_in_words(store: AsyncMemoryStore) -> None:
    for name in ("a" * 300, "nul\0"):
        with pytest.raises(InvalidInput, match="there is no file"):
            await store.import_file(name)
