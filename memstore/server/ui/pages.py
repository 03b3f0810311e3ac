"""Users, conversations with the summaries over messages, facts with their history, and erasing with its certificate."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any, NamedTuple
from uuid import UUID

from starlette.responses import Response

from memstore import models
from memstore.client.space import AsyncSpaceScope
from memstore.client.user import AsyncUserScope
from memstore.errors import NotFound
from memstore.models.facts import STORED_ACTIVE
from memstore.server.http.errors import Problem
from memstore.server.timeout import disable_timeout
from memstore.server.ui.request import PAGE_SIZE, UIRequest, redirect, url_to


async def home(ui: UIRequest) -> Response:
    """Show the users, sorted; a user's token leads to that user."""
    if ui.principal is not None and ui.principal.user_id is not None:
        return redirect(url_to("users", ui.principal.user_name))
    position = ui.position(tuple[str])
    names: list[str] = []
    async for name in ui.store.users(after=position[0] if position else ""):
        names.append(name)
        if len(names) > PAGE_SIZE:
            break
    users = list(zip(names, await ui.store.user_sizes(names), strict=True))
    return ui.list_page("users.html", "users", users, first=position is None)


async def overview(ui: UIRequest) -> Response:
    user = ui.user
    receipts = await user.receipt_page(limit=4)
    profile = await user.profile(400)
    counts = await ui.store.stats(user=user.name)
    return ui.page(
        "user.html",
        counts=counts,
        is_empty=not (counts["messages"] or receipts or await user.facts(state=None, limit=1)),
        conversations=await user.conversations(limit=6),
        facts=await user.facts(limit=6),
        profile=profile,
        pinned={decision.id for decision in profile.receipt.included if decision.standing},
        headings=models.PROFILE_HEADINGS,
        receipts=receipts,
    )


async def list_members(ui: UIRequest) -> Response:
    space = ui.user
    if not isinstance(space, AsyncSpaceScope):
        raise NotFound("A user has no members; a space has.")
    return ui.page("grants.html", grants=await space.members())


async def list_spaces(ui: UIRequest) -> Response:
    return ui.page("grants.html", grants=await ui.user.spaces())


async def list_conversations(ui: UIRequest) -> Response:
    rows = await ui.user.conversations(before=ui.position(tuple[datetime, UUID]), limit=PAGE_SIZE + 1)
    return ui.list_page("conversations.html", "conversations", rows)


async def show_conversation(ui: UIRequest) -> Response:
    user = ui.user
    conversation = user.conversation(ui.request.path_params["conversation"])
    info = await conversation.info()
    if info is None:
        raise NotFound("Nothing was said in this conversation, or it was erased.")
    first = ui.number("from")
    rows = await conversation.messages(from_seq=first, limit=PAGE_SIZE + 1)
    messages = rows[:PAGE_SIZE]
    last = messages[-1].seq if messages else first
    summaries = await user.summaries_over(conversation.id, first, last) if messages else []
    facts: dict[UUID, list[models.Fact]] = {}
    for fact in await user.facts_said_by([message.id for message in messages]):
        for source in fact.sources:
            facts.setdefault(source, []).append(fact)
    return ui.page(
        "conversation.html",
        info=info,
        segments=segments(messages, summaries),
        above=[summary for summary in summaries if summary.level != 1],
        facts=facts,
        following=last + 1 if len(rows) > PAGE_SIZE else None,
        before=max(1, first - PAGE_SIZE) if first > 1 else None,
    )


class BarSegment(NamedTuple):
    """Messages under one summary, as far as they are on the page; None: they are under none yet."""

    summary: models.Summary | None
    messages: list[models.Message]


