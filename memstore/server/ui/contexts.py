"""Contexts: why something is in one or was left out, and what was sent. Recall, with the parts of its scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from starlette.responses import Response

from memstore.client.user import AsyncUserScope
from memstore.errors import MemstoreError
from memstore.models import Decision, Hit, Receipt, Tier
from memstore.server.http.errors import problem_from
from memstore.server.ui.request import PAGE_SIZE, UIRequest, url_to


async def list_contexts(ui: UIRequest) -> Response:
    (last,) = ui.position(tuple[UUID]) or (None,)
    receipts = await ui.user.receipt_page(before=last, limit=PAGE_SIZE + 1)
    names = await conversation_names(ui.user, receipts)
    rows = [(receipt, budget_bars(receipt)) for receipt in receipts]
    return ui.list_page("contexts.html", "receipts", rows, conversations=names)


async def show_context(ui: UIRequest) -> Response:
    user = ui.user
    receipt = await user.receipt(ui.id)
    names = await conversation_names(user, [receipt])
    # Of what is not listed the receipt has numbers, by reason.
    reasons = Counter({str(name): count for name, count in receipt.unlisted.items()})
    reasons.update(str(decision.reason) for decision in receipt.left_out if decision.reason is not None)

    def link(decision: Decision) -> str | None:
        if decision.id is None:
            return None
        is_fact, is_summary = decision.kind in ("fact", "facts"), decision.kind in ("summary", "summaries")
        page = "facts" if is_fact else "summaries" if is_summary else "messages"
        return url_to("users", ui.owner, page, decision.id)

    return ui.page(
        "context.html",
        receipt=receipt,
        conversation=names.get(receipt.conversation_id),
        bars=budget_bars(receipt),
        sections=_sections(receipt),
        reasons=reasons.most_common(),
        link=link,
    )


async def show_replay(ui: UIRequest) -> Response:
    replay = await ui.user.replay(ui.id)
    sent: list[tuple[str, Any]] = [("text", replay.text)] if replay.text is not None else []
    sent += [("system", replay.system)] if replay.system is not None else []
    for message in replay.messages:
        rest = {name: value for name, value in message.items() if name != "role"}
        sent.append((str(message.get("role", "")), rest["content"] if list(rest) == ["content"] else rest))
    return ui.page("replay.html", replay=replay, sent=sent)


async def show_recall(ui: UIRequest) -> Response:
    user, query, conversation = ui.user, ui.param("q"), ui.param("conversation")
    tiers = [tier for tier in Tier if tier in ui.request.query_params.getlist("tier")] or list(Tier)
    hits: Sequence[Hit] = []
    wrong, status = "", 200
    if query:
        try:
            hits = await user.recall(query, tiers=tiers, limit=20, conversation=conversation)
        except MemstoreError as error:
            problem = problem_from(error)
            wrong, status = problem.detail, problem.status_code
    return ui.page(
        "recall.html",
        status=status,
        asked={"q": query, "conversation": conversation, "tiers": tiers},
        wrong=wrong,
        hits=hits,
        names=await conversation_names(user, hits),
        every=list(Tier),
    )


async def conversation_names(user: AsyncUserScope, rows: Sequence[Receipt | Hit]) -> dict[Any, str]:
    ids = {row.conversation_id for row in rows if row.conversation_id is not None}
    return await user.conversation_names(list(ids))


def _sections(receipt: Receipt) -> list[dict[str, object]]:
    colours = section_colours([*receipt.sections, *(decision.section for decision in receipt.decisions())])
    return [
        {
            "name": name,
            "colour": colour,
            "tokens": receipt.sections.get(name, 0),
            "share": receipt.sections.get(name, 0) / max(1, receipt.budget),
            "included": [decision for decision in receipt.included if decision.section == name],
            "left_out": [decision for decision in receipt.left_out if decision.section == name],
        }
        for name, colour in colours.items()
    ]


def section_colours(sections: Iterable[str]) -> dict[str, str]:
    """Return the colour of each section: its own for those that are built in, one for all others."""
    built_in = ("system", "facts", "summaries", "hits", "recent", "question", "tools", "overhead")
    return {name: name if name in built_in else "own" for name in sections}


def budget_bars(receipt: Receipt) -> list[dict[str, object]]:
    """Return the budget of a context as bars: sections in their order, what is kept free, what is left."""
    whole = max(receipt.budget, receipt.tokens, 1)
    colours = section_colours(receipt.sections)
    unused = max(0, receipt.budget - receipt.tokens)
    kept = min(receipt.reserve, unused)
    parts = [(name, colours[name], tokens) for name, tokens in receipt.sections.items()]
    parts += [("kept free", "reserve", kept), ("unused", "free", unused - kept)]
    bars: list[dict[str, object]] = []
    x = 0.0
    for label, colour, tokens in parts:
        if tokens:
            width = 1000.0 * tokens / whole
            bars.append({"label": label, "colour": colour, "x": x, "width": max(1.0, width - 2), "value": tokens})
            x += width
    return bars
