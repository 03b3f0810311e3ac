"""Facts with the slots that they fill: what is read of a message, in any of the languages, and what it is the value of.

A clause that fills a slot is always a fact, however little it is worth otherwise: "Moved to Porto." changes what is
known. Two slots in one sentence make two facts, so that a later value of one takes nothing else away.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import replace
from typing import NamedTuple

from memstore.ingest.rules.drafts import FactDraft, Said
from memstore.ingest.rules.extraction import extract
from memstore.ingest.rules.foreign import extract_foreign, quoted, type_of
from memstore.ingest.rules.languages import language_of
from memstore.ingest.rules.slots import GRAMMARS, TEMPORARY, WANTS, Manner, Slot, Statement, statements_with_slots
from memstore.ingest.rules.until import ends
from memstore.models import kind_of

FOREIGN = frozenset({"fr", "es", "zh"})  # English and German are read sentence by sentence, together
CONFIDENCE = 0.9
LOOSELY = 0.6  # confidence up to which a draft was read by light cues alone
WHOLE = 0.8  # share of a draft and of a statement that they have in common when they are one sentence
BLOCK = 256  # characters, by which drafts are found: a long message is read in linear time
_NO_MORE = re.compile(r"\b(?:any ?more|no longer|stopped)\b", re.IGNORECASE)
_OWN = (
    r"(?:我们?(?:家)?的?|\b(?:my|our|meine?[mnrs]?|unsere?[mnrs]?|mon|ma|mes|notre|nos|mis?|nuestr[oa]s?)\b"
    r"(?: [\w'-]+){0,3}? )"
)


class Slotted(NamedTuple):
    """A fact as it was read, and the slot that it fills, if any."""

    draft: FactDraft
    slot: Slot | None


def slotted(said: Said, before: Sequence[Said] = ()) -> list[Slotted]:
    """Give the facts of a message in its order, each with the slot that it fills; the same for the same arguments."""
    language, statements = _language(said, before)
    foreign = language in FOREIGN
    drafts = extract_foreign(said, language, statements) if foreign else extract(said, before)
    spoken = language if language in GRAMMARS else "en"
    known = _Drafts(drafts)
    little: _Drafts | None = None  # what was found to be worth little: read at most once, a message may have thousands
    slots: dict[int, Slot] = {}
    more: list[Slotted] = []
    filled: set[tuple[str, Slot]] = set()
    for statement in statements:
        subject = _subject(said, statement)
        again = (subject, statement.slot) in filled  # in the same message: what is read of it ends with the value
        filled.add((subject, statement.slot))
        place = _of_same(known, statement, subject, slots)
        if place is not None:
            drafts[place] = _filling(drafts[place], statement.slot, subject, said)
            slots[place] = statement.slot
        wish = statement.slot.attribute.startswith(WANTS)  # worth nothing as a fact, unless it changes what is known
        if again or place is not None or (wish and not _NO_MORE.search(statement.words)):
            continue
        if little is None:
            little = _Drafts([] if foreign else extract(said, before, worth=0.0))
        told = _told(said, little, statement, subject, spoken)
        more.append(Slotted(_filling(told, statement.slot, subject, said), statement.slot))
    found = [Slotted(draft, slots.get(place)) for place, draft in enumerate(drafts)]
    return sorted([*found, *more], key=lambda one: one.draft.start)


def _language(said: Said, before: Sequence[Said]) -> tuple[str, list[Statement]]:
    """Give the language of a message, and what fills slots in it.

    Of a word or two ("Fumo.") the language is that in which they fill a slot, if they do in one.
    """
    language = language_of(said.text)
    if language != "und":
        return language, statements_with_slots(said, language if language in GRAMMARS else "en", before)
    for one in GRAMMARS:
        statements = statements_with_slots(said, one, before)
        if statements:
            return one, statements
    return language, []


def _subject(said: Said, statement: Statement) -> str:
    """Give whom the slot is of: the speaker, one of theirs ("Alice's sister"), or somebody named."""
    name, who = said.subject, statement.who
    if who is None:
        return name
    return f"{name}'s {who}" if re.search(_OWN + re.escape(who), statement.words, re.IGNORECASE) else who


class _Drafts:
    """Drafts of a message by where they stand in it."""

    def __init__(self, drafts: list[FactDraft]) -> None:
        self.drafts = drafts
        self._places: defaultdict[int, list[int]] = defaultdict(list)
        for place, draft in enumerate(drafts):
            for block in range(draft.start // BLOCK, max(draft.start, draft.stop - 1) // BLOCK + 1):
                self._places[block].append(place)

    def near(self, statement: Statement) -> list[int]:
        """Give the places of all that overlap with a statement, and of some others, in order."""
        blocks = range(statement.start // BLOCK, statement.stop // BLOCK + 1)
        return sorted({place for block in blocks for place in self._places.get(block, ())})


def _of_same(known: _Drafts, statement: Statement, subject: str, taken: Container[int]) -> int | None:
    """Give the place of the draft that says this; a wish says nothing of what is so.

    What is told in the speaker's own words, as German is, has the speaker for a subject whomever it is about.
    """
    fitting, wish = [], statement.slot.attribute.startswith(WANTS)
    for place in known.near(statement):
        draft = known.drafts[place]
        common = min(draft.stop, statement.stop) - max(draft.start, statement.start)
        whole = common >= WHOLE * max(draft.stop - draft.start, statement.stop - statement.start)
        of_same = _folded(draft.subject) in _whose(statement.slot, subject) or (
            draft.language == "de" and ": " in draft.text
        )
        if common > 0 and place not in taken and (draft.type != "goal" or wish) and (of_same or whole):
            fitting.append((not _says(draft, statement.slot), place))
    return min(fitting)[1] if fitting else None


def _whose(slot: Slot, subject: str) -> set[str]:
    """Give whom a sentence may be about that says this: "my boss is called Ann" is of the speaker, and of the boss."""
    root, _, thing = slot.attribute.partition("/")
    return {_folded(subject), *([_folded(f"{subject}'s {thing}")] if root == "person" else [])}


def _says(draft: FactDraft, slot: Slot) -> bool:
    """Whether a draft has the words of a value, or of what the value says yes or no to."""
    words = slot.attribute.rpartition("/")[2] if slot.value in ("yes", "no", "") else slot.value
    return words in draft.text.casefold()


def _filling(draft: FactDraft, slot: Slot, subject: str, said: Said) -> FactDraft:
    """Give a draft as the slot says what it is: of whom, until when, and where no rule was sure, of which type."""
    if slot.manner is Manner.TEMPORARY:
        told = said.text[draft.start : draft.stop]
        draft = replace(draft, valid_to=ends(told, said.occurred_at, draft.language, passing=True))
    if slot.attribute == f"{TEMPORARY}residence" and draft.valid_to is None:  # "right now": nobody says when it is over
        return replace(draft, subject=subject, type="event", kind=kind_of("event"))
    if draft.confidence > LOOSELY:
        return replace(draft, subject=subject)
    type = type_of(slot.attribute, kin=subject != said.subject)
    return replace(draft, subject=subject, type=type, kind=kind_of(type))


def _told(said: Said, little: _Drafts, statement: Statement, subject: str, language: str) -> FactDraft:
    """Give a statement as a fact: as it was read before it was found to be worth little, else in its own words."""
    exact = [little.drafts[place] for place in little.near(statement)]
    exact = [one for one in exact if statement.start <= one.start and one.stop <= statement.stop]
    place = _of_same(_Drafts(exact), statement, subject, ())
    if place is not None:
        return exact[place]
    type = type_of(statement.slot.attribute, kin=subject != said.subject)
    return quoted(said, (statement.start, statement.stop), type, CONFIDENCE, language, subject, statement.words)


def _folded(subject: str) -> str:
    return subject.casefold().replace("’", "'")