def segments(messages: Sequence[models.Message], summaries: Sequence[models.Summary]) -> list[BarSegment]:
    lowest = [summary for summary in summaries if summary.level == 1]
    runs: list[BarSegment] = []
    for message in messages:
        above = next((summary for summary in lowest if summary.from_seq <= message.seq <= summary.to_seq), None)
        if not runs or runs[-1].summary is not above:
            runs.append(BarSegment(above, []))
        runs[-1].messages.append(message)
    return runs


async def show_message(ui: UIRequest) -> Response:
    user = ui.user
    messages = await user.messages([ui.id])
    if not messages:
        raise NotFound("There is no such message, or it was erased.")
    (message,) = messages
    names = await user.conversation_names([message.conversation_id])
    return ui.page(
        "message.html",
        message=message,
        conversation=names.get(message.conversation_id, ""),
        summaries=await user.summaries_over(message.conversation_id, message.seq, message.seq),
        facts=await user.facts_said_by([message.id]),
    )


async def show_summary(ui: UIRequest) -> Response:
    user = ui.user
    summary = await user.summary(ui.id)
    names = await user.conversation_names([summary.conversation_id])
    if summary.conversation_id not in names:
        raise NotFound("The conversation of this summary was erased.")
    name, query = names[summary.conversation_id], {"from": summary.from_seq}
    return redirect(url_to("users", ui.owner, "conversations", name, at=f"s-{summary.id}", **query))


async def list_facts(ui: UIRequest) -> Response:
    states = (*models.FACT_STATES, "all")
    state = ui.param("state") if ui.param("state") in states else "active"
    types = await ui.user.fact_types()
    type = ui.param("type") if ui.param("type") in types else None
    asked: dict[str, Any] = {"state": state, "type": type, "subject": ui.param("subject")}
    (last,) = ui.position(tuple[UUID]) or (None,)
    rows = await ui.user.facts(**asked, before=last, limit=PAGE_SIZE + 1)
    return ui.list_page("facts.html", "facts", rows, asked=asked, states=states, types=types)


async def show_inbox(ui: UIRequest) -> Response:
    (last,) = ui.position(tuple[UUID]) or (None,)
    rows = await ui.user.inbox(before=last, limit=PAGE_SIZE + 1)
    return ui.list_page("inbox.html", "items", rows, passed=[] if last else await ui.user.tidy())


async def review(ui: UIRequest) -> Response:
    """Accept or refuse a fact, or all that a page shows, or end or keep plans; lead back to what still waits."""
    fields = await ui.form()
    accept, refuse, end, keep = (
        [_read_id(id) for id in fields.get(action, "").split()] for action in ("accept", "refuse", "end", "keep")
    )
    await ui.user.review(accept=accept, refuse=refuse)
    if end or keep:
        await ui.user.decide_tidy(accept=end, refuse=keep)
    return redirect(url_to("users", ui.owner, "inbox"))


class SourceExcerpt(NamedTuple):
    """Where a fact was said: the message, the words themselves with those before and after; summaries over it."""

    message: models.Message
    conversation: str
    before: str
    words: str
    after: str
    summaries: Sequence[models.Summary]


async def show_fact(ui: UIRequest) -> Response:
    user = ui.user
    fact = await user.fact(ui.id)
    history = await user.fact_history(fact.id)
    related = {id for change in history for id in (change.fact_id, change.other_id) if id is not None}
    return ui.page(
        "fact.html",
        fact=fact,
        is_quarantined=fact.state == models.QUARANTINED,
        is_retractable=fact.state in (*STORED_ACTIVE, models.QUARANTINED),
        said=await _sources(user, fact),
        sources=len(fact.sources),
        history=history,
        undone={change.undoes for change in history if change.undoes},
        others={other.id: other.text for other in await user.facts(state=None, ids=list(related))},
    )


async def _sources(user: AsyncUserScope, fact: models.Fact) -> list[SourceExcerpt]:
    spans = {span.message_id: span for span in fact.spans[:12]}
    messages = await user.messages(list(spans))
    names = await user.conversation_names([message.conversation_id for message in messages])
    sources = []
    for message in messages:
        place = message.conversation_id
        summaries = await user.summaries_over(place, message.seq, message.seq)
        words = excerpt(message.text or "", spans[message.id])
        sources.append(SourceExcerpt(message, names.get(place, ""), *words, summaries))
    return sources


