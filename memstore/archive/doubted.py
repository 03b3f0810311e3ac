"""Facts of an export that rest on nobody who is believed: they wait here to be confirmed, whatever state the file says.

An export is a file, and may have been edited, or come from a store that believed others. What its messages are is
looked at here, as when a fact is derived of them; one that is derived of none is of nobody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from memstore.archive.ready import Ready
from memstore.ingest.check import TRUST, UNTRUSTED
from memstore.ingest.facts.trust import NOBODY, Trust
from memstore.models import HAND, QUARANTINED, Message, Span
from memstore.store import messages
from memstore.store.archived import Whole
from memstore.store.database import Transaction

HELD = ("active", "superseded")


async def doubted(
    scope: Transaction, given: Sequence[Ready], trust: Trust, coming: Mapping[UUID, Message] | None = None
) -> list[Ready]:
    """Give facts with their sources no more trusted than the messages are; quarantined, where none is believed here.

    What a person has entered or confirmed stays as it is, and so does a fact of which a message is not stored. In a
    rehearsal those of the file never are: `coming` has those of them that are `doubtful`.
    """
    said = [span.message_id for one in given for span, _ in one.fact.sources]
    known = await messages.known(scope, list(dict.fromkeys(said)))
    places = {one.conversation_id for one in known.values()} if trust.doubted else ()
    found = {place: await messages.conversation(scope, place) for place in places}
    channels = {place: one.channel for place, one in found.items() if one is not None}
    return [_judged(one, {**(coming or {}), **known}, channels, trust, coming is not None) for one in given]


def doubtful(given: Sequence[Ready], channel: str | None, trust: Trust) -> dict[UUID, Message]:
    """Give those of messages that come that no fact may rest on alone, or not on all of, with what tells it alone."""
    found = {}
    for message in (one.message for one in given):
        whole = trust.level(message, 0, len(message.text or ""), channel)
        if whole > NOBODY and not trust.doubts(message):
            continue
        pasted = whole == NOBODY < trust.level(message, 0, 0, channel)  # into it: of the rest it depends where
        found[message.id] = Message.model_construct(
            id=message.id,
            conversation_id=message.conversation_id,
            role=message.role,
            text=message.text if pasted else None,
            meta={} if pasted or whole > NOBODY else {TRUST: UNTRUSTED},
        )
    return found


def _judged(
    one: Ready, known: Mapping[UUID, Message], channels: Mapping[UUID, str | None], trust: Trust, rehearsed: bool
) -> Ready:
    whole = one.fact
    confirmed = any(change["action"] == "confirmed" for change in whole.history)
    unknown = any(span.message_id not in known for span, _ in whole.sources)
    if whole.fact.recipe == HAND or confirmed or (unknown and not rehearsed):
        return one
    sources, holds = [], False  # what names no source was derived of nothing
    for span, recorded_at in whole.sources:
        message, level = known.get(span.message_id), span.trust
        if message is not None:
            channel = channels.get(message.conversation_id)
            level = min(level, trust.level(message, span.start or 0, span.stop or 0, channel))
        sources.append((Span(span.message_id, span.start, span.stop, level), recorded_at))
        holds |= level > NOBODY and (message is None or not trust.doubts(message))
    if holds or whole.fact.state not in HELD:
        return replace(one, item=replace(whole, sources=sources))
    fact = whole.fact.model_copy(update={"state": QUARANTINED})
    return replace(one, item=Whole(fact, sources, whole.history), units=[])  # what waits is not found
