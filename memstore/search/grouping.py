"""Hits put together: by the session in which they were said, or facts with the messages that they were made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from memstore.models import Hit, HitGroup, Tier
from memstore.store import messages
from memstore.store.database import Transaction
from memstore.store.messages import Place, Session


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
    groups: list[HitGroup] = []
    waiting = list(hits)
    while waiting and len(groups) < limit:
        # The best hit's session first, then a few at a time: many hits are in those that are known by then, and each
        # walk through a session reads all of it, which may be a whole life.
        ahead = waiting[: limit - len(groups) if groups else 1]
        sessions = await messages.sessions(scope, [places[hit.id] for hit in ahead if hit.id in places], as_of)
        session_of = _sessions_of(waiting, places, sessions)
        alone = {hit.id for hit in ahead} - session_of.keys()
        together: dict[Session | UUID, list[Hit]] = {}
        for hit in waiting:
            if hit.id in session_of or hit.id in alone:
                together.setdefault(session_of.get(hit.id, hit.id), []).append(hit)
        groups += [_group(session, members) for session, members in together.items()]
        waiting = [hit for hit in waiting[len(ahead) :] if hit.id not in session_of]
    return groups


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
