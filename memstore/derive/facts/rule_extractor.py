"""Facts without a chat model, and whether they hold at once or wait until somebody confirms them.

    message -> notes: its words that are worth keeping                  reader/
            -> slots that they fill: "Alice lives in Cork."             rules/engine.py, languages/*.toml, slots.toml
            -> else plain words, or a quotation: Alice: "We signed the lease."

The same messages always give the same facts, and no text raises an error.

A tool's output is never believed alone, whatever is set: it is a page, a file or a mail that somebody unknown wrote.
Nor are pasted or quoted texts, or messages that the application marks as untrusted. A message can only lower the trust
of its role: the writer of an imported file writes its metadata too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from uuid import UUID

from memstore import ids
from memstore.derive.chunking import sentences
from memstore.derive.dependencies import Dependencies, DerivedBatch
from memstore.derive.facts.guidelines import NO_GUIDELINES, Guidelines, mark_recipe
from memstore.derive.reader.notes import Note, ReaderInput
from memstore.derive.rules import pack
from memstore.derive.rules.engine import extract_slots
from memstore.derive.rules.slots import FORMER, Modality, Slot, SlotMention
from memstore.derive.rules.utterances import (
    Utterance,
    in_quotes,
    type_of,
)
from memstore.ingest.redaction import load_detectors
from memstore.models import (
    IMPORTED_MEMORY,
    QUARANTINED,
    TRUST,
    TRUSTED,
    FactColumns,
    FactSpan,
    Message,
    RememberedFact,
    Role,
    kind_of,
)
from memstore.providers import Vectors
from memstore.settings import Settings
from memstore.store.tokenize import terms
from memstore.text import blank_fenced_blocks

LEVELS = {Role.USER: 2, Role.ASSISTANT: 1, Role.TOOL: 0}  # of a source
BY_HAND, UNTRUSTED = 3, 0
# A fence of any length, closed or not; ticks anywhere, tildes where a line begins: elsewhere they are a tone of voice.
_FENCED = re.compile(
    r"(`{3,}+).*?(?:\1|\Z)|^[^\w\n]{0,20}?(~{3,}+).*?(?:^[^\w\n]{0,20}?\2|\Z)", re.DOTALL | re.MULTILINE
)
_QUOTED = re.compile(
    r"(?:^|[\r\v\f\x85\u2028\u2029])(?:[^\S\n]|[\u200b-\u200f\ufeff]){0,20}"
    r"(?:(?:[-*+•]|\d{1,3}[.)])[^\S\n]{1,5})?[>＞][^\n]*",
    re.MULTILINE,
)
_MARKS = ("```", "~~~", ">", "＞")


@dataclass(frozen=True, slots=True)
class TrustPolicy:
    """The roles that facts are taken from, and those of them whose facts hold at once."""

    roles: frozenset[str]
    trusted: frozenset[str]

    @classmethod
    def of(cls, settings: Settings) -> TrustPolicy:
        """Return the policy of the settings."""
        roles = frozenset(settings.fact_roles)
        return cls(roles, roles & frozenset(settings.trusted_roles))

    def recipe(self, recipe: str) -> str:
        """Return a recipe with the roles of facts, unless only users, and those that are not trusted."""
        if self.roles != {Role.USER}:
            recipe = f"{recipe} from {','.join(sorted(self.roles)) or 'nobody'}"
        if waiting := self.roles - self.trusted:
            recipe = f"{recipe} doubting {','.join(sorted(waiting))}"
        return recipe

    def level(self, message: Message, start: int, stop: int) -> int:
        """Return how far the characters from `start` to `stop` of a message are trusted: 0, 1 or 2."""
        if message.meta.get(TRUST, TRUSTED) != TRUSTED or _not_own(message, start, stop):
            return UNTRUSTED
        return LEVELS[Role(message.role)]

    def is_trusted(self, message: Message, level: int) -> bool:
        """Whether facts at this level are active at once."""
        return level > UNTRUSTED and message.role in self.trusted


def _not_own(message: Message, start: int, stop: int) -> bool:
    """Whether characters of a message touch text that was pasted into it, or quoted line by line."""
    text = message.text or ""
    if not any(mark in text for mark in _MARKS):
        return False
    blocks = [found.span() for pattern in (_FENCED, _QUOTED) for found in pattern.finditer(text)]
    return any(begin < stop and start < end for begin, end in blocks)


RULE_CONFIDENCE, QUOTED = 0.9, 0.6
TAUGHT = ("en", "de", "und")  # languages of the reader; in others every slot is a fact
# Probabilities from which a note is kept; among friends, who tell of their lives; and of words that fill a slot.
LEAST, LEAST_OF_FRIENDS, SUPPORTED = 0.5, 0.35, 0.25
COVERED, HALF = 0.7, 0.5  # share of a note that a slot fills, or several, from which on these are kept instead
STATEMENT = "statement"
TYPES = {
    "constraint": "constraint",
    "instruction": "procedure",
    "identity": "identity",
    "relation": "relationship",
    "preference": "preference",
    "plan": "plan",
    "task": "task",
    "decision": "decision",
    "event": "event",
    "possession": "possession",
}
# The slot of a value that protects somebody, by the reader's attribute; and those that rules read.
GUARDED = {"allergy": "allergy", "condition": "health", "medicine": "medication", "diet": "restriction"}
_DIETS = frozenset(["diet", "eats", "regimen"])
_GUARDS = _DIETS.union(GUARDED.values(), ["intolerance", "avoid", "dose", "pregnancy"])
_WHOLE = frozenset(["caution", "instruction", "task", "decision"])  # slots that repeat the sentence
_MY = re.compile(r"^(?:my|our|the|mein\w*|unser\w*|der|die|das)\b", re.IGNORECASE)
LOOSE = (STATEMENT, "plan", "task", "event", "possession")  # types that give way to one's own; the others hold always
_USER = "User"
_READ_WHOLE = ("saved memory", "about the user", "instructions")
_CALLED_USER = re.compile(r"\b(?:(?:the|der|die) )?(?:user|nutzer(?:in)?)\b", re.IGNORECASE)
_POSSESSIVE = re.compile(r"\b(?:the )?user['’]s\b", re.IGNORECASE)
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
    slot: Slot | None = None


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
    facts = [_draft(one, code) for one in mentions] if code not in TAUGHT else []
    taken = list(facts)
    for note in notes:
        if any(one.start < note.stop and note.start < one.stop for one in taken):
            continue
        inside = [one for one in mentions if _fits(note, one, utterance)]
        if note.confidence < (SUPPORTED if inside else least):
            continue
        if len(inside) > 1 and _is_covered(note.start, note.stop, inside, HALF):
            facts += [replace(_draft(one, code), confidence=note.confidence) for one in inside]
        else:
            facts.append(_draft_note(note, utterance, inside, code))
    for start, stop in sentences(utterance.clean_text) if types else ():
        if type_of(utterance.text[start:stop], types or {}) and not any(
            note.start < stop and start < note.stop for note in notes
        ):
            text = f'{utterance.subject}: "{in_quotes(utterance.text[start:stop])}"'
            facts.append(FactDraft(text, STATEMENT, kind_of(STATEMENT), utterance.subject, QUOTED, code, start, stop))
    facts = [
        replace(one, type=type_of(one.text, types or {}) or one.type) if one.type in LOOSE else one for one in facts
    ]
    return sorted(facts, key=lambda one: one.start)


def _fits(note: Note, mention: SlotMention, utterance: Utterance) -> bool:
    """Whether a slot is of a note's words, and what protects somebody of its value: no "allergic to severe"."""
    root = mention.slot.attribute.removeprefix(FORMER).partition("/")[0]
    is_within = mention.start < note.stop and note.start < mention.stop
    if root in _WHOLE or not is_within:
        return False
    if root not in _GUARDS or root in _DIETS or not note.value:
        return True
    value = terms(utterance.text[note.value.start : note.value.stop])
    return not value.keys().isdisjoint(terms(f"{mention.slot.attribute} {mention.slot.value} {mention.text}"))


