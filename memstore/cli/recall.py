"""What is found and what a model is given; whose memory there is, and what was talked about."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from memstore.cli.options import (
    AsOfOption,
    ConversationOption,
    LimitOption,
    UserOption,
    flag,
    given,
    name_option,
    option,
    time_option,
)
from memstore.cli.output import (
    echo_hint,
    escape,
    print_context,
    print_models,
    print_rows,
)
from memstore.cli.session import hint_why_little, open_store

if TYPE_CHECKING:
    from memstore.models import Hit

TIERS = ("messages", "summaries", "facts")


def recall(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    user: UserOption,
    limit: LimitOption = 10,
    tier: Annotated[list[str] | None, option("TIER", "messages, summaries or facts; may be repeated.")] = None,
    conversation: Annotated[str | None, name_option("In this conversation only.", "--conversation", "-c")] = None,
    role: Annotated[list[str] | None, option("ROLE", "user, assistant, tool, …; may be repeated.")] = None,
    tag: Annotated[list[str] | None, option("TAG", "With this tag; may be repeated.")] = None,
    since: Annotated[datetime | None, time_option("Said at or after, in ISO 8601.")] = None,
    until: Annotated[datetime | None, time_option("Said before.")] = None,
    as_of: AsOfOption = None,
) -> None:
    """Find what was said about something, the best first."""
    with open_store() as store:
        hits = store.user(user).recall(
            query,
            limit=limit,
            tiers=tier or TIERS,
            conversation=conversation,
            roles=role or None,
            tags=tag or None,
            since=since,
            until=until,
            as_of=as_of,
        )
        if not hits:
            hint_why_little(store, user, conversation)
    print_hits(hits)


def print_hits(hits: Sequence[Hit]) -> None:
    """Print hits as JSON or as a table."""
    print_models(hits, "score", "tier", "occurred_at", "speaker", "text")


def context(
    user: UserOption,
    conversation: ConversationOption,
    query: Annotated[str | None, typer.Argument(help="The question; by default the newest user message.")] = None,
    budget: Annotated[int | None, option("N", "The most tokens that it may have.", "--budget", "-b", min=1)] = None,
    system: Annotated[str | None, option("TEXT", "A system prompt.")] = None,
    reserve: Annotated[int | None, option("N", "Tokens of the budget to keep free.", min=0)] = None,
    strategy: Annotated[list[str] | None, option("NAME", "Compress by it; may be repeated. none: by nothing.")] = None,
    model: Annotated[str | None, option("NAME", "Count as this model does, such as gpt-4o.")] = None,
    as_of: AsOfOption = None,
    format: Annotated[
        Literal["openai", "ollama", "anthropic", "text"], typer.Option(help="How it is written.")
    ] = "openai",
    explain: Annotated[bool, flag("--explain", "Say what is in, what was left out, and why.")] = False,
) -> None:
    """Compose a context: exactly counted, never over the budget.

    Where the system prompt and the question alone are more, the exit code is 4 and stderr says how much is needed.
    """
    with open_store() as store:
        result = (
            store.user(user)
            .conversation(conversation)
            .context(
                query,
                budget=budget,
                system=system,
                reserve=reserve,
                strategy=[name for name in strategy if name != "none"] if strategy else None,
                model=model,
                as_of=as_of,
                format=format,
            )
        )
        hint_why_little(store, user, conversation)
    for hint in () if explain else result.receipt.hints:
        echo_hint(hint)
    if query is None and result.messages and result.messages[-1]["role"] == "assistant":
        echo_hint("the newest user message is the question, and it was answered: give a QUERY for another one")
    print_context(result)
    if explain and not given.as_json:
        print(escape(result.explain()))


def users() -> None:
    """List who has a memory here, by name; memstore stats --user NAME says how large it is."""
    with open_store() as store:
        names = list(store.users())
    empty = "nothing is stored yet: memstore import FILE --user NAME"
    print_rows(names, ("user",), [(name,) for name in names], empty)


def conversations(
    user: UserOption,
    channel: Annotated[str | None, name_option("Of this channel only.")] = None,
) -> None:
    """List a user's conversations, the latest first."""
    with open_store() as store:
        listed = store.user(user).conversations(channel=channel)
        if not listed:
            hint_why_little(store, user)
    print_models(listed, "last_seq", "created_at", "updated_at", "channel", "title", "name")
