"""Candidates of a context: what is recalled for the question, beside the history of the conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from uuid import UUID

from memstore.context.history import MOST_PINNED, ConversationHistory
from memstore.context.items import Candidates
from memstore.context.receipt import PREVIEW
from memstore.context.request import ResolvedRequest
from memstore.models import Decision, Message, Reason, Role, Tier, Unit
from memstore.search.candidates import DEPTH, rank_candidates, to_hits
from memstore.search.query import Query
from memstore.search.ranking import Candidate, best_of_each
from memstore.store import fact_history
from memstore.store.chunks import Filters
from memstore.store.database import Transaction

FACTS, HITS = 40, 80  # offered to selection; of a large budget more hits, one for so many tokens:
A_HIT = 100
# Recent turns, where there are enough of them, have half of a budget at least. Of a small one fewer hits fit into the
# rest, and to read, count and compare each takes as long as a recent turn: one for so many tokens, and never fewer.
SMALL_HIT, FEWEST_HITS = 25, 40
VIEWED_DEPTH = 1000  # candidates of a leg, where a viewer sees some of them only
NEVER_RECALLED = {Role.SYSTEM, Role.DEVELOPER}  # instructions of another time are not what was said


def hits_for_budget(budget: int, recent: int) -> int:
    """Return how many hits are offered beside recent messages of so many tokens."""
    turns = min(budget, recent) // 2
    return min(max(HITS, budget // A_HIT), max(FEWEST_HITS, (budget - turns) // SMALL_HIT))


async def collect_candidates(
    scope: Transaction, query: Query, resolved: ResolvedRequest, history: ConversationHistory, most: int
) -> Candidates:
    """Recall what the question asks for, at most so many hits, and return it with the history."""
    request, question, visibility = resolved.request, history.question, resolved.visibility
    recalled = await _recall(scope, query, resolved, history, most)
    others = [turn for turn in history.turns if question is None or turn.messages[0].id != question.id]
    # The model has yet to answer these: the results of the tools that it called for the question.
    ending = others[-1:]
    if question is None or not ending or ending[0].first_seq < question.seq or ending[0].messages[-1].role != Role.TOOL:
        ending = []
    asking = {"role": "user", "content": request.query} if request.query else None
    return replace(
        recalled,
        system=request.system,
        question=question.as_chat() if question else asking,
        question_seq=question.seq if question else None,
        ending=ending,
        turns=[turn for turn in reversed(others) if turn not in ending],
        sections=resolved.sections,
        left_out=[*visibility.decisions(), *recalled.left_out, *map(_unpaired, history.unpaired)],
    )


def _unpaired(message: Message) -> Decision:
    preview = f"{message.name or message.role}: {message.text or ''}"[:PREVIEW]
    seqs = (message.seq, message.seq)
    return Decision("recent", "message", message.id, message.tokens, Reason.UNPAIRED, seqs=seqs, preview=preview)


async def _recall(
    scope: Transaction, query: Query, resolved: ResolvedRequest, history: ConversationHistory, count: int
) -> Candidates:
    """Return pinned facts, other facts and hits, the best first, and what became of what else was found."""
    visibility, as_of = resolved.visibility, resolved.request.as_of
    depth = max(count, VIEWED_DEPTH if visibility.is_active else DEPTH)
    ranking = await rank_candidates(scope, query, Filters(as_of=as_of), depth, history.pinned, version=history.version)
    known = {one.unit.item_id: one for one in ranking.included()}
    pinned = [known[fact] for fact in history.pinned if fact in known]
    about = (one for one in best_of_each(ranking.of(Tier.FACTS)) if one.unit.item_id not in known)
    allowed = _AllowedHits(resolved.request.conversation_id, history)
    said = best_of_each(allowed.of(ranking.of(Tier.MESSAGES, Tier.SUMMARIES)))
    chosen = [
        await _take_visible(scope, iter(candidates), most, resolved)
        for candidates, most in ((pinned, MOST_PINNED), (about, FACTS), (said, count))
    ]
    every = [one for candidates in chosen for one in candidates]
    texts = {hit.id: hit for hit in await to_hits(scope, every, as_of)}
    pinned_facts, facts, hits = (
        [texts[one.unit.item_id] for one in candidates if one.unit.item_id in texts] for candidates in chosen
    )
    offered = {hit.id for hit in hits}
    # A fact that is a message in its own words says nothing beside the message.
    quoted = [f for f in facts if f.text.startswith(f'{f.speaker}: "') and offered.issuperset(f.sources)]
    hidden = visibility.count_hidden("facts", "hits")
    twice = max(0, allowed.passed - len(chosen[2]) - hidden) + len(quoted)
    below = max(0, len(ranking.tiers) - len(every) - hidden - allowed.filtered - twice)
    return Candidates(
        pinned=pinned_facts,
        facts=[fact for fact in facts if fact not in quoted],
        hits=hits,
        left_out=await _superseded(scope, [one for one in every if one.unit.item_id not in texts], resolved),
        unlisted={Reason.FILTERED: allowed.filtered, Reason.DUPLICATE: twice, Reason.BELOW_SCORE: below},
    )


async def _take_visible(
    scope: Transaction, candidates: Iterator[Candidate], count: int, resolved: ResolvedRequest
) -> list[Candidate]:
    """Return so many candidates that the viewer sees, the best first; a fact that held once is no hit, and passes."""
    if not resolved.visibility.is_active:
        return list(islice(candidates, count))
    taken: list[Candidate] = []
    while len(taken) < count and (page := list(islice(candidates, DEPTH))):
        hits = await to_hits(scope, page, resolved.request.as_of)
        visible = {hit.id for hit in await resolved.visibility.hits(scope, hits)}
        taken += [one for one in page if one.unit.item_id in visible]
    return taken[:count]


class _AllowedHits:
    """Lets through what may stand among the hits, and counts.

    The question and the summaries that may stand in a section of their own have their own places.
    """

    def __init__(self, conversation_id: UUID, history: ConversationHistory) -> None:
        self.conversation_id = conversation_id
        self.history = history
        self.passed = self.filtered = 0

    def of(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        for one in candidates:
            if self._allows(one.unit):
                self.passed += 1
                yield one
            else:
                self.filtered += 1

    def _allows(self, unit: Unit) -> bool:
        if unit.tier == Tier.SUMMARIES:
            return unit.conversation_id != self.conversation_id or unit.item_id in self.history.earlier
        question = self.history.question
        return unit.role not in NEVER_RECALLED and (question is None or unit.item_id != question.id)


async def _superseded(scope: Transaction, gone: Sequence[Candidate], resolved: ResolvedRequest) -> list[Decision]:
    """Return the decisions on facts that held once, each with the one that took its place; a viewer is told no more."""
    facts = [] if resolved.visibility.is_active else [one.unit.item_id for one in gone if one.unit.tier == Tier.FACTS]
    past = await fact_history.past(scope, facts, resolved.request.as_of, PREVIEW) if facts else {}
    decisions = []
    for one in gone:
        unit, before = one.unit, past.get(one.unit.item_id)
        section, kind = ("facts", "fact") if unit.tier == Tier.FACTS else ("hits", str(unit.tier))
        others = (before.successor,) if before and before.successor else ()
        about = (section, kind, unit.item_id, 0, Reason.SUPERSEDED, round(one.score, 6), one.parts)
        says = before.text if before else ""
        decisions.append(Decision(*about, said_at=unit.occurred_at, preview=says, others=others))
    return decisions
