"""The path of a context: request → candidates → selection → prompt → receipt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from uuid import UUID

from memstore import ids
from memstore._compat import run_both, to_thread
from memstore.context import formats
from memstore.context.candidates import collect_candidates, hits_for_budget
from memstore.context.history import ConversationHistory, load_history, newest_question
from memstore.context.items import BudgetSpec, Candidates
from memstore.context.layout import Layout, compress_turns
from memstore.context.receipt import stable_prefix
from memstore.context.request import Request, ResolvedRequest, resolve
from memstore.context.strategies import describe_strategies
from memstore.context.summary_cover import summaries_for_context
from memstore.derive.summaries.extractive import EMPTY_SUMMARY
from memstore.errors import BudgetTooSmall
from memstore.events import EventType
from memstore.models import Context, Json, Message, Receipt, Tier
from memstore.providers import Embedder, EmbedderLoader, Reranker, TokenCounter, load_stored_embedder
from memstore.search.query import Query, QueryBuilder
from memstore.search.reranking import rerank
from memstore.store import erasure, receipts, summaries
from memstore.store.database import Database, Transaction
from memstore.store.embedding_models import id_of
from memstore.tool_calls import name_of

# Few hits are offered at first: most budgets are full with them. Where one is not, since they say what the recent turns
# say, so many times as many are offered, and once more.
FULL, MORE = 0.97, 4
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
    begun = None if request.query is not None else await _resolve_question(database, request)
    newest = begun[1] if begun else None
    text = request.query or (newest.text if newest else None) or ""
    queries = QueryBuilder(database, request.user_id, embedder, exactly)
    likely = await queries.guess_embedder()
    query, (resolved, history) = await run_both(
        partial(queries.build, text, likely), partial(_read_history, database, request, begun, id_of(likely))
    )
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
    receipt = _finish_receipt(context.receipt, resolved, history, models)
    if resolved.exists:
        receipt = await _save_receipt(database, resolved, receipt)
    return replace(context, receipt=receipt, **_statistics(resolved, history, candidates, receipt))


async def _resolve_question(database: Database, request: Request) -> tuple[ResolvedRequest, Message | None]:
    """Resolve a request that has no query, and find the message that asks."""
    async with database.user_transaction(request.user_id, prefetch=erasure.user_version) as scope:
        resolved = await resolve(scope, request)
        return resolved, await newest_question(scope, resolved)


async def _read_history(
    database: Database, request: Request, begun: tuple[ResolvedRequest, Message | None] | None, model: UUID
) -> tuple[ResolvedRequest, ConversationHistory]:
    async with database.user_transaction(request.user_id, prefetch=None if begun else erasure.user_version) as scope:
        resolved, newest = begun or (await resolve(scope, request), None)
        return resolved, await load_history(scope, resolved, newest, model)


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
        for last in (False, False, True):
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
        covering = [outline.id for outline in summaries_for_context(outlines, upto_seq, tokens)]
        rows = await summaries.some(scope, covering)
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


def _finish_receipt(
    receipt: Receipt, resolved: ResolvedRequest, history: ConversationHistory, models: Mapping[str, str]
) -> Receipt:
    """Return the receipt with what it was made with, and the tokens that are the same as in the context before."""
    request, previous = resolved.request, history.previous
    # The texts of sections stand among the receipt's texts.
    sections = [{name: value for name, value in one.as_dict().items() if name != "text"} for one in resolved.sections]
    arguments = {
        "as_of": None if request.as_of is None else request.as_of.isoformat(),
        "strategies": describe_strategies(resolved.strategies),
        "sections": sections or None,
        "viewer": request.viewer,
        "visibility": resolved.rule if request.viewer else None,
        "format": formats.describe_format(request.format),
        "tools": [name_of(tool) for tool in request.tools] or None,
        "masked": dict(request.redacted) or None,
    }
    return replace(
        receipt,
        stable_prefix=stable_prefix(receipt.sent, previous.sent) if previous else 0,
        previous=previous.id if previous else None,
        arguments={name: value for name, value in arguments.items() if value is not None},
        models={**models, "memstore": _version()},
        hints=(*receipt.hints, *history.hints, *resolved.hints, *resolved.visibility.hints(), *request.hints()),
        conversation_id=request.conversation_id,
    )


async def _save_receipt(database: Database, resolved: ResolvedRequest, receipt: Receipt) -> Receipt:
    """Keep the receipt and tell of it; return it with its id. Unless something was erased, which it may quote."""
    epoch = (
        erasure.lock_user_shared if database.capabilities.writes else erasure.user_version
    )  # who only reads may lock nothing
    async with database.user_transaction(resolved.request.user_id, async_commit=True, prefetch=epoch) as scope:
        if await epoch(scope) != resolved.epoch:
            return receipt
        if resolved.request.keep:
            receipt = replace(receipt, id=ids.uuid7())
        id = None if receipt.id is None else str(receipt.id)
        for step in receipt.compressed:
            body = {"strategy": step.strategy, "before": step.before, "after": step.after, "saved": step.saved}
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
