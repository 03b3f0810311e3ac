"""`serve`, `mcp` and `token`: memory for other programs and for models, and the tokens of a server."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote
from uuid import UUID

import typer

from memstore.cli.errors import flush
from memstore.cli.options import DatabaseOption, JsonFlag, parse_id, parse_name
from memstore.cli.output import echo, echo_hint, log_records, print_json, print_table

if TYPE_CHECKING:
    from memstore.models import ApiToken, Json

token_app = typer.Typer(help="Say who may ask a server.", no_args_is_help=True, rich_markup_mode=None)
LOCALHOST, PORT = "127.0.0.1", 8377
DAY = "%Y-%m-%d"


def serve(
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where it listens; 127.0.0.1: this machine only.")
    ] = LOCALHOST,
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="0 takes one that is free.")] = PORT,
    ui: Annotated[bool, typer.Option("--ui/--no-ui", help="Pages for people, at /ui.")] = True,
    allow_writes_in_ui: Annotated[
        bool, typer.Option("--allow-writes-in-ui", help="Let these pages confirm, retract, undo and erase.")
    ] = False,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Serve the store over HTTP until Ctrl-C or SIGTERM; requests under way are finished first.

    On this machine no token is needed until the first one is made; elsewhere it does not start without.

    JSON, as soon as it answers: {"url": text, "open": true where no token is needed}.
    """
    import asyncio

    from memstore.providers.optional import brought_by

    log_records()
    with brought_by("server", "fastapi", "uvicorn"):
        from memstore.server.serve import Serving
        from memstore.server.serve import serve as run

    def announce(serving: Serving) -> None:
        if as_json:
            print_json(serving)
            flush()
        else:
            echo(f"serving {serving.url}/v1 (Ctrl-C stops it)" + (f", and {serving.url}/ui for people" if ui else ""))
        if serving.open:
            echo_hint("whoever uses this machine may ask: no token was made yet (memstore token create)")

    asyncio.run(run(database, host=host, port=port, ui=ui, ui_writes=allow_writes_in_ui, on_start=announce))


def mcp(
    user: Annotated[
        str | None,
        typer.Option(
            "--user", "-u", parser=parse_name, metavar="NAME", help="Whose memory; over HTTP, else of the URL."
        ),
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
        print_json({"mcpServers": {"memstore": _http_entry(user, port) if http else _stdio_entry(str(user), database)}})
    elif http:
        from memstore.server.mcp.http import serve_http

        asyncio.run(serve_http(user, database, port))
    else:
        from memstore.server.mcp.server import serve_stdio

        asyncio.run(serve_stdio(str(user), database))


def _stdio_entry(user: str, database: str | None) -> Json:
    """Return how a client starts this program: it has neither this PATH nor this environment."""
    script = Path(sys.executable).with_name("memstore")
    program = [str(script)] if script.exists() else [sys.executable, "-m", "memstore"]
    own = {name: value for name, value in sorted(os.environ.items()) if name.startswith("MEMSTORE_")}
    if database is not None:
        own["MEMSTORE_DATABASE_URL"] = _absolute(database)
    return {"command": program[0], "args": [*program[1:], "mcp", "--user", user], "env": own}


def _absolute(database: str) -> str:
    kind, colon, folder = database.partition(":")
    return f"{kind}:{Path(folder).expanduser().absolute()}" if kind == "embedded" and colon else database


def _http_entry(user: str | None, port: int) -> Json:
    """Return the URL for a client, with NAME in place of a missing user."""
    name = quote(user or "NAME", safe="")
    return {"type": "http", "url": f"http://127.0.0.1:{port}/mcp/{name}"}


@token_app.command()
def create(
    user: Annotated[
        str | None, typer.Option("--user", "-u", parser=parse_name, metavar="NAME", help="It opens this user's memory.")
    ] = None,
    operator: Annotated[
        bool, typer.Option("--operator", help="It opens everybody's memory, and what the operator does.")
    ] = False,
    days: Annotated[float | None, typer.Option(metavar="N", help="It holds so long; else until it is revoked.")] = None,
    label: Annotated[
        str | None, typer.Option("--name", parser=parse_name, metavar="TEXT", help="What it is for, as list shows it.")
    ] = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Make a token and print it: only now, for what is kept is its hash.

    JSON: {"id", "secret": the token, "user": name or null, "name": text or null, "created_at", "expires_at": time or
    null}.
    """
    from memstore.cli.session import open_store

    if (user is None) is not operator:
        raise typer.BadParameter("give --user NAME, or --operator.")
    with open_store(database) as store:
        made = store.tokens.create(user=user, name=label, days=days)
    if as_json:
        print_json({**_token_json(made), "secret": made.secret})
        return
    print(made.secret)
    whose = "everybody's memory" if made.user is None else f"the memory of {made.user!r}"
    echo_hint(f"opens {whose}; it is shown this once. Send it as Authorization: Bearer")


@token_app.command("list")
def tokens(database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """List the tokens, the latest first, without their secrets.

    JSON: [{"id", "user": name or null, "name": text or null, "created_at", "expires_at", "revoked_at": time or null}].
    """
    from memstore.cli.session import open_store

    with open_store(database) as store:
        found = store.tokens.all()
    if as_json:
        print_json([_token_json(each) for each in found])
    elif found:
        rows = [
            (each.id, f"{each.created_at:{DAY}}", _token_state(each), each.user or "(operator)", each.name or "")
            for each in found
        ]
        print_table(("id", "made", "state", "user", "name"), rows)
    else:
        echo_hint("no token was made yet: memstore token create --user NAME")


@token_app.command()
def revoke(
    token: Annotated[UUID, typer.Argument(parser=parse_id, metavar="ID", help="As memstore token list shows it.")],
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Take a token back; a server that knew it lets it in for two seconds more.

    JSON: as of one of memstore token list: {"id", "revoked_at": time}.
    """
    from memstore.cli.session import open_store

    with open_store(database) as store:
        found = store.tokens.revoke(token)
    if as_json:
        print_json(_token_json(found))
    else:
        echo(f"{found.id} opens nothing any more")


def _token_json(token: ApiToken) -> dict[str, object]:
    names = ("id", "user", "name", "created_at", "expires_at", "revoked_at")
    return {name: getattr(token, name) for name in names}


def _token_state(token: ApiToken) -> str:
    from datetime import UTC, datetime

    if token.revoked_at is not None:
        return "revoked"
    if token.expires_at is None:
        return "holds"
    return "expired" if token.expires_at <= datetime.now(UTC) else f"until {token.expires_at:{DAY}}"
