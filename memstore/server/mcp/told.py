"""Facts, messages, summaries and hits as a model is told them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from memstore.memory.user import AsyncUserScope
from memstore.models import Fact, FactChange, Hit, Message, Summary, Tier
from memstore.models.facts import state_of
from memstore.server.mcp.identity import FACT, SUMMARY, of_message, short
from memstore.server.mcp.results import Change, Detail, Memory, Source

LONGEST = 20_000  # characters of one text: a message may have megabytes
BESIDE = 600  # characters of a text that stands beside another
MOST_SOURCES = 10
ELSEWHERE = "(a conversation that is gone)"

Names = Mapping[UUID, str]


async def of_hits(user: AsyncUserScope, hits: Sequence[Hit]) -> list[Memory]:
    """Give hits as memories."""
    names = await user.conversation_names([hit.conversation_id for hit in hits if hit.conversation_id is not None])
    return [_of_hit(hit, names) for hit in hits]


def _of_hit(hit: Hit, names: Names) -> Memory:
    is_fact, is_message = hit.tier == Tier.FACTS, hit.tier == Tier.MESSAGES
    place = names.get(hit.conversation_id, ELSEWHERE) if hit.conversation_id is not None and not is_fact else None
    told = of_message(place or ELSEWHERE, hit.seq or 0) if is_message else short(FACT if is_fact else SUMMARY, hit.id)
    return Memory(
        id=told,
        tier=hit.tier.value,
        text=hit.text,
        said_at=hit.occurred_at,
        speaker=hit.speaker if is_message else None,
        subject=hit.speaker if is_fact else None,
        conversation=place,
        valid_to=hit.valid_to,
        score=round(hit.score, 3),
    )


def of_fact(fact: Fact) -> Memory:
    """Give a fact as a memory."""
    state = state_of(fact)
    return Memory(
        id=short(FACT, fact.id),
        tier="facts",
        text=fact.text,
        said_at=fact.occurred_at,
        type=fact.type,
        subject=fact.subject,
        state=None if state == "active" else state,
        valid_from=fact.valid_from,
        valid_to=fact.valid_to,
        confidence=round(fact.confidence, 2),
    )


async def fact_in_full(user: AsyncUserScope, id: UUID) -> Detail:
    """Give a fact with the messages that say it, and its history."""
    fact = await user.fact(id)
    said = await user.messages(fact.sources[:MOST_SOURCES])
    names = await user.conversation_names([one.conversation_id for one in said])
    return Detail(
        **of_fact(fact).model_dump(),
        sources=[_beside(one, names.get(one.conversation_id, ELSEWHERE)) for one in said],
        more_sources=max(0, len(fact.sources) - MOST_SOURCES) or None,
        history=[_change(one) for one in await user.fact_history(fact)],
    )


async def summary_in_full(user: AsyncUserScope, id: UUID) -> Detail:
    """Give a summary with the messages that it is of."""
    summary: Summary = await user.summary(id)
    names = await user.conversation_names([summary.conversation_id])
    return Detail(
        id=short(SUMMARY, summary.id),
        tier="summaries",
        text=summary.text[:LONGEST],
        cut=_cut(summary.text),
        said_at=summary.occurred_at,
        conversation=names.get(summary.conversation_id, ELSEWHERE),
        messages=f"{summary.from_seq}-{summary.to_seq}",
    )


async def message_in_full(user: AsyncUserScope, message: Message, conversation: str) -> Detail:
    """Give a message with what was said just before and after it."""
    near = await user.conversation(conversation).messages(from_seq=max(1, message.seq - 2), to_seq=message.seq + 2)
    text = message.text or ""
    return Detail(
        id=of_message(conversation, message.seq),
        tier="messages",
        text=text[:LONGEST],
        cut=_cut(text),
        said_at=message.occurred_at,
        speaker=message.name or message.role,
        conversation=conversation,
        around=[_beside(one, conversation) for one in near if one.seq != message.seq],
    )


def _cut(text: str) -> int | None:
    return max(0, len(text) - LONGEST) or None


def _beside(message: Message, conversation: str) -> Source:
    text = message.text or ""
    return Source(
        id=of_message(conversation, message.seq),
        speaker=message.name or message.role,
        said_at=message.occurred_at,
        text=text if len(text) <= BESIDE else f"{text[: BESIDE - 1]}…",
    )


def _change(change: FactChange) -> Change:
    other = None if change.other_id is None else short(FACT, change.other_id)
    return Change(action=change.action, at=change.at, other=other)
