"""Facts without a chat model.

    message -> notes: its words that are worth keeping                  reader/
            -> slots that they fill: "Alice lives in Cork."             rules/engine.py, languages/*.toml, slots.toml
            -> else plain words, or a quotation: Alice: "We signed the lease."

The same messages always give the same facts, and no text raises an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from memstore.derive.chunking import Spans, sentences
from memstore.derive.dependencies import Dependencies
from memstore.derive.facts.drafts import (
    LOOKBACK,
    STATEMENT,
    UNNAMED,
    ExtractedBatch,
    FactBatch,
    FactDraft,
    TrustPolicy,
    is_pasted,
    to_fact,
)
from memstore.derive.facts.guidelines import Guidelines, mark_recipe
from memstore.derive.facts.normalization import is_denied, takes_away_protection
from memstore.derive.reader.notes import Note, ReaderInput
from memstore.derive.rules import pack
from memstore.derive.rules.engine import extract_slots
from memstore.derive.rules.slots import FORMER, Modality, Slot, SlotMention
from memstore.derive.rules.utterances import (
    Sentence,
    Utterance,
    in_quotes,
    type_of,
)
from memstore.models import (
    IMPORTED_MEMORY,
    Message,
    Role,
    kind_of,
)
from memstore.store.tokenize import terms
from memstore.text import blank_fenced_blocks

RULE_CONFIDENCE, QUOTED = 0.9, 0.6
TAUGHT = ("en", "de", "und")  # languages of the reader; in others every slot is a fact
# Probabilities from which a note is kept; among friends, who tell of their lives; and of words that fill a slot.
LEAST, LEAST_OF_FRIENDS, SUPPORTED = 0.4, 0.35, 0.25
MOST_JOINED = 40  # words of a quotation
LEAST_QUOTED = 6  # words of a quotation, fewer where they are whole sentences
WORTH = (
    "constraint",
    "instruction",
    "identity",
    "relation",
    "decision",
    "plan",
    "task",
    "preference",
    "possession",
    "event",
)
WHOLE = 0.7  # share of a sentence that its plain words tell
COVERED, HALF = 0.7, 0.5  # share of a note that a slot fills, or several, from which on these are kept instead
RENAMED = {"instruction": "procedure", "relation": "relationship"}  # types of notes that facts call otherwise
# The slot of a value that protects somebody, by the reader's attribute; and those that rules read.
GUARDED = {"allergy": "allergy", "condition": "health", "medicine": "medication", "diet": "restriction"}
_DIETS = frozenset(["diet", "eats", "regimen"])
_GUARDS = _DIETS.union(GUARDED.values(), ["intolerance", "avoid", "dose", "pregnancy"])
_WHOLE = frozenset(["caution", "instruction", "task", "decision"])  # slots that repeat the sentence
# Types of which facts stand in every context, and the attributes by which they surely are.
ALWAYS_TOLD = {
    "constraint": frozenset(GUARDED),
    "identity": frozenset(["name", "age", "origin", "residence", "job", "employer", "language", "phone", "email"]),
}
MOST_STANDING = 10  # words of a sentence about who somebody is
SURE = {"constraint": 0.4, "identity": 0.85}  # probability from which they do
SURE_OF_FRIENDS = {"constraint": 0.6, "identity": 0.97}  # and among friends, who tell each other stories
_MY = re.compile(r"^(?:my|our|the|mein\w*|unser\w*|der|die|das)\b", re.IGNORECASE)
LOOSE = (STATEMENT, "plan", "task", "event", "possession")  # types that give way to one's own; the others hold always
_USER = "User"
_READ_WHOLE = ("saved memory", "about the user", "instructions")
_CALLED_USER = re.compile(r"\b(?:(?:the|der|die) )?(?:user|nutzer(?:in)?)\b", re.IGNORECASE)
_POSSESSIVE = re.compile(r"\b(?:the )?user['’]s\b", re.IGNORECASE)
_ADDRESSED = re.compile(r"^(?:@[\w.-]+[:,]? ?)+")  # "@bob: …": the reader knows no message that begins so
SHORT = 100  # characters of a message whose language its words may not tell


def extract(
    utterance: Utterance,
    notes: Sequence[Note],
    before: Sequence[Utterance] = (),
    *,
    least: float | None = None,
    types: Mapping[str, re.Pattern[str]] | None = None,
) -> list[FactDraft]:
    """Return the facts that the notes of a message say, in its order, if they are probable enough.

    `before` are up to three messages before it, the newest last: they show to whom it is said, and what "sorry, I meant
    Tuesday" corrects. `types` are types of one's own with the words by which a note is one; a sentence with these words
    is a fact even where it is no note. `least` is the probability from which a note is kept.
    """
    to_friend = _to_friend(utterance, before)
    least = least if least is not None else LEAST_OF_FRIENDS if to_friend else LEAST
    code, mentions = _read(utterance, before, to_friend=to_friend)
    spans = sentences(utterance.text)
    facts = [_draft(one, code) for one in mentions] if code not in TAUGHT else []
    taken, quoted = list(facts), list[Note]()
    for note in notes:
        if any(_overlap(one, note) for one in taken):
            continue
        inside = [one for one in mentions if _fits(note, one, utterance)]
        is_advice = to_friend and note.type == "instruction"  # nobody instructs an assistant there
        if is_advice or note.confidence < (SUPPORTED if inside else least):
            continue
        if to_friend and note.confidence < SURE_OF_FRIENDS.get(note.type, 0.0):
            note = replace(note, type="event", attribute="other")
        if len(inside) > 1 and _is_covered(note.start, note.stop, inside, HALF):
            facts += [replace(_draft(one, code), confidence=note.confidence) for one in inside]
            continue
        if _is_plain(note, inside, spans):
            facts.append(_draft_note(note, utterance, inside, code))
        else:
            quoted.append(note)
    for note in _whole_thoughts(quoted, utterance.text, spans):
        inside = [one for one in mentions if _fits(note, one, utterance)]
        guards = [one for one in inside if _root(one.slot) in _GUARDS]
        if guards and note.type == "constraint" and _count_words(utterance.text, note.start, note.stop) > MOST_STANDING:
            # In every context stands what is short; the quotation answers who asks.
            facts += [replace(_draft(one, code), confidence=note.confidence) for one in guards]
            note, inside = replace(note, type="event", attribute="other"), []
        facts.append(_draft_note(note, utterance, inside, code))
    # What protects somebody counts where the reader sees no note, but for what friends tell each other.
    protections = [] if to_friend else [one for one in mentions if _root(one.slot) in _GUARDS - _DIETS]
    facts += [
        _draft(one, code)
        for one in protections
        if not any(_overlap(fact, one) and _tells(fact, one.slot) for fact in facts)
    ]
    asserted = utterance.asserted(pack.language(code) if code in pack.LANGUAGES else None) if types else ()
    for one in asserted:
        is_out = one.asks or any(_overlap(fact, one) for fact in facts)
        if not is_out and type_of(utterance.text[one.start : one.stop], types or {}):
            said = (_quotation(utterance, one.start, one.stop), STATEMENT, kind_of(STATEMENT), utterance.subject)
            facts.append(FactDraft(*said, QUOTED, code, one.start, one.stop))
    return _in_order(facts, types)


def _in_order(facts: Sequence[FactDraft], types: Mapping[str, re.Pattern[str]] | None) -> list[FactDraft]:
    """Return facts as a message says them, each where it is said first, with types of one's own."""
    first: dict[tuple[str, str], FactDraft] = {}
    for fact in facts:
        type = type_of(fact.text, types or {}) if fact.type in LOOSE else None
        first.setdefault((fact.subject, fact.text), replace(fact, type=type) if type else fact)
    return sorted(first.values(), key=lambda fact: fact.start)


