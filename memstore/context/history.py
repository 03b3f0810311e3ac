"""What a context may show of a conversation, and of its user as a profile: read while the question is embedded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from memstore.context.items import FULL_SHARE_ROOM
from memstore.context.request import Request, ResolvedRequest
from memstore.context.visibility import VisibilityFilter, as_seen_by
from memstore.derive.facts.entities import is_somebodys
from memstore.derive.facts.normalization import denies_allergy
from memstore.derive.facts.slots import root_of
from memstore.models import ALWAYS, UNIMPORTANT, Fact, Hit, Message, Role, Scope, Summary, Tier
from memstore.store import chunks, facts, messages, summaries
from memstore.store.chunks import Filters, IndexVersion
from memstore.store.database import Read, Transaction
from memstore.store.summaries import Outline
from memstore.strategies.base import MESSAGE_OVERHEAD_TOKENS, Turn, split_turns

MAX_STANDING = 8
MIN_STRATEGY_MESSAGES = 4000


@dataclass(frozen=True, slots=True)
class ConversationHistory:
    """The visible part of a conversation since it was last cleared, as far back as a context may reach: `begin`.

    `question` is the message that asks, where one does, and among the `turns`, which are in order; `unpaired` are
    results of tools without their call, and calls without their results. The messages read have so many `tokens`, seen
    or not. `outlines` are of its summaries, `cleared_summaries` of what was cleared. `standing` are facts that are in
    whatever is asked; `index_version` is that of what can be recalled. `summaries` and `facts` are read for strategies
    only.
    """

    question: Message | None
    begin: int
    turns: Sequence[Turn]
    unpaired: Sequence[Message]
    tokens: int
    outlines: Sequence[Outline]
    cleared_summaries: Collection[UUID]
    standing: Sequence[Hit]
    index_version: IndexVersion | None
    summaries: Sequence[Summary] = ()
    facts: Sequence[Fact] = ()


async def _newest_question(tx: Transaction, resolved: ResolvedRequest, tail: Sequence[Message]) -> Message | None:
    """Return the newest message of a person since the conversation was cleared, of those that the viewer sees.

    `tail` are its newest messages, in order.
    """
    visibility = resolved.visibility
    for message in reversed(tail):
        if message.role == Role.USER and visibility.sees(message):
            return message
    if visibility.is_active or not tail or tail[0].seq <= resolved.after_seq + 1:
        return None
    request = resolved.request
    newest = await tx.get(messages.read_newest(request.conversation_id, limit=1, role=Role.USER, as_of=request.as_of))
    return next((message for message in newest if message.seq > resolved.after_seq), None)


def _is_open(question: Message, query: str, visible: Sequence[Message]) -> bool:
    """Whether a query is this stored question, and the model has yet to answer it."""
    # Somebody may say "Go on." again. Calls of tools and their results are not an answer yet.
    answered = any(
        message.seq > question.seq and message.role == Role.ASSISTANT and not message.tool_calls for message in visible
    )
    return query == question.text and not answered


class HistoryReads(NamedTuple):
    """The first reads of a transaction that loads the history: what no setting of the conversation changes."""

    newest: Read[list[Message]]
    outlines: Read[list[Outline]]
    standing: Read[list[Fact]]
    index_version: Read[IndexVersion | None]


def reads_of_history(request: Request, model: UUID) -> HistoryReads:
    conversation, as_of = request.conversation_id, request.as_of
    return HistoryReads(
        messages.read_newest(conversation, limit=_page_size(_guess_budget(request)), as_of=as_of),
        summaries.outlines(conversation, as_of=as_of),
        # More than stand: denials come last.
        _read_standing(request, _guess_budget(request), 2 * MAX_STANDING),
        chunks.index_version(model),
    )


class SpaceHistory(NamedTuple):
    """The history of a space, read while the question is embedded; `filters` leave out other scopes."""

    name: str
    history: ConversationHistory
    filters: Filters


SpaceReads = tuple[Read[list[Fact]], Read[IndexVersion | None]]


def reads_of_space(request: Request, model: UUID) -> SpaceReads:
    """Return the reads of a space that a context takes something of."""
    return _read_standing(request, _guess_budget(request), 2 * MAX_STANDING), chunks.index_version(model)


def load_space_history(tx: Transaction, reads: SpaceReads) -> ConversationHistory:
    """Return the history of a space, of which no conversation is shown: its standing facts alone."""
    standing, version = tx.result(reads[0]), tx.result(reads[1])
    return ConversationHistory(
        question=None,
        begin=1,
        turns=(),
        unpaired=(),
        tokens=0,
        outlines=(),
        cleared_summaries=(),
        standing=_standing(standing)[:MAX_STANDING],
        index_version=version,
    )


def _read_standing(request: Request, budget: int, limit: int) -> Read[list[Fact]]:
    # An allergy is dangerous, and how to answer concerns every answer.
    first = ("allergy", "answer_style", "diet")
    place = {"conversation_id": request.conversation_id, "own_scope": request.conversation_scope}
    return facts.standing(_standing_types(budget), first, request.scope, **place, limit=limit, as_of=request.as_of)


def _standing_types(budget: int) -> Sequence[str]:
    """Return the types of facts that matter whatever is asked.

    "What should I avoid eating?" is far from "allergic to peanuts" for an embedder; nobody asks for standing
    instructions at all. In a small context the question finds who somebody is: with facts of a chat model contexts of
    1,000 tokens have 2 points more of LoCoMo's evidence so.
    """
    return ("constraint", "procedure") if 0 < budget < FULL_SHARE_ROOM else ("constraint", "procedure", "identity")


def _guess_budget(request: Request) -> int:
    """Return the budget as far as it is known before the conversation's settings are read."""
    return request.budget or request.defaults.context_budget or 0


