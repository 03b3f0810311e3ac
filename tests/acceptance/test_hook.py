"""Hooks of coding agents: a prompt gets what other sessions say to it, a turn is stored once, and nothing fails."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import memstore
from memstore.server import hook as service
from tests.client.test_private import everything
from tests.command_line import EMBEDDER, Ended, environment
from tests.working import wait_until

DATA = Path(__file__).parents[1] / "data"
(FERRY,) = (DATA / "claude-code").rglob("6f1c2a9e-*.jsonl")
(HARBOUR,) = (DATA / "codex").rglob("rollout-*.jsonl")
BEGINNING, FIRST, REST = FERRY.read_text().partition('"text":"I will look at the files first."}')
FIRST_ANSWER = BEGINNING + FIRST + REST.partition("\n")[0] + "\n"
BEFORE_ANSWER = BEGINNING[: BEGINNING.rindex("\n") + 1]
Hook = Callable[..., Ended]


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """The folder of state, and an end of the processes that work in it."""
    yield tmp_path / "state"
    for process in running(tmp_path / "state"):
        process.terminate()
        process.wait(20)


def running(state: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if "--serve" in process.cmdline() and Path(process.cwd()).is_relative_to(state):
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.fixture
def hook(url: str, state: Path) -> Hook:
    def run(event: dict[str, Any] | None = None, *arguments: str, database: str = url, **more: Any) -> Ended:
        given = {"cwd": "/home/alice/ferry", **(event or {}), **more}
        env = environment(MEMSTORE_DATABASE_URL=database, XDG_STATE_HOME=str(state), CODEX_HOME=str(DATA / "codex"))
        command = [sys.executable, "-m", "memstore", "hook", "--user", "alice", *arguments]
        if "type" in given:
            command.append(json.dumps(given))
        ran = subprocess.run(command, input=json.dumps(given), env=env, capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0
        return Ended(ran.returncode, ran.stdout, ran.stderr)

    return run


def prompt(hook: Hook, session: str, says: str, *arguments: str) -> str:
    """Give the context of a prompt; a process that has to start first may take longer than a hook waits."""
    event = {"hook_event_name": "UserPromptSubmit", "session_id": session, "prompt": says}
    end = time.monotonic() + 60
    while (ended := hook(event, *arguments)).err:
        assert time.monotonic() < end, ended.err
        time.sleep(0.2)
    return ended.json["hookSpecificOutput"]["additionalContext"] if ended.out else ""


def waiting(state: Path) -> list[Path]:
    return [file for file in state.rglob("*") if file.suffix in (".json", ".taken")]


def test_turns_are_stored_once_and_said_to_other_sessions(hook: Hook, url: str, state: Path, tmp_path: Path) -> None:
    session = tmp_path / FERRY.name
    session.write_text(FIRST_ANSWER)
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        alice = store.user("alice")

        def stop(messages: int, **more: Any) -> None:
            stop = {"hook_event_name": "Stop", "session_id": FERRY.stem, "transcript_path": str(session)}
            assert not hook(stop | more).out
            wait_until(lambda: not waiting(state) and not store.stats(user="alice")["pending"])
            assert len(alice.conversation(FERRY.stem).messages()) == messages

        stop(2, last_assistant_message="I will look at the files first.")
        stop(2)
        session.write_bytes(FERRY.read_bytes())
        stop(13)
        stop(13, hook_event_name="SessionEnd")
        assert alice.conversation(FERRY.stem).info().title == "/home/alice/ferry"
        assert store.import_file(FERRY, user="alice").new == 0

        asks = "Which database has the ferry timetable, and what is the table called?"
        context = prompt(hook, "another", asks)
        assert "We keep the ferry timetable in Postgres" in context
        assert "The table is called departures now" in context
        assert asks not in context
        assert store.counter.count(context) <= 1000
        wait_until(lambda: not prompt(hook, "another", asks))  # it was given all of it
        alice.conversation("old").add("user", "The timetable has a table of harbours.")
        store.derive()
        context = prompt(hook, FERRY.stem, asks)
        assert "a table of harbours" in context
        assert "We keep the ferry timetable" not in context  # the session shows that itself
        assert "The table is called" not in context
        start = {"hook_event_name": "SessionStart", "session_id": "another"}
        hook(start | {"source": "resume"})
        assert "We keep the ferry timetable" not in prompt(hook, "another", asks)  # it has that still
        hook(start | {"source": "compact"})
        assert "We keep the ferry timetable" in prompt(hook, "another", asks)
    assert len(running(state)) == 1


def test_an_answer_that_is_written_late_is_waited_for(hook: Hook, url: str, state: Path, tmp_path: Path) -> None:
    session = tmp_path / FERRY.name
    session.write_text(BEFORE_ANSWER)
    prompt(hook, "another", "Are you there?")
    stop = {"hook_event_name": "Stop", "session_id": FERRY.stem, "transcript_path": str(session)}
    hook(stop, last_assistant_message="I will look at the files first.")
    time.sleep(service.FLUSH_SECONDS * 2)
    assert len(waiting(state)) == 1
    session.write_text(FIRST_ANSWER)
    wait_until(lambda: not waiting(state))
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        assert len(store.user("alice").conversation(FERRY.stem).messages()) == 2


def test_codex_notifies_of_a_turn_or_has_hooks(hook: Hook, url: str, state: Path) -> None:
    thread = HARBOUR.stem[-36:]
    said = "There is notes.md; the timetable lives in Postgres."
    about = {"turn-id": "t1", "input-messages": ["…"], "last-assistant-message": said}
    hook({"type": "agent-turn-complete", "thread-id": thread, **about})
    hook({"hook_event_name": "Stop", "session_id": thread, "transcript_path": None, "turn_id": "t1"})
    hook({"type": "agent-turn-complete", "thread-id": "019aa1b2-gone"})
    wait_until(lambda: not waiting(state))
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        assert [one.name for one in store.user("alice").conversations()] == [thread]
        assert len(store.user("alice").conversation(thread).messages()) == 10
    (log,) = state.rglob("log")
    assert "has no session 019aa1b2-gone" in log.read_text()


def test_an_excluded_project_is_neither_stored_nor_told_anything(hook: Hook, url: str, state: Path) -> None:
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        store.user("alice").conversation("old").add("user", "We keep the timetable in Postgres.")
        store.derive()
    exclude = ("--exclude", "/home/alice/ferry")
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "Where is the timetable?"}
    end = time.monotonic() + 60
    while "Postgres" not in hook(event, *exclude, cwd="/home/alice/other").out:
        assert time.monotonic() < end
    stop = {"hook_event_name": "Stop", "session_id": FERRY.stem, "transcript_path": str(FERRY)}
    hook(stop, *exclude, cwd="/home/alice/ferry/deeper")
    wait_until(lambda: not waiting(state))
    assert not hook(event, *exclude, cwd="/home/alice/ferry", session_id="t").out
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        assert [one.name for one in store.user("alice").conversations()] == ["old"]


def test_what_goes_wrong_is_said_and_costs_nothing(hook: Hook, state: Path) -> None:
    away = "postgresql://nobody@127.0.0.1:1/none"
    stop = {"hook_event_name": "Stop", "session_id": FERRY.stem, "transcript_path": str(FERRY)}
    hook(stop, database=away)
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "Where is the timetable?"}
    wait_until(lambda: hook(event, database=away).err.startswith("memstore hook: memstore: "))  # what the process said
    assert not hook(event, database=away).out
    assert len(waiting(state)) == 1  # until the database is there again
    assert hook(event, "--budget", "many").err.startswith("memstore hook: ")
    command = [sys.executable, "-X", "importtime", "-m", "memstore", "hook", "--user", "alice"]
    broken = subprocess.run(command, input="{", capture_output=True, text=True, check=True)
    assert "memstore hook: Expecting" in broken.stderr
    imported = {line.rpartition("|")[2].strip() for line in broken.stderr.splitlines()}
    assert "memstore.hook" in imported
    assert not imported & {"typer", "rich", "asyncio", "pydantic", "psycopg", "subprocess", "platformdirs"}


def test_a_turn_that_cannot_be_stored_waits(url: str, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, since no other one can be made to fail so."""

    async def run() -> None:
        async with await memstore.open_async(url, settings={"embedder": EMBEDDER}) as store:
            server = service.HookServer(store, "alice", budget=1000, exclude=[], min_relevance=0)
            with monkeypatch.context() as patch:
                patch.setattr(store, "import_file", fail)
                assert await server._store_turns() == (0, service.RETRY_SECONDS)
            assert len(waiting(state)) == 1
            assert (await server._store_turns())[0] == 13
            assert not waiting(state)
            monkeypatch.setattr(service, "IDLE_SECONDS", 0.0)
            await asyncio.wait_for(server.run(), 60)  # it ends when nobody asks

    async def fail(*_: object, **__: object) -> None:
        raise memstore.DatabaseUnreachable("away")

    state.mkdir()
    monkeypatch.chdir(state)
    turn = state / "s.json"
    turn.write_text(json.dumps({"transcript_path": str(FERRY)}))
    assert not service._is_due(turn)  # what was said last may not be in the file yet
    os.utime(turn, (0, 0))
    asyncio.run(run())


