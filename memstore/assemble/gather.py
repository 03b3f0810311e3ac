"""Gathering: what is stored and what is recalled, read for one assembly, as the material that it may be made of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from uuid import UUID

from memstore.assemble.compression import Stored
from memstore.assemble.heard import heard_turns
from memstore.assemble.material import Material
from memstore.assemble.receipt import GIST
from memstore.assemble.request import Assembly
from memstore.assemble.turns import Turn, turns
from memstore.models import Decision, Hit, Message, Reason, Role, Summary, Tier, Unit
from memstore.providers import ChatMessage
from memstore.retrieve import recall
from memstore.retrieve.rank import Candidate, best_of_each
from memstore.store import facts, items, messages, summaries
from memstore.store.database import Transaction
from memstore.store.items import Filters
from memstore.store.summaries import Outline

FACTS, HITS = 40, 80  # offered to packing; of a large budget more hits, one for so many tokens:
A_HIT = 100
# Recent turns, where there are enough of them, have half of a budget at least. Of a small one fewer hits fit into the
# rest, and to read, count and compare each takes as long as a recent turn: one for so many tokens, and never fewer.
SMALL_HIT, FEWEST_HITS = 25, 40
# Kinds of facts that matter whatever is asked. "What should I avoid eating?" is far from "allergic to peanuts" for an
# embedder; nobody asks for standing instructions at all.
STANDING, MOST_STANDING = ("constraint", "procedure", "identity"), 8
A_MESSAGE = 32  # tokens, to guess how many recent messages to read; where that is too few, more are read
LONGEST, STEP = 4000, 1000  # messages that strategies see, and by how many they begin later
LEAST_READ, MOST_READ = 64, 2000  # messages at once: 64 cost what another round trip does
MOST_LOOKED_AT = 20_000  # messages, for those that a viewer sees
VIEWED_DEPTH, MOST_VIEWED = 1000, 100  # candidates of a leg and standing facts, where a viewer sees some of them only
OVERHEAD = 4  # tokens that a message costs besides its content, at least
LAST_SAID, SPOKEN = 6, {Role.USER, Role.ASSISTANT}  # messages that tell who "she" is in a question
NEVER_RECALLED = {Role.SYSTEM, Role.DEVELOPER}  # instructions of another time are not what was said


async def newest_question(scope: Transaction, made: Assembly, known: Sequence[Message] = ()) -> Message | None:
    """Give the newest message of a person in the stretch, of those that the viewer sees.

    `known` are the newest messages of the stretch, in order, where they are read already.
    """
    request, before = made.request, messages.LAST
    if found := next((one for one in reversed(known) if one.role == Role.USER and made.sight.sees(one)), None):
        return found
    if not made.exists:
        return None
    if not made.sight.filters:
        newest = await messages.newest_of(scope, request.conversation_id, Role.USER, as_of=request.as_of)
        return newest if newest and newest.seq > made.after else None
    for limit in (STEP, MOST_LOOKED_AT - STEP):
        page = await messages.newest(scope, request.conversation_id, limit=limit, before=before, as_of=request.as_of)
        for one in page:
            if one.seq > made.after and one.role == Role.USER and made.sight.sees(one):
                return one
        if not page or page[-1].seq <= made.after:
            break
        before = page[-1].seq
    return None


async def said_before(scope: Transaction, made: Assembly, newest: Message | None) -> list[ChatMessage]:
    """Give what was said last before the question, of what the viewer sees, for whoever puts the question otherwise."""
    before = messages.LAST if newest is None else newest.seq
    conversation, as_of = made.request.conversation_id, made.request.as_of
    page = await messages.newest(scope, conversation, limit=LAST_SAID, before=before, as_of=as_of)
    return [
        {"role": one.name or one.role, "content": one.text}
        for one in reversed(page)
        if one.seq > made.after and one.role in SPOKEN and made.sight.sees(one)
        if one.text and one.text != made.request.query
    ]


@dataclass(frozen=True, slots=True)
class Gathered:
    """The material of an assembly, what strategies read, and the outlines of the stretch's summaries."""

    material: Material
    stored: Stored
    nest: Sequence[Outline]


