"""Erasing on the command line: asked for, rehearsed, told as JSON, and looked for afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import memstore
from memstore import ids
from tests.both.test_erase import holding, said
from tests.command_line import Run

HASHING = {"embedder": "hashing:256"}


@pytest.fixture
def place(url: str) -> str:
    with memstore.open(url, settings=HASHING) as store:
        store.user("alice").conversation("lisbon").add_many(said("alice", "lisbon"))
        store.derive()
    return url


def test_nothing_is_erased_that_nobody_has_said_yes_to(place: str, cli: Run) -> None:
    for command in (("user", "alice"), ("conversation", "lisbon", "-u", "alice")):
        done = cli("erase", *command, "-d", place)
        assert (done.code, done.out) == (1, "")
        assert "--yes" in done.err
        rehearsed = cli("erase", *command, "--dry-run", "--json", "-d", place)
        assert rehearsed.code == 0
        assert rehearsed.json["counts"]["messages"] == 12
        assert rehearsed.json["id"] is None
    assert holding(place, "alicelisbon2ville")["messages"] == 1


def test_what_was_erased_is_certified_and_verified(place: str, cli: Run, tmp_path: Path) -> None:
    with memstore.open(place, settings=HASHING) as store:
        message = store.user("alice").conversation("lisbon").messages()[1].id
        fact = str(next(one.id for one in store.user("alice").facts() if "lisbon4" in one.text))
    done = cli("erase", "message", str(message), "-u", "alice", "--yes", "--json", "-d", place)
    assert done.code == 0
    file = tmp_path / "certificate.json"
    file.write_text(done.out)
    verified = cli("verify-erasure", str(file), "--json", "-d", place)
    assert (verified.code, verified.json["looked_for"]) == (0, 1)
    assert cli("verify-erasure", "--text", "alicelisbon2ville", "-d", place).code == 0
    found = cli("verify-erasure", "--text", "alicelisbon4ville", "--json", "-d", place)
    assert found.code == 1
    assert set(found.json["found"]) >= {"messages", "facts"}
    assert cli("erase", "fact", fact[:8], "-u", "alice", "-y", "-d", place).code == 0
    done = cli("erase", "user", "alice", "--yes", "-d", place)
    assert done.code == 0
    assert "messages: 11" in done.out
    told = dict(line.split(": ", 1) for line in done.out.splitlines())
    assert {"user", "tombstones", "looked for afterwards", "certificate", "recorded"} <= told.keys(), "a fact a line"
    assert told["rows found"] == "0"
    listed = cli("erasures", "-u", "alice", "--json", "-d", place).json
    assert [one["scope"] for one in listed] == ["user", "fact", "message"]
    assert cli("erasures", "-u", "alice", "-d", place).out.count("\n") == 3
    assert holding(place, "alice") == {}
    again = cli("erase", "user", "alice", "--yes", "-d", place)
    assert "nothing to erase" in again.out


def test_files_are_looked_through_too(place: str, cli: Run) -> None:
    with memstore.open(place, settings=HASHING) as store:
        store.user("alice").erase()
    found = cli("verify-erasure", "--text", "alicelisbon2ville", "--files", "--json", "-d", place)
    assert (found.code, found.json["found"]) == (0, {})
    assert found.json["pages"], "dead rows and the log still have it, and it is said"
    assert "VACUUM" in found.json["hints"][0]


def test_mistakes_are_told(place: str, cli: Run, tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text(json.dumps({"scope": "planet"}))
    for command in (
        ("verify-erasure",),
        ("verify-erasure", str(file)),
        ("verify-erasure", str(tmp_path / "missing")),
        ("erase", "message", "12", "-u", "alice", "-y"),
    ):
        assert cli(*command, "-d", place).code == 2, command
    unknown = cli("erase", "message", str(ids.uuid7()), "-u", "alice", "-y", "-d", place)
    assert (unknown.code, "no message" in unknown.err) == (2, True)


def test_old_messages_are_erased_by_a_setting(place: str, cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli("retain", "--json", "-d", place).json == {"messages": 0}
    monkeypatch.setenv("MEMSTORE_MESSAGES_DAYS", "30")
    assert cli("retain", "-u", "alice", "--json", "-d", place).json == {"messages": 12}
    assert holding(place, "alicelisbon2ville") == {}
