"""How well notes agree with labels: by words of quotes, and by what they say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from memstore.derive.reader.notes import Note
from memstore.language import word_set

STOP = word_set(
    "the a an and or to of in on at for is are was were be been i im i'm my me we our you your it its it's that this"
    " with so but not no do does did have has had he she they his her their them as from by just like really very also"
    " too then than there here what who when where will would can could should if about up out into over after before"
    " because"
)


def words(text: str) -> set[str]:
    """Return the content words of a text."""
    return {word for word in re.findall(r"[\w']+", text.lower()) if word not in STOP}


def agree(message: dict[str, Any], notes: Sequence[Note]) -> list[dict[str, Any] | None]:
    """Return for each note the fact that it tells, None for none.

    A note is right if half of its content words are in the quote and the sentence of one fact.
    """
    facts = [(words(fact["quote"]), words(fact["fact"].replace("{NAME}", "")), fact) for fact in message["facts"]]
    told: list[dict[str, Any] | None] = []
    for note in notes:
        text = words(message["text"][note.start : note.stop])
        matches = [
            (len(text & quote), fact)
            for quote, said, fact in facts
            if 2 * len(text & (quote | said)) >= max(1, len(text))
        ]
        told.append(max(matches, key=lambda match: match[0])[1] if matches else None)
    return told


def score(messages: Sequence[dict[str, Any]], notes: Sequence[Sequence[Note]]) -> str:
    """Return precision, recall, and how many messages with nothing to keep were left empty; then shares of labels.

    A fact is found if half of its quote's words, or its value, are in one note.
    """
    gold = made = found = empty = left = 0
    labels: list[tuple[bool, ...]] = []
    for message, noted in zip(messages, notes, strict=True):
        text = message["text"]
        said = [words(text[note.start : note.stop]) for note in noted]
        made += len(noted)
        for fact in message["facts"]:
            quote, value = words(fact["quote"]), words(fact["value"] or "")
            gold += 1
            found += any(2 * len(each & quote) >= max(1, len(quote)) or (value and value <= each) for each in said)
        if not message["facts"]:
            empty += 1
            left += not noted
        for note, told in zip(noted, agree(message, noted), strict=True):
            if told is not None:
                value = text[note.value.start : note.value.stop] if note.value else ""
                labels.append(
                    (
                        note.type == told["type"],
                        note.attribute == told["attribute"],
                        words(value) == words(told["value"] or ""),
                        note.of_speaker == (not re.match(r"\{NAME\}['’]?s\b", told["fact"])),
                        note.ends == told["ends"],
                        note.sentence is not None,
                    )
                )
    shares = [sum(column) / max(1, len(labels)) for column in zip(*labels, strict=True)]
    names = ("type", "attribute", "value", "speaker", "ends", "in plain words")
    return (
        f"precision {len(labels) / max(1, made):.3f}  recall {found / max(1, gold):.3f}  notes {made} of {gold}"
        f"  left empty {left} of {empty} | "
        + " ".join(f"{name} {share:.2f}" for name, share in zip(names, shares, strict=False))
    )
