"""Where async and blocking code really differ: the pairs that `tools/unasync.py` exchanges.

Providers (embedders, counters) are blocking, so that an author writes one method once. The async side calls them
through `to_thread`, the generated twin calls them itself. `with_timeout` is for both.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar
from weakref import WeakMethod

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")


async def to_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of a blocking function, without holding up the event loop."""
    return await asyncio.to_thread(function, *args, **kwargs)


async def open_in_thread(open: Callable[[], T], close: Callable[[T], object]) -> T:
    """Return what a blocking function opens; if this is cancelled meanwhile, close that as soon as it is open."""
    opened: Future[T] = Future()
    opened.set_running_or_notify_cancel()  # a cancelled wait does not cancel it

    def run() -> None:
        try:
            opened.set_result(open())
        except BaseException as error:
            opened.set_exception(error)

    threading.Thread(target=copy_context().run, args=[run], name="memstore-open").start()
    try:
        return await asyncio.wrap_future(opened)
    except asyncio.CancelledError:
        opened.add_done_callback(lambda _: None if opened.exception() else close(opened.result()))
        raise


def open_inline(open: Callable[[], T], _: Callable[[T], object]) -> T:
    """Return what a blocking function opens."""
    return open()


async def run_both(first: Callable[[], Awaitable[T]], second: Callable[[], Awaitable[U]]) -> tuple[T, U]:
    """Return the results of both, doing one while the other waits. If both fail, raise the error of the second."""
    beside = asyncio.ensure_future(first())
    try:
        done = await second()
        return await beside, done
    finally:
        beside.cancel()
        # It gives back what it has of the database before anybody closes that, and nobody logs its error as unheard of.
        await asyncio.gather(beside, return_exceptions=True)


def run_both_threads(first: Callable[[], T], second: Callable[[], U]) -> tuple[T, U]:
    """Return the results of both, the first from a thread. If both fail, raise the error of the second."""
    # A thread of its own: one that was kept would not fork.
    with ThreadPoolExecutor(1, "memstore-beside") as thread:
        beside = thread.submit(copy_context().run, first)
        done = second()
    return beside.result(), done


async def gather(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Return the results of all calls, made at the same time, in order. If one fails, raise its error."""
    if len(calls) == 1:
        return [await calls[0]()]
    rest, first = await run_both(partial(gather, calls[1:]), calls[0])
    return [first, *rest]


def gather_threads(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Return the results of all calls, made at the same time in threads, in order."""
    if len(calls) == 1:
        return [calls[0]()]
    rest, first = run_both_threads(partial(gather_threads, calls[1:]), calls[0])
    return [first, *rest]


async def run_all(calls: Sequence[Callable[[], Awaitable[None]]], stop: Callable[[], None]) -> None:
    """Run all at the same time. Raises the first error, an interrupt too, after `stop()` and when all have ended."""
    tasks = [asyncio.ensure_future(call()) for call in calls]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def run_all_threads(calls: Sequence[Callable[[], None]], stop: Callable[[], None]) -> None:
    """Run all at the same time. Raises the first error, an interrupt too, after `stop()` and when all have ended."""
    with ThreadPoolExecutor(len(calls), "memstore-derive") as pool:
        try:
            for done in as_completed([pool.submit(copy_context().run, call) for call in calls]):
                done.result()
        except BaseException:
            stop()
            raise


def with_timeout(seconds: float, call: Callable[[], T]) -> T:
    """Return the result of `call`, or raise TimeoutError; its thread goes on then, and the result is dropped."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(call())
        except Exception as error:
            # Whatever it is: the caller's thread raises it.
            done.set_exception(error)

    threading.Thread(target=run, name="memstore-wait", daemon=True).start()
    return done.result(seconds)


# A loop itself has weak references only.
_ENDING: set[asyncio.Task[None]] = set()


def at_end_of_loop(close: Callable[[], Awaitable[object]]) -> Callable[[], None]:
    """Have a coroutine function called when the event loop ends its tasks; return what cancels this.

    A loop cancels each task once and then waits for all. A worker of psycopg's pool that is connecting takes that for
    a failure of the connection and goes on: only closing the pool ends it.
    """
    is_closed = asyncio.Event()

    async def end() -> None:
        try:
            await is_closed.wait()
        except asyncio.CancelledError:
            await close()
            raise

    task = asyncio.create_task(end(), name="memstore-end-of-loop")
    _ENDING.add(task)
    task.add_done_callback(_ENDING.discard)
    return is_closed.set


def at_exit(close: Callable[[], object]) -> Callable[[], None]:
    """Have a method called when the interpreter ends, before those registered earlier; return what cancels this.

    Only where its object is still there by then, and not in a forked child, whose connections are its parent's.
    """
    there, process = WeakMethod(close), os.getpid()

    def end() -> None:
        method = there()
        if method is not None and os.getpid() == process:
            method()

    atexit.register(end)
    return lambda: atexit.unregister(end)
