"""Facts by rules, without a model: slots told in words of their own, and sentences worth keeping as they were said.

    message -> what its author asserts                            utterances.py
            -> slots that its clauses fill: "Alice lives in Cork."      engine.py, languages/*.toml, slots.toml
            -> its other sentences, by what each is worth: Alice: "We signed the lease."        quotations.py

There is no third kind. The same arguments always give the same facts, and no text raises an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from memstore.derive.rules import pack
from memstore.derive.rules.engine import extract_slots
from memstore.derive.rules.quotations import THRESHOLD, quotations
from memstore.derive.rules.slots import Slot, SlotMention
from memstore.derive.rules.utterances import Utterance, in_quotes
from memstore.models import kind_of

__all__ = ["THRESHOLD", "Extracted", "FactDraft", "Utterance", "extract"]

CONFIDENCE, QUOTED = 0.9, 0.6
COVERED = 0.6  # share of a quotation that fills slots, from which it is left out beside them
REPLACED = 0.4  # where the value of one may change, which no old sentence is to keep
STATEMENT = "statement"
SHORT = 100  # characters of a message whose language its words may not tell


@dataclass(frozen=True, slots=True)
class FactDraft:
    """A fact as a rule reads it, before it has a source, an id or an embedding.

    `text` is the template of a slot filled in, or the speaker's words after the name. `kind` is what sort of memory its
    type is: episodic, semantic or procedural. `subject` is whom it is about, as the text names them. `confidence` is
    from 0 to 1; `language` is ISO 639-1, "und" where there is no file of the language. `start` and `stop` are the
    characters of the message that say it. It holds from `valid_from` to `valid_to`, where the speaker said so.
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


class Extracted(NamedTuple):
    """A fact as it was read, and the slot that it fills, if any."""

    draft: FactDraft
    slot: Slot | None


def extract(utterance: Utterance, before: Sequence[Utterance] = (), *, worth: float = THRESHOLD) -> list[Extracted]:
    """Return the facts that a message says, in its order, each once; none for any role but "user".

    `before` are up to three messages before it, the newest last: they say whom it is said to, and what "sorry, I meant
    Tuesday" corrects. `worth` is the least that a quotation must be worth, from 0 to 1; a slot is told at any worth.
    """
    if utterance.role != "user":
        return []
    to_friend = _to_friend(utterance, before)
    code, fills = _read(utterance, before, to_friend=to_friend)
    language = pack.language(code) if code in pack.LANGUAGES else None
    facts = [Extracted(_draft(one, code), one.slot) for one in fills]
    for quote in quotations(utterance, utterance.asserted(language), language, to_friend=to_friend):
        if quote.worth >= worth and not _is_covered(quote.start, quote.stop, fills, utterance.text):
            words = in_quotes(utterance.text[quote.start : quote.stop])
            text = f'{utterance.subject}: "{words}"'
            draft = FactDraft(
                text, STATEMENT, kind_of(STATEMENT), utterance.subject, QUOTED, code, quote.start, quote.stop
            )
            facts.append(Extracted(draft, None))
    return sorted(facts, key=lambda one: one.draft.start)


def _read(utterance: Utterance, before: Sequence[Utterance], *, to_friend: bool) -> tuple[str, list[SlotMention]]:
    """Return the language of a message, and what it fills.

    Of a word or two ("Fumo.") the language is that in which they fill a slot, if they do in one.
    """
    code = pack.language_of(utterance.text)
    short = code == "und" and len(utterance.text) < SHORT
    for one in pack.LANGUAGES if short else {code}.intersection(pack.LANGUAGES):
        fills = extract_slots(utterance, one, before, to_friend=to_friend)
        if fills:
            return one, fills
    return code, []


def _to_friend(utterance: Utterance, before: Sequence[Utterance]) -> bool:
    """Whether every message before is by the speaker or one other named person."""
    others = {one.speaker if one.role == "user" else None for one in before} - {utterance.speaker}
    return bool(utterance.speaker) and len(others) == 1 and None not in others


def _draft(one: SlotMention, code: str) -> FactDraft:
    kind = kind_of(one.type)
    return FactDraft(
        one.text, one.type, kind, one.subject, CONFIDENCE, code, one.start, one.stop, one.valid_from, one.valid_to
    )


def _is_covered(start: int, stop: int, fills: Sequence[SlotMention], text: str) -> bool:
    """Whether slots say what a quotation would: all of it, or what may change, which no old sentence is to keep."""
    here = [one for one in fills if one.start < stop and start < one.stop]
    least = REPLACED if any(not one.slot.many for one in here) else COVERED
    covered = sum(min(stop, end) - max(start, begin) for begin, end in _merged(here))
    return bool(here) and covered >= least * max(1, stop - start)


def _merged(fills: Sequence[SlotMention]) -> Iterator[tuple[int, int]]:
    reached = -1
    for one in sorted(fills, key=lambda one: one.start):
        if one.stop > reached:
            yield max(one.start, reached), one.stop
            reached = one.stop
