"""The path of a context: what is stored and what is recalled → material → composed, with its receipt kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice, zip_longest
from uuid import UUID

from memstore.assemble import record
from memstore.assemble.compose import Material, compose
from memstore.assemble.compression import Stored, compressed
from memstore.assemble.cover import offered
from memstore.assemble.receipt import GIST
from memstore.assemble.strategies.registry import strategies
from memstore.assemble.strategies.view import Strategy
from memstore.assemble.turns import Turn, turns
from memstore.errors import InvalidInput
from memstore.ingest.check import check_text
from memstore.models import Context, Decision, Hit, Json, Message, Reason, Role, Tier, Unit
from memstore.providers import Embedder, TokenCounter
from memstore.retrieve import recall
from memstore.retrieve.rank import Candidate, best_of_each
from memstore.store import facts, messages, summaries
from memstore.store.database import Database, Transaction
from memstore.store.items import Filters
from memstore.waiting import in_thread

LARGEST_BUDGET = 10**9
FACTS, HITS = 40, 80  # offered to packing
# Kinds of facts that matter whatever is asked. "What should I avoid eating?" is far from "allergic to peanuts" for an
# embedder; nobody asks for standing instructions at all.
STANDING, MOST_STANDING = ("constraint", "procedure", "identity"), 8
SHORTEST_TURN = 12  # tokens, to guess how many recent messages to read: few are shorter
LONGEST, STEP = 4000, 1000  # messages that strategies see, and by how many they begin later
SETTING = "strategies"  # the key in a conversation's settings
MOST_READ = 2000  # messages at once
OVERHEAD = 4  # tokens that a message costs besides its content, at least
NEVER_RECALLED = {Role.SYSTEM, Role.DEVELOPER}  # instructions of another time are not what was said


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for: a context for this conversation, within `budget` tokens less `reserve`."""

    user_id: UUID
    conversation_id: UUID
    query: str | None
    budget: int
    system: str | None = None
    reserve: int = 0
    as_of: datetime | None = None
    strategies: Sequence[Strategy] | None = None  # None for those kept with the conversation
    keep: bool = True  # the receipt


async def assemble(database: Database, embedder: Embedder | None, counter: TokenCounter, request: Request) -> Context:
    """Give the context that was asked for; its receipt is kept where the conversation exists: asking makes none."""
    _check(request)
    newest, query = None, request.query
    if query is None:
        async with database.scope(request.user_id) as scope:
            newest = await _newest_question(scope, request)
        query = newest.text if newest else None
    question = await recall.prepare(embedder, request.user_id, query or "")
    async with database.scope(request.user_id) as scope:
        if request.query is not None:
            newest = await _newest_question(scope, request)
        chosen = await _strategies(scope, request)
        material, stored = await _material(scope, question, newest, request, chosen)
        found = await record.before(scope, request.conversation_id, request.as_of)
    if chosen:
        budget = request.budget - request.reserve
        material = await in_thread(compressed, material, stored, chosen, budget, counter)
    context = await in_thread(compose, material, request.budget, counter, request.reserve)
    receipt = record.completed(
        context.receipt,
        found,
        arguments=_arguments(request, chosen),
        embedder=question.embedder,
        conversation=request.conversation_id,
    )
    async with database.scope(request.user_id, lazily=True) as scope:
        if newest is not None or await messages.conversation(scope, request.conversation_id) is not None:
            if request.keep:
                receipt = await record.keep(scope, receipt)
            record.tell(scope, receipt)
    return replace(context, receipt=receipt)


def _arguments(request: Request, chosen: Sequence[Strategy]) -> Json:
    as_of = None if request.as_of is None else request.as_of.isoformat()
    return {"as_of": as_of, "strategies": record.told(chosen)}


def _check(request: Request) -> None:
    for name, tokens in (("budget", request.budget), ("reserve", request.reserve)):
        if type(tokens) is not int:
            raise InvalidInput(f"{name}={tokens!r} must be a whole number of tokens.")
    for name, text in (("the query", request.query), ("the system prompt", request.system)):
        if text is not None:
            check_text(text, name)
    if not 1 <= request.budget <= LARGEST_BUDGET or not 0 <= request.reserve < request.budget:
        raise InvalidInput(
            f"budget={request.budget} with reserve={request.reserve} leaves nothing; "
            "give a budget of at least 1 token and at most 10**9, and a smaller reserve."
        )


async def _strategies(scope: Transaction, request: Request) -> Sequence[Strategy]:
    """Give the strategies that were asked for, else those kept with the conversation."""
    if request.strategies is not None:
        return request.strategies
    settings = await messages.settings_of(scope, request.conversation_id, as_of=request.as_of)
    return strategies(settings.get(SETTING) or [])


async def _newest_question(scope: Transaction, request: Request) -> Message | None:
    return await messages.newest_of(scope, request.conversation_id, Role.USER, as_of=request.as_of)


async def _material(
    scope: Transaction,
    question: recall.Question,
    newest: Message | None,
    request: Request,
    chosen: Sequence[Strategy],
) -> tuple[Material, Stored]:
    found, refused = turns(await (_whole if chosen else _recent)(scope, request))
    asked = newest if newest is not None and request.query in (None, newest.text) else None
    others = [turn for turn in found if asked is None or turn.messages[0].id != asked.id]
    ending = others[-1:] if asked and others and _waits(others[-1], asked) else []
    hits = await _hits(scope, question, asked, request)
    nest = await summaries.outlines(scope, request.conversation_id, as_of=request.as_of)
    covering = await summaries.some(scope, [one.id for one in offered(nest, others, request.budget - request.reserve)])
    said = {"role": "user", "content": request.query} if request.query else None
    above = await summaries.summaries(scope, request.conversation_id, as_of=request.as_of) if chosen else []
    known = []
    if any(getattr(one, "by_facts", False) for one in chosen):
        known = await facts.facts(scope, as_of=request.as_of)
    material = Material(
        system=request.system,
        question=asked.as_chat() if asked else said,
        question_seq=asked.seq if asked else None,
        ending=ending,
        turns=[turn for turn in reversed(others) if turn not in ending],
        summaries=covering,
        facts=hits.facts[:FACTS],
        hits=hits.said[:HITS],
        left_out=[*hits.left_out, *(_unpaired(one) for one in refused)],
        unlisted=hits.unlisted,
    )
    return material, Stored(found, above, known)


