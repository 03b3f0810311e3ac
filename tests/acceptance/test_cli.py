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
from memstore.cli import import_export
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
    assert len(took.json["reasons"]) == 3
    assert all(set(one) == {"file", "where", "reason"} for one in took.json["reasons"])
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


def test_import_of_much_nonsense_shows_the_first_of_it(cli: Run, url: str, tmp_path: Path) -> None:
    file = tmp_path / "file.jsonl"
    file.write_text('{"user": "u", "conversation": "c", "role": "user", "content": "hello"}\n' + "{\n" * 50)
    took = cli("import", str(file), "-d", url)
    assert took.err.count("skipped ") == import_export.MAX_SHOWN
    assert "and 30 more; --json names them all" in took.err
    assert "next: memstore derive" in took.err
    took = cli("import", str(file), "-d", url, "--json")
    assert len(took.json["reasons"]) == took.json["skipped"] == 50


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


def test_import_takes_an_export_that_is_a_folder_and_the_files_of_one_that_is_none(
    cli: Run, url: str, tmp_path: Path
) -> None:
    line = {"user": "u", "conversation": "c", "role": "user", "content": "hello"}
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "a.jsonl").write_text(json.dumps(line) + "\n")
    (tmp_path / "b.jsonl").write_text(json.dumps(line | {"content": "world"}) + "\n")
    (tmp_path / ".hidden.jsonl").write_text("nonsense\n")
    took = cli("import", str(tmp_path), "-d", url, "--json")
    assert (took.code, took.json["new"]) == (0, 2)
    assert [Path(one["file"]).name for one in took.json["files"]] == ["b.jsonl", "a.jsonl"]
    assert cli("import", str(tmp_path), "--format", "jsonl", "-d", url, "--json").json["known"] == 2
    export = tmp_path / "export" / "general"
    export.mkdir(parents=True)
    (export / "2024-05-01.json").write_text(json.dumps([{"user": "U1", "text": "hi", "ts": "1714564800.1"}]))
    (export.parent / "users.json").write_text("[]")
    took = cli("import", str(export.parent), "-u", "u", "-d", url, "--json")
    assert [(one["format"], one["new"]) for one in took.json["files"]] == [("slack", 1)]


# The three questions


def test_recall_gives_hits_as_a_list(of_sample: Run) -> None:
    hits = of_sample("recall", "fish in Lisbon", "--user", "alice", "-n", "4", "--json").json
    assert len(hits) == 4
    for hit in hits:
        assert {"tier", "text", "score", "parts", "sources", "occurred_at"} <= hit.keys()
        assert hit["sources"]
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)


def test_recall_is_narrowed_by_its_options(of_sample: Run) -> None:
    def found(*options: str) -> list[dict[str, Any]]:
        hits: list[dict[str, Any]] = of_sample("recall", "Lisbon", "-u", "alice", *options, "--json").json
        return hits

    assert {hit["tier"] for hit in found("--tier", "facts", "--tier", "summaries")} <= {"facts", "summaries"}
    assert {hit["role"] for hit in found("--tier", "messages", "--role", "assistant")} == {"assistant"}
    since, until = found("--since", "2026-04-01"), found("--until", "2026-04-01T00:00:00+00:00")
    assert since
    assert until
    assert min(hit["occurred_at"] for hit in since) >= "2026-03-31"  # the day begins by the terminal's own clock
    assert max(hit["occurred_at"] for hit in until) < "2026-04-01"
    assert found("--conversation", "everyday") != found("--conversation", "lisbon")
    assert found("--tag", "none such") == []


def test_hits_are_told_in_time_by_session_and_by_fact(of_sample: Run) -> None:
    def found(*options: str) -> list[dict[str, Any]]:
        groups: list[dict[str, Any]] = of_sample("recall", "fish in Lisbon", "-u", "alice", *options, "--json").json
        return groups

    times = [hit["occurred_at"] for hit in found("--order", "time")]
    assert times == sorted(times)
    sessions = found("--group-by", "session", "-n", "2")
    assert len(sessions) == 2
    for group in sessions:
        assert group["fact"] is None
        assert group["since"] <= min(hit["occurred_at"] for hit in group["hits"] if hit["tier"] == "messages")
    facts = found("--group-by", "fact", "-n", "3")
    assert [{hit["id"] for hit in group["hits"]} for group in facts] == [set(one["fact"]["sources"]) for one in facts]
    lines = of_sample("recall", "fish", "-u", "alice", "--group-by", "fact", "-n", "2").out.splitlines()
    assert [line.split("\t")[0] for line in lines if "\tfacts\t" in line] == ["1", "2"]
    assert all(len(line.split("\t")) == 6 for line in lines)
    assert of_sample("recall", "fish", "-u", "alice", "--group-by", "day").code == 2


