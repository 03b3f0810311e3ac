"""Facts of the notes of a message. Pure.

    message -> notes: its words that are worth keeping                  reader/
            -> slots that they fill: "Alice lives in Cork."             rules/engine.py, languages/*.toml, slots.toml
            -> else plain words, or a quotation: Alice: "We signed the lease."

The same messages always give the same facts, and no text raises an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from memstore.derive.chunking import Spans, sentences
from memstore.derive.facts.days import end_of_plan
from memstore.derive.facts.drafts import STATEMENT, FactDraft, pasted
from memstore.derive.facts.normalization import is_denied, takes_away_protection
from memstore.derive.facts.quotations import (
    MOST_JOINED,
    count_words,
    is_answer,
    overlap,
    quotation,
    sentences_of,
    whole_thoughts,
    with_neighbours,
)
from memstore.derive.reader.notes import Note, ReaderInput, Stretch
from memstore.derive.rules import pack
from memstore.derive.rules.engine import extract_slots
from memstore.derive.rules.slots import FORMER, Modality, Slot, SlotMention, canonical, render, without_article
from memstore.derive.rules.utterances import Utterance, in_quotes, type_of
from memstore.models import Role, kind_of
from memstore.store.tokenize import terms

RULE_CONFIDENCE, QUOTED = 0.9, 0.6
TAUGHT = ("en", "de", "und")  # languages of the reader; in others every slot is a fact
# Probabilities from which a note is kept; among friends, who tell of their lives; and of what protects the speaker.
LEAST, LEAST_OF_FRIENDS, LEAST_OF_GUARDS = 0.5, 0.45, 0.25
LEAST_OF_SLOTS, LEAST_OF_WISHES = 0.1, 0.4  # of messages that say nothing else than what a rule reads too, or a wish
MOST_ELSE = 8  # words of a message that plain words leave out
SURE_PLAIN = 0.85  # probability of a note from which it is told in plain words
WHOLE = 0.7  # share of a sentence that its plain words tell
COVERED, HALF = 0.7, 0.5  # share of a note that a slot fills, or several, from which on these are kept instead
RENAMED = {"instruction": "procedure", "relation": "relationship"}  # types of notes that facts call otherwise
# The slot of a value that protects somebody, by the reader's attribute; and those that rules read.
GUARDED = {"allergy": "allergy", "condition": "health", "medicine": "medication"}
_GUARDS = frozenset(["restriction", "intolerance", "avoid", "dose", "pregnancy", "diet", "eats", "regimen"]).union(
    GUARDED.values()
)
_WHOLE = frozenset(["caution", "instruction", "task", "decision"])  # slots that repeat the sentence
# Types of which facts stand in every context, and the attributes by which they surely are.
ALWAYS_TOLD = {
    "constraint": frozenset([*GUARDED, "diet"]),
    "identity": frozenset(["name", "age", "origin", "residence", "job", "employer", "language", "phone", "email"]),
}
MOST_NAMING = 4  # words of the name of an allergy or a medicine
MOST_STANDING = 10  # words of a sentence about who somebody is
SURE = {"constraint": 0.4, "identity": 0.85}  # probability from which they do
SURE_OF_FRIENDS = {"constraint": 0.85, "identity": 0.99}  # and among friends, who tell each other stories
_ALLERGY = re.compile(r"\s*\ballerg\w*\b", re.IGNORECASE)
_NO_ALLERGY = re.compile(r"(?:\b(?:not|no|never|nicht|kein\w*)\b|n['’]?t\b)[^.;,]*\ballerg", re.IGNORECASE)
_NO_NAME = re.compile(
    r"mild|severe|serious|bad|slight|known|food|seasonal|life-threatening|leicht\w*|schwer\w*"
    r"|(?:tablet|pill|capsule|dose|milligram|tablette|kapsel)\w*",
    re.IGNORECASE,
)
_FORGET = re.compile(r"(?:please |pls |bitte )?(?:forget|delete|erase|vergiss|lösche?)\b", re.IGNORECASE)
_MY = re.compile(r"^(?:my|our|the|mein\w*|unser\w*|der|die|das)\b", re.IGNORECASE)
LOOSE = (STATEMENT, "plan", "task", "event", "possession")  # types that give way to one's own; the others hold always
_USER = "User"
_CALLED_USER = re.compile(r"\b(?:(?:the|der|die) )?(?:user|nutzer(?:in)?)\b", re.IGNORECASE)
_POSSESSIVE = re.compile(r"\b(?:the )?user['’]s\b", re.IGNORECASE)
_ADDRESSED = re.compile(r"^(?:@[\w.-]+[:,]? ?)+")  # "@bob: …": the reader knows no message that begins so
SHORT = 100  # characters of a message whose language its words may not tell


def extract(
    utterance: Utterance,
    notes: Sequence[Note],
    before: Sequence[Utterance] = (),
    *,
    question: str = "",
    least: float | None = None,
    types: Mapping[str, re.Pattern[str]] | None = None,
) -> list[FactDraft]:
    """Return the facts that the notes of a message say, in its order, if they are probable enough.

    `before` are up to three messages before it, the newest last: they show to whom it is said, and what "sorry, I meant
    Tuesday" corrects. `question` is what the last of them asks: a short quotation of the answer has it. `types` are
    types of one's own with the words by which a note is one; a sentence with these words is a fact even where it is no
    note. `least` is the probability from which a note is kept.
    """
    to_friend = _to_friend(utterance, before)
    least = least if least is not None else LEAST_OF_FRIENDS if to_friend else LEAST
    code, mentions = _read(utterance, before, to_friend=to_friend, has_notes=bool(notes))
    spans = sentences(utterance.text)
    facts = [_draft(one, code) for one in mentions] if code not in TAUGHT else []
    taken, quoted = list(facts), list[Note]()
    for note in notes:
        if any(overlap(one, note) for one in taken):
            continue
        inside = [one for one in mentions if _fits(note, one, utterance)]
        is_advice = note.type == "instruction" and (  # nobody instructs an assistant among friends
            to_friend or _FORGET.match(utterance.text, note.start) is not None
        )
        is_guard = note.type == "constraint" and note.attribute in GUARDED and not to_friend
        is_supported = any(_root(one.slot) in _GUARDS for one in inside) and not to_friend
        is_alone = to_friend or _stands_alone(note, utterance.text, spans)
        is_all = not to_friend and _stands_alone(note, utterance.text, spans, most=0)
        is_slot = is_all and _is_covered(note.start, note.stop, inside, HALF)
        enough = LEAST_OF_WISHES if is_all and note.type == "instruction" else least
        enough = 0 if is_supported else LEAST_OF_SLOTS if is_slot else LEAST_OF_GUARDS if is_guard else enough
        if is_advice or note.confidence < enough:
            continue
        if note.attribute == "allergy" and not note.values and not inside:
            continue  # "allergic to Mondays"
        if to_friend and note.confidence < SURE_OF_FRIENDS.get(note.type, 0.0):
            note = replace(note, type="event", attribute="other")
        if is_alone and len(inside) > 1 and _is_covered(note.start, note.stop, inside, HALF):
            facts += [_draft(one, code, note.confidence) for one in inside]
            continue
        protections = _protections(note, utterance, inside, code, is_alone=is_alone)
        short = [one for one in protections if one.text]
        if len(short) > 1:
            facts += [_draft(one, code, note.confidence) for one in short]
        elif is_alone and len(inside) == 1 and _is_covered(note.start, note.stop, inside):
            facts.append(_draft_note(note, utterance, protections or inside, code, is_alone=True))
            continue
        elif _is_plain(note, utterance.text, spans, code, is_alone=is_alone):
            facts.append(_draft_note(note, utterance, protections or inside, code))
            continue
        elif short and note.type == "constraint":
            start, stop = sentences_of(note, spans)
            if count_words(utterance.text, start, stop) <= MOST_STANDING:
                whole = replace(note, start=start, stop=stop, sentence=None)
                facts.append(_draft_note(whole, utterance, protections, code))
                continue
            # In every context stands what is short; the quotation answers who asks.
            facts += [_draft(one, code, note.confidence) for one in short]
        quoted.append(replace(note, type="event", attribute="other") if short else note)
    blocks = [Stretch(*block) for block in pasted(utterance.text)]
    thoughts = whole_thoughts(quoted, utterance.text, spans, blocks)
    asserted = (
        utterance.asserted(pack.language(code) if code in pack.LANGUAGES else None)
        if types or (thoughts and not to_friend)
        else ()
    )
    typed = [one for one in asserted if types and type_of(utterance.text[one.start : one.stop], types)]
    told = [Stretch(one.start, one.stop) for one in facts] + [Stretch(one.start, one.stop) for one in thoughts]
    apart = [*told, *(Stretch(one.start, one.stop) for one in typed), *blocks]
    for note in thoughts:
        inside = [one for one in mentions if _fits(note, one, utterance)]
        if note.type == "constraint":
            inside = _protections(note, utterance, inside, code) or inside
        else:
            inside = [one for one in inside if _root(one.slot) not in _GUARDS]
        shown = Stretch(note.start, note.stop) if to_friend else with_neighbours(note, utterance, asserted, apart)
        answers = question if note.type != "instruction" and is_answer(shown, utterance.text) else ""
        facts.append(_draft_note(note, utterance, inside, code, shown, answers))
    for one in typed:
        if not one.asks and not any(overlap(fact, one) for fact in facts):
            said = (quotation(utterance, one.start, one.stop), STATEMENT, kind_of(STATEMENT), utterance.subject)
            facts.append(FactDraft(*said, QUOTED, code, one.start, one.stop))
    return _in_order(facts, types)


def _in_order(facts: Sequence[FactDraft], types: Mapping[str, re.Pattern[str]] | None) -> list[FactDraft]:
    """Return facts as a message says them, each where it is said first, with types of one's own."""
    first: dict[tuple[str, str], FactDraft] = {}
    for fact in facts:
        type = type_of(fact.text, types or {}) if fact.type in LOOSE else None
        first.setdefault((fact.subject, fact.text), replace(fact, type=type) if type else fact)
    return sorted(first.values(), key=lambda fact: fact.start)


