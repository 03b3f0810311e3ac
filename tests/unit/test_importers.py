"""What all importers share: finding the one for a file, opening it, and reading long lists piece by piece."""

import gzip
import io
import json
import os
import re
import tracemalloc
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from memstore.errors import InvalidInput
from memstore.ingest.importers import IMPORTERS, ImportOptions, ImportProblem, importer_for
from memstore.ingest.importers.base import parse_time
from memstore.ingest.importers.files import OpenFile, numbered_values
from tests.unit.importing import texts, zipped

LINE = b'{"conversation":"c","role":"user","content":"hello"}\n'
DISCORD = json.dumps(
    {
        "guild": {"id": "1"},
        "messages": [{"id": "7", "type": "Default", "timestamp": "2024-01-15T10:30:00+00:00", "content": "hello",
                      "author": {"id": "5", "name": "ann"}, "reference": {"messageId": "6"}}],
    },
    indent=1,
).encode()  # fmt: skip
GEMINI_CLI = json.dumps(
    {"sessionId": "s", "messages": [{"id": "1", "type": "user", "content": "a"}, {"type": "gemini", "content": "b"}]},
    indent=1,
).encode()
SEARCHES = json.dumps(
    [{"header": "Search", "title": "Visited Gemini", "time": "2026-07-20T15:10:00Z", "products": ["Search"]}]
).encode()
TREE = b'[{"title":"t","mapping":{}}]'

json_values_ = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)

objects = st.dictionaries(st.text(), json_values_, max_size=3)


@pytest.fixture
def make(tmp_path):
    def write(name: str, data: bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


@pytest.mark.parametrize(
    ("name", "data", "format"),
    [
        ("history.jsonl", LINE, "jsonl"),
        ("history.txt", b"\xef\xbb\xbf\r\n" + LINE, "jsonl"),
        ("history.jsonl.gz", gzip.compress(LINE), "jsonl"),
        ("history.jsonl", b"{broken\n", "jsonl"),
        ("history.jsonl", b"{broken\n" + LINE, "jsonl"),
        ("one.jsonl", LINE.replace(b"hello", b"x" * 100_000), "jsonl"),
        ("conversations.json", TREE, "chatgpt"),
        ("renamed.json", b"\xef\xbb\xbf \n" + TREE, "chatgpt"),
        ("conversations.json.gz", gzip.compress(TREE), "chatgpt"),
        ("conversations.json", b"[ ]", "chatgpt"),
        (
            "one.json",
            json.dumps({"title": "t", "mapping": {"a": None, "b": {"message": None}}}, indent=1).encode(),
            "chatgpt",
        ),
        ("one.json", json.dumps({"uuid": "c", "chat_messages": []}, indent=1).encode(), "claude"),
        (
            "chat.json",
            json.dumps({"id": "", "messages": [{"role": "user", "content": "a"}]}, indent=1).encode(),
            "openai",
        ),
        ("chats.json", json.dumps([{"chat": {"messages": [{"role": "user", "content": "a"}]}}]).encode(), "openai"),
        ("conversations.json", b'[{"current_node":"x"}]', "chatgpt"),
    ],
)
def test_the_format_is_found(make, name, data, format):
    assert importer_for(make(name, data)).name == format


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("notes.txt", b"Dear diary"),
        ("picture.bin", bytes(range(256))),
        ("list.json", b"[1, 2]"),
        ("discord.json", DISCORD),
        ("session.json", GEMINI_CLI),
        ("activity.json", SEARCHES),
        ("message.json", b'{\n "role": "user",\n "content": "hello"\n}'),
        ("es.json", b'{"mapping": {"properties": {"role": "user"}}}'),
        ("rows.jsonl", b'{"a": 1}\n{"a": 2}\n'),
    ],
)
def test_a_file_of_no_known_format_is_refused_with_the_formats(make, name, data):
    with pytest.raises(InvalidInput, match=r"none of the known formats \(.* with --format"):
        importer_for(make(name, data))
    with pytest.raises(InvalidInput, match=r"known are: auto, .*, jsonl, chatgpt"):
        importer_for(make("a.jsonl", LINE), "csv")


