"""What the command line says on stderr to who is answered little: why that may be, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

import memstore
from memstore import MemoryStore
from tests.command_line import EMBEDDER, Run

PLACE = ("-u", "lea", "-c", "everyday")


@pytest.fixture
def asked(cli: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run commands over a store in which Lea has said something that nothing is derived of yet."""
    monkeypatch.setenv("MEMSTORE_DATABASE_URL", url)
    with opened(url) as store:
        everyday = store.user("lea").conversation("everyday")
        everyday.add("user", "I live in Leeds.", name="Lea")
        everyday.add("assistant", "Noted.")
    return cli


def opened(url: str) -> MemoryStore:
    return memstore.open(url, settings={"embedder": EMBEDDER})


def test_all_three_questions_say_that_nothing_is_derived_yet(asked: Run) -> None:
    for command in (
        ("facts", "-u", "lea"),
        ("recall", "Leeds", "-u", "lea"),
        ("context", "Where?", *PLACE, "-b", "99"),
    ):
        assert asked(*command).err == "not everything of 'lea' is derived yet: memstore derive\n", command
    assert asked("derive").code == 0
    assert asked("context", "Where?", *PLACE, "-b", "99").err == ""


def test_a_context_says_what_of_its_question_cannot_be(asked: Run) -> None:
    assert asked("derive").code == 0
    place = ("context", "Where does Lea live?", *PLACE, "-b", "300")
    assert asked(*place).err == ""
    told = asked(*place, "--model", "gpt-99", "--json")
    assert told.json["receipt"]["count"] == "upper_bound"
    assert "no counter knows the model 'gpt-99'" in told.err
    assert "it was answered: give a QUERY" in asked("context", *PLACE, "-b", "300").err


def test_a_blank_question_is_refused(asked: Run) -> None:
    for command in (("recall", " ", "-u", "lea"), ("context", "", *PLACE, "-b", "300")):
        told = asked(*command)
        assert (told.code, told.out, "asks for nothing" in told.err) == (2, "", True), command


def test_what_is_wrong_is_said_in_options(asked: Run) -> None:
    told = asked("context", "Where?", *PLACE, "-b", "3")
    assert (told.code, "Give --budget " in told.err, "budget=" in told.err) == (4, True, False)
    told = asked("context", "Where?", *PLACE)
    assert (told.code, "Give --budget " in told.err) == (2, True)
    told = asked("fact", "add", "  ", "--type", "preference", "-u", "lea")
    assert (told.code, "give a sentence" in told.err) == (2, True)
    told = asked("receipt", "abc", "-u", "lea")
    assert (told.code, "abc" in told.err) == (2, True)


def test_a_setting_in_the_file_that_cannot_be_is_named_with_its_place(
    cli: Run, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "memstore.toml"
    monkeypatch.setenv("MEMSTORE_CONFIG", str(file))
    monkeypatch.delenv("MEMSTORE_EMBEDDER")
    for name, value in {"embedder": '"foo"', "strategies": '["sumary_buffer"]', "pool_size": '"many"'}.items():
        file.write_text(f"{name} = {value}\n")
        told = cli("stats", "-d", url)
        assert (told.code, str(file) in told.err, name in told.err) == (2, True, True)
        looked = cli("doctor", "-d", url, "--json")
        (settings,) = [one for one in looked.json["checks"] if one["what"] == "settings"]
        assert (looked.code, settings["ok"], str(file) in settings["detail"]) == (2, False, True)
        assert "database" not in [one["what"] for one in looked.json["checks"]]
        assert cli("settings", config="").code == 0
    monkeypatch.setenv("MEMSTORE_CONFIG", "")
    monkeypatch.setenv("MEMSTORE_EMBEDDER", "foo")
    told = cli("stats", "-d", url)
    assert (told.code, "MEMSTORE_EMBEDDER='foo'" in told.err) == (2, True)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("embedded:/tmp/a store", "embedded:/tmp/a store"),
        ("postgresql://me:secret@db:5433/memories", "postgresql://me:***@db:5433/memories"),
        ("postgresql://me:secr@et@db/memories", "the database"),
    ],
)
def test_settings_list_has_the_url_without_its_password(
    cli: Run, url: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMSTORE_DATABASE_URL", url)
    (row,) = [one.split("\t") for one in cli("settings").out.splitlines() if one.startswith("database_url\t")]
    assert row[2].startswith(shown)
    assert not {"secret", "secr", "et@"} & set(row[2].replace(":", " ").replace("@", " ").split())
