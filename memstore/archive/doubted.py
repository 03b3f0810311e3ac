"""Facts of an export that rest on nobody who is believed: they wait here to be confirmed, whatever the file says.

An export is a file, and may have been edited, or come from a store that believed others. What its messages are is
looked at here, as when a fact is derived of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from memstore.archive.ready import Ready
from memstore.ingest.facts.trust import NOBODY, Trust
from memstore.models import HAND, QUARANTINED, Conversation, Message, Span
from memstore.store import messages
from memstore.store.archived import Whole
from memstore.store.database import Transaction

HELD = ("active", "superseded")


async def doubted(scope: Transaction, given: Sequence[Ready], trust: Trust) -> list[Ready]:
    """Give facts with their sources no more trusted than the messages are; quarantined, where none is believed here.

    What a person has entered or confirmed stays as it is, and so does a fact of which a message is not stored.
    """
    said = [span.message_id for one in given for span, _ in one.fact.sources]
    known = await messages.known(scope, list(dict.fromkeys(said)))
    places = {one.conversation_id for one in known.values()} if trust.doubted else ()
    found = {place: await messages.conversation(scope, place) for place in places}
    return [_judged(one, known, found, trust) for one in given]


def _judged(
    one: Ready, known: Mapping[UUID, Message], places: Mapping[UUID, Conversation | None], trust: Trust
) -> Ready:
    whole = one.fact
    confirmed = any(change["action"] == "confirmed" for change in whole.history)
    if whole.fact.recipe == HAND or confirmed or not all(span.message_id in known for span, _ in whole.sources):
        return one
    sources, holds = [], not whole.sources
    for span, recorded_at in whole.sources:
        message = known[span.message_id]
        place = places.get(message.conversation_id)
        channel = None if place is None else place.channel
        level = min(span.trust, trust.level(message, span.start or 0, span.stop or 0, channel))
        sources.append((Span(message.id, span.start, span.stop, level), recorded_at))
        holds |= level > NOBODY and not trust.doubts(message)
    if holds or whole.fact.state not in HELD:
        return replace(one, item=replace(whole, sources=sources))
    fact = whole.fact.model_copy(update={"state": QUARANTINED})
    return replace(one, item=Whole(fact, sources, whole.history), units=[])  # what waits is not found
