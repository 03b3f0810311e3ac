"""A user's memory for models: `mcp`, over stdio or HTTP."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from memstore.cli.options import DatabaseOption, name
from memstore.cli.show import print_json

if TYPE_CHECKING:
    from memstore.models import Json

PORT = 8377


def mcp(
    user: Annotated[
        str | None,
        typer.Option("--user", "-u", parser=name, metavar="NAME", help="Whose memory; over HTTP, else of the URL."),
    ] = None,
    http: Annotated[bool, typer.Option("--http", help="Serve streamable HTTP on 127.0.0.1 in place of stdio.")] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="The port of --http; 0 for a free one.")
    ] = PORT,
    database: DatabaseOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what a client's settings take, and do not serve.")
    ] = False,
) -> None:
    """Serve a user's memory to models, by the Model Context Protocol: search, add, update, forget, contexts.

    Over stdio, for one user, until standard input ends: clients such as Claude Desktop start it so. With --http for all
    of this machine at http://127.0.0.1:PORT/mcp/NAME, or at /mcp for one --user.

    JSON: {"mcpServers": {"memstore": {"command", "args", "env"}}}, of --http {"type", "url"}, for this program, this
    store and the settings of this environment.
    """
    import asyncio

    from memstore.providers.optional import missing

    if user is None and not http:
        raise typer.BadParameter("whose memory? Give --user NAME; only over --http the URL may say it.")
    if find_spec("mcp") is None:
        raise missing("mcp", "mcp")
    if as_json:
        print_json({"mcpServers": {"memstore": _at(user, port) if http else _started(str(user), database)}})
    elif http:
        from memstore.server.mcp.http import serve_http

        asyncio.run(serve_http(user, database, port))
    else:
        from memstore.server.mcp.server import serve_stdio

        asyncio.run(serve_stdio(str(user), database))


def _started(user: str, database: str | None) -> Json:
    """Give how a client starts this very program: it has neither this PATH nor this environment."""
    script = Path(sys.executable).with_name("memstore")
    program = [str(script)] if script.exists() else [sys.executable, "-m", "memstore"]
    own = {name: value for name, value in sorted(os.environ.items()) if name.startswith("MEMSTORE_")}
    if database is not None:
        own["MEMSTORE_DATABASE_URL"] = _absolute(database)
    return {"command": program[0], "args": [*program[1:], "mcp", "--user", user], "env": own}


def _absolute(database: str) -> str:
    kind, colon, folder = database.partition(":")
    return f"{kind}:{Path(folder).expanduser().absolute()}" if kind == "embedded" and colon else database


def _at(user: str | None, port: int) -> Json:
    """Give where a client finds it; without a user, NAME stands for one."""
    place = quote(user or "NAME", safe="")
    return {"type": "http", "url": f"http://127.0.0.1:{port}/mcp/{place}"}
