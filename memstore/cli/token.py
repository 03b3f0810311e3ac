"""Who may ask a server: `token create`, `list` and `revoke`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from memstore.cli.options import DatabaseOption, JsonFlag, identity, name
from memstore.cli.show import hint, print_json, say, table

if TYPE_CHECKING:
    from memstore.models import ApiToken

app = typer.Typer(help="Say who may ask a server.", no_args_is_help=True, rich_markup_mode=None)
DAY = "%Y-%m-%d"


@app.command()
def create(
    user: Annotated[
        str | None, typer.Option("--user", "-u", parser=name, metavar="NAME", help="It opens this user's memory.")
    ] = None,
    operator: Annotated[
        bool, typer.Option("--operator", help="It opens everybody's memory, and what the operator does.")
    ] = False,
    days: Annotated[float | None, typer.Option(metavar="N", help="It holds so long; else until it is revoked.")] = None,
    label: Annotated[
        str | None, typer.Option("--name", parser=name, metavar="TEXT", help="What it is for, as list shows it.")
    ] = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Make a token and print it: only now, for what is kept is its hash.

    JSON: {"id", "secret": the token, "user": name or null, "name": text or null, "created_at", "expires_at": time or
    null}.
    """
    from memstore.cli.stores import opened

    if (user is None) is not operator:
        raise typer.BadParameter("give --user NAME, or --operator.")
    with opened(database) as store:
        made = store.tokens.create(user=user, name=label, days=days)
    if as_json:
        print_json({**_row(made), "secret": made.secret})
        return
    print(made.secret)
    whose = "everybody's memory" if made.user is None else f"the memory of {made.user!r}"
    hint(f"opens {whose}; it is shown this once. Send it as Authorization: Bearer")


@app.command("list")
def tokens(database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """List the tokens, the latest first, without their secrets.

    JSON: [{"id", "user": name or null, "name": text or null, "created_at", "expires_at", "revoked_at": time or null}].
    """
    from memstore.cli.stores import opened

    with opened(database) as store:
        found = store.tokens.all()
    if as_json:
        print_json([_row(one) for one in found])
    elif found:
        rows = [
            (one.id, f"{one.created_at:{DAY}}", _state(one), one.user or "(operator)", one.name or "") for one in found
        ]
        table(("id", "made", "state", "user", "name"), rows)
    else:
        hint("no token was made yet: memstore token create --user NAME")


@app.command()
def revoke(
    token: Annotated[UUID, typer.Argument(parser=identity, metavar="ID", help="As memstore token list shows it.")],
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Take a token back; a server that knew it lets it in for two seconds more.

    JSON: as of one of memstore token list: {"id", "revoked_at": time}.
    """
    from memstore.cli.stores import opened

    with opened(database) as store:
        found = store.tokens.revoke(token)
    if as_json:
        print_json(_row(found))
    else:
        say(f"{found.id} opens nothing any more")


def _row(one: ApiToken) -> dict[str, object]:
    names = ("id", "user", "name", "created_at", "expires_at", "revoked_at")
    return {name: getattr(one, name) for name in names}


def _state(one: ApiToken) -> str:
    from datetime import UTC, datetime

    if one.revoked_at is not None:
        return "revoked"
    if one.expires_at is None:
        return "holds"
    return "expired" if one.expires_at <= datetime.now(UTC) else f"until {one.expires_at:{DAY}}"
