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
from memstore.store.items import NewUnit

SHORTEST_UNIT = 16


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages to be embedded; `to_seq` is the last one."""

    to_seq: int
    messages: list[Message]


class Embed:
    """Makes units, terms and vectors of messages."""

    name = "embed"

    def __init__(self, tools: Tools) -> None:
        self.tools = tools

    async def read(self, scope: Transaction, work: Pending, limit: int) -> Batch:
        """Give the next messages."""
        to_seq = min(work.last_seq, work.done_seq + limit)
        found = await messages.messages(scope, work.conversation_id, from_seq=work.done_seq + 1, to_seq=to_seq)
        return Batch(to_seq, found)

    def think(self, batches: Sequence[Batch]) -> list[list[NewUnit]]:
        """Cut and embed; texts of all conversations go to the encoder together."""
        cut = [[pair for message in batch.messages for pair in units(message, self.tools)] for batch in batches]
        texts = [text for pairs in cut for _, text, _ in pairs]
        vectors = iter(self.tools.embed(texts))
        return [
            [
                NewUnit(unit, text, vector, tags)
                for (unit, text, tags), vector in zip(pairs, islice(vectors, len(pairs)), strict=True)
            ]
            for pairs in cut
        ]

    async def write(self, scope: Transaction, made: list[NewUnit]) -> dict[str, int]:
        """Store the units."""
        model = await items.bind_embedder(scope, self.tools.embedder)
        return {"units": await items.add(scope, made, model)}


def units(message: Message, tools: Tools) -> list[tuple[Unit, str, list[str]]]:
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
            message.tags,
        )
        for number, (start, stop) in enumerate(spans)
    ]
