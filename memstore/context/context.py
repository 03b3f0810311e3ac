"""The path of a context: a request → what is gathered for it → compressed → composed, with its receipt kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol
from uuid import UUID

from memstore._compat import run_both, to_thread
from memstore.context import formats as render
from memstore.context import receipt_store
from memstore.context.compose import Layout
from memstore.context.compression import compressed
from memstore.context.gather import gather, offered_at_first
from memstore.context.history import ConversationHistory, load_history, newest_question
from memstore.context.material import Material, Target
from memstore.context.request import Assembly, Request, ahead, settled
from memstore.context.strategies.registry import strategies_told
from memstore.context.summary_cover import offered
from memstore.context.turns import Turn
from memstore.derive.summaries.hierarchy import EMPTY_SUMMARY
from memstore.errors import BudgetTooSmall
from memstore.models import Context, Json, Message, Tier
from memstore.providers import Embedder, EmbedderLoader, Reranker, TokenCounter, load_stored_embedder
from memstore.search.query import Query, QueryBuilder
from memstore.search.reranking import rerank
from memstore.store import erasure, summaries
from memstore.store.database import Database, Transaction
from memstore.store.embedding_models import id_of
from memstore.store.summaries import Outline
from memstore.tool_calls import name_of

# Few hits are offered at first: most budgets are full with them. Where one is not, since they say what the recent turns
# say, so many times as many are offered, and once more.
FULL, MORE = 0.97, 4
EXACTLY, TRIED = 8, 18  # budgets that are tried as they are found to be needed, and in all


async def assemble(
    database: Database,
    embedder: Embedder | None,
    counter: TokenCounter,
    request: Request,
    reranker: Reranker | None = None,
    exactly: EmbedderLoader = load_stored_embedder,
) -> Context:
    """Give the context that was asked for; its receipt is kept where the conversation exists: asking makes none.

    The question is embedded while the stretch is read, and again where that tells that another embedder serves the user
    by now; `exactly` gives that one. No transaction waits for the embedder: one that is slow keeps no connection from
    others.
    """
    request.check_texts()
    begun = None if request.query is not None else await _begun(database, request)
    newest = begun[1] if begun else None
    text = request.query or (newest.text if newest else None) or ""
    builder = QueryBuilder(database, request.user_id, embedder, exactly)
    likely = await builder.guess_embedder()
    query, (made, stretch) = await run_both(
        partial(builder.build, text, likely), partial(_read, database, request, begun, id_of(likely))
    )
    query, version = await builder.ensure_model(query, stretch.version)
    stretch = replace(stretch, version=version)
    query = await builder.add_subqueries(query)
    order = None if reranker is None else partial(_reranked, reranker, text, {})
    composed = partial(_composed, database, query, stretch, counter, order)
    try:
        layout, context = await composed(made)
    except BudgetTooSmall as error:
        needed = await _enough(composed, made, error.needed)
        raise BudgetTooSmall(needed, made.budget, error.section) from None
    found = stretch.before
    receipt = receipt_store.finalize(
        context.receipt,
        replace(found, hints=(*found.hints, *made.hints, *made.sight.hints(), *filter(None, [request.masks()]))),
        arguments=_arguments(made),
        models={"embedder": query.embedded_by} | ({"reranker": reranker.name} if reranker else {}),
        conversation=request.conversation_id,
    )
    if made.exists:
        epoch = (
            erasure.lock_user_shared if database.capabilities.writes else erasure.user_version
        )  # who only reads may lock nothing
        async with database.user_transaction(request.user_id, async_commit=True, prefetch=epoch) as scope:
            if await epoch(scope) != made.epoch:
                pass  # it may quote what was erased meanwhile
            elif request.keep:
                receipt = await receipt_store.save(scope, receipt)
            else:
                receipt_store.emit_event(scope, receipt)
    return replace(context, receipt=receipt, **_statistics(made, layout.material, stretch.turns, context))


async def _begun(database: Database, request: Request) -> tuple[Assembly, Message | None]:
    """Settle a request that has no query, and find the message that asks."""
    async with database.user_transaction(request.user_id, prefetch=partial(ahead, request=request)) as scope:
        made = await settled(scope, request)
        return made, await newest_question(scope, made)


async def _read(
    database: Database, request: Request, begun: tuple[Assembly, Message | None] | None, model: UUID
) -> tuple[Assembly, ConversationHistory]:
    """Read what does not depend on the question's vector."""
    first = partial(ahead, request=request) if begun is None else None
    async with database.user_transaction(request.user_id, prefetch=first) as scope:
        made, newest = begun or (await settled(scope, request), None)
        return made, await load_history(scope, made, newest, model)


