"""Memory as it is promised to be, in dicts and lists: no database, no derivation, small enough to be seen to be right.

Each word of `WORD` is said by one draft alone, so that a text which comes back tells by its words whose it is and which
messages it rests on.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from uuid import UUID

WORD = re.compile(r"zq[a-z]{6}q", re.IGNORECASE)
_numbers = count(1)


def words(*texts: str | None) -> set[str]:
    return {word.lower() for text in texts for word in WORD.findall(text or "")}


def new_word() -> str:
    number, letters = next(_numbers), ""
    for _ in range(6):
        number, letter = divmod(number, 26)
        letters += chr(ord("a") + letter)
    return f"Zq{letters}q"


class Refused(Exception):
    """A call that stores nothing: `why` is "conflict" or "erased"."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True)
class Draft:
    """A message as it is stored; `at` is when it was said, and `trusted` whether who says it is believed."""

    role: str
    content: str
    external_id: str | None
    at: datetime
    trusted: bool = True


@dataclass
class Said:
    """A stored message; its id is learnt where it is first given back."""

    seq: int
    draft: Draft
    id: UUID | None = None
    derived: bool = False


@dataclass
class Room:
    """A conversation: its messages in order, and the highest number given."""

    said: list[Said] = field(default_factory=list)
    last: int = 0
    cleared: int = 0

    def known(self, external_id: str | None) -> Said | None:
        return next((one for one in self.said if external_id and one.draft.external_id == external_id), None)


@dataclass
class Person:
    """A user: conversations by name, documents, what was erased of messages and facts, what people did to facts.

    `entered` facts are by their word, whether they hold; `retracted` ones by id, with the messages that say them;
    `confirmed` are those that a person let hold. `erasures` counts what changes the past, `lives` how often all went.
    """

    rooms: dict[str, Room] = field(default_factory=dict)
    erased: set[object] = field(default_factory=set)
    erased_facts: set[UUID] = field(default_factory=set)
    entered: dict[str, bool] = field(default_factory=dict)
    retracted: dict[UUID, frozenset[UUID]] = field(default_factory=dict)
    confirmed: set[UUID] = field(default_factory=set)
    documents: dict[str, str] = field(default_factory=dict)
    erasures: int = 0
    lives: int = 0

    def room(self, name: str) -> Room:
        """Give a conversation, as it is before its first message too."""
        return self.rooms.get(name, Room())

    def add(self, name: str, drafts: Sequence[Draft], *, skip: bool) -> list[Said]:
        """Store all in order, or raise `Refused` and store nothing; with `skip` what is refused is left as it is."""
        room, given, fresh = self.room(name), [], []
        for draft in drafts:
            twin = room.known(draft.external_id) or next(
                (one for one in fresh if draft.external_id and one.draft.external_id == draft.external_id), None
            )
            if twin and not skip and (twin.draft.role, twin.draft.content) != (draft.role, draft.content):
                raise Refused("conflict")
            if twin is None:
                twin = Said(room.last + 1 + len(fresh), draft)
                fresh.append(twin)
            given.append(twin)
        gone = [one for one in fresh if self._tombstone(name, one.draft) in self.erased]
        if gone and not skip:
            raise Refused("erased")
        if gone:
            return self.add(name, [one for one in drafts if self._tombstone(name, one) not in self.erased], skip=True)
        if drafts:
            room.said += fresh
            room.last += len(fresh)
            self.rooms[name] = room
        return given

    def erase(self, name: str, seqs: Iterable[int]) -> None:
        """Erase messages, and what was taken back of what they say: no more is known of that."""
        room, seqs = self.rooms[name], set(seqs)
        gone = [one for one in room.said if one.seq in seqs]
        room.said = [one for one in room.said if one.seq not in seqs]
        self.erased |= {self._tombstone(name, one.draft) for one in gone}
        ids = {one.id for one in gone}
        self.retracted = {fact: sources for fact, sources in self.retracted.items() if not sources & ids}
        self.erasures += bool(gone)

    def erase_before(self, moment: datetime) -> int:
        """Erase what was said before a moment; give how many messages that is."""
        old = {name: [one.seq for one in room.said if one.draft.at < moment] for name, room in self.rooms.items()}
        for name, seqs in old.items():
            self.erase(name, seqs)
        return sum(map(len, old.values()))

    def erase_room(self, name: str) -> None:
        """Erase a conversation; the next message under its name is its first."""
        if name in self.rooms:
            self.erase(name, [one.seq for one in self.rooms[name].said])
            del self.rooms[name]
            self.erasures += 1

    def erase_all(self) -> None:
        """Erase everything but the knowledge of what was erased."""
        for name in list(self.rooms):
            self.erase_room(name)
        self.entered, self.retracted, self.confirmed, self.documents = {}, {}, set(), {}
        self.erasures += 1
        self.lives += 1

    def erase_fact(self, fact: UUID, text: str) -> None:
        """Erase a fact; what it says is gone where a person entered it."""
        self.erased_facts.add(fact)
        for word in words(text):
            self.entered.pop(word, None)
        self.erasures += 1

    def live(self) -> dict[UUID | None, Said]:
        return {one.id: one for room in self.rooms.values() for one in room.said}

    def words(self) -> set[str]:
        return words(*(one.draft.content for one in self.live().values())) | set(self.entered)

    @staticmethod
    def _tombstone(name: str, draft: Draft) -> object:
        return (name, draft.external_id) if draft.external_id else (name, draft.role, draft.content, draft.at)
