"""The embed deriver: every message becomes one unit of recall, or several overlapping ones where it is long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from memstore.ingest.chunks import chunks
from memstore.ingest.tools import Tools
from memstore.models import Message, Tier, Unit
from memstore.store import items, messages
from memstore.store.database import Transaction
from memstore.store.derivations import Pending
from memstore.store.items import NewUnit, new_unit

SHORTEST_UNIT = 16
BATCH_TOKENS = 250_000  # a batch is held in memory, and a message may have megabytes


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages to be embedded; `to_seq` is the last one."""

    to_seq: int
    messages: list[Message]


@dataclass(frozen=True, slots=True)
class Made:
    """The units of the messages up to `to_seq`."""

    to_seq: int
    units: list[NewUnit]


async def batch_end(scope: Transaction, work: Pending, limit: int) -> int:
    """Give the number of the last message that is thought about at once with those after the watermark."""
    most = min(work.last_seq, work.done_seq + limit)
    return await messages.within(scope, work.conversation_id, work.done_seq + 1, most, BATCH_TOKENS)


async def next_messages(scope: Transaction, work: Pending, limit: int) -> Batch:
    """Give the next messages after the watermark, as many as are thought about at once."""
    to_seq = await batch_end(scope, work, limit)
    found = await messages.messages(scope, work.conversation_id, from_seq=work.done_seq + 1, to_seq=to_seq)
    return Batch(to_seq, found)


class Embed:
    """Makes units, terms and vectors of messages."""

    name = "embed"
    batch = 512  # messages at once: enough for the encoder to sort them by length
    asks = False
    recipe = "units/1"  # the embedder is not of it: vectors of two are never mixed

    def __init__(self, tools: Tools) -> None:
        self.tools = tools

    async def read(self, scope: Transaction, work: Pending, limit: int) -> Batch:
        """Give the next messages."""
        return await next_messages(scope, work, limit)

    def think(self, batches: Sequence[Batch]) -> list[Made]:
        """Cut and embed; texts of all conversations go to the encoder together."""
        cut = [
            [(message, unit, text) for message in batch.messages for unit, text in units(message, self.tools)]
            for batch in batches
        ]
        texts = [text for pairs in cut for _, _, text in pairs]
        vectors = iter(self.tools.embed(texts))
        made = [
            [
                new_unit(message.user_id, unit, text, vector, message.tags)
                for (message, unit, text), vector in zip(pairs, islice(vectors, len(pairs)), strict=True)
            ]
            for pairs in cut
        ]
        return [Made(batch.to_seq, units) for batch, units in zip(batches, made, strict=True)]

    async def write(self, scope: Transaction, made: Made) -> dict[str, int]:
        """Store the units."""
        model = await items.bind_embedder(scope, self.tools.embedder)
        return {"units": await items.add(scope, made.units, model)}


def units(message: Message, tools: Tools) -> list[tuple[Unit, str]]:
    """Give a message's units, each with the text to embed: who speaks is part of it (+14 points of recall)."""
    text = message.text or ""
    speaker = message.name or message.role
    prefix = f"{speaker}: "
    room = max(SHORTEST_UNIT, tools.unit_limit - tools.unit_count(prefix))
    spans = chunks(text, room, tools.unit_count)
    return [
        (
            Unit(
                item_id=message.id,
                chunk=number,
                tier=Tier.MESSAGES,
                conversation_id=message.conversation_id,
                seq=message.seq,
                role=message.role,
                speaker=speaker,
                start=start,
                stop=stop,
                occurred_at=message.occurred_at,
            ),
            prefix + text[start:stop],
        )
        for number, (start, stop) in enumerate(spans)
    ]
