"""Memory out and in again: equal rows, equal recall and equal contexts; nothing twice, nothing overwritten."""

import gzip
import io
import json
import stat
import struct
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from memstore import InvalidInput, ids
from memstore.client.store import AsyncMemoryStore
from memstore.client.user import AsyncUserScope
from memstore.export import reader
from memstore.ingest.importers import ImportReport
from memstore.testing import HashingEmbedder
from tests.client.test_erase import holding
from tests.helpers.user_rows import TABLES, add_missing_rows, rows

START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)
HASHING = {"embedder": "hashing:256"}
EVERY = [*TABLES, "setting_changes"]
# What is of this installation: numbers of chunks and of bytes that came in, and when.
HERE = {"item_text": ["number"], "derivations": ["updated_at", "closes_at"]}
EVERYTHING = ("users", "conversations", "summaries", "facts", "documents")  # but for messages
Lines = list[dict[str, Any]]


@pytest.fixture
async def other(twin: str) -> AsyncIterator[AsyncMemoryStore]:
    async with await AsyncMemoryStore.open(twin, settings=HASHING) as store:
        yield store


async def lived_in(store: AsyncMemoryStore) -> AsyncUserScope:
    """Give a user of whom everything is stored that there is: said, made of it, entered, edited, taken back."""
    alice = store.user("alice")
    trip = alice.conversation("lisbon 🚋", title="To Lisbon", channel="web")
    call = {"id": "1", "type": "function", "function": {"name": "fares", "arguments": '{"to": "Lisbon"}'}}
    await trip.add_many(
        [
            {"role": "user", "content": "I live in Leeds, and I'm allergic to peanuts.", "external_id": "a"},
            {"role": "assistant", "content": "", "tool_calls": [call], "name": "helper"},
            {"role": "tool", "content": '{"fare": 41.5}', "tool_call_id": "1", "metadata": {"big": 1e23, "ratio": 0.1}},
            {"role": "user", "content": [{"type": "text", "text": "Look:"}, {"type": "image_url", "url": "a.png"}]},
            {"role": "user", "content": 'Two lines\nand \u2028 odd \\ ends "x".', "tags": ["odd", "trip"]},
            {"role": "assistant", "content": []},
        ]
    )
    await trip.add("user", " ".join(f"On day {n} the tram number {n} goes uphill." for n in range(90)))
    notes = alice.documents()
    await notes.put(
        ("notes", "2024"), "fares", {"text": "The tram is 41.5", "deep": [{"a": 0.1}]}, ttl=timedelta(days=9)
    )
    await notes.put(("notes",), "unfound", {"text": "by no meaning"}, texts={})
    await trip.update(settings={"context_budget": 900})
    await trip.update(settings={"context_budget": 800})
    for day in range(30):
        talk = alice.conversation("weeks", channel="phone")
        at = START + timedelta(days=day)
        await talk.add("user", f"Day {day}: I walked to market {day % 7} with my brother Tom.", occurred_at=at)
        await talk.add("assistant", f"Good to hear about market {day % 7}!", occurred_at=at + timedelta(minutes=1))
    await store.derive()
    await alice.conversation("moved").add("user", "I live in Porto now. My sister Clara works as a nurse.")
    await store.derive()
    await trip.summarize(1, 5)
    await alice.add_fact("The user keeps 7 hens.", type="preference", confidence=0.9)
    nine = await alice.add_fact("The user keeps 9 hens.", type="preference", valid_from=START)
    brown = await alice.edit_fact(nine, text="The user keeps nine brown hens.")
    await alice.edit_fact(brown, importance="pinned", expires_at=START + timedelta(days=9999))
    peanuts = next(fact for fact in await alice.facts() if "peanut" in fact.text)
    change = (await alice.fact_history(await alice.retract_fact(peanuts)))[-1]
    await alice.undo(change)
    await alice.retract_fact(next(fact for fact in await alice.facts() if "Clara" in fact.text))
    await trip.clear()
    await trip.add("user", "This is not derived yet.")
    return alice


def stored(url: str, user: str = "alice") -> dict[str, list[Any]]:
    found = {}
    with psycopg.connect(url, autocommit=True) as connection:
        for table in EVERY:
            statement = f"SELECT to_jsonb(t) - %s::text[] FROM {table} t WHERE user_id = %s ORDER BY 1"
            values = [HERE.get(table, []), str(ids.user_id(user))]
            found[table] = [row[0] for row in connection.execute(statement, values)]
    return found


