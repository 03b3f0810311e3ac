"""History in, into a real database: what is new, known, skipped, in conflict, and what a dry run says of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memstore import InvalidInput
from memstore.ingest import history
from memstore.ingest.importers import Imported
from memstore.memory.store import AsyncMemoryStore

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


def counts(done: Imported) -> tuple[int, int, int]:
    return done.new, done.known, done.passed_by


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


async def test_a_changed_message_is_a_reported_conflict_and_never_an_overwrite(
    store: AsyncMemoryStore, write: Write
) -> None:
    await store.import_file(write(*(said(number) for number in range(9))))
    changed = [said(number, "changed" if number in (2, 7) else "hello") for number in range(11)]
    path = write(*changed)
    for dry_run in (True, False):
        done = await store.import_file(path, dry_run=dry_run)
        assert counts(done) == (2, 7, 2)
        assert [skip.where for skip in done.skipped] == ["history.jsonl, line 3", "history.jsonl, line 8"]
        assert all("known with other content" in skip.reason for skip in done.skipped)
    assert await contents(store) == ["hello"] * 11


async def test_a_message_that_is_refused_costs_itself(store: AsyncMemoryStore, write: Write) -> None:
    bad = {3: "x" * 5_000_000, 6: "y" * 5_000_000}
    done = await store.import_file(write(*(said(number, bad.get(number, "hello")) for number in range(10))))
    assert counts(done) == (8, 0, 2)
    assert [skip.where for skip in done.skipped] == ["history.jsonl, line 4", "history.jsonl, line 7"]
    assert all("may have 4,000,000" in skip.reason for skip in done.skipped)


async def test_a_dry_run_stores_nothing_and_tells_what_would_come(store: AsyncMemoryStore, write: Write) -> None:
    path = write(said(1), said(2), "nonsense", said(1), said(30, conversation="d", user="bob"))
    done = await store.import_file(path, dry_run=True)
    assert counts(done) == (3, 1, 1)
    assert done.conversations == 2
    first, second = done.spans
    assert (first.user, first.conversation, first.messages) == ("ann", "c", 3)
    assert (first.first, first.last) == (
        datetime(2024, 5, 1, 12, 0, 1, tzinfo=UTC),
        datetime(2024, 5, 1, 12, 0, 2, tzinfo=UTC),
    )
    assert (second.user, second.messages) == ("bob", 1)
    assert [name async for name in store.users()] == []
    assert counts(await store.import_file(path)) == counts(done)
    assert counts(await store.import_file(path, dry_run=True)) == (0, 4, 1)


async def test_times_are_those_of_the_history(store: AsyncMemoryStore, write: Write) -> None:
    await store.import_file(write(said(1)))
    [message] = await store.user("ann").conversation("c").messages()
    assert message.occurred_at == datetime(2024, 5, 1, 12, 0, 1, tzinfo=UTC)
    assert message.recorded_at > message.occurred_at


async def test_conversations_that_a_file_mixes_keep_their_order(
    store: AsyncMemoryStore, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "BATCH", 3)
    monkeypatch.setattr(history, "HELD", 10)
    lines = [said(number % 60, f"say {number}", conversation=f"c{number * 7 % 4}") for number in range(50)]
    assert counts(await store.import_file(write(*lines))) == (50, 0, 0)
    for name in {line["conversation"] for line in lines}:
        assert await contents(store, name) == [line["content"] for line in lines if line["conversation"] == name]


async def test_progress_is_told_in_bytes_and_reaches_the_end(
    store: AsyncMemoryStore, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "BATCH", 5)
    path = write(*(said(number, f"{number} " + "x" * 100_000) for number in range(30)))
    told: list[tuple[int, int]] = []
    await store.import_file(path, progress=lambda done, size: told.append((done, size)))
    size = path.stat().st_size
    assert {total for _, total in told} == {size}
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[0][0] < size
    assert told[-1][0] == size


async def test_what_is_left_out_is_counted_and_what_a_format_needs_is_asked_for(
    store: AsyncMemoryStore, write: Write
) -> None:
    chat = "13.01.24, 09:00 - Calls are encrypted.\n13.01.24, 10:00 - Ann: hi\n13.01.24, 10:01 - Bob: hello"
    path = write(chat, name="WhatsApp Chat with Bob.txt")
    with pytest.raises(InvalidInput, match="--timezone"):
        await store.import_file(path, user="ann")
    with pytest.raises(InvalidInput, match="timezone='Mars/Base': give a name such as Europe/Berlin"):
        await store.import_file(path, user="ann", timezone="Mars/Base")
    with pytest.raises(InvalidInput, match="date_order='myd': give one of dmy, mdy, ymd"):
        await store.import_file(path, user="ann", date_order="myd")
    done = await store.import_file(path, user="ann", me="Ann", timezone="Europe/Berlin")
    assert (counts(done), done.format) == ((2, 0, 0), "whatsapp")
    assert done.left_out == {"notices of WhatsApp": 1}
    mine, theirs = await store.user("ann").conversation("WhatsApp Chat with Bob").messages()
    assert (mine.name, theirs.name) == (None, "Bob")
    assert mine.occurred_at == datetime(2024, 1, 13, 9, 0, tzinfo=UTC)


async def test_branches_that_come_later_add_only_themselves(store: AsyncMemoryStore, write: Write) -> None:
    def node(parent: str | None, text: str, at: float) -> dict[str, Any]:
        content = {"content_type": "text", "parts": [text]}
        return {"parent": parent, "message": {"author": {"role": "user"}, "content": content, "create_time": at}}

    mapping = {"a": node(None, "q", 1), "b": node("a", "old", 2), "c": node("a", "new", 3)}
    export = [{"id": "trip", "title": "T", "mapping": mapping, "current_node": "c"}]
    path = write(json.dumps(export), name="conversations.json")
    first = await store.import_file(path, user="ann")
    assert (counts(first), first.left_out) == ((2, 0, 0), {"messages of other branches": 1})
    assert counts(await store.import_file(path, user="ann", all_branches=True)) == (1, 2, 0)
    assert await contents(store, "trip") == ["q", "new", "old"]


async def test_a_report_names_the_first_of_much_nonsense_and_counts_the_rest(
    store: AsyncMemoryStore, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memstore.ingest.importers.records.MOST_NAMED", 10)
    done = await store.import_file(write(*["nonsense"] * 50))
    assert (done.passed_by, len(done.skipped)) == (50, 10)
