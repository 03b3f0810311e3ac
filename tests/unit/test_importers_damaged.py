"""Damaged and hostile files of every format: whatever is done to them, reading ends in words, and in bounded memory."""

import gzip
import json
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from memstore.errors import InvalidInput
from memstore.ingest.add import ConversationRef, build_row
from memstore.ingest.importers import (
    IMPORTERS,
    IgnoredContent,
    Importer,
    ImportItem,
    ImportOptions,
    ImportProblem,
    Record,
    importer_for,
)
from tests.unit.importing import ALWAYS, junk, reasons, texts, zipped

READING = ImportOptions(me="Ann", timezone=ZoneInfo("Europe/Berlin"), date_order="dmy")

TREE = {
    "a": {"parent": None, "message": None},
    "b": {
        "parent": "a",
        "message": {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["hello"]}},
    },
}
CHATGPT = [{"id": "c", "title": "T", "create_time": 1.5, "mapping": TREE, "current_node": "b"}]
CLAUDE = [{"uuid": "c", "name": "T", "chat_messages": [{"uuid": "m", "sender": "human", "text": "hello"}]}]
GEMINI = [{"title": "Prompted hello", "time": "2026-07-26T06:00:00Z", "products": ["Gemini Apps"]}]
OPENAI = {"messages": [{"role": "user", "content": "hello"}]}
LANGCHAIN = [{"type": "human", "data": {"content": "hello"}}]
SLACK = {
    "channels.json": [{"id": "C1", "name": "general"}],
    "general/2024-05-01.json": [{"user": "U1", "text": "hello", "ts": "1714564800.1"}],
}
CLAUDE_CODE = {"type": "user", "uuid": "u", "parentUuid": None, "sessionId": "s", "message": {"content": "hello"}}
CODEX = [
    {"timestamp": "2026-11-24T15:03:48Z", "type": "session_meta", "payload": {"id": "s", "source": "cli"}},
    {
        "timestamp": "2026-11-24T15:03:49Z",
        "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        "metadata": {"client_authored": False},
    },
]
JSONL = {"conversation": "c", "role": "user", "content": "hello"}
CHAT = "13.01.24, 10:00 - Ann: hello\n13.01.24, 10:01 - Bob: hello\n"


def dumped(value: object) -> bytes:
    return json.dumps(value).encode()


SAMPLES = {
    "jsonl": ("a.jsonl", dumped(JSONL)),
    "jsonl packed": ("a.jsonl.gz", gzip.compress(dumped(JSONL))),
    "chatgpt": ("conversations.json", dumped(CHATGPT)),
    "chatgpt zip": ("a.zip", zipped({"conversations-0.json": dumped(CHATGPT), "conversations-1.json": b"[]"})),
    "claude": ("conversations.json", dumped(CLAUDE)),
    "claude zip": ("a.zip", zipped({"conversations.json": dumped(CLAUDE)})),
    "claude-code": ("a.jsonl", dumped(CLAUDE_CODE)),
    "codex": ("rollout-a.jsonl", b"\n".join(map(dumped, CODEX))),
    "gemini": ("MyActivity.json", dumped(GEMINI)),
    "gemini zip": ("a.zip", zipped({"Takeout/Gemini Apps/MyActivity.json": dumped(GEMINI)})),
    "openai": ("a.jsonl", dumped(OPENAI)),
    "langchain": ("a.json", dumped(LANGCHAIN)),
    "slack zip": ("a.zip", zipped({name: dumped(value) for name, value in SLACK.items()}, zipfile.ZIP_STORED)),
    "whatsapp": ("WhatsApp Chat with Bob.txt", CHAT.encode()),
    "whatsapp zip": ("a.zip", zipped({"_chat.txt": CHAT.encode()})),
}


def test_there_is_a_sample_of_every_format():
    assert {sample.split()[0] for sample in SAMPLES} == {importer.name for importer in IMPORTERS}