async def read_ahead(reads: Transaction, question: recall.Question, made: Assembly) -> None:
    """Ask for what `gather` asks for first, whatever it is answered."""
    await (_whole if made.strategies else _recent)(reads, made)
    await summaries.outlines(reads, made.request.conversation_id, as_of=made.request.as_of)
    await _standing(reads, made)
    await items.version(reads, question.model)


async def gather(scope: Transaction, question: recall.Question, newest: Message | None, made: Assembly) -> Gathered:
    """Read what a context may be made of; `newest` is the newest message that asks, where nothing else does."""
    request, sight = made.request, made.sight
    stored = await (_whole if made.strategies else _recent)(scope, made)
    if request.query is not None:
        newest = await newest_question(scope, made, stored)
    said, refused = turns(sight.of(stored))
    found = heard_turns(said, request.viewer)
    asked = newest if newest is not None and request.query in (None, newest.text) else None
    others = [turn for turn in found if asked is None or turn.messages[0].id != asked.id]
    ending = others[-1:] if asked and others and _waits(others[-1], asked) else []
    every = await summaries.outlines(scope, request.conversation_id, as_of=request.as_of)
    above = [one for one in every if one.from_seq > made.after]
    nest = await sight.outlines(scope, request.conversation_id, above)
    passed = _Passed(asked, request.conversation_id, {one.id for one in every if one.from_seq <= made.after})
    recalled = await _recalled(scope, question, made, passed, _hits(made.budget, stored))
    query = {"role": "user", "content": request.query} if request.query else None
    material = Material(
        system=request.system,
        question=asked.as_chat() if asked else query,
        question_seq=asked.seq if asked else None,
        ending=ending,
        turns=[turn for turn in reversed(others) if turn not in ending],
        standing=recalled.standing,
        facts=recalled.facts,
        hits=recalled.said,
        sections=made.sections,
        left_out=[*sight.decisions(), *recalled.left_out, *map(_unpaired, refused)],
        unlisted=recalled.unlisted,
    )
    return Gathered(material, await _stored(scope, made, found), nest)


async def _stored(scope: Transaction, made: Assembly, found: Sequence[Turn]) -> Stored:
    """Give what strategies read; they may want the facts."""
    if not made.strategies:
        return Stored(found)
    every = await summaries.summaries(scope, made.request.conversation_id, as_of=made.request.as_of)
    above: list[Summary] = await made.sight.summaries(scope, [one for one in every if one.from_seq > made.after])
    if not any(getattr(one, "by_facts", False) for one in made.strategies):
        return Stored(found, above)
    return Stored(found, above, await made.sight.facts(scope, await facts.facts(scope, as_of=made.request.as_of)))


def _unpaired(one: Message) -> Decision:
    says = f"{one.name or one.role}: {one.text or ''}"[:GIST]
    return Decision("recent", "message", one.id, one.tokens, Reason.UNPAIRED, seqs=(one.seq, one.seq), says=says)


def _waits(turn: Turn, asked: Message) -> bool:
    """Whether the model has yet to answer this: the results of the tools that it called for the question."""
    return turn.first_seq > asked.seq and turn.messages[-1].role == Role.TOOL


async def _recent(scope: Transaction, made: Assembly) -> list[Message]:
    """Give the stretch's newest messages in order, as many as could fill the budget with those that are seen."""
    request = made.request
    found: list[Message] = []
    tokens = 0
    while tokens < made.budget or (found and found[-1].role == Role.TOOL):  # results are nothing without their call
        page = await messages.newest(
            scope,
            request.conversation_id,
            limit=_page(made.budget - tokens, len(found), tokens),
            before=found[-1].seq if found else messages.LAST,
            as_of=request.as_of,
        )
        found += page
        tokens += sum(one.tokens + OVERHEAD for one in page if made.sight.may_see(one))
        if not page or page[-1].seq <= made.after + 1 or (made.sight.filters and len(found) >= MOST_LOOKED_AT):
            break
    return [one for one in reversed(found) if one.seq > made.after]