def _draft_note(note: Note, utterance: Utterance, mentions: Sequence[SlotMention], code: str) -> FactDraft:
    """Return a note as a fact: as its slot says it, in plain words if they are sure, else as it was said."""
    mention = mentions[0] if len(mentions) == 1 else None
    if mention and _is_covered(note.start, note.stop, mentions):
        return replace(_draft(mention, code), confidence=note.confidence)
    text = f'{utterance.subject}: "{in_quotes(utterance.text[note.start : note.stop])}"'
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
    type = "goal" if note.attribute == "goal" else TYPES[note.type]
    dates = (mention.valid_from, mention.valid_to) if mention else (None, None)
    columns = (text, type, kind_of(type), subject, note.confidence, code, note.start, note.stop)
    return FactDraft(*columns, *dates, mention.slot if mention else _slot(note, utterance, code))


def _slot(note: Note, utterance: Utterance, code: str) -> Slot | None:
    """Return the slot of a note by the reader's attribute and value."""
    value = utterance.text[note.value.start : note.value.stop].casefold() if note.value else ""
    if not value or not (note.of_speaker or note.subject):
        return None
    if note.attribute in GUARDED and not note.ends:
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
    facts = [replace(one, type=type_of(one.text, types) or one.type) if one.type in LOOSE else one for one in facts]
    return sorted(facts, key=lambda one: one.start)


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
DRAFTED = ("text", "type", "kind", "subject", "confidence", "language", "valid_from", "valid_to")  # columns of a draft
LOOKBACK = 3  # messages that may be needed to understand one
MOST_FACTS = 64  # of a batch, or those of one message: they are applied with the user's row locked, in under a second
MAX_FACTS_PER_MESSAGE = 256  # more are a paste, and each is applied with the user's row locked
UNNAMED = {Role.USER: "The user", Role.ASSISTANT: "The assistant", Role.TOOL: "The tool"}  # speakers without a name


