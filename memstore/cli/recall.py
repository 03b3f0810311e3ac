"""`recall`, `context`, `receipts`, `receipt` and `replay`: what is found, and what a model is given."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memstore.cli.options import (
    AsOfOption,
    ConversationOption,
    DatabaseOption,
    JsonFlag,
    LimitOption,
    UserOption,
    ViewerOption,
    choice_option,
    id_prefix,
    name_option,
    parse_section,
    parse_tools,
    time_option,
)
from memstore.cli.output import (
    echo,
    echo_error,
    echo_hint,
    escape,
    out,
    print_json,
    print_messages,
    print_table,
    token_meter,
)
from memstore.cli.session import hint_if_unknown, hint_why_empty, open_store
from memstore.serialization import to_json

if TYPE_CHECKING:
    from memstore import Context, MemoryStore, Receipt
    from memstore.models import Json

TIERS = ("messages", "summaries", "facts")
ROLES = ("user", "assistant", "tool", "system", "developer")
STRATEGIES = (
    "none", "goal_batch", "hierarchical", "semantic", "sliding_window", "summary_buffer", "threshold", "tool_calls",
)  # fmt: skip
MEMORY_SECTIONS = ("summaries", "facts", "hits")  # of a context
HIT_COLUMNS = ("score", "tier", "said", "speaker", "text")
RECEIPT_COLUMNS = ("made", "id", "tokens", "budget", "cacheable", "question")
ReceiptArgument = Annotated[
    str,
    typer.Argument(
        parser=id_prefix("memstore receipts"), metavar="ID", help="The id of the receipt, or how it begins."
    ),
]


def recall(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    user: UserOption,
    limit: LimitOption = 10,
    tier: Annotated[list[str] | None, choice_option(TIERS, help="Of this tier only; may be repeated.")] = None,
    conversation: Annotated[str | None, name_option("In this conversation only.", "--conversation", "-c")] = None,
    role: Annotated[list[str] | None, choice_option(ROLES, help="Said by it; may be repeated.")] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="With this tag; may be repeated, and all must be there.")
    ] = None,
    since: Annotated[datetime | None, time_option("Said at or after, in ISO 8601.")] = None,
    until: Annotated[datetime | None, time_option("Said before.")] = None,
    as_of: AsOfOption = None,
    viewer: ViewerOption = None,
    order: Annotated[Literal["score", "time"], typer.Option(help="The best first, or as said.")] = "score",
    group_by: Annotated[
        Literal["session", "fact"] | None,
        typer.Option(help="Sessions with their hits, or facts with the messages they are from; N counts those."),
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
    with open_store(database) as store:
        find: Any = store.user(user).recall  # its result depends on group_by
        hits = to_json(
            find(
                query,
                limit=limit,
                tiers=tier or TIERS,
                conversation=conversation,
                roles=role or None,
                tags=tag or None,
                since=since,
                until=until,
                as_of=as_of,
                viewer=viewer,
                order=order,
                group_by=group_by,
            )
        )
        if not hits:
            hint_why_empty(store, user, conversation)
    if as_json:
        print_json(hits)
    elif group_by:
        groups = [([group["fact"]] if group["fact"] else []) + group["hits"] for group in hits]
        rows = [(str(number), *_hit_row(hit)) for number, group in enumerate(groups, 1) for hit in group]
        print_table(("group", *HIT_COLUMNS), rows)
    else:
        print_hits(hits)


def print_hits(hits: Sequence[Json]) -> None:
    """Print hits, as JSON has them, as a table; on a pipe with tabs."""
    print_table(HIT_COLUMNS, [_hit_row(hit) for hit in hits])


def _hit_row(hit: Json) -> tuple[str, ...]:
    day = hit["occurred_at"][: len("2024-05-01")]
    return f"{hit['score']:.3f}", hit["tier"], day, hit["speaker"] or "", hit["text"]


def context(
    user: UserOption,
    conversation: ConversationOption,
    query: Annotated[str | None, typer.Argument(help="The question; by default the newest user message.")] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget", "-b", min=1, metavar="N", help="The most tokens that it may have; else context_budget."
        ),
    ] = None,
    system: Annotated[str | None, typer.Option(metavar="TEXT", help="A system prompt.")] = None,
    reserve: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Tokens of the budget to keep free; else context_reserve.")
    ] = None,
    strategy: Annotated[
        list[str] | None,
        choice_option(STRATEGIES, help="Compress the conversation by it; may be repeated, in this order."),
    ] = None,
    section: Annotated[
        list[Any] | None,
        typer.Option(
            parser=parse_section,
            metavar="NAME=TEXT|JSON",
            help="A section of your own, or limits of one; may be repeated. It takes the place of the conversation's.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Count as this model does: gpt-4o, ollama:llama3.2, tokenizer:FOLDER…"),
    ] = None,
    tools: Annotated[
        Any, typer.Option(parser=parse_tools, metavar="FILE", help="Definitions of tools, a list of JSON: counted too.")
    ] = None,
    as_of: AsOfOption = None,
    viewer: ViewerOption = None,
    format: Annotated[
        Literal["openai", "ollama", "anthropic", "text"], typer.Option(help="How it is written.")
    ] = "openai",
    explain: Annotated[bool, typer.Option("--explain", help="Say what is in, what was left out, and why.")] = False,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Compose a context: exactly counted, never over the budget.

    Where the system prompt and the question alone are more, the exit code is 4 and stderr says how much is needed.

    JSON: {"messages": [as models take them], "tokens": integer, "receipt": {"id", "budget", "tokens", "counter",
    "sections", "included", "left_out", "cacheable", "content_hash", …}, "system"?: text, "text"?: text}.
    """
    with open_store(database) as store:
        result = (
            store.user(user)
            .conversation(conversation)
            .context(
                query,
                budget=budget,
                system=system,
                reserve=reserve,
                strategy=[name for name in strategy if name != "none"] if strategy else None,
                sections=section or (),
                model=model,
                tools=tools or (),
                viewer=viewer,
                as_of=as_of,
                format=format,
            )
        )
        _hint_at_receipt(store, user, conversation, result, explained=explain)
    if as_json:
        print_json(result.as_dict())
        return
    print_messages(result)
    echo()
    out.print(token_meter(result.receipt))
    if explain:
        print(escape(result.explain()))


