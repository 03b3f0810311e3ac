"""`users`, `conversations` and `summaries`: whose memory there is, and what was talked about."""

from __future__ import annotations

from typing import Annotated

import typer

from memstore.cli.options import ConversationOption, UserOption, name_option
from memstore.cli.output import echo_hint, print_rows
from memstore.cli.session import hint_if_unknown, open_store


def users() -> None:
    """List who has a memory here, by name, a line each; memstore stats --user NAME says how large it is.

    JSON: [names].
    """
    with open_store() as store:
        names = list(store.users())
    print_rows(
        names, ("user",), [(name,) for name in names], empty="nothing is stored yet: memstore import FILE --user NAME"
    )


def conversations(
    user: UserOption,
    channel: Annotated[str | None, name_option("Of this channel only.")] = None,
) -> None:
    """List a user's conversations, the latest first.

    On a pipe, a line a conversation, its cells parted by tabs: messages, day of the first, day of the latest, channel,
    name, with the title behind it where there is one. The days are those on which memstore was told.

    JSON: [{"name", "id", "title", "channel", "messages": integer, "created_at", "updated_at"}].
    """
    with open_store() as store:
        listed = store.user(user).conversations(channel=channel)
        if not listed:
            hint_if_unknown(store, user)
    names = ("name", "id", "title", "channel", "created_at", "updated_at")
    value = [{name: getattr(row, name) for name in names} | {"messages": row.last_seq} for row in listed]
    rows = [
        (
            row.last_seq,
            f"{row.created_at:%Y-%m-%d}",
            f"{row.updated_at:%Y-%m-%d}",
            row.channel or "",
            f"{row.name}: {row.title}" if row.title else row.name,
        )
        for row in listed
    ]
    print_rows(value, ("messages", "first", "latest", "channel", "conversation"), rows)


def summaries(
    user: UserOption,
    conversation: ConversationOption,
    level: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Of this level only; 0 are those that were asked for.")
    ] = None,
) -> None:
    """List the summaries of a conversation, by level and in order.

    Level 1 is of stretches of the conversation, each further one of several summaries of the level below.

    On a pipe, a line a summary, its cells parted by tabs: level, messages, first and last day, tokens, text.

    JSON: [{"user_id", "id", "conversation_id", "level", "from_seq", "to_seq", "text", "tokens", "counter", "recipe",
    "occurred_at", "occurred_until", "recorded_at"}].
    """
    with open_store() as store:
        listed = store.user(user).conversation(conversation).summaries(level=level)
        if not listed and not hint_if_unknown(store, user, conversation):
            echo_hint("none yet: a stretch is summarized when a silence follows or it is full")
    rows = [
        (
            row.level,
            f"{row.from_seq}-{row.to_seq}",
            f"{row.occurred_at:%Y-%m-%d}",
            f"{row.occurred_until:%Y-%m-%d}",
            row.tokens,
            row.text,
        )
        for row in listed
    ]
    print_rows(listed, ("level", "messages", "from", "until", "tokens", "summary"), rows)