def _stands_alone(note: Note, text: str, spans: Spans, most: int = MOST_ELSE) -> bool:
    """Whether a message says little else than the sentences of a note: at most so many words."""
    start, stop = sentences_of(note, spans)
    return count_words(text, 0, start) + count_words(text, stop, len(text)) <= most


def _is_plain(note: Note, text: str, spans: Spans, code: str, *, is_alone: bool) -> bool:
    """Whether a note becomes plain words: they are sure, and understood without the words around them.

    A message to an assistant that says much else is quoted, and so is German, whose verb may stand at the end. Of a
    long dictation without stops plain words are better than a cut from it.
    """
    if note.sentence is None or note.leans or note.confidence < SURE_PLAIN:
        return False
    start, stop = sentences_of(note, spans)
    if count_words(text, start, stop) > MOST_JOINED:
        return True
    return is_alone and code != "de" and note.stop - note.start >= WHOLE * (stop - start)


def _fits(note: Note, mention: SlotMention, utterance: Utterance) -> bool:
    """Whether a slot is of a note's words, and what protects somebody of its value: no "allergic to severe"."""
    root = _root(mention.slot)
    if root in _WHOLE or not overlap(mention, note):
        return False
    if root not in GUARDED.values() or not note.values:
        return True
    is_denial = takes_away_protection(mention.slot.attribute, mention.slot.value)
    if not note.holds and not is_denial:
        return False
    thing = mention.slot.attribute.removeprefix(FORMER).partition("/")[2]
    values = terms(" ".join(utterance.text[each.start : each.stop] for each in note.values))
    is_of_kind = GUARDED.get(note.attribute) == root
    return is_denial or is_of_kind or terms(thing).keys() <= values.keys()


