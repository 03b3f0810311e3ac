"""The stretch of a conversation that a context is of: read while the question is embedded, whatever that is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from memstore.context import receipt_store
from memstore.context.compression import Stored
from memstore.context.heard import heard_turns
from memstore.context.receipt_store import PreviousContext
from memstore.context.request import Assembly
from memstore.context.turns import Turn, turns
from memstore.models import Message, Role, Summary
from memstore.store import chunks, facts, messages, summaries
from memstore.store.chunks import IndexVersion
from memstore.store.database import Transaction
from memstore.store.summaries import Outline

# Kinds of facts that matter whatever is asked. "What should I avoid eating?" is far from "allergic to peanuts" for an
# embedder; nobody asks for standing instructions at all.
STANDING, MOST_STANDING = ("constraint", "procedure", "identity"), 8
MOST_VIEWED = 100  # of them, where a viewer sees some only
A_MESSAGE = 32  # tokens, to guess how many recent messages to read; where that is too few, more are read
LONGEST, STEP = 4000, 1000  # messages that strategies see, and by how many they begin later
LEAST_READ, MOST_READ = 64, 2000  # messages at once: 64 cost what another round trip does
MOST_LOOKED_AT = 20_000  # messages, for those that a viewer sees
OVERHEAD = 4  # tokens that a message costs besides its content, at least


@dataclass(frozen=True, slots=True)
class ConversationHistory:
    """What the viewer sees of a stretch, and what else a context is made of that its question does not choose.

    `asked` is the message that asks, where one does, and among the `turns`, which are in order. What was read of the
    stretch has so many `tokens`, seen or not. `nest` are the outlines of its summaries; `earlier` are those of earlier
    stretches. `standing` are facts that are in whatever is asked; `version` is that of what can be recalled beside.
    """

    asked: Message | None
    turns: Sequence[Turn]
    refused: Sequence[Message]
    tokens: int
    stored: Stored
    nest: Sequence[Outline]
    earlier: Collection[UUID]
    standing: Sequence[UUID]
    version: IndexVersion | None
    before: PreviousContext


async def newest_question(scope: Transaction, made: Assembly, known: Sequence[Message] = ()) -> Message | None:
    """Give the newest message of a person in the stretch, of those that the viewer sees.

    `known` are the newest messages of the stretch, in order, where they are read already.
    """
    request, before = made.request, messages.LAST
    if found := next((one for one in reversed(known) if one.role == Role.USER and made.sight.sees(one)), None):
        return found
    if not made.exists:
        return None
    if not made.sight.filters:
        newest = await messages.newest_of(scope, request.conversation_id, Role.USER, as_of=request.as_of)
        return newest if newest and newest.seq > made.after else None
    for limit in (STEP, MOST_LOOKED_AT - STEP):
        page = await messages.newest(scope, request.conversation_id, limit=limit, before=before, as_of=request.as_of)
        for one in page:
            if one.seq > made.after and one.role == Role.USER and made.sight.sees(one):
                return one
        if not page or page[-1].seq <= made.after:
            break
        before = page[-1].seq
    return None


async def load_history(scope: Transaction, made: Assembly, newest: Message | None, model: UUID) -> ConversationHistory:
    """Read a stretch; `newest` is the newest message that asks, where no query is given, `model` the embedder's."""
    request, sight = made.request, made.sight
    async with scope.ahead() as reads:
        await _prefetch(reads, made, model)
    found = await (_whole if made.strategies else _recent)(scope, made)
    if request.query is not None:
        newest = await newest_question(scope, made, found)
    said, refused = turns(sight.of(found))
    heard = heard_turns(said, request.viewer)
    every = await summaries.outlines(scope, request.conversation_id, as_of=request.as_of)
    above = [one for one in every if one.from_seq > made.after]
    return ConversationHistory(
        asked=newest if newest is not None and request.query in (None, newest.text) else None,
        turns=heard,
        refused=refused,
        tokens=sum(one.tokens for one in found),
        nest=await sight.outlines(scope, request.conversation_id, above),
        earlier={one.id for one in every if one.from_seq <= made.after},
        standing=(await sight.fact_ids(scope, await _standing(scope, made)))[:MOST_STANDING],
        stored=await _stored(scope, made, heard),
        version=await chunks.index_version(scope, model),
        before=await receipt_store.load_previous(scope, request.conversation_id, request.as_of, request.viewer),
    )


async def _prefetch(reads: Transaction, made: Assembly, model: UUID) -> None:
    """Ask for what `read` asks for first, whatever it is answered."""
    request = made.request
    await (_whole if made.strategies else _recent)(reads, made)
    await summaries.outlines(reads, request.conversation_id, as_of=request.as_of)
    await _standing(reads, made)
    await chunks.index_version(reads, model)
    if request.as_of is None:
        await receipt_store.load_previous(reads, request.conversation_id, None, request.viewer)


async def _stored(scope: Transaction, made: Assembly, found: Sequence[Turn]) -> Stored:
    """Give what strategies read; they may want the facts."""
    if not made.strategies:
        return Stored(found)
    every = await summaries.summaries(scope, made.request.conversation_id, as_of=made.request.as_of)
    above: list[Summary] = await made.sight.summaries(scope, [one for one in every if one.from_seq > made.after])
    if not any(getattr(one, "by_facts", False) for one in made.strategies):
        return Stored(found, above)
    return Stored(found, above, await made.sight.facts(scope, await facts.facts(scope, as_of=made.request.as_of)))


async def _recent(scope: Transaction, made: Assembly) -> list[Message]:
    """Give the stretch's newest messages in order, as many as could fill the budget with those that are seen."""
    request = made.request
    found: list[Message] = []
    tokens = 0
    while tokens < made.budget or (found and found[-1].role == Role.TOOL):  # results are nothing without their call
        page = await messages.newest(
            scope,
            request.conversation_id,
            limit=_page(made.budget - tokens, len(found), tokens),
            before=found[-1].seq if found else messages.LAST,
            as_of=request.as_of,
        )
        found += page
        tokens += sum(one.tokens + OVERHEAD for one in page if made.sight.may_see(one))
        if not page or page[-1].seq <= made.after + 1 or (made.sight.filters and len(found) >= MOST_LOOKED_AT):
            break
    return [one for one in reversed(found) if one.seq > made.after]


def _page(wanted: int, found: int, tokens: int) -> int:
    """Give how many messages may have the tokens that are wanted, going by those that were found."""
    return max(LEAST_READ, min(MOST_READ, wanted * found // tokens if tokens else wanted // A_MESSAGE))


async def _whole(scope: Transaction, made: Assembly) -> list[Message]:
    """Give the stretch in order, for strategies: where it is very long, the newest `LONGEST` messages or more.

    The beginning then moves by `STEP` messages at once, so that what follows from it stays for as long.
    """
    request = made.request
    found = await messages.newest(scope, request.conversation_id, limit=LONGEST + STEP, as_of=request.as_of)
    last = found[0].seq if found else 0
    first = max((last - LONGEST) // STEP * STEP, made.after)
    return [one for one in reversed(found) if one.seq > first]


async def _standing(scope: Transaction, made: Assembly) -> list[UUID]:
    limit = MOST_VIEWED if made.sight.filters else MOST_STANDING
    return await facts.standing(scope, STANDING, limit=limit, as_of=made.request.as_of)
