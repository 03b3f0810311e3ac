"""The embed deriver: every message becomes one unit of recall, or several overlapping ones where it is long.

Prose is cut between sentences and apart from pasted code, what a tool gave at the borders of its structure: a hit
should read as something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from memstore.derive.chunks import chunks
from memstore.derive.pasted import apart
from memstore.derive.resources import Resources
from memstore.derive.structure import parts
from memstore.models import Message, Role, Tier, Unit
from memstore.store import embedders, items, messages
from memstore.store.database import Transaction
from memstore.store.items import NewUnit, new_unit
from memstore.store.terms import TermHashes
from memstore.store.watermarks import Pending

SHORTEST_UNIT = 16
BATCH_TOKENS = 250_000  # a batch is held in memory, and a message may have megabytes


@dataclass(frozen=True, slots=True)
class MessageBatch:
    """Messages to be embedded; `to_seq` is the last one."""

    to_seq: int
    messages: list[Message]


@dataclass(frozen=True, slots=True)
class MadeUnits:
    """The units of the messages up to `to_seq`."""

    to_seq: int
    units: list[NewUnit]
    asked: None = None  # no model


async def batch_end(scope: Transaction, work: Pending, limit: int) -> int:
    """Give the number of the last message that is thought about at once with those after the watermark."""
    most = min(work.last_seq, work.done_seq + limit)
    return await messages.within(scope, work.conversation_id, work.done_seq + 1, most, BATCH_TOKENS)


async def next_messages(scope: Transaction, work: Pending, limit: int) -> MessageBatch:
    """Give the next messages after the watermark, as many as are thought about at once."""
    to_seq = await batch_end(scope, work, limit)
    found = await messages.messages(scope, work.conversation_id, from_seq=work.done_seq + 1, to_seq=to_seq)
    return MessageBatch(to_seq, found)


class Chunking:
    """Cuts messages into units; there is no other way."""

    batch = 512  # enough for the encoder to sort them by length
    asks = False
    recipe = "units/3"  # the embedder is not of it: vectors of another are made of the same units


class Embed:
    """Makes units, terms and vectors of messages."""

    name = "embed"
    method = Chunking()

    def __init__(self, resources: Resources) -> None:
        self.resources = resources
        self._cutter, self._hashes = Cutter(resources), TermHashes()

    def by(self, resources: Resources) -> Embed:
        """Give the same with other resources."""
        return Embed(resources)

    async def read(self, scope: Transaction, work: Pending, limit: int) -> MessageBatch:
        """Give the next messages."""
        return await next_messages(scope, work, limit)

    def think(self, batches: Sequence[MessageBatch]) -> list[MadeUnits]:
        """Cut and embed; texts of all conversations go to the encoder together."""
        cut = [
            [(message, unit, text) for message in batch.messages for unit, text in self._cutter.units(message)]
            for batch in batches
        ]
        texts = [text for pairs in cut for _, _, text in pairs]
        vectors = iter(self.resources.embed(texts))
        made = [
            [
                new_unit(message.user_id, unit, text, vector, message.tags, self._hashes)
                for (message, unit, text), vector in zip(pairs, islice(vectors, len(pairs)), strict=True)
            ]
            for pairs in cut
        ]
        return [MadeUnits(batch.to_seq, units) for batch, units in zip(batches, made, strict=True)]

    async def write(self, scope: Transaction, made: MadeUnits) -> dict[str, int]:
        """Store the units."""
        model = await embedders.bind(scope, self.resources.embedder)
        return {"units": await items.add(scope, made.units, model)}


class Cutter:
    """Cuts messages into units, each with the text to embed: who speaks is part of it (+14 points of recall)."""

    def __init__(self, resources: Resources) -> None:
        self.resources = resources
        self._limit, self._count = resources.unit_limit, resources.unit_count
        self._rooms: dict[str, int] = {}

    def units(self, message: Message) -> list[tuple[Unit, str]]:
        """Give a message's units, each with the text to embed."""
        text, speaker = message.text or "", message.name or message.role
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
                said_by(speaker, text[start:stop]),
            )
            for number, (start, stop) in enumerate(self._spans(message, text, self._room(speaker)))
        ]

    def _spans(self, message: Message, text: str, room: int) -> Iterator[tuple[int, int]]:
        structured = parts if message.role == Role.TOOL else None
        # An assistant's code is its answer: apart there would be an eighth more units in all.
        for begin, end in apart(text) if message.role == Role.USER else [(0, len(text))]:
            for start, stop in chunks(text[begin:end], room, self._counting(message, text), parts=structured):
                yield begin + start, begin + stop

    def _room(self, speaker: str) -> int:
        """Give how many tokens a unit has for what this speaker says."""
        if speaker not in self._rooms:
            self._rooms[speaker] = max(SHORTEST_UNIT, self._limit - self._count(said_by(speaker, "")))
        return self._rooms[speaker]

    def _counting(self, message: Message, text: str) -> Callable[[str], int]:
        """Give what measures the parts of a message; the whole of it is not counted again by what counted it before."""
        known = self.resources.embedder is None and message.counter == self.resources.counter.name
        if not known or message.tool_calls:
            return self._count
        return lambda part: message.tokens if len(part) == len(text) else self._count(part)


def said_by(speaker: str, text: str) -> str:
    """Give the words of a message as they are embedded."""
    return f"{speaker}: {text}"
