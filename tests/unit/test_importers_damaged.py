"""Damaged and hostile files of every format: whatever is done to them, reading ends in words, and in bounded memory."""

import json
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
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
from tests.unit.importing import ALWAYS, Samples, junk, reasons, texts

READING = ImportOptions(me="Ann", timezone=ZoneInfo("Europe/Berlin"), date_order="dmy")


def dumped(name: str, value: object) -> bytes:
    """Return what a file of this name holds: bytes as they are, anything else as JSON."""
    if isinstance(value, bytes):
        return value
    is_lines = name.endswith(".jsonl") and isinstance(value, list)
    return b"\n".join(json.dumps(each).encode() for each in (value if is_lines else [value]))


VALUES: Samples = {
    sample: content
    for file in sorted(Path(__file__).parent.glob("test_importers_*.py"))
    if file != Path(__file__)
    for sample, content in getattr(import_module(f"tests.unit.{file.stem}"), "SAMPLES", {}).items()
}
SAMPLES = {sample: (name, dumped(name, value)) for sample, (name, value) in VALUES.items()}


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


JSON_SAMPLES = {sample: value for sample, (_, value) in VALUES.items() if not isinstance(value, bytes)}


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
    path.write_bytes(dumped(path.name, replace_one(JSON_SAMPLES[sample], data.draw)))
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
