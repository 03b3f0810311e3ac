"""Facts with the slots that they fill: what is read of a message, in any of the languages, and what it is the value of.

A clause that fills a slot is always a fact, however little it is worth otherwise: "Moved to Porto." changes what is
known. Two slots in one sentence make two facts, so that a later value of one takes nothing else away.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from memstore.ingest.rules.dates import anchor
from memstore.ingest.rules.drafts import FactDraft, Said, kind_of
from memstore.ingest.rules.extraction import extract
from memstore.ingest.rules.languages import extract_foreign, language_of, type_of
from memstore.ingest.rules.slots import GRAMMARS, Slot, Statement, statements_with_slots, whom

FOREIGN = frozenset({"fr", "es", "zh"})  # English and German are read sentence by sentence, together
CONFIDENCE = 0.9
_OWN = r"\b(?:my|our|meine?[mnrs]?|unsere?[mnrs]?|mon|ma|mes|notre|mis?|nuestr[oa])\b(?: [\w'-]+){0,3}? "


class Slotted(NamedTuple):
    """A fact as it was read, and the slot that it fills, if any."""

    draft: FactDraft
    slot: Slot | None


def slotted(said: Said, before: Sequence[Said] = ()) -> list[Slotted]:
    """Give the facts of a message in its order, each with the slot that it fills; the same for the same arguments."""
    language = _language(said, before)
    drafts = extract_foreign(said, before, language=language) if language in FOREIGN else extract(said, before)
    spoken = language if language in GRAMMARS else "en"
    slots: dict[int, Slot] = {}
    more: list[Slotted] = []
    for statement in statements_with_slots(said, spoken, before):
        subject = _subject(said, statement, spoken)
        place = _of_same(drafts, statement, subject, slots)
        if place is not None:
            drafts[place] = replace(drafts[place], subject=subject)
            slots[place] = statement.slot
        else:
            more.append(Slotted(_told(said, before, statement, subject, spoken), statement.slot))
    found = [Slotted(draft, slots.get(place)) for place, draft in enumerate(drafts)]
    return sorted([*found, *more], key=lambda one: one.draft.start)


def _language(said: Said, before: Sequence[Said]) -> str:
    """Give the language of a message; of a word or two ("Fumo.") that in which it fills a slot, if it does in one."""
    language = language_of(said.text)
    if language == "und":
        return next((one for one in GRAMMARS if statements_with_slots(said, one, before)), language)
    return language


def _subject(said: Said, statement: Statement, language: str) -> str:
    """Give whom the slot is of: the speaker, one of theirs ("Alice's sister"), or somebody named."""
    name, clause = said.speaker or "The user", said.text[statement.start : statement.stop]
    who = whom(clause, language)
    if who is None:
        return name
    return f"{name}'s {who}" if re.search(_OWN + re.escape(who), clause, re.IGNORECASE) else who


def _of_same(drafts: Sequence[FactDraft], statement: Statement, subject: str, taken: dict[int, Slot]) -> int | None:
    """Give the place of the draft that says this; a wish says nothing of what is so.

    What is told in the speaker's own words, as German is, has the speaker for a subject whomever it is about.
    """
    for place, draft in enumerate(drafts):
        overlaps = draft.start < statement.stop and statement.start < draft.stop
        of_same = _folded(draft.subject) == _folded(subject) or (draft.language == "de" and ": " in draft.text)
        if overlaps and place not in taken and draft.type != "goal" and of_same:
            return place
    return None


def _told(said: Said, before: Sequence[Said], statement: Statement, subject: str, language: str) -> FactDraft:
    """Give a statement as a fact: as it was read before it was found to be worth little, else in its own words."""
    little = [] if language in FOREIGN else extract(said, before, worth=0.0)
    exact = [one for one in little if statement.start <= one.start and one.stop <= statement.stop]
    place = _of_same(exact, statement, subject, {})
    if place is not None:
        return exact[place]
    kind = type_of(statement.slot.attribute, kin=subject != (said.speaker or "The user"))
    clause = " ".join(said.text[statement.start : statement.stop].split()).strip(" ,;.!¡")
    anchored, begins = anchor(clause, said.occurred_at, past=kind != "plan", language=language)
    text = f'{said.speaker or "The user"}: "{anchored[:1].upper()}{anchored[1:]}."'
    told = None if begins is None or begins > said.occurred_at or kind == "plan" else begins
    span = statement.start, statement.stop
    return FactDraft(text, kind, kind_of(kind), subject, CONFIDENCE, language, *span, valid_from=told)


def _folded(subject: str) -> str:
    return subject.casefold().replace("’", "'")
