"""Hits put in order by a reranker too, and put together: by the session in which they were said, or facts with the
messages that they were made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

import numpy as np

from memstore.errors import ProviderError
from memstore.models import Hit, HitGroup, Tier
from memstore.providers import Reranker, Scores
from memstore.store import messages
from memstore.store.database import Transaction
from memstore.store.messages import Place, Session

PART = "reranker"
# Hits that are read. Contexts of 2,000 tokens hold fewer, and a small cross-encoder (6 layers of 384) takes 20 ms of a
# processor for each, of 47 tokens. What is not read keeps its place behind them, as no part is below 0.
READ = 50


def rerank(reranker: Reranker, question: str, hits: Sequence[Hit]) -> list[Hit]:
    """Return hits, which come the best first, in the order of both scores, each with one more part.

    The reranker's scores are of a scale of its own: they are spread over as much as ours differ among what was read, so
    that both count the same. Raises `ProviderError` where it gives something else than a number for each.
    """
    read = hits[:READ]
    if not read:
        return []
    texts = [f"{hit.speaker}: {hit.text}" if hit.speaker else hit.text for hit in read]  # as they are embedded
    scores = _checked(reranker, question, texts).tolist()
    ours = [hit.score for hit in read]
    spread = float(max(ours) - min(ours)) or 1.0  # where we cannot tell them apart, it decides
    lowest, range_ = min(scores), max(scores) - min(scores) or 1.0
    shares = [(score - lowest) / range_ for score in scores]
    reranked = [_with_part(hit, round(spread * share, 6)) for hit, share in zip(read, shares, strict=True)]
    return [*sorted(reranked, key=lambda hit: -hit.score), *hits[READ:]]


def _checked(reranker: Reranker, question: str, texts: Sequence[str]) -> Scores:
    scores = np.asarray(reranker.scores(question, texts), dtype=np.float64)
    if scores.shape != (len(texts),) or not np.isfinite(scores).all():
        raise ProviderError(
            f"The reranker {reranker.name!r} gave scores of the shape {scores.shape} for {len(texts)} texts, or "
            "numbers that are not finite: mend it, or set MEMSTORE_RERANKER=none."
        )
    return scores


def _with_part(hit: Hit, part: float) -> Hit:
    return replace(hit, score=round(hit.score + part, 6), parts={**hit.parts, PART: part})


def groups_in_time(groups: Iterable[HitGroup]) -> list[HitGroup]:
    """Return groups in the order in which they began, and of each the hits as they were said."""
    ordered = sorted(groups, key=lambda group: (group.since, group.until))
    return [replace(group, hits=tuple(in_time(group.hits))) for group in ordered]


def in_time(hits: Iterable[Hit]) -> list[Hit]:
    """Return hits in the order in which they were said."""
    return sorted(hits, key=lambda hit: (hit.occurred_at, hit.seq or 0))


async def by_session(
    scope: Transaction, hits: Sequence[Hit], limit: int, as_of: datetime | None = None
) -> list[HitGroup]:
    """Return the first `limit` sessions of hits that come the best first, with all the hits of each.

    What was made of messages belongs to the session of the last of them. What belongs to none, such as a fact that was
    entered by hand, stands alone.
    """
    places = await _places(scope, hits)
    together: dict[Session | UUID, list[Hit]] = {}
    waiting = list(hits)
    while waiting and len(together) < limit:
        # The best hit's session first, then a few at a time: many hits are in those that are known by then, and each
        # walk through a session reads all of it, which may be a whole life.
        ahead = waiting[: limit - len(together) if together else 1]
        sessions = await messages.sessions(scope, [places[hit.id] for hit in ahead if hit.id in places], as_of)
        session_of = _sessions_of(waiting, places, sessions)
        known = session_of.keys() | {hit.id for hit in ahead}
        for hit in waiting:
            if hit.id in known:
                together.setdefault(session_of.get(hit.id, hit.id), []).append(hit)
        waiting = [hit for hit in waiting if hit.id not in known]
    return [_group(session, members) for session, members in together.items()]


async def _places(scope: Transaction, hits: Sequence[Hit]) -> dict[UUID, Place]:
    """Return where hits stand: a message, the end of a summary, the last message that says a fact."""
    facts = [hit for hit in hits if hit.tier == Tier.FACTS]
    known = await messages.known(scope, sorted({message for fact in facts for message in fact.sources}))
    places = {
        hit.id: Place(hit.conversation_id, hit.seq) for hit in hits if hit.conversation_id and hit.seq is not None
    }
    for fact in facts:
        if sources := [known[message] for message in fact.sources if message in known]:
            last = max(sources, key=lambda message: (message.occurred_at, message.seq))
            places[fact.id] = Place(last.conversation_id, last.seq)
    return places


def _sessions_of(hits: Sequence[Hit], places: Mapping[UUID, Place], sessions: Sequence[Session]) -> dict[UUID, Session]:
    within: dict[UUID, list[Session]] = {}
    for session in sessions:
        within.setdefault(session.conversation_id, []).append(session)
    return {
        hit.id: session
        for hit in hits
        if (place := places.get(hit.id))
        for session in within.get(place.conversation_id, ())
        if session.from_seq <= place.seq <= session.to_seq
    }


def _group(session: Session | UUID, hits: Sequence[Hit]) -> HitGroup:
    best = hits[0]
    if isinstance(session, Session):
        return HitGroup(best.score, session.since, session.until, session.conversation_id, tuple(hits))
    return HitGroup(best.score, best.occurred_at, best.occurred_at, best.conversation_id, tuple(hits))


def within_hits(group: HitGroup) -> HitGroup:
    """Return a group whose times are those of its hits alone."""
    times = [hit.occurred_at for hit in group.hits]
    return replace(group, since=min(times), until=max(times))


def by_fact(facts: Sequence[Hit], evidence: Iterable[Hit]) -> list[HitGroup]:
    """Return each fact with those messages of the evidence that it was made from, in the order of the facts."""
    known = {hit.id: hit for hit in evidence}
    groups = []
    for fact in facts:
        sources = in_time(known[message] for message in fact.sources if message in known)
        ends = sources or [fact]
        since, until = ends[0].occurred_at, ends[-1].occurred_at
        groups.append(HitGroup(fact.score, since, until, fact.conversation_id, tuple(sources), fact))
    return groups
