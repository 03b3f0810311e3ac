"""memstore's own format: what comes back, what is refused with which words, and in how much memory."""

import gzip
import json
import re
import tracemalloc
from datetime import UTC, datetime

import pytest

from memstore.ingest.importers import Record
from memstore.ingest.importers.jsonl import Jsonl
from tests.unit.importing import Samples, read_file

GOOD = {"conversation": "c", "role": "user", "content": "hello"}


SAMPLE = {"conversation": "c", "role": "user", "content": "hello"}
SAMPLES: Samples = {
    "jsonl": ("a.jsonl", SAMPLE),
    "jsonl packed": ("a.jsonl.gz", gzip.compress(json.dumps(SAMPLE).encode())),
}


@pytest.fixture
def read(tmp_path):
    return lambda data, name="history.jsonl": read_file(Jsonl, tmp_path / name, data)


def line(**more: object) -> str:
    return json.dumps(GOOD | more) + "\n"


def test_a_full_line_comes_back_in_the_keys_of_memstore_jsonl(read):
    tool_calls = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    given = {
        "user": "alice",
        "conversation": "trip",
        "role": "assistant",
        "content": [{"type": "text", "text": "Here."}],
        "name": "Guide",
        "occurred_at": "2024-05-01T09:30:00+02:00",
        "external_id": "m1",
        "tool_calls": tool_calls,
        "tool_call_id": "t1",
        "metadata": {"a": [1, None, 2.5]},
        "tags": ["x"],
    }
    when = datetime(2024, 5, 1, 7, 30, tzinfo=UTC)
    message = {key: value for key, value in given.items() if key not in ("user", "conversation")}
    assert read(json.dumps(given)) == [
        Record(
            user="alice",
            conversation="trip",
            message=message | {"occurred_at": when},
            where="history.jsonl, line 1",
        )
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_bom_blank_lines_line_ends_and_a_missing_last_one_are_fine(read, end):
    lines = ["\ufeff" + line().strip(), "", "  \t", line(content="ümlaut\u2028\x85").strip()]
    found = read(end.join(lines))
    assert [(record.message["content"], record.where[-6:]) for record in found] == [
        ("hello", "line 1"),
        ("ümlaut\u2028\x85", "line 4"),
    ]


# What is wrong with a message itself is told where every message is checked: tests/client/test_messages.py.
BAD = {
    "broken": ('{"conversation":', r"not JSON \(Expecting value, at character 18\); write each message as one JSON"),
    "not_utf8": (b'{"conversation":"\xff"}', "byte 18 of the line is not UTF-8; save"),
    "no_conversation": ('{"role":"user","content":"x"}', '"conversation" is missing; add it'),
    "blank_conversation": (line(conversation=" "), "no name for a conversation"),
    "naive_time": (line(occurred_at="2024-05-01T09:30:00"), "no zone: add Z"),
    "milliseconds": (line(occurred_at=1714555800000), "divided by 1000"),
    "huge_integer": (line(metadata={}).replace("{}", '{"a":' + "9" * 5000 + "}"), "a number in it is too long"),
    "too_deep_to_be_json_by_count": ('{"a": ' * 300 + "1" + "}" * 300, "nested too deep"),
    "too_deep_to_parse": ("[" * 100_000, "nested too deep"),
}


def test_a_bad_line_is_named_and_the_good_ones_come(read):
    bad = [text if isinstance(text, bytes) else text.encode() for text, _ in BAD.values()]
    found = read(b"".join(one.strip() + b"\n" for one in [line().encode(), *bad, line(user=None, name=None).encode()]))
    assert [found[0].message["content"], found[-1].message.keys()] == ["hello", {"role", "content", "external_id"}]
    for number, (skipped, (_, words)) in enumerate(zip(found[1:-1], BAD.values(), strict=True), 2):
        assert skipped.where == f"history.jsonl, line {number}"
        assert re.search(words, skipped.reason), skipped.reason


def test_a_huge_line_is_skipped_without_being_held(tmp_path, monkeypatch):
    monkeypatch.setattr("memstore.ingest.importers.jsonl.MAX_LINE_BYTES", 1024 * 1024)
    path = tmp_path / "huge.jsonl"
    with path.open("wb") as file:
        file.write(b'{"content":"')
        for _ in range(50):
            file.write(b"x" * 1024 * 1024)
        file.write(b'"}\n' + line().encode())
    tracemalloc.start()
    skipped, good = Jsonl(path).read()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "longer than 1,048,576 bytes" in skipped.reason
    assert (skipped.where, good.where) == ("huge.jsonl, line 1", "huge.jsonl, line 2")
    assert peak < 8 * 1024 * 1024


def test_a_gzip_that_is_cut_off_gives_what_came_before(read):
    lines = [line(content=f"{number} {number * 7919 % 1000}") for number in range(5000)]
    packed = gzip.compress("".join(lines).encode())
    *records, skipped = read(packed[: len(packed) // 2], name="history.jsonl.gz")
    assert 1000 < len(records) < 5000
    assert [record.message["content"] for record in records] == [
        json.loads(x)["content"] for x in lines[: len(records)]
    ]
    assert "damaged" in skipped.reason


# --- ids made for messages that bring none --------------------------------------------------------------------------


def ids(records) -> list[str]:
    return [record.message["external_id"] for record in records]


def test_made_ids_are_the_same_at_every_import(read):
    data = line() + line() + line(content="other") + line(conversation="d") + line(role="assistant") + line(name="N")
    first = ids(read(data))
    assert ids(read(data, name="renamed.jsonl")) == first
    assert len(set(first)) == 6
    assert all(made.startswith("line:") for made in first)


def test_made_ids_follow_from_what_was_said_where_and_when_and_from_nothing_else(read):
    data = line() + line()
    assert ids(read(data + line(content="new") + line()))[:2] == ids(read(data)), "also where a file grows"
    assert len(set(ids(read(line() + line(user="alice") + line(user="bob"))))) == 1
    assert ids(read(line(tags=["a"], metadata={"b": 1}))) == ids(read(line()))
    calls = [line(content=None, role="assistant", tool_calls=[{"id": name}]) for name in "ab"]
    assert ids(read("".join(calls))) == ids(read(calls[0])) + ids(read(calls[1]))
    times = ["2024-05-01T09:30:00+02:00", "2024-05-01T07:30:00Z", 1714548600]
    made = {ids(read(line(occurred_at=time)))[0] for time in times}
    assert len(made) == 1, "the same instant, however it is written"
    assert ids(read(line(occurred_at="2024-05-01T07:30:01Z")))[0] not in made
