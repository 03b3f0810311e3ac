"""One user's memory over standard input and output: what a client on the same machine starts as its own process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from mcp.server.stdio import stdio_server

from memstore.server.mcp.asked import Asked, Call
from memstore.server.mcp.opening import Opening
from memstore.server.mcp.protocol import mcp_server


async def serve(user: str, database: str | None, settings: Mapping[str, Any]) -> None:
    """Answer until standard input ends; the store is open from the first moment on, or as soon as it can be."""
    opening = Opening(user, database, settings)

    async def whose(_: Call) -> Asked:
        return await opening.asked()

    server = mcp_server(whose)
    try:
        async with stdio_server() as (incoming, outgoing):
            opening.begin()
            await server.run(incoming, outgoing, server.create_initialization_options())
    finally:
        await opening.close()


def run(user: str, database: str | None, settings: Mapping[str, Any]) -> None:
    """Serve, as a program."""
    asyncio.run(serve(user, database, settings))