def _overlap(one: FactDraft | SlotMention, other: Note | SlotMention | Sentence) -> bool:
    return one.start < other.stop and other.start < one.stop


def _count_words(text: str, start: int, stop: int) -> int:
    return len(text[start:stop].split())


def _quotation(utterance: Utterance, start: int, stop: int) -> str:
    return f'{utterance.subject}: "{in_quotes(utterance.text[start:stop])}"'


def _is_plain(note: Note, mentions: Sequence[SlotMention], spans: Spans) -> bool:
    """Whether a note is understood without the words around it: a slot, or a sentence that leans on no other."""
    if len(mentions) == 1 and _is_covered(note.start, note.stop, mentions):
        return True
    if note.sentence is None or note.leans:
        return False
    [(start, stop)] = [span for span in spans if span[0] <= note.start < span[1]]
    return note.stop - note.start >= WHOLE * (stop - start)


def _whole_thoughts(notes: Sequence[Note], text: str, spans: Spans) -> list[Note]:
    """Return notes as whole sentences, with those that they lean on; neighbours are a single note."""
    whole: list[Note] = []
    for note in notes:
        first = next(place for place, (_, stop) in enumerate(spans) if note.start < stop)
        last = next(place for place, (_, stop) in enumerate(spans) if note.stop <= stop)
        begins = [spans[max(0, first - 1)][0], spans[first][0]] if note.leans else [spans[first][0]]
        whole_spans = [(begin, spans[last][1]) for begin in begins]
        short = [span for span in whole_spans if _count_words(text, *span) <= MOST_JOINED]
        start, stop = short[0] if short else (note.start, note.stop)
        before = whole[-1] if whole else None
        if before and not text[before.stop : start].strip() and _count_words(text, before.start, stop) <= MOST_JOINED:
            main = min(before, note, key=lambda each: (WORTH.index(each.type), each.value is None))
            confidence = max(before.confidence, note.confidence)
            whole[-1] = replace(main, start=before.start, stop=stop, sentence=None, confidence=confidence)
        elif not short and _count_words(text, start, stop) < LEAST_QUOTED:
            continue
        elif before is None or before.stop <= start:
            whole.append(replace(note, start=start, stop=stop, sentence=None))
        elif before.stop < note.stop:
            whole.append(replace(note, sentence=None))
    return whole


