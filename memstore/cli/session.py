"""What surrounds a command: the store that it opens, hints at unknown names, exit codes of errors, and signals."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import memstore
from memstore import errors
from memstore.cli.options import common
from memstore.cli.output import echo_error, echo_hint, flush

if TYPE_CHECKING:
    from memstore import MemoryStore


def open_store(**settings: Any) -> MemoryStore:
    return memstore.open(common.database, settings=settings)


def hint_why_little(store: MemoryStore, user: str, conversation: str | None = None, subject: str | None = None) -> None:
    """Hint at a user or conversation that nobody knows, else at what is not derived yet; and at an unknown subject."""
    counts = store.stats(user=user)
    # Facts by hand are of no conversation.
    if not counts["conversations"] + counts["chunks"]:
        echo_hint(f"no user {user!r}; memstore users lists those that are known")
    elif conversation is not None and store.user(user).conversation(conversation).info() is None:
        echo_hint(f"no conversation {conversation!r}; memstore conversations --user {user} lists those that are known")
    elif counts["pending"]:
        echo_hint(f"not everything of {user!r} is derived yet: memstore derive")
    if subject is not None:
        counted = Counter(fact.subject for fact in store.user(user).facts())
        if counted and subject.casefold() not in map(str.casefold, counted):
            subjects = ", ".join(repr(name) for name, _ in counted.most_common(12))
            more = f" and {len(counted) - 12:,} more" if len(counted) > 12 else ""
            echo_hint(f"no active fact is about {subject!r}; there are some about {subjects}{more}")


def run_command(command: Callable[[], object]) -> int:
    try:
        try:
            command()
        finally:
            # Not left to Python's end, which would complain about a reader that has gone.
            flush()
    except (SystemExit, KeyboardInterrupt) as end:
        code = end.code if isinstance(end, SystemExit) else 130
        if code == 130:
            echo_error("interrupted; stored rows stay, and the same command goes on from there")
        return code if isinstance(code, int) else int(code is not None)
    except errors.MemstoreError as error:
        echo_error(str(error))
        return error.exit_code
    except OSError as error:
        # Such as a full disk behind stdout. What is buffered for it is discarded: Python would write it at its end.
        with suppress(OSError, ValueError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # else the reader has seen enough
            echo_error(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""))
        return 1
    return 0


def exit_on_signals() -> None:
    """Let SIGTERM and SIGHUP end the command as Ctrl-C does, so that no embedded Postgres is left running."""
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda number, _: sys.exit(128 + number))