def _root(slot: Slot) -> str:
    return slot.attribute.removeprefix(FORMER).partition("/")[0]


def _draft_note(
    note: Note,
    utterance: Utterance,
    mentions: Sequence[SlotMention],
    code: str,
    shown: Stretch | None = None,
    question: str = "",
    *,
    is_alone: bool = False,
) -> FactDraft:
    """Return a note as a fact: as its slot says it if the message says little else, in plain words, or as it was said.

    A quotation has the words that are `shown`, by default the note's own, and the `question` that they answer.
    """
    shown = shown or Stretch(note.start, note.stop)
    mention = mentions[0] if len(mentions) == 1 else None
    if is_alone and mention and mention.text and mention.type != "plan":
        return _draft(mention, code, note.confidence)
    text = quotation(utterance, *shown, question, code)
    is_german = code == "de" and not utterance.speaker
    if note.sentence and not (is_german and "{NAME}s" in note.sentence):
        who = str(pack.language(code).data["user"]) if is_german else utterance.subject
        text = note.sentence.replace("{NAME}", who)
        text = text[0].upper() + text[1:]
    subject = utterance.subject
    if mention:
        subject = mention.subject
    elif note.subject:
        about = _MY.sub("", utterance.text[note.subject.start : note.subject.stop]).strip(" ,.")
        subject = f"{subject}'s {about}" if about else subject
    type = "goal" if note.attribute == "goal" else RENAMED.get(note.type, note.type)
    is_named = mention is not None and _root(mention.slot) in ("allergy", "medication") and mention.slot.value == "yes"
    if type in ALWAYS_TOLD and not is_named and not _always_holds(note, utterance.text[note.start : note.stop]):
        type = STATEMENT
    dates = (mention.valid_from, mention.valid_to) if mention else (None, None)
    if type == "plan" and dates == (None, None):
        dates = (None, end_of_plan(utterance.text[note.start : note.stop], utterance.occurred_at))
    columns = (text, type, kind_of(type), subject, note.confidence, code, *shown)
    return FactDraft(*columns, *dates, mention.slot if mention else None)


