"""The three questions: `recall`, `context` and `facts`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstore.cli.options import (
    KINDS,
    AsOfOption,
    BudgetOption,
    ConversationOption,
    DatabaseOption,
    FormatOption,
    JsonFlag,
    ModelOption,
    ReserveOption,
    SectionOption,
    StrategyOption,
    ToolsOption,
    UserOption,
    ViewerOption,
    moment,
    name,
    one_of,
)
from memstore.cli.show import chat, hint, meter, out, print_json, safe, say, short_ids, table
from memstore.cli.stores import Asked, hint_why, opened
from memstore.plain import plain

if TYPE_CHECKING:
    from memstore import Context, Fact, MemoryStore
    from memstore.models import Json

TIERS = ("messages", "summaries", "facts")
ROLES = ("user", "assistant", "tool", "system", "developer")
STATES = ("active", "ended", "quarantined", "superseded", "retracted", "erased", "all")
ORDERS = ("score", "time")
GROUPINGS = ("session", "fact")
REMEMBERED = ("summaries", "facts", "hits")  # sections of a context
BESIDE = ("score", "tier", "said", "speaker")


def recall(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    user: UserOption,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, metavar="N", help="At most so many hits.")] = 10,
    tier: Annotated[
        list[str] | None,
        typer.Option(parser=one_of(*TIERS), metavar=f"[{'|'.join(TIERS)}]", help="Of this tier only; may be repeated."),
    ] = None,
    conversation: Annotated[
        str | None,
        typer.Option("--conversation", "-c", parser=name, metavar="NAME", help="In this conversation only."),
    ] = None,
    role: Annotated[
        list[str] | None,
        typer.Option(parser=one_of(*ROLES), metavar=f"[{'|'.join(ROLES)}]", help="Said by it; may be repeated."),
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="With this tag; may be repeated, and all must be there.")
    ] = None,
    since: Annotated[
        datetime | None, typer.Option(parser=moment, metavar="TIME", help="Said at or after, in ISO 8601.")
    ] = None,
    until: Annotated[datetime | None, typer.Option(parser=moment, metavar="TIME", help="Said before.")] = None,
    as_of: AsOfOption = None,
    viewer: ViewerOption = None,
    order: Annotated[
        str, typer.Option(parser=one_of(*ORDERS), metavar=f"[{'|'.join(ORDERS)}]", help="The best first, or as said.")
    ] = "score",
    group_by: Annotated[
        str | None,
        typer.Option(
            parser=one_of(*GROUPINGS),
            metavar=f"[{'|'.join(GROUPINGS)}]",
            help="Sessions with their hits, or facts with the messages they are from; N counts those.",
        ),
    ] = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Find what was said about something, the best first.

    On a pipe, a line a hit, its cells parted by tabs: score, tier, day, speaker, text; before them, with --group-by,
    the number of the group.

    JSON: [{"tier", "id", "text", "score", "parts", "sources", "occurred_at", "conversation_id", "seq", "role",
    "speaker"}]; with --group-by: [{"score", "since", "until", "conversation_id", "hits": [as above], "fact": as above,
    or null}].
    """
    asked: dict[str, Any] = {"query": query, "limit": limit, "conversation": conversation, "viewer": viewer}
    asked |= {"roles": role or None, "tags": tag or None, "since": since, "until": until, "as_of": as_of}
    asked |= {"tiers": tier} if tier else {}
    asked |= {"order": order, "group_by": group_by}
    with opened(database) as store:
        hits = plain(store.user(user).recall(**asked))
        if not hits:
            hint_why(store, Asked(user, conversation, viewer=viewer, as_of=as_of))
    if as_json:
        print_json(hits)
    elif group_by:
        _show_groups(hits)
    else:
        show_hits(hits)


def show_hits(hits: Sequence[Json]) -> None:
    """Print hits, as JSON has them, as a table; on a pipe with tabs."""
    table((*BESIDE, "text"), [_row(hit) for hit in hits])


def _show_groups(groups: Sequence[Json]) -> None:
    """Print the hits of groups with the groups' numbers, a fact before the messages that it is from."""
    rows = [
        (str(number), *_row(hit))
        for number, group in enumerate(groups, 1)
        for hit in ([group["fact"]] if group["fact"] else []) + group["hits"]
    ]
    table(("group", *BESIDE, "text"), rows)


def _row(hit: Json) -> tuple[str, ...]:
    return (
        f"{hit['score']:.3f}",
        hit["tier"],
        hit["occurred_at"][: len("2024-05-01")],
        hit["speaker"] or "",
        hit["text"],
    )