async def load_history(
    tx: Transaction, asked: Request, resolved: ResolvedRequest, reads: HistoryReads
) -> ConversationHistory:
    """Read the history, with the version of what can be recalled by a model.

    The transaction was opened with `reads`, of the request as it was asked.
    """
    request, visibility, conversation = resolved.request, resolved.visibility, resolved.request.conversation_id
    as_of = request.as_of
    page, every, ranked = tx.result(reads.newest), tx.result(reads.outlines), tx.result(reads.standing)
    if request.held is not None:
        said = [*request.held]
    elif resolved.strategies:
        page = await tx.get(messages.read_newest(conversation, limit=MIN_STRATEGY_MESSAGES + 1000, as_of=as_of))
        said = _newest_for_strategies(page, resolved)
    else:
        said = await _newest_for_budget(tx, page, resolved)
    visible = visibility.filter_messages(said)
    question = await _newest_question(tx, resolved, said)
    if question is not None and request.query is not None and not _is_open(question, request.query, visible):
        question = None
    turns, unpaired = split_turns(visible)
    since = [outline for outline in every if outline.from_seq > resolved.after_seq]
    if visibility.is_active or _standing_types(resolved.budget) != _standing_types(_guess_budget(asked)):
        # A viewer sees only some of these; those that are pinned are not counted.
        limit = 100 if visibility.is_active else 2 * MAX_STANDING
        ranked = await tx.get(_read_standing(request, resolved.budget, limit))
        ranked = await visibility.filter_facts(tx, ranked)
    pinned = sum(fact.importance == ALWAYS for fact in ranked)  # they come first
    whole_summaries, known_facts = await _read_for_strategies(tx, resolved)
    return ConversationHistory(
        question=question,
        begin=said[0].seq if said else resolved.after_seq + 1,
        turns=as_seen_by(request.viewer, turns),
        unpaired=unpaired,
        tokens=sum(message.tokens for message in said),
        outlines=await visibility.filter_summaries(tx, since),
        cleared_summaries={outline.id for outline in every if outline.from_seq <= resolved.after_seq},
        standing=_standing(ranked)[: pinned + MAX_STANDING],
        index_version=tx.result(reads.index_version),
        summaries=whole_summaries,
        facts=known_facts,
    )


def _standing(known_facts: Sequence[Fact]) -> list[Hit]:
    """Return facts that stand whatever is asked, as hits: each value of a slot once, in whatever language.

    Behind allergies one's own come before others', and that somebody is not allergic stands last, and never alone. A
    name is not among them, since facts name their subject.
    """
    once: dict[object, Fact] = {}
    for fact in known_facts:
        if fact.importance == ALWAYS or root_of(fact.attribute) != "name" or fact.text.startswith("The user's "):
            is_in_slot = fact.attribute and fact.value
            once.setdefault((fact.subject, fact.attribute, fact.value) if is_in_slot else fact.id, fact)
    denials = {fact.id for fact in once.values() if denies_allergy(fact.attribute, fact.value, fact.text)}
    standing = sorted(once.values(), key=lambda fact: (fact.importance != ALWAYS, fact.id in denials, _is_others(fact)))
    if standing and standing[0].importance != ALWAYS and standing[0].id in denials:
        return []
    hits = []
    for fact in standing:
        hit = Hit(Tier.FACTS, fact.id, fact.text, 0, {}, tuple(fact.sources), fact.occurred_at)
        hits.append(replace(hit, valid_to=fact.valid_to, importance=fact.importance))
    return hits


