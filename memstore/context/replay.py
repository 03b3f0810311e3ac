"""Replay: a context made again from its receipt, by the ids in it, through the same renderer.

Messages never change, and a fact keeps its words under its id; the day on which it was said is in the receipt, for a
fact may turn out to have been said earlier. What a strategy wrote is a text of the receipt: made again, it might be
made of more than was known. Summaries are there until they are made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

from memstore.context import formats as render
from memstore.context.cut import MARK, with_text
from memstore.context.formats import CustomSection, Format, PromptContent
from memstore.context.heard import heard_turns
from memstore.context.offers import OLDER
from memstore.context.receipt import block_key, content_hash, text_key
from memstore.context.sections import WEIGHTS
from memstore.context.strategies.view import Block, Entry
from memstore.context.turns import Turn
from memstore.models import (
    Decision,
    Fact,
    Hit,
    Message,
    MissingItem,
    MissingReason,
    Reason,
    Receipt,
    Replay,
    Summary,
    Tier,
)
from memstore.store import facts, messages, summaries
from memstore.store.database import Transaction

T = TypeVar("T")


@dataclass(slots=True)
class _Stored:
    """What is still there of what a receipt names, and what is not."""

    messages: Mapping[UUID, Message]
    numbered: Mapping[int, Message]
    summaries: Mapping[UUID, Summary]
    facts: Mapping[UUID, Fact]
    whole: Mapping[tuple[int, int], bool]
    missing: list[MissingItem] = field(default_factory=list)

    def gone(self, one: Decision, why: MissingReason = MissingReason.ERASED) -> None:
        self.missing.append(MissingItem(one.section, one.kind, one.id, why))


async def replay(scope: Transaction, receipt: Receipt, format: Format | None = None) -> Replay:
    """Give the context of a receipt again, or what of it is left and what is missing.

    In this format, else in the receipt's, where that is one of memstore's own, else in OpenAI's. Raises `InvalidInput`
    where it was written by a Jinja template and no format is given.
    """
    format = format or render.format_from_receipt(receipt.arguments.get("format") or {}) or render.OPENAI
    stored = await _read(scope, receipt)
    recent: list[Entry] = _made(receipt, "recent", lambda one: _entry(one, receipt, stored))
    known = _made(receipt, "facts", lambda one: _fact(one, stored))
    own = _own(receipt, stored)
    content = PromptContent(
        system=receipt.texts.get("system"),
        summaries=_made(receipt, "summaries", lambda one: _summary(one, stored)),
        turns=[*recent, *_ending(receipt, stored)],
        facts=[fact for fact, pinned in known if not pinned],
        pinned_facts=[fact for fact, pinned in known if pinned],
        static_sections=[one for one, pinned in own if pinned],
        custom_sections=[one for one, pinned in own if not pinned],
        hits=_made(receipt, "hits", lambda one: _hit(one, receipt, stored)),
        question=_question(receipt, stored),
        question_seq=receipt.asked[0] if receipt.asked else None,
    )
    made = format.render(content)
    exact = content_hash(made.sent) == receipt.content_hash
    if not exact and not stored.missing:
        stored.missing.append(_unexplained(receipt))
    return Replay(receipt, made.messages, tuple(stored.missing), exact, made.system, made.text)


def _unexplained(receipt: Receipt) -> MissingItem:
    """Give why the bytes are others though every item is there."""
    for section, text, elsewhere in (("system", "system", ()), ("question", "query", receipt.asked)):
        if receipt.sections.get(section) and text not in receipt.texts and not elsewhere:
            return MissingItem(section, "text", None, MissingReason.TEXTS)
    return MissingItem("", "rendering", None, MissingReason.RENDERER)


def _made(receipt: Receipt, section: str, make: Callable[[Decision], T | None]) -> list[T]:
    made = (make(one) for one in receipt.included if one.section == section)
    return [one for one in made if one is not None]


async def _read(scope: Transaction, receipt: Receipt) -> _Stored:
    """Read all that a receipt names, a statement for each kind."""
    conversation, included = receipt.conversation_id, receipt.included
    assert conversation is not None
    named = [id for one in included if one.id is not None for id in (one.id, *one.others)]
    ranges = {one.seqs for one in included if one.seqs and one.kind in ("block", "summary")}
    known_facts = await facts.facts(scope, state=None, ids=_ids(included, "fact"))
    known_summaries = await summaries.some(scope, _ids(included, Tier.SUMMARIES, "summary"))
    return _Stored(
        messages=await messages.known(scope, named),
        numbered=await messages.numbered(scope, conversation, receipt.asked),
        summaries={one.id: one for one in known_summaries},
        facts={one.id: one for one in known_facts if one.state != "erased"},
        whole={seqs: await messages.whole(scope, conversation, *seqs) for seqs in ranges},
    )


def _ids(decisions: Iterable[Decision], *kinds: str) -> list[UUID]:
    return [one.id for one in decisions if one.kind in kinds and one.id is not None]


def _summary(one: Decision, stored: _Stored) -> Summary | None:
    found = None if one.id is None else stored.summaries.get(one.id)
    if found is None:
        stored.gone(one, MissingReason.REMADE if one.seqs and stored.whole[one.seqs] else MissingReason.ERASED)
    return found


def _entry(one: Decision, receipt: Receipt, stored: _Stored) -> Entry | None:
    if one.kind == "block":
        return _block(one, receipt, stored)
    wanted = [] if one.id is None else [one.id, *one.others]
    found = tuple(stored.messages[id] for id in wanted if id in stored.messages)
    if len(found) != len(wanted) or not found:
        stored.gone(one)
        return None
    (turn,) = heard_turns([Turn(found)], receipt.arguments.get("viewer"))
    return _shortened(one, turn, receipt, stored) if one.reason == Reason.CUT else turn


def _shortened(one: Decision, turn: Turn, receipt: Receipt, stored: _Stored) -> Turn | None:
    text = receipt.texts.get(block_key(turn.first_seq, turn.first_seq))
    if text is None:
        stored.gone(one, MissingReason.TEXTS)
        return None
    return with_text(turn, text)


def _block(one: Decision, receipt: Receipt, stored: _Stored) -> Block | None:
    """Give what a strategy wrote; nothing where a message of those it stands for is erased."""
    first = None if one.id is None else stored.messages.get(one.id)
    text = receipt.texts.get(block_key(*one.seqs)) if one.seqs else None
    if first is None or one.seqs is None or not stored.whole[one.seqs]:
        stored.gone(one)
    elif text is None:
        stored.gone(one, MissingReason.TEXTS)
    else:
        return Block(one.note, text, (Turn((first,)),), one.tokens, one.seqs[1])
    return None


def _ending(receipt: Receipt, stored: _Stored) -> list[Turn]:
    seqs = receipt.asked[1:]
    found = [stored.numbered[seq] for seq in seqs if seq in stored.numbered]
    if len(found) < len(seqs):
        stored.missing.append(MissingItem("question", "turn", None, MissingReason.ERASED))
        return []
    return [Turn(tuple(found))] if found else []


def _question(receipt: Receipt, stored: _Stored) -> dict[str, object] | None:
    if not receipt.asked:
        query = receipt.texts.get("query")
        return None if query is None else {"role": "user", "content": query}
    found = stored.numbered.get(receipt.asked[0])
    if found is None:
        stored.missing.append(MissingItem("question", "message", None, MissingReason.ERASED))
        return None
    return found.as_chat()


def _own(receipt: Receipt, stored: _Stored) -> list[tuple[CustomSection, bool]]:
    """Give the user's own sections, in their order, and whether each is a steady one.

    One of which nothing fitted was there too: its figure is in the receipt.
    """
    found: dict[str, list[str]] = {name: [] for name in receipt.sections if name not in WEIGHTS}
    steady = {one["name"] for one in receipt.arguments.get("sections", ()) if one.get("steady")}
    for one in receipt.included:
        if one.kind == "text":
            texts = found.setdefault(one.section, [])
            text = receipt.texts.get(text_key(one.section, len(texts)))
            if text is None:
                stored.gone(one, MissingReason.TEXTS)
            texts.append(text or "")
    ordered = [one["name"] for one in receipt.arguments.get("sections", ()) if one["name"] in found]
    return [(CustomSection(name, found[name]), name in steady) for name in ordered]


def _fact(one: Decision, stored: _Stored) -> tuple[Hit, bool] | None:
    found = None if one.id is None else stored.facts.get(one.id)
    if found is None:
        stored.gone(one, MissingReason.GONE)
        return None
    fact = Hit(
        tier=Tier.FACTS,
        id=found.id,
        text=_part(one, found.text),
        score=one.score or 0.0,
        parts=one.parts,
        sources=(),
        occurred_at=one.said_at or found.occurred_at,
        valid_to=one.valid_to,
    )
    return fact, one.pinned


def _hit(one: Decision, receipt: Receipt, stored: _Stored) -> Hit | None:
    message = None if one.id is None else stored.messages.get(one.id)
    if message is not None and one.note == OLDER:  # a recent turn that did not stay one
        (turn,) = heard_turns([Turn((message,))], receipt.arguments.get("viewer"))
        message = turn.messages[0]
    summary = None if one.id is None else stored.summaries.get(one.id)
    if message is not None:
        return _said(one, message)
    if summary is not None:
        return _told(one, summary)
    stored.gone(one, MissingReason.ERASED if one.kind == Tier.MESSAGES else MissingReason.GONE)
    return None


def _said(one: Decision, message: Message) -> Hit:
    return Hit(
        tier=Tier.MESSAGES,
        id=message.id,
        text=_part(one, message.text or ""),
        score=one.score or 0.0,
        parts=one.parts,
        sources=(message.id,),
        occurred_at=message.occurred_at,
        conversation_id=message.conversation_id,
        seq=message.seq,
        role=message.role,
        speaker=message.name or message.role,
        start=one.start,
    )


def _told(one: Decision, summary: Summary) -> Hit:
    return Hit(
        tier=Tier.SUMMARIES,
        id=summary.id,
        text=_part(one, summary.text),
        score=one.score or 0.0,
        parts=one.parts,
        sources=(),
        occurred_at=summary.occurred_until,
        conversation_id=summary.conversation_id,
        seq=summary.to_seq,
        start=one.start,
    )


def _part(one: Decision, text: str) -> str:
    shown = text[one.start :] if one.length is None else text[one.start : one.start + one.length]
    return shown + MARK if one.reason == Reason.CUT else shown
