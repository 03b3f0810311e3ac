"""One user's memory over standard input and output: what a client on the same machine starts as its own process."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from mcp.server.stdio import stdio_server

from memstore.server.mcp.asked import Asked, Call
from memstore.server.mcp.opening import Opening
from memstore.server.mcp.protocol import mcp_server
from memstore.server.mcp.unread import Answered


def run(user: str, database: str | None, settings: Mapping[str, Any]) -> None:
    """Answer until standard input ends; nothing but the protocol is written to standard output."""
    asyncio.run(_serve(Opening(user, database, settings)))


async def _serve(opening: Opening) -> None:
    async def whose(_: Call) -> Asked:
        return await opening.asked()

    server = mcp_server(whose)
    _end_on_signals(opening)
    try:
        async with stdio_server() as (incoming, outgoing):
            opening.begin()
            await server.run(Answered(incoming, outgoing), outgoing, server.create_initialization_options())
    finally:
        await opening.close()


def _end_on_signals(opening: Opening) -> None:
    """Have a signal close the store and end the process; a second one ends it at once.

    Not by an exception, as in other commands: the thread that reads standard input cannot be woken, and whoever waits
    for it to end would wait until the client has closed its side.
    """
    loop, ending = asyncio.get_running_loop(), set[asyncio.Task[None]]()

    async def end(code: int) -> None:
        try:
            await opening.close()
        finally:
            os._exit(code)

    def told(number: int) -> None:
        if ending:
            os._exit(128 + number)
        ending.add(asyncio.create_task(end(128 + number)))

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        with suppress(AttributeError, NotImplementedError):  # Windows has neither all of them nor this
            loop.add_signal_handler(getattr(signal, name), told, getattr(signal, name))
