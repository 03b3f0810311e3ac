"""What the rules read and what they give: a message as it was said, and a fact before it has a source or an id."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from memstore.ingest.rules.asides import without_asides
from memstore.ingest.rules.misstated import without_misstatements
from memstore.ingest.sentences import sentences

MOST_SENTENCES = 1000  # of a message; what is longer is a paste, and its end is not read


@dataclass(frozen=True)
class Said:
    """A message as the rules read it; `speaker` is the name that facts are told of, None for "The user"."""

    text: str
    role: str
    speaker: str | None
    occurred_at: datetime

    @property
    def subject(self) -> str:
        """Whom the speaker's facts are about."""
        return self.speaker or "The user"

    @cached_property
    def stated(self) -> str:
        """The text with blanks for its asides and what it takes back, every character in its place; made once."""
        return without_asides(without_misstatements(self.text))

    @cached_property
    def sentences(self) -> list[tuple[int, int]]:
        """The places in `stated` of the sentences that are read; found once, for all languages that are tried."""
        return sentences(self.stated)[:MOST_SENTENCES]


@dataclass(frozen=True, slots=True)
class FactDraft:
    """A fact as a rule reads it, before it has a source, an id or an embedding.

    `text` stands for itself: a sentence in the third person with absolute dates, or the speaker's words after the name.
    `type` is preference, goal, strength, weakness, interest, identity, relationship, event, plan, constraint, decision
    or procedure; `kind` is what sort of memory that is: episodic, semantic or procedural. `subject` is whom it is
    about, as the text names them. `confidence` is from 0 to 1; `language` is ISO 639-1. `start` and `stop` are the
    characters of the message that say it. It holds from `valid_from`, where the speaker said so, to `valid_to`.
    """

    text: str
    type: str
    kind: str
    subject: str
    confidence: float
    language: str
    start: int
    stop: int
    valid_from: datetime | None = None
    valid_to: datetime | None = None