def _is_others(fact: Fact) -> bool:
    """Whether a fact, other than an allergy, is about somebody who is called by their bond to the user."""
    return root_of(fact.attribute) != "allergy" and is_somebodys(fact.subject)


async def _read_for_strategies(tx: Transaction, resolved: ResolvedRequest) -> tuple[Sequence[Summary], Sequence[Fact]]:
    if not resolved.strategies:
        return (), ()
    request, visibility = resolved.request, resolved.visibility
    every = await summaries.summaries(tx, request.conversation_id, as_of=request.as_of)
    later = [summary for summary in every if summary.from_seq > resolved.after_seq]
    seen = await visibility.filter_summaries(tx, later)
    if not any(strategy.by_facts for strategy in resolved.strategies):
        return seen, ()
    known_facts = await facts.facts(tx, as_of=request.as_of, scope=request.scope)
    known_facts = await visibility.filter_facts(tx, known_facts)
    return seen, [fact for fact in known_facts if fact.importance != UNIMPORTANT]


def _page_size(tokens: int, message_tokens: float = 32) -> int:
    # 64 messages cost what another round trip does.
    return max(64, min(2000, int(tokens / message_tokens)))


async def _newest_for_budget(tx: Transaction, page: list[Message], resolved: ResolvedRequest) -> list[Message]:
    """Return the newest messages in order, as many as could fill the budget with those that are seen.

    `page` are the newest of them; more are read where they are too few.
    """
    request, visibility = resolved.request, resolved.visibility
    read: list[Message] = []
    tokens = 0
    while page:
        read += page
        # Of a tool's result its call decides.
        seen = [message for message in page if message.role == Role.TOOL or visibility.sees(message)]
        tokens += sum(message.tokens + MESSAGE_OVERHEAD_TOKENS for message in seen)
        # Results are nothing without their call.
        is_enough = tokens >= resolved.budget and read[-1].role != Role.TOOL
        is_too_many = visibility.is_active and len(read) >= 20_000
        if is_enough or is_too_many or read[-1].seq <= resolved.after_seq + 1:
            break
        limit = _page_size(resolved.budget - tokens, max(1, tokens) / len(read))
        older = messages.read_newest(request.conversation_id, limit=limit, before=read[-1].seq, as_of=request.as_of)
        page = await tx.get(older)
    return [message for message in reversed(read) if message.seq > resolved.after_seq]


def _newest_for_strategies(read: Sequence[Message], resolved: ResolvedRequest) -> list[Message]:
    """Return every message in order: where there are very many, the newest `MIN_STRATEGY_MESSAGES` or more.

    The beginning then moves by 1,000 messages at once, so that what follows from it stays for as long.
    """
    last = read[0].seq if read else 0
    first = max((last - MIN_STRATEGY_MESSAGES) // 1000 * 1000, resolved.after_seq)
    return [message for message in reversed(read) if message.seq > first]


async def read_profile_facts(
    tx: Transaction,
    *,
    subject: str | None = None,
    as_of: datetime | None,
    scope: Scope | None,
    visibility: VisibilityFilter | None = None,
    without: Collection[UUID] = (),
) -> tuple[str, list[Fact]]:
    """Return a subject, by default the one that most facts are about, and the facts for its profile.

    There are none of those `without`, and none that a viewer does not see.
    """
    known_facts = await facts.facts(tx, as_of=as_of, scope=scope)
    if visibility is not None:
        known_facts = await visibility.filter_facts(tx, known_facts)
    if subject is None:
        counts = Counter(fact.subject.partition("'s ")[0] for fact in known_facts)
        subject = min(counts, key=lambda name: (-counts[name], name), default="The user")
    owner = f"{subject}'s ".casefold()
    about = [fact for fact in known_facts if f"{fact.subject}'s ".casefold().startswith(owner)]
    return subject, [fact for fact in about if fact.importance != UNIMPORTANT and fact.id not in without]