def test_on_a_pipe_a_hit_is_a_line_with_tabs(of_sample: Run) -> None:
    lines = of_sample("recall", "fish", "-u", "alice").out.splitlines()
    assert len(lines) == 10
    assert all(len(cells.split("\t")) == 5 for cells in lines)
    facts = of_sample("facts", "-u", "alice").out.splitlines()
    assert all(re.fullmatch(r"[0-9a-f]{8}\t\w+\t\d{4}-\d\d-\d\d\t[01]\.\d\d\t.+", fact) for fact in facts)


def test_summaries_are_listed_by_level_and_made_on_demand(cli: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTORE_DATABASE_URL", url)
    trip = ("summaries", "-u", "alice", "-c", "lisbon")
    assert cli("import", str(SAMPLE)).code == 0
    assert "--make" in cli(*trip).err
    assert cli("derive").code == 0
    found = cli(*trip, "--json").json
    assert found
    levels = [one["level"] for one in found]
    assert levels == sorted(levels)
    assert cli(*trip, "--level", "1", "--json").json[0] == found[0]
    assert cli(*trip, "--from", "1").code == 2
    assert cli(*trip, "--level", "0", "--json").json == []
    [made] = cli(*trip, "--make", "--from", "2", "--to", "9", "--json").json
    assert (made["level"], made["from_seq"], made["to_seq"]) == (0, 2, 9)
    assert cli(*trip, "--make", "--from", "2", "--to", "9", "--json").json == [made]
    assert cli(*trip, "--level", "0", "--json").json == [made]
    assert re.fullmatch(r"0\t2-9\t\d{4}-\d\d-\d\d\t\d{4}-\d\d-\d\d\t\d+\t.+\n", cli(*trip, "--level", "0").out)
    wrong = cli(*trip, "--make", "--to", "100000")
    assert (wrong.code, wrong.out) == (2, "")
    assert "has 1 to" in wrong.err
    assert cli(*trip, "--make", "--level", "1").code == 2


def test_facts_are_a_list_with_sources(of_sample: Run) -> None:
    facts = of_sample("facts", "-u", "alice", "--json").json
    names = {"text", "type", "subject", "confidence", "sources", "state", "valid_from", "valid_to"}
    assert all(names <= fact.keys() and fact["state"] == "active" and fact["sources"] for fact in facts)
    kinds = {fact["type"] for fact in facts}
    assert len(kinds) > 1
    one = min(kinds)
    assert {fact["type"] for fact in of_sample("facts", "-u", "alice", "--type", one, "--json").json} == {one}
    every = of_sample("facts", "-u", "alice", "--state", "all", "--json").json
    assert len(every) >= len(facts)


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
    assert "is no id" in of_sample("replay", "last", "-u", "alice").err


def test_context_and_recall_of_a_past_moment(of_sample: Run) -> None:
    past = ("-u", "alice", "--as-of", "2020-01-01")
    assert of_sample("recall", "peanuts", *past, "--json").json == []
    given = of_sample("context", "What may I eat?", "-c", "lisbon", "-b", "400", *past, "--json").json
    assert len(given["messages"]) == 1


def test_context_is_written_in_the_format_that_is_asked_for(of_sample: Run) -> None:
    asked = ("context", "What may I eat?", "-u", "alice", "-c", "lisbon", "-b", "400", "--system", "Be kind.")
    given = of_sample(*asked, "--format", "anthropic", "--json").json
    assert set(given) == {"messages", "tokens", "receipt", "system"}
    assert given["system"].startswith("Be kind.")
    assert given["messages"][-1]["content"][-1] == {"type": "text", "text": "What may I eat?"}
    assert "── system\nBe kind." in of_sample(*asked, "--format", "anthropic").out
    assert of_sample(*asked, "--format", "text").out.startswith("Be kind.\n\n# ")
    told = of_sample(*asked, "--format", "xml")
    assert (told.code, "'openai', 'ollama', 'anthropic'" in told.err) == (2, True)


def test_context_with_everything_and_its_replay(of_sample: Run, tmp_path: Path) -> None:
    asked = ("context", "What may I eat?", "-u", "alice", "-c", "lisbon", "-b", "700", "--system", "Be kind.")
    tools = tmp_path / "tools.json"
    tools.write_text('[{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]')
    own = ("--section", "calendar=Friday: Porto.", "--section", '{"name": "hits", "maximum": 0}')
    more = ("--model", "gpt-4o", "--tools", str(tools), "--format", "anthropic", "--viewer", "bob")
    given = of_sample(*asked, *own, *more, "--json").json
    receipt = given["receipt"]
    assert (receipt["counter"], receipt["count"]) == ("tiktoken:gpt-4o", "estimated")
    assert sum(receipt["sections"].values()) == given["tokens"] <= 700
    assert all(receipt["sections"][name] > 0 for name in ("calendar", "tools"))
    assert receipt["sections"]["hits"] == 0
    assert "Friday: Porto." in str(given["messages"])
    assert (receipt["arguments"]["viewer"], receipt["arguments"]["tools"]) == ("bob", ["weather"])
    again = of_sample("replay", receipt["id"], "-u", "alice", "--json").json
    assert (again["exact"], again["messages"], again["system"]) == (True, given["messages"], given["system"])
    text = of_sample(*asked, *own, "--format", "text", "--json").json
    replay = of_sample("replay", text["receipt"]["id"], "-u", "alice")
    assert (replay.code, replay.out.startswith("Be kind.\n\n# ")) == (0, True)
    tools.write_text("{}")
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 100_000)
    wrong = {
        ("--section", "calendar"): "no section",
        ("--section", "{facts}"): "no JSON",
        ("--section", '{"name": "x"}'): "give it a text",
        ("--tools", str(tools)): "a list of JSON",
        ("--tools", str(deep)): "no definitions",
    }
    for options, why in wrong.items():
        told = of_sample(*asked, *options)
        assert (told.code, why in told.err) == (2, True), told


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


