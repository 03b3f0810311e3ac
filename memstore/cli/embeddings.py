"""Another embedder for users who have vectors: `embeddings migrate`, `status`, `rollback` and `clean`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from memstore.cli.options import DatabaseOption, JsonFlag
from memstore.cli.show import err, hint, print_json, say, table
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
    goes on with what is left. Afterwards set embedder to the new one, for new users: memstore settings set embedder.

    JSON: {"users": moved, "vectors": made, integers}.
    """
    from memstore.cli.stores import opened
    from memstore.providers import vectors_name

    with opened(database) as store, _shown() as told:
        moved = store.embeddings.migrate(to, progress=told)
        own = store.settings.embedder
    _tell(moved, as_json, f"{moved.users:,} users are found by {to} now; {moved.vectors:,} vectors made")
    if vectors_name(own) != vectors_name(to) and not as_json:
        hint(f"new users are still given {own}: memstore settings set embedder {to}")


@app.command()
def status(database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Say which embedders serve, are being made or are retired, and what is missing.

    On a pipe, a line an embedder and state, its cells parted by tabs: embedder, dimensions, state, users, units,
    vectors, missing.

    JSON: [{"name", "dimensions", "state": serving, building or retired, "users", "units", "vectors", "missing"}].
    """
    from memstore.cli.stores import opened

    with opened(database) as store:
        found = store.embeddings.status()
    if as_json:
        print_json(found)
        return
    rows = [(one.name, one.dimensions, one.state, one.users, one.units, one.vectors, one.missing) for one in found]
    table(COLUMNS, rows)
    if any(one.state == "building" for one in found):
        hint("a migration is not done: memstore embeddings migrate goes on with it, rollback gives it up")


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
    from memstore.cli.stores import opened

    with opened(database) as store, _shown() as told:
        moved = store.embeddings.rollback(leaving, progress=told)
        if not moved.users:
            where = "" if leaving is None else f" from {leaving!r}"
            raise InvalidInput(
                f"Nobody can go back{where}: no other embedder served before, or its vectors were removed by memstore "
                "embeddings clean. To have users found by it again: memstore embeddings migrate --to KIND:MODEL. "
                "memstore embeddings status says what there is."
            )
    _tell(moved, as_json, f"{moved.users:,} users have gone back; {moved.vectors:,} vectors made")


@app.command()
def clean(database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Remove the vectors and indexes of embedders that serve no more. There is no way back then.

    JSON: {"users": integer, "vectors": removed}.
    """
    from memstore.cli.stores import opened

    with opened(database) as store:
        moved = store.embeddings.clean()
    _tell(moved, as_json, f"{moved.vectors:,} vectors of {moved.users:,} users removed")


def _tell(moved: Moved, as_json: bool, told: str) -> None:
    if as_json:
        print_json(moved)
    else:
        say(told)


@contextmanager
def _shown() -> Iterator[Callable[[int, int], None]]:
    """Show on stderr how far it is, how fast, and how long yet; give what is told of units."""
    with err.status("loading") as shown:
        began: tuple[float, int] | None = None

        def told(done: int, total: int) -> None:
            nonlocal began
            began = began or (monotonic(), done)
            spent, made = monotonic() - began[0], done - began[1]
            pace = f", {made / spent:,.0f} a second, {_time((total - done) * spent / made)} left" if made else ""
            shown.update(f"{done:,} of {total:,} units{pace}")

        yield told


def _time(seconds: float) -> str:
    return f"{seconds / 60:,.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
