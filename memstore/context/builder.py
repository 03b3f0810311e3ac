"""The path of a context: request → candidates → selection → prompt → receipt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

from memstore import ids
from memstore._compat import run_both, to_thread
from memstore._version import __version__
from memstore.context.candidates import collect_candidates, hits_for_budget
from memstore.context.history import (
    ConversationHistory,
    SpaceHistory,
    load_history,
    read_profile_facts,
    reads_of_history,
)
from memstore.context.items import Candidates, merge_sections
from memstore.context.layout import compose, plan_context
from memstore.context.receipt import pack
from memstore.context.request import PROFILE_SECTION, Request, ResolvedRequest, resolve
from memstore.context.selection import ContextPlan, Selection, select_static
from memstore.derive.summaries.extractive import EMPTY_SUMMARY
from memstore.errors import BudgetTooSmall
from memstore.models import Context, Decision, EventType, Fact, Json, Reason, Receipt, Section, Summary, Tier
from memstore.models.contexts import MAX_PREVIEW_CHARS
from memstore.providers import Embedder, Reranker, TokenCounter
from memstore.search.recall import Query, build_query, rerank
from memstore.store import erasure, messages, receipts, summaries
from memstore.store.database import Database
from memstore.store.rows import model_id
from memstore.store.summaries import Outline
from memstore.strategies import describe_strategies
from memstore.strategies.base import ConversationView, Strategy, Turn, compress, cover, view_of
from memstore.tool_calls import name_of

# Of the tokens of summaries in a context: the rest are blanks, and the fence.
TEXT_SHARE = 0.9
# With strategies the conversation as they leave it comes first: their trigger is a share of the room, and what they
# have told of the oldest turns would be the first to go.
COMPRESSED_WEIGHTS = (
    Section("recent", weight=0.8),
    Section("hits", weight=0.1),
    Section("facts", weight=0.05),
    Section("summaries", weight=0.05),
)


async def build_context(
    database: Database,
    embedder: Embedder | None,
    counter: TokenCounter,
    request: Request,
    reranker: Reranker | None = None,
) -> Context:
    """Return the context that was asked for; its receipt is kept where the conversation exists: asking makes none.

    The question is embedded while the history is read. No transaction waits for the embedder: a slow one keeps no
    connection from others. The exception is a question that names a speaker whom this process finds for the first time.
    Raises `ModelChanged` where the embedder is not the active one.
    """
    request.check()
    reading = partial(_read_owners, database, request, model_id(embedder), counter)
    embedding = partial(build_query, database, request.user_id, embedder)
    if request.query is None:
        resolved, history, spaces = await reading()
        text = (history.question and history.question.text) or ""
        query = await embedding(text)
    else:
        text = request.query
        query, (resolved, history, spaces) = await run_both(partial(embedding, text), reading)
    builder = ContextBuilder(database, text, query, history, spaces, counter, reranker)
    try:
        context = await builder.build(resolved)
    except BudgetTooSmall as error:
        needed = await builder.find_sufficient_budget(resolved, error.needed)
        raise BudgetTooSmall(needed, resolved.budget, error.section) from None
    models = {"embedder": query.embedded_by} | ({"reranker": reranker.name} if reranker else {})
    receipt = replace(_finish_receipt(context.receipt, resolved, models), question=text[:MAX_PREVIEW_CHARS])
    if resolved.exists:
        packed = await to_thread(pack, context) if resolved.request.keep else b""
        receipt = await _save_receipt(database, resolved, receipt, packed)
    return replace(context, receipt=receipt, **_statistics(resolved, history))


async def _read_owners(
    database: Database, request: Request, model: UUID, counter: TokenCounter
) -> tuple[ResolvedRequest, ConversationHistory, Sequence[SpaceHistory]]:
    reading = partial(_read_history, database, request, model, counter)
    if not request.spaces:
        return (*await reading(), ())
    # Here: most contexts have none.
    from memstore.context.spaces import read_spaces  # noqa: PLC0415

    spaces, (resolved, history) = await run_both(partial(read_spaces, database, request, model), reading)
    return resolved, history, spaces


async def _read_history(
    database: Database, request: Request, model: UUID, counter: TokenCounter
) -> tuple[ResolvedRequest, ConversationHistory]:
    read_conversation, reads = messages.read_conversation(request.conversation_id), reads_of_history(request, model)
    async with database.user_transaction(request.user_id, [erasure.VERSION, read_conversation, *reads]) as tx:
        resolved = await resolve(tx, request, read_conversation)
        history = await load_history(tx, request, resolved, reads)
        section = next(
            (section for section in resolved.sections if section.name == PROFILE_SECTION and section.text is None), None
        )
        if section is None:
            return resolved, history
        standing = {fact.id for fact in history.standing}
        about = await read_profile_facts(
            tx, as_of=request.as_of, scope=request.scope, visibility=resolved.visibility, without=standing
        )
    return await to_thread(_add_profile, resolved, section, *about, counter), history


def _add_profile(
    resolved: ResolvedRequest, wanted: Section, subject: str, facts: Sequence[Fact], counter: TokenCounter
) -> ResolvedRequest:
    """Return the request with a profile as the text of the section that asks for one.

    It has the section's maximum, or a tenth of the room, and that is held free for it.
    """
    # Here: most contexts have no profile.
    from memstore.context.profile import compose_profile  # noqa: PLC0415

    room = max(1, resolved.target(counter).room_for_sections(resolved.request.system))
    maximum = 0.1 if wanted.maximum is None else wanted.maximum
    tokens = min(room, maximum if isinstance(maximum, int) else int(maximum * room))
    around = counter.count_message({"role": "system", "content": f"<{PROFILE_SECTION}>\n</{PROFILE_SECTION}>"})
    profile = compose_profile(subject, facts, counter, int((tokens - around) * TEXT_SHARE))
    held = wanted.minimum or tokens / room
    section = replace(wanted, text=[profile.text] if profile.text else [], static=True, minimum=held)
    sections = tuple(section if original is wanted else original for original in resolved.sections)
    return replace(resolved, sections=sections, profile=profile)


@dataclass(frozen=True, slots=True)
class ContextBuilder:
    """Builds contexts for one question and one history, within one budget or another."""

    database: Database
    question: str
    query: Query
    history: ConversationHistory
    spaces: Sequence[SpaceHistory]
    counter: TokenCounter
    reranker: Reranker | None

    async def build(self, resolved: ResolvedRequest) -> Context:
        """Recall candidates, and compose what is selected of them; no connection is held meanwhile."""
        most = hits_for_budget(resolved.budget, self.history.tokens)
        sources = (self.database, self.query, resolved, self.history, most)
        if self.spaces:
            from memstore.context.spaces import collect_with_spaces  # noqa: PLC0415

            candidates = await collect_with_spaces(*sources, self.spaces)
        else:
            candidates = await collect_candidates(*sources)
        if resolved.profile is not None:
            told = {line.fact_id for line in resolved.profile.lines}
            candidates = replace(candidates, facts=[fact for fact in candidates.facts if fact.id not in told])
        plan, selection = await to_thread(self._plan, candidates, resolved)
        older: list[Summary] = []
        if covering := [outline.id for outline in self._cover(plan, selection)]:
            older = await self.database.read(resolved.request.user_id, summaries.read_by_ids(covering))
        older = [summary for summary in older if summary.text != EMPTY_SUMMARY]
        return await to_thread(compose, plan, selection, older)

    async def find_sufficient_budget(self, resolved: ResolvedRequest, needed: int) -> int:
        """Return a budget that is enough, beginning with what was `needed` in one that was not.

        With more room strategies and summaries offer more, and more of it must be in, up to the minimums in tokens. So
        each budget is tried.
        """
        for attempt in range(18):
            try:
                await self.build(replace(resolved, budget=needed))
            except BudgetTooSmall as error:
                # The least is wanted, and an end.
                needed = error.needed + (2 ** (attempt - 8) if attempt >= 8 else 0)
            else:
                break
        return needed

    def _plan(self, candidates: Candidates, resolved: ResolvedRequest) -> tuple[ContextPlan, Selection]:
        """Return the plan of a context and its static selection, which says what summaries are to cover."""
        history, target = self.history, resolved.target(self.counter)
        if self.reranker is not None:
            every = sorted([*candidates.facts, *candidates.hits], key=lambda hit: -hit.score)
            every = rerank(self.reranker, self.question, every)
            facts, hits = ([hit for hit in every if (hit.tier == Tier.FACTS) == is_fact] for is_fact in (True, False))
            candidates = replace(candidates, facts=facts, hits=hits)
        if resolved.strategies:
            room = target.room_for_sections(candidates.system)
            stored = (history.turns, room, self.counter, history.summaries, history.facts)
            candidates = compress_turns(candidates, resolved.strategies, *stored)
        summary_tokens = sum(outline.tokens for outline in history.outlines if outline.level == 1)
        plan = plan_context(candidates, target, summary_tokens)
        return plan, select_static(plan)

    def _cover(self, plan: ContextPlan, selection: Selection) -> Sequence[Outline]:
        """Return the summaries of what is older than the turns selected, or older than the question where none are."""
        outlines = self.history.outlines
        newest = max((turn.first_seq for turn in plan.candidates.turns), default=0)
        upto_seq = min(selection.oldest - 1, newest, max((outline.to_seq for outline in outlines), default=0))
        return cover(outlines, int(upto_seq), int(plan.summary_tokens * TEXT_SHARE))


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
        static=not any(strategy.by_question for strategy in strategies),
    )


def _dropped_turns(view: ConversationView) -> Iterable[Decision]:
    """Yield a decision for the turns that each strategy left out; there may be thousands of them."""
    for dropped in view.dropped:
        first, last = dropped.turns[0].messages[0], dropped.turns[-1].first_seq
        tokens = sum(view.sizes[turn.first_seq] for turn in dropped.turns)
        about = f"{len(dropped.turns)} turns between the messages {first.seq} and {last}: {dropped.reason}"
        note = f"{dropped.strategy}: {about}"
        yield Decision("recent", "turns", first.id, tokens, Reason.COMPRESSED, note=note, seqs=(first.seq, last))


def _finish_receipt(receipt: Receipt, resolved: ResolvedRequest, models: Mapping[str, str]) -> Receipt:
    request = resolved.request
    masked = ", ".join(f"{count} {kind}" for kind, count in request.redacted.items())
    sections = [
        {name: value for name, value in section.as_dict().items() if name != "text"} for section in resolved.sections
    ]
    arguments = {
        "scope": None if request.scope is None else request.scope.as_list(),
        "spaces": [*request.spaces] or None,
        "min_relevance": request.min_relevance or None,
        "as_of": None if request.as_of is None else request.as_of.isoformat(),
        "strategy": describe_strategies(resolved.strategies),
        "sections": sections or None,
        "viewer": request.viewer,
        "visibility": resolved.rule if request.viewer else None,
        "format": {"name": request.format.name},
        "tools": [name_of(tool) for tool in request.tools] or None,
        "masked": dict(request.redacted) or None,
    }
    included = receipt.included
    # So that what is erased takes the receipt with it.
    if resolved.profile is not None:
        facts = tuple(line.fact_id for line in resolved.profile.lines)
        included = tuple(
            replace(decision, others=facts) if decision.section == PROFILE_SECTION else decision
            for decision in included
        )
    return replace(
        receipt,
        included=included,
        arguments={name: value for name, value in arguments.items() if value is not None},
        models={**models, "memstore": __version__},
        hints=(f"secrets in what was asked were masked before it was sent: {masked}",) if masked else (),
        conversation_id=request.conversation_id,
    )


async def _save_receipt(database: Database, resolved: ResolvedRequest, receipt: Receipt, packed: bytes) -> Receipt:
    """Keep the receipt with what was sent and tell of it; return it with its id.

    Unless something was erased meanwhile, which it may quote.
    """
    # The shared version keeps others from erasing meanwhile. Who only reads locks nothing.
    version = erasure.UNERASED_VERSION if database.capabilities.writes else erasure.VERSION
    async with database.user_transaction(resolved.request.user_id, [version], async_commit=True) as tx:
        if tx.result(version) != resolved.erasure_version:
            return receipt
        if resolved.request.keep:
            receipt = replace(receipt, id=ids.uuid7())
        id = None if receipt.id is None else str(receipt.id)
        for step in receipt.compressed:
            tokens: Json = {"before": step.tokens_before, "after": step.tokens_after, "saved": step.saved}
            about = (EventType.SUMMARIZATION_COMPLETED, receipt.conversation_id)
            tx.record_event(*about, receipt=id, strategy=step.strategy, **tokens)
        body = {"budget": receipt.budget, "tokens": receipt.tokens, "sections": dict(receipt.sections)}
        tx.record_event(EventType.CONTEXT_ASSEMBLED, receipt.conversation_id, receipt=id, **body)
        if resolved.request.keep:
            await receipts.add(tx, receipt, packed)
    return receipt


def _statistics(resolved: ResolvedRequest, history: ConversationHistory) -> Json:
    last = resolved.last
    if resolved.request.as_of is not None:
        last = max((turn.messages[-1].seq for turn in history.turns), default=0)
    return {
        "messages_total": max(0, last - resolved.after_seq),
        "strategy": ", ".join(strategy.name for strategy in resolved.strategies) or "none",
    }
