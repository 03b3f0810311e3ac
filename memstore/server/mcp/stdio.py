"""One user's memory over standard input and output: what a client on the same machine starts as its own process."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress

from mcp.server.stdio import stdio_server

from memstore.memory.store import AsyncMemoryStore
from memstore.server.mcp.asked import Asked, Call
from memstore.server.mcp.deriving import Deriving
from memstore.server.mcp.protocol import mcp_server
from memstore.server.mcp.unread import Answered


def run(user: str, database: str | None) -> None:
    """Answer until standard input ends; nothing but the protocol is written to standard output."""
    asyncio.run(_serve(user, database))


async def _serve(user: str, database: str | None) -> None:
    async with await AsyncMemoryStore.open(database) as store:
        deriving = Deriving(store)

        async def whose(_: Call) -> Asked:
            await deriving.met(user)
            return Asked(store, store.user(user), deriving)

        _end_on_signals(store, deriving)
        server = mcp_server(whose)
        try:
            async with stdio_server() as (incoming, outgoing):
                await server.run(Answered(incoming, outgoing), outgoing, server.create_initialization_options())
        finally:
            await deriving.close()


def _end_on_signals(store: AsyncMemoryStore, deriving: Deriving) -> None:
    """Have a signal close the store and end the process; a second one ends it at once.

    Not by an exception, as in other commands: the thread that reads standard input cannot be woken, and whoever waits
    for it to end would wait until the client has closed its side.
    """
    loop, ending = asyncio.get_running_loop(), set[asyncio.Task[None]]()

    async def end(code: int) -> None:
        try:
            await deriving.close()
            await store.close()
        finally:
            os._exit(code)

    def told(number: int) -> None:
        if ending:
            os._exit(128 + number)
        ending.add(asyncio.create_task(end(128 + number)))

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        with suppress(AttributeError, NotImplementedError):  # Windows has neither all of them nor this
            loop.add_signal_handler(getattr(signal, name), told, getattr(signal, name))