def test_a_new_store_says_that_it_is_empty(cli: Run, url: str) -> None:
    told = cli("facts", "-u", "alice", "-d", url)
    assert (told.code, told.out, "no user 'alice'" in told.err) == (0, "", True)
    assert cli("derive", "-d", url) == (0, "nothing was pending\n", "")
    counts = cli("stats", "-d", url, "--json").json
    assert set(counts.values()) == {0}


def test_stats_are_integers(of_sample: Run) -> None:
    counts = of_sample("stats", "--json").json
    assert {type(count) for count in counts.values()} == {int}
    assert counts["users"] == 3
    assert of_sample("stats", "-u", "waiting", "--json").json["messages"] == 1
    assert f"messages\t{counts['messages']:,}\n" in of_sample("stats").out


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
        ("recall", "x", "-u", " "): "a name is not empty",
        ("recall", "x", "-u", "\udcff"): "not UTF-8",
        ("recall", "x", "-u", "a", "--tier", "facts", "--tier", "files"): "messages, summaries, facts",
        ("recall", "x", "-u", "a", "--since", "yesterday"): "2024-05-01",
        ("recall", "x", "-u", "a", "--until", "9999-12-31T23:59:59-14:00x"): "is no time",
        ("facts", "-u", "a", "--state", "dead"): "active, ended, quarantined, superseded, retracted, erased, all",
        ("import",): "files",
        ("import", "x", "--format", "word"): "auto, memstore, jsonl, chatgpt",
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


def test_bars_are_on_a_terminal_only_and_never_in_the_data(url: str) -> None:
    shown = on_terminal("import", str(SAMPLE), columns=80, MEMSTORE_DATABASE_URL=url)
    assert "\x1b[?25l" in shown.out  # the cursor is hidden while bars are drawn
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
    expected = ["python", "settings", "token counter", "embedder", "chat models", "database"]
    assert looked_at[:6] == expected
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


