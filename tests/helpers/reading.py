"""What is read of a message outside of a store."""

from collections.abc import Sequence

from memstore.derive.facts.drafts import FactDraft
from memstore.derive.facts.note_facts import Utterance, extract, turn_of
from memstore.derive.reader.model import load


def read(said: Utterance, before: Sequence[Utterance] = ()) -> list[FactDraft]:
    """Give the facts of a message, after those before it."""
    [notes] = load().read([turn_of(said, before)])
    return extract(said, notes, before)
