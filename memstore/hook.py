"""The command that Claude Code and Codex run as a hook, also with every prompt: it must be quick, and never fail.

So it imports nothing large. It passes each event on to a process in the background, which has the store open
(`memstore.server.hook`), and starts that process if it does not run. A turn to be stored is first written to a folder,
where it waits until it is stored, whatever happens to the process or the database:

    ~/.local/state/memstore/hook/KEY/SESSION.json    the latest turn of a session; SESSION.taken while it is stored
    …/SESSION.private                                a session of which nothing more is stored
    …/VERSION.socket, VERSION.lock, log              of the process, which ends after an hour without a hook
"""

from __future__ import annotations

import json
import os
import re
import select
import socket
import sys
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

PROMPT = "UserPromptSubmit"
# For the event, and for an answer: to start a process takes about two.
WAIT_SECONDS = 3.0
MAX_EVENT_BYTES = 1 << 24
# Until a server that failed is started again: each prompt would wait for it.
RESTART_SECONDS = 60.0
LOG = Path("log")
# Another one after every installation.
VERSION = f"{Path(__file__).stat().st_mtime_ns:x}"


def main(arguments: Sequence[str]) -> None:
    """Handle a hook: its event comes on stdin, or as the last argument from Codex's `notify`.

    Every error goes to stderr, and the exit code stays 0: a prompt does not fail for want of a memory.
    """
    try:
        is_argument = bool(arguments) and arguments[-1].startswith("{")
        event = json.loads(arguments[-1] if is_argument else _read_stdin())
        context = handle(event, arguments[:-1] if is_argument else arguments)
    except Exception as error:
        print(f"memstore hook: {error}", file=sys.stderr)
        return
    if context:
        print(json.dumps({"hookSpecificOutput": {"hookEventName": PROMPT, "additionalContext": context}}))


def _read_stdin() -> bytes:
    """Return what comes until the end of stdin; one that stays open would hold up the prompt."""
    event, end = bytearray(), time.monotonic() + WAIT_SECONDS
    while select.select([0], [], [], max(0.0, end - time.monotonic()))[0]:
        part = os.read(0, 1 << 16)
        event += part
        if not part:
            return bytes(event)
        if len(event) > MAX_EVENT_BYTES:
            raise ValueError(f"the event has more than {MAX_EVENT_BYTES} bytes")
    raise TimeoutError(f"standard input did not end within {WAIT_SECONDS:.0f} seconds")


def is_private(prompt: str) -> bool:
    """Whether nothing of a session is to be stored from this prompt on: it begins or ends with #private.

    Within a text that is code, such as "this.#private".
    """
    return re.search(r"^\s*#private\b|(?<!\S)#private\s*\Z", prompt) is not None


def handle(event: dict[str, Any], arguments: Sequence[str]) -> str | None:
    """Pass an event on; return the context for a prompt, None if nothing is remembered."""
    kind = event.get("hook_event_name") or event.get("type")
    # A process for these arguments and this environment, in a folder that only this user enters.
    settings = sorted(variable for variable in os.environ.items() if variable[0].startswith("MEMSTORE_"))
    key = sha256(json.dumps([list(arguments), settings]).encode()).hexdigest()[:16]
    folder = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "memstore" / "hook" / key
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.chdir(folder)  # the path of a socket has 100 characters at most
    status = Path().stat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise PermissionError(f"{folder} is open to others: they could read turns, and answer prompts")
    is_turn = kind in ("Stop", "SessionEnd", "agent-turn-complete")
    session = str(event.get("session_id") or (event["thread-id"] if is_turn else None))
    name = sha256(session.encode()).hexdigest()[:32]
    private = Path(f"{name}.private")
    if kind == PROMPT and is_private(str(event.get("prompt"))):
        private.touch()
    event["private"] = private.exists()
    if is_turn and not event["private"]:
        file = Path(f"{os.getpid()}.new")
        # Codex would give what the person wrote, too.
        columns = (
            "session_id",
            "thread-id",
            "transcript_path",
            "cwd",
            "last_assistant_message",
            "last-assistant-message",
        )
        file.write_text(json.dumps({column: event[column] for column in columns if column in event}), encoding="utf-8")
        file.replace(f"{name}.json")
    connection = _connect(arguments, wait=kind == PROMPT)
    if connection is None:
        return None
    with connection, connection.makefile("rwb") as stream:
        stream.write(json.dumps(event).encode() + b"\n")
        stream.flush()
        answer = json.loads(stream.readline() or b'{"error": "the process in the background ended"}')
    if "error" in answer:
        raise RuntimeError(answer["error"])
    context: str | None = answer["context"]
    return context


def _connect(arguments: Sequence[str], *, wait: bool) -> socket.socket | None:
    """Connect to the process in the background, and start it if it does not run; return None rather than `wait`.

    Raises `TimeoutError` with the last line of its log if it does not come up.
    """
    started, end = None, time.monotonic() + WAIT_SECONDS
    while True:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(max(1.0, end - time.monotonic()))
        try:
            connection.connect(f"{VERSION}.socket")
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
        else:
            return connection
        age = time.time() - LOG.stat().st_mtime if LOG.exists() else RESTART_SECONDS
        if started is None and age >= RESTART_SECONDS:
            started = _start(arguments)
        if not wait:
            return None
        has_failed = started.poll() if started else age >= WAIT_SECONDS
        if has_failed or time.monotonic() >= end:
            said = LOG.read_text(errors="replace").splitlines() or ["the process in the background is starting"]
            raise TimeoutError(said[-1])
        time.sleep(0.05)


def _start(arguments: Sequence[str]) -> Any:
    import subprocess  # nosec B404  # noqa: PLC0415  # only where one is started

    with LOG.open("wb") as log:
        return subprocess.Popen(  # nosec B603  # this program, with its own arguments
            [sys.executable, "-P", "-m", "memstore", "hook", *arguments, "--serve"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
