"""Where async and blocking code really differ: the pairs that `tools/unasync.py` exchanges.

Providers (embedders, counters) are blocking, so that an author writes one method once. The async side
calls them through `in_thread`; in the generated twin that is `in_place`, a plain call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Give what the blocking function gives, without holding up the event loop."""
    return await asyncio.to_thread(function, *args, **kwargs)


def in_place(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Give what the blocking function gives."""
    return function(*args, **kwargs)
