"""The three questions: `recall`, `context` and `facts`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from memstore.cli.show import DatabaseOption, JsonFlag, chat, meter, opened, out, print_json, table

UserOption = Annotated[str, typer.Option("--user", "-u", help="Whose memory.")]


def recall(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    user: UserOption,
    limit: Annotated[int, typer.Option(min=1, help="At most so many hits.")] = 10,
    tier: Annotated[list[str] | None, typer.Option(help="messages, summaries or facts; all by default.")] = None,
    conversation: Annotated[str | None, typer.Option(help="In this conversation only.")] = None,
    role: Annotated[list[str] | None, typer.Option(help="Said by this role only.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="With this tag; several must all be there.")] = None,
    since: Annotated[datetime | None, typer.Option(help="Said at or after.")] = None,
    until: Annotated[datetime | None, typer.Option(help="Said before.")] = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Find what was said about something."""
    with opened(database) as store:
        hits = store.user(user).recall(
            query,
            limit=limit,
            **({"tiers": tier} if tier else {}),
            conversation=conversation,
            roles=role or None,
            tags=tag or None,
            since=_local(since),
            until=_local(until),
        )
    if as_json:
        print_json(hits)
        return
    rows = [
        (f"{hit.score:.3f}", hit.tier, f"{hit.occurred_at:%Y-%m-%d}", hit.speaker or "", " ".join(hit.text.split()))
        for hit in hits
    ]
    table(f"{len(hits)} hits", ("score", "tier", "said", "speaker", "text"), rows)


def context(
    user: UserOption,
    conversation: Annotated[str, typer.Option("--conversation", "-c", help="The conversation that goes on.")],
    budget: Annotated[int, typer.Option("--budget", "-b", min=1, help="The most tokens that it may have.")],
    query: Annotated[str | None, typer.Argument(help="The question; by default the newest user message.")] = None,
    system: Annotated[str | None, typer.Option(help="A system prompt.")] = None,
    reserve: Annotated[int, typer.Option(min=0, help="Tokens of the budget to keep free.")] = 0,
    explain: Annotated[bool, typer.Option("--explain", help="Say what is in, what was left out, and why.")] = False,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Compose a context: exactly counted, never over the budget."""
    with opened(database) as store:
        scope = store.user(user).conversation(conversation)
        found = scope.context(query, budget=budget, system=system, reserve=reserve)
    if as_json:
        print_json({"messages": found.messages, "tokens": found.tokens, "receipt": found.receipt})
        return
    chat(found)
    out.print()
    out.print(meter(found.receipt))
    if explain:
        out.print(found.explain(), markup=False)


def facts(
    user: UserOption,
    type: Annotated[str | None, typer.Option(help="Of this type only.")] = None,
    state: Annotated[str, typer.Option(help="active, superseded, retracted or all.")] = "active",
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List what is known of a user, the latest first."""
    with opened(database) as store:
        found = store.user(user).facts(type=type, state=None if state == "all" else state)
    if as_json:
        print_json(found)
        return
    rows = [(fact.type, f"{fact.occurred_at:%Y-%m-%d}", f"{fact.confidence:.2f}", fact.text) for fact in found]
    table(f"{len(found)} facts", ("type", "said", "confidence", "fact"), rows)


def _local(moment: datetime | None) -> datetime | None:
    """Take a time without a zone as the terminal's own."""
    return moment.astimezone() if moment is not None and moment.tzinfo is None else moment