def _fits(note: Note, mention: SlotMention, utterance: Utterance) -> bool:
    """Whether a slot is of a note's words, and what protects somebody of its value: no "allergic to severe"."""
    root = _root(mention.slot)
    if root in _WHOLE or not _overlap(mention, note):
        return False
    is_denial = takes_away_protection(mention.slot.attribute, mention.slot.value)
    if root not in _GUARDS or root in _DIETS or is_denial or not note.value:
        return True
    value = terms(utterance.text[note.value.start : note.value.stop])
    return not value.keys().isdisjoint(terms(f"{mention.slot.attribute} {mention.slot.value} {mention.text}"))


def _tells(fact: FactDraft, slot: Slot) -> bool:
    """Whether a fact has the slot, or its words."""
    words = terms(f"{slot.attribute.partition('/')[2]} {slot.value if slot.value not in ('yes', 'no') else ''}")
    return fact.slot == slot or words.keys() <= terms(fact.text).keys()


def _root(slot: Slot) -> str:
    return slot.attribute.removeprefix(FORMER).partition("/")[0]


def _draft_note(note: Note, utterance: Utterance, mentions: Sequence[SlotMention], code: str) -> FactDraft:
    """Return a note as a fact: as its slot says it, in plain words if they are sure, else as it was said."""
    mention = mentions[0] if len(mentions) == 1 else None
    if mention and _is_covered(note.start, note.stop, mentions):
        return replace(_draft(mention, code), confidence=note.confidence)
    text = _quotation(utterance, note.start, note.stop)
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
    if type in ALWAYS_TOLD and not _always_holds(note):
        type = STATEMENT
    dates = (mention.valid_from, mention.valid_to) if mention else (None, None)
    columns = (text, type, kind_of(type), subject, note.confidence, code, note.start, note.stop)
    return FactDraft(*columns, *dates, mention.slot if mention else _slot(note, utterance, code))


def _always_holds(note: Note) -> bool:
    """Whether a constraint or an identity is sure enough for every context, and who somebody is short enough."""
    if note.attribute not in ALWAYS_TOLD[note.type] or note.confidence < SURE[note.type]:
        return False
    is_short = note.sentence is not None and len(note.sentence.split()) <= MOST_STANDING
    return note.type != "identity" or (note.value is not None and is_short)


def _slot(note: Note, utterance: Utterance, code: str) -> Slot | None:
    """Return the slot of a note by the reader's attribute and value."""
    value = utterance.text[note.value.start : note.value.stop].casefold() if note.value else ""
    if not value or not (note.of_speaker or note.subject):
        return None
    words = utterance.text[note.start : note.stop]
    if note.attribute == "allergy" and "allerg" not in words.casefold():
        return None  # who keeps bees is not allergic to them
    if note.attribute in GUARDED and not note.ends and not is_denied(words):
        plural = pack.language(code).patterns["plural"] if code in pack.LANGUAGES else None
        key = plural.sub("", value) if plural else value
        return Slot(f"{GUARDED[note.attribute]}/{key}", "yes", many=True, modality=Modality.HOLDS)
    return None


def extract_memory(utterance: Utterance, kind: str, types: Mapping[str, re.Pattern[str]]) -> list[FactDraft]:
    """Return the facts of what another assistant remembered: its slots, and every other sentence as it stands.

    Somebody found it worth keeping already, so no sentence is left out, and "User" is who it is about.
    """
    text = _POSSESSIVE.sub(lambda found: "My".rjust(len(found[0])), utterance.text)
    text = _CALLED_USER.sub(lambda found: _USER.rjust(len(found[0])), text)
    read = replace(utterance, text=text, role="user", speaker=_USER)
    code, fills = _read(read, (), to_friend=False)
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


