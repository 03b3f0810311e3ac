"""Users with their overview; conversations, with the summaries over messages and the facts that they say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from starlette.responses import Response

from memstore.errors import NotFound
from memstore.models import Fact, Message, Summary
from memstore.server.ui import contexts
from memstore.server.ui.request import UIRequest, redirect, url_to
from memstore.store.messages import LAST

USERS, LATEST, LATEST_CONTEXTS = 25, 6, 4
PAGE_SIZE, CONVERSATIONS = 24, 40
MAX_SUMMARIES, MAX_FACTS = 24, 60


async def home(ui: UIRequest) -> Response:
    """Show the users, sorted; a user's token leads to that user."""
    if ui.principal is not None and ui.principal.user_id is not None:
        return redirect(url_to("users", ui.principal.user_name))
    position = ui.position(tuple[str])
    names: list[str] = []
    async for name in ui.store.users(after=position[0] if position else ""):
        names.append(name)
        if len(names) > USERS:
            break
    shown = [(name, await ui.store.user(name).conversations(limit=LATEST)) for name in names[:USERS]]
    return ui.page("users.html", users=shown, more=len(names) > USERS, first=position is None)


async def overview(ui: UIRequest) -> Response:
    """Show a user: how much there is, and what came last."""
    user = ui.user
    receipts = await user.receipt_page(limit=LATEST_CONTEXTS)
    names = await contexts.conversation_names(user, receipts)
    return ui.page(
        "user.html",
        user=user.name,
        counts=await ui.store.stats(user=user.name),
        conversations=await user.conversations(limit=LATEST),
        facts=await user.facts(limit=LATEST),
        receipts=[(receipt, await contexts.question(user, receipt, names)) for receipt in receipts],
    )


class SummarizedMessages(NamedTuple):
    """Messages under one summary, as far as they are on the page; None: they are under none yet."""

    summary: Summary | None
    messages: list[Message]


async def list_conversations(ui: UIRequest) -> Response:
    """Show a user's conversations, the latest first."""
    user = ui.user
    rows = await user.conversations(before=ui.position(tuple[datetime, UUID]), limit=CONVERSATIONS + 1)
    more = len(rows) > CONVERSATIONS
    return ui.page("conversations.html", user=user.name, conversations=rows[:CONVERSATIONS], more=more)


async def show_conversation(ui: UIRequest) -> Response:
    """Show a page of a conversation, from the message number `from`."""
    conversation = ui.conversation
    info = await conversation.info()
    if info is None:
        raise NotFound("Nothing was said in this conversation, or it was erased.")
    first = ui.number("from", 1, most=LAST)
    rows = await conversation.messages(from_seq=first, limit=PAGE_SIZE + 1)
    messages = rows[:PAGE_SIZE]
    last = messages[-1].seq if messages else first
    user = conversation.user
    summaries = await user.summaries_over(conversation.id, first, last, limit=MAX_SUMMARIES) if messages else []
    facts = await user.facts_said_by([message.id for message in messages], limit=MAX_FACTS) if messages else []
    return ui.page(
        "conversation.html",
        user=user.name,
        info=info,
        segments=segments(messages, summaries),
        above=[summary for summary in summaries if summary.level != 1],
        facts=_by_message(facts),
        following=last + 1 if len(rows) > PAGE_SIZE else None,
        before=max(1, first - PAGE_SIZE) if first > 1 else None,
    )


def segments(messages: Sequence[Message], summaries: Sequence[Summary]) -> list[SummarizedMessages]:
    """Return messages in runs, each under the same summary of the lowest level."""
    lowest = [summary for summary in summaries if summary.level == 1]
    runs: list[SummarizedMessages] = []
    for message in messages:
        above = next((summary for summary in lowest if summary.from_seq <= message.seq <= summary.to_seq), None)
        if not runs or runs[-1].summary is not above:
            runs.append(SummarizedMessages(above, []))
        runs[-1].messages.append(message)
    return runs


def _by_message(facts: Sequence[Fact]) -> dict[UUID, list[Fact]]:
    by_message: dict[UUID, list[Fact]] = {}
    for fact in facts:
        for source in fact.sources:
            by_message.setdefault(source, []).append(fact)
    return by_message


async def show_message(ui: UIRequest) -> Response:
    """Show one message, where it stands, and what was derived from it."""
    user = ui.user
    messages = await user.messages([ui.id])
    if not messages:
        raise NotFound("There is no such message, or it was erased.")
    (message,) = messages
    names = await user.conversation_names([message.conversation_id])
    return ui.page(
        "message.html",
        user=user.name,
        message=message,
        conversation=names.get(message.conversation_id, ""),
        summaries=await user.summaries_over(message.conversation_id, message.seq, message.seq, limit=MAX_SUMMARIES),
        facts=await user.facts_said_by([message.id], limit=MAX_FACTS),
    )


async def show_summary(ui: UIRequest) -> Response:
    """Lead to a summary, where it stands beside its messages."""
    user = ui.user
    summary = await user.summary(ui.id)
    names = await user.conversation_names([summary.conversation_id])
    if summary.conversation_id not in names:
        raise NotFound("The conversation of this summary was erased.")
    name, query = names[summary.conversation_id], {"from": summary.from_seq}
    return redirect(url_to("users", user.name, "conversations", name, at=f"s-{summary.id}", **query))