def lines_of(path: Path) -> Lines:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path: Path, lines: list[dict[str, Any] | str]) -> Path:
    """Write lines, and the last one anew where it is a footer, as if the export had been made so."""
    *body, last = [one if isinstance(one, str) else json.dumps(one) for one in lines]
    text = "".join(f"{one}\n" for one in body)
    if isinstance(lines[-1], dict) and lines[-1].get("kind") == "end":
        last = json.dumps(lines[-1] | {"sha256": sha256(text.encode()).hexdigest()})
    path.write_text(f"{text}{last}\n", encoding="utf-8")
    return path


def counts(done: ImportReport) -> tuple[int, int, int]:
    return done.new, done.known, done.skipped


def reasons(done: ImportReport) -> list[str]:
    return [f"{one.where}: {one.reason}" for one in done.problems]


# -- equal


async def test_what_comes_in_again_is_row_for_row_what_went_out(
    store: AsyncMemoryStore,
    url: str,
    other: AsyncMemoryStore,
    twin: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No text is embedded again."""
    alice = await lived_in(store)
    with psycopg.connect(url) as superuser:
        add_missing_rows(superuser, alice.id, EVERY)
    told = await store.export(tmp_path / "all.jsonl")
    monkeypatch.setattr(HashingEmbedder, "embed_documents", lambda *_: pytest.fail("the file has vectors"))
    done = await other.import_file(tmp_path / "all.jsonl")
    assert (counts(done), done.format) == ((told.messages, 0, 0), "memstore")
    assert done.restored == {name: getattr(told, name) for name in EVERYTHING}
    expected, found = stored(url), stored(twin)
    assert all(expected[table] for table in EVERY), "of everything there is something"
    for table in EVERY:
        assert found[table] == expected[table], table
    assert 0.9 in [line.get("confidence") for line in lines_of(tmp_path / "all.jsonl")], "as it was given"
    await other.export(tmp_path / "again.jsonl")
    assert lines_of(tmp_path / "again.jsonl")[1:-1] == lines_of(tmp_path / "all.jsonl")[1:-1]


QUESTIONS = ("Where do I live?", "Which tram goes uphill on day 40?", "market with Tom", "hens", "peanuts", "zzz")


async def test_recall_and_contexts_are_equal_to_the_last_digit_now_and_in_the_past(
    store: AsyncMemoryStore, other: AsyncMemoryStore, tmp_path: Path
) -> None:
    alice = await lived_in(store)
    await alice.export(tmp_path / "alice.jsonl.gz")
    await other.import_file(tmp_path / "alice.jsonl.gz")
    again = other.user("alice")
    histories = [await alice.fact_history(fact) for fact in await alice.facts()]
    moments = [None, *sorted(change.at for history in histories for change in history)]
    for as_of in (moments[0], moments[1], moments[len(moments) // 2], moments[-1]):
        for question in QUESTIONS:
            found = await alice.recall(question, limit=30, as_of=as_of)
            assert await again.recall(question, limit=30, as_of=as_of) == found
            for name in ("lisbon 🚋", "weeks"):
                context = await alice.conversation(name).context(question, budget=700, as_of=as_of)
                twin = await again.conversation(name).context(question, budget=700, as_of=as_of)
                assert json.dumps(twin.messages) == json.dumps(context.messages)
        assert await again.facts(state="all", as_of=as_of) == await alice.facts(state="all", as_of=as_of)
    assert found


async def test_what_was_derived_is_not_derived_again_and_what_was_not_is(
    store: AsyncMemoryStore, url: str, other: AsyncMemoryStore, twin: str, tmp_path: Path
) -> None:
    await lived_in(store)
    await store.user("bob").conversation("c").add("user", "Nothing of this is derived.")
    await store.export(tmp_path / "all.jsonl")
    await other.import_file(tmp_path / "all.jsonl")
    assert (await other.stats())["pending"] == (await store.stats())["pending"] == 6
    assert (await other.derive()).messages == (await store.derive()).messages == 2
    assert rows(twin, "alice", "bob") == rows(url, "alice", "bob")
    assert (await other.derive()).messages == 0


async def test_a_second_import_adds_nothing_also_where_the_store_has_gone_on(
    store: AsyncMemoryStore, other: AsyncMemoryStore, twin: str, tmp_path: Path
) -> None:
    alice = await lived_in(store)
    await alice.export(tmp_path / "a.jsonl")
    first = await other.import_file(tmp_path / "a.jsonl")
    again = await other.import_file(tmp_path / "a.jsonl")
    assert (counts(again), again.restored) == ((0, first.new, 0), {})
    bob = other.user("alice")
    await bob.conversation("weeks").add("user", "I live in Faro now.")
    await other.derive()
    before = stored(twin)
    again = await other.import_file(tmp_path / "a.jsonl")
    assert (counts(again), again.restored) == ((0, first.new, 0), {})
    assert stored(twin) == before


async def test_an_import_that_was_cut_off_is_ended_by_the_next(
    store: AsyncMemoryStore,
    url: str,
    other: AsyncMemoryStore,
    twin: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alice = await lived_in(store)
    await alice.export(tmp_path / "a.jsonl")
    whole = (tmp_path / "a.jsonl").read_bytes()
    monkeypatch.setattr(reader, "MAX_BATCH_ITEMS", 3)
    for share in (0.3, 0.6, 0.95):
        (tmp_path / "cut.jsonl").write_bytes(whole[: int(len(whole) * share)])
        done = await other.import_file(tmp_path / "cut.jsonl")
        assert any("the export is cut off" in reason for reason in reasons(done))
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(whole)[:-200])
    assert any("damaged" in reason for reason in reasons(await other.import_file(tmp_path / "cut.jsonl.gz")))
    assert counts(await other.import_file(tmp_path / "a.jsonl"))[2] == 0
    assert stored(twin) == stored(url)


# -- some of it


async def test_without_what_was_made_of_messages_it_is_made_there(
    store: AsyncMemoryStore, url: str, other: AsyncMemoryStore, twin: str, tmp_path: Path
) -> None:
    alice = store.user("alice")
    for day in range(12):
        said = f"Day {day}: I walked to market {day}."
        await alice.conversation("c").add("user", said, occurred_at=START + timedelta(days=day))
    await store.derive()
    await alice.add_fact("The user keeps 7 hens.", type="preference")
    told = await alice.export(tmp_path / "a.jsonl", derived=False)
    assert (told.messages, told.summaries, told.facts) == (12, 0, 1)
    await other.import_file(tmp_path / "a.jsonl")
    assert (await other.stats())["pending"] == 3
    await other.derive()
    assert rows(twin, "alice") == rows(url, "alice")


@pytest.mark.parametrize("settings", [HASHING, {"embedder": "hashing:64"}, {"embedder": "none"}])
async def test_vectors_that_are_not_there_or_of_another_embedder_are_made_there(
    store: AsyncMemoryStore, twin: str, tmp_path: Path, settings: dict[str, str]
) -> None:
    alice = await lived_in(store)
    same = settings == HASHING
    await alice.export(tmp_path / "a.jsonl")
    async with await AsyncMemoryStore.open(twin, settings=settings) as other:
        await other.import_file(tmp_path / "a.jsonl")
        stats, expected = await other.stats(), await store.stats()
        has_vectors = settings["embedder"] != "none"
        assert (stats["chunks"], stats["vectors"]) == (expected["chunks"], expected["vectors"] * has_vectors)
        found = await other.user("alice").recall("market with Tom")
        assert found
        assert (found == await alice.recall("market with Tom")) is same


async def test_who_and_what_is_unknown_is_told_and_leaves_no_file(store: AsyncMemoryStore, tmp_path: Path) -> None:
    await store.user("alice").conversation("c").add("user", "Hello.")
    path = tmp_path / "a.jsonl"
    with pytest.raises(InvalidInput, match="no user 'bob'"):
        await store.export(path, users=["alice", "bob"])
    with pytest.raises(InvalidInput, match="cannot be written"):
        await store.export(tmp_path / "nowhere" / "a.jsonl")
    assert list(tmp_path.iterdir()) == []
    path.write_text("of before")
    with pytest.raises(InvalidInput):
        await store.export(path, users=["bob"])
    assert path.read_text() == "of before"


async def test_a_file_is_its_owners_alone_and_a_stream_will_do(
    store: AsyncMemoryStore, other: AsyncMemoryStore, tmp_path: Path
) -> None:
    await store.user("alice").conversation("c").add("user", "Hello.")
    await store.export(tmp_path / "a.jsonl")
    assert stat.S_IMODE((tmp_path / "a.jsonl").stat().st_mode) == 0o600
    stream = io.BytesIO()
    await store.export(stream)
    for data in (stream.getvalue(), gzip.compress(stream.getvalue())):
        done = await other.import_file(io.BytesIO(data))
        assert (done.new + done.known, done.skipped) == (1, 0)
    for nonsense in (b"", b'{"conversation": "c", "role": "user", "content": "x"}\n'):
        with pytest.raises(InvalidInput, match="is no export"):
            await other.import_file(io.BytesIO(nonsense))


# -- beside what is there


async def test_of_a_whole_backup_one_user_is_taken_in(
    store: AsyncMemoryStore, other: AsyncMemoryStore, tmp_path: Path
) -> None:
    path = tmp_path / "all.jsonl"
    await lived_in(store)
    await store.user("bob").conversation("c").add("user", "I live in Cork.")
    await store.user("bob").documents().put(("a",), "b", {"c": 1})
    await store.export(path)
    done = await other.import_file(path, user="bob")
    assert (done.new, done.restored["documents"], done.skipped) == (1, 1, 0)
    assert done.ignored["lines of other users"] > 10
    assert [name async for name in other.users()] == ["bob"]
    with pytest.raises(InvalidInput, match="nothing of a user 'carol'"):
        await other.import_file(path, user="carol")


async def test_what_is_in_conflict_is_told_and_never_overwritten(
    store: AsyncMemoryStore, other: AsyncMemoryStore, twin: str, tmp_path: Path
) -> None:
    alice = await lived_in(store)
    await alice.export(tmp_path / "a.jsonl")
    await other.import_file(tmp_path / "a.jsonl")
    before = stored(twin)
    lines = lines_of(tmp_path / "a.jsonl")
    message = next(line for line in lines if line["kind"] == "message" and line.get("external_id") == "a")
    message["content"] = "I live in York."
    summary = next(line for line in lines if line["kind"] == "summary")
    summary["text"] = "Nothing was said." + " " * len(summary["text"])
    fact = next(line for line in lines if line["kind"] == "fact" and "hens" in line["text"])
    fact["confidence"] = 0.1
    conversation = next(line for line in lines if line["kind"] == "conversation" and line.get("title"))
    conversation["title"] = "To York"
    message["chunks"] = []
    done = await other.import_file(write(tmp_path / "b.jsonl", [*lines]))
    told = "\n".join(reasons(done))
    assert f"b.jsonl, line {lines.index(message) + 1}: the message is known with another" in told
    assert done.skipped == 1
    assert stored(twin) == before


async def test_a_later_export_of_a_conversation_that_went_on_is_added_and_derived_here(
    store: AsyncMemoryStore, other: AsyncMemoryStore, tmp_path: Path
) -> None:
    talk = store.user("alice").conversation("c")
    await talk.add("user", "I live in Leeds.", occurred_at=START)
    await store.derive()
    await store.export(tmp_path / "a.jsonl")
    await other.import_file(tmp_path / "a.jsonl")
    await talk.add("user", "I live in Porto.", occurred_at=START + timedelta(days=1))
    await store.derive()
    await store.export(tmp_path / "b.jsonl")
    done = await other.import_file(tmp_path / "b.jsonl")
    assert (done.new, done.known) == (1, 1)
    assert done.ignored["facts of conversations that are derived here"] == 1
    assert reasons(done) == []
    await other.derive()
    assert [fact.text for fact in await other.user("alice").facts()] == [
        fact.text for fact in await store.user("alice").facts()
    ]
    assert (await other.stats())["chunks"] == (await store.stats())["chunks"]
    assert (await other.user("alice").conversation("c").add("user", "Here we are.")).seq == 3


async def test_new_messages_take_numbers_after_those_that_are_still_to_come(
    store: AsyncMemoryStore, other: AsyncMemoryStore, tmp_path: Path
) -> None:
    talk = store.user("alice").conversation("c")
    await talk.add_many([{"role": "user", "content": f"say {n}"} for n in range(20)])
    await store.export(tmp_path / "a.jsonl")
    lines = (tmp_path / "a.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "cut.jsonl").write_text("".join(lines[:10]))
    await other.import_file(tmp_path / "cut.jsonl")
    late = await other.user("alice").conversation("c").add("user", "meanwhile")
    await other.derive()
    assert late.seq == 21
    assert counts(await other.import_file(tmp_path / "a.jsonl"))[2] == 0
    assert [one.seq for one in await other.user("alice").conversation("c").messages()] == list(range(1, 22))


# -- erased here


@pytest.mark.parametrize("erased", ["message", "conversation", "user"])
async def test_what_was_erased_does_not_come_back_with_an_export(
    store: AsyncMemoryStore, url: str, tmp_path: Path, erased: str
) -> None:
    alice = await lived_in(store)
    told = await store.export(tmp_path / "all.jsonl")
    place = alice.conversation("lisbon 🚋")
    if erased == "message":
        certificate = await alice.erase_message((await place.messages())[0])
    else:
        certificate = await (place.erase() if erased == "conversation" else alice.erase())
    await store.derive()
    before = stored(url)
    done = await store.import_file(tmp_path / "all.jsonl")
    assert (done.new, done.known) == (0, told.messages - certificate.counts["messages"])
    gone = [certificate.counts[table] for table in ("messages", "summaries", "facts")]
    assert all(gone)
    assert done.ignored["erased before"] == sum(gone) + certificate.counts.get("documents", 0)
    assert (done.restored, reasons(done)) == ({}, [])
    await store.derive()
    assert stored(url) == before
    assert (await store.verify_erasure(certificate)).is_clean
    assert holding(store.url, "peanut") == {}
    assert [one.problem for one in await store.backfills.verify()] == []


async def test_what_was_said_elsewhere_of_an_erased_conversation_comes_in_and_is_derived_here(
    store: AsyncMemoryStore, other: AsyncMemoryStore, tmp_path: Path
) -> None:
    alice = store.user("alice")
    place = alice.conversation("c", title="About peanuts")
    said = [{"role": "user", "content": f"I'm allergic to peanuts {n}.", "external_id": str(n)} for n in range(3)]
    await place.add_many(said)
    await alice.add_fact("The user keeps 7 hens.", type="preference")
    await other.user("alice").conversation("c", title="About peanuts").add_many(said)
    await other.user("alice").conversation("c").add("user", "I work as a nurse in Leeds.", external_id="more")
    await other.derive()
    await other.export(tmp_path / "all.jsonl")
    await place.erase()
    done = await store.import_file(tmp_path / "all.jsonl")
    assert (done.new, done.ignored["erased before"]) == (1, 6), "three messages, and what they said"
    assert (await store.derive()).failed == ()
    [found] = await alice.conversations()
    assert [one.text for one in await place.messages()] == ["I work as a nurse in Leeds."]
    assert (found.name, found.title) == ("c", None)
    assert [fact.text for fact in await alice.facts() if "nurse" in fact.text]
    assert holding(store.url, "peanut") == {}
    assert (await store.import_file(tmp_path / "all.jsonl")).new == 0


def of_kind(lines: Lines, kind: str, **columns: Any) -> dict[str, Any]:
    """Give the first line of a kind with other columns; None takes a key away."""
    line = next(line for line in lines if line["kind"] == kind)
    return {key: value for key, value in (line | columns).items() if value is not None}


def changed(lines: Lines, kind: str, **columns: Any) -> Lines:
    place = next(number for number, line in enumerate(lines) if line["kind"] == kind)
    return [*lines[:place], of_kind(lines, kind, **columns), *lines[place + 1 :]]


BAD_LINES: list[tuple[str, str]] = [
    ('{"kind": "dream"}', "Input tag 'dream'"),
    ('{"kind": "mess', "Invalid JSON"),
    ('{"kind": NaN}', "the line must be JSON"),
    ("x" * 52_000_000, "the line is longer than"),
]
LONG = b64encode(struct.pack("<256f", 100, *[0] * 255)).decode()
BAD_COLUMNS: list[tuple[str, dict[str, Any], str]] = [
    ("message", {"content": "a\0b"}, "holds a NUL"),
    ("message", {"content": "\ud800"}, "Invalid JSON"),
    ("message", {"content": "x" * 10_000_000}, "may have 4,000,000"),
    ("message", {"seq": 2**40}, "seq: Input should be less than"),
    ("message", {"id": str(uuid4())}, "message: its id does not follow"),
    ("user", {"user": "bob"}, "user: its id"),
    ("fact", {"text": "The user is rich."}, "fact: its id"),
    ("summary", {"to_seq": 3}, "summary: its id"),
    ("conversation", {"watermarks": {"chunks": {"seq": 99}}}, "a watermark stands beyond the last message"),
    ("fact", {"type": "plan\n</facts>"}, "type: it cannot name a type"),
]


def chunk(**columns: Any) -> dict[str, Any]:
    return {"start": 0, "stop": 1, "recorded_at": START.isoformat()} | columns


async def two_messages(store: AsyncMemoryStore, path: Path) -> Lines:
    talk = store.user("alice").conversation("c")
    await talk.add("user", "I live in Leeds.", occurred_at=START, external_id="a")
    await talk.add("user", "I'm allergic to peanuts.", occurred_at=START + timedelta(days=1), external_id="z")
    await store.derive()
    await store.export(path)
    return lines_of(path)


async def test_no_message_of_an_export_is_recorded_later_than_now(
    store: AsyncMemoryStore, other: AsyncMemoryStore, tmp_path: Path
) -> None:
    """An erasure takes the receipts since the message was recorded, so a clock that was ahead must not hide them."""
    lines = await two_messages(store, tmp_path / "a.jsonl")
    ahead = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    assert (await other.import_file(write(tmp_path / "b.jsonl", changed(lines, "message", recorded_at=ahead)))).new == 2
    with psycopg.connect(other.url) as connection:
        [recorded] = connection.execute("SELECT bool_and(recorded_at <= now()) FROM messages").fetchall()
    assert recorded == (True,)


async def test_every_line_that_cannot_be_read_is_named_and_costs_itself(
    store: AsyncMemoryStore, url: str, other: AsyncMemoryStore, twin: str, tmp_path: Path
) -> None:
    lines = await two_messages(store, tmp_path / "a.jsonl")
    bad: list[dict[str, Any] | str] = [text for text, _ in BAD_LINES]
    bad += [of_kind(lines, kind, **columns) for kind, columns, _ in BAD_COLUMNS]
    done = await other.import_file(write(tmp_path / "b.jsonl", [*lines[:-1], *bad, lines[-1]]))
    told = sorted(reasons(done), key=lambda reason: int(reason.split()[2].rstrip(":")))
    wanted = [reason for _, reason in BAD_LINES] + [reason for *_, reason in BAD_COLUMNS]
    assert len(told) == len(wanted)
    for number, (reason, problem) in enumerate(zip(wanted, told, strict=True), len(lines)):
        assert problem.startswith(f"b.jsonl, line {number}: ")
        assert reason in problem
        assert len(problem) < 5000
    assert stored(twin) == stored(url)


HOSTILE: dict[str, tuple[Callable[[Lines], Any], str]] = {
    "chunk": (lambda lines: changed(lines, "message", chunks=[chunk(stop=10**6)]), "its chunk 0 is 0 to 1000000"),
    "vector": (lambda lines: changed(lines, "message", chunks=[chunk(vector=LONG)]), "256 components of length 1"),
    "missing_source": (lambda lines: [line for line in lines if line["kind"] != "message"], "a message that says it"),
    "setting": (lambda lines: changed(lines, "conversation", settings={"sections": 5}), "its settings are left out"),
    "user": (lambda lines: changed(lines, "user", settings={"fact_types": 5}), "its settings are left out"),
    "second_footer": (lambda lines: [*lines, *lines[1:]], "lines after the last line"),
    "changed": (lambda lines: [*changed(lines, "conversation", title="Other")[:-1], json.dumps(lines[-1])], "SHA-256"),
}


@pytest.mark.parametrize("attack", HOSTILE)
async def test_what_does_not_fit_the_rest_is_named_and_costs_itself(
    store: AsyncMemoryStore, other: AsyncMemoryStore, tmp_path: Path, attack: str
) -> None:
    change, reason = HOSTILE[attack]
    lines = await two_messages(store, tmp_path / "a.jsonl")
    done = await other.import_file(write(tmp_path / "b.jsonl", change(lines)))
    told = "\n".join(reasons(done))
    assert reason in told
    assert "b.jsonl, line " in told
    if attack != "missing_source":
        assert done.new >= 1, "the rest is there"
        await other.derive()
        alice = other.user("alice")
        assert await alice.recall("peanuts")
        assert (await alice.conversation("c").context("peanuts", budget=400)).messages
        assert len(await alice.conversation("c").recent()) == done.new
        assert await alice.facts(state="all", as_of=START) == []


async def test_what_is_no_export_of_a_known_version_is_refused_whole(
    store: AsyncMemoryStore, other: AsyncMemoryStore, tmp_path: Path
) -> None:
    await store.user("alice").conversation("c").add("user", "Hello.")
    await store.export(tmp_path / "a.jsonl")
    lines = lines_of(tmp_path / "a.jsonl")
    lines[0]["version"] = 2
    with pytest.raises(InvalidInput, match="version 2, and this memstore reads version 1"):
        await other.import_file(write(tmp_path / "b.jsonl", [*lines]))
    with pytest.raises(InvalidInput, match="is no export"):
        await other.import_file(write(tmp_path / "c.jsonl", [*lines[1:]]), format="memstore")
    assert [name async for name in other.users()] == []


# -- kept apart, kept back


async def test_an_export_holds_the_users_that_were_asked_for_and_no_secret(
    server_url: str, url: str, tmp_path: Path
) -> None:
    secret = {"embedder": "hashing:256", "openai_api_key": "key-of-mine"}
    async with await AsyncMemoryStore.open(url, settings=secret) as store:
        for name in ("ann", "bob"):
            await store.user(name).conversation("c").add("user", f"I am {name}, and my word is {name}-word.")
            await store.user(name).conversation("c").context("Who am I?", budget=500)
        await store.derive()
        await store.export(tmp_path / "a.jsonl", users=["ann"])
    text = (tmp_path / "a.jsonl").read_text()
    assert "ann-word" in text
    assert "bob" not in text
    for hidden in ("key-of-mine", url, "receipt", "postgres"):
        assert hidden not in text
    assert {line["kind"] for line in lines_of(tmp_path / "a.jsonl")} <= {
        "export", "user", "conversation", "message", "summary", "fact", "end"
    }  # fmt: skip


async def test_a_user_is_exported_as_of_one_moment(
    store: AsyncMemoryStore, other: AsyncMemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = store.user("alice")
    for name in ("a", "b"):
        await alice.conversation(name).add_many([{"role": "user", "content": f"{name} {n}"} for n in range(10)])

    class Meddling(io.BytesIO):
        """Changes what is stored as soon as something of the user is written."""

        def write(self, data: Any, /) -> int:
            if b'"kind":"conversation"' in data:
                with psycopg.connect(store.url) as connection:
                    connection.execute("UPDATE messages SET text = 'meddled' WHERE user_id = %s", [alice.id])
                    connection.execute("DELETE FROM messages WHERE user_id = %s AND seq > 5", [alice.id])
            return super().write(data)

    monkeypatch.setattr("memstore.export.writer.BUFFER_BYTES", 1)
    monkeypatch.setattr("memstore._sync.export.writer.BUFFER_BYTES", 1)
    stream = Meddling()
    told = await store.export(stream)
    assert told.messages == 20
    assert b"meddled" not in stream.getvalue()
    assert len(await alice.conversation("a").messages()) == 5


async def test_a_list_of_memories_goes_out_and_comes_in_again(store: AsyncMemoryStore, tmp_path: Path) -> None:
    alice = store.user("alice")
    for day, text in enumerate(("I'm allergic to walnuts.", "Always answer me in German.", "I live in Porto."), 1):
        await alice.conversation("c").add("user", text, occurred_at=datetime(2025, 3, day, 12, tzinfo=UTC))
    await store.derive()
    listed = await alice.memory_list()
    assert listed.splitlines()[:4] == [
        "## Constraint",
        "[2025-03-01] - The user is allergic to walnuts.",
        "",
        "## Instructions",
    ]
    assert listed.splitlines()[4:] == [
        "[2025-03-02] - Always answer me in German.",
        "",
        "## Identity",
        "[2025-03-03] - The user lives in Porto.",
    ]
    (tmp_path / "memories.md").write_text(listed)
    report = await store.import_file(tmp_path / "memories.md", user="bob")
    assert (report.new, report.skipped) == (3, 0)
    await store.derive()
    again = await store.user("bob").memory_list()
    assert [line for line in again.splitlines() if line[:1] == "["] == [
        line for line in listed.splitlines() if line[:1] == "["
    ]
    assert await store.user("carol").memory_list() == ""
