"""What contexts were made of, and the same ones again: `receipts`, `receipt`, `replay`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from memstore.cli.options import DatabaseOption, JsonFlag, UserOption, beginning, name
from memstore.cli.show import chat, complain, hint, out, print_json, safe, table
from memstore.cli.stores import hint_if_new, opened

if TYPE_CHECKING:
    from memstore import Receipt

COLUMNS = ("made", "id", "tokens", "budget", "as before", "question")
ReceiptArgument = Annotated[
    str,
    typer.Argument(
        parser=beginning("memstore receipts"), metavar="ID", help="The id of the receipt, or how it begins."
    ),
]


def receipts(
    user: UserOption,
    conversation: Annotated[
        str, typer.Option("--conversation", "-c", parser=name, metavar="NAME", help="The conversation.")
    ],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, metavar="N", help="At most so many.")] = 20,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List the receipts of a conversation's contexts, the latest first.

    On a pipe, a line a receipt, its cells parted by tabs: time, id, tokens, budget, tokens that are the same as in the
    context before, question.

    JSON: a list of receipts, each as memstore context has it.
    """
    with opened(database) as store:
        found = store.user(user).conversation(conversation).receipts(limit=limit)
        if not found and not hint_if_new(store, user, conversation):
            hint("no context was asked for, or that is longer ago than receipts are kept")
    if as_json:
        print_json(found)
    else:
        table(COLUMNS, [_row(one) for one in found])


def _row(one: Receipt) -> tuple[object, ...]:
    made = "" if one.recorded_at is None else f"{one.recorded_at:%Y-%m-%d %H:%M}"
    asked = one.texts.get("query") or (f"message {one.asked[0]}" if one.asked else "")
    return made, one.id, one.tokens, one.budget, one.stable_prefix, asked


def receipt(
    receipt: ReceiptArgument, user: UserOption, database: DatabaseOption = None, as_json: JsonFlag = False
) -> None:
    """Say what a context was made of, and what was left out and why.

    JSON: the receipt, as memstore context has it.
    """
    with opened(database) as store:
        whose = store.user(user)
        found = whose.receipt(whose.find_id(receipt, of="receipt"))
    if as_json:
        print_json(found)
    else:
        print(safe(found.explain()))


def replay(
    receipt: ReceiptArgument, user: UserOption, database: DatabaseOption = None, as_json: JsonFlag = False
) -> None:
    """Make a context again from its receipt: the same bytes, or what is left and what is missing.

    Where something is missing, the exit code is 1, and stderr says what.

    JSON: {"receipt": id, "exact": whether the bytes are those that were sent, "missing": [{"section", "kind", "id",
    "why"}], "messages": [as models take them], "system"?: text, "text"?: text}.
    """
    with opened(database) as store:
        whose = store.user(user)
        found = whose.replay(whose.find_id(receipt, of="receipt"))
    if as_json:
        print_json(found)
    else:
        chat(found)
        out.print(f"the bytes that were sent, by their SHA-256: {'yes' if found.exact else 'no'}")
    for one in found.missing:
        complain(f"{' '.join(filter(None, [one.section, one.kind, str(one.id or '')]))}: {one.why}")
    if not found.exact:
        raise typer.Exit(1)
