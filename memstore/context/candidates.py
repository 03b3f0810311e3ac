"""Candidates of a context: what is recalled for the question, with the history of the conversation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from uuid import UUID

from memstore._compat import to_thread
from memstore.context.history import ConversationHistory
from memstore.context.items import CAPPED_ROOM, SMALL_CONTEXT, Candidates
from memstore.context.relevance import relevance
from memstore.context.request import ResolvedRequest
from memstore.context.utterances import MAX_PIECE_CHARS, answers, find_antecedent, says_nothing, score_comment
from memstore.derive.facts.quotations import words_of
from memstore.language import is_question
from memstore.models import INSTRUCTION_ROLES, UNIMPORTANT, Chunk, Hit, Message, Role, Tier
from memstore.models.contexts import MAX_PREVIEW_CHARS, Decision, Reason
from memstore.search.outdated import Changes, asks_what_holds, lead_newest, mark_outdated
from memstore.search.questions import asks_for_list, asks_for_now, asks_for_overview_or_order
from memstore.search.ranking import RankedChunk, Ranking, best_of_each
from memstore.search.recall import CONTEXT_DEPTH, Query, find_changes, make_hit, rank_candidates, to_hits
from memstore.search.relevance import measure
from memstore.store import chunks, facts as stored_facts, messages
from memstore.store.chunks import ItemText
from memstore.store.database import Database, Transaction

MAX_OFFERED_FACTS = 40


def hits_for_budget(budget: int, recent: int) -> int:
    """Return how many hits are offered together with recent messages of so many tokens: 40, or one for 30 tokens left.

    Recent turns take half of the budget, if there are enough of them; a hit costs as much time as one of them.
    """
    return max(40, (budget - min(budget, recent) // 2) // 30)


async def collect_candidates(
    database: Database, query: Query, resolved: ResolvedRequest, history: ConversationHistory, most: int
) -> Candidates:
    """Recall what the question asks for, at most so many hits, and return it with the history."""
    async with database.user_transaction(resolved.request.user_id) as tx:
        recalled = await recall_candidates(tx, query, resolved, history, most)
    return with_history(recalled, resolved, history)


def with_history(recalled: Candidates, resolved: ResolvedRequest, history: ConversationHistory) -> Candidates:
    """Return what was recalled together with the history."""
    request, question = resolved.request, history.question
    other_turns = [turn for turn in history.turns if question is None or turn.messages[0].id != question.id]
    # The model has yet to answer these: the results of the tools that it called for the question.
    ending = other_turns[-1:]
    if question is None or not ending or ending[0].first_seq < question.seq or ending[0].messages[-1].role != Role.TOOL:
        ending = []
    asking = {"role": "user", "content": request.query} if request.query else None
    return replace(
        recalled,
        system=request.system,
        question=question.as_chat() if question else asking,
        question_seq=question.seq if question else None,
        ending=ending,
        turns=[turn for turn in reversed(other_turns) if turn not in ending],
        sections=resolved.sections,
        left_out=[*resolved.visibility.decisions(), *recalled.left_out, *_not_shown(resolved, history)],
    )


def _not_shown(resolved: ResolvedRequest, history: ConversationHistory) -> Iterator[Decision]:
    for message in history.unpaired:
        about = ("recent", "message", message.id, message.tokens, Reason.UNPAIRED)
        preview = f"{message.name or message.role}: {message.text or ''}"[:MAX_PREVIEW_CHARS]
        yield Decision(*about, seqs=(message.seq, message.seq), preview=preview)
    first, last = resolved.after_seq + 1, history.begin - 1
    if first <= last:
        note = f"messages {first} to {last}, too old for this budget"
        yield Decision("recent", "turns", None, 0, Reason.OVER_BUDGET, note=note, seqs=(first, last))


@dataclass(frozen=True, slots=True)
class Ranked:
    """The facts and the hits that the question ranks first, of those that may be in, and whether there are more."""

    facts: Sequence[RankedChunk]
    hits: Sequence[RankedChunk]
    more_facts: bool
    more_hits: bool
    relevance: float | None
    best_lexical: tuple[float, float]

    def keep(self, facts: Sequence[RankedChunk], hits: Sequence[RankedChunk]) -> Ranked:
        """Return these alone of it."""
        more_facts = self.more_facts or len(facts) < len(self.facts)
        more_hits = self.more_hits or len(hits) < len(self.hits)
        return replace(self, facts=facts, hits=hits, more_facts=more_facts, more_hits=more_hits)


async def rank_for_context(
    tx: Transaction, query: Query, resolved: ResolvedRequest, history: ConversationHistory, max_hits: int
) -> Ranked:
    """Return the facts and hits that the question ranks first; more where several things are asked for."""
    # Few recent turns are in these contexts.
    if _asks_for_several(query) and resolved.budget < CAPPED_ROOM:
        max_hits = hits_for_budget(resolved.budget, 0)
    visibility = resolved.visibility
    depth = max(max_hits, 1000 if visibility.is_active else CONTEXT_DEPTH)
    ranking = await rank_candidates(tx, query, resolved.filters, depth, version=history.index_version)
    share = None
    if resolved.request.min_relevance:
        share = await to_thread(_relevance, query, ranking)
    candidates = ranking.of_tiers(Tier.MESSAGES, Tier.SUMMARIES)
    may_be_hits = best_of_each(candidate for candidate in candidates if _may_be_hit(candidate.chunk, resolved, history))
    facts = await _take_visible(tx, best_of_each(ranking.of_tiers(Tier.FACTS)), MAX_OFFERED_FACTS + 1, resolved)
    if visibility.is_active:
        hits = await _take_visible(tx, may_be_hits, max_hits, resolved)
        more_hits = len(hits) == max_hits
    else:
        # More in place of messages that may say nothing alone.
        hits = list(islice(_until_enough_are_long(may_be_hits, max_hits), max_hits + 20))
        is_cut = any(ranking.tiers.count(tier) >= depth for tier in (Tier.MESSAGES, Tier.SUMMARIES))
        more_hits = is_cut or next(may_be_hits, None) is not None
    return Ranked(
        facts[:MAX_OFFERED_FACTS], hits, len(facts) > MAX_OFFERED_FACTS, more_hits, share, ranking.best_lexical
    )


def _asks_for_several(query: Query) -> bool:
    return asks_for_list(query.text) or asks_for_overview_or_order(query.text)


def _relevance(query: Query, ranking: Ranking) -> float:
    return relevance(query.text, measure(ranking, query))


async def recall_candidates(
    tx: Transaction, query: Query, resolved: ResolvedRequest, history: ConversationHistory, count: int
) -> Candidates:
    """Rank, and return what `to_candidates` makes of it."""
    ranked = await rank_for_context(tx, query, resolved, history, count)
    return await to_candidates(tx, query, resolved, history, ranked)


async def to_candidates(
    tx: Transaction,
    query: Query,
    resolved: ResolvedRequest,
    history: ConversationHistory,
    ranked: Ranked,
    *,
    newest_leads: bool = True,
) -> Candidates:
    """Return standing facts, other facts and hits, the best first, and the decisions on everything else.

    Each stage leaves some out: those that rank lower, are outdated, say nothing alone, or repeat another.
    """
    asks_for_several = _asks_for_several(query)
    details = await _read_details(tx, query, ranked, resolved)
    facts, hits = details.as_hits(ranked.facts), details.as_hits(ranked.hits)
    if ranked.relevance is not None and ranked.relevance < resolved.request.min_relevance:
        left_out = [*_decisions([*facts, *hits], Reason.NOT_RELEVANT)]
        return Candidates(standing=history.standing, relevance=ranked.relevance, left_out=left_out)
    if newest_leads and asks_for_now(query.text):
        hits = lead_newest(hits, query.text)
    hits, outdated_hits = _leave_out_outdated(query, hits, facts, details, resolved)
    facts, ended_facts = await _replace_ended(tx, ranked, facts, details, resolved)
    antecedents = details.antecedents(hits, outdated_hits, resolved)
    hits, empty_hits = _part(hits, antecedents.says_nothing)
    said = {hit.id for hit in hits if hit.tier == Tier.MESSAGES}
    hits, repeated = _part(hits, lambda hit: _repeats(hit, said))
    # Where several things are asked for, a fact stands in place of a message that does not fit.
    told = set() if asks_for_several else {fact.id for fact in _told_by_messages(facts, hits, resolved.budget)}
    facts, told_facts = _part(facts, lambda fact: fact.id in told)
    facts, unimportant = _part(facts, lambda fact: fact.importance == UNIMPORTANT)
    if asks_for_several:
        hits = sorted(map(score_comment, hits), key=lambda hit: -hit.score)
    return Candidates(
        standing=history.standing,
        relevance=ranked.relevance,
        facts=facts,
        hits=hits,
        find_antecedent=antecedents.find,
        asks_for_several=asks_for_several,
        left_out=[
            *_ranked_lower(ranked),
            *ended_facts,
            *_decisions(outdated_hits, Reason.SUPERSEDED),
            *_decisions(empty_hits, Reason.SAYS_NOTHING),
            *_decisions(repeated, Reason.DUPLICATE),
            *_decisions(told_facts, Reason.DUPLICATE),
            *_decisions(unimportant, Reason.UNIMPORTANT),
        ],
    )


def _part(hits: Sequence[Hit], is_left_out: Callable[[Hit], bool]) -> tuple[list[Hit], list[Hit]]:
    left_out = {hit.id for hit in hits if is_left_out(hit)}
    return [hit for hit in hits if hit.id not in left_out], [hit for hit in hits if hit.id in left_out]


@dataclass(frozen=True, slots=True)
class _Details:
    """The texts of ranked facts and hits, by id, and the changes since they were said.

    `said_facts` are messages among them, each with a fact that it says and whether this holds; `messages_before` those
    that short ones may answer.
    """

    texts: Mapping[UUID, ItemText]
    said_facts: Sequence[tuple[UUID, UUID, bool]]
    messages_before: Sequence[Message]
    changes: Changes

    def as_hits(self, ranked: Iterable[RankedChunk]) -> list[Hit]:
        return [
            make_hit(candidate, self.texts[candidate.chunk.item_id])
            for candidate in ranked
            if candidate.chunk.item_id in self.texts
        ]

    def antecedents(
        self, hits: Iterable[Hit], outdated_hits: Iterable[Hit], resolved: ResolvedRequest
    ) -> AntecedentFinder:
        """Return what finds the messages that hits answer, but for those that are outdated or not seen."""
        outdated = {hit.id for hit in outdated_hits}
        before: dict[tuple[UUID | None, int | None], Message] = {
            (message.conversation_id, message.seq + 1): message
            for message in self.messages_before
            if message.id not in outdated and resolved.visibility.sees(message)
        }
        names = {word for hit in hits for word in (hit.speaker or "").casefold().split()}
        return AntecedentFinder(before, names, self.changes)


async def _read_details(tx: Transaction, query: Query, ranked: Ranked, resolved: ResolvedRequest) -> _Details:
    visibility, as_of = resolved.visibility, resolved.request.as_of
    found = [candidate.chunk for candidate in (*ranked.facts, *ranked.hits)]
    said_by = [candidate.chunk.item_id for candidate in ranked.hits if candidate.chunk.tier == Tier.MESSAGES]
    whole = [candidate.chunk for candidate in ranked.hits if candidate.chunk.start == 0]
    short = [chunk for chunk in whole if chunk.tier == Tier.MESSAGES and chunk.stop <= MAX_PIECE_CHARS]
    read_texts = chunks.read_texts(found, as_of, mark_outdated=asks_what_holds(query.text))
    read_said_facts, read_before = stored_facts.said_facts(said_by, as_of), messages.read_before(short)
    await tx.read_together([*read_texts, read_said_facts, read_before])
    texts = {item.id: item for read in read_texts for item in tx.result(read)}
    said_facts = tx.result(read_said_facts)
    changes = await find_changes(tx, ranked.facts, texts, said_facts, resolved.filters)
    if visibility.is_active:
        changes = changes.restrict(set(await visibility.filter_fact_ids(tx, list(changes.facts))))
    return _Details(texts, said_facts, tx.result(read_before), changes)


def _leave_out_outdated(
    query: Query, hits: Sequence[Hit], facts: Sequence[Hit], details: _Details, resolved: ResolvedRequest
) -> tuple[list[Hit], list[Hit]]:
    """Return the hits, where those that hold no longer are marked or rank lower, and those that are left out."""
    asks, is_small = asks_what_holds(query.text), resolved.budget < SMALL_CONTEXT
    holding = {message for message, _, holds in details.said_facts if holds}
    kept, outdated = _part(
        hits,
        lambda hit: details.changes.leaves_out(
            hit, details.texts[hit.id].is_outdated, holding, asks_what_holds=asks, is_small=is_small
        ),
    )
    return mark_outdated(kept, facts, details.changes, rank_behind=asks), outdated


async def _replace_ended(
    tx: Transaction, ranked: Ranked, facts: Sequence[Hit], details: _Details, resolved: ResolvedRequest
) -> tuple[list[Hit], list[Decision]]:
    """Return the facts, those that took another's place with its score, and the decisions on those that ended.

    A viewer learns no more than that something held once. Facts that were erased since then have no decision.
    """
    is_viewed, as_of = resolved.visibility.is_active, resolved.request.as_of
    candidates = {candidate.chunk.item_id: candidate for candidate in ranked.facts}
    gone = [fact for fact in candidates if fact not in details.texts]
    past = await stored_facts.states_as_of(tx, gone, as_of, MAX_PREVIEW_CHARS) if gone and not is_viewed else {}
    decisions = []
    scores: dict[UUID, float] = {}
    for id in gone:
        if id not in past and not is_viewed:
            continue
        says, successor, is_expired = past.get(id, ("", None, False))
        score, reason = candidates[id].score, Reason.EXPIRED if is_expired else Reason.SUPERSEDED
        if successor:
            scores[successor] = max(score, scores.get(successor, 0))
        about = ("facts", "fact", id, 0, reason, score, candidates[id].parts)
        decisions.append(Decision(*about, preview=says, others=(successor,) if successor else ()))
    scored = []
    for fact in details.changes.mark(facts):
        score = scores.get(fact.id, 0)
        parts = {**fact.parts, "supersedes": round(score - fact.score, 6)}
        scored.append(replace(fact, score=score, parts=parts) if score > fact.score else fact)
    return sorted(scored, key=lambda fact: -fact.score), decisions


@dataclass(frozen=True, slots=True)
class AntecedentFinder:
    """Finds what hits answer, in the messages `before` them, by the conversation and the number of the hit.

    For those hits that selection looks at: to split the messages before all of them takes a tenth of a context's time.
    `names` are those of speakers.
    """

    before: Mapping[tuple[UUID | None, int | None], Message]
    names: Collection[str]
    changes: Changes

    def find(self, hit: Hit) -> Hit | None:
        # A summary has the number of the last message that it covers.
        is_message = hit.tier == Tier.MESSAGES
        message = self.before.get((hit.conversation_id, hit.seq)) if is_message else None
        antecedent = None if message is None else find_antecedent(hit, message, self.names)
        return None if antecedent is None else self.changes.mark([antecedent])[0]

    def says_nothing(self, hit: Hit) -> bool:
        """Whether a hit says nothing, and is no answer to a question of yes or no either."""
        if hit.tier != Tier.MESSAGES or len(hit.text) > MAX_PIECE_CHARS or not says_nothing(hit.text, self.names):
            return False
        antecedent = self.find(hit) if answers(hit.text) else None
        return antecedent is None or not is_question(antecedent.text)


def _repeats(hit: Hit, said: set[UUID]) -> bool:
    """Whether a hit is a summary of a few messages that are all hits themselves: it quotes them."""
    return hit.tier == Tier.SUMMARIES and 0 < len(hit.sources) <= 3 and said.issuperset(hit.sources)


def _told_by_messages(facts: Iterable[Hit], hits: Iterable[Hit], budget: int) -> Iterator[Hit]:
    """Yield the facts of a single message that is offered, too.

    In a small context many of these do not fit: there a fact in plain words that answers better than its message is
    offered as well.
    """
    scores, is_small = {hit.id: hit.score for hit in hits}, budget < SMALL_CONTEXT
    for fact in facts:
        if len(fact.sources) == 1 and fact.sources[0] in scores:
            answers_better = is_small and fact.score > scores[fact.sources[0]] and words_of(fact.text) == fact.text
            if not answers_better:
                yield fact


def _until_enough_are_long(candidates: Iterable[RankedChunk], count: int) -> Iterator[RankedChunk]:
    for candidate in candidates:
        yield candidate
        count -= candidate.chunk.stop > 60
        if count <= 0:
            return


async def _take_visible(
    tx: Transaction, candidates: Iterator[RankedChunk], count: int, resolved: ResolvedRequest
) -> list[RankedChunk]:
    """Return so many candidates that the viewer sees, the best first; a fact that held once is no hit, and passes."""
    if not resolved.visibility.is_active:
        return list(islice(candidates, count))
    taken: list[RankedChunk] = []
    while len(taken) < count and (page := list(islice(candidates, CONTEXT_DEPTH))):
        hits = await to_hits(tx, page, resolved.request.as_of)
        visible = {hit.id for hit in await resolved.visibility.filter_hits(tx, hits)}
        taken += [candidate for candidate in page if candidate.chunk.item_id in visible]
    return taken[:count]


def _may_be_hit(chunk: Chunk, resolved: ResolvedRequest, history: ConversationHistory) -> bool:
    """Whether a chunk may be a hit: the question and this conversation's summaries have their own places.

    Instructions of another time are not what was said.
    """
    if chunk.tier == Tier.SUMMARIES:
        return chunk.conversation_id != resolved.request.conversation_id or chunk.item_id in history.cleared_summaries
    return chunk.role not in INSTRUCTION_ROLES and (history.question is None or chunk.item_id != history.question.id)


def _ranked_lower(ranked: Ranked) -> Iterator[Decision]:
    """Yield a decision for all that the question ranks lower than the facts and the hits that were offered.

    Not how many these are: a viewer or a past moment does not learn what is stored.
    """
    for section, best, has_more in (
        ("facts", ranked.facts, ranked.more_facts),
        ("hits", ranked.hits, ranked.more_hits),
    ):
        if best and has_more:
            least = min(candidate.score for candidate in best)
            note = f"all but the best {len(best)}: they score less than {least:.2f}"
            yield Decision(section, "chunks", None, 0, Reason.RANKED_LOWER, note=note)


def _decisions(hits: Iterable[Hit], reason: Reason) -> Iterator[Decision]:
    for hit in hits:
        section, kind = ("facts", "fact") if hit.tier == Tier.FACTS else ("hits", str(hit.tier))
        preview = hit.text[:MAX_PREVIEW_CHARS]
        yield Decision(section, kind, hit.id, 0, reason, hit.score, hit.parts, preview=preview)
