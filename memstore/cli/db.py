"""The operator's commands for the database itself: `db upgrade`, `status`, `sql` and `stop`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from memstore.cli.show import DatabaseOption, JsonFlag, out, print_json

app = typer.Typer(help="Look after the database.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def upgrade(database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Make the tables, or bring them to the newest schema."""
    from memstore.store import migrations

    with _address(database) as url:
        migrations.prepare(url, upgrade_old=True)
        _show_status(url, as_json)


@app.command()
def status(database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Say which schema the database has and which one this memstore wants."""
    with _address(database) as url:
        _show_status(url, as_json)


@app.command()
def sql(as_json: JsonFlag = False) -> None:
    """Print the statements that make the tables, for administrators who run them by hand."""
    from memstore.store import migrations

    statements = migrations.sql()
    if as_json:
        print_json({"sql": statements})
    else:
        print(statements)


@app.command()
def stop(database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Stop the embedded Postgres in an orderly way, whoever uses it."""
    from memstore.memory import database_url, embedded_folder
    from memstore.store import embedded

    folder = embedded_folder(database_url(database))
    stopped = embedded.stop(folder)
    if as_json:
        print_json({"folder": str(folder), "stopped": stopped})
    else:
        out.print(f"{folder}: {'stopped' if stopped else 'was not running'}", markup=False)


def _show_status(url: str, as_json: bool) -> None:
    from memstore.store import migrations

    found = migrations.status(url)
    if as_json:
        print_json({"revision": found.revision, "head": found.head, "current": found.current})
    else:
        word = "current" if found.current else "to be upgraded: memstore db upgrade"
        out.print(f"schema {found.revision or 'none'} of {found.head}: {word}", markup=False)


@contextmanager
def _address(database: str | None) -> Iterator[str]:
    """Give the URL of the database, with an embedded one running meanwhile."""
    from memstore.memory import database_url, embedded_folder
    from memstore.store import embedded

    target = database_url(database)
    if not target.startswith("embedded"):
        yield target
        return
    server = embedded.EmbeddedServer.open(embedded_folder(target))
    try:
        yield server.url
    finally:
        server.close()
