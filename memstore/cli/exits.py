"""How a command ends: its exit code, and one line on stderr where it failed."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from memstore.cli.show import complain
from memstore.errors import (
    BudgetTooSmall,
    ConfigurationError,
    DatabaseUnreachable,
    EmbeddedError,
    InvalidInput,
    MemstoreError,
    ProviderMissing,
)

TOO_LARGE = 4
EXIT_CODES: dict[type[MemstoreError], int] = {
    BudgetTooSmall: TOO_LARGE,
    DatabaseUnreachable: 3,
    EmbeddedError: 3,
    ConfigurationError: 2,
    InvalidInput: 2,
    ProviderMissing: 2,
    MemstoreError: 1,
}
# What the library calls by its arguments is given by options here.
_ARGUMENT = re.compile(
    r"(?<![\w-])(budget|reserve|limit|level|depth|type|kind|state|subject|viewer|as_of|since|until)=(?=\S)"
)
INTERRUPTED = 128 + signal.SIGINT


def exit_code(error: MemstoreError) -> int:
    """Give the exit code that tells this error to a program."""
    return next(code for kind, code in EXIT_CODES.items() if isinstance(error, kind))


def told(error: MemstoreError) -> str:
    """Give what an error says, arguments of the library named as options."""
    return _ARGUMENT.sub(lambda found: f"--{found[1].replace('_', '-')} ", str(error))


def ended(command: Callable[[], object]) -> int:
    """Run a command; give its exit code, having said on stderr why it failed."""
    try:
        try:
            command()
        finally:
            # Not left to Python's end, which would complain about a reader that has gone.
            flush()
    except SystemExit as end:
        return _code(end)
    except KeyboardInterrupt:
        return _code(SystemExit(INTERRUPTED))
    except MemstoreError as error:
        complain(told(error))
        return exit_code(error)
    except BrokenPipeError:  # the reader has seen enough
        _drop_output()
        return 1
    except OSError as error:  # a full disk behind stdout, say
        _drop_output()
        complain(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""))
        return 1
    return 0


def leave_in_order() -> None:
    """Let SIGTERM and SIGHUP end the command as Ctrl-C does, so that no embedded Postgres is left running."""
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _leave)


def _leave(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


def _code(end: SystemExit) -> int:
    if end.code == INTERRUPTED:
        complain("interrupted; what was stored stays, and the same command goes on from there")
    return end.code if isinstance(end.code, int) else int(end.code is not None)


def flush() -> None:
    """Write what is still held back for stdout."""
    if sys.stdout is not None:  # it is None where the command was started with stdout closed
        sys.stdout.flush()


def _drop_output() -> None:
    """Let what is still held back for stdout go nowhere: Python tries once more when it ends, and would complain."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
