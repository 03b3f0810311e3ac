"""What an assistant remembers of a person already: messages of the person, in one conversation of the assistant's.

So each is raw, may be erased, and is the source of the facts that are derived from it. Its id follows from its words: a
memory that stands in many conversations, or in the next export, is stored once, with the earliest time. They come
last and by time, since within a conversation the order decides what holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from memstore.models import IMPORTED_MEMORY, ImportedMemory

from .base import IMPORTED, Record, digest, make_storable


@dataclass(slots=True)
class SavedMemories:
    """The memories of an export, each once; `channel` is the assistant."""

    channel: str
    records: dict[str, Record] = field(default_factory=dict)

    def add(self, text: str, kind: ImportedMemory, where: str, time: datetime | None) -> None:
        text, metadata = make_storable(text.strip())
        id = f"memory:{digest([kind, text])}"
        earlier = self.records[id].message.get("occurred_at") if id in self.records else None
        time = min(filter(None, (time, earlier)), default=None)
        metadata |= {IMPORTED_MEMORY: kind} | ({} if time else IMPORTED)
        message = {"role": "user", "content": text, "external_id": id, "metadata": metadata}
        message |= {"occurred_at": time} if time else {}
        name, title = f"{self.channel}-memories", "Saved memories"
        self.records[id] = Record(conversation=name, message=message, title=title, channel=self.channel, where=where)

    def by_time(self) -> Iterator[Record]:
        latest = datetime.max.replace(tzinfo=UTC)
        yield from sorted(self.records.values(), key=lambda record: record.message.get("occurred_at", latest))
