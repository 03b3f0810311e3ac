"""The path of a context: a request → what is gathered for it → compressed → composed, with its receipt kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memstore.assemble import record, render
from memstore.assemble.compose import Layout
from memstore.assemble.compression import compressed
from memstore.assemble.cover import offered
from memstore.assemble.gather import Gathered, gather, newest_question, read_ahead, said_before
from memstore.assemble.material import Material, Target
from memstore.assemble.request import Assembly, Request, settled
from memstore.assemble.strategies.registry import strategies_told
from memstore.assemble.turns import Turn
from memstore.function_calls import name_of
from memstore.ingest.summaries.lines import NOTHING
from memstore.models import Context, Json, Message, Tier
from memstore.providers import ChatMessage, Embedder, Reranker, TokenCounter
from memstore.retrieve import recall
from memstore.retrieve.reranked import reranked
from memstore.retrieve.rewritten import NO_MODELS, Models, Rewritten, rewritten
from memstore.store import summaries
from memstore.store.database import Database, Transaction
from memstore.waiting import in_thread


async def assemble(
    database: Database,
    embedder: Embedder | None,
    counter: TokenCounter,
    request: Request,
    models: Models = NO_MODELS,
) -> Context:
    """Give the context that was asked for; its receipt is kept where the conversation exists: asking makes none."""
    request.check_texts()
    asked = await _asked(database, request, models)
    newest, made = asked.newest, asked.made
    question = await recall.prepare(database, embedder, request.user_id, asked.query, asked.rewritten.others)
    async with database.scope(request.user_id) as scope:
        made = made or await settled(scope, request)
        await _read_ahead(scope, question, made)
        gathered = await gather(scope, question, newest, made)
        layout = await _laid_out(scope, made, gathered, counter)
        found = await record.before(scope, request.conversation_id, request.as_of, made.request.viewer)
    if models.reranker is not None:
        layout = replace(
            layout, material=await in_thread(_reranked, layout.material, models.reranker, asked.rewritten.text)
        )
    if made.strategies:
        material = await in_thread(compressed, layout.material, gathered.stored, made.strategies, layout.base, counter)
        layout = replace(layout, material=material)
    context = await in_thread(layout.compose)
    receipt = record.completed(
        context.receipt,
        replace(found, hints=(*found.hints, *made.hints, *made.sight.hints(), *filter(None, [asked.rewritten.hint]))),
        arguments=_arguments(made),
        models={"embedder": question.embedded_by} | models.names(asked.rewritten),
        texts=asked.rewritten.texts,
        conversation=request.conversation_id,
    )
    if made.exists:
        async with database.scope(request.user_id, lazily=True) as scope:
            if request.keep:
                receipt = await record.keep(scope, receipt)
            else:
                record.tell(scope, receipt)
    return replace(context, receipt=receipt, **_statistics(made, layout.material, gathered.stored.turns, context))


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked: the query, what is looked for beside it, and what had to be read to know it."""

    query: str
    rewritten: Rewritten
    newest: Message | None
    made: Assembly | None


async def _asked(database: Database, request: Request, models: Models) -> _Asked:
    """Give what is asked: the newest message of a person, where nothing else is."""
    newest, made, before = None, None, list[ChatMessage]()
    if request.query is None or models.rewriter is not None:
        async with database.scope(request.user_id) as scope:
            made = await settled(scope, request)
            newest = await newest_question(scope, made) if request.query is None else None
            before = await said_before(scope, made, newest) if models.rewriter is not None else []
    query = request.query or (newest and newest.text) or ""
    return _Asked(query, await rewritten(database, request.user_id, models, query, before), newest, made)


async def _read_ahead(scope: Transaction, question: recall.Question, made: Assembly) -> None:
    """Read in one round trip what does not depend on anything else that is read."""
    request = made.request
    async with scope.ahead() as reads:
        await read_ahead(reads, question, made)
        if request.as_of is None:
            await record.before(reads, request.conversation_id, None, request.viewer)


async def _laid_out(scope: Transaction, made: Assembly, gathered: Gathered, counter: TokenCounter) -> Layout:
    """Lay the material out, with the summaries of what is older than its recent turns."""
    request = made.request
    target = Target(made.budget, counter, made.reserve, request.format, request.tools)
    layout = Layout(gathered.material, target)
    if not gathered.nest:
        return layout
    finest = sum(one.tokens for one in gathered.nest if one.level == 1)
    upto_seq, tokens, is_settled = await in_thread(layout.older_than_recent, finest)
    covering = [one.id for one in offered(gathered.nest, upto_seq, tokens)]
    told = [one for one in await summaries.some(scope, covering) if one.text != NOTHING]  # they cover, and say nothing
    return layout.with_summaries(told, is_settled)


def _reranked(material: Material, reranker: Reranker, question: str) -> Material:
    """Give the material with its facts and hits, read together, as a reranker orders them."""
    every = sorted([*material.facts, *material.hits], key=lambda hit: -hit.score)
    ordered = reranked(reranker, question, every)
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
        "format": render.format_told(request.format),
        "tools": [name_of(one) for one in request.tools] or None,
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
