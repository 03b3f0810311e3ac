"""The path of a context: request → candidates → selection → prompt → receipt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from uuid import UUID

from memstore import ids
from memstore._compat import run_both, to_thread
from memstore.context.candidates import (
    ConversationHistory,
    collect_candidates,
    hits_for_budget,
    load_history,
)
from memstore.context.formats import describe_format
from memstore.context.items import BudgetSpec, Candidates, merge_sections
from memstore.context.layout import Layout
from memstore.context.request import Request, ResolvedRequest, reads_to_resolve, resolve
from memstore.context.strategies import describe_strategies
from memstore.context.strategies.base import ConversationView, Strategy, Turn, compress, cover, view_of
from memstore.derive.summaries.extractive import EMPTY_SUMMARY
from memstore.errors import BudgetTooSmall
from memstore.events import EventType
from memstore.models import Context, Decision, Fact, Json, Reason, Receipt, Section, Summary, Tier
from memstore.providers import Embedder, EmbedderLoader, Reranker, TokenCounter, load_stored_embedder
from memstore.search.grouping import rerank
from memstore.search.query import Query, QueryBuilder
from memstore.store import erasure, receipts, summaries
from memstore.store.database import Database, Transaction
from memstore.store.embedding_models import id_of
from memstore.tool_calls import name_of

# Few hits are offered at first: most budgets are full with them. Where one is not, since they say what the recent turns
# say, so many times as many are offered.
FULL, MORE = 0.97, 4
INDENTED = 0.9  # of the tokens of summaries in a context: the rest are blanks, and the fence
# With strategies the conversation as they leave it comes first: their trigger is a share of the room, and what they
# have told of the oldest turns would be the first to go.
COMPRESSED_WEIGHTS = (
    Section("recent", weight=0.8),
    Section("hits", weight=0.1),
    Section("facts", weight=0.05),
    Section("summaries", weight=0.05),
)
# Added to the budget that was found to be needed, try by try: nothing at first, as the least of them is wanted.
STEPS = (*[0] * 8, *(2**n for n in range(10)))


async def build_context(
    database: Database,
    embedder: Embedder | None,
    counter: TokenCounter,
    request: Request,
    reranker: Reranker | None = None,
    exactly: EmbedderLoader = load_stored_embedder,
) -> Context:
    """Return the context that was asked for; its receipt is kept where the conversation exists: asking makes none.

    The question is embedded while the history is read, and again where that tells that another embedder serves the user
    by now; `exactly` gives that one. No transaction waits for the embedder: one that is slow keeps no connection from
    others.
    """
    request.check_texts()
    queries = QueryBuilder(database, request.user_id, embedder, exactly)
    likely = await queries.guess_embedder()
    reading = partial(_read_history, database, request, id_of(likely))
    if request.query is None:  # the history has the question
        resolved, history = await reading()
        text = (history.question and history.question.text) or ""
        query = await queries.build(text, likely)
    else:
        text = request.query
        query, (resolved, history) = await run_both(partial(queries.build, text, likely), reading)
    query, units = await queries.ensure_model(query, history.version)
    query = await queries.add_subqueries(query)
    history = replace(history, version=units)
    builder = ContextBuilder(database, text, query, history, counter, reranker)
    try:
        candidates, context = await builder.build(resolved)
    except BudgetTooSmall as error:
        needed = await builder.find_sufficient_budget(resolved, error.needed)
        raise BudgetTooSmall(needed, resolved.budget, error.section) from None
    models = {"embedder": query.embedded_by} | ({"reranker": reranker.name} if reranker else {})
    receipt = _finish_receipt(context.receipt, resolved, models)
    if resolved.exists:
        receipt = await _save_receipt(database, resolved, receipt)
    return replace(context, receipt=receipt, **_statistics(resolved, history, candidates, receipt))


async def _read_history(
    database: Database, request: Request, model: UUID
) -> tuple[ResolvedRequest, ConversationHistory]:
    async with database.user_transaction(request.user_id, reads_to_resolve(request)) as scope:
        resolved = await resolve(scope, request)
        return resolved, await load_history(scope, resolved, model)


@dataclass(frozen=True, slots=True)
class ContextBuilder:
    """Builds contexts that answer one question beside one history, within one budget or another."""

    database: Database
    question: str
    query: Query
    history: ConversationHistory
    counter: TokenCounter
    reranker: Reranker | None
    scores: dict[str, float] = field(default_factory=dict)  # the reranker's: each text is read once

    async def build(self, resolved: ResolvedRequest) -> tuple[Candidates, Context]:
        """Compose what is recalled; where that leaves room and there are more hits, with more of them."""
        most = hits_for_budget(resolved.budget, self.history.tokens)
        for last in (False, True):
            async with self.database.user_transaction(resolved.request.user_id) as scope:
                found = await collect_candidates(scope, self.query, resolved, self.history, most)
                layout = await self._lay_out(scope, resolved, found)
            # While no connection is held.
            layout, context = await to_thread(self._compose, layout, resolved)
            if last or len(found.hits) < most or context.tokens >= FULL * layout.target.most:
                break
            most *= MORE
        return layout.candidates, context

    async def find_sufficient_budget(self, resolved: ResolvedRequest, needed: int) -> int:
        """Return a budget that is enough, beginning with what was `needed` in one that was not.

        With more room strategies and summaries offer more, and more of it must be in, up to the minimums in tokens. So
        each budget is tried.
        """
        for step in STEPS:
            try:
                await self.build(replace(resolved, budget=needed))
            except BudgetTooSmall as error:
                needed = error.needed + step
            else:
                break
        return needed

    async def _lay_out(self, scope: Transaction, resolved: ResolvedRequest, candidates: Candidates) -> Layout:
        """Lay the candidates out, with the summaries of what is older than the recent turns."""
        request, outlines = resolved.request, self.history.outlines
        target = BudgetSpec(resolved.budget, self.counter, resolved.reserve, request.format, request.tools)
        layout = Layout(candidates, target)
        if not outlines:
            return layout
        finest = sum(outline.tokens for outline in outlines if outline.level == 1)
        upto_seq, tokens, static = await to_thread(layout.room_for_summaries, finest)
        newest = max(outline.to_seq for outline in outlines)
        covering = cover(outlines, min(upto_seq, newest), int(tokens * INDENTED))
        rows = await summaries.some(scope, [outline.id for outline in covering])
        return layout.with_summaries(
            [one for one in rows if one.text != EMPTY_SUMMARY], static
        )  # they cover, say nothing

    def _compose(self, layout: Layout, resolved: ResolvedRequest) -> tuple[Layout, Context]:
        if self.reranker is not None:
            layout = replace(layout, candidates=self._rerank(self.reranker, layout.candidates))
        if resolved.strategies:
            history = self.history
            stored = (history.turns, layout.base, self.counter, history.summaries, history.facts)
            layout = replace(layout, candidates=compress_turns(layout.candidates, resolved.strategies, *stored))
        return layout, layout.compose()

    def _rerank(self, reranker: Reranker, candidates: Candidates) -> Candidates:
        """Return the candidates with their facts and hits, read together, as the reranker orders them."""
        every = sorted([*candidates.facts, *candidates.hits], key=lambda hit: -hit.score)
        ordered = rerank(reranker, self.question, every, self.scores)
        facts = [hit for hit in ordered if hit.tier == Tier.FACTS]
        return replace(candidates, facts=facts, hits=[hit for hit in ordered if hit.tier != Tier.FACTS])


def compress_turns(
    candidates: Candidates,
    strategies: Sequence[Strategy],
    turns: Sequence[Turn],
    room: int,
    counter: TokenCounter,
    summaries: Sequence[Summary] = (),
    facts: Sequence[Fact] = (),
) -> Candidates:
    """Return the candidates with their turns compressed for `room` tokens.

    Strategies read every turn in order, the question's too, and the conversation's summaries and facts.
    """
    must = {turn.first_seq for turn in candidates.ending} | {candidates.question_seq}
    view = view_of(
        turns,
        max(1, room),
        counter,
        keep=frozenset(seq for seq in must if seq is not None),
        summaries=summaries,
        facts=facts,
        relevance={hit.id: hit.score for hit in candidates.hits},
    )
    view = compress(view, strategies)
    return replace(
        candidates,
        turns=[entry for entry in reversed(view.entries) if entry.first_seq not in must],
        left_out=[*candidates.left_out, *_dropped_turns(view)],
        compressed=view.steps,
        sections=merge_sections(COMPRESSED_WEIGHTS, candidates.sections),
        static=not any(getattr(strategy, "by_question", False) for strategy in strategies),
    )


def _dropped_turns(view: ConversationView) -> Iterable[Decision]:
    """Yield a decision for the turns that each strategy left out; there may be thousands of them."""
    for (strategy, reason), group in groupby(view.dropped, key=lambda one: (one.strategy, one.reason)):
        turns = [one.turn for one in group]
        seqs = sorted(turn.first_seq for turn in turns)
        tokens = sum(view.sizes[seq] for seq in seqs)
        note = f"{strategy}: {len(turns)} turns between the messages {seqs[0]} and {seqs[-1]}: {reason}"
        first = turns[0].messages[0]
        yield Decision("recent", "turns", first.id, tokens, Reason.COMPRESSED, note=note, seqs=(seqs[0], seqs[-1]))


def _finish_receipt(receipt: Receipt, resolved: ResolvedRequest, models: Mapping[str, str]) -> Receipt:
    """Return the receipt with what it was made with."""
    request = resolved.request
    # The texts of sections stand among the receipt's texts.
    sections = [{name: value for name, value in one.as_dict().items() if name != "text"} for one in resolved.sections]
    arguments = {
        "as_of": None if request.as_of is None else request.as_of.isoformat(),
        "strategies": describe_strategies(resolved.strategies) if resolved.strategies else [],
        "sections": sections or None,
        "viewer": request.viewer,
        "visibility": resolved.rule if request.viewer else None,
        "format": describe_format(request.format),
        "tools": [name_of(tool) for tool in request.tools] or None,
        "masked": dict(request.redacted) or None,
    }
    return replace(
        receipt,
        arguments={name: value for name, value in arguments.items() if value is not None},
        models={**models, "memstore": _version()},
        hints=(*resolved.hints, *resolved.visibility.hints(), *request.hints()),
        conversation_id=request.conversation_id,
    )


async def _save_receipt(database: Database, resolved: ResolvedRequest, receipt: Receipt) -> Receipt:
    """Keep the receipt and tell of it; return it with its id. Unless something was erased, which it may quote."""
    epoch = erasure.SHARED_VERSION if database.capabilities.writes else erasure.VERSION  # who only reads locks nothing
    async with database.user_transaction(resolved.request.user_id, [epoch], async_commit=True) as scope:
        if scope.first != [resolved.epoch]:
            return receipt
        if resolved.request.keep:
            receipt = replace(receipt, id=ids.uuid7())
        id = None if receipt.id is None else str(receipt.id)
        for step in receipt.compressed:
            body = {
                "strategy": step.strategy,
                "before": step.tokens_before,
                "after": step.tokens_after,
                "saved": step.saved,
            }
            scope.happened(EventType.SUMMARIZATION_COMPLETED, receipt.conversation_id, receipt=id, **body)
        body = {"budget": receipt.budget, "tokens": receipt.tokens, "sections": dict(receipt.sections)}
        scope.happened(EventType.CONTEXT_ASSEMBLED, receipt.conversation_id, receipt=id, **body)
        if resolved.request.keep:
            await receipts.add(scope, receipt)
    return receipt


def _statistics(
    resolved: ResolvedRequest, history: ConversationHistory, candidates: Candidates, receipt: Receipt
) -> Json:
    """Return how many messages are in word for word, of how many, and by which strategies."""
    sizes = {turn.messages[0].id: len(turn.messages) for turn in history.turns}
    recent = [one for one in receipt.included if one.section == "recent" and one.kind != "block"]
    always = (candidates.question_seq is not None) + sum(len(turn.messages) for turn in candidates.ending)
    last = resolved.last
    if resolved.request.as_of is not None:
        last = max((turn.messages[-1].seq for turn in history.turns), default=0)
    return {
        "messages_kept": sum(sizes.get(one.id, 0) for one in recent if one.id) + always,
        "messages_total": max(0, last - resolved.after),
        "strategies": tuple(strategy.name for strategy in resolved.strategies),
    }


@cache
def _version() -> str:
    try:
        return version("memstore")
    except PackageNotFoundError:
        return "unknown"
