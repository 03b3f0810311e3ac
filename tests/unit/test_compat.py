"""What is done while something else waits: both results, the first error that counts, the caller's context."""

import asyncio
import subprocess
import sys
import threading
import time
from contextvars import ContextVar

import pytest

from memstore._compat import run_all, run_all_threads, run_both, run_both_threads

NAME: ContextVar[str] = ContextVar("name")


def failing() -> int:
    raise LookupError("the first")


async def failing_later() -> int:
    await asyncio.sleep(0)
    raise LookupError("the first")


def test_the_first_is_done_by_a_thread_that_knows_the_callers_context() -> None:
    NAME.set("ann")
    met = threading.Barrier(2, timeout=10)  # neither goes on without the other

    def first() -> tuple[str, str]:
        met.wait()
        return NAME.get(), threading.current_thread().name

    (name, thread), other = run_both_threads(first, lambda: met.wait() >= 0)
    assert (name, other) == ("ann", True)
    assert thread != threading.current_thread().name
    assert not [one for one in threading.enumerate() if one.name.startswith("memstore-beside")]


def test_an_error_of_either_is_raised() -> None:
    with pytest.raises(LookupError, match="the first"):
        run_both_threads(failing, lambda: 1)
    with pytest.raises(ZeroDivisionError):
        run_both_threads(failing, lambda: 1 // 0)


async def test_what_is_done_beside_ends_with_the_other_and_its_error_is_raised() -> None:
    ended = asyncio.Event()

    async def first() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async def second() -> None:
        await asyncio.sleep(0)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await run_both(first, second)
    assert ended.is_set(), "nothing goes on behind the caller's back"
    with pytest.raises(LookupError, match="the first"):
        await run_both(failing_later, ready)


async def ready() -> int:
    return 2


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
