"""Erasing on the command line: asked for, rehearsed, told as JSON, and looked for afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import memstore
from memstore import ids
from tests.client.test_erase import holding, said
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
        assert "rows are gone" not in cli("erase", *command, "--dry-run", "-d", place).err
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
    assert (verified.code, [each["ids"] for each in verified.json]) == (0, [1])
    assert holding(place, "alicelisbon2ville") == {}
    assert cli("erase", "fact", fact[:8], "-u", "alice", "-y", "-d", place).code == 0
    done = cli("erase", "user", "alice", "--yes", "-d", place)
    assert done.code == 0
    told = dict(line.split("\t") for line in done.out.splitlines())
    assert {"user", "tombstones", "looked for in", "certificate"} <= told.keys(), "a fact a line"
    assert told["messages"] == "11"
    assert told["rows found"] == "0"
    listed = cli("erasures", "-u", "alice", "--json", "-d", place).json
    assert [one["scope"] for one in listed] == ["user", "fact", "message"]
    assert cli("erasures", "-u", "alice", "-d", place).out.count("\n") == 3
    assert holding(place, "alice") == {}
    again = cli("erase", "user", "alice", "--yes", "-d", place)
    assert "nothing to erase" in again.err


def test_all_certificates_of_a_list_are_verified(place: str, cli: Run, tmp_path: Path) -> None:
    with memstore.open(place, settings=HASHING) as store:
        user = store.user("alice")
        first, second = user.conversation("lisbon").messages()[:2]
        back = second.as_chat() | {"occurred_at": second.occurred_at}
        gone = [user.erase_message(one).id for one in (first, second)]
    file = tmp_path / "certificates.json"
    file.write_text(cli("erasures", "-u", "alice", "--json", "-d", place).out)
    found = cli("verify-erasure", str(file), "--json", "-d", place)
    assert found.code == 0
    assert [one["certificate"] for one in found.json] == [str(id) for id in reversed(gone)]
    assert [one["found"] for one in found.json] == [{}, {}]
    shown = cli("verify-erasure", str(file), "-d", place)
    assert (shown.code, shown.out.count("nothing is left")) == (0, 2)

    with memstore.open(place, settings=HASHING) as store:  # an id of the second one stands in a text
        store.user("bob").conversation("gossip").add_many([back | {"content": f"It was {second.id}."}])
    found = cli("verify-erasure", str(file), "--json", "-d", place)
    assert (found.code, [bool(one["found"]) for one in found.json]) == (1, [True, False])
    shown = cli("verify-erasure", str(file), "-d", place)
    assert (shown.out.count("nothing is left"), shown.out.count("something is left")) == (1, 1)

    file.write_text("[]")
    found = cli("verify-erasure", str(file), "--json", "-d", place)
    assert (found.code, found.json) == (0, [])


def test_an_import_says_that_what_it_leaves_out_was_erased(place: str, cli: Run, tmp_path: Path) -> None:
    backup = tmp_path / "backup.jsonl"
    cli("export", str(backup), "-d", place)
    cli("erase", "user", "alice", "-y", "-d", place)
    done = cli("import", str(backup), "-u", "alice", "-d", place)
    assert (done.code, "erased before" in done.err) == (0, True)


def test_mistakes_are_told(place: str, cli: Run, tmp_path: Path) -> None:
    wrong_commands = (
        ("verify-erasure",),
        ("erase", "message", "12", "-u", "alice", "-y"),
        ("erase", "planet", "x", "-y"),
        ("erase", "user", "alice", "-u", "bob", "-y"),
        ("erase", "user", "alice", "bob", "-y"),
        ("erase", "user", " ", "-y"),
        ("erase", "conversation", "lisbon", "-y"),
        ("erase", "fact", "xyz", "-u", "alice", "-y"),
    )
    for command in wrong_commands:
        assert cli(*command, "-d", place).code == 2, command
    file = tmp_path / "other.json"
    wrong = {
        json.dumps([{}]): "scope: Field required; user_id: Field required",
        json.dumps({"scope": "message", "user_id": str(ids.uuid7()), "erased": []}): "names nothing that was erased",
        "user: 34": "no certificate",
        None: "No such file",
    }
    for body, why in wrong.items():
        file.unlink(missing_ok=True)
        if body is not None:
            file.write_text(body)
        done = cli("verify-erasure", str(file), "-d", place)
        assert (done.code, done.out, why in " ".join(done.err.split())) == (2, "", True)
    unknown = cli("erase", "message", str(ids.uuid7()), "-u", "alice", "-y", "-d", place)
    assert (unknown.code, "no message" in unknown.err) == (2, True)