def _page(wanted: int, found: int, tokens: int) -> int:
    """Give how many messages may have the tokens that are wanted, going by those that were found."""
    return max(LEAST_READ, min(MOST_READ, wanted * found // tokens if tokens else wanted // A_MESSAGE))


async def _whole(scope: Transaction, made: Assembly) -> list[Message]:
    """Give the stretch in order, for strategies: where it is very long, the newest `LONGEST` messages or more.

    The beginning then moves by `STEP` messages at once, so that what follows from it stays for as long.
    """
    request = made.request
    found = await messages.newest(scope, request.conversation_id, limit=LONGEST + STEP, as_of=request.as_of)
    last = found[0].seq if found else 0
    first = max((last - LONGEST) // STEP * STEP, made.after)
    return [one for one in reversed(found) if one.seq > first]


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


def _hits(budget: int, recent: Sequence[Message]) -> int:
    """Give how many hits are offered beside these recent messages."""
    told = min(budget, sum(one.tokens for one in recent)) // 2
    return min(max(HITS, budget // A_HIT), max(FEWEST_HITS, (budget - told) // SMALL_HIT))


async def _recalled(
    scope: Transaction, question: recall.Question, made: Assembly, passed: _Passed, count: int
) -> Recalled:
    sight, as_of = made.sight, made.request.as_of
    always = (await sight.fact_ids(scope, await _standing(scope, made)))[:MOST_STANDING]
    depth = VIEWED_DEPTH if sight.filters else recall.DEPTH
    ranking = await recall.candidates(scope, question, Filters(as_of=as_of), depth, also=always)
    about = {one.unit.item_id: one for one in best_of_each(ranking.of(Tier.FACTS))}
    standing = [about.pop(fact) for fact in always if fact in about]
    said = best_of_each(passed.those(ranking.of(Tier.MESSAGES, Tier.SUMMARIES)))
    wanted = [
        await _seen(scope, iter(candidates), most, made)
        for candidates, most in (
            (standing, MOST_STANDING),
            (about.values(), FACTS),
            (said, count),
        )
    ]
    every = [one for part in wanted for one in part]
    found = {hit.id: hit for hit in await recall.hits(scope, every, as_of)}
    hits = [[found[one.unit.item_id] for one in part if one.unit.item_id in found] for part in wanted]
    hidden = sight.hidden("facts", "hits")
    twice = max(0, passed.through - len(wanted[2]) - hidden)
    unlisted = {Reason.FILTERED: passed.filtered, Reason.DUPLICATE: twice}
    unlisted[Reason.BELOW_SCORE] = max(0, len(ranking.tiers) - len(every) - hidden - sum(unlisted.values()))
    gone = [_superseded(one) for one in every if one.unit.item_id not in found]
    return Recalled(hits[0], hits[1], hits[2], gone, unlisted)


async def _standing(scope: Transaction, made: Assembly) -> list[UUID]:
    limit = MOST_VIEWED if made.sight.filters else MOST_STANDING
    return await facts.standing(scope, STANDING, limit=limit, as_of=made.request.as_of)


async def _seen(scope: Transaction, candidates: Iterator[Candidate], count: int, made: Assembly) -> list[Candidate]:
    """Give so many candidates that the viewer sees, the best first; a fact that held once is no hit, and passes."""
    if not made.sight.filters:
        return list(islice(candidates, count))
    found: list[Candidate] = []
    while len(found) < count and (page := list(islice(candidates, recall.DEPTH))):
        hits = await recall.hits(scope, page, made.request.as_of)
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


def _superseded(one: Candidate) -> Decision:
    """Give the decision on a fact that held once."""
    said_at, score = one.unit.occurred_at, round(one.score, 6)
    section, kind = ("facts", "fact") if one.unit.tier == Tier.FACTS else ("hits", str(one.unit.tier))
    return Decision(section, kind, one.unit.item_id, 0, Reason.SUPERSEDED, score, one.parts, said_at=said_at)