def test_a_damaged_turn_keeps_no_other_from_being_stored(
    url: str, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.mkdir()
    monkeypatch.chdir(state)
    (state / "whole.json").write_text(json.dumps({"transcript_path": str(FERRY)}))
    for number, damage in enumerate((b"", b"[]", b'{"transcript_path": "\\u0000"}', b'{"cwd": 3}', b"[" * 100_000)):
        (state / f"{number}.json").write_bytes(damage)
    for file in state.iterdir():
        os.utime(file, (0, 0))
    half = {"last_assistant_message": "Not yet there \ud83d", "transcript_path": str(FERRY)}  # a half of an emoji
    (state / "half.json").write_text(json.dumps(half))
    for name, folder in (("nobody", "~nobody-at-all"), ("surrogate", "/\ud800")):  # no paths
        path = f"{folder}/.claude/projects/p/{FERRY.name}"
        (state / f"{name}.json").write_text(json.dumps(half | {"transcript_path": path}))

    async def run() -> None:
        async with await memstore.open_async(url, settings={"embedder": EMBEDDER}) as store:
            server = service.HookServer(store, "alice", budget=1000, exclude=[], min_relevance=0)
            assert await server._store_turns() == (13, service.FLUSH_SECONDS)
            assert sorted(file.name for file in waiting(state)) == ["half.json", "nobody.json", "surrogate.json"]

    asyncio.run(run())


def test_of_a_private_session_nothing_is_stored_from_there_on(
    hook: Hook, url: str, state: Path, tmp_path: Path
) -> None:
    session = tmp_path / FERRY.name
    said = [("user", "We keep the ferry timetable in Postgres."), ("assistant", "Good."),
            ("user", "#private who might buy the ferry Quarzhof?"), ("assistant", "Quarzhof is sold.")]  # fmt: skip
    lines = [
        {"type": role, "uuid": str(number), "sessionId": FERRY.stem, "parentUuid": str(number - 1) if number else None,
         "message": {"role": role, "content": text}}
        for number, (role, text) in enumerate(said)
    ]  # fmt: skip
    session.write_text("\n".join(map(json.dumps, lines[:2])))
    stop = {"hook_event_name": "Stop", "session_id": FERRY.stem, "transcript_path": str(session)}
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        hook(stop)
        wait_until(lambda: not waiting(state) and store.stats(user="alice")["messages"] == 2)
        store.user("alice").conversation("old").add("user", "The ferry Elbe is sold to Finland.")
        store.derive()
        assert "Finland" in prompt(hook, FERRY.stem, said[2][1])
        session.write_text("\n".join(map(json.dumps, lines)))
        hook(stop, last_assistant_message=said[3][1])
        assert waiting(state) == []
        assert prompt(hook, FERRY.stem, "And who sold the ferry Elbe to Quarzhof?") == ""  # it was told that
        assert store.import_file(session, user="alice").ignored["private turns"] == 2
    assert "Quarzhof" not in str(everything(url))
    assert [
        file for file in state.rglob("*") if file.is_file() and "Quarzhof" in file.read_text(errors="replace")
    ] == []


def test_a_turn_of_no_session_is_refused(hook: Hook, state: Path) -> None:
    assert "thread-id" in hook({"hook_event_name": "Stop", "transcript_path": str(FERRY)}).err
    assert waiting(state) == []


def test_a_folder_that_is_open_to_others_gets_no_turn(hook: Hook, state: Path) -> None:
    stop = {"hook_event_name": "Stop", "session_id": FERRY.stem, "transcript_path": str(FERRY)}
    away = "postgresql://nobody@127.0.0.1:1/none"
    hook(stop | {"input-messages": ["my secret"]}, database=away)
    (turn,) = waiting(state)
    assert "secret" not in turn.read_text()
    turn.unlink()
    turn.parent.chmod(0o777)
    assert "is open to others" in hook(stop, database=away).err
    assert not waiting(state)


def test_an_event_is_bounded_in_time_and_size() -> None:
    command = [sys.executable, "-m", "memstore", "hook", "--user", "alice"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as endless:
        assert endless.wait(60) == 0
        assert "did not end within 3 seconds" in endless.stderr.read()
    long = subprocess.run(command, input="x" * ((1 << 24) + 1), capture_output=True, text=True, check=True)
    assert "more than 16777216 bytes" in long.stderr


def test_a_key_in_a_long_prompt_is_masked_before_it_is_cut(url: str) -> None:
    async def run() -> None:
        async with await memstore.open_async(url, settings={"embedder": EMBEDDER, "mask_secrets": True}) as store:
            alice = store.user("alice")
            await alice.conversation("old").add("user", "The ferry has an api key since May.")
            await alice.conversation("now").add("user", "Good day.")
            await store.derive()
            server = service.HookServer(store, "alice", budget=1000, exclude=[], min_relevance=0)
            for before, after in ((240, 900), (900, 480)):
                asked = "w " * before + "ghp_" + "a1B2" * 9 + " " + "ferry".ljust(after)
                assert (await server._context({"prompt": asked + "?"}, "now"))[0]
            for receipt in await alice.conversation("now").receipts():
                assert "a1B2" not in receipt.question
                assert "a1B2" not in str((await alice.replay(receipt)).text)

    asyncio.run(run())


@pytest.mark.parametrize("says", ["yes", "Continue", "ok, go on", "2", "👍", "mach weiter", "lgtm"])
def test_a_prompt_that_says_nothing_recalls_nothing(url: str, says: str) -> None:
    assert asyncio.run(contexts_of(url, says)) == [None]


def test_an_instruction_of_a_project_does_not_always_hold_in_another(url: str) -> None:
    asks = "Add a test for the parser."
    here, below, elsewhere = asyncio.run(
        contexts_of(url, asks, "/home/alice/otter", "/home/alice/otter/src", "/home/alice/badger")
    )
    for text in (here, below, elsewhere):
        assert all(words in standing(text) for words in ("name is Zoe", "allergic to nuts", "EpiPen"))
    assert "never use ORM there" in standing(here) and "never use ORM" in standing(below)
    assert "never use ORM there" not in standing(elsewhere)


def standing(context: str | None) -> str:
    """Give the lines of what always holds."""
    return str(context).partition("What holds always")[2].partition("\n\n")[0]


async def contexts_of(url: str, says: str, *folders: str) -> list[str | None]:
    told = [
        "The database of project Otter is Postgres 17. Please never use ORM there. Please always run make lint first.",
        "My name is Zoe, I'm allergic to nuts.",
    ]
    async with await memstore.open_async(url, settings={"embedder": EMBEDDER}) as store:
        talk = store.user("alice").conversation("first", scope="/home/alice/otter", channel="claude-code")
        await talk.add_many([{"role": "user", "content": text} for text in told])
        await store.derive()
        [said] = await talk.messages(limit=1)
        await store.user("alice").add_fact("Zoe carries an EpiPen.", type="constraint", sources=[said])
        server = service.HookServer(store, "alice", budget=1000, exclude=(), min_relevance=0)
        folders = folders or ("/home/alice/badger",)
        events = [{"prompt": says, "cwd": folder} for folder in folders]
        return [(await server._context(event, f"new {number}"))[0] for number, event in enumerate(events)]
