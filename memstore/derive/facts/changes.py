"""Which facts make which outdated, as the reader understands two statements.

The result of a pair depends on its two statements and their vectors, and on when and by whom they were said. So the
same facts hold in the end, whichever conversation is derived first. A fact that protects somebody is never ended by a
reading, and one that a person has set only by what a person sets later.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from itertools import compress

from memstore._compat import to_thread
from memstore.derive.facts.drafts import FactDraft, Successor
from memstore.derive.facts.entities import ANIMALS, KIN, PARTNERS, owner_of
from memstore.derive.facts.normalization import PLAN, PLANNED_TYPES, is_protection
from memstore.derive.facts.quotations import words_of
from memstore.derive.facts.reconcile import end_of, is_set_by_hand
from memstore.derive.facts.slots import SINGLE, slot_of_fact
from memstore.derive.reader import read_relations
from memstore.derive.reader.notes import Pair
from memstore.language import LETTERS, compile_phrases, load_words
from memstore.models import ALWAYS, FactColumns, KnownFact
from memstore.store import facts
from memstore.store.database import Transaction

# From these probabilities on a statement makes another outdated: of the same thing, and where that is less sure.
MIN_PROBABILITY = 0.85
MIN_UNSURE_PROBABILITY = 0.93
MIN_SAME_THING_COSINE = 0.45
# A teacher is a job, unless it is said whose: "my teacher".
_SOMEBODYS_COLLEAGUE = re.compile(
    rf"(?:\b(?:my|our|her|his|their|mein\w*|unser\w*)|['’]s)\s+(?:\w+\s+)??({'|'.join(sorted(load_words('at_work')))})\b"
)
# What others may not have, which is no constraint of the person's own.
_LIMIT = re.compile(
    r"\b(?:can(?:['’]?t|not| not)|must(?:n['’]?t| not| never)|(?:is|are)(?:n['’]?t| not) allowed|not supposed to)"
    r" (?:\w+ ){0,2}?(?:have|eat|drink|take|be near|nuts|milk|eggs)\b|\b(?:has|have) to avoid\b|\bmust avoid\b"
    r"|\b(?:darf|dürfen|verträgt|vertragen) (?:\w+ ){0,3}?(?:kein\w*|nicht)\b|\bmuss .{1,40} meiden\b"
    r"|\breagiert auf\b|\ballergi[ce]|\bintoleran|\bunverträgl|\bausschlag\b|\bco?eliac",
    re.IGNORECASE,
)
_DENIED_CHANGE = re.compile(
    r"(?:\bnot|\b(?:do|does|did|is|are|was|were|has|have|had|wo|ca|could|would)n['’]?t) (?:\w+ ){0,2}?(?:moved|moving"
    r"|sold|selling|sell|quit|quitting|left|leaving|cancel\w*|changed|stopped|switched|paid|sent|returned|died"
    r"|split up|broken up|given up)\b(?!.*\b(?:but|any ?more)\b)"
    r"|\b(?:nicht|nie) (?:\w+ ){0,2}?(?:umgezogen|verkauf(?:t|en)|gekündigt|abgesagt|verschoben|geändert|aufgehört"
    r"|(?:be|ge)zahlt|geschickt|gewechselt|gestorben|getrennt|aufgegeben)\b(?!.*\b(?:sondern|mehr)\b)",
    re.IGNORECASE,
)
# A name with what its bearer does, and neither "The" nor "It".
_NAMED = re.compile(
    r"(?!(?:The|I|We|It|This|That|There|She|He|They|What|Who|Der|Die|Das|Es|Er|Sie|Wir|Ich|Hier|Da|My|Our)\b)"
    r"([A-ZÀ-ÖØ-Þ][\w-]{1,40})(?: (?:and|und) [A-ZÀ-ÖØ-Þ]\w+)?"
    r"(?:['’]s| (?:just |now |also |only )?(?:\w+(?:s|ed)|got|sold|bought|left|quit|went|took|had|ist|war|hat|wohnt"
    r"|arbeitet|lebt|zog|darf|kann|can|muss|must|mag|isst|nimmt))\b"
)


async def with_outdated(
    tx: Transaction,
    new: FactDraft,
    fact: FactColumns,
    known: Sequence[KnownFact],
    last_said: datetime,
    *,
    by_hand: bool = False,
) -> FactDraft:
    """Return a new fact with those that it makes outdated, and with the first that makes it outdated.

    `fact` is the new one as it is stored, and `last_said` when somebody last said it. What a person sets `by_hand` ends
    what a person has set before, too, and nothing that was said ends it.
    """
    near = [prior for prior in known if _may_be_pair(fact, prior)]
    said_at, possessive = new.fact.occurred_at, f"{new.speaker}'s ".casefold()
    earlier, later = list[KnownFact](), list[KnownFact]()
    if new.may_change and new.said_by_subject:
        mine = [prior for prior in near if f"{prior.fact.subject}'s ".casefold().startswith(possessive)]
        mine = [prior for prior in mine if by_hand or not is_set_by_hand(prior)]
        earlier = [prior for prior in mine if prior.last_said < said_at and _may_end(fact, prior.fact)]
    if fact.importance != ALWAYS and not by_hand:
        later = [prior for prior in near if prior.last_said > last_said and _may_end(prior.fact, fact)]
    said = await facts.said_after(tx, fact.subject, [prior.fact.id for prior in later], last_said) if later else {}
    later = [prior for prior in later if prior.fact.id in said]
    words = _with_name(fact)
    pairs = [Pair(_with_name(prior.fact), words) for prior in earlier]
    pairs += [Pair(words, _with_name(prior.fact)) for prior in later]
    least = [_least(fact, prior) for prior in (*earlier, *later)]
    relations = await to_thread(read_relations, pairs) if pairs else []
    shares = zip(relations, least, strict=True)
    outdated = [each["replaces"] + each["ends"] >= enough for each, enough in shares]
    ends = compress([prior.fact.id for prior in earlier], outdated)
    successors = (
        Successor(end_of(fact, later_fact.valid_from or said[later_fact.id], said[later_fact.id]), later_fact.id)
        for later_fact in compress([prior.fact for prior in later], outdated[len(earlier) :])
    )
    return replace(new, ends=tuple(ends), successor=min(successors, default=None))


def _with_name(fact: FactColumns) -> str:
    """Return the words of a fact, with a name in place of "the user": so most statements were learnt."""
    return compile_phrases("the user").sub("Alice", words_of(fact.text))


def _may_be_pair(fact: FactColumns, prior: KnownFact) -> bool:
    """Whether two facts are read as a pair: those that both fill slots are decided by these."""
    other = prior.fact
    if prior.cosine is None or other.state not in ("active", "superseded"):
        return False
    if slot_of_fact(fact) is not None and slot_of_fact(other) is not None:
        return False
    if _are_of_one_value(fact, other) and fact.attribute != other.attribute:
        return False
    return _others(fact) == _others(other) or _begins_with_others(fact, other) or _begins_with_others(other, fact)


def _are_of_one_value(fact: FactColumns, other: FactColumns) -> bool:
    """Whether both tell an attribute that has one value, as it is and not as it is planned."""
    return fact.attribute in SINGLE and other.attribute in SINGLE and PLAN not in (fact.type, other.type)


def _least(fact: FactColumns, prior: KnownFact) -> float:
    """Return the probability from which one of two facts makes the other outdated.

    It is higher where the two are not about the same thing, as the built-in embedder tells it, or where one is about
    somebody whom the other only names at its beginning.
    """
    other = prior.fact
    if _are_of_one_value(fact, other):
        return 0.4 if fact.value != other.value else MIN_PROBABILITY
    is_near = prior.cosine is not None and prior.cosine >= MIN_SAME_THING_COSINE
    return MIN_PROBABILITY if is_near and _others(fact) == _others(other) else MIN_UNSURE_PROBABILITY


def _begins_with_others(fact: FactColumns, other: FactColumns) -> bool:
    """Whether the beginning of a fact has those whom only another is about: "my flatmate Magnus", who "moved out".

    An animal is known by its name, too: "a cat called Biscuit". Where somebody lives or works alone is not theirs:
    "I live with Magnus in Cork".
    """
    if fact.attribute in SINGLE or other.attribute in SINGLE:
        return False
    other_subjects, words = _others(other) - _others(fact), LETTERS.findall(_beginning(fact.text))
    said = {*words, *map(str.casefold, words)}
    called = re.findall(r"\b(?i:called|named|namens|heißt) (\w+)", words_of(other.text))
    called = [name.casefold() for name in called if other_subjects <= ANIMALS]
    return bool(other_subjects) and (other_subjects <= said or not said.isdisjoint(called))


def _beginning(text: str) -> str:
    """Return the words with which a fact begins, in which it names whom it is about."""
    return " ".join(words_of(text).split()[:5])


def _others(fact: FactColumns) -> frozenset[str]:
    """Return the others whom a fact is about: a sister's home is not ended by one's own."""
    return _others_in(fact.text, owner_of(fact.subject))


# Each fact is compared with many.
@lru_cache(maxsize=256)
def _others_in(text: str, owner: str) -> frozenset[str]:
    named = _NAMED.match(words_of(text))
    other = [named[1]] if named and named[1].casefold() != owner else []
    first = _beginning(text).casefold()
    relatives = (KIN | PARTNERS | load_words("other_people")) - load_words("at_work")
    return relatives.intersection(LETTERS.findall(first)).union(_SOMEBODYS_COLLEAGUE.findall(first), other)


def _may_end(later: FactColumns, earlier: FactColumns) -> bool:
    """Whether a reading may let a later fact end an earlier one.

    None ends what happened, what protects somebody, or what others may not have; and a change that has not happened
    ends what is planned alone.
    """
    if earlier.type == "event" or is_protection(earlier):
        return False
    if _others(earlier) and _LIMIT.search(words_of(earlier.text)):
        return False
    return earlier.type in PLANNED_TYPES or _DENIED_CHANGE.search(words_of(later.text)) is None