def _always_holds(note: Note, words: str) -> bool:
    """Whether a constraint or an identity is sure enough for every context, and who somebody is short enough."""
    if note.attribute not in ALWAYS_TOLD[note.type] or note.confidence < SURE[note.type] or not note.holds:
        return False
    if _NO_ALLERGY.search(words):
        return False
    is_short = note.sentence is not None and len(note.sentence.split()) <= MOST_STANDING
    return note.type != "identity" or (note.value is not None and is_short)


def _protections(
    note: Note, utterance: Utterance, mentions: Sequence[SlotMention], code: str, *, is_alone: bool = False
) -> list[SlotMention]:
    """Return what protects the speaker, by each value of a note: as rules read it, else by the reader's attribute.

    An allergy has a text, others only if the message says little else. Where the reader and the words differ in whether
    it holds, there is nothing.
    """
    guards = [one for one in mentions if _root(one.slot) in _GUARDS]
    guards = [one if is_alone or _root(one.slot) == "allergy" else one._replace(text="") for one in guards]
    words = utterance.text[note.start : note.stop]
    of_speaker = note.of_speaker or (note.subject and _ALLERGY.search(utterance.text, *note.subject))
    if note.attribute not in GUARDED or note.holds == is_denied(words) or not of_speaker:
        return guards
    if note.attribute == "allergy" and "allerg" not in words.casefold():
        return guards  # who keeps bees is not allergic to them
    lang = pack.language(code if code in pack.LANGUAGES else "en")
    slot_type = pack.slot_types()[GUARDED[note.attribute]]
    for value in dict.fromkeys(note.values):
        name = _ALLERGY.sub("", utterance.text[value.start : value.stop])
        key = lang.patterns["plural"].sub("", canonical(name, lang))
        is_number = note.attribute != "allergy" and any(letter.isdigit() for letter in key)
        is_name = not is_number and not _NO_NAME.fullmatch(key)
        if not key or not is_name or any(overlap(one, value) for one in mentions):
            continue
        is_named = note.attribute == "allergy" and len(key.split()) <= MOST_NAMING
        text = render(slot_type, lang, utterance.subject, "", without_article(name, lang), over=not note.holds)
        slot = Slot(f"{slot_type.name}/{key}", "yes" if note.holds else "no", many=True, modality=Modality.HOLDS)
        said = (slot, "constraint" if note.holds else STATEMENT, utterance.subject, text if is_named else "")
        guards.append(SlotMention(value.start, value.stop, *said))
    return guards