def _read(utterance: Utterance, before: Sequence[Utterance], *, to_friend: bool) -> tuple[str, list[SlotMention]]:
    """Return the language of a message, and the slots that it fills.

    The language of a word or two ("Fumo.") is the one in which they fill a slot.
    """
    code = pack.language_of(utterance.text)
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


def _draft(one: SlotMention, code: str) -> FactDraft:
    said = (RULE_CONFIDENCE, code, one.start, one.stop, one.valid_from, one.valid_to)
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


RECIPE = "reader/1"
MOST_FACTS = 64  # of a batch, or those of one message: they are applied with the user's row locked, in under a second
MAX_FACTS_PER_MESSAGE = 256  # more are a paste, and each is applied with the user's row locked


class ReaderExtractor:
    """Extracts facts by the reader."""

    batch_size = 128  # enough for `MOST_FACTS`
    uses_llm = False

    def __init__(self, dependencies: Dependencies) -> None:
        self.dependencies = dependencies
        self.trust = TrustPolicy.of(dependencies.settings)

    @property
    def recipe(self) -> str:
        """The version of the reader, and the roles that are read and trusted."""
        return self.trust.recipe(RECIPE)

    def recipe_under(self, guidelines: Guidelines) -> str:
        """Return the recipe with the hash of the words of types of one's own."""
        return mark_recipe(self.recipe, guidelines.rule_text)

    def extract(self, batches: Sequence[FactBatch]) -> list[ExtractedBatch]:
        """Return the facts of each batch; texts of all batches go to the encoder together."""
        read = [self._read(batch) for batch in batches]
        vectors = iter(self.dependencies.embed([draft.text for _, drafts in read for _, draft in drafts]))
        extracted = []
        for batch, (to_seq, drafts) in zip(batches, read, strict=True):
            recipe = self.recipe_under(batch.guidelines)
            facts = [to_fact(draft, message, next(vectors), recipe, self.trust) for message, draft in drafts]
            extracted.append(ExtractedBatch(to_seq, facts, recipe=recipe))
        return extracted

    def _read(self, batch: FactBatch) -> tuple[int, list[tuple[Message, FactDraft]]]:
        """Return the last message that was read, and the facts: no message more after `MOST_FACTS`."""
        read: list[tuple[Message, FactDraft]] = []
        for message, draft in self._drafts(batch):
            if len(read) >= MOST_FACTS and message is not read[-1][0]:
                return read[-1][0].seq, read
            read.append((message, draft))
        return batch.to_seq, read

    def _drafts(self, batch: FactBatch) -> Iterator[tuple[Message, FactDraft]]:
        types = batch.guidelines.words
        said = [_utterance(message) for message in batch.messages]
        places = [
            place
            for place in range(batch.before, len(batch.messages))
            if batch.messages[place].text and batch.messages[place].role in self.trust.roles
        ]
        utterances = {place: replace(said[place], role=Role.USER) for place in places}
        before = {place: said[max(0, place - LOOKBACK) : place] for place in places}
        turns = [turn_of(utterances[place], before[place]) for place in places]
        for place, notes in zip(places, _read_notes(turns), strict=True):
            message, utterance = batch.messages[place], utterances[place]
            own = [note for note in notes if not is_pasted(message, note.start, note.stop)]
            memory = message.meta.get(IMPORTED_MEMORY)
            if memory in _READ_WHOLE:
                found = extract_memory(utterance, memory, types)
            else:
                found = extract(utterance, own, before[place], types=types)
            for fact in islice(found, MAX_FACTS_PER_MESSAGE):
                yield message, fact


def _read_notes(turns: Sequence[ReaderInput]) -> list[list[Note]]:
    """Return the notes of messages. The reader is loaded with the first of them."""
    if not turns:
        return []
    from memstore.derive.reader.model import load

    return load().read(turns)


def turn_of(utterance: Utterance, before: Sequence[Utterance]) -> ReaderInput:
    """Return a message as the reader reads it, with what a person or an assistant said just before it."""
    last = before[-1] if before and before[-1].role in (Role.USER, Role.ASSISTANT) else None
    text = _ADDRESSED.sub(lambda found: " " * len(found[0]), utterance.text)
    return ReaderInput(last.text if last else "", text, _to_friend(utterance, before))


def _utterance(message: Message) -> Utterance:
    speaker = message.name or (None if message.role == Role.USER else UNNAMED.get(Role(message.role)))
    return Utterance(blank_fenced_blocks(message.text or ""), message.role, speaker, message.occurred_at)
