"""Several calls at the same time: the first error, or an interrupt, stops the others."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time

import pytest

from memstore._compat import run_all, run_all_threads


def test_all_are_run_at_the_same_time() -> None:
    met = threading.Barrier(3, timeout=20)
    run_all_threads([met.wait] * 3, lambda: None)


def test_an_error_of_one_stops_the_others() -> None:
    stop = threading.Event()

    def fail() -> None:
        raise ValueError("broken")

    began = time.monotonic()
    with pytest.raises(ValueError, match="broken"):
        run_all_threads([lambda: bool(stop.wait(20)), fail, lambda: bool(stop.wait(20))], stop.set)
    assert time.monotonic() - began < 10


def test_an_interrupt_stops_all() -> None:
    code = (
        "import os, signal, threading; from memstore._compat import run_all_threads\n"
        "stop = threading.Event()\n"
        "threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()\n"
        "try: run_all_threads([lambda: stop.wait(20)] * 3, stop.set)\n"
        "except KeyboardInterrupt: print('interrupted')"
    )
    began = time.monotonic()
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.stdout, ran.returncode) == ("interrupted\n", 0), ran.stderr
    assert time.monotonic() - began < 15


async def test_an_error_of_one_cancels_the_others() -> None:
    stopped: list[str] = []

    async def long() -> None:
        try:
            await asyncio.sleep(20)
        finally:
            stopped.append("long")

    async def fail() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await run_all([long, fail], lambda: stopped.append("told"))
    assert stopped == ["told", "long"]
