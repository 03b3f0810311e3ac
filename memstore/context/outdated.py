"""Hits that hold no longer: messages whose facts were superseded or taken back say what holds now. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from memstore.models import FactStep, Hit, Role, SaidFact
from memstore.text import format_day

TOLD = 2  # of the facts that hold in place of what a message says, the latest

_PAST = re.compile(
    r"\b(?:did|(?<!^)was|were|had|ago|used to|(?:first|last)(?! name)|ever|before|would|might|likely|could|happened"
    r"|considered|been|waren?|hatten?|wurden?|damals|früher|zuerst)\b"
    r"|^\W*(?:who|what|which \w+) \w+ed\b|\bwhen (?:I|we|you|he|she|they|it)\b"
    r"|\bha[sv]e? .{0,200}\w{2}ed\b|\b(?:hat|haben|ist|sind)\b.{0,200}\bge\w{1,40}(?:t|en)\b",
    re.IGNORECASE,
)


def asks_what_holds(question: str) -> bool:
    """Whether a question asks for what holds now: "Where does Sven work?", and not "Where did Sven work?"."""
    return _PAST.search(question) is None


def last_of_each(said: Iterable[SaidFact], steps: Iterable[FactStep]) -> dict[UUID, list[FactStep]]:
    """Return what holds in place of the facts of messages, or was taken back, the latest first, by a message's id."""
    by_id = {one.fact_id: one for one in steps}
    last: dict[UUID, dict[UUID, FactStep]] = {}
    for one in said:
        seen, end = {one.fact_id}, by_id.get(one.fact_id)
        while end is not None and end.next_id in by_id and end.next_id not in seen:
            end = by_id[end.next_id]
            seen.add(end.fact_id)
        if end is not None and end.next_id is None and (end.fact_id != one.fact_id or end.is_taken_back):
            last.setdefault(one.message_id, {})[end.fact_id] = end
    return {id: sorted(ends.values(), key=lambda end: (end.at, end.fact_id), reverse=True) for id, ends in last.items()}


def mark_replaced(
    hits: Sequence[Hit], facts: Sequence[Hit], replaced: Mapping[UUID, Sequence[FactStep]], *, behind: bool
) -> list[Hit]:
    """Return hits, the best first, where those whose fact does not hold say what does.

    They rank `behind` that where the question is what holds: another one may ask for just what they say.
    """
    said = {hit.id: hit.score for hit in hits}
    scores = {fact.id: max([fact.score, *(said.get(one, 0.0) for one in fact.sources)]) for fact in facts}
    asked = {(hit.conversation_id, hit.seq): replaced[hit.id] for hit in hits if hit.id in replaced}
    marked = []
    for hit in hits:
        told = replaced.get(hit.id, ())
        if hit.role == Role.ASSISTANT and hit.seq is not None:  # it answers the message before it
            told = told or asked.get((hit.conversation_id, hit.seq - 1), ())
        if now := [one for one in told if hit.occurred_at < one.at][:TOLD]:
            most = max(scores.get(one.fact_id, hit.score) for one in now) if behind else math.inf
            hit = _rank_behind(hit, most, "; ".join(map(_tell, now)), *(one.fact_id for one in now))
        marked.append(hit)
    return sorted(marked, key=lambda hit: -hit.score)


def _tell(now: FactStep) -> str:
    text = " ".join((now.text or "").split()).rstrip(".")
    return f"{'taken back: ' if now.is_taken_back else ''}{text}, {format_day(now.at)}"


def _rank_behind(hit: Hit, score: float, later: str, *ids: UUID) -> Hit:
    """Return a hit that is outdated, with its mark and the source of that, and at most this score."""
    less = min(0.0, score - 1e-6 - hit.score)
    parts = {**hit.parts, "superseded": round(less, 6)} if less else hit.parts
    return replace(hit, score=round(hit.score + less, 6), parts=parts, later=later, later_ids=ids)
