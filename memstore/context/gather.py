"""Gathering: what is recalled for a question, beside the stretch, as the material that a context may be made of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from uuid import UUID

from memstore.context.history import MOST_STANDING, ConversationHistory
from memstore.context.material import Material
from memstore.context.receipt import GIST
from memstore.context.request import Assembly
from memstore.context.turns import Turn
from memstore.models import Decision, Hit, Message, Reason, Role, Tier, Unit
from memstore.search.candidates import DEPTH, rank_candidates, to_hits
from memstore.search.query import Query
from memstore.search.ranking import Candidate, best_of_each
from memstore.store import fact_history
from memstore.store.chunks import Filters
from memstore.store.database import Transaction
from memstore.store.fact_history import Past

FACTS, HITS = 40, 80  # offered to packing; of a large budget more hits, one for so many tokens:
A_HIT = 100
# Recent turns, where there are enough of them, have half of a budget at least. Of a small one fewer hits fit into the
# rest, and to read, count and compare each takes as long as a recent turn: one for so many tokens, and never fewer.
SMALL_HIT, FEWEST_HITS = 25, 40
VIEWED_DEPTH = 1000  # candidates of a leg, where a viewer sees some of them only
NEVER_RECALLED = {Role.SYSTEM, Role.DEVELOPER}  # instructions of another time are not what was said


def offered_at_first(budget: int, recent: int) -> int:
    """Give how many hits are offered beside recent messages of so many tokens."""
    told = min(budget, recent) // 2
    return min(max(HITS, budget // A_HIT), max(FEWEST_HITS, (budget - told) // SMALL_HIT))


async def gather(scope: Transaction, query: Query, made: Assembly, stretch: ConversationHistory, most: int) -> Material:
    """Recall what the question asks for, at most so many hits, and give it with the stretch as what a context may be
    made of."""
    request, asked = made.request, stretch.asked
    others = [turn for turn in stretch.turns if asked is None or turn.messages[0].id != asked.id]
    ending = others[-1:] if asked and others and _waits(others[-1], asked) else []
    passed = _Passed(asked, request.conversation_id, stretch.earlier)
    recalled = await _recalled(scope, query, made, passed, stretch, most)
    asking = {"role": "user", "content": request.query} if request.query else None
    return Material(
        system=request.system,
        question=asked.as_chat() if asked else asking,
        question_seq=asked.seq if asked else None,
        ending=ending,
        turns=[turn for turn in reversed(others) if turn not in ending],
        standing=recalled.standing,
        facts=recalled.facts,
        hits=recalled.said,
        sections=made.sections,
        left_out=[*made.sight.decisions(), *recalled.left_out, *map(_unpaired, stretch.refused)],
        unlisted=recalled.unlisted,
    )


def _unpaired(one: Message) -> Decision:
    says = f"{one.name or one.role}: {one.text or ''}"[:GIST]
    return Decision("recent", "message", one.id, one.tokens, Reason.UNPAIRED, seqs=(one.seq, one.seq), preview=says)


def _waits(turn: Turn, asked: Message) -> bool:
    """Whether the model has yet to answer this: the results of the tools that it called for the question."""
    return turn.first_seq > asked.seq and turn.messages[-1].role == Role.TOOL


@dataclass(frozen=True, slots=True)
class Recalled:
    """What was recalled, the best first, and what became of the other candidates. `standing` are in whatever is asked.

    `facts` are the others; `said` are messages, and summaries of other conversations and stretches.
    """

    standing: Sequence[Hit]
    facts: Sequence[Hit]
    said: Sequence[Hit]
    left_out: Sequence[Decision]
    unlisted: Mapping[Reason, int]


async def _recalled(
    scope: Transaction,
    query: Query,
    made: Assembly,
    passed: _Passed,
    stretch: ConversationHistory,
    count: int,
) -> Recalled:
    sight, as_of = made.sight, made.request.as_of
    depth = max(count, VIEWED_DEPTH if sight.filters else DEPTH)
    ranking = await rank_candidates(
        scope, query, Filters(as_of=as_of), depth, stretch.standing, version=stretch.version
    )
    found = {one.unit.item_id: one for one in ranking.included()}
    standing = [found[fact] for fact in stretch.standing if fact in found]
    about = (one for one in best_of_each(ranking.of(Tier.FACTS)) if one.unit.item_id not in found)
    said = best_of_each(passed.those(ranking.of(Tier.MESSAGES, Tier.SUMMARIES)))
    wanted = [
        await _seen(scope, iter(candidates), most, made)
        for candidates, most in (
            (standing, MOST_STANDING),
            (about, FACTS),
            (said, count),
        )
    ]
    every = [one for part in wanted for one in part]
    known = {hit.id: hit for hit in await to_hits(scope, every, as_of)}
    hits = [[known[one.unit.item_id] for one in part if one.unit.item_id in known] for part in wanted]
    offered = {hit.id for hit in hits[2]}
    quoted = [fact for fact in hits[1] if _quotes(fact) and offered.issuperset(fact.sources)]
    hits[1] = [fact for fact in hits[1] if fact not in quoted]
    hidden = sight.hidden("facts", "hits")
    twice = max(0, passed.through - len(wanted[2]) - hidden) + len(quoted)
    unlisted = {Reason.FILTERED: passed.filtered, Reason.DUPLICATE: twice}
    unlisted[Reason.BELOW_SCORE] = max(0, len(ranking.tiers) - len(every) - hidden - sum(unlisted.values()))
    gone = await _superseded(scope, [one for one in every if one.unit.item_id not in known], made)
    return Recalled(hits[0], hits[1], hits[2], gone, unlisted)


def _quotes(fact: Hit) -> bool:
    """Whether a fact tells a message in its own words, so that beside the message it says nothing."""
    return fact.text.startswith(f'{fact.speaker}: "')


async def _seen(scope: Transaction, candidates: Iterator[Candidate], count: int, made: Assembly) -> list[Candidate]:
    """Give so many candidates that the viewer sees, the best first; a fact that held once is no hit, and passes."""
    if not made.sight.filters:
        return list(islice(candidates, count))
    found: list[Candidate] = []
    while len(found) < count and (page := list(islice(candidates, DEPTH))):
        hits = await to_hits(scope, page, made.request.as_of)
        seen = {hit.id for hit in await made.sight.hits(scope, hits)}
        found += [one for one in page if one.unit.item_id in seen]
    return found[:count]


@dataclass(slots=True)
class _Passed:
    """Lets through what may stand among the hits, and counts: the question, and the summaries that may stand in a
    section of their own, have their own places."""

    asked: Message | None
    conversation_id: UUID
    earlier: Collection[UUID]  # summaries of earlier stretches
    through: int = 0
    filtered: int = 0

    def those(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        for one in candidates:
            if self._may(one.unit):
                self.through += 1
                yield one
            else:
                self.filtered += 1

    def _may(self, unit: Unit) -> bool:
        if unit.tier == Tier.SUMMARIES:
            return unit.conversation_id != self.conversation_id or unit.item_id in self.earlier
        return unit.role not in NEVER_RECALLED and (self.asked is None or unit.item_id != self.asked.id)


async def _superseded(scope: Transaction, gone: Sequence[Candidate], made: Assembly) -> list[Decision]:
    """Give the decisions on facts that held once, each with the one that took its place; a viewer is told no more."""
    facts = [] if made.sight.filters else [one.unit.item_id for one in gone if one.unit.tier == Tier.FACTS]
    past = await fact_history.past(scope, facts, made.request.as_of, GIST) if facts else {}
    return [_gone(one, past.get(one.unit.item_id)) for one in gone]


def _gone(one: Candidate, past: Past | None) -> Decision:
    unit, score = one.unit, round(one.score, 6)
    section, kind = ("facts", "fact") if unit.tier == Tier.FACTS else ("hits", str(unit.tier))
    found = Decision(section, kind, unit.item_id, 0, Reason.SUPERSEDED, score, one.parts, said_at=unit.occurred_at)
    if past is None:
        return found
    return replace(found, preview=past.text, others=(past.successor,) if past.successor else ())
