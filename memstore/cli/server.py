"""`serve`, `mcp`, `token` and `webhooks`: memory for other programs and for models; tokens; events for others."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from memstore.cli.options import UserOption, command, common, flag, group, name_option, option
from memstore.cli.output import configure_service_log, echo_hint, flush, print_json, print_models, print_result, to_json
from memstore.cli.session import open_store

token_app = group("Say who may ask a server.")
webhook_app = group("Send changes of facts, and erasures, to other programs.")


def serve(
    host: Annotated[str, option("ADDRESS", "Where it listens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="0 takes one that is free.")] = 8377,
    allow_writes_in_ui: Annotated[bool, flag("--allow-writes-in-ui", "Allow changes in the pages at /ui.")] = False,
) -> None:
    """Serve the store over HTTP until Ctrl-C or SIGTERM; requests under way are finished first.

    At a loopback address no token is needed until the first one is made. At any other one it starts only with a token.

    JSON, as soon as it answers: {"url": text, "open": true where no token is needed}.
    """
    import asyncio

    from memstore.plugins import require_extra

    configure_service_log()
    with require_extra("server", "fastapi", "uvicorn"):
        from memstore.server.http.app import serve as run

    def announce(url: str, is_open: bool) -> None:
        print_result({"url": url, "open": is_open}, f"serving {url}/v1, and {url}/ui for people (Ctrl-C stops it)")
        flush()
        if is_open:
            echo_hint("everybody on this machine may ask: no token was made yet (memstore token create)")

    asyncio.run(run(common.database, host=host, port=port, ui_writes=allow_writes_in_ui, on_start=announce))


def mcp(
    user: UserOption,
    scope: Annotated[
        str | None, name_option("Of this project: what was said in another one is not told.", "--scope")
    ] = None,
) -> None:
    """Serve a user's memory to models, by the Model Context Protocol: search, add, update, forget, contexts.

    Over stdio, until standard input ends: clients such as Claude Desktop start it so. Over HTTP memstore serve does it.
    With --json it does not serve, but prints what a client's settings take.
    """
    import asyncio

    from memstore.plugins import missing_extra

    if find_spec("mcp") is None:
        raise missing_extra("mcp", "mcp")
    if common.as_json:
        # A client has neither this PATH nor this environment.
        script = Path(sys.executable).with_name("memstore")
        program = [str(script)] if script.exists() else [sys.executable, "-m", "memstore"]
        environment = {name: value for name, value in sorted(os.environ.items()) if name.startswith("MEMSTORE_")}
        if common.database is not None:
            environment["MEMSTORE_DATABASE_URL"] = common.database
            if common.database.startswith("embedded:"):
                folder = Path(common.database.removeprefix("embedded:")).expanduser().absolute()
                environment["MEMSTORE_DATABASE_URL"] = f"embedded:{folder}"
        in_scope = ["--scope", scope] if scope else []
        entry = {"command": program[0], "args": [*program[1:], "mcp", "--user", user, *in_scope], "env": environment}
        print_json({"mcpServers": {"memstore": entry}})
        return
    from memstore.server.mcp.server import serve_stdio

    asyncio.run(serve_stdio(user, common.database, scope))


def hook(
    user: UserOption,
    budget: Annotated[int, typer.Option("--budget", "-b", min=200, max=2000, metavar="N", help="Of a context.")] = 1000,
    exclude: Annotated[
        list[Path] | None, option("FOLDER", "Leave out sessions in this project; may be repeated.")
    ] = None,
    min_relevance: Annotated[
        float,
        option("SHARE", "Say nothing where what is stored has less relevance; 0: always say something.", min=0, max=1),
    ] = 0.5,
    event: Annotated[str | None, typer.Argument(help="JSON, as Codex's notify gives it; else stdin has it.")] = None,
    serve: Annotated[bool, typer.Option("--serve", hidden=True, help="Be the process in the background.")] = False,
) -> None:
    """Run as a hook of Claude Code or Codex: store each turn, and add the memory of other sessions to each prompt.

    It reads a hook's JSON and prints a hook's JSON. Errors go to stderr, with the exit code 0. A process in the
    background has the store open, stores and derives; it ends after an hour without a hook.

    docs/how-to/coding-agents.md has the settings to paste.
    """
    import asyncio

    if serve:
        from memstore.server.hook import serve as run

        with suppress(asyncio.CancelledError):  # by a signal
            asyncio.run(run(user, common.database, budget=budget, exclude=exclude or (), min_relevance=min_relevance))
    else:
        from memstore.hook import main

        main(sys.argv[sys.argv.index("hook") + 1 :])


@command(token_app)
def create(
    user: Annotated[str | None, name_option("Open this user's memory.", "--user", "-u")] = None,
    operator: Annotated[bool, flag("--operator", "Open everybody's memory.")] = False,
    days: Annotated[float | None, option("N", "Days until it expires; else it is valid until revoked.")] = None,
    label: Annotated[str | None, name_option("A name, which list shows.", "--name")] = None,
) -> None:
    """Make a token and print it. It is not shown again: only its hash is stored."""
    if (user is None) != operator:
        raise typer.BadParameter("give --user NAME, or --operator.")
    with open_store() as store:
        made = store.tokens.create(user=user, name=label, days=days)
    whose = "everybody's memory" if made.user is None else f"the memory of {made.user!r}"
    print_result(to_json(made) | {"secret": made.secret}, made.secret or "")
    if not common.as_json:
        echo_hint(f"it opens {whose}, and is not shown again. Send it in the header Authorization: Bearer")


@command(token_app, "list")
def tokens() -> None:
    """List the tokens, the latest first, without their secrets."""
    with open_store() as store:
        issued = store.tokens.all()
    empty = "no token was made yet: memstore token create --user NAME"
    print_models(issued, "id", "created_at", "expires_at", "revoked_at", "user", "name", empty=empty)


@command(token_app)
def revoke(
    token: Annotated[UUID, typer.Argument(metavar="ID", help="As memstore token list shows it.")],
) -> None:
    """Take a token back: it opens nothing any more."""
    with open_store() as store:
        revoked = store.tokens.revoke(token)
    print_result(revoked, f"{revoked.id} opens nothing any more")


@command(webhook_app)
def add(
    url: Annotated[str, typer.Argument(metavar="URL", help="Where events are sent, by http or https.")],
    events: Annotated[str | None, option("NAMES", "Of these, with commas; else all.")] = None,
) -> None:
    """Send events of every user to a URL, and print the secret that signs them. It is not shown again.

    A worker sends them: memstore worker. The events are fact.created, fact.superseded and erasure.done.
    """
    with open_store() as store:
        webhook = store.webhooks.add(url, events=None if events is None else events.split(","))
    print_result(to_json(webhook) | {"secret": webhook.secret}, webhook.secret or "")


@command(webhook_app, "list")
def webhooks() -> None:
    """List the webhooks, the latest first, without their secrets. A disabled one has answered 410."""
    with open_store() as store:
        added = store.webhooks.all()
    empty = "there is no webhook: memstore webhooks add URL"
    print_models(added, "id", "created_at", "disabled_at", "failed_at", "last_error", "url", empty=empty)


@command(webhook_app)
def remove(
    webhook: Annotated[UUID, typer.Argument(metavar="ID", help="As memstore webhooks list shows it.")],
) -> None:
    """Send nothing more to a webhook."""
    with open_store() as store:
        store.webhooks.remove(webhook)
    print_result({"id": str(webhook)}, f"{webhook} is sent nothing any more")
