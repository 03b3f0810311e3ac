"""Which facts make which outdated, as the reader understands two statements.

The result of a pair depends on its two statements, and on when and by whom they were said, alone: so the same facts
hold in the end, whichever conversation is derived first. A fact that a person has set, or that protects somebody, is
never ended by a reading.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import compress

from memstore._compat import to_thread
from memstore.derive.facts.drafts import ExtractedFact, Successor
from memstore.derive.facts.entities import KIN, PARTNERS
from memstore.derive.facts.normalization import is_protection
from memstore.derive.facts.quotations import words_of
from memstore.derive.facts.reconcile import end_of
from memstore.derive.reader import read_relations
from memstore.derive.reader.notes import Pair
from memstore.models import ALWAYS, HAND, FactColumns, KnownFact
from memstore.store import facts
from memstore.store.database import Transaction
from memstore.text import word_set

EVENT = "event"  # the type of what happened, which nothing ends
OUTDATED = 0.9  # probability from which a statement makes another outdated
NEAR = 0.5  # least cosine of two statements that are read as a pair
_OTHERS = word_set(
    "parent parents kids kiddo children twins folks siblings grandparents neighbours neighbors landlord landlady mate"
    " tenant tenants lodger bestie friends colleagues flatmates roommates brothers sisters sons daughters cousins"
    " eltern kinder großeltern geschwister vermieter vermieterin mieter nachbar nachbarin nachbarn freunde brüder"
    " schwestern söhne töchter mitbewohner mitbewohnerin"
)
_RELATIVES = KIN | PARTNERS | _OTHERS
_WORD = re.compile(r"[^\W\d_]+")


async def with_outdated(
    tx: Transaction, new: ExtractedFact, fact: FactColumns, known: Sequence[KnownFact], last_said: datetime
) -> ExtractedFact:
    """Return a new fact with those that it makes outdated, and with the first that makes it outdated.

    `fact` is the new one as it is stored, and `last_said` when somebody last said it.
    """
    near = [one for one in known if (one.cosine or 0.0) >= NEAR and _may_be_pair(fact, one.fact)]
    said_at, own = new.fact.occurred_at, f"{new.speaker}'s ".casefold()
    earlier, later = list[FactColumns](), list[FactColumns]()
    if new.may_change and new.said_by_subject:
        mine = [one for one in near if f"{one.fact.subject}'s ".casefold().startswith(own) and one.by_hand is None]
        earlier = [one.fact for one in mine if one.last_said < said_at and _may_be_ended(one.fact)]
    if _may_be_ended(fact):
        later = [one.fact for one in near if one.last_said > last_said]
    said = await facts.said_after(tx, fact.subject, [one.id for one in later], last_said) if later else {}
    later = [one for one in later if one.id in said]
    words = words_of(fact.text)
    pairs = [Pair(words_of(one.text), words) for one in earlier] + [Pair(words, words_of(one.text)) for one in later]
    outdated = await to_thread(_are_outdated, pairs) if pairs else []
    ends = compress([one.id for one in earlier], outdated)
    successors = (
        Successor(end_of(fact, one.valid_from or said[one.id], said[one.id]), one.id)
        for one in compress(later, outdated[len(earlier) :])
    )
    return replace(new, ends=tuple(ends), successor=min(successors, default=None))


def _may_be_pair(fact: FactColumns, other: FactColumns) -> bool:
    """Whether two facts are read as a pair: those that both fill slots are decided by these."""
    holds_or_did = other.state in ("active", "superseded")
    return (
        holds_or_did and (fact.attribute is None or other.attribute is None) and _relatives(fact) == _relatives(other)
    )


def _relatives(fact: FactColumns) -> frozenset[str]:
    """Return the relatives in a fact: a sister's home is not ended by one's own."""
    return _RELATIVES.intersection(_WORD.findall(words_of(fact.text).casefold()))


def _may_be_ended(fact: FactColumns) -> bool:
    return fact.type != EVENT and fact.recipe != HAND and fact.importance != ALWAYS and not is_protection(fact)


def _are_outdated(pairs: Sequence[Pair]) -> list[bool]:
    """Return for each pair whether its later statement makes the earlier one outdated."""
    return [each["replaces"] + each["ends"] >= OUTDATED for each in read_relations(pairs)]
