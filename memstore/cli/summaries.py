"""What a conversation was about: `summaries`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from memstore.cli.options import DatabaseOption, JsonFlag, UserOption, name
from memstore.cli.show import hint, print_json, table
from memstore.cli.stores import hint_if_new, opened

if TYPE_CHECKING:
    from memstore import MemoryStore, Summary

COLUMNS = ("level", "messages", "from", "until", "tokens", "summary")


def summaries(
    user: UserOption,
    conversation: Annotated[
        str, typer.Option("--conversation", "-c", parser=name, metavar="NAME", help="The conversation.")
    ],
    level: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Of this level only; 0 are those made with --make.")
    ] = None,
    first: Annotated[
        int | None, typer.Option("--from", min=1, metavar="SEQ", help="Of this message or later ones.")
    ] = None,
    last: Annotated[
        int | None, typer.Option("--to", min=1, metavar="SEQ", help="Of this message or earlier ones.")
    ] = None,
    make: Annotated[
        bool,
        typer.Option("--make", help="Make one of the messages --from … --to, by default of all, if it is not there."),
    ] = False,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List the summaries of a conversation, by level and in order, or make one.

    Level 1 is of stretches of the conversation, each further one of several summaries of the level below.

    On a pipe, a line a summary, its cells parted by tabs: level, messages, first and last day, tokens, text.

    JSON: [{"user_id", "id", "conversation_id", "level", "from_seq", "to_seq", "text", "tokens", "counter", "recipe",
    "occurred_at", "occurred_until", "recorded_at"}], also of the one that was made.
    """
    if make and level is not None:
        raise typer.BadParameter("what is made is of level 0: leave it out.", param_hint="--level")
    with opened(database) as store:
        found = _found(store, user, conversation, level, (first, last), make=make)
    if as_json:
        print_json(found)
    else:
        table(COLUMNS, [_row(one) for one in found])


def _found(
    store: MemoryStore,
    user: str,
    conversation: str,
    level: int | None,
    bounds: tuple[int | None, int | None],
    *,
    make: bool,
) -> list[Summary]:
    scope = store.user(user).conversation(conversation)
    first, last = bounds
    if make:
        return [scope.summarize(first, last)]
    found = [
        one
        for one in scope.summaries(level=level)
        if (first is None or one.to_seq >= first) and (last is None or one.from_seq <= last)
    ]
    if not found:
        hint_if_new(store, user, conversation)
        if scope.info() is not None:
            hint("none yet: a stretch is summarized when a silence follows or it is full; --make makes one now")
    return found


def _row(one: Summary) -> tuple[object, ...]:
    messages = f"{one.from_seq}-{one.to_seq}"
    return one.level, messages, f"{one.occurred_at:%Y-%m-%d}", f"{one.occurred_until:%Y-%m-%d}", one.tokens, one.text