def context(
    user: UserOption,
    conversation: ConversationOption,
    query: Annotated[str | None, typer.Argument(help="The question; by default the newest user message.")] = None,
    budget: BudgetOption = None,
    system: Annotated[str | None, typer.Option(metavar="TEXT", help="A system prompt.")] = None,
    reserve: ReserveOption = None,
    strategy: StrategyOption = None,
    section: SectionOption = None,
    model: ModelOption = None,
    tools: ToolsOption = None,
    as_of: AsOfOption = None,
    viewer: ViewerOption = None,
    format: FormatOption = "openai",
    explain: Annotated[bool, typer.Option("--explain", help="Say what is in, what was left out, and why.")] = False,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Compose a context: exactly counted, never over the budget.

    Where the system prompt and the question alone are more, the exit code is 4 and stderr says how much is needed.

    JSON: {"messages": [as models take them], "tokens": integer, "receipt": {"id", "budget", "tokens", "counter",
    "sections", "included", "left_out", "stable_prefix", "content_hash", …}, "system"?: text, "text"?: text}.
    """
    with opened(database) as store:
        chosen = None if not strategy else [one for one in strategy if one != "none"]
        asked: dict[str, Any] = {
            "budget": budget,
            "system": system,
            "reserve": reserve,
            "strategy": chosen,
            "sections": section or (),
        }
        asked |= {"model": model, "tools": tools or (), "viewer": viewer, "as_of": as_of, "format": format}
        found = store.user(user).conversation(conversation).context(query, **asked)
        _hint_about(store, Asked(user, conversation, as_of=as_of), found, explained=explain)
    if as_json:
        print_json(found.as_dict())
        return
    chat(found)
    say()
    out.print(meter(found.receipt))
    if explain:
        print(safe(found.explain()))


def _hint_about(store: MemoryStore, asked: Asked, found: Context, *, explained: bool) -> None:
    """Say on stderr what the receipt hints at, why nothing is remembered, and that the question was answered before."""
    for one in () if explained else found.receipt.hints:
        hint(one)
    remembered = any(found.receipt.sections.get(name) for name in REMEMBERED)
    hint_why(store, asked, empty=not remembered and not found.receipt.hints)
    if "query" not in found.receipt.texts and found.messages and found.messages[-1]["role"] == "assistant":
        hint("the newest user message is the question, and it was answered: give a QUERY for another one")


def facts(
    user: UserOption,
    type: Annotated[
        str | None, typer.Option(metavar="TYPE", help="Of this type only, such as preference or plan.")
    ] = None,
    state: Annotated[
        str, typer.Option(parser=one_of(*STATES), metavar=f"[{'|'.join(STATES)}]", help="In this state only.")
    ] = "active",
    subject: Annotated[str | None, typer.Option(parser=name, metavar="NAME", help="About this one only.")] = None,
    kind: Annotated[
        str | None, typer.Option(parser=one_of(*KINDS), metavar=f"[{'|'.join(KINDS)}]", help="Of this kind only.")
    ] = None,
    as_of: Annotated[
        datetime | None, typer.Option("--as-of", parser=moment, metavar="TIME", help="As they were known then.")
    ] = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List what is known of a user, the latest first.

    On a pipe, a line a fact, its cells parted by tabs: id, type, day, confidence, text. Of the id it is how it begins,
    as far as that tells these facts apart: other commands take it so. With --state all, the state is before the text.

    JSON: [{"user_id", "id", "type", "kind", "subject", "attribute", "value", "text", "language", "confidence", "state",
    "valid_from", "valid_to", "recipe", "occurred_at", "recorded_at", "sources", "spans": [{"message_id", "start",
    "stop", "trust"}]}].
    """
    with opened(database) as store:
        found = store.user(user).facts(type=type, state=state, subject=subject, kind=kind, as_of=as_of)
        if not found:
            hint_why(store, Asked(user, subject=subject, as_of=as_of))
    if as_json:
        print_json(found)
    else:
        show_facts(found, states=state == "all")


def show_facts(found: Sequence[Fact], *, states: bool = False) -> None:
    """Print facts as a table, on a pipe with tabs; their states too where that is asked for."""
    from memstore.models.facts import state_of

    ids = short_ids(fact.id for fact in found)
    rows = [
        (ids[fact.id], fact.type, f"{fact.occurred_at:%Y-%m-%d}", f"{fact.confidence:.2f}")
        + ((state_of(fact),) if states else ())
        + (fact.text,)
        for fact in found
    ]
    table(("id", "type", "said", "confidence", *(("state",) if states else ()), "fact"), rows)