def test_doctor_tells_how_far_counts_were_from_what_servers_told(cli: Run, url: str) -> None:
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        for user, misses in (("alice", (0, -2)), ("bob", (1,))):
            talk = store.user(user).conversation("c")
            talk.add("user", "When does the ferry leave?")
            context = talk.context(budget=500)
            for miss in misses:
                talk.record_usage(context, prompt_tokens=context.tokens - miss, model="gpt-4o")
        tokens = int(context.tokens)
    told = cli("doctor", "-d", url, "--json")
    (drift,) = [one for one in told.json["checks"] if one["what"] == "token counts"]
    assert drift["ok"]
    observed = 3 * tokens + 1
    assert drift["detail"] == (
        f"gpt-4o by tiktoken:o200k_base: {3 * tokens / observed - 1:+.2%} over 3 calls, "
        f"at most 2 tokens ({2 / (tokens + 2):.2%}) in one"
    )


def test_doctor_names_models_that_are_not_there(cli: Run, stored: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {
        ("reranker", "cross-encoder:/no/such/folder"): "FAIL reranker: There is no folder '/no/such/folder'",
        ("embedder", "nobody:knows"): "FAIL settings: MEMSTORE_EMBEDDER='nobody:knows': nobody knows this provider",
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
    values = {row["name"]: row for row in cli("settings", "list", "--json").json}
    assert values["strategies"]["value"] == ["tool_calls", "summary_buffer"]
    cells = [row.split("\t") for row in cli("settings", "list").out.splitlines()]
    rows = {name: (source, value) for name, source, value in cells}
    assert rows["context_budget"] == (str(file), "4000")
    assert rows["embedder"] == ("MEMSTORE_EMBEDDER", EMBEDDER)
    assert rows["context_reserve"] == ("default", "0")
    assert cli("settings", "set", "context_budget", "0").code == 2, "the file is for editors"
    monkeypatch.setenv("MEMSTORE_DATABASE_URL", "postgresql://me:s3sam3@127.0.0.1/memories")
    assert "s3sam3" not in cli("settings", "list").out


def test_settings_of_a_conversation_and_a_viewer(cli: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTORE_DATABASE_URL", url)
    whose = ("-u", "world", "-c", "room")
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        room = store.user("world").conversation("room")
        room.add("user", "@carol the code is walnut")
        room.add("user", "Who has the ladder?")
    told = cli("context", *whose)
    assert (told.code, "context_budget" in told.err) == (2, True)
    assert cli("settings", "set", "context_budget", "700", *whose).out == "700\n"
    assert "walnut" in str(cli("context", *whose, "--json").json["messages"])
    hidden = cli("context", *whose, "--viewer", "bob", "--json").json
    assert hidden["receipt"]["budget"] == 700
    assert "walnut" not in str(hidden["messages"])
    sources = {one["name"]: one["source"] for one in cli("settings", "list", *whose, "--json").json}
    assert (sources["context_budget"], sources["visibility"]) == ("conversation", "default")
    assert cli("settings", "set", "context_budget", "null", *whose).code == 0
    assert cli("context", *whose).code == 2
    assert cli("settings", "set", "embedder", "none", *whose).code == 2
    assert cli("settings", "list", "-u", "world").code == 2


def test_version(cli: Run) -> None:
    told = cli("--version").out
    assert re.fullmatch(r"memstore \d+\.\d+\.\d+\S*\n", told)
    as_module = subprocess.run([sys.executable, "-m", "memstore", "--version"], capture_output=True, text=True)
    assert as_module.stdout == told


# The demo


def test_demo_tells_the_story_and_ends_with_the_meter(cli: Run) -> None:
    told = cli("demo", "--budget", "700")
    assert told.code == 0
    steps = re.findall(r"^(\d)\. ", told.out, re.MULTILINE)
    assert steps == ["1", "2", "3", "4", "5"]
    assert re.search(r"of 700 tokens\n(■ \w+ [\d,]+ +)+\n\Z", told.out)
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


def test_what_waits_in_quarantine_is_listed_and_confirmed(cli: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTORE_DATABASE_URL", url)
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        waiting = store.user("alice").add_fact("Alice lives in Porto.", type="identity", quarantined=True)
    listed = cli("facts", "--state", "quarantined", "-u", "alice", "--json").json
    assert [fact["id"] for fact in listed] == [str(waiting.id)]
    assert cli("fact", "confirm", str(waiting.id)[:8], "-u", "alice", "--json").json["state"] == "active"
    assert len(cli("facts", "-u", "alice", "--json").json) == 1


def test_a_fact_lives_on_the_command_line(cli: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTORE_DATABASE_URL", url)
    of_alice = ("-u", "alice", "--json")
    added = cli("fact", "add", "Bo is Al's brother.", "--type", "relationship", "--subject", "Bo", *of_alice).json
    entered = {"state": "active", "recipe": "hand", "kind": "semantic", "subject": "Bo", "spans": []}
    assert entered.items() <= added.items()
    said = ("--attribute", "brother", "--value", "Al", "--from", "2020-01-01T00:00:00+00:00")
    edited = cli("fact", "edit", added["id"], *said, *of_alice).json
    assert (edited["id"], edited["value"]) == (added["id"], "Al")
    assert edited["valid_from"] == "2020-01-01T00:00:00+00:00"
    seen = cli("fact", "entity", "bo", *of_alice).json
    assert [(edge["attribute"], edge["value"]) for edge in seen["edges"]] == [("brother", "Al")]
    assert cli("fact", "retract", added["id"], *of_alice).json["state"] == "retracted"
    assert cli("facts", *of_alice).json == []
    history = cli("fact", "history", added["id"], *of_alice).json
    assert [step["action"] for step in history] == ["added", "edited", "retracted"]
    assert [fact["id"] for fact in cli("facts", "--as-of", history[1]["at"], *of_alice).json] == [added["id"]]
    assert cli("fact", "undo", history[2]["id"], *of_alice).json["action"] == "restored"
    again = cli("fact", "undo", history[2]["id"], *of_alice)
    assert (again.code, again.out) == (1, "")
    assert "undo the later change first" in again.err
    assert cli("fact", "undo", history[1]["id"], *of_alice).json["undoes"] == history[1]["id"]
    held = cli("facts", "--kind", "semantic", "--subject", "bo", *of_alice).json
    assert [fact["id"] for fact in held] == [added["id"]]
    assert cli("fact", "conflicts", *of_alice).json == []
    named = cli("fact", "entity", "al", *of_alice).json
    assert [fact["id"] for fact in named["facts"]] == [added["id"]], "it names him"
    told = cli("fact", "entity", "Boo", *of_alice)
    assert (told.json["facts"], told.err) == ([], "")
    told = cli("facts", "--type", "hobby", *of_alice)
    assert (told.code, "preference" in told.err) == (2, True)
    other = cli("fact", "edit", added["id"], "--text", "Bo is Al's twin.", *of_alice).json
    [step] = [one for one in cli("fact", "history", other["id"], *of_alice).json if one["action"] == "edited"]
    assert (step["fact_id"], step["other_id"]) == (other["id"], added["id"])
    shown = cli("fact", "history", other["id"], "-u", "alice").out.splitlines()[-1].split("\t")
    assert (shown[1], shown[-1]) == (f"edited from {added['id'][:8]}", "Bo is Al's brother.")
    shown = cli("fact", "history", added["id"], "-u", "alice").out.splitlines()
    assert [row.split("\t")[-1] for row in shown if "\tretracted\t" in row] == ["state: active → retracted"]
    assert [row.split("\t")[-1] for row in (shown[0], shown[-1])] == ["Bo is Al's brother.", "Bo is Al's twin."]
    rows = [row.split("\t") for row in cli("facts", "--state", "all", "-u", "alice").out.splitlines()]
    assert {row[-1]: row[-2] for row in rows} == {"Bo is Al's brother.": "superseded", "Bo is Al's twin.": "active"}
    over = ("--from", "2001-01-01", "--to", "2002-02-02")
    cli("fact", "add", "Bo rows.", "--type", "preference", "--subject", "Bo", *over, *of_alice)
    rows = [row.split("\t") for row in cli("facts", "--state", "all", "-u", "alice").out.splitlines()]
    assert [row[-2] for row in rows if row[-1] == "Bo rows."] == ["ended"]
    assert {fact["state"] for fact in cli("facts", "--state", "all", *of_alice).json} == {"active", "superseded"}
    assert cli("fact", "history", "7", "-u", "alice").code == 2
    assert "no fact" in cli("fact", "retract", history[1]["id"], "-u", "alice").err
