"""The command line as people and programs use it. What needs a process of its own runs the installed script."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

import memstore
from memstore.store import migrations
from memstore.store.embedded.server import EmbeddedServer
from tests.command_line import EMBEDDER, SCRIPT, Ended, Run, environment, script

SAMPLE = Path(memstore.__file__).parent / "cli" / "sample.jsonl"
HOSTILE = "\x1b[31mred\x1b]0;title\x07 [bold]stays[/bold] :smile: \x9b2J a\tb \u202egnp.exe\r\nI love [red]chess[/red]."
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
NOWHERE = "postgresql://nobody@127.0.0.1:9/none"


@pytest.fixture(scope="module")
def stored(server_url: str, template: str) -> Iterator[str]:
    """The URL of a database with the sample history and with a hostile one, derived; tests only read it."""
    name = f"cli_{uuid4().hex[:12]}"
    place, _, options = server_url.partition("?")
    url = f"{place.rpartition('/')[0]}/{name}" + (f"?{options}" if options else "")
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
            store.import_file(SAMPLE)
            store.user("mallory").conversation("a\x1b[2Jb").add("user", HOSTILE, name="Mal\x1b[31mlory")
            store.derive()
            store.user("waiting").conversation("w").add("user", "I live in Leeds.")
        yield url
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def of_sample(cli: Run, stored: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("MEMSTORE_DATABASE_URL", stored)
    return cli


# The main job


def test_the_whole_way_in_a_folder_with_spaces(tmp_path: Path) -> None:
    folder = tmp_path / "my own store"
    more = {"database_url": f"embedded:{folder}"}
    took = script("import", str(SAMPLE), "--json", **more)
    assert (took.code, took.json["known"], took.json["skipped"]) == (0, 0, 0)
    server = EmbeddedServer.open(folder)  # so that not every command starts one
    try:
        assert script("import", str(SAMPLE), "--json", **more).json["known"] == took.json["new"] > 100
        assert script("derive", "--json", **more).json["messages"] == took.json["new"]
        facts = script("facts", "--user", "alice", "--json", **more)
        assert any("peanut" in fact["text"] for fact in facts.json)
        context = script(
            "context", "What should I avoid?", "-u", "alice", "-c", "lisbon", "-b", "500", "--json", **more
        )
        assert 0 < context.json["tokens"] <= 500
        assert context.json["messages"][-1] == {"role": "user", "content": "What should I avoid?"}
        assert (facts.err, context.err) == ("", "")
    finally:
        server.close()


def test_import_says_what_is_new_known_and_skipped_and_why(cli: Run, url: str, tmp_path: Path) -> None:
    good, bad, missing = tmp_path / "good.jsonl", tmp_path / "b\x1bad.jsonl", tmp_path / "missing.jsonl"
    good.write_text('{"user": "u", "conversation": "c", "role": "user", "content": "hello"}\n')
    bad.write_text(
        '{"conversation": "c", "role": "user", "content": "whose?"}\n'
        '{"user": "u", "conversation": "c", "role": "user", "content": "and this is fine"}\n'
        "nonsense\n"
    )
    took = cli("import", str(bad), str(missing), str(good), "-d", url, "--json")
    assert took.code == 1
    assert (took.json["new"], took.json["known"], took.json["skipped"]) == (2, 0, 3)
    assert [one["new"] for one in took.json["files"]] == [1, 0, 1]
    assert [one["skipped"] for one in took.json["files"]] == [2, 1, 0]
    assert [one["file"] for one in took.json["files"]] == [str(bad), str(missing), str(good)]
    assert [set(one) for one in took.json["reasons"]] == 3 * [{"file", "where", "reason"}]
    assert "there is no file" in took.json["reasons"][2]["reason"]

    again = cli("import", str(bad), str(missing), str(good), "-d", url)
    assert again.code == 1
    assert "0 new, 1 known, 2 skipped, in 1 conversation\n" in again.out
    assert f"there is no file {missing}" in again.err
    assert "--user" in again.err
    assert not OBEYED.search(again.out + again.err)

    owned = cli("import", str(bad), "--user", "u", "-d", url, "--json")
    assert (owned.json["new"], owned.json["known"], owned.json["skipped"]) == (1, 1, 1)
    whole = cli("import", str(good), "-d", url)
    assert (whole.code, whole.err) == (0, "")


def test_a_dry_run_shows_what_would_come_and_stores_nothing(cli: Run, url: str, tmp_path: Path) -> None:
    file = tmp_path / "WhatsApp Chat with B\x1bob.txt"
    file.write_text("13.01.24, 10:00 - Ann: hi\n13.01.24, 10:01 - Bob: hello\n13.01.24, 10:02 - Bob left\n")
    asked = cli("import", str(file), "-u", "ann", "-d", url)
    assert (asked.code, asked.out.endswith("0 new, 0 known, 1 skipped, in 0 conversations\n")) == (1, True)
    assert "--timezone Europe/Berlin" in asked.err
    how = ("-u", "ann", "--me", "Ann", "--timezone", "Europe/Berlin", "-d", url)
    would = cli("import", str(file), "--dry-run", *how)
    assert would.code == 0
    assert "would be 2 new, 0 known, 0 skipped, in 1 conversation\n" in would.out
    assert "ann\t2\t2024-01-13\t2024-01-13\tWhatsApp Chat with B" in would.out
    assert "1 notices of WhatsApp" in would.err
    assert not OBEYED.search(would.out + would.err)
    (told,) = cli("import", str(file), "--dry-run", "--json", *how).json["files"]
    assert (told["format"], told["new"], told["left_out"]) == ("whatsapp", 2, {"notices of WhatsApp": 1})
    assert (told["preview"][0]["messages"], told["preview"][0]["first"][:10]) == (2, "2024-01-13")
    took = cli("import", str(file), "--json", *how)
    assert (took.json["new"], "preview" in took.json["files"][0]) == (2, False)


def test_import_takes_a_folder_that_is_an_export_and_no_other(cli: Run, url: str, tmp_path: Path) -> None:
    export = tmp_path / "export" / "general"
    export.mkdir(parents=True)
    (export / "2024-05-01.json").write_text(json.dumps([{"user": "U1", "text": "hi", "ts": "1714564800.1"}]))
    (export.parent / "users.json").write_text("[]")
    took = cli("import", str(export.parent), "-u", "u", "-d", url, "--json")
    assert [(one["format"], one["new"]) for one in took.json["files"]] == [("slack", 1)]
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.jsonl").write_text('{"user": "u", "conversation": "c", "role": "user", "content": "hi"}')
    took = cli("import", str(tmp_path / "notes"), "-d", url)
    assert (took.code, "name the files in it" in took.err) == (1, True)


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
    assert max(hit["occurred_at"] for hit in found("--until", "2026-04-01T00:00:00+00:00")) < "2026-04-01"
    assert found("--conversation", "everyday") != found("--conversation", "lisbon")
    assert found("--tag", "none such") == found("--as-of", "2020-01-01") == []
    for wrong in (("-u", " "), ("-u", "\udcff"), ("-u", "alice", "--tier", "files"), ("-u", "alice", "--role", "king")):
        assert of_sample("recall", "x", *wrong).code == 2, wrong


def test_on_a_pipe_a_hit_is_a_line_with_tabs(of_sample: Run) -> None:
    lines = of_sample("recall", "fish", "-u", "alice").out.splitlines()
    assert len(lines) == 10
    assert all(len(cells.split("\t")) == 5 for cells in lines)
    facts = of_sample("facts", "-u", "alice").out.splitlines()
    assert all(re.fullmatch(r"[0-9a-f]{8}\t\w+\t\d{4}-\d\d-\d\d\t[01]\.\d\d\t.+", fact) for fact in facts)


def test_summaries_are_listed_by_level(of_sample: Run) -> None:
    trip = ("summaries", "-u", "alice", "-c", "lisbon")
    found = of_sample(*trip, "--json").json
    levels = [one["level"] for one in found]
    assert levels and levels == sorted(levels)
    assert of_sample(*trip, "--level", "1", "--json").json[0] == found[0]
    shown = of_sample(*trip, "--level", "1").out
    assert re.match(r"1\t\d+-\d+\t\d{4}-\d\d-\d\d\t\d{4}-\d\d-\d\d\t\d+\t.+\n", shown)
    assert "none yet" in of_sample(*trip, "--level", "0").err


def test_context_is_within_its_budget_and_says_so(of_sample: Run) -> None:
    asked = ("context", "What may I eat?", "-u", "alice", "-c", "lisbon", "-b", "400", "--system", "Be kind.")
    given = of_sample(*asked, "--json").json
    assert set(given) == {"messages", "tokens", "receipt"}
    assert given["tokens"] == given["receipt"]["tokens"] == sum(given["receipt"]["sections"].values()) <= 400
    assert given["messages"][0] == {"role": "system", "content": "Be kind."}
    kept = of_sample(*asked, "--reserve", "200", "--json").json
    assert kept["tokens"] <= 200
    shown = of_sample(*asked, "--explain").out
    assert "── system\nBe kind.\n" in shown
    assert f"{given['tokens']} of 400 tokens" in shown
    assert " in, " in shown


def test_receipts_are_listed_explained_and_replayed(of_sample: Run) -> None:
    place = ("-u", "alice", "-c", "lisbon")
    given = of_sample("context", "What may I eat?", *place, "-b", "400", "--system", "Be kind.", "--json").json
    id = given["receipt"]["id"]
    (last,) = of_sample("receipts", *place, "-n", "1", "--json").json
    assert last == given["receipt"]
    cells = of_sample("receipts", *place, "-n", "1").out.rstrip("\n").split("\t")
    assert cells[1:4] == [id, str(given["tokens"]), "400"]
    assert cells[-1] == "What may I eat?"
    assert of_sample("receipt", id, "-u", "alice", "--json").json == given["receipt"]
    assert f"{given['tokens']} of 400 tokens" in of_sample("receipt", id, "-u", "alice").out
    again = of_sample("replay", id, "-u", "alice", "--json")
    assert (again.code, again.json["exact"], again.json["missing"]) == (0, True, [])
    assert again.json["messages"] == given["messages"]
    assert "Be kind." in of_sample("replay", id, "-u", "alice").out
    assert of_sample("receipt", str(uuid4()), "-u", "alice").code == 2
    assert "not how an id begins" in of_sample("replay", "last", "-u", "alice").err


def test_context_with_everything_and_its_replay(of_sample: Run) -> None:
    asked = ("context", "What may I eat?", "-u", "alice", "-c", "lisbon", "-b", "700", "--system", "Be kind.")
    given = of_sample(*asked, "--model", "gpt-4o", "--format", "anthropic", "--viewer", "bob", "--json").json
    receipt = given["receipt"]
    assert (receipt["counter"], receipt["count"]) == ("tiktoken:gpt-4o", "estimated")
    assert sum(receipt["sections"].values()) == given["tokens"] <= 700
    assert receipt["arguments"]["viewer"] == "bob"
    again = of_sample("replay", receipt["id"], "-u", "alice", "--json").json
    assert (again["exact"], again["messages"], again["system"]) == (True, given["messages"], given["system"])
    assert of_sample(*asked, "--format", "text").out.startswith("Be kind.\n\n# ")
    past = of_sample(*asked, "--as-of", "2020-01-01", "--json").json
    assert len(past["messages"]) == 2, "the system prompt and the question"


def test_context_that_cannot_be_says_what_it_needs(of_sample: Run) -> None:
    refused = of_sample("context", "What?", "-u", "alice", "-c", "lisbon", "-b", "3", "--json")
    assert (refused.code, refused.out) == (4, "")
    needed = re.search(r"at least (\d+) tokens", refused.err)
    assert needed
    assert of_sample("context", "What?", "-u", "alice", "-c", "lisbon", "-b", needed[1]).code == 0


# Who is asked about


def test_an_unknown_name_is_no_error_but_a_hint(of_sample: Run) -> None:
    for command in (
        ("facts",),
        ("recall", "x"),
        ("stats",),
        ("derive",),
        ("context", "x", "-c", "lisbon", "-b", "100"),
    ):
        told = of_sample(*command, "-u", "alicia", "--json")
        assert (told.code, "no user 'alicia'" in told.err, "memstore users" in told.err) == (0, True, True), command
    assert of_sample("facts", "-u", "alicia", "--json").json == []
    assert of_sample("stats", "-u", "alicia", "--json").json["users"] == 0
    for command in (("recall", "x"), ("context", "x", "-b", "100")):
        assert "no conversation 'lisboa'" in of_sample(*command, "-u", "alice", "-c", "lisboa").err
    assert of_sample("context", "x", "-u", "alice", "-c", "lisbon", "-b", "100").err == ""


# What was stored is shown, and never obeyed


def test_stored_text_is_harmless(of_sample: Run) -> None:
    commands = (
        ("recall", "chess", "-u", "mallory"),
        ("facts", "-u", "mallory", "--state", "all"),
        ("context", "-u", "mallory", "-c", "a\x1b[2Jb", "-b", "500", "--explain"),
        ("context", "hi", "-u", "mallory", "-c", "none", "-b", "500"),
    )
    for command in commands:
        for as_json in ((), ("--json",)):
            told = of_sample(*command, *as_json)
            assert told.code == 0
            assert not OBEYED.search(told.out + told.err), (command, as_json)
    shown = of_sample(*commands[0]).out
    assert r"\x1b[31mred\x1b]0;title\x07 [bold]stays[/bold] :smile: \x9b2J a b \u202egnp.exe I love" in shown
    assert "a\tb" in of_sample(*commands[2]).out
    told = of_sample(*commands[0], "--json").json
    assert any(
        hit["text"].startswith("\x1b[31mred\x1b]0;title\x07 [bold]stays") and "\x9b2J" in hit["text"] for hit in told
    )


# What goes wrong


def test_usage_is_2_with_what_is_wrong(cli: Run) -> None:
    wrong = {
        ("recall", "x"): "--user",
        ("recall", "x", "-u", "a", "--since", "yesterday"): "2024-05-01",
        ("recall", "x", "-u", "a", "--until", "9999-12-31T23:59:59-14:00x"): "is no time",
        ("facts", "-u", "a", "--state", "dead"): "'active', 'ended', 'quarantined', 'superseded'",
        ("import",): "files",
        ("import", "x", "--format", "word"): "'auto', 'memstore', 'jsonl', 'chatgpt'",
        ("stats", "-d", "mysql://x"): "is no database",
        ("db", "status", "-d", "mysql://x"): "is no database",
        ("db", "stop", "-d", "postgresql://me:secret@host/db"): "is not embedded",
        ("nonsense",): "nonsense",
    }
    for command, why in wrong.items():
        told = cli(*command)
        assert (told.code, told.out) == (2, ""), command
        assert why in told.err, command
        assert "secret" not in told.err


@pytest.mark.parametrize("command", [("stats",), ("db", "status"), ("facts", "-u", "a"), ("doctor",)])
def test_a_database_that_does_not_answer_is_3(cli: Run, command: tuple[str, ...], tmp_path: Path) -> None:
    told = cli(*command, "-d", NOWHERE)
    assert told.code == 3
    assert "does not answer" in told.err + told.out
    (tmp_path / "file").touch()
    told = cli(*command, "-d", f"embedded:{tmp_path / 'file' / 'store'}")
    assert told.code == 3
    assert "embedded Postgres" in told.err + told.out


def test_a_setting_that_cannot_be_is_named(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTORE_POOL_SIZE", "many\x1b[31m")
    for command in (("stats",), ("db", "status"), ("demo",)):
        told = cli(*command)
        assert told.code == 2
        assert told.err.count("\n") == 1
        assert "MEMSTORE_POOL_SIZE='many" in told.err
    told = cli("doctor", "--json")
    assert (told.code, told.json["ok"]) == (2, False)
    assert "MEMSTORE_POOL_SIZE" in told.json["checks"][-1]["detail"]


def test_a_failure_of_derive_is_a_line_and_with_verbose_a_traceback(
    cli: Run, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("no\n\x1b[31mgood")

    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        store.user("u").conversation("c").add("user", "I live in Leeds.")
    monkeypatch.setattr("memstore.testing.HashingEmbedder.embed_documents", fail)
    told = cli("derive", "-d", url, "--json")
    assert told.code == 1
    assert told.json["failed"]
    assert "warning: embed failed in conversation" in told.err
    assert "Traceback" not in told.err
    assert not OBEYED.search(told.err)
    loud = cli("--verbose", "derive", "-d", url)
    assert "Traceback" in loud.err
    assert not OBEYED.search(loud.err)
    assert "failed; memstore --verbose derive" in cli("doctor", "-d", url).out


# Processes and terminals


def imported(*command: str) -> set[str]:
    """Give the modules that a command imports."""
    ran = [sys.executable, "-X", "importtime", str(SCRIPT), *command]
    told = subprocess.run(ran, env=environment(), capture_output=True, text=True, timeout=120, check=True)
    return {line.rpartition("|")[2].strip() for line in told.stderr.splitlines() if line.startswith("import time:")}


def test_what_is_quick_imports_nothing_heavy(stored: str) -> None:
    helped = imported("--help")
    assert "typer" in helped
    heavy = {"torch", "sentence_transformers", "numpy", "sqlalchemy", "sqlmodel", "psycopg", "alembic", "tiktoken"}
    assert not helped & (heavy | {"pydantic", "asyncio", "rich.progress"})
    facts = imported("facts", "--user", "alice", "-d", stored)
    assert "psycopg" in facts
    assert not facts & {"torch", "sentence_transformers", "transformers", "alembic"}
    assert not {
        one for one in facts if one.startswith("memstore.derive.rules.engine")
    }  # they compile for half a second


def test_a_reader_that_leaves_is_no_error() -> None:
    for command in (("db", "sql"), ("db", "sql", "--json"), ("--help",)):
        with subprocess.Popen(
            [SCRIPT, *command], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout
            assert process.stderr
            process.stdout.close()
            assert process.stderr.read() == b"", command
        assert process.returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_behind_stdout_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run([SCRIPT, "db", "sql"], env=environment(), stdout=full, stderr=subprocess.PIPE, text=True)
    assert (ran.returncode, ran.stderr) == (1, "memstore: No space left on device\n")


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


def on_terminal(*args: str, columns: int, **more: str) -> Ended:
    """Run the script on a terminal of this width, and give what it shows; stdout and stderr are one there."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    env = environment(TERM="xterm-256color", **more)
    del env["COLUMNS"]
    with subprocess.Popen([SCRIPT, *args], env=env, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        try:
            while more_shown := os.read(ours, 65536):
                shown += more_shown
        except OSError:  # what Linux gives when the other end is closed
            pass
        os.close(ours)
    return Ended(process.returncode, shown.decode().replace("\r\n", "\n"), "")


def test_a_terminal_is_shown_colours_and_nothing_that_was_stored_is_obeyed(stored: str) -> None:
    shown = on_terminal("recall", "chess", "-u", "mallory", columns=100, MEMSTORE_DATABASE_URL=stored)
    assert "\x1b[" in shown.out
    assert not OBEYED.search(re.sub(r"\x1b\[[0-9;]*m", "", shown.out))
    assert r"\x1b[31mred" in re.sub(r"\x1b\[[0-9;]*m", "", shown.out)
    assert "[bold]stays[/bold]" in shown.out
    dull = on_terminal("recall", "chess", "-u", "mallory", columns=100, MEMSTORE_DATABASE_URL=stored, NO_COLOR="1")
    assert not re.search(r"\x1b\[(?:\d+;)*(?:3|4|9|10)\d", dull.out)


def test_progress_is_on_a_terminal_only_and_never_in_the_data(url: str) -> None:
    shown = on_terminal("import", str(SAMPLE), columns=80, MEMSTORE_DATABASE_URL=url)
    assert "\x1b[?25l" in shown.out  # the cursor is hidden while progress is drawn
    assert re.search(r"sample.jsonl\S*: \d+ new, 0 known, 0 skipped", shown.out)
    piped = script("derive", "-d", url)
    assert piped.err == ""
    assert piped.out.count("\n") == 1


# Looking after the database


def test_db_commands(tmp_path: Path, cli: Run) -> None:
    folder = tmp_path / "store"
    at = ("-d", f"embedded:{folder}", "--json")
    assert cli("db", "status", *at).json == {"revision": None, "head": migrations.HEAD, "current": False}
    assert not folder.exists()
    assert cli("db", "stop", *at).json == {"folder": str(folder), "stopped": False}
    server = EmbeddedServer.open(folder)
    try:
        assert cli("db", "status", *at).json["revision"] is None
        assert "to be upgraded: memstore db upgrade" in cli("db", "status", *at[:2]).out
        assert cli("db", "upgrade", *at).json == cli("db", "status", *at).json
        assert cli("db", "status", *at).json["current"] is True
        assert cli("db", "stop", *at).json["stopped"] is True
    finally:
        server.close()
    assert "CREATE TABLE" in cli("db", "sql").out
    assert "CREATE TABLE" in cli("db", "sql", "--json").json["sql"]


def test_doctor_finds_all_well_and_keeps_secrets(of_sample: Run, stored: str) -> None:
    told = of_sample("doctor", "--json")
    assert (told.code, told.json["ok"]) == (0, True), told.out
    looked_at = [one["what"] for one in told.json["checks"]]
    expected = ["python", "settings", "token counter", "embedder", "facts model", "summary model", "database"]
    assert looked_at[:7] == expected
    assert {"server", "schema", "isolation", "derivations"} <= set(looked_at)
    assert told.json["checks"][1]["detail"] == f"embedder={EMBEDDER}"
    told = of_sample("doctor", "-d", NOWHERE.replace("nobody@", "nobody:secret@"))
    assert "secret" not in told.out + told.err


def test_units_without_vectors_are_told_of_and_get_them(
    cli: Run, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMSTORE_DATABASE_URL", url)
    monkeypatch.setenv("MEMSTORE_EMBEDDER", "none")
    assert cli("fact", "add", "Bo is Al's brother.", "--type", "relationship", "-u", "alice").code == 0
    assert (cli("doctor").code, "--redo vectors" in cli("doctor").out, cli("stats").err) == (0, False, "")
    assert cli("derive", "--redo", "vectors").code == 2
    monkeypatch.setenv("MEMSTORE_EMBEDDER", EMBEDDER)
    for command in ("doctor", "stats"):
        told = cli(command)
        assert "1 units have none" in told.out + told.err
        assert "memstore derive --redo vectors" in told.out + told.err
    assert cli("stats", "--json").json["without_vectors"] == 1
    assert cli("derive", "--redo", "vectors", "--json").json["vectors"] == 1
    assert (cli("stats", "--json").json["without_vectors"], cli("stats").err) == (0, "")
    monkeypatch.setenv("MEMSTORE_EMBEDDER", "none")
    assert "MEMSTORE_EMBEDDER" in cli("doctor").out
    assert cli("fact", "add", "Bo is Al's twin.", "--type", "relationship", "-u", "alice").code == 1


def test_large_users_are_told_of_and_get_their_indexes(cli: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTORE_DATABASE_URL", url)
    monkeypatch.setenv("MEMSTORE_EMBEDDER", EMBEDDER)
    assert cli("fact", "add", "Bo is Al's brother.", "--type", "relationship", "-u", "alice").code == 0
    assert "large users" not in cli("doctor").out
    monkeypatch.setenv("MEMSTORE_MAX_CHUNKS_IN_MEMORY", "0")
    told = cli("doctor")
    assert told.code == 0
    assert "recall is slow for 'alice': memstore db index" in told.out
    assert cli("recall", "brother", "-u", "alice", "--json").json[0]["text"] == "Bo is Al's brother."
    (alice,) = cli("db", "index", "--json").json
    assert (alice["name"], alice["units"], alice["indexed"]) == ("alice", 1, True)
    assert "all are indexed" in cli("doctor").out
    assert cli("recall", "brother", "-u", "alice", "--json").json[0]["text"] == "Bo is Al's brother."


def test_doctor_names_models_that_are_not_there(cli: Run, stored: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {
        ("reranker", "cross-encoder:/no/such/folder"): "FAIL reranker: There is no folder '/no/such/folder'",
        (
            "embedder",
            "nobody:knows",
        ): "FAIL settings: MEMSTORE_EMBEDDER='nobody:knows': Nobody knows the provider 'nobody:knows'",
        ("embedder", "sentence-transformers:all-MiniLM-L6-v2"): "pip install '.[sentence-transformers]'",
    }
    for (setting, model), why in wrong.items():
        if setting == "embedder":
            monkeypatch.setattr("memstore.providers.sentence_transformers.find_spec", lambda _: None)
        told = cli("doctor", "-d", stored, **{setting: model})
        assert (told.code, why in told.out) == (2, True), told.out


def test_settings_of_the_system(cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("context_budget = 4000\nstrategies = ['tool_calls', 'summary_buffer']\n")
    monkeypatch.setenv("MEMSTORE_CONFIG", str(file))
    values = {row["name"]: row for row in cli("settings", "--json").json}
    assert values["strategies"]["value"] == ["tool_calls", "summary_buffer"]
    cells = [row.split("\t") for row in cli("settings").out.splitlines()]
    rows = {name: (source, value) for name, source, value in cells}
    assert rows["context_budget"] == (str(file), "4000")
    assert rows["embedder"] == ("MEMSTORE_EMBEDDER", EMBEDDER)
    assert rows["context_reserve"] == ("default", "0")
    monkeypatch.setenv("MEMSTORE_DATABASE_URL", "postgresql://me:s3sam3@127.0.0.1/memories")
    assert "s3sam3" not in cli("settings").out


def test_settings_of_a_conversation_and_a_viewer(cli: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTORE_DATABASE_URL", url)
    whose = ("-u", "world", "-c", "room")
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        room = store.user("world").conversation("room")
        room.add("user", "@carol the code is walnut")
        room.add("user", "Who has the ladder?")
        told = cli("context", *whose)
        assert (told.code, "context_budget" in told.err) == (2, True)
        room.update(settings={"context_budget": 700})
    assert "walnut" in str(cli("context", *whose, "--json").json["messages"])
    hidden = cli("context", *whose, "--viewer", "bob", "--json").json
    assert hidden["receipt"]["budget"] == 700
    assert "walnut" not in str(hidden["messages"])
    sources = {one["name"]: one["source"] for one in cli("settings", *whose, "--json").json}
    assert (sources["context_budget"], sources["visibility"]) == ("conversation", "default")
    assert cli("settings", "-u", "world").code == 2


def test_version(cli: Run) -> None:
    told = cli("--version").out
    assert re.fullmatch(r"memstore \d+\.\d+\.\d+\S*\n", told)
    as_module = subprocess.run([sys.executable, "-m", "memstore", "--version"], capture_output=True, text=True)
    assert as_module.stdout == told


# The demo


def test_demo_tells_the_story_and_ends_with_its_tokens(cli: Run) -> None:
    told = cli("demo", "--budget", "700")
    assert told.code == 0
    steps = re.findall(r"^(\d)\. ", told.out, re.MULTILINE)
    assert steps == ["1", "2", "3", "4", "5"]
    assert re.search(r"of 700 tokens: (\w+ [\d,]+(, )?)+\n\Z", told.out)
    assert "memstore import FILE" in told.err


@pytest.mark.slow
def test_demo_and_the_main_job_as_installed(tmp_path: Path) -> None:
    more = {"MEMSTORE_DATABASE_URL": f"embedded:{tmp_path / 'store'}"}
    env = environment(**more)
    del env["MEMSTORE_EMBEDDER"]

    def installed(*args: str) -> Ended:
        ran = subprocess.run([SCRIPT, *args], env=env, capture_output=True, text=True, timeout=300)
        return Ended(ran.returncode, ran.stdout, ran.stderr)

    told = installed("demo")
    assert told.code == 0
    assert "of 1,200 tokens" in told.out
    assert "peanut" in told.out
    assert told.err.count("\n") == 1  # the hint, and no noise of a library
    assert installed("import", str(SAMPLE)).code == 0
    assert installed("derive").code == 0
    hits = installed("recall", "an allergy to nuts", "--user", "alice", "--json").json
    assert any("peanut" in hit["text"] for hit in hits)


def test_a_fact_lives_on_the_command_line(cli: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTORE_DATABASE_URL", url)
    of_alice = ("-u", "alice", "--json")
    added = cli("fact", "add", "Bo is Al's brother.", "--type", "relationship", "--subject", "Bo", *of_alice).json
    said = ("--attribute", "brother", "--value", "Al", "--from", "2020-01-01T00:00:00+00:00")
    edited = cli("fact", "edit", added["id"], *said, *of_alice).json
    assert (edited["id"], edited["value"], edited["valid_from"]) == (added["id"], "Al", "2020-01-01T00:00:00+00:00")
    assert cli("fact", "retract", added["id"], *of_alice).json["state"] == "retracted"
    assert cli("facts", *of_alice).json == []
    history = cli("fact", "history", added["id"], *of_alice).json
    assert [step["action"] for step in history] == ["added", "edited", "retracted"]
    assert [fact["id"] for fact in cli("facts", "--as-of", history[1]["at"], *of_alice).json] == [added["id"]]
    assert cli("fact", "undo", history[2]["id"], *of_alice).json["action"] == "restored"
    again = cli("fact", "undo", history[2]["id"], *of_alice)
    assert (again.code, "undo the later change first" in again.err) == (1, True)
    assert len(cli("facts", "--kind", "semantic", "--subject", "bo", *of_alice).json) == 1
    assert "preference" in cli("facts", "--type", "hobby", *of_alice).err
    other = cli("fact", "edit", added["id"], "--text", "Bo is Al's twin.", *of_alice).json
    shown = cli("fact", "history", other["id"], "-u", "alice").out.splitlines()[-1].split("\t")
    assert (shown[1], shown[-1]) == (f"edited from {added['id'][:8]}", "Bo is Al's brother.")
    shown = cli("fact", "history", added["id"], "-u", "alice").out.splitlines()
    assert [row.split("\t")[-1] for row in shown if "\tretracted\t" in row] == ["state: active → retracted"]
    rows = [row.split("\t") for row in cli("facts", "--state", "all", "-u", "alice").out.splitlines()]
    assert {row[-1]: row[-2] for row in rows} == {"Bo is Al's brother.": "superseded", "Bo is Al's twin.": "active"}
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        waiting = store.user("alice").add_fact("Alice lives in Porto.", type="identity", quarantined=True)
    [listed] = cli("facts", "--state", "quarantined", *of_alice).json
    assert listed["id"] == str(waiting.id)
    assert cli("fact", "confirm", str(waiting.id)[:8], *of_alice).json["state"] == "active"
