"""`embeddings migrate`, `status`, `rollback` and `clean`: another embedder for users who have vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from memstore.cli.options import DatabaseOption, JsonFlag
from memstore.cli.output import echo, echo_hint, err, print_json, print_table
from memstore.errors import InvalidInput

if TYPE_CHECKING:
    from memstore.models import Moved

app = typer.Typer(
    help="Another embedder for users who have vectors, while recall goes on.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
COLUMNS = ("embedder", "dimensions", "state", "users", "units", "vectors", "missing")


@app.command()
def migrate(
    to: Annotated[str, typer.Option("--to", metavar="KIND:MODEL", help="The embedder that is to serve.")],
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Make vectors by another embedder beside the present ones, then let them serve, user by user.

    Recall goes on meanwhile, by the old vectors until the moment of the switch. Stopped or killed, the same command
    goes on with what is left. Afterwards set embedder to the new one, for new users.

    JSON: {"users": moved, "vectors": made, integers}.
    """
    from memstore.cli.session import open_store
    from memstore.providers import vectors_name

    with open_store(database) as store, _progress() as advance:
        moved = store.embeddings.migrate(to, progress=advance)
        own = store.settings.embedder
    _print(moved, as_json, f"{moved.users:,} users are found by {to} now; {moved.vectors:,} vectors made")
    if vectors_name(own) != vectors_name(to) and not as_json:
        echo_hint(f"new users are still given {own}: set MEMSTORE_EMBEDDER={to}, or embedder in the settings file")


@app.command()
def status(database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Say which embedders serve, are being made or are retired, and what is missing.

    On a pipe, a line an embedder and state, its cells parted by tabs: embedder, dimensions, state, users, units,
    vectors, missing.

    JSON: [{"name", "dimensions", "state": serving, building or retired, "users", "units", "vectors", "missing"}].
    """
    from memstore.cli.session import open_store

    with open_store(database) as store:
        found = store.embeddings.status()
    if as_json:
        print_json(found)
        return
    rows = [(row.name, row.dimensions, row.state, row.users, row.units, row.vectors, row.missing) for row in found]
    print_table(COLUMNS, rows)
    if any(each.state == "building" for each in found):
        echo_hint("a migration is not done: memstore embeddings migrate goes on with it, rollback gives it up")


@app.command()
def rollback(
    leaving: Annotated[
        str | None, typer.Option("--from", metavar="KIND:MODEL", help="The embedder to leave; else the last one.")
    ] = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Let the embedder serve again that served before the last migration, or give up one that is not done.

    What came since then gets its vectors first. Stopped or killed, the same command goes on with what is left. Where
    nobody can go back, after clean for one, the exit code is 2.

    JSON: {"users": gone back, "vectors": made, integers}.
    """
    from memstore.cli.session import open_store

    with open_store(database) as store, _progress() as advance:
        moved = store.embeddings.rollback(leaving, progress=advance)
        if not moved.users:
            where = "" if leaving is None else f" from {leaving!r}"
            raise InvalidInput(
                f"Nobody can go back{where}: no other embedder served before, or its vectors were removed by memstore "
                "embeddings clean. To have users found by it again: memstore embeddings migrate --to KIND:MODEL. "
                "memstore embeddings status says what there is."
            )
    _print(moved, as_json, f"{moved.users:,} users have gone back; {moved.vectors:,} vectors made")


@app.command()
def clean(database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Remove the vectors and indexes of embedders that serve no more. There is no way back then.

    JSON: {"users": integer, "vectors": removed}.
    """
    from memstore.cli.session import open_store

    with open_store(database) as store:
        moved = store.embeddings.clean()
    _print(moved, as_json, f"{moved.vectors:,} vectors of {moved.users:,} users removed")


def _print(moved: Moved, as_json: bool, text: str) -> None:
    if as_json:
        print_json(moved)
    else:
        echo(text)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Show progress, rate and time left on stderr; yield the callback for units done and in total."""
    with err.status("loading") as status:
        began: tuple[float, int] | None = None

        def advance(done: int, total: int) -> None:
            nonlocal began
            began = began or (monotonic(), done)
            spent, made = monotonic() - began[0], done - began[1]
            pace = f", {made / spent:,.0f} a second, {_time((total - done) * spent / made)} left" if made else ""
            status.update(f"{done:,} of {total:,} units{pace}")

        yield advance


def _time(seconds: float) -> str:
    return f"{seconds / 60:,.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
