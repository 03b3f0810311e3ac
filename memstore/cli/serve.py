"""REST for other programs: `serve`."""

from __future__ import annotations

from typing import Annotated

import typer

from memstore.cli.exits import flush
from memstore.cli.options import DatabaseOption, JsonFlag
from memstore.cli.show import hint, print_json, say, show_records

HOME, PORT = "127.0.0.1", 8377


def serve(
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where it listens; 127.0.0.1: this machine only.")
    ] = HOME,
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="0 takes one that is free.")] = PORT,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Serve the store over HTTP until Ctrl-C or SIGTERM; requests under way are finished first.

    On this machine no token is needed until the first one is made; elsewhere it does not start without.

    JSON, as soon as it answers: {"url": text, "open": true where no token is needed}.
    """
    import asyncio

    from memstore.providers.optional import brought_by

    show_records()
    with brought_by("server", "fastapi", "uvicorn"):
        from memstore.server.http.program import Serving
        from memstore.server.http.program import serve as run

    def told(serving: Serving) -> None:
        if as_json:
            print_json(serving)
            flush()
        else:
            say(f"serving {serving.url}/v1 (Ctrl-C stops it)")
        if serving.open:
            hint("whoever uses this machine may ask: no token was made yet (memstore token create)")

    asyncio.run(run(database, host=host, port=port, told=told))
