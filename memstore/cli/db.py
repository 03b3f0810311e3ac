"""`db`: the operator's commands for the database: schema, roles, Citus, indexes, the embedded server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memstore.cli.options import DatabaseOption, JsonFlag, UserOption
from memstore.cli.output import echo, echo_hint, print_json, print_table

if TYPE_CHECKING:
    from memstore.store.migrations import Status

app = typer.Typer(help="Look after the database itself.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def upgrade(database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Make the tables, or bring them to the newest schema.

    JSON: {"revision", "head": text or null, "current": true or false}.
    """
    from memstore.store import migrations

    with _url(database) as url:
        migrations.prepare(url, upgrade_old=True)
        _print_status(migrations.status(url), as_json)


@app.command()
def status(database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Say whether the schema is the newest one.

    JSON: {"revision", "head": text or null, "current": true or false}.
    """
    from memstore.client.address import database_url, embedded_folder, is_embedded
    from memstore.store import migrations

    target = database_url(database)
    if is_embedded(target) and _is_missing(embedded_folder(target)):  # who only asks makes no database
        _print_status(migrations.Status(None), as_json)
        return
    with _url(target) as url:
        _print_status(migrations.status(url), as_json)


@app.command()
def sql(as_json: JsonFlag = False) -> None:
    """Print the SQL that makes the tables.

    JSON: {"sql": text}.
    """
    from memstore.store import migrations

    statements = migrations.sql()
    if as_json:
        print_json({"sql": statements})
    else:
        print(statements)


@app.command()
def grant(
    login: Annotated[str, typer.Argument(help="A login that there is.")],
    role: Annotated[str, typer.Option(metavar="ROLE", help="app, loader, reader or admin.")] = "app",
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Let a login do what a role may: app, loader, reader or admin. Run it with the URL of the tables' owner.

    app adds, derives, recalls and erases; loader brings history in; reader recalls; admin lists users and reads nothing
    of theirs. Needs no superuser: a login with CREATEROLE, or roles that an administrator has made (it says which).

    JSON: {"login", "role": text, "confined": false where the login may do more than the role all the same}.
    """
    from memstore.store import roles

    with _url(database) as url:
        granted = roles.grant(url, login, role)
    if as_json:
        print_json({"login": granted.login, "role": granted.role, "confined": granted.confined})
    else:
        echo(f"{granted.login} is granted {granted.role}")
    if not granted.confined:
        echo_hint(
            f"{granted.login} is a superuser, ignores row-level security or owns the tables: no role confines it."
        )


@app.command()
def distribute(database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Spread the tables over the machines of a Citus, each user's rows together. Run it once, on the coordinator.

    With the URL of the tables' owner. Rows that are there are moved, and nobody can write meanwhile; what is
    distributed already stays so.

    JSON: {"distributed": tables by user, "reference": tables that each machine has: lists of text}.
    """
    from memstore.store import distribution

    with _url(database) as url:
        done = distribution.distribute(url, lambda name: echo_hint(f"{name} …"))
    if as_json:
        print_json(done)
    else:
        echo(f"{len(done.distributed)} tables are distributed by user, {len(done.reference)} are on each machine")


@app.command()
def isolate(user: UserOption, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Return a large user a shard of their own on a Citus, which can then be moved to a machine of its own.

    JSON: {"isolated": text}.
    """
    from memstore import ids
    from memstore.store import distribution

    with _url(database) as url:
        distribution.isolate(url, ids.user_id(user))
    if as_json:
        print_json({"isolated": user})
    else:
        echo(f"{user} has a shard of their own")


@app.command()
def index(database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Build what makes recall fast for users with more units than MEMSTORE_UNITS_IN_MEMORY.

    memstore derive does it too where its login owns the tables; else run this with one that does. It takes a minute and
    more for 100,000 units, while the store is in use. Without it recall is slower and finds the same.

    JSON: [{"id", "name", "units": integer, "indexed": true or false}].
    """
    from memstore.cli.session import open_store

    with open_store(database) as store:
        refused = store.build_indexes(progress=lambda user: echo_hint(f"{user.name}: {user.units:,} units"))
        found = store.large_users()
    if as_json:
        print_json(found)
    else:
        rows = [(each.name, f"{each.units:,}", "yes" if each.indexed else "no") for each in found]
        print_table(("user", "units", "indexed"), rows)
    names = {each.name for each in refused}
    if waiting := ", ".join(repr(each.name) for each in found if not each.indexed and each.name not in names):
        echo_hint(f"Another process builds what is missing for {waiting}.")
    if refused:
        echo_hint("This login may not build indexes on the vectors: run it with that of the tables' owner.")
        raise typer.Exit(1)


@app.command()
def stop(database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Stop the embedded Postgres in an orderly way, whoever uses it.

    JSON: {"folder": text, "stopped": false where it was not running}.
    """
    from memstore.client.address import database_url, embedded_folder, is_embedded
    from memstore.errors import ConfigurationError
    from memstore.store import embedded
    from memstore.store.faults import masked

    target = database_url(database)
    if not is_embedded(target):
        raise ConfigurationError(f"{masked(target)} is not embedded: stop it where it was started.")
    folder = embedded_folder(target)
    stopped = embedded.stop(folder)
    if as_json:
        print_json({"folder": str(folder), "stopped": stopped})
    else:
        echo(f"{folder}: {'stopped' if stopped else 'was not running'}")


def _print_status(found: Status, as_json: bool) -> None:
    if as_json:
        print_json({"revision": found.revision, "head": found.head, "current": found.current})
    else:
        word = "current" if found.current else "to be upgraded: memstore db upgrade"
        echo(f"schema {found.revision or 'none'} of {found.head}: {word}")


def _is_missing(folder: Path) -> bool:
    with suppress(OSError):  # of a folder that may not be looked at, the server's opening says more
        above = next(parent for parent in folder.absolute().parents if parent.exists())
        return not folder.exists() and above.is_dir()
    return False


@contextmanager
def _url(database: str | None) -> Iterator[str]:
    """Yield the URL of the database, with an embedded one running meanwhile."""
    from memstore.client.address import checked_url, database_url, embedded_folder, is_embedded
    from memstore.store import embedded

    target = database_url(database)
    if not is_embedded(target):
        yield checked_url(target)
        return
    server = embedded.EmbeddedServer.open(embedded_folder(target))
    try:
        yield server.url
    finally:
        server.close()