def excerpt(text: str, span: models.FactSpan) -> tuple[str, str, str]:
    """Return the words before, the words that say it, and those after; where that is not known, all is before."""
    if span.start is None or span.stop is None:
        return text, "", ""
    first, last = max(0, span.start - 240), span.stop + 240
    before = ("…" if first else "") + text[first : span.start]
    return before, text[span.start : span.stop], text[span.stop : last] + ("…" if last < len(text) else "")


async def confirm(ui: UIRequest) -> Response:
    return _to_fact(ui, await ui.user.confirm_fact(ui.id))


async def retract(ui: UIRequest) -> Response:
    return _to_fact(ui, await ui.user.retract_fact(ui.id))


async def undo(ui: UIRequest) -> Response:
    return _to_fact(ui, await ui.user.undo(ui.id))


def _to_fact(ui: UIRequest, changed: models.Fact | models.FactChange) -> Response:
    id = changed.id if isinstance(changed, models.Fact) else changed.fact_id
    return redirect(url_to("users", ui.owner, "facts", id))


async def show_erasures(ui: UIRequest) -> Response:
    certificates = await ui.user.erasures(limit=PAGE_SIZE + 1)
    return ui.list_page(
        "erase.html",
        "certificates",
        certificates,
        what=ui.param("what") or models.ErasureScope.CONVERSATION,
        which=ui.param("which") or "",
    )


async def rehearse(ui: UIRequest) -> Response:
    return await _show_rehearsal(ui, *_target(await ui.form()), wrong="")


async def erase(ui: UIRequest) -> Response:
    """Erase, where its name was typed; lead to the certificate."""
    user, fields = ui.user, await ui.form()
    what, which = _target(fields)
    if fields.get("word", "") != (user.name if what == models.ErasureScope.USER else which):
        return await _show_rehearsal(ui, what, which, "That is not what it is called: nothing was erased.")
    certificate = await _erase(ui, what, which, dry_run=False)
    place = ("erase",) if certificate.id is None else ("erasures", certificate.id)
    return redirect(url_to("users", ui.owner, *place))


async def show_certificate(ui: UIRequest) -> Response:
    return ui.page("certificate.html", certificate=await ui.user.erasure(ui.id))


def _target(fields: dict[str, str]) -> tuple[str, str]:
    """Return what a form names: a conversation exactly, for " a" and "a" are two; an id without blanks around it."""
    what, which = fields.get("what", ""), fields.get("which", "")
    return what, which if what == models.ErasureScope.CONVERSATION else which.strip()


async def _show_rehearsal(ui: UIRequest, what: str, which: str, wrong: str) -> Response:
    return ui.page(
        "rehearsal.html",
        status=HTTPStatus.UNPROCESSABLE_ENTITY if wrong else HTTPStatus.OK,
        certificate=await _erase(ui, what, which, dry_run=True),
        what=what,
        which=which,
        word=ui.user.name if what == models.ErasureScope.USER else which,
        wrong=wrong,
    )


async def _erase(ui: UIRequest, what: str, which: str, *, dry_run: bool) -> models.Certificate:
    disable_timeout(ui.request.scope)
    user = ui.user
    if what == models.ErasureScope.USER:
        return await user.erase(dry_run=dry_run)
    if what == models.ErasureScope.CONVERSATION:
        return await user.conversation(which).erase(dry_run=dry_run)
    id = _read_id(which)
    if what == models.ErasureScope.MESSAGE:
        return await user.erase_message(id, dry_run=dry_run)
    return await user.erase_fact(id, dry_run=dry_run)


def _read_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request", f"{text:.60} is no id.") from None