def extract_memory(utterance: Utterance, kind: str, types: Mapping[str, re.Pattern[str]]) -> list[FactDraft]:
    """Return the facts of what another assistant remembered: its slots, and every other sentence as it stands.

    Somebody found it worth keeping already, so no sentence is left out, and "User" is who it is about.
    """
    text = _POSSESSIVE.sub(lambda found: "My".rjust(len(found[0])), utterance.text)
    text = _CALLED_USER.sub(lambda found: _USER.rjust(len(found[0])), text)
    read = replace(utterance, text=text, role="user", speaker=_USER)
    code, fills = _read(read, (), to_friend=False, has_notes=True)
    facts = [
        replace(
            one,
            text=_CALLED_USER.sub(utterance.subject, one.text, 1),
            subject=one.subject.replace(_USER, utterance.subject, 1),
        )
        for one in (_draft(fill, code) for fill in fills)
    ]
    type = "procedure" if kind == "instructions" else STATEMENT
    for start, stop in sentences(text):
        inside = [one for one in fills if one.start < stop and start < one.stop]
        if not _is_covered(start, stop, inside):
            words = in_quotes(utterance.text[start:stop].lstrip("-*•# "))
            slot = next((replace(one.slot, modality=Modality.HOLDS) for one in inside if _may_change(one.slot)), None)
            said = (utterance.subject, QUOTED, code, start, stop)
            facts.append(FactDraft(f'{utterance.subject}: "{words}"', type, kind_of(type), *said, slot=slot))
    return _in_order(facts, types)


def _read(
    utterance: Utterance, before: Sequence[Utterance], *, to_friend: bool, has_notes: bool
) -> tuple[str, list[SlotMention]]:
    """Return the language of a message, and the slots that it fills; a language of the reader fills them in notes only.

    The language of a word or two ("Fumo.") is the one in which they fill a slot.
    """
    code = pack.language_of(utterance.text)
    if not has_notes and code in TAUGHT and (code != "und" or len(utterance.text) >= SHORT):
        return code, []
    short = code == "und" and len(utterance.text) < SHORT
    for one in sorted(pack.LANGUAGES, key="en".__ne__) if short else {code}.intersection(pack.LANGUAGES):
        fills = extract_slots(utterance, one, before, to_friend=to_friend)
        if fills:
            return one, fills
    return code, []


def _to_friend(utterance: Utterance, before: Sequence[Utterance]) -> bool:
    """Whether every message before is by the speaker or one other named person."""
    others = {one.speaker if one.role == "user" else None for one in before} - {utterance.speaker}
    return bool(utterance.speaker) and len(others) == 1 and None not in others


def _draft(one: SlotMention, code: str, confidence: float = RULE_CONFIDENCE) -> FactDraft:
    said = (confidence, code, one.start, one.stop, one.valid_from, one.valid_to)
    return FactDraft(one.text, one.type, kind_of(one.type), one.subject, *said, one.slot)


def _is_covered(start: int, stop: int, fills: Sequence[SlotMention], share: float = COVERED) -> bool:
    covered = sum(min(stop, end) - max(start, begin) for begin, end in _merge_spans(fills))
    return covered >= share * (stop - start)


def _may_change(slot: Slot) -> bool:
    return not slot.many and slot.modality is not Modality.ENDED


def _merge_spans(fills: Sequence[SlotMention]) -> Iterator[tuple[int, int]]:
    reached = -1
    for one in sorted(fills, key=lambda one: one.start):
        if one.stop > reached:
            yield max(one.start, reached), one.stop
            reached = one.stop


def turn_of(utterance: Utterance, before: Sequence[Utterance]) -> ReaderInput:
    """Return a message as the reader reads it, with what a person or an assistant said just before it."""
    last = before[-1] if before and before[-1].role in (Role.USER, Role.ASSISTANT) else None
    text = _ADDRESSED.sub(lambda found: " " * len(found[0]), utterance.text)
    return ReaderInput(last.text if last else "", text, _to_friend(utterance, before))
