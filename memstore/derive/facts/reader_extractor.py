"""Facts without a chat model: the reader's notes of messages, as facts that can be stored.

The same messages always give the same facts, and no text raises an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from memstore.derive.dependencies import Dependencies
from memstore.derive.facts import drafts
from memstore.derive.facts.drafts import FactDraft, bind_to_message
from memstore.derive.facts.guidelines import Guidelines, mark_recipe
from memstore.derive.facts.normalization import CONSTRAINT
from memstore.derive.facts.note_facts import extract, extract_memory, memory_turn, turn_of
from memstore.derive.facts.quotations import question_of, words_of
from memstore.derive.facts.slots import Slot
from memstore.derive.facts.utterances import Utterance
from memstore.derive.reader import read_notes
from memstore.derive.reader.notes import Note, ReaderInput
from memstore.language import compile_phrases
from memstore.models import ADDRESSEE, IMPORTED_MEMORY, TRUST, TRUSTED, Message, Role
from memstore.text import blank_fenced_blocks

MEMORIES_READ_WHOLE = ("saved memory", "about the user", "instructions")
RECIPE = "reader/9"
# They are applied with the user's row locked, in under a second. One message may have more.
MAX_BATCH_FACTS = 64


class ReaderExtractor:
    # Enough for `MAX_BATCH_FACTS`.
    batch_size = 128
    uses_llm = False

    def __init__(self, dependencies: Dependencies) -> None:
        self.dependencies = dependencies
        self.trust = drafts.TrustPolicy.of(dependencies.settings)

    @property
    def recipe(self) -> str:
        return self.trust.extend_recipe(RECIPE)

    def recipe_under(self, guidelines: Guidelines) -> str:
        return mark_recipe(self.recipe, guidelines.type_words)

    def extract(self, batches: Sequence[drafts.FactBatch]) -> list[drafts.ExtractedBatch]:
        """Return the facts of each batch; texts of all batches go to the encoder together."""
        read = [self._read(batch) for batch in batches]
        vectors = iter(self.dependencies.embed([draft.fact.text for _, facts in read for _, draft in facts]))
        extracted = []
        for batch, (to_seq, said) in zip(batches, read, strict=True):
            recipe = self.recipe_under(batch.guidelines)
            facts = [bind_to_message(draft, message, next(vectors), recipe, self.trust) for message, draft in said]
            extracted.append(drafts.ExtractedBatch(to_seq, facts, recipe=recipe))
        return extracted

    def _read(self, batch: drafts.FactBatch) -> tuple[int, list[tuple[Message, FactDraft]]]:
        """Return the last message that was read, and the facts: no message more after `MAX_BATCH_FACTS`."""
        read: list[tuple[Message, FactDraft]] = []
        for message, draft in self._drafts(batch):
            if len(read) >= MAX_BATCH_FACTS and message is not read[-1][0]:
                return read[-1][0].seq, read
            read.append((message, draft))
        return batch.to_seq, read

    def _drafts(self, batch: drafts.FactBatch) -> Iterator[tuple[Message, FactDraft]]:
        types = batch.guidelines.words
        said = [_utterance(message) for message in batch.messages]
        new = enumerate(batch.messages[batch.already_read :], batch.already_read)
        places = [place for place, message in new if message.text and message.role in self.trust.roles]
        utterances = {place: replace(said[place], role=Role.USER) for place in places}
        before = {place: said[max(0, place - drafts.LOOKBACK_MESSAGES) : place] for place in places}
        turns = [
            memory_turn(utterances[place])
            if batch.messages[place].meta.get(IMPORTED_MEMORY) in MEMORIES_READ_WHOLE
            else turn_of(utterances[place], before[place])
            for place in places
        ]
        for place, notes in zip(places, read_notes(turns), strict=True):
            message, utterance = batch.messages[place], utterances[place]
            own_notes = [note for note in notes if not drafts.is_pasted(message, note.start, note.stop)]
            memory = message.meta.get(IMPORTED_MEMORY)
            if memory in MEMORIES_READ_WHOLE:
                facts = extract_memory(utterance, own_notes, memory, types)
            else:
                is_answer = place > 0 and bool(own_notes) and _is_heard_by_all(batch.messages[place - 1], message)
                question = question_of(said[place - 1]) if is_answer else ""
                facts = extract(utterance, own_notes, before[place], question=question, types=types)
            friends = {each.speaker for each in before[place] if each.role == Role.USER} - {None, message.name}
            may_change = message.role == Role.USER and not friends
            # More are a paste.
            for fact in facts[:256]:
                yield message, replace(fact, may_change=may_change)


def _is_heard_by_all(asker: Message, message: Message) -> bool:
    """Whether a message may answer the one before it, of a person or the only assistant, which is for nobody alone."""
    is_person = asker.role == Role.USER and asker.name != message.name
    is_assistant = asker.role == Role.ASSISTANT and not asker.name
    is_trusted = asker.meta.get(TRUST, TRUSTED) == TRUSTED
    is_for_all = ADDRESSEE not in asker.meta and not (asker.text or "").lstrip().startswith("@")
    return asker.seq == message.seq - 1 and (is_person or is_assistant) and is_trusted and is_for_all


def _utterance(message: Message) -> Utterance:
    speaker = message.name or (None if message.role == Role.USER else drafts.UNNAMED_SPEAKERS.get(Role(message.role)))
    return Utterance(blank_fenced_blocks(message.text or ""), message.role, speaker, message.occurred_at)


class Statement(NamedTuple):
    type: str
    slot: Slot | None


def read_statement(text: str, subject: str) -> Statement:
    spoken = _as_spoken(text, subject)
    [notes] = read_notes([ReaderInput("", spoken)])
    has_not = "I do not have, I do not take, I don't have, I don't take, I no longer has, I no longer takes"
    if denied := compile_phrases(has_not).match(spoken):
        notes = [replace(note, holds=note.holds and not _is_object(note, denied, spoken)) for note in notes]
    facts = extract(Utterance(spoken, Role.USER, subject, datetime.now(UTC)), notes)
    types = [draft.fact.type for draft in facts]
    type = CONSTRAINT if CONSTRAINT in types else next(iter(types), drafts.STATEMENT)
    return Statement(type, facts[0].slot if len(facts) == 1 else None)


def _as_spoken(text: str, subject: str) -> str:
    """Return a statement as its subject would say it: the reader reads what people say of themselves."""
    if text[: len(subject)].casefold() != subject.casefold():
        return words_of(text)
    rest = text[len(subject) :]
    if rest.startswith(("'s ", "’s ")):
        return f"My{rest[2:]}"
    in_first_person = re.sub(r"^ (\w+s(?:n['’]t)?)\b", _first_person, rest)
    return f"I{in_first_person}" if rest[:1] == " " else words_of(text)


def _is_object(note: Note, denied: re.Match[str], text: str) -> bool:
    """Whether all that is denied in a statement is the illness or the medicine of a note."""
    if note.attribute not in ("condition", "medicine") or note.value is None:
        return False
    is_next = not text[denied.end() : note.value.start].strip()
    return is_next and text[note.value.stop :].strip(" .!").casefold() in ("", "anymore", "any more", "any longer")


def _first_person(verb: re.Match[str]) -> str:
    """Return a verb of the third person in the first: "lives" is "live"."""
    irregular = {
        "is": "am", "has": "have", "does": "do", "was": "was", "always": "always", "goes": "go", "isn't": "am not",
        "hasn't": "haven't", "doesn't": "don't", "wasn't": "wasn't",
    }  # fmt: skip
    word = verb[1].replace("’", "'")
    return f" {irregular.get(word, word.removesuffix('s'))}"
