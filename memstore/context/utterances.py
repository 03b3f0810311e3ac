"""Utterances: which of them say something alone, and which need an antecedent, the sentence that they answer.

Talk is in pieces: "No, this is not necessary." means nothing without the question it answers, and "Sounds great!" means
nothing anywhere. All is judged by form, in English and German, without a model. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from memstore.language import QUESTION_MARKS, SPOKEN_WORD, is_question, load_phrases, load_words
from memstore.language.sentences import sentences
from memstore.models import Hit, Message, Role, Tier
from memstore.models.messages import SESSION_GAP
from memstore.store.tokenize import terms

_REFERS = re.compile(
    r"\W*(?:(?:oh|and|but|well|so|because|cause|und|aber|also|na|weil)\b\W*)?"
    r"(?:it|that|this|these|those|they|them|he|she|one|same|such|es|das|dies\w*|er|sie|dort|damit|davon|darauf|dafür"
    r"|that's|it's|they're)\b",
    re.IGNORECASE,
)
MAX_PIECE_CHARS = 120


def says_nothing(text: str, names: Collection[str] = ()) -> bool:
    """Return whether a text is nothing but greeting, thanks, praise, assent or farewell; `names` are who may be named.

    >>> [says_nothing(text) for text in ("Wie schön!", "Sounds great, thanks!", "I love my job!", "Sounds like rain.")]
    [True, True, False, False]
    """
    # One's own things are told of, however short: "I love my job!"
    if load_phrases("has").search(text):
        return False
    said = text.lower().replace("’", "'")
    # Of most texts the first few tell.
    words = (match[0] for match in SPOKEN_WORD.finditer(said))
    return SPOKEN_WORD.search(said) is not None and all(word in load_words("phatic") or word in names for word in words)


def needs_antecedent(text: str) -> bool:
    """Return whether an utterance goes on from the one before: short, and begins as an answer does or is a fragment.

    >>> [needs_antecedent(text) for text in ("No, not necessary.", "In Porto.", "I moved to Porto with my sister.")]
    [True, True, False]
    """
    words = len(SPOKEN_WORD.findall(text))
    return words <= 16 and not is_question(text) and (words <= 5 or leans(text))


def leans(text: str) -> bool:
    number = r"\W*(?:(?:about|around|only|just|etwa|ungefähr|nur|um|at|in|on|am)\s+)?\d"
    return answers(text) or _REFERS.match(text) is not None or re.match(number, text) is not None


def answers(text: str) -> bool:
    """Return whether an utterance begins as an answer to a question of yes or no."""
    return load_phrases("answers", opens=True).match(text) is not None


def antecedent_span(before: str, text: str, names: Collection[str]) -> tuple[int, int] | None:
    """Return where the antecedent of a text stands in what was said before it: start and end.

    Its last question; to a text of few words its last sentence that says anything. Of a long one it is the end.
    """
    skipped = max(0, len(before) - 1000)
    read, asked = before[skipped:], None
    if any(mark in read for mark in QUESTION_MARKS):
        asked = next((span for span in reversed(sentences(read)) if is_question(read[slice(*span)])), None)
    if asked is None and len(terms(text)) <= 3:
        asked = next((span for span in reversed(sentences(read)) if not says_nothing(read[slice(*span)], names)), None)
    if asked is None:
        return None
    start, stop = skipped + asked[0], skipped + asked[1]
    if stop - start > MAX_PIECE_CHARS:
        blank = before.find(" ", stop - MAX_PIECE_CHARS, stop)
        start = stop - MAX_PIECE_CHARS if blank < 0 else blank + 1
    return start, stop


def find_antecedent(hit: Hit, before: Message, names: Collection[str]) -> Hit | None:
    text = before.text or ""
    if hit.occurred_at - before.occurred_at > SESSION_GAP or not needs_antecedent(hit.text):
        return None
    span = antecedent_span(text, hit.text, names)
    if span is None:
        return None
    start, stop = span
    return replace(
        hit,
        id=before.id,
        text=text[start:stop],
        score=0.0,
        parts={},
        sources=(before.id,),
        occurred_at=before.occurred_at,
        seq=before.seq,
        role=before.role,
        speaker=before.name or before.role,
        start=start,
        later="",
        later_ids=(),
    )


def score_comment(hit: Hit) -> Hit:
    """Return a hit with a lower score if a person only comments in it on what another said."""
    if hit.tier != Tier.MESSAGES or hit.role == Role.ASSISTANT or not only_comments(hit.text):
        return hit
    return replace(hit, score=round(hit.score - 0.08, 6), parts={**hit.parts, "comment": -0.08})


def only_comments(text: str) -> bool:
    """Return whether a text tells nothing of who says it: no first person, no number, nothing shown in brackets."""
    return not (load_phrases("speaks_of_self").search(text) or "[" in text or any(map(str.isdecimal, text)))
