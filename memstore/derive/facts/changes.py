"""Which known facts a new one makes outdated, as the reader understands the two statements. Pure but for it.

A fact that a person has set, or that protects somebody, is never ended by a reading.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from memstore.derive.facts.drafts import ExtractedFact
from memstore.derive.facts.entities import KIN, PARTNERS
from memstore.derive.facts.normalization import is_protection
from memstore.derive.reader import read_relations
from memstore.derive.reader.notes import Pair
from memstore.models import ALWAYS, HAND, FactColumns, KnownFact

OUTDATED = 0.85  # probability from which a statement makes another outdated
NEAR = 0.5  # least cosine of two statements that are read as a pair
MOST_PAIRS = 8  # of a new fact
_RELATIVES = KIN | PARTNERS
_WORD = re.compile(r"[^\W\d_]+")
_QUOTED = re.compile(r'[^"\n]{1,100}: "(.*)"', re.DOTALL)


def with_changes(new: ExtractedFact, known: Sequence[KnownFact]) -> ExtractedFact:
    """Return a new fact with the known one that it ends, and that said later which ends it.

    A statement makes one other outdated: of those that it may, the nearest. Of two that fill slots, these decide.
    """
    said_at = new.fact.occurred_at
    near = [
        one
        for one in known
        if one.fact.state == "active"
        and (one.cosine or 0.0) >= NEAR
        and (new.slot is None or one.fact.attribute is None)
    ]
    near = sorted(near, key=lambda one: (-(one.cosine or 0.0), one.fact.text))[:MOST_PAIRS]
    pairs = [_pair(new.fact, said_at, one) for one in near]
    ends, ended_by = list[UUID](), list[UUID]()
    for one, pair, relation in zip(near, pairs, read_relations(pairs), strict=True):
        if relation["replaces"] + relation["ends"] < OUTDATED or not _is_of_same_people(pair):
            continue
        if one.last_said < said_at and _may_end(one.fact) and one.by_hand is None:
            ends.append(one.fact.id)
        elif one.last_said > said_at and _may_end(new.fact):
            ended_by.append(one.fact.id)
    return replace(new, ends=tuple(ends[:1]), ended_by=tuple(ended_by[:1]))


def _is_of_same_people(pair: Pair) -> bool:
    """Whether two statements speak of the same relatives: a sister's home is not ended by one's own."""
    earlier, later = (_RELATIVES.intersection(_WORD.findall(text.casefold())) for text in pair)
    return earlier == later


def _may_end(fact: FactColumns) -> bool:
    return fact.recipe != HAND and fact.importance != ALWAYS and not is_protection(fact)


def _pair(new: FactColumns, said_at: datetime, one: KnownFact) -> Pair:
    """Return two statements in the order in which they were said."""
    texts = _statement(one.fact.text), _statement(new.text)
    return Pair(*texts) if one.last_said <= said_at else Pair(*reversed(texts))


def _statement(text: str) -> str:
    """Return the words of a quotation without who says them, else the text."""
    quoted = _QUOTED.fullmatch(text)
    return quoted[1] if quoted else text
