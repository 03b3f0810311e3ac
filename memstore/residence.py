"""The resident encoder from outside: found, started where there is none, asked, stopped.

It is a process of its own (`memstore.resident`) that holds an embedder, so that a command need not load one: torch
takes seconds, a question milliseconds. Standard library only, so that asking costs a command nothing.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from memstore.local_socket import SECONDS_OF_PATIENCE, SECONDS_TO_CONNECT, Line, Message, Unanswered
from memstore.processes import command_of, processes_of
from memstore.socket_place import (
    SECONDS_TO_START,
    SUPPORTED,
    installation_at,
    is_held,
    is_starting,
    running,
    socket_path,
)

KIND = "sentence-transformers"  # embedders that take seconds to load
EMBEDDER = f"{KIND}:all-MiniLM-L6-v2"
MINUTES = 10.0
SECONDS_TO_FORK = 30.0
SECONDS_TO_END = 3.0  # after a signal
MOST_STARTS = 5  # one may meet another that is about to end
NOT_HANDED_ON = ("MEMSTORE_", "PG")  # settings come with each question, and so does the database's address


def is_worth_it(embedder: str, minutes: float) -> bool:
    """Whether there may be an encoder that stays, for this embedder: where loading takes long and settings allow it."""
    installed = embedder.partition(":")[0] == KIND and find_spec("sentence_transformers") is not None
    return SUPPORTED and minutes > 0 and installed


def reached(embedder: str, minutes: float) -> Line:
    """Give a connection to the encoder of this embedder, started where there is none; it ends after idle `minutes`.

    Raises `Unanswered` where none can be had: whoever asks loads the embedder in its own process.
    """
    try:
        return _reached(embedder, minutes)
    except OSError as error:  # a full disk, too many processes: no reason to fail
        raise Unanswered(str(error)) from error


def _reached(embedder: str, minutes: float) -> Line:
    path = _path(embedder)
    starts, began = 0, time.monotonic()
    while starts < MOST_STARTS and time.monotonic() < began + SECONDS_TO_START:
        with suppress(Unanswered):
            return Line.to(path)
        if not is_held(path):
            start(path, embedder, minutes)
            starts += 1
        elif is_starting(path) or time.monotonic() < began + SECONDS_TO_CONNECT:  # it starts, or ends
            time.sleep(0.02)
        else:
            raise Unanswered("it takes no more connections")
    raise Unanswered(f"the encoder did not start; see {path.with_suffix('.log')}")


def obstacle(embedder: str) -> str | None:
    """Say what keeps an encoder of this embedder from being started; None where nothing is seen to."""
    try:
        os.close(_log(_path(embedder)))
    except (OSError, Unanswered) as error:
        return str(error)
    return None


def _path(embedder: str) -> Path:
    path = socket_path(embedder)
    if path is None:
        raise Unanswered("there is no private folder for its socket")
    return path


def _log(path: Path) -> int:
    return os.open(path.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)


def start(path: Path, embedder: str, minutes: float) -> None:
    """Start an encoder, which goes on in the background; where one is there already, the new one ends at once.

    Raises OSError where the system refuses a file or a process.
    """
    log = _log(path)
    try:
        process = subprocess.Popen(
            [sys.executable, *_arguments(path), embedder, str(minutes)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd="/",
            env=_environment(),
            start_new_session=True,
        )
    finally:
        os.close(log)
    with process:  # it leaves a child of its own behind, so that nobody has to wait for that one
        try:
            process.wait(SECONDS_TO_FORK)
        except subprocess.TimeoutExpired:
            process.kill()


def _arguments(path: Path) -> tuple[str, str, str]:
    """Give what Python runs; in the list of processes it names the encoder that answers at this path."""
    return "-m", "memstore.resident", str(path)


def _environment() -> dict[str, str]:
    """Give what the encoder may see of this process' environment, and where it finds this very package."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(NOT_HANDED_ON)}
    places = [str(Path(place).absolute()) for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    home = Path(__file__).parents[1]
    if home.name not in ("site-packages", "dist-packages"):  # those would stand before the standard library
        places.append(str(home))
    return kept | {"MEMSTORE_CONFIG": "", "PYTHONPATH": os.pathsep.join(places)}


def asked(path: Path, message: Mapping[str, Any], *, seconds: float = SECONDS_OF_PATIENCE) -> Message | None:
    """Ask the encoder that listens at this path, if one does; None where no answer comes."""
    with suppress(Unanswered), Line.to(path) as line:
        return line.ask(message, seconds=seconds)[0]
    return None


def states() -> Iterator[Message]:
    """Give what each encoder of this account says of itself; of one that is silent, what is seen from outside."""
    for path in running():
        told = asked(path, {"ask": "status"})
        told = told and _seen(path) | told  # one of another version may say less
        state = "ready" if told and told["ready"] else "loading" if told or is_starting(path) else "silent"
        yield (told or _seen(path)) | {"state": state, "installation": installation_at(path), "socket": str(path)}


def _seen(path: Path) -> Message:
    process = next(iter(_processes(path)), None)
    embedder = command_of(process).partition(f"{path} ")[2].rpartition(" ")[0] if process else None
    unknown = dict.fromkeys(("seconds", "minutes", "stores"))
    return {"process": process, **unknown, "ready": False, "embedder": embedder}


def _processes(path: Path) -> list[int]:
    """Give the processes that answer at this path, as far as they can be seen; those of other containers cannot."""
    return processes_of(f"{' '.join(_arguments(path))} ")


def stop(path: Path, *, within: float = 15.0) -> bool:
    """End the encoder at this path, by a signal where it does not answer; False if there was none, or it does not end.

    Killed, it leaves an embedded Postgres running, which the next command joins.
    """
    if not is_held(path):
        return False
    if asked(path, {"ask": "stop"}) is not None:
        return _has_ended(path, within)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in _processes(path):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, number)
        if _has_ended(path, SECONDS_TO_END):
            return True
    return False


def _has_ended(path: Path, within: float) -> bool:
    end = time.monotonic() + within
    while is_held(path) and time.monotonic() < end:
        time.sleep(0.01)
    return not is_held(path)