@pytest.mark.parametrize("format", ["auto", *(importer.name for importer in IMPORTERS)])
def test_what_is_no_readable_file_is_refused_in_words(tmp_path, format):
    os.mkfifo(tmp_path / "pipe")
    for path, words in [
        (tmp_path / "missing", "there is no file"),
        (tmp_path / "pipe", "there is no file"),
        (tmp_path / ("x" * 300), "there is no file"),
        (Path("nul\0"), "there is no file"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            importer_for(path, format)


def locked(data: bytes) -> bytes:
    """Return a zip of one file as one that wants a password."""
    flags = data.index(b"PK\x01\x02") + 8
    return data[:flags] + b"\x01" + data[flags + 1 :]


def test_what_is_wrong_with_a_file_of_no_known_format_is_said(make):
    for name, data, words in (
        ("notes.txt", b"", "is empty"),
        ("history.json", b"\n", "is empty"),
        ("export.zip", b"PK\x03\x04nonsense", "is cut off or damaged"),
        ("export.zip", b"nonsense", "is called a zip and is none"),
        ("export.zip", zipped({}), "is a zip without files"),
        ("export.zip", locked(zipped({"conversations.json": b"[]"})), "is damaged or locked"),
        ("chat.gz", gzip.compress(LINE)[:9], "is cut off or damaged"),
    ):
        with pytest.raises(InvalidInput, match=f"^{name} {words}.*; get it whole"):
            importer_for(make(name, data))
    assert importer_for(make("chat.jsonl.gz", gzip.compress(LINE * 99)[:-4])).name == "jsonl"


def test_the_page_has_each_format_with_the_options_that_it_needs():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "importing.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("|") and line.count("`") > 1}
    for importer in IMPORTERS:
        options = set(re.findall(r"`--([\w-]+)`", rows[importer.name])) - {"user"}
        assert options == {name.replace("_", "-") for name in importer.option_names}, importer.name
        assert {field.name for field in fields(ImportOptions)}.issuperset(importer.option_names)


# --- times and texts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("2024-05-01T09:30:00+02:00", datetime(2024, 5, 1, 7, 30, tzinfo=UTC)),
        ("2024-05-01T09:30:00Z", datetime(2024, 5, 1, 9, 30, tzinfo=UTC)),
        ("2024-03-31 02:30:00.5-11:30", datetime(2024, 3, 31, 14, 0, 0, 500_000, tzinfo=UTC)),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (-1.5, datetime(1969, 12, 31, 23, 59, 58, 500_000, tzinfo=UTC)),
        (1714555800.25, datetime(2024, 5, 1, 9, 30, 0, 250_000, tzinfo=UTC)),
    ],
)
def test_times_become_utc(given, meant):
    found = parse_time(given)
    assert found == meant
    assert found.tzinfo is UTC


# --- values, one by one --------------------------------------------------------------------------------------------


def read_values(stream: io.BytesIO | bytes) -> list[Any]:
    """Return what is read, with the place of values and the reason of what is skipped."""
    part = OpenFile("a.json", "a.json", io.BytesIO(stream) if isinstance(stream, bytes) else stream)
    found = numbered_values(part, "item", "again")
    return [one.reason if isinstance(one, ImportProblem) else (one[0][8:], one[1]) for one in found]


@given(st.lists(objects, min_size=1, max_size=4), st.data())
def test_a_list_that_is_cut_off_gives_all_that_is_whole(values, data):
    written = [json.dumps(value).encode() for value in values]
    whole = b"[" + b",".join(written) + b"]"
    end = data.draw(st.integers(1, len(whole) - 1))
    complete = sum(len(b"[" + b",".join(written[:count])) <= end for count in range(1, len(values) + 1))
    *found, reason = read_values(whole[:end])
    assert [value for _, value in found] == values[:complete]
    assert reason.endswith("again")


def test_of_values_that_follow_one_another_a_broken_one_costs_only_its_line():
    found = read_values(b'{"a": 1}\n{"b": \n{"c": "x\n\n{"d":\n 4}\nnonsense\n{"e": 5}')
    assert [one for one in found if isinstance(one, tuple)] == [
        ("line 1", {"a": 1}),
        ("line 5", {"d": 4}),
        ("line 8", {"e": 5}),
    ]
    assert len(found) == 6


def test_a_value_is_bounded_and_the_list_is_not(monkeypatch):
    monkeypatch.setattr("memstore.ingest.importers.files.MAX_VALUE_BYTES", 300_000)
    small = json.dumps({"text": "x" * 1000})
    assert len(read_values(("[" + ",".join([small] * 2000) + "]").encode())) == 2000
    tracemalloc.start()
    (reason,) = read_values(b'["' + b"x" * 3_000_000 + b'"]')
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "larger than 300,000 characters" in reason
    assert peak < 6 << 20


def test_a_folder_is_of_the_format_of_any_file_in_it_and_others_are_named(tmp_path):
    lines = {
        "1/rollout-old.jsonl": [{"id": "old", "instructions": "x"}, {"type": "message", "role": "user"}],
        "2/rollout-new.jsonl": [
            {"timestamp": "2026-11-24T10:00:00Z", "type": "session_meta", "payload": {"id": "new"}},
            {"type": "response_item", "payload": {"type": "message", "role": "user", "content": "Use tabs."}},
        ],
    }
    for name, values in lines.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("\n".join(map(json.dumps, values)))
    codex = importer_for(tmp_path)
    assert codex.name == "codex"
    found = list(codex(tmp_path).read())
    assert texts(found) == ["Use tabs."]
    (problem,) = (one for one in found if isinstance(one, ImportProblem))
    assert problem.where.endswith("1/rollout-old.jsonl")
    assert problem.reason == "it is not of the format codex, and was skipped"
