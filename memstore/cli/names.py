"""Whose memory there is, and what was talked in: `users`, `conversations`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from memstore.cli.options import DatabaseOption, JsonFlag, UserOption, name
from memstore.cli.show import hint, print_json, table
from memstore.cli.stores import hint_if_unknown, opened

if TYPE_CHECKING:
    from memstore import MemoryStore
    from memstore.models import Conversation, Json

DAY = len("2024-05-01")


def users(database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """List who has a memory here, by name.

    On a pipe, a line a user, its cells parted by tabs: conversations, messages, day of the latest, name.

    A login that was granted the role admin sees the names alone: the numbers are then null.

    JSON: [{"name", "conversations", "messages": integers or null, "updated_at": time or null}].
    """
    from memstore.plain import plain

    with opened(database) as store:
        found = plain([_user(store, one) for one in store.users()])
    if as_json:
        print_json(found)
    elif found:
        table(("conversations", "messages", "latest", "user"), [_counted(one) for one in found])
    else:
        hint("nothing is stored yet: memstore import FILE --user NAME")


def _counted(one: Json) -> tuple[object, ...]:
    numbers = ("" if one[column] is None else one[column] for column in ("conversations", "messages"))
    return (*numbers, (one["updated_at"] or "")[:DAY], one["name"])


def _user(store: MemoryStore, name: str) -> Json:
    if store.role == "admin":  # who there is, and nothing of theirs
        return {"name": name, "conversations": None, "messages": None, "updated_at": None}
    found = store.user(name).conversations()
    return {
        "name": name,
        "conversations": len(found),
        "messages": sum(one.last_seq for one in found),
        "updated_at": max((one.updated_at for one in found), default=None),
    }


def conversations(
    user: UserOption,
    channel: Annotated[str | None, typer.Option(parser=name, metavar="NAME", help="Of this channel only.")] = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List a user's conversations, the latest first.

    On a pipe, a line a conversation, its cells parted by tabs: messages, day of the first, day of the latest, channel,
    name, with the title behind it where there is one. The days are those on which memstore was told.

    JSON: [{"name", "id", "title", "channel", "messages": integer, "created_at", "updated_at"}].
    """
    from memstore.plain import plain

    with opened(database) as store:
        found = plain([_conversation(one) for one in store.user(user).conversations(channel=channel)])
        if not found:
            hint_if_unknown(store, user)
    if as_json:
        print_json(found)
    else:
        table(("messages", "first", "latest", "channel", "conversation"), [_row(one) for one in found])


def _conversation(one: Conversation) -> Json:
    told = {"name": one.name, "id": one.id, "title": one.title, "channel": one.channel, "messages": one.last_seq}
    return told | {"created_at": one.created_at, "updated_at": one.updated_at}


def _row(one: Json) -> tuple[object, ...]:
    days = (one["created_at"][:DAY], one["updated_at"][:DAY])
    return (
        one["messages"],
        *days,
        one["channel"] or "",
        f"{one['name']}: {one['title']}" if one["title"] else one["name"],
    )
