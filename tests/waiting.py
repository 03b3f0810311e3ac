"""Waiting for a child process that a test has forked."""

from __future__ import annotations

import os
import signal
import time


def await_exit(child: int, seconds: float = 30.0) -> int | None:
    """Return how a child ended; None where it did not, and is ended here."""
    last = time.monotonic() + seconds
    while time.monotonic() < last:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