def _hint_at_receipt(store: MemoryStore, user: str, conversation: str, context: Context, *, explained: bool) -> None:
    """Print the receipt's hints, why nothing is remembered, and that the question was answered before."""
    for hint in () if explained else context.receipt.hints:
        echo_hint(hint)
    remembered = any(context.receipt.sections.get(name) for name in MEMORY_SECTIONS)
    explain = hint_if_unknown if remembered or context.receipt.hints else hint_why_empty
    explain(store, user, conversation)
    if "query" not in context.receipt.texts and context.messages and context.messages[-1]["role"] == "assistant":
        echo_hint("the newest user message is the question, and it was answered: give a QUERY for another one")


def receipts(
    user: UserOption,
    conversation: ConversationOption,
    limit: LimitOption = 20,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List the receipts of a conversation's contexts, the latest first.

    On a pipe, a line a receipt, its cells parted by tabs: time, id, tokens, budget, tokens that do not depend on the
    question, question.

    JSON: a list of receipts, each as memstore context has it.
    """
    with open_store(database) as store:
        rows = store.user(user).conversation(conversation).receipts(limit=limit)
        if not rows and not hint_if_unknown(store, user, conversation):
            echo_hint("no context was asked for, or that is longer ago than receipts are kept")
    if as_json:
        print_json(rows)
    else:
        print_table(RECEIPT_COLUMNS, [_receipt_row(each) for each in rows])


def _receipt_row(receipt: Receipt) -> tuple[object, ...]:
    time = "" if receipt.recorded_at is None else f"{receipt.recorded_at:%Y-%m-%d %H:%M}"
    question = receipt.texts.get("query") or (f"message {receipt.asked[0]}" if receipt.asked else "")
    return time, receipt.id, receipt.tokens, receipt.budget, receipt.cacheable, question


def receipt(
    receipt: ReceiptArgument, user: UserOption, database: DatabaseOption = None, as_json: JsonFlag = False
) -> None:
    """Say what a context was made of, and what was left out and why.

    JSON: the receipt, as memstore context has it.
    """
    with open_store(database) as store:
        scope = store.user(user)
        row = scope.receipt(scope.resolve_id(receipt, kind="receipt"))
    if as_json:
        print_json(row)
    else:
        print(escape(row.explain()))


def replay(
    receipt: ReceiptArgument, user: UserOption, database: DatabaseOption = None, as_json: JsonFlag = False
) -> None:
    """Make a context again from its receipt: the same bytes, or what is left and what is missing.

    Where something is missing, the exit code is 1, and stderr says what.

    JSON: {"receipt": id, "exact": whether the bytes are those that were sent, "missing": [{"section", "kind", "id",
    "why"}], "messages": [as models take them], "system"?: text, "text"?: text}.
    """
    with open_store(database) as store:
        scope = store.user(user)
        result = scope.replay(scope.resolve_id(receipt, kind="receipt"))
    if as_json:
        print_json(result)
    else:
        print_messages(result)
        out.print(f"the bytes that were sent, by their SHA-256: {'yes' if result.exact else 'no'}")
    for part in result.missing:
        echo_error(f"{' '.join(filter(None, [part.section, part.kind, str(part.id or '')]))}: {part.why}")
    if not result.exact:
        raise typer.Exit(1)