def found_in(path: Path, name: str) -> list[ImportItem]:
    """Read a file by the importer of a format; what it asks of people is told like what is wrong."""
    (importer,) = (one for one in IMPORTERS if one.name == name.split()[0])
    try:
        return list(importer(path, replace(READING, me="U1") if importer.name == "slack" else READING).read())
    except InvalidInput as error:
        return [ImportProblem(path.name, str(error))]


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_is_found_and_read(tmp_path, sample):
    name, data = SAMPLES[sample]
    (tmp_path / name).write_bytes(data)
    assert importer_for(tmp_path / name).name == sample.split()[0]
    found = found_in(tmp_path / name, sample)
    assert texts(found)[0] == "hello"
    assert reasons(found) == []


@ALWAYS
@given(
    st.sampled_from(sorted(SAMPLES)),
    st.lists(st.tuples(st.integers(0, 2000), st.binary(max_size=3), st.integers(0, 3)), min_size=1, max_size=4),
)
def test_a_file_that_was_tampered_with_ends_in_words(tmp_path, sample, changes):
    name, data = SAMPLES[sample]
    for place, new, removed in changes:
        at = place % (len(data) + 1)
        data = data[:at] + new + data[at + removed :]
    path = tmp_path / name
    path.write_bytes(data)
    for importer in IMPORTERS:
        assert importer.sniff(path) in (True, False)
    for one in found_in(path, sample):
        assert not isinstance(one, ImportProblem) or (one.reason.isprintable() and one.where.isprintable())


JSON_SAMPLES = {
    "claude-code": CLAUDE_CODE,
    "codex": CODEX,
    "chatgpt": CHATGPT,
    "claude": CLAUDE,
    "gemini": GEMINI,
    "openai": OPENAI,
    "langchain": LANGCHAIN,
    "jsonl": JSONL,
}


def replace_one(value: Any, draw: Callable[[Any], Any]) -> Any:
    """Return the value with something in it replaced by anything else that JSON can say."""
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 3)) == 0:
        return draw(junk)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = draw(st.sampled_from(keys))
    value = value.copy()
    value[key] = replace_one(value[key], draw)
    return value


@ALWAYS
@given(st.sampled_from(sorted(JSON_SAMPLES)), st.data())
def test_whatever_stands_in_a_file_nothing_raises_and_what_comes_is_storable(tmp_path, sample, data):
    path = tmp_path / SAMPLES[sample][0]
    value = replace_one(JSON_SAMPLES[sample], data.draw)
    lines = value if sample == "codex" and isinstance(value, list) else [value]
    path.write_bytes(b"\n".join(map(dumped, lines)))
    for one in found_in(path, sample):
        if isinstance(one, Record):
            try:
                build_row(one.message, ConversationRef("ann", one.conversation, one.title), 1_000_000)
            except InvalidInput as error:
                assert str(error).strip()


def test_a_missing_option_is_no_damage(tmp_path: Path) -> None:
    class Chats(Importer):
        name, advice = "chats", "export it again"

        def convert(self, value: Any, where: str) -> Iterator[ImportItem]:
            if value["author"] != self.options.me:
                raise self.unknown_me([value["author"]])
            yield IgnoredContent("what is mine")

    path = tmp_path / "chats.json"
    path.write_text('[{"author": "Ann"}]')
    assert list(Chats(path, ImportOptions(me="Ann")).read()) == [IgnoredContent("what is mine")]
    with pytest.raises(InvalidInput, match="say who of them you are; --me takes one of: Ann"):
        list(Chats(path).read())


@pytest.mark.parametrize("place", ["local header", "directory"])
def test_a_zip_whose_names_are_no_text_is_told(tmp_path: Path, place: str) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("convérsations.json", "[]")
    data = path.read_bytes()
    at = data.find("é".encode()) if place == "local header" else data.rfind("é".encode())
    path.write_bytes(data[:at] + b"\x8e\x8e" + data[at + 2 :])
    with pytest.raises(InvalidInput):
        importer_for(path)
