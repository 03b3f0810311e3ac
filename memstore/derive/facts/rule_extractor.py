"""Facts by rules, without a model, and whether they hold at once or wait until somebody confirms them. Pure.

    message -> what its author asserts                            rules/utterances.py
            -> slots that its clauses fill: "Alice lives in Cork."      rules/engine.py, languages/*.toml, slots.toml
            -> its other sentences, by what each is worth: Alice: "We signed the lease."        rules/utterances.py

There is no third kind. The same messages always give the same facts, and no text raises an error.

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
from memstore.derive.rules import pack
from memstore.derive.rules.engine import extract_slots
from memstore.derive.rules.slots import Modality, Slot, SlotMention
from memstore.derive.rules.utterances import (
    SHORTEST,
    THRESHOLD,
    Quotation,
    Utterance,
    clauses_of,
    in_quotes,
    quotations,
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
COVERED = 0.7  # share of a quotation that fills slots, from which on only the slots are kept
STATEMENT = "statement"
LOOSE = (STATEMENT, "plan", "event")  # types that give way to one's own; the others hold always
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
    before: Sequence[Utterance] = (),
    *,
    worth: float = THRESHOLD,
    types: Mapping[str, re.Pattern[str]] | None = None,
) -> list[FactDraft]:
    """Return the facts that a message says, in its order, each once; none for any role but "user".

    `before` are up to three messages before it, the newest last: they show to whom it is said, and what "sorry, I meant
    Tuesday" corrects. `worth` is the least that a quotation must be worth, from 0 to 1; a slot is a fact at any worth.
    `types` are types of one's own with the words by which a quotation, a plan or an event is one.
    """
    if utterance.role != "user":
        return []
    to_friend = _to_friend(utterance, before)
    code, fills = _read(utterance, before, to_friend=to_friend)
    language = pack.language(code) if code in pack.LANGUAGES else None
    facts = [_draft(one, code) for one in fills]
    types, asserted = types or {}, utterance.asserted(language)
    for quote in quotations(utterance, asserted, language, to_friend=to_friend, types=types):
        for start, stop, filled in _unfilled_parts(quote, fills, utterance, language) if quote.worth >= worth else ():
            text = f'{utterance.subject}: "{in_quotes(utterance.text[start:stop])}"'
            said = (filled.subject if filled else utterance.subject, QUOTED, code, start, stop)
            slot = replace(filled.slot, modality=Modality.HOLDS) if filled else None
            facts.append(FactDraft(text, STATEMENT, kind_of(STATEMENT), *said, slot=slot))
    facts = [replace(one, type=type_of(one.text, types) or one.type) if one.type in LOOSE else one for one in facts]
    return sorted(facts, key=lambda one: one.start)


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


def _unfilled_parts(
    quote: Quotation, fills: Sequence[SlotMention], utterance: Utterance, language: pack.Language | None
) -> Iterator[tuple[int, int, SlotMention | None]]:
    """Return the parts of a quotation that are facts besides its slots: all of it, or clauses that no slot fills.

    Words about a changeable value get its slot and its subject, so that no old sentence outlives it, and "my sister
    lives in Leeds" ends nothing of the speaker's.
    """
    here = [one for one in fills if one.start < quote.stop and quote.start < one.stop]
    whole = (quote.start, quote.stop)
    if language is None or not here:
        yield *whole, None
        return
    text = utterance.clean_text
    for start, stop, follows in _parts(text, *whole, here, language):
        inside = [one for one in here if one.start < stop and start < one.stop]
        changing = [one for one in inside if _may_change(one.slot)]
        filled = min(changing, key=lambda one: one.subject != utterance.subject, default=None)
        own = follows or any(
            language.patterns[name].search(text, start, stop) for name in ("of_speaker", "wish", "of_life")
        )
        own = own or (language.lasting is not None and language.lasting.search(text, start, stop))
        if own if not inside else not _is_covered(start, stop, inside):
            yield start, stop, filled


def _parts(
    text: str, start: int, stop: int, fills: Sequence[SlotMention], language: pack.Language
) -> Iterator[tuple[int, int, bool]]:
    """Return the clauses of words. Words behind a date or a dose stand apart: they do not end with it."""
    for begin, end in clauses_of(text, start, stop, language):
        keyed = [
            one.stop for one in fills if begin < one.stop <= end and "/" in one.slot.attribute and not one.slot.many
        ]
        gap = language.patterns["gap"].search(text, max(keyed) - 1, end) if keyed else None
        rest = len(terms(text[gap.end() : end])) if gap else 0
        denied = gap and language.patterns["negation"].match(text, gap.end())  # "on Thursday, not Tuesday"
        yield begin, gap.start() if gap and (denied or rest >= SHORTEST) else end, False
        if gap and not denied and rest >= SHORTEST:
            yield gap.end(), end, True


def _is_covered(start: int, stop: int, fills: Sequence[SlotMention]) -> bool:
    covered = sum(min(stop, end) - max(start, begin) for begin, end in _merge_spans(fills))
    return covered >= COVERED * (stop - start)


def _may_change(slot: Slot) -> bool:
    return not slot.many and slot.modality is not Modality.ENDED


def _merge_spans(fills: Sequence[SlotMention]) -> Iterator[tuple[int, int]]:
    reached = -1
    for one in sorted(fills, key=lambda one: one.start):
        if one.stop > reached:
            yield max(one.start, reached), one.stop
            reached = one.stop


RECIPE = "rules/14"
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
        for place in range(batch.before, len(batch.messages)):
            message = batch.messages[place]
            if not message.text or message.role not in self.trust.roles:
                continue
            utterance = replace(_utterance(message), role=Role.USER)  # assistants and tools are read as persons are
            before = [_utterance(one) for one in batch.messages[max(0, place - LOOKBACK) : place]]
            memory = message.meta.get(IMPORTED_MEMORY)
            if memory in _READ_WHOLE:
                found = extract_memory(utterance, memory, types)
            else:
                found = extract(utterance, before, types=types)
            first = {(one.subject, one.text): one for one in reversed(found)}  # each where it is said first
            for one in islice(reversed(first.values()), MAX_FACTS_PER_MESSAGE):
                yield message, one


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
