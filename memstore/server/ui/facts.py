"""Facts: their state, their sources and history; and confirming, retracting and undoing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from starlette.responses import Response

from memstore.client.user import AsyncUserScope
from memstore.models import FACT_STATES, FACT_TYPES, Fact, FactChange, FactSpan, Message, Summary
from memstore.server.ui.request import UIRequest, redirect, url_to

PAGE_SIZE, SOURCES, CHANGES = 40, 12, 40
EXCERPT_MARGIN = 240  # characters of a message on either side of what it says
ANY = "all"


class SourceExcerpt(NamedTuple):
    """Where a fact was said: the message, the words themselves with those before and after; summaries over it."""

    message: Message
    conversation: str
    before: str
    words: str
    after: str
    summaries: Sequence[Summary]


async def list_facts(ui: UIRequest) -> Response:
    """Show a page of facts, the latest first."""
    user = ui.user
    state = ui.param("state") if ui.param("state") in (*FACT_STATES, ANY) else "active"
    type = ui.param("type") if ui.param("type") in FACT_TYPES else None
    subject = ui.param("subject")
    rows = await user.facts(
        state=None if state == ANY else state,
        type=type,
        subject=subject,
        before=ui.position(tuple[datetime, UUID]),
        limit=PAGE_SIZE + 1,
    )
    return ui.page(
        "facts.html",
        user=user.name,
        facts=rows[:PAGE_SIZE],
        more=len(rows) > PAGE_SIZE,
        asked={"state": state, "type": type, "subject": subject},
        states=(*FACT_STATES, ANY),
        types=FACT_TYPES,
    )


async def show_fact(ui: UIRequest) -> Response:
    """Show one fact: the messages that say it and the summaries over them, and its history."""
    user = ui.user
    fact = await user.fact(ui.id)
    history = await user.fact_history(fact.id)
    return ui.page(
        "fact.html",
        user=user.name,
        fact=fact,
        said=await _sources(user, fact),
        sources=len(fact.sources),
        history=history[-CHANGES:],
        left_out=max(0, len(history) - CHANGES),
        undone={change.undoes for change in history if change.undoes},
        others=await _others(user, history),
    )


async def confirm(ui: UIRequest) -> Response:
    """Confirm a quarantined fact."""
    user = ui.user
    fact = await user.confirm_fact(ui.id)
    return redirect(url_to("users", user.name, "facts", fact.id))


async def retract(ui: UIRequest) -> Response:
    """Retract a fact."""
    user = ui.user
    fact = await user.retract_fact(ui.id)
    return redirect(url_to("users", user.name, "facts", fact.id))


async def undo(ui: UIRequest) -> Response:
    """Undo a change of a fact exactly."""
    user = ui.user
    change = await user.undo(ui.id)
    return redirect(url_to("users", user.name, "facts", change.fact_id))


async def _sources(user: AsyncUserScope, fact: Fact) -> list[SourceExcerpt]:
    spans = {span.message_id: span for span in fact.spans[:SOURCES]}
    messages = await user.messages(list(spans)) if spans else []
    names = await user.conversation_names(list({message.conversation_id for message in messages}))
    sources = []
    for message in messages:
        place = message.conversation_id
        summaries = await user.summaries_over(place, message.seq, message.seq, limit=6)
        words = excerpt(message.text or "", spans[message.id])
        sources.append(SourceExcerpt(message, names.get(place, ""), *words, summaries))
    return sources


def excerpt(text: str, span: FactSpan) -> tuple[str, str, str]:
    """Return the words before, the words that say it, and those after; where that is not known, all is before."""
    if span.start is None or span.stop is None:
        return text[: 2 * EXCERPT_MARGIN] + ("…" if len(text) > 2 * EXCERPT_MARGIN else ""), "", ""
    first, last = max(0, span.start - EXCERPT_MARGIN), span.stop + EXCERPT_MARGIN
    before = ("…" if first else "") + text[first : span.start]
    return before, text[span.start : span.stop], text[span.stop : last] + ("…" if last < len(text) else "")


async def _others(user: AsyncUserScope, history: Sequence[FactChange]) -> dict[UUID, str]:
    ids = {id for change in history[-CHANGES:] for id in (change.fact_id, change.other_id) if id is not None}
    return {fact.id: fact.text for fact in await user.facts(state=None, ids=list(ids))}