@dataclass(frozen=True, slots=True)
class FactBatch:
    """Messages to be read; the first `before` of them were read already. `to_seq` is the last one.

    `known` are the user's facts that a model is shown.
    """

    to_seq: int
    messages: list[Message]
    before: int
    guidelines: Guidelines = NO_GUIDELINES
    known: Sequence[RememberedFact] = ()


@dataclass(frozen=True, slots=True)
class ExtractedFact:
    """A new fact: its columns, the slot that it fills, its spans, and its vector.

    Its state is "quarantined" if its speaker is not trusted alone. `said_by_subject` is also true of what speakers say
    of their own kin, pets and things. `learned_at` is when memstore learnt of it: later changes by hand were made
    knowing that. An extracted fact has one span; one that a person enters has several, or none.
    """

    fact: FactColumns
    slot: Slot | None
    said_by_subject: bool
    learned_at: datetime
    speaker: str = ""  # as facts name them
    conversation_id: UUID | None = None
    spans: tuple[FactSpan, ...] = ()
    vector: Vectors | None = None
    ends: tuple[UUID, ...] = ()  # known facts that no longer hold, by a model
    alias: str = ""  # another name of the subject, under which facts may be known
    said: tuple[str, ...] = ()  # the subject's sentences that a model quotes


@dataclass(frozen=True, slots=True)
class ExtractedBatch(DerivedBatch):
    """The facts of messages.

    `invalid` counts a model's unusable answers, `refused` the facts of others that were not believed.
    """

    facts: list[ExtractedFact]
    invalid: int = 0
    refused: int = 0


