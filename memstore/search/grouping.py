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
    """Give groups in the order in which they began, and of each the hits as they were said."""
    ordered = sorted(groups, key=lambda group: (group.since, group.until))
    return [replace(group, hits=tuple(in_time(group.hits))) for group in ordered]


def in_time(hits: Iterable[Hit]) -> list[Hit]:
    """Give hits in the order in which they were said."""
    return sorted(hits, key=lambda hit: (hit.occurred_at, hit.seq or 0))


async def by_session(
    scope: Transaction, found: Sequence[Hit], limit: int, as_of: datetime | None = None
) -> list[HitGroup]:
    """Give the first `limit` sessions of hits that come the best first, with all the hits of each.

    What was made of messages belongs to the session of the last of them. What belongs to none, such as a fact that was
    entered by hand, stands alone. The best hit's session is looked for first, then a few at a time: many hits are in
    those that are known by then, and each walk through a session reads all of it, which may be a whole life.
    """
    places = await _places(scope, found)
    groups: list[HitGroup] = []
    waiting = list(found)
    while waiting and len(groups) < limit:
        ahead = waiting[: limit - len(groups) if groups else 1]
        sessions = await messages.sessions(scope, [places[hit.id] for hit in ahead if hit.id in places], as_of)
        homes = _homes(waiting, places, sessions)
        alone = {hit.id for hit in ahead} - homes.keys()
        together: dict[Session | UUID, list[Hit]] = {}
        for hit in waiting:
            if hit.id in homes or hit.id in alone:
                together.setdefault(homes.get(hit.id, hit.id), []).append(hit)
        groups += [_group(home, hits) for home, hits in together.items()]
        waiting = [hit for hit in waiting[len(ahead) :] if hit.id not in homes]
    return groups


async def _places(scope: Transaction, found: Sequence[Hit]) -> dict[UUID, Place]:
    """Give where hits stand: a message, the end of a summary, the last message that says a fact."""
    facts = [hit for hit in found if hit.tier == Tier.FACTS]
    said = await messages.known(scope, sorted({message for fact in facts for message in fact.sources}))
    places = {
        hit.id: Place(hit.conversation_id, hit.seq) for hit in found if hit.conversation_id and hit.seq is not None
    }
    for fact in facts:
        if of_it := [said[message] for message in fact.sources if message in said]:
            last = max(of_it, key=lambda message: (message.occurred_at, message.seq))
            places[fact.id] = Place(last.conversation_id, last.seq)
    return places


def _homes(hits: Sequence[Hit], places: Mapping[UUID, Place], sessions: Sequence[Session]) -> dict[UUID, Session]:
    """Give the session of each hit that is in one of these."""
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


def _group(home: Session | UUID, hits: Sequence[Hit]) -> HitGroup:
    best = hits[0]
    if isinstance(home, Session):
        return HitGroup(best.score, home.since, home.until, home.conversation_id, tuple(hits))
    return HitGroup(best.score, best.occurred_at, best.occurred_at, best.conversation_id, tuple(hits))


def within_hits(group: HitGroup) -> HitGroup:
    """Give a group whose times are those of its hits alone."""
    times = [hit.occurred_at for hit in group.hits]
    return replace(group, since=min(times), until=max(times))


def by_fact(facts: Sequence[Hit], evidence: Iterable[Hit]) -> list[HitGroup]:
    """Give each fact with those messages of the evidence that it was made from, in the order of the facts."""
    known = {hit.id: hit for hit in evidence}
    groups = []
    for fact in facts:
        said = in_time(known[message] for message in fact.sources if message in known)
        ends = said or [fact]
        since, until = ends[0].occurred_at, ends[-1].occurred_at
        groups.append(HitGroup(fact.score, since, until, fact.conversation_id, tuple(said), fact))
    return groups
