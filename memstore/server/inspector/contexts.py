"""Contexts: why something is in one. The receipt as a picture, what was left out and why, and the same bytes again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from starlette.responses import Response

from memstore.memory.user import AsyncUserScope
from memstore.models import Decision, Reason, Receipt
from memstore.models.receipts import IN_WORDS
from memstore.server.inspector import links, pictures
from memstore.server.inspector.visit import Visit
from memstore.store.messages import LAST

A_PAGE, SHOWN, WHOLE, SENT = 20, 8, 40, 16
FACT, SUMMARIES, MESSAGES = "fact", ("summary", "summaries"), ("turn", "turns", "message", "messages", "block")


@dataclass(frozen=True, slots=True)
class Part:
    """A section of a context: tokens, and what was in and out; `shown` of each are on the page."""

    name: str
    colour: str
    tokens: int
    share: float
    included: Sequence[Decision]
    left_out: Sequence[Decision]


async def listed(visit: Visit) -> Response:
    """Give the receipts of a user's contexts, the latest first."""
    user = visit.user
    place = visit.place(tuple[UUID])
    found = await user.receipt_page(before=place[0] if place else None, limit=A_PAGE + 1)
    shown = found[:A_PAGE]
    names = await names_of(user, shown)
    return visit.page(
        "contexts.html",
        user=user.name,
        receipts=[(one, await question(user, one, names), pictures.budget(one)) for one in shown],
        conversations=names,
        more=len(found) > A_PAGE,
    )


async def page(visit: Visit) -> Response:
    """Give one receipt: where its tokens went, what is in, what is not; with `section` all of that one, in pages."""
    user = visit.user
    receipt = await user.receipt(visit.id())
    only = visit.asked("section")
    every = parts(receipt)
    shown = [one for one in every if only in (None, one.name)]
    scores = [one.parts for part in shown for one in (*part.included, *part.left_out)]
    names = await names_of(user, [receipt])
    return visit.page(
        "context.html",
        user=user.name,
        receipt=receipt,
        question=await question(user, receipt, names),
        conversation=names.get(receipt.conversation_id),
        bars=pictures.budget(receipt),
        every=every,
        parts=shown,
        only=only,
        most=SHOWN if only is None else WHOLE,
        begin=0 if only is None else visit.number("from", 1, most=LAST) - 1,
        highest=pictures.highest(scores),
        score=pictures.score,
        words=IN_WORDS,
        reasons=reasons(receipt),
        link=_linked(user.name),
    )


async def question(user: AsyncUserScope, receipt: Receipt, names: Mapping[UUID | None, str]) -> str:
    """Give what was asked: the query, or what the newest message said; blank where that is gone."""
    name = names.get(receipt.conversation_id)
    if "query" in receipt.texts or name is None or not receipt.asked:
        return receipt.texts.get("query", "")
    said = await user.conversation(name).messages(from_seq=receipt.asked[0], to_seq=receipt.asked[0])
    return (said[0].text or "") if said else ""


def parts(receipt: Receipt) -> list[Part]:
    """Give the sections of a receipt, those that have nothing but what was left out too."""
    names = dict.fromkeys([*receipt.sections, *(one.section for one in receipt.decisions())])
    colours = pictures.colours(names)
    return [
        Part(
            name,
            colours[name],
            receipt.sections.get(name, 0),
            receipt.sections.get(name, 0) / max(1, receipt.budget),
            [one for one in receipt.included if one.section == name],
            [one for one in receipt.left_out if one.section == name],
        )
        for name in names
    ]


def reasons(receipt: Receipt) -> list[tuple[str, int]]:
    """Give how much was left out for which reason, in words, the most frequent first; what is not listed too."""
    counts = Counter({Reason(name): count for name, count in receipt.unlisted.items()})
    counts.update(one.reason for one in receipt.left_out if one.reason is not None)
    return [(IN_WORDS[reason], count) for reason, count in counts.most_common()]


async def replay(visit: Visit) -> Response:
    """Give a context again: what the model was sent, and whether these are the same bytes."""
    user = visit.user
    made = await user.replay(visit.id())
    begin = visit.number("from", 1, most=LAST) - 1
    texts = [("text", made.text)] if made.text is not None else []
    texts += [("system", made.system)] if made.system is not None else []
    sent: list[tuple[str, Any]] = texts + [(str(one.get("role", "")), _content(one)) for one in made.messages]
    return visit.page(
        "replay.html",
        user=user.name,
        replay=made,
        sent=sent[begin : begin + SENT],
        begin=begin,
        total=len(sent),
        most=SENT,
    )


def _content(message: dict[str, Any]) -> Any:
    """Give what a message says: its text, or whatever else it has."""
    rest = {name: value for name, value in message.items() if name not in ("role", "content")}
    content = message.get("content")
    return content if isinstance(content, str) and not rest else {"content": content, **rest} if rest else content


def _linked(user: str) -> Any:
    def link(one: Decision) -> str | None:
        """Give where the item of a decision stands."""
        if one.id is None:
            return None
        if one.kind in (FACT, "facts"):
            return links.to("users", user, "facts", one.id)
        if one.kind in SUMMARIES:
            return links.to("users", user, "summaries", one.id)
        return links.to("users", user, "messages", one.id) if one.kind in MESSAGES else None

    return link


async def names_of(user: AsyncUserScope, receipts: Sequence[Receipt]) -> dict[UUID | None, str]:
    """Give the names of the conversations of which receipts are."""
    ids = {one.conversation_id for one in receipts if one.conversation_id is not None}
    found = await user.conversation_names(list(ids)) if ids else {}
    return {id: name for id, name in found.items()}  # noqa: C416  (a dict of other keys, for mypy)
