"""The command line as people and programs use it. What needs a process of its own runs the installed script."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

import memstore
from memstore.store import migrations
from tests.command_line import EMBEDDER, SCRIPT, Run, environment, script, terminal
from tests.conftest import with_database
from tests.integration.conftest import as_role

CLI_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
SAMPLE = Path(memstore.__file__).parent / "cli" / "sample.jsonl"
HOSTILE = "\x1b[31mred\x1b]0;title\x07 [bold]stays[/bold] :smile: \x9b2J a\tb \u202egnp.exe\r\nI love [red]chess[/red]."
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
NOWHERE = "postgresql://nobody@127.0.0.1:9/none"


@pytest.fixture(scope="module")
def stored(server_url: str, template: str) -> Iterator[str]:
    """The URL of a database with the sample history and with a hostile one, derived; tests only read it."""
    name = f"cli_{uuid4().hex[:12]}"
    url = with_database(server_url, name)
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
            store.import_file(SAMPLE)
            store.user("mallory").conversation("a\x1b[2Jb").add("user", HOSTILE, name="Mal\x1b[31mlory")
            store.derive()
        yield url
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def of_sample(cli: Run, stored: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("MEMSTORE_DATABASE_URL", stored)
    return cli


@pytest.fixture
def here(cli: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("MEMSTORE_DATABASE_URL", url)
    return cli


# The main job


def test_the_whole_way_in_a_folder_with_spaces(cli: Run, tmp_path: Path) -> None:
    folder = tmp_path / "my own store"
    at = ("-d", f"embedded:{folder}", "--json")
    assert cli("db", "status", *at).json == {"revision": None, "head": migrations.NEWEST_REVISION, "current": False}
    assert not folder.exists(), "who only asks makes no database"
    assert cli("db", "stop", *at).json == {"folder": str(folder), "stopped": False}
    with memstore.open(f"embedded:{folder}"):  # so that not every command starts a server
        assert cli("db", "upgrade", *at).json == cli("db", "status", *at).json
        took = cli("import", str(SAMPLE), *at)
        assert (took.code, took.json["known"], took.json["skipped"]) == (0, 0, 0)
        assert cli("import", str(SAMPLE), *at).json["known"] == took.json["new"] > 100
        assert cli("derive", *at).json["messages"] == took.json["new"]
        assert any("peanut" in fact["text"] for fact in script("facts", "--user", "alice", *at).json)
        context = cli("context", "What should I avoid?", "-u", "alice", "-c", "lisbon", "-b", "500", *at)
        assert 0 < context.json["tokens"] <= 500
        assert context.json["messages"][-1] == {"role": "user", "content": "What should I avoid?"}
        assert context.err == ""
        assert cli("db", "stop", *at).json["stopped"] is True
    assert "CREATE TABLE" in cli("db", "sql").out


def test_import_says_what_is_new_known_and_skipped_and_why(here: Run, tmp_path: Path) -> None:
    good, bad, missing = tmp_path / "good.jsonl", tmp_path / "b\x1bad.jsonl", tmp_path / "missing.jsonl"
    good.write_text('{"user": "u", "conversation": "c", "role": "user", "content": "hello"}\n')
    bad.write_text(
        '{"conversation": "c", "role": "user", "content": "whose?"}\n'
        '{"user": "u", "conversation": "c", "role": "user", "content": "and this is fine"}\n'
        "nonsense\n"
    )
    took = here("import", str(bad), str(missing), str(good), "--json")
    assert took.code == 1
    assert (took.json["new"], took.json["known"], took.json["skipped"]) == (2, 0, 3)
    files = [(one["file"], one["new"], one["skipped"]) for one in took.json["files"]]
    assert files == [(str(bad), 1, 2), (str(missing), 0, 1), (str(good), 1, 0)]
    assert [set(one) for one in took.json["problems"]] == 3 * [{"file", "where", "reason"}]
    assert "there is no file" in took.json["problems"][2]["reason"]
    again = here("import", str(bad), str(missing), str(good))
    assert (again.code, "0 new, 1 known, 2 skipped" in again.out, "--user" in again.err) == (1, True, True)
    assert f"there is no file {missing}" in again.err
    assert not OBEYED.search(again.out + again.err)
    owned = here("import", str(bad), "--user", "u", "--json")
    assert (owned.json["new"], owned.json["known"], owned.json["skipped"]) == (1, 1, 1)
    assert (here("import", str(good)).code, here("import", str(good)).err) == (0, "")


def test_what_a_file_does_not_say_is_asked_for(here: Run, tmp_path: Path) -> None:
    file = tmp_path / "WhatsApp Chat with B\x1bob.txt"
    file.write_text("13.01.24, 10:00 - Ann: hi\n13.01.24, 10:01 - Bob: hello\n13.01.24, 10:02 - Bob left\n")
    asked = here("import", str(file), "-u", "ann")
    assert (asked.code, "0 new, 0 known, 1 skipped" in asked.out) == (2, True)
    assert "--timezone Europe/Berlin" in asked.err
    lines = tmp_path / "lines.jsonl"
    message = '{"conversation": "c", "role": "user", "content": "whose?"}\n'
    lines.write_text(message * 1000)
    asked = here("import", str(lines))
    assert (asked.code, asked.err.count("\n"), "name no user; give --user" in asked.err) == (2, 1, True)
    lines.write_text('{"user": "u", "conversation": "c", "role": "user", "content": "mine"}\n' + message * 1000)
    asked = here("import", str(lines))
    assert (asked.code, "1 new, 0 known, 1000 skipped" in asked.out) == (1, True)
    assert "line 2 and 999 more: it names no user; give --user" in asked.err
    assert here("import", str(lines), "-u", " ").code == 2
    how = ("-u", "ann", "--me", "Ann", "--timezone", "Europe/Berlin")
    took = here("import", str(file), *how)
    assert (took.code, "2 new, 0 known, 0 skipped" in took.out, "1 notices of WhatsApp" in took.err) == (0, True, True)
    assert not OBEYED.search(took.out + took.err)
    (shown,) = here("import", str(file), "--json", *how).json["files"]
    assert (shown["format"], shown["known"], shown["ignored"]) == ("whatsapp", 2, {"notices of WhatsApp": 1})


# The three questions


def test_recall_is_narrowed_by_its_options(of_sample: Run) -> None:
    def found(*options: str) -> list[dict[str, Any]]:
        hits: list[dict[str, Any]] = of_sample("recall", "Lisbon", "-u", "alice", *options, "--json").json
        return hits

    hits = found("-n", "4")
    assert len(hits) == 4
    assert all({"tier", "text", "score", "parts", "sources", "occurred_at"} <= hit.keys() for hit in hits)
    assert {hit["tier"] for hit in found("--tier", "facts", "--tier", "summaries")} <= {"facts", "summaries"}
    assert {hit["role"] for hit in found("--tier", "messages", "--role", "assistant")} == {"assistant"}
    assert min(hit["occurred_at"] for hit in found("--since", "2026-04-01T00:00:00+00:00")) >= "2026-04-01"
    assert found("--conversation", "everyday") != found("--conversation", "lisbon")
    assert found("--tag", "none such") == found("--as-of", "2020-01-01") == []
    for wrong in (("-u", " "), ("-u", "alice", "--tier", "files"), ("-u", "alice", "--role", "king")):
        assert of_sample("recall", "x", *wrong).code == 2, wrong


def test_on_a_pipe_a_row_is_a_line_with_tabs(of_sample: Run) -> None:
    for command, row in {
        ("recall", "fish", "-u", "alice"): r"[\d.]+\t\w+\t\d{4}-\d\d-\d\d\t\w*\t.+",
        ("facts", "-u", "alice"): r"[0-9a-f]{8}\t\w+\tactive\t\d{4}-\d\d-\d\d\t[01]\.\d\d\t.+",
    }.items():
        lines = of_sample(*command).out.splitlines()
        assert lines and all(re.fullmatch(row, line) for line in lines), command
    documented = re.findall(r"^\| `(recall|facts|conversations|users)` \| (.+) \|$", CLI_PAGE.read_text(), re.M)
    assert len(documented) == 4
    for name, cells in documented:
        arguments = {"recall": ["fish", "-u", "alice"], "users": []}.get(name, ["-u", "alice"])
        first = of_sample(name, *arguments).out.splitlines()[0]
        assert first.count("\t") == cells.count(", "), name


def test_a_context_is_within_its_budget_and_explained(of_sample: Run) -> None:
    place = ("-u", "alice", "-c", "lisbon")
    asked = ("context", "What may I eat?", *place, "-b", "400", "--system", "Be kind.")
    given = of_sample(*asked, "--json").json
    assert set(given) == {"messages", "tokens", "receipt"}
    assert given["tokens"] == given["receipt"]["tokens"] == sum(given["receipt"]["sections"].values()) <= 400
    assert given["messages"][0] == {"role": "system", "content": "Be kind."}
    assert of_sample(*asked, "--reserve", "200", "--json").json["tokens"] <= 200
    shown = of_sample(*asked, "--explain").out
    assert "── system\nBe kind.\n" in shown
    assert f"{given['tokens']} of 400 tokens" in shown
    assert f"; {given['receipt']['static_tokens']} the same in every context\n" in shown
    static = {one["id"] for one in given["receipt"]["included"] if one.get("standing")}
    assert static and shown.count(", in every context") == len(static)
    assert re.search("peanuts.*, in every context", shown)
    assert of_sample(*asked, "--format", "text").out.startswith("Be kind.\n\n# ")
    past = of_sample(*asked, "--as-of", "2020-01-01", "--json").json
    assert len(past["messages"]) == 2, "the system prompt and the question"


def test_context_that_cannot_be_says_what_it_needs(of_sample: Run) -> None:
    refused = of_sample("context", "What?", "-u", "alice", "-c", "lisbon", "-b", "3", "--json")
    assert (refused.code, refused.out) == (4, "")
    needed = re.search(r"at least (\d+) tokens", refused.err)
    assert needed
    assert of_sample("context", "What?", "-u", "alice", "-c", "lisbon", "-b", needed[1]).code == 0
    assert f"Give --budget {needed[1]} or more" in refused.err
    unasked = of_sample("context", "What?", "-u", "alice", "-c", "lisbon")
    assert (unasked.code, "Give --budget …, or set context_budget:" in unasked.err) == (2, True)
    kept_free = of_sample("context", "What?", "-u", "alice", "-c", "lisbon", "-b", "9", "--reserve", "9")
    assert "--budget 9 with --reserve 9 leaves nothing" in kept_free.err
    empty = of_sample("context", " ", "-u", "alice", "-c", "lisbon", "-b", "99")
    assert (empty.code, "query=' ' asks for nothing" in empty.err) == (2, True), "no option"
    assert of_sample("recall", " ", "-u", "alice").code == 2


def test_who_is_answered_little_is_told_why(here: Run, url: str) -> None:
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        everyday = store.user("lea").conversation("everyday", title="By day", channel="web")
        everyday.add("user", "I live in Leeds.", name="Lea")
        everyday.add("assistant", "Noted.")
    place = ("-u", "lea", "-c", "everyday", "-b", "99")
    for command in (("facts", "-u", "lea"), ("recall", "Leeds", "-u", "lea"), ("context", "Where?", *place)):
        assert here(*command).err == "not everything of 'lea' is derived yet: memstore derive\n", command
    assert here("derive").code == 0
    assert here("context", "Where?", *place).err == ""
    assert "it was answered: give a QUERY" in here("context", *place).err
    for command in (("facts",), ("recall", "x"), ("stats",), ("derive",), ("context", "x", *place[2:])):
        shown = here(*command, "-u", "alicia", "--json")
        assert (shown.code, "no user 'alicia'" in shown.err, "memstore users" in shown.err) == (0, True, True), command
    assert "no conversation 'lisboa'" in here("context", "x", "-u", "lea", "-c", "lisboa", "-b", "99").err
    assert (here("users", "--json").json, here("users").out) == (["lea"], "lea\n")
    shown = here("conversations", "-u", "lea", "--channel", "web").out
    assert re.fullmatch(r"2\t[\d-]{10}\t[\d-]{10}\tweb\t\tBy day\teveryday\n", shown)


def test_another_project_is_left_out(here: Run, url: str) -> None:
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        for scope in ("otter", "lynx"):
            store.user("lea").conversation(scope, scope=scope).add("user", f"We decided to deploy {scope} on Fridays.")
        store.derive()
    commands = (
        ("recall", "deploy"),
        ("context", "When do we deploy?", "-c", "new", "-b", "900"),
        ("facts",),
        ("profile",),
    )
    for command in commands:
        shown = here(*command, "-u", "lea", "--scope", "otter").out
        assert "lynx" not in shown and ("otter" in shown or command == ("profile",)), command
        assert "lynx" in here(*command, "-u", "lea").out or command == ("profile",), command
    assert "lynx" in here("conversations", "-u", "lea").out


def test_who_asks_about_somebody_unknown_is_told_who_is_known(here: Run, url: str) -> None:
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        ada = store.user("ada")
        ada.add_fact("Ada lives in Leeds.", subject="Ada", type="identity")
        ada.add_fact("Ada sails.", subject="Ada", type="preference")
        ada.add_fact("Ada's son Tom is five.", subject="Ada's son Tom", type="relationship")
    for command in ("facts", "profile"):
        unknown = here(command, "-u", "ada", "--subject", "Tom")
        hint = "no active fact is about 'Tom'; there are some about 'Ada', \"Ada's son Tom\"\n"
        assert (unknown.code, unknown.out.strip(), unknown.err) == (0, "", hint), command
        assert here(command, "-u", "ada", "--subject", "ada's son tom").err == ""
    assert here("facts", "-u", "ada", "--subject", "Tom", "--json").json == []
    assert here("facts", "-u", "ada", "--subject", "Ada", "--type", "plan").err == "", "nothing is planned"
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        for number in range(12):
            store.user("ada").add_fact(f"Cat {number} purrs.", subject=f"Cat {number}", type="statement")
    assert here("facts", "-u", "ada", "--subject", "Tom").err.endswith(" and 2 more\n")


# What was stored is shown, and never obeyed


def test_stored_text_is_harmless(of_sample: Run) -> None:
    commands = (
        ("recall", "chess", "-u", "mallory"),
        ("facts", "-u", "mallory", "--state", "all"),
        ("conversations", "-u", "mallory"),
        ("context", "-u", "mallory", "-c", "a\x1b[2Jb", "-b", "500", "--explain"),
        ("profile", "-u", "mallory"),
    )
    for command in commands:
        for as_json in ((), ("--json",)):
            shown = of_sample(*command, *as_json)
            assert shown.code == 0
            assert not OBEYED.search(shown.out + shown.err), (command, as_json)
    exported = of_sample("export", "-u", "mallory").out
    assert not OBEYED.search(exported)
    assert HOSTILE in [json.loads(line).get("content") for line in exported.splitlines()], "byte for byte"
    text = of_sample(*commands[0]).out
    assert r"\x1b[31mred\x1b]0;title\x07 [bold]stays[/bold] :smile: \x9b2J a b \u202egnp.exe I love" in text
    assert "a\tb" in of_sample(*commands[3]).out
    hits = of_sample(*commands[0], "--json").json
    assert any(hit["text"].startswith("\x1b[31mred\x1b]0;title\x07 [bold]stays") for hit in hits)


def test_a_terminal_is_shown_colours_and_progress_and_nothing_that_was_stored_is_obeyed(stored: str) -> None:
    shown = on_terminal("recall", "chess", "-u", "mallory", MEMSTORE_DATABASE_URL=stored)
    assert "\x1b[" in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert not OBEYED.search(plain)
    assert r"\x1b[31mred" in plain and "[bold]stays[/bold]" in plain
    imported = on_terminal("import", str(SAMPLE), MEMSTORE_DATABASE_URL=stored, NO_COLOR="1")
    assert "\x1b[?25l" in imported  # the cursor is hidden while progress is drawn
    assert re.search(r"sample.jsonl\S*: 0 new, \d+ known, 0 skipped", imported)
    assert not re.search(r"\x1b\[(?:\d+;)*(?:3|4|9|10)\d", imported)


def on_terminal(*args: str, **more: str) -> str:
    with terminal(*args, TERM="xterm-256color", **more) as person:
        person.ended()
    return person.shown


# What goes wrong


def test_usage_is_2_with_what_is_wrong(cli: Run) -> None:
    wrong = {
        ("recall", "x"): "--user",
        ("recall", "x", "-u", "a", "--since", "yesterday"): "2024-05-01",
        ("facts", "-u", "a", "--state", "dead"): "'active', 'ended', 'expired', 'quarantined', 'superseded'",
        ("import", "x", "--format", "word"): "'telegram', 'jsonl', 'chatgpt'",
        ("stats", "-d", "mysql://x"): "is no database",
        ("db", "stop", "-d", "postgresql://me:secret@host/db"): "is not embedded",
        ("nonsense",): "nonsense",
    }
    for command, why in wrong.items():
        shown = cli(*command)
        assert (shown.code, shown.out) == (2, ""), command
        assert why in shown.err, command
        assert "secret" not in shown.err


@pytest.mark.parametrize("command", [("stats",), ("doctor",)])
def test_a_database_that_does_not_answer_is_3(cli: Run, command: tuple[str, ...], tmp_path: Path) -> None:
    shown = cli(*command, "-d", NOWHERE)
    assert (shown.code, "does not answer" in shown.err + shown.out) == (3, True)
    (tmp_path / "file").touch()
    shown = cli(*command, "-d", f"embedded:{tmp_path / 'file' / 'store'}")
    assert (shown.code, "embedded Postgres" in shown.err + shown.out) == (3, True)


def test_a_setting_that_cannot_be_is_named_with_its_place(
    cli: Run, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "memstore.toml"
    monkeypatch.setenv("MEMSTORE_CONFIG", str(file))
    monkeypatch.delenv("MEMSTORE_EMBEDDER")
    for name, value in {"embedder": '"foo"', "pool_size": '"many\\u001b[31m"'}.items():
        file.write_text(f"{name} = {value}\n")
        shown = cli("stats", "-d", url)
        assert (shown.code, shown.err.count("\n"), OBEYED.search(shown.err)) == (2, 1, None)
        assert str(file) in shown.err and name in shown.err
        looked = cli("doctor", "-d", url, "--json")
        (settings,) = [one for one in looked.json["checks"] if one["what"] == "settings"]
        assert (looked.code, settings["ok"], str(file) in settings["detail"]) == (2, False, True)
        assert "database" not in [one["what"] for one in looked.json["checks"]]


def test_a_failure_of_derive_is_a_line_and_with_verbose_a_traceback(
    here: Run, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("no\n\x1b[31mgood")

    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        store.user("u").conversation("c").add("user", "I live in Leeds.")
    monkeypatch.setattr("memstore.testing.HashingEmbedder.embed_documents", fail)
    shown = here("derive", "--json")
    assert (shown.code, bool(shown.json["failed"])) == (1, True)
    assert "warning: chunks failed in conversation" in shown.err
    assert "Traceback" not in shown.err
    assert not OBEYED.search(shown.err)
    loud = here("--verbose", "derive")
    assert "Traceback" in loud.err
    assert not OBEYED.search(loud.err)
    looked = here("doctor")
    assert (looked.code, OBEYED.search(looked.out)) == (1, None)
    assert "FAIL embedder: ValueError: no" in looked.out
    assert "failed; memstore --verbose derive" in looked.out


# Processes


def test_what_is_quick_imports_nothing_heavy(stored: str) -> None:
    def imported(*command: str) -> set[str]:
        ran = [sys.executable, "-X", "importtime", str(SCRIPT), *command]
        shown = subprocess.run(ran, env=environment(), capture_output=True, text=True, timeout=120, check=True)
        return {
            line.rpartition("|")[2].strip() for line in shown.stderr.splitlines() if line.startswith("import time:")
        }

    helped = imported("--help")
    assert "typer" in helped
    heavy = {"torch", "sentence_transformers", "numpy", "sqlalchemy", "sqlmodel", "psycopg", "alembic", "tiktoken"}
    assert not helped & (heavy | {"onnxruntime", "tokenizers", "pydantic", "asyncio", "rich.progress"})
    facts = imported("facts", "--user", "alice", "-d", stored)
    assert "psycopg" in facts
    # The rules compile for half a second.
    assert not facts & {"torch", "onnxruntime", "transformers", "alembic", "memstore.derive.reader.model"}


def test_a_reader_that_leaves_is_no_error() -> None:
    with subprocess.Popen(
        [SCRIPT, "db", "sql"], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_command_leaves_in_order(url: str, number: int, code: int) -> None:
    with psycopg.connect(url) as blocker, psycopg.connect(url, autocommit=True) as watcher:
        blocker.execute("LOCK TABLE derivations IN ACCESS EXCLUSIVE MODE")
        command = [SCRIPT, "derive", "-d", url]
        with subprocess.Popen(command, env=environment(), stdout=-1, stderr=-1, text=True) as process:
            blocked = (
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            )
            until = time.monotonic() + 30
            while watcher.execute(blocked).fetchone() == (0,) and time.monotonic() < until:
                time.sleep(0.05)
            process.send_signal(number)
            told, err = process.communicate(timeout=30)
    assert (process.returncode, told) == (code, "")
    assert "Traceback" not in err
    assert ("interrupted" in err) == (number == signal.SIGINT)


# Looking after the database


def test_doctor_finds_all_well_and_keeps_secrets(of_sample: Run) -> None:
    told = of_sample("doctor", "--json")
    assert (told.code, told.json["ok"]) == (0, True), told.out
    looked_at = [one["what"] for one in told.json["checks"]]
    expected = ["settings", "token counter", "embedder", "facts model", "summary model", "database"]
    assert looked_at[:6] == expected
    assert {"isolation", "derivations"} <= set(looked_at)
    assert told.json["checks"][0]["detail"] == f"embedder={EMBEDDER}"
    told = of_sample("doctor", "-d", NOWHERE.replace("nobody@", "nobody:secret@"))
    assert "secret" not in told.out + told.err


def test_chunks_without_vectors_are_told_of(here: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTORE_EMBEDDER", "none")
    with memstore.open(url, settings={"embedder": "none"}) as store:
        store.user("alice").add_fact("Bo is Al's brother.", type="relationship", subject="Bo")
    assert (here("doctor").code, "without a vector" in here("doctor").out, here("stats").err) == (0, False, "")
    monkeypatch.setenv("MEMSTORE_EMBEDDER", EMBEDDER)
    told = here("doctor")
    assert "1 chunk without a vector" in told.out and f"memstore embeddings migrate --to {EMBEDDER}" in told.out
    assert here("embeddings", "migrate", "--to", EMBEDDER, "--json").json["vectors"] == 1
    assert (here("stats", "--json").json["without_vectors"], here("stats").err) == (0, "")
    monkeypatch.setenv("MEMSTORE_MAX_CHUNKS_IN_MEMORY", "0")
    told = here("doctor")
    assert (told.code, "recall is slow for 'alice': memstore db index" in told.out) == (0, True)
    assert here("db", "index", "--json").json == {"refused": []}
    assert "db index" not in here("doctor").out
    assert here("recall", "brother", "-u", "alice", "--json").json[0]["text"] == "Bo is Al's brother."
    monkeypatch.setenv("MEMSTORE_EMBEDDER", "none")
    assert "MEMSTORE_EMBEDDER" in here("doctor").out
    with psycopg.connect(url) as connection:
        connection.execute("delete from item_vectors")
    monkeypatch.setenv("MEMSTORE_EMBEDDER", "hashing:64")
    told = here("doctor")
    assert (told.code, f"FAIL vectors: The vectors of this store are made by '{EMBEDDER}'" in told.out) == (1, True)


# The demo


def test_demo_tells_the_story_and_ends_with_its_tokens(cli: Run) -> None:
    told = cli("demo", "--budget", "700")
    assert told.code == 0
    steps = re.findall(r"^(\d)\. ", told.out, re.MULTILINE)
    assert steps == ["1", "2", "3", "4", "5"]
    assert re.search(r"of 700 tokens: (\w+ [\d,]+(, )?)+\n\Z", told.out)
    assert "memstore import FILE" in told.err


# Facts by hand, and ids that people type


def test_a_fact_lives_on_the_command_line(here: Run, url: str) -> None:
    of_alice = ("-u", "alice", "--json")
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        alice = store.user("alice")
        added = alice.add_fact("Bo is Al's brother.", type="relationship", subject="Bo")
        waiting = alice.add_fact("Alice lives in Porto.", type="identity", quarantined=True)
    short = here("facts", "-u", "alice").out.split("\t")[0]
    assert re.fullmatch("[0-9a-f]{8}", short) and str(added.id).startswith(short)
    assert here("fact", "retract", short.upper(), *of_alice).json["state"] == "retracted"
    assert here("facts", *of_alice).json == []
    history = here("fact", "history", short, *of_alice).json
    assert [step["action"] for step in history] == ["added", "retracted"]
    assert "state: active → retracted" in here("fact", "history", short, "-u", "alice").out
    assert [fact["id"] for fact in here("facts", "--as-of", history[0]["at"], *of_alice).json] == [str(added.id)]
    assert here("fact", "undo", history[1]["id"][:13], *of_alice).json["action"] == "restored"
    again = here("fact", "undo", history[1]["id"], *of_alice)
    assert (again.code, "undo the later change first" in again.err) == (1, True)
    assert "preference" in here("facts", "--type", "hobby", *of_alice).err
    assert here("review", *of_alice).json[0]["fact"]["id"] == str(waiting.id)
    assert "Alice lives in Porto." in here("review", "-u", "alice").out
    assert here("review", *of_alice, "--accept", str(waiting.id)[:8]).json["accepted"][0]["state"] == "active"
    assert here("review", "-u", "alice", "--refuse", "all").out == "0 accepted, 0 refused\n"
    assert here("fact", "confirm", str(waiting.id)[:8], *of_alice).json["state"] == "active"
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        may = store.user("alice").conversation("may")
        may.add("user", "I'm going camping next month.", occurred_at=datetime(2026, 5, 25, tzinfo=UTC))
        store.derive()
    row = here("tidy", "-u", "alice").out.split("\t")
    assert (row[1], "camping" in row[2]) == ("2026-07-01", True)
    (change,) = here("tidy", *of_alice, "--accept", row[0]).json
    assert (change["action"], here("tidy", *of_alice).json) == ("edited", [])
    assert here("tidy", *of_alice, "--undo", change["id"]).json[0]["undoes"] == change["id"]
    assert here("tidy", *of_alice, "--refuse", "all").json == []
    assert here("fact", "retract", str(waiting.id)[:12], "-u", "bo").code == 2, "another user's"
    mark = ("fact", "mark", str(waiting.id), "-u", "alice")
    assert "(identity, active, pinned)" in here(*mark, "--importance", "pinned").out
    assert "\tactive, pinned\t" in here("facts", "-u", "alice").out
    assert "(identity, expired, pinned)" in here(*mark, "--expires-at", "2020-01-01").out
    for wrong, why in {"0000-0000": "no fact whose id begins with", "abc": "abc", "0" * 33: "", "----": ""}.items():
        told = here("fact", "retract", wrong, "-u", "alice")
        assert (told.code, why in told.err) == (2, True), wrong


# Logins and what they may


@pytest.fixture
def login(server_url: str) -> Iterator[str]:
    """A login that was granted nothing yet."""
    name = f"login_{uuid4().hex[:8]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN")
        yield name
        connection.execute(f"DROP ROLE {name}")


def test_an_admin_lists_users_and_is_told_what_is_out_of_reach(url: str, login: str, cli: Run) -> None:
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        for name in ("alice", "bob"):
            store.user(name).conversation("c").add("user", f"I am {name}.")
    granted = cli("db", "grant", login, "--role", "admin", "--json", "-d", url)
    assert granted.json == {"login": login, "role": "admin", "confined": True}
    admin = as_role(url, login)
    assert cli("users", "--json", "-d", admin).json == ["alice", "bob"]
    refused = cli("recall", "I am", "--user", "alice", "-d", admin)
    assert (refused.code, refused.out) == (1, "")
    assert "memstore db grant LOGIN --role app" in refused.err


def test_what_is_granted_is_told_and_what_is_not(url: str, login: str, cli: Run) -> None:
    assert cli("db", "grant", login, "-d", url).out == f"{login} is granted app\n"
    assert "as memstore_app" in cli("doctor", "-d", as_role(url, login)).out
    superuser = cli("db", "grant", urlsplit(url).username or "", "--role", "reader", "-d", url)
    assert superuser.code == 0
    assert "no role confines it" in superuser.err
    assert cli("db", "grant", login, "--role", "king", "-d", url).code == 2
    missing = cli("db", "grant", "nobody_here", "-d", url)
    assert missing.code == 1
    assert 'CREATE ROLE "nobody_here" LOGIN' in missing.err
    himself = cli("db", "grant", login, "--role", "reader", "-d", as_role(url, login))
    assert himself.code == 1
    assert f'GRANT memstore_reader TO "{login}"' in himself.err
