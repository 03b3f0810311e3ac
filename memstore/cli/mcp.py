"""A user's memory for models: `mcp`, over stdio or HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from memstore.cli.options import DatabaseOption, name

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
) -> None:
    """Serve a user's memory to models, by the Model Context Protocol: search, add, update, forget, contexts.

    Over stdio, for one user, until standard input ends: clients such as Claude Desktop start it so. With --http for all
    of this machine at http://127.0.0.1:PORT/mcp/NAME, or at /mcp for one --user.
    """
    from memstore.cli.stores import with_resident
    from memstore.providers.optional import brought_by

    if user is None and not http:
        raise typer.BadParameter("whose memory? Give --user NAME; only over --http the URL may say it.")
    settings = with_resident({})
    with brought_by("mcp", "mcp", "mcp_types"):
        from memstore.server.mcp import stdio
    if not http:
        assert user is not None
        stdio.run(user, database, settings)
        return
    from memstore.server.mcp.http import run

    run(user, database, settings, port)
