"""Calls of a blocking or an async scope, made alike: an adapter yields them, and one of two loops makes them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Generator
from typing import Any, TypeVar

T = TypeVar("T")
Call = Callable[[], Any]
Effect = Generator[Call, Any, T]  # calls of a scope, each sent its result or its error; in the end their outcome


async def maybe_await(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Await a method of an async scope; call one of a blocking scope in a thread."""
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    return await asyncio.to_thread(function, *args, **kwargs)


def run_sync(effect: Effect[T]) -> T:
    """Make the calls of a blocking scope."""
    resume: Callable[[Any], Call] = effect.send
    result: Any = None
    while True:
        try:
            call = resume(result)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # what a generator returns is Any here
        try:
            resume, result = effect.send, call()
        except Exception as error:  # who asked may know what it means
            resume, result = effect.throw, error


async def run_async(effect: Effect[T]) -> T:
    """Make the calls of a scope of either kind."""
    resume: Callable[[Any], Call] = effect.send
    result: Any = None
    while True:
        try:
            call = resume(result)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # what a generator returns is Any here
        try:
            resume, result = effect.send, await maybe_await(call)
        except Exception as error:  # who asked may know what it means
            resume, result = effect.throw, error