async def _composed(
    database: Database,
    query: Query,
    stretch: ConversationHistory,
    counter: TokenCounter,
    order: Callable[[Material], Material] | None,
    made: Assembly,
) -> tuple[Layout, Context]:
    """Compose what is recalled for the question; where that leaves room and there are more hits, with more of them.

    `order` puts them in another order, while no connection is held.
    """
    most = offered_at_first(made.budget, stretch.tokens)
    for last in (False, False, True):
        async with database.user_transaction(made.request.user_id) as scope:
            material = await gather(scope, query, made, stretch, most)
            layout = await _laid_out(scope, made, material, stretch.nest, counter)
        if order is not None:
            layout = replace(layout, material=await to_thread(order, layout.material))
        if made.strategies:
            given = (layout.material, stretch.stored, made.strategies, layout.base, counter)
            layout = replace(layout, material=await to_thread(compressed, *given))
        context = await to_thread(layout.compose)
        if last or len(material.hits) < most or context.tokens >= FULL * layout.target.most:
            break
        most *= MORE
    return layout, context


class _Composing(Protocol):
    async def __call__(self, made: Assembly) -> tuple[Layout, Context]:
        """Compose within the budget of this assembly."""


async def _enough(composed: _Composing, made: Assembly, needed: int) -> int:
    """Give a budget that is enough, beginning with what was `needed` in one that was not.

    With more room strategies and summaries offer more, and more of it must be in, up to the minimums in tokens. So each
    budget is tried: a few as they are found, as the least of them is wanted, then some with growing steps.
    """
    for tried in range(TRIED):
        try:
            await composed(replace(made, budget=needed))
        except BudgetTooSmall as error:
            needed = error.needed + (2 ** (tried - EXACTLY) if tried >= EXACTLY else 0)
        else:
            return needed
    return needed


async def _laid_out(
    scope: Transaction, made: Assembly, material: Material, nest: Sequence[Outline], counter: TokenCounter
) -> Layout:
    """Lay the material out, with the summaries of what is older than its recent turns."""
    request = made.request
    layout = Layout(material, Target(made.budget, counter, made.reserve, request.format, request.tools))
    if not nest:
        return layout
    finest = sum(one.tokens for one in nest if one.level == 1)
    upto_seq, tokens, is_settled = await to_thread(layout.older_than_recent, finest)
    covering = [one.id for one in offered(nest, upto_seq, tokens)]
    told = [
        one for one in await summaries.some(scope, covering) if one.text != EMPTY_SUMMARY
    ]  # they cover, and say nothing
    return layout.with_summaries(told, is_settled)


def _reranked(reranker: Reranker, question: str, known: dict[str, float], material: Material) -> Material:
    """Give the material with its facts and hits, read together, as a reranker orders them.

    Each text is read once, however often a context is composed: `known` are the scores of those that were.
    """
    every = sorted([*material.facts, *material.hits], key=lambda hit: -hit.score)
    ordered = rerank(reranker, question, every, known)
    facts = [hit for hit in ordered if hit.tier == Tier.FACTS]
    return replace(material, facts=facts, hits=[hit for hit in ordered if hit.tier != Tier.FACTS])


def _arguments(made: Assembly) -> Json:
    """Give what the context was asked with; the texts of sections stand among the receipt's texts."""
    request = made.request
    limits = [{name: value for name, value in one.as_dict().items() if name != "text"} for one in made.sections]
    return {
        "as_of": None if request.as_of is None else request.as_of.isoformat(),
        "strategies": strategies_told(made.strategies),
        "sections": limits or None,
        "viewer": request.viewer,
        "visibility": made.rule if request.viewer else None,
        "format": render.describe_format(request.format),
        "tools": [name_of(one) for one in request.tools] or None,
        "masked": dict(request.found) or None,
    }


def _statistics(made: Assembly, material: Material, found: Sequence[Turn], context: Context) -> Json:
    """Give how many of the stretch's messages are in word for word, of how many, and by which strategies."""
    sizes = {turn.messages[0].id: len(turn.messages) for turn in found}
    inside = [one for one in context.receipt.included if one.section == "recent" and one.kind != "block"]
    surely = (material.question_seq is not None) + sum(len(turn.messages) for turn in material.ending)
    last = made.last if made.request.as_of is None else max((turn.messages[-1].seq for turn in found), default=0)
    return {
        "messages_kept": sum(sizes.get(one.id, 0) for one in inside if one.id) + surely,
        "messages_total": max(0, last - made.after),
        "strategies": tuple(one.name for one in made.strategies),
    }
