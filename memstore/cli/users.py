"""`users`, `conversations` and `summaries`: whose memory there is, and what was talked about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from memstore.cli.options import DatabaseOption, JsonFlag, UserOption, parse_name
from memstore.cli.output import echo_hint, print_json, print_table
from memstore.cli.session import hint_if_unknown, open_store

if TYPE_CHECKING:
    from memstore import MemoryStore, Summary
    from memstore.models import Conversation, Json

DAY = len("2024-05-01")
SUMMARY_COLUMNS = ("level", "messages", "from", "until", "tokens", "summary")


def users(database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """List who has a memory here, by name.

    On a pipe, a line a user, its cells parted by tabs: conversations, messages, day of the latest, name.

    A login that was granted the role admin sees the names alone: the numbers are then null.

    JSON: [{"name", "conversations", "messages": integers or null, "updated_at": time or null}].
    """
    from memstore.serialization import to_json

    with open_store(database) as store:
        found = to_json([_user(store, name) for name in store.users()])
    if as_json:
        print_json(found)
    elif found:
        print_table(("conversations", "messages", "latest", "user"), [_user_row(user) for user in found])
    else:
        echo_hint("nothing is stored yet: memstore import FILE --user NAME")


def _user_row(user: Json) -> tuple[object, ...]:
    numbers = ("" if user[column] is None else user[column] for column in ("conversations", "messages"))
    return (*numbers, (user["updated_at"] or "")[:DAY], user["name"])


def _user(store: MemoryStore, name: str) -> Json:
    if store.role == "admin":  # who there is, and nothing of theirs
        return {"name": name, "conversations": None, "messages": None, "updated_at": None}
    found = store.user(name).conversations()
    return {
        "name": name,
        "conversations": len(found),
        "messages": sum(each.last_seq for each in found),
        "updated_at": max((each.updated_at for each in found), default=None),
    }


def conversations(
    user: UserOption,
    channel: Annotated[
        str | None, typer.Option(parser=parse_name, metavar="NAME", help="Of this channel only.")
    ] = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List a user's conversations, the latest first.

    On a pipe, a line a conversation, its cells parted by tabs: messages, day of the first, day of the latest, channel,
    name, with the title behind it where there is one. The days are those on which memstore was told.

    JSON: [{"name", "id", "title", "channel", "messages": integer, "created_at", "updated_at"}].
    """
    from memstore.serialization import to_json

    with open_store(database) as store:
        found = to_json([_conversation(each) for each in store.user(user).conversations(channel=channel)])
        if not found:
            hint_if_unknown(store, user)
    if as_json:
        print_json(found)
    else:
        print_table(
            ("messages", "first", "latest", "channel", "conversation"), [_conversation_row(each) for each in found]
        )


def _conversation(row: Conversation) -> Json:
    shown = {"name": row.name, "id": row.id, "title": row.title, "channel": row.channel, "messages": row.last_seq}
    return shown | {"created_at": row.created_at, "updated_at": row.updated_at}


def _conversation_row(row: Json) -> tuple[object, ...]:
    name = f"{row['name']}: {row['title']}" if row["title"] else row["name"]
    return row["messages"], row["created_at"][:DAY], row["updated_at"][:DAY], row["channel"] or "", name


def summaries(
    user: UserOption,
    conversation: Annotated[
        str, typer.Option("--conversation", "-c", parser=parse_name, metavar="NAME", help="The conversation.")
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
    with open_store(database) as store:
        found = _find_summaries(store, user, conversation, level, (first, last), make=make)
    if as_json:
        print_json(found)
    else:
        print_table(SUMMARY_COLUMNS, [_summary_row(summary) for summary in found])


def _find_summaries(
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
        summary
        for summary in scope.summaries(level=level)
        if (first is None or summary.to_seq >= first) and (last is None or summary.from_seq <= last)
    ]
    if not found:
        hint_if_unknown(store, user, conversation)
        if scope.info() is not None:
            echo_hint("none yet: a stretch is summarized when a silence follows or it is full; --make makes one now")
    return found


def _summary_row(row: Summary) -> tuple[object, ...]:
    messages = f"{row.from_seq}-{row.to_seq}"
    return row.level, messages, f"{row.occurred_at:%Y-%m-%d}", f"{row.occurred_until:%Y-%m-%d}", row.tokens, row.text
