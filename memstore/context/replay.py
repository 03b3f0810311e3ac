"""Replay: a context made again from its receipt, by the ids in it, through the same renderer.

Messages never change, and a fact keeps its words under its id; the day on which it was said is in the receipt, for a
fact may turn out to have been said earlier. A strategy's block is a text of the receipt: made again, it might be
made of more than was known. Summaries are there until they are made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from memstore.context.items import SECTION_WEIGHTS
from memstore.context.layout import block_key, content_hash, text_key
from memstore.context.visibility import as_seen_by
from memstore.formats import FORMATS, OPENAI
from memstore.formats.parts import CustomSection, Format, PromptContent
from memstore.models import (
    Decision,
    Fact,
    Hit,
    Message,
    MissingItem,
    MissingReason,
    Receipt,
    Replay,
    Summary,
    Tier,
)
from memstore.store import facts, messages, summaries
from memstore.store.database import Transaction
from memstore.strategies.base import Block, Entry, Turn

T = TypeVar("T")


async def replay(tx: Transaction, receipt: Receipt, format: Format | None = None) -> Replay:
    """Return the context of a receipt again, or what of it is left and what is missing.

    In this format, else in the receipt's, where that is one of memstore's own, else in OpenAI's.
    """
    format = format or FORMATS.get(receipt.arguments.get("format", {}).get("name"), OPENAI)
    stored = await _read(tx, receipt)
    prompt = format.render(stored.content())
    exact = content_hash(prompt.sent) == receipt.content_hash
    if not exact and not stored.missing:
        # Every item is there.
        stored.missing.append(MissingItem("", "rendering", None, MissingReason.RENDERER))
    return Replay(receipt, prompt.messages, tuple(stored.missing), exact, prompt.system, prompt.text)


async def _read(tx: Transaction, receipt: Receipt) -> _StoredItems:
    conversation, included = receipt.conversation_id, receipt.included
    assert conversation is not None
    named = [id for decision in included if decision.id is not None for id in (decision.id, *decision.others)]
    ranges = {decision.seqs for decision in included if decision.seqs and decision.kind == "block"}
    fact_ids = [decision.id for decision in included if decision.kind == "fact" and decision.id]
    summary_ids = [decision.id for decision in included if decision.kind in (Tier.SUMMARIES, "summary") and decision.id]
    known_facts = await facts.facts(tx, state=None, ids=fact_ids)
    known_summaries = await tx.get(summaries.some(summary_ids))
    return _StoredItems(
        receipt,
        messages=await messages.by_ids(tx, named),
        numbered=await messages.by_seq(tx, conversation, receipt.asked),
        summaries={summary.id: summary for summary in known_summaries},
        facts={fact.id: fact for fact in known_facts if fact.state != "erased"},
        whole={seqs: await messages.whole(tx, conversation, *seqs) for seqs in ranges},
    )


@dataclass(slots=True)
class _StoredItems:
    """The items of a receipt that are still there, and those that are not."""

    receipt: Receipt
    messages: Mapping[UUID, Message]
    numbered: Mapping[int, Message]
    summaries: Mapping[UUID, Summary]
    facts: Mapping[UUID, Fact]
    whole: Mapping[tuple[int, int], bool]
    missing: list[MissingItem] = field(default_factory=list)

    def content(self) -> PromptContent:
        """Return what the context was made of, as far as it is there."""
        receipt = self.receipt
        recent: list[Entry] = self._section("recent", self._entry)
        receipt_facts = self._section("facts", self._fact)
        own_sections = self._custom_sections()
        return PromptContent(
            system=receipt.texts.get("system"),
            summaries=self._section("summaries", self._summary),
            turns=[*recent, *self._ending()],
            facts=[fact for fact, standing in receipt_facts if not standing],
            standing_facts=[fact for fact, standing in receipt_facts if standing],
            static_sections=[section for section, static in own_sections if static],
            custom_sections=[section for section, static in own_sections if not static],
            hits=self._section("hits", self._hit),
            question=self._question(),
            question_seq=receipt.asked[0] if receipt.asked else None,
        )

    def _section(self, section: str, make: Callable[[Decision], T | None]) -> list[T]:
        made = (make(decision) for decision in self.receipt.included if decision.section == section)
        return [item for item in made if item is not None]

    def _is_missing(self, decision: Decision, why: MissingReason = MissingReason.ERASED) -> None:
        self.missing.append(MissingItem(decision.section, decision.kind, decision.id, why))

    def _summary(self, decision: Decision) -> Summary | None:
        summary = None if decision.id is None else self.summaries.get(decision.id)
        if summary is None:
            self._is_missing(decision, MissingReason.GONE)
        return summary

    def _entry(self, decision: Decision) -> Entry | None:
        if decision.kind == "block":
            return self._block(decision)
        ids = [] if decision.id is None else [decision.id, *decision.others]
        turn_messages = tuple(self.messages[id] for id in ids if id in self.messages)
        if len(turn_messages) != len(ids) or not turn_messages:
            self._is_missing(decision)
            return None
        return as_seen_by(self.receipt.arguments.get("viewer"), [Turn(turn_messages)])[0]

    def _block(self, decision: Decision) -> Block | None:
        """Return what a strategy wrote; nothing where a message of those it stands for is erased."""
        first = None if decision.id is None else self.messages.get(decision.id)
        text = self.receipt.texts.get(block_key(*decision.seqs)) if decision.seqs else None
        if first is None or decision.seqs is None or not self.whole[decision.seqs]:
            self._is_missing(decision)
        elif text is None:
            self._is_missing(decision, MissingReason.TEXTS)
        else:
            return Block(decision.note, text, (Turn((first,)),), decision.tokens, decision.seqs[1])
        return None

    def _ending(self) -> list[Turn]:
        seqs = self.receipt.asked[1:]
        turn_messages = [self.numbered[seq] for seq in seqs if seq in self.numbered]
        if len(turn_messages) < len(seqs):
            self.missing.append(MissingItem("question", "turn", None, MissingReason.ERASED))
            return []
        return [Turn(tuple(turn_messages))] if turn_messages else []

    def _question(self) -> dict[str, object] | None:
        if not self.receipt.asked:
            query = self.receipt.texts.get("query")
            return None if query is None else {"role": "user", "content": query}
        message = self.numbered.get(self.receipt.asked[0])
        if message is None:
            self.missing.append(MissingItem("question", "message", None, MissingReason.ERASED))
            return None
        return message.as_chat()

    def _custom_sections(self) -> list[tuple[CustomSection, bool]]:
        """Return the user's own sections, in their order, and whether each stands at the start.

        One of which nothing fitted was there too: its figure is in the receipt.
        """
        receipt = self.receipt
        texts: dict[str, list[str]] = {name: [] for name in receipt.sections if name not in SECTION_WEIGHTS}
        for decision in receipt.included:
            if decision.kind == "text":
                section = texts.setdefault(decision.section, [])
                text = receipt.texts.get(text_key(decision.section, len(section)))
                if text is None:
                    self._is_missing(decision, MissingReason.TEXTS)
                section.append(text or "")
        sections = receipt.arguments.get("sections", ())
        return [
            (CustomSection(values["name"], texts[values["name"]]), bool(values.get("static")))
            for values in sections
            if values["name"] in texts
        ]

    def _fact(self, decision: Decision) -> tuple[Hit, bool] | None:
        fact = None if decision.id is None else self.facts.get(decision.id)
        if fact is None:
            self._is_missing(decision, MissingReason.GONE)
            return None
        times: dict[str, Any] = {"occurred_at": decision.said_at or fact.occurred_at, "valid_to": decision.valid_to}
        return Hit(tier=Tier.FACTS, id=fact.id, sources=(), **times, **_shown(decision, fact.text)), decision.standing

    def _hit(self, decision: Decision) -> Hit | None:
        message = None if decision.id is None else self.messages.get(decision.id)
        if message is not None:
            return Hit(
                tier=Tier.MESSAGES,
                id=message.id,
                sources=(message.id,),
                occurred_at=message.occurred_at,
                conversation_id=message.conversation_id,
                seq=message.seq,
                role=message.role,
                speaker=message.name or message.role,
                start=decision.start,
                **_shown(decision, message.text or ""),
            )
        summary = None if decision.id is None else self.summaries.get(decision.id)
        if summary is None:
            self._is_missing(decision, MissingReason.ERASED if decision.kind == Tier.MESSAGES else MissingReason.GONE)
            return None
        return Hit(
            tier=Tier.SUMMARIES,
            id=summary.id,
            sources=(),
            occurred_at=summary.occurred_until,
            conversation_id=summary.conversation_id,
            seq=summary.to_seq,
            start=decision.start,
            **_shown(decision, summary.text),
        )


def _shown(decision: Decision, text: str) -> dict[str, Any]:
    text = (
        text[decision.start :] if decision.length is None else text[decision.start : decision.start + decision.length]
    )
    return {
        "score": decision.score or 0.0,
        "parts": decision.parts,
        "text": text,
        "later": decision.note if decision.others else "",
    }