def _unpaired(one: Message) -> Decision:
    says = f"{one.name or one.role}: {one.text or ''}"[:GIST]
    return Decision("recent", "message", one.id, one.tokens, Reason.UNPAIRED, seqs=(one.seq, one.seq), says=says)


def _waits(turn: Turn, asked: Message) -> bool:
    """Whether the model has yet to answer this: the results of the tools that it called for the question."""
    return turn.first_seq > asked.seq and turn.messages[-1].role == Role.TOOL


async def _recent(scope: Transaction, request: Request) -> list[Message]:
    """Give the newest messages in order, as many as could fill the budget."""
    found: list[Message] = []
    tokens = 0
    while tokens < request.budget or (found and found[-1].role == Role.TOOL):  # results are nothing without their call
        page = await messages.newest(
            scope,
            request.conversation_id,
            limit=max(16, min(MOST_READ, (request.budget - tokens) // SHORTEST_TURN)),
            before=found[-1].seq if found else messages.LAST,
            as_of=request.as_of,
        )
        found += page
        tokens += sum(one.tokens + OVERHEAD for one in page)
        if not page or page[-1].seq == 1:
            break
    found.reverse()
    return found


async def _whole(scope: Transaction, request: Request) -> list[Message]:
    """Give the conversation in order, for strategies: where it is very long, the newest `LONGEST` messages or more.

    The beginning then moves by `STEP` messages at once, so that what follows from it stays for as long.
    """
    found = await messages.newest(scope, request.conversation_id, limit=LONGEST + STEP, as_of=request.as_of)
    last = found[0].seq if found else 0
    return [one for one in reversed(found) if one.seq > (last - LONGEST) // STEP * STEP]


@dataclass(frozen=True, slots=True)
class Recalled:
    """What was recalled, the best first, and what became of the other candidates."""

    facts: Sequence[Hit]
    said: Sequence[Hit]
    left_out: Sequence[Decision]
    unlisted: Mapping[Reason, int]


async def _hits(scope: Transaction, question: recall.Question, asked: Message | None, request: Request) -> Recalled:
    """Give facts and other hits, the best first. Summaries of other conversations stand among the hits."""
    standing = await facts.standing(scope, STANDING, limit=MOST_STANDING, as_of=request.as_of)
    ranking = await recall.candidates(scope, question, Filters(as_of=request.as_of), also=standing)
    passed = _Passed(asked, request)
    said = passed.those(ranking.of(Tier.MESSAGES, Tier.SUMMARIES))
    relevant = list(best_of_each(ranking.of(Tier.FACTS)))
    wanted = [*islice(_interleaved(relevant, standing), FACTS), *islice(best_of_each(said), HITS)]
    found = await recall.hits(scope, wanted, request.as_of)
    known = {hit.id for hit in found}
    twice = passed.through - sum(one.unit.tier != Tier.FACTS for one in wanted)
    unlisted = {Reason.FILTERED: passed.filtered, Reason.DUPLICATE: twice}
    unlisted[Reason.BELOW_SCORE] = len(ranking.tiers) - len(wanted) - sum(unlisted.values())
    return Recalled(
        facts=[hit for hit in found if hit.tier == Tier.FACTS],
        said=[hit for hit in found if hit.tier != Tier.FACTS],
        left_out=[_superseded(one) for one in wanted if one.unit.item_id not in known],
        unlisted=unlisted,
    )


@dataclass(slots=True)
class _Passed:
    """Lets through what may stand among the hits, and counts."""

    asked: Message | None
    request: Request
    through: int = 0
    filtered: int = 0

    def those(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        for one in candidates:
            if _recallable(one.unit, self.asked, self.request):
                self.through += 1
                yield one
            else:
                self.filtered += 1


def _superseded(one: Candidate) -> Decision:
    """Give the decision on a fact that held once."""
    said_at, score = one.unit.occurred_at, round(one.score, 6)
    section, kind = ("facts", "fact") if one.unit.tier == Tier.FACTS else ("hits", str(one.unit.tier))
    return Decision(section, kind, one.unit.item_id, 0, Reason.SUPERSEDED, score, one.parts, said_at=said_at)


def _recallable(unit: Unit, asked: Message | None, request: Request) -> bool:
    """Whether a unit may stand among the hits: the question and this conversation's summaries have their own places."""
    if unit.tier == Tier.SUMMARIES:
        return unit.conversation_id != request.conversation_id
    return unit.role not in NEVER_RECALLED and (asked is None or unit.item_id != asked.id)


def _interleaved(relevant: Sequence[Candidate], standing: Sequence[UUID]) -> Iterator[Candidate]:
    """Give facts in the order of relevance, with a standing one after each, until there are no more of those."""
    by_id = {one.unit.item_id: one for one in relevant}
    pairs = zip_longest(relevant, [by_id[fact] for fact in standing if fact in by_id])
    return best_of_each(one for pair in pairs for one in pair if one is not None)
