"""The words that a note is quoted with: whole sentences, as many as are understood weeks later. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from memstore.derive.facts.drafts import FactDraft
from memstore.derive.facts.normalization import content_words
from memstore.derive.facts.utterances import Sentence, Utterance, in_quotes
from memstore.derive.reader.notes import Note, Stretch
from memstore.ingest.redaction import load_detectors
from memstore.language import load_phrases
from memstore.language.sentences import Spans

MAX_QUOTATION_WORDS = 40
MIN_UNDERSTOOD_WORDS = 20
# The types of notes, the most important first.
WORTH = (
    "constraint", "instruction", "identity", "relation", "decision", "plan", "task", "preference", "possession",
    "event",
)  # fmt: skip
_QUOTATION = re.compile(r'[^"\n]{1,100}(?:, (?:asked|gefragt) "[^"]*")?: "(.*)"', re.DOTALL)


def overlap(stretch: FactDraft | Note | Stretch, other: Note | Sentence | Stretch) -> bool:
    return stretch.start < other.stop and other.start < stretch.stop


def count_words(text: str, start: int, stop: int) -> int:
    return len(text[start:stop].split())


def quotation(utterance: Utterance, start: int, stop: int, question: str = "", code: str = "") -> str:
    asked = f', {"gefragt" if code == "de" else "asked"} "{in_quotes(question)}"' if question else ""
    return f'{utterance.subject}{asked}: "{in_quotes(utterance.text[start:stop])}"'


def words_of(text: str) -> str:
    """Return the words of a quotation without its speaker and question; of any other fact the text."""
    quoted = _QUOTATION.fullmatch(text)
    return quoted[1] if quoted else text


def question_of(said: Utterance) -> str:
    """Return the question that the speaker of a message asks at its end, if it is short.

    The answer may not be understood without it. Nothing that is quoted or pasted, and no question for a secret.
    """
    asked = [said.clean_text[sentence.start : sentence.stop] for sentence in said.asserted[-2:] if sentence.asks]
    question = asked[-1] if asked else ""
    is_short = len(question.split()) <= 25 and bool(content_words(question))
    is_of_secret = load_phrases("secrets").search(question) or load_detectors().find(said.text)
    return question if is_short and not is_of_secret else ""


def is_answer(words: Stretch, text: str) -> bool:
    """Whether words answer what was asked before: the message begins with them, and there are few of them."""
    return count_words(text, 0, words.start) < 4 and count_words(text, *words) < MIN_UNDERSTOOD_WORDS


def sentences_of(note: Note, spans: Spans) -> Stretch:
    inside = [span for span in spans if overlap(note, Stretch(*span))]
    return Stretch(inside[0][0], inside[-1][1])


def whole_thoughts(notes: Sequence[Note], text: str, spans: Spans, blocks: Sequence[Stretch]) -> list[Note]:
    """Return notes as whole sentences, with those that they lean on; neighbours are a single note."""
    whole: list[Note] = []
    for note in notes:
        begin, end = sentences_of(note, spans)
        leaning = [span for span in spans if span[0] < begin][-1:] if note.leans else []
        earlier = [first for first, last in leaning if _is_free(first, last, text, blocks)]
        whole_spans = [(start, end) for start in (*earlier, begin)]
        short = [span for span in whole_spans if count_words(text, *span) <= MAX_QUOTATION_WORDS]
        start, stop = short[0] if short else _cut(note, text, begin, end)
        before = whole[-1] if whole else None
        if before and not text[before.stop : start].strip() and _may_join(before, stop, text):
            main = min(before, note, key=lambda each: (WORTH.index(each.type), each.value is None))
            confidence, stop = max(before.confidence, note.confidence), max(before.stop, stop)
            whole[-1] = replace(main, start=before.start, stop=stop, sentence=None, confidence=confidence)
        elif short or count_words(text, start, stop) >= 6:
            start = max(start, before.stop) if before else start
            whole.append(replace(note, start=start, stop=stop, sentence=None))
    return whole


def _may_join(before: Note, stop: int, text: str) -> bool:
    if stop <= before.stop:
        return True
    is_short = count_words(text, before.start, stop) <= MAX_QUOTATION_WORDS
    return is_short and not load_detectors().find(text[before.start : stop])


def _cut(note: Note, text: str, start: int, stop: int) -> tuple[int, int]:
    """Return the words of a long sentence that a note is quoted with: its own.

    Of a dictation, which has no stop, they may begin or end anywhere: it is quoted whole, or with the words around,
    unless it has a secret.
    """
    if re.search(r"[.?!](?:\s|$)", text) or load_detectors().find(text[start:stop]):
        return note.start, note.stop
    if count_words(text, start, stop) <= 60:
        return start, stop
    words = [(start + match.start(), start + match.end()) for match in re.finditer(r"\S+", text[start:stop])]
    first = next(place for place, word in enumerate(words) if word[1] > note.start)
    last = next(place for place, word in enumerate(words) if word[1] >= note.stop)
    missing = max(0, MAX_QUOTATION_WORDS - (last - first + 1))
    first = max(0, first - missing // 2)
    return words[first][0], words[min(len(words) - 1, last + missing // 2)][1]


def with_neighbours(note: Note, said: Utterance, asserted: Sequence[Sentence], apart: Sequence[Stretch]) -> Stretch:
    """Return the words of a note with the sentences before them and behind them, as long as these are too few.

    Only of what the speaker asserts or asks; and where it stands in every context, or tells an assistant what to do,
    its own words are enough.
    """
    start, stop, text = note.start, note.stop, said.text
    if note.type in ("constraint", "instruction"):
        return Stretch(start, stop)
    before = [sentence for sentence in asserted if sentence.stop <= start]
    behind = [sentence for sentence in asserted if sentence.start >= stop]
    for side in (before[::-1], behind):
        for sentence in side[:3]:
            wider = min(sentence.start, start), max(sentence.stop, stop)
            is_enough = count_words(text, start, stop) >= MIN_UNDERSTOOD_WORDS
            if is_enough or count_words(text, *wider) > MAX_QUOTATION_WORDS:
                break
            between = text[sentence.stop : start] or text[stop : sentence.start]
            if any(map(str.isalnum, between)) or not _is_free(sentence.start, sentence.stop, text, apart):
                break
            start, stop = wider
    return Stretch(start, stop)


def _is_free(start: int, stop: int, text: str, apart: Sequence[Stretch]) -> bool:
    """Whether a sentence may be taken along: it touches nothing that stands apart, and has no secret."""
    touches = any(overlap(Stretch(start, stop), other) for other in apart)
    return not touches and not load_detectors().find(text[start:stop])
