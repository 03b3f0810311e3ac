"""`db` and `embeddings`, for the operator: schema, roles, Citus, indexes, the embedded server; another embedder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from memstore.cli.options import command, common, group, option
from memstore.cli.output import echo_hint, print_models, print_result, show_progress
from memstore.cli.session import open_store
from memstore.errors import ConfigurationError

if TYPE_CHECKING:
    from memstore.store.migrations import Status

app = group("Look after the database itself.")
embeddings_app = group("Another embedder for a store that has vectors, while recall goes on.")


@command(app)
def upgrade() -> None:
    """Make the tables, or bring them to the newest schema; on Citus new ones are distributed too."""
    from memstore.store import distribution, migrations

    with _url() as url:
        migrations.prepare(url, upgrade_old=True)
        if distribution.is_distributed(url):
            distribution.distribute(url, lambda name: echo_hint(f"{name} is distributed …"))
        _print_status(migrations.status(url))


@command(app)
def status() -> None:
    """Say whether the schema is the newest one."""
    from memstore.store import migrations
    from memstore.store.embedded import embedded_folder, is_embedded

    target = _target()
    # Who only asks makes no database.
    if is_embedded(target) and not embedded_folder(target).exists():
        _print_status(migrations.Status(None))
        return
    with _url() as url:
        _print_status(migrations.status(url))


@command(app, takes_database=False)
def sql() -> None:
    """Print the SQL that makes the tables."""
    from memstore.store import migrations

    statements = migrations.sql()
    if common.as_json:
        print_result({"sql": statements}, "")
    else:
        print(statements)


@command(app)
def grant(
    login: Annotated[str, typer.Argument(help="A login that there is.")],
    role: Annotated[str, option("ROLE", "app, loader, reader or admin.")] = "app",
) -> None:
    """Grant a role to a login: app, loader, reader or admin. Run it with the URL of the tables' owner.

    app adds, derives, recalls and erases; loader brings history in; reader recalls; admin lists users and reads nothing
    of theirs. Needs no superuser: a login with CREATEROLE, or roles that an administrator has made (it says which).
    """
    from memstore.store import roles

    with _url() as url:
        granted = roles.grant(url, login, role)
    print_result(granted, f"{granted.login} is granted {granted.role}")
    if not granted.confined:
        echo_hint(
            f"{granted.login} is a superuser, ignores row-level security or owns the tables: no role confines it."
        )


@command(app)
def distribute() -> None:
    """Spread the tables over the machines of a Citus, each user's rows together. Run it once, on the coordinator.

    With the URL of the tables' owner. Existing rows are moved, and nobody can write meanwhile; distributed tables stay
    as they are.
    """
    from memstore.store import distribution

    with _url() as url:
        done = distribution.distribute(url, lambda name: echo_hint(f"{name} …"))
    text = f"{len(done.distributed)} tables are distributed by user, {len(done.reference)} are on each machine"
    print_result(done, text)


@command(app)
def index() -> None:
    """Build what makes recall fast for users with many chunks.

    More than MEMSTORE_MAX_CHUNKS_IN_MEMORY, that is. memstore derive does it too where its login owns the tables; else
    run this with one that does. It takes a minute and more for 100,000 chunks, while the store is in use. Without it
    recall is slower and finds the same.
    """
    with open_store() as store:
        refused = store.build_indexes()
    print_result({"refused": refused}, f"not built: {', '.join(refused)}" if refused else "all indexes are built")
    if refused:
        echo_hint("This login may not build indexes on the vectors: run it with that of the tables' owner.")
        raise typer.Exit(1)


@command(app)
def vacuum() -> None:
    """Write the tables anew, without the bytes that erased rows leave in the files.

    Each table is locked meanwhile, and needs as much room again on the disk. The login must own the tables.
    """
    from memstore.store import migrations

    with _url() as url:
        tables = migrations.vacuum(url)
    print_result({"tables": tables}, f"{len(tables)} tables were written anew")


@command(app)
def stop() -> None:
    """Stop the embedded Postgres in an orderly way, even if other processes use it."""
    from memstore.store.embedded import embedded_folder, is_embedded, server
    from memstore.store.errors import describe_url

    target = _target()
    if not is_embedded(target):
        raise ConfigurationError(f"{describe_url(target)} is not embedded: stop it where it was started.")
    folder = embedded_folder(target)
    stopped = server.stop(folder)
    text = f"{folder}: {'stopped' if stopped else 'was not running'}"
    print_result({"folder": str(folder), "stopped": stopped}, text)


def _print_status(status: Status) -> None:
    value = {"revision": status.revision, "head": status.head, "current": status.current}
    word = "current" if status.current else "to be upgraded: memstore db upgrade"
    print_result(value, f"schema {status.revision or 'none'} of {status.head}: {word}")


def _target() -> str:
    from memstore.settings import load

    return load({}).database_url if common.database is None else common.database


@contextmanager
def _url() -> Iterator[str]:
    from memstore.store.embedded import embedded_folder, is_embedded
    from memstore.store.embedded.server import EmbeddedServer
    from memstore.store.errors import normalize_dsn

    target = _target()
    if not is_embedded(target):
        yield normalize_dsn(target)
        return
    server = EmbeddedServer.open(embedded_folder(target))
    try:
        yield server.url
    finally:
        server.close()


@command(embeddings_app)
def migrate(to: Annotated[str, option("KIND:MODEL", "The new embedder.", "--to")]) -> None:
    """Make the vectors of all users by another embedder while the old ones are used, then switch the store.

    Recall goes on meanwhile, by the old vectors until the moment of the switch. Stopped or killed, the same command
    goes on with what is left. Afterwards set embedder to the new one in every process, when it suits.
    """
    with open_store() as store, show_progress("loading") as line:
        moved = store.embeddings.migrate(to, progress=lambda done, total: line.update("chunks", done, total))
        embedder = store.settings.embedder
    text = f"{to} is the active embedder; {moved.vectors:,} vectors of {moved.users:,} users made"
    print_result(moved, text)
    if moved.refused:
        echo_hint(f"{to} refuses these, which are found by words alone: {', '.join(moved.refused)}")
    if embedder != to:
        echo_hint(f"the setting is still {embedder}: set MEMSTORE_EMBEDDER={to}, or embedder in the settings file")


@command(embeddings_app, "status")
def embeddings_status() -> None:
    """List embedders: active, in the making or retired, and how many vectors are missing."""
    with open_store() as store:
        embedders = store.embeddings.status()
    print_models(embedders, "name", "dimensions", "state", "users", "chunks", "vectors", "missing")
    if any(each.state == "building" for each in embedders):
        echo_hint("a migration is not done: memstore embeddings migrate goes on, or back to the active embedder")


@command(embeddings_app)
def clean() -> None:
    """Remove the vectors and indexes of retired embedders. A migration back would make them anew."""
    with open_store() as store:
        moved = store.embeddings.clean()
    print_result(moved, f"{moved.vectors:,} vectors of {moved.users:,} users removed")
