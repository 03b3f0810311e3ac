"""Which known facts a new one makes outdated, as the reader understands the two statements. Pure but for it.

A fact that a person has set, or that protects somebody, is never ended by a reading.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from memstore.derive.facts.drafts import ExtractedFact
from memstore.derive.facts.entities import KIN, PARTNERS
from memstore.derive.facts.normalization import is_protection
from memstore.derive.reader import read_relations
from memstore.derive.reader.notes import Pair
from memstore.models import ALWAYS, HAND, KnownFact

OUTDATED = 0.85  # probability from which a statement makes another outdated
NEAR = 0.5  # least cosine of two statements that are read as a pair
MOST_PAIRS = 8  # of a new fact
_RELATIVES = KIN | PARTNERS
_WORD = re.compile(r"[^\W\d_]+")
_QUOTED = re.compile(r'[^"\n]{1,100}(?:, (?:asked|gefragt) "[^"]*")?: "(.*)"', re.DOTALL)


def with_changes(new: ExtractedFact, known: Sequence[KnownFact]) -> ExtractedFact:
    """Return a new fact with the known one that it ends.

    A statement makes one other outdated: of those that it may, the nearest. Of two that fill slots, these decide.
    """
    near = [
        one
        for one in known
        if one.fact.state == "active"
        and one.last_said < new.fact.occurred_at
        and (one.cosine or 0.0) >= NEAR
        and (new.slot is None or one.fact.attribute is None)
    ]
    near = sorted(near, key=lambda one: (-(one.cosine or 0.0), one.fact.text))[:MOST_PAIRS]
    pairs = [Pair(_statement(one.fact.text), _statement(new.fact.text)) for one in near]
    ends = [
        one.fact.id
        for one, pair, relation in zip(near, pairs, read_relations(pairs), strict=True)
        if relation["replaces"] + relation["ends"] >= OUTDATED and _is_of_same_people(pair) and _may_end(one)
    ]
    return replace(new, ends=tuple(ends[:1]))


def _is_of_same_people(pair: Pair) -> bool:
    """Whether two statements speak of the same relatives: a sister's home is not ended by one's own."""
    earlier, later = (_RELATIVES.intersection(_WORD.findall(text.casefold())) for text in pair)
    return earlier == later


def _may_end(known: KnownFact) -> bool:
    is_set = known.by_hand is not None or known.fact.recipe == HAND or known.fact.importance == ALWAYS
    return not is_set and not is_protection(known.fact)


def _statement(text: str) -> str:
    """Return the words of a quotation without who says them, else the text."""
    quoted = _QUOTED.fullmatch(text)
    return quoted[1] if quoted else text
