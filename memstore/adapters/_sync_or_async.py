"""Calls of a blocking or an async scope, written once: as coroutines, which over a blocking scope never wait."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def maybe_await(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Await a method of an async scope; call one of a blocking scope in a thread."""
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    return await asyncio.to_thread(function, *args, **kwargs)


async def call_at_once(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a method of a blocking scope here."""
    return function(*args, **kwargs)


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that waits for nothing, as it calls by `call_at_once`."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # the value of a StopIteration is Any
    raise RuntimeError("a call of a blocking scope waited")
