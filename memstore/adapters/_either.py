"""Scopes of a blocking store and of an async one, called alike from a coroutine."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Generator
from typing import Any, TypeVar

T = TypeVar("T")
Call = Callable[[], Any]
Steps = Generator[Call, Any, T]  # calls of a scope, each sent what it gave, and in the end what comes of them


async def called(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Await a method of an async scope; call one of a blocking scope in a thread."""
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    return await asyncio.to_thread(function, *args, **kwargs)


def run(steps: Steps[T]) -> T:
    """Make the calls of a blocking scope."""
    try:
        call = next(steps)
        while True:
            try:
                found = call()
            except Exception as error:  # the step that asked may know what it means
                call = steps.throw(error)
            else:
                call = steps.send(found)
    except StopIteration as end:
        result: T = end.value
        return result


async def run_async(steps: Steps[T]) -> T:
    """Make the calls, of a scope of either kind."""
    try:
        call = next(steps)
        while True:
            try:
                found = await called(call)
            except Exception as error:  # the step that asked may know what it means
                call = steps.throw(error)
            else:
                call = steps.send(found)
    except StopIteration as end:
        result: T = end.value
        return result
