"""The resident encoder from outside: found, started where there is none, asked, stopped.

It is a process of its own (`memstore.resident`) that holds an embedder, so that a command need not load one: torch
takes seconds, a question milliseconds. Standard library only, so that asking costs a command nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from memstore.local_socket import SUPPORTED, Line, Message, Unanswered, is_held, socket_path

KIND = "sentence-transformers"  # embedders that take seconds to load
EMBEDDER = f"{KIND}:all-MiniLM-L6-v2"
MINUTES = 10.0
SECONDS_TO_START = 120.0  # torch from a cold disk, on a busy machine
SECONDS_TO_FORK = 30.0
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
    path = socket_path(embedder)
    if path is None:
        raise Unanswered("there is no private folder for its socket")
    starts, end = 0, time.monotonic() + SECONDS_TO_START
    while starts < MOST_STARTS and time.monotonic() < end:
        with suppress(Unanswered):
            return Line.to(path)
        if is_held(path):  # it starts, or ends
            time.sleep(0.02)
        else:
            start(path, embedder, minutes)
            starts += 1
    raise Unanswered(f"the encoder did not start; see {path.with_suffix('.log')}")


def start(path: Path, embedder: str, minutes: float) -> None:
    """Start an encoder, which goes on in the background; where one is there already, the new one ends at once."""
    log = os.open(path.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "memstore.resident", str(path), embedder, str(minutes)],
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


def _environment() -> dict[str, str]:
    """Give what the encoder may see of this process' environment, and where it finds this very package."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(NOT_HANDED_ON)}
    places = [str(Path(place).absolute()) for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    home = Path(__file__).parents[1]
    if home.name not in ("site-packages", "dist-packages"):  # those would stand before the standard library
        places.append(str(home))
    return kept | {"MEMSTORE_CONFIG": "", "PYTHONPATH": os.pathsep.join(places)}


def asked(path: Path, message: Mapping[str, Any], *, seconds: float = 5.0) -> Message | None:
    """Ask the encoder that listens at this path, if one does; None where no answer comes."""
    with suppress(Unanswered), Line.to(path) as line:
        return line.ask(message, seconds=seconds)[0]
    return None


def stop(path: Path, *, within: float = 15.0) -> bool:
    """End the encoder that listens at this path; False if none did, or it does not end."""
    if asked(path, {"ask": "stop"}) is None:
        return False
    end = time.monotonic() + within
    while is_held(path) and time.monotonic() < end:
        time.sleep(0.01)
    return not is_held(path)