def without_secrets(extracted: ExtractedBatch, messages: Sequence[Message]) -> ExtractedBatch:
    """Return a batch without the facts that tell a password, a key or what else masking masks, masked or not."""
    find, texts = load_detectors().find, {each.id: each.text or "" for each in messages}

    def tells_secret(one: ExtractedFact) -> bool:
        said = (texts.get(span.message_id, "") for span in one.spans)
        secrets = {text[secret.start : secret.stop] for text in said for secret in find(text)}
        return bool(find(one.fact.text)) or any(secret in one.fact.text for secret in secrets)

    return replace(extracted, facts=[one for one in extracted.facts if not tells_secret(one)])


class RuleExtractor:
    """Extracts facts by rules."""

    batch_size = 128  # enough for `MOST_FACTS`
    uses_llm = False

    def __init__(self, dependencies: Dependencies) -> None:
        self.dependencies = dependencies
        self.trust = TrustPolicy.of(dependencies.settings)

    @property
    def recipe(self) -> str:
        """The version of the rules, and the roles that are read and trusted."""
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
        places = [
            place
            for place in range(batch.before, len(batch.messages))
            if batch.messages[place].text and batch.messages[place].role in self.trust.roles
        ]
        utterances = {place: replace(_utterance(batch.messages[place]), role=Role.USER) for place in places}
        before = {
            place: [_utterance(one) for one in batch.messages[max(0, place - LOOKBACK) : place]] for place in places
        }
        turns = [turn_of(utterances[place], before[place]) for place in places]
        for place, notes in zip(places, _read_notes(turns), strict=True):
            message, utterance = batch.messages[place], utterances[place]
            own = [note for note in notes if not _not_own(message, note.start, note.stop)]
            memory = message.meta.get(IMPORTED_MEMORY)
            if memory in _READ_WHOLE:
                found = extract_memory(utterance, memory, types)
            else:
                found = extract(utterance, own, before[place], types=types)
            first = {(one.subject, one.text): one for one in reversed(found)}  # each where it is said first
            for one in islice(reversed(first.values()), MAX_FACTS_PER_MESSAGE):
                yield message, one


def _read_notes(turns: Sequence[ReaderInput]) -> list[list[Note]]:
    """Return the notes of messages. The reader is loaded with the first of them."""
    if not turns:
        return []
    from memstore.derive.reader.model import load

    return load().read(turns)


def turn_of(utterance: Utterance, before: Sequence[Utterance]) -> ReaderInput:
    """Return a message as the reader reads it, with what a person or an assistant said just before it."""
    last = before[-1] if before and before[-1].role in (Role.USER, Role.ASSISTANT) else None
    return ReaderInput(last.text if last else "", utterance.text, _to_friend(utterance, before))


def _utterance(message: Message) -> Utterance:
    speaker = message.name or (None if message.role == Role.USER else UNNAMED.get(Role(message.role)))
    return Utterance(blank_fenced_blocks(message.text or ""), message.role, speaker, message.occurred_at)


def to_fact(
    draft: FactDraft, message: Message, vector: Vectors | None, recipe: str, trust: TrustPolicy
) -> ExtractedFact:
    """Return a fact that a message says as it can be stored."""
    slot, level = draft.slot, trust.level(message, draft.start, draft.stop)
    columns = {name: getattr(draft, name) for name in DRAFTED}
    fact = FactColumns.model_construct(
        user_id=message.user_id,
        id=ids.fact_id(message.user_id, draft.subject, draft.text),
        attribute=slot.attribute if slot else None,
        value=slot.value if slot else None,
        state="active" if trust.is_trusted(message, level) else QUARANTINED,
        recipe=recipe,
        occurred_at=message.occurred_at,
        **columns,
    )
    speaker = message.name or UNNAMED[Role(message.role)]
    subject, owner = fact.subject.casefold(), speaker.casefold()
    return ExtractedFact(
        fact,
        slot,
        said_by_subject=subject == owner or subject.startswith(f"{owner}'s "),
        learned_at=message.recorded_at,
        speaker=speaker,
        conversation_id=message.conversation_id,
        spans=(FactSpan(message.id, draft.start, draft.stop, level),),
        vector=vector,
    )
