"""Memory out: `export`. What it writes comes in again by `import`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from memstore.cli.options import DatabaseOption, JsonFlag, name
from memstore.cli.show import hint, line, print_json, progress, say
from memstore.cli.stores import opened

if TYPE_CHECKING:
    from memstore.models import Exported, Json

STDOUT = "-"


def export(
    path: Annotated[
        str, typer.Argument(metavar="[PATH|-]", help="Where to: a file, gzipped where it ends in .gz; - is stdout.")
    ] = STDOUT,
    user: Annotated[
        list[str] | None,
        typer.Option("--user", "-u", parser=name, metavar="NAME", help="Of this user; may be repeated. Else of all."),
    ] = None,
    conversation: Annotated[
        str | None,
        typer.Option("--conversation", "-c", parser=name, metavar="NAME", help="Only this one of the user's."),
    ] = None,
    no_derived: Annotated[
        bool, typer.Option("--no-derived", help="Without what was made of messages: to be made there.")
    ] = False,
    no_vectors: Annotated[
        bool,
        typer.Option("--no-vectors", help="Without vectors: a third of the size or less, and they are made there."),
    ] = False,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Write memory to a file: messages, summaries, facts with their history, documents, settings; a JSON object a line.

    memstore import takes it in again, elsewhere, with the same ids and the same recall. The file appears once it is
    whole, for its owner alone.

    JSON: {"file", "users", "conversations", "messages", "summaries", "facts", "documents": integers}; not with -.
    """
    if path == STDOUT and as_json:
        raise typer.BadParameter("stdout has the export; give a file to have the counts there.")
    if conversation is not None and len(user or ()) != 1:
        raise typer.BadParameter("a conversation is of one user: give --user once.", param_hint="--conversation")
    whose: Json = {"users": user or None, "conversation": conversation}
    what = whose | {"derived": not no_derived, "vectors": not no_vectors}
    with opened(database) as store:
        if path == STDOUT:  # on a terminal a bar would stand between the lines
            done = store.export(sys.stdout.buffer, **what)
        else:
            with progress("exporting") as move:
                done = store.export(path, **what, progress=_over_all(move))
    if as_json:
        print_json({"file": path} | _counts(done))
    elif path == STDOUT:
        hint(_told(done))
    else:
        say((line(path), "bold"), f": {_told(done)}")


def _over_all(move: Callable[[str, int, int | None], None]) -> Callable[[str, int, int], None]:
    """Give what moves one bar for the messages of all users."""
    before, last = 0, ("", 0)

    def told(user: str, done: int, total: int) -> None:
        nonlocal before, last
        if user != last[0]:
            before += last[1]
        last = user, done
        move("messages", before + done, None)

    return told


def _counts(done: Exported) -> dict[str, int]:
    from memstore.plain import plain

    counts: dict[str, int] = plain(done)
    return counts


def _told(done: Exported) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in _counts(done).items())
