"""Facts: what holds and what does not any more, where it was said, and what became of it; a step taken back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from starlette.responses import Response

from memstore.memory.user import AsyncUserScope
from memstore.models import FACT_STATES, FACT_TYPES, Fact, FactChange, Message, Span, Summary
from memstore.server.inspector import links
from memstore.server.inspector.visit import Visit, seen

A_PAGE, SOURCES, CHANGES = 40, 12, 40
AROUND = 240  # characters of a message on either side of what it says
ANY = "all"


@dataclass(frozen=True, slots=True)
class Said:
    """Where a fact is said: the message, the words before, the words themselves, those after; summaries over it."""

    message: Message
    conversation: str
    before: str
    words: str
    after: str
    summaries: Sequence[Summary]


async def listed(visit: Visit) -> Response:
    """Give a page of facts, the latest first."""
    user = visit.user
    state = visit.asked("state") if visit.asked("state") in (*FACT_STATES, ANY) else "active"
    type = visit.asked("type") if visit.asked("type") in FACT_TYPES else None
    subject = visit.asked("subject")
    found = await user.fact_page(
        state=None if state == ANY else state,
        type=type,
        subject=subject,
        before=visit.place(tuple[datetime, UUID]),
        limit=A_PAGE + 1,
    )
    return visit.page(
        "facts.html",
        user=user.name,
        facts=found[:A_PAGE],
        more=len(found) > A_PAGE,
        asked={"state": state, "type": type, "subject": subject},
        states=(*FACT_STATES, ANY),
        types=FACT_TYPES,
    )


async def page(visit: Visit) -> Response:
    """Give one fact: the messages that say it and the summaries over them, and its history."""
    user = visit.user
    fact = await user.fact(visit.id())
    history = await user.fact_history(fact.id)
    return visit.page(
        "fact.html",
        user=user.name,
        fact=fact,
        said=await _said(user, fact),
        sources=len(fact.sources),
        history=history[-CHANGES:],
        left_out=max(0, len(history) - CHANGES),
        undone={one.undoes for one in history if one.undoes},
        others=await _others(user, history),
    )


async def confirm(visit: Visit) -> Response:
    """Let a fact hold that waited in quarantine."""
    await visit.form()
    user = visit.user
    fact = await user.confirm_fact(visit.id())
    return seen(links.to("users", user.name, "facts", fact.id))


async def retract(visit: Visit) -> Response:
    """Take a fact back."""
    await visit.form()
    user = visit.user
    fact = await user.retract_fact(visit.id())
    return seen(links.to("users", user.name, "facts", fact.id))


async def undo(visit: Visit) -> Response:
    """Undo a change of a fact exactly."""
    await visit.form()
    user = visit.user
    done = await user.undo(visit.id())
    return seen(links.to("users", user.name, "facts", done.fact_id))


async def _said(user: AsyncUserScope, fact: Fact) -> list[Said]:
    spans = {one.message_id: one for one in fact.spans[:SOURCES]}
    messages = await user.messages(list(spans)) if spans else []
    names = await user.conversation_names(list({one.conversation_id for one in messages}))
    found = []
    for one in messages:
        over = await user.summaries_over(one.conversation_id, one.seq, one.seq, limit=6)
        found.append(Said(one, names.get(one.conversation_id, ""), *around(one.text or "", spans[one.id]), over))
    return found


def around(text: str, span: Span) -> tuple[str, str, str]:
    """Give the words before, the words that say it, and those after; where that is not known, all is before."""
    if span.start is None or span.stop is None:
        return text[: 2 * AROUND] + ("…" if len(text) > 2 * AROUND else ""), "", ""
    first, last = max(0, span.start - AROUND), span.stop + AROUND
    before = ("…" if first else "") + text[first : span.start]
    return before, text[span.start : span.stop], text[span.stop : last] + ("…" if last < len(text) else "")


async def _others(user: AsyncUserScope, history: Sequence[FactChange]) -> dict[UUID, str]:
    """Give what the other facts say that a history names."""
    ids = {one for change in history[-CHANGES:] for one in (change.fact_id, change.other_id) if one is not None}
    return {one.id: one.text for one in await user.facts_of(list(ids))}
