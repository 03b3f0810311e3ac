"""Conversations: messages with the summaries over them and the facts that they say, in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from starlette.responses import Response

from memstore.errors import NotFound
from memstore.models import Fact, Message, Summary
from memstore.server.inspector import links
from memstore.server.inspector.visit import Visit, seen
from memstore.store.messages import LAST

A_PAGE, CONVERSATIONS = 24, 40
MOST_SUMMARIES, MOST_FACTS = 24, 60
LAST_ROW = 2**31 - 1 - MOST_FACTS
A_TEXT = 12_000  # bytes of a message's text on a page of its own


@dataclass(frozen=True, slots=True)
class Stretch:
    """Messages that one summary stands for, as far as they are on the page; None: they are under none yet."""

    summary: Summary | None
    messages: list[Message]


async def listed(visit: Visit) -> Response:
    """Give a user's conversations, the latest first."""
    user = visit.user
    found = await user.conversations(before=visit.place(tuple[datetime, UUID]), limit=CONVERSATIONS + 1)
    more = len(found) > CONVERSATIONS
    return visit.page("conversations.html", user=user.name, conversations=found[:CONVERSATIONS], more=more)


async def page(visit: Visit) -> Response:
    """Give a stretch of a conversation, from the number `from`, or with the one `at` in it."""
    scope = visit.conversation
    info = await scope.info()
    if info is None:
        raise NotFound("Nothing was said in this conversation, or it was erased.")
    at = visit.number("at", 0, most=LAST) if visit.asked("at") else None
    first = visit.number("from", 1, most=LAST) if at is None else max(1, at - A_PAGE // 3)
    found = await scope.messages(from_seq=first, limit=A_PAGE + 1)
    messages = found[:A_PAGE]
    last = messages[-1].seq if messages else first
    over = await scope.user.summaries_over(scope.id, first, last, limit=MOST_SUMMARIES + 1) if messages else []
    said = await scope.user.facts_said_by([one.id for one in messages], limit=MOST_FACTS + 1) if messages else []
    return visit.page(
        "conversation.html",
        user=scope.user.name,
        info=info,
        stretches=stretches(messages, over[:MOST_SUMMARIES]),
        above=[one for one in over[:MOST_SUMMARIES] if one.level != 1],
        facts=by_message(said[:MOST_FACTS]),
        more=_more(over, said),
        first=first,
        last=last,
        following=last + 1 if len(found) > A_PAGE else None,
        before=max(1, first - A_PAGE) if first > 1 else None,
    )


def stretches(messages: Sequence[Message], over: Sequence[Summary]) -> list[Stretch]:
    """Give messages in runs, each under the same summary of the lowest level."""
    lowest = [one for one in over if one.level == 1]
    made: list[Stretch] = []
    for one in messages:
        under = next((summary for summary in lowest if summary.from_seq <= one.seq <= summary.to_seq), None)
        if not made or made[-1].summary is not under:
            made.append(Stretch(under, []))
        made[-1].messages.append(one)
    return made


def by_message(facts: Sequence[Fact]) -> dict[UUID, list[Fact]]:
    """Give facts by the messages that say them."""
    found: dict[UUID, list[Fact]] = {}
    for one in facts:
        for source in one.sources:
            found.setdefault(source, []).append(one)
    return found


async def message(visit: Visit) -> Response:
    """Give one message, its text in pieces where it is long; where it stands, and what stands on it."""
    user = visit.user
    found = await user.messages([visit.id()])
    if not found:
        raise NotFound("There is no such message, or it was erased.")
    names = await user.conversation_names([found[0].conversation_id])
    begin = visit.number("from", 1, most=LAST) - 1
    text, place = found[0].text or "", found[0].conversation_id
    over = await user.summaries_over(place, found[0].seq, found[0].seq, limit=MOST_SUMMARIES + 1)
    said = await user.facts_said_by([found[0].id], limit=MOST_FACTS + 1)
    return visit.page(
        "message.html",
        user=user.name,
        message=found[0],
        conversation=names.get(found[0].conversation_id, ""),
        begin=begin,
        most=A_TEXT,
        piece=text[begin : begin + A_TEXT],
        summaries=over[:MOST_SUMMARIES],
        facts=said[:MOST_FACTS],
        more=_more(over, said),
    )


def _more(over: Sequence[Summary], said: Sequence[Fact]) -> list[str]:
    """Give of what there is more than a page shows."""
    return ["summaries"] * (len(over) > MOST_SUMMARIES) + ["facts"] * (len(said) > MOST_FACTS)


async def summaries_over(visit: Visit) -> Response:
    """Give all summaries over some messages, `first` to `last`, page by page."""
    scope, first, last = visit.conversation, visit.number("first", 1, most=LAST), visit.number("last", LAST, most=LAST)
    begin = visit.number("from", 1, most=LAST_ROW) - 1
    found = await scope.user.summaries_over(scope.id, first, last, limit=MOST_SUMMARIES + 1, offset=begin)
    return _listed(visit, "summaries", (first, last), begin, found, MOST_SUMMARIES)


async def facts_said(visit: Visit) -> Response:
    """Give all facts that some messages say, as many as a page of the conversation has, page by page."""
    scope, first = visit.conversation, visit.number("first", 1, most=LAST - A_PAGE)
    last = min(visit.number("last", first, most=LAST), first + A_PAGE - 1)
    begin = visit.number("from", 1, most=LAST_ROW) - 1
    messages = [one.id for one in await scope.messages(from_seq=first, to_seq=last)]
    found = await scope.user.facts_said_by(messages, limit=MOST_FACTS + 1, offset=begin) if messages else []
    return _listed(visit, "facts", (first, last), begin, found, MOST_FACTS)


def _listed(
    visit: Visit, kind: str, messages: tuple[int, int], begin: int, found: Sequence[Summary | Fact], most: int
) -> Response:
    scope = visit.conversation
    return visit.page(
        "over.html",
        user=scope.user.name,
        conversation=scope.name,
        kind=kind,
        first=messages[0],
        last=messages[1],
        items=found[:most],
        before=max(1, begin + 1 - most) if begin else None,
        following=begin + 1 + most if len(found) > most else None,
    )


async def summary(visit: Visit) -> Response:
    """Lead to a summary, where it stands beside its messages."""
    user = visit.user
    found = await user.summary(visit.id())
    names = await user.conversation_names([found.conversation_id])
    if found.conversation_id not in names:
        raise NotFound("The conversation of this summary was erased.")
    name = names[found.conversation_id]
    where = {"from": found.from_seq}
    return seen(links.to("users", user.name, "conversations", name, at=f"s-{found.id}", **where))
