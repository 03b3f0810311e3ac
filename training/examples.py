"""Labelled messages as what the reader learns: tokens, and what is to be said of each."""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measure import words

from memstore.derive.reader.model import CLS, FRIEND_TOKEN, SEP
from memstore.derive.reader.notes import (
    ATTRIBUTES,
    DELETE,
    INFLECT,
    KEEP,
    MAX_BEFORE_TOKENS,
    MAX_WINDOW_TOKENS,
    NAMED_WORD,
    TYPES,
    WORD,
    ReaderInput,
    inflected,
)
from memstore.providers.minilm import load_tokenizer

STEM = 4  # letters by which words of one meaning are known
UNKNOWN = -100  # of a label that nothing says

# Where what a sentence is about ends: "{NAME}'s sister Maria | lives …"
_VERB = re.compile(
    r"\b(?:is|are|was|were|has|had|have|will|won't|can|can't|cannot|could|does|doesn't|did|didn't|do|don't|must|should"
    r"|would|isn't|aren't|hasn't|lives?|works?|goes|comes|plays?|takes?|wants?|needs?|gets|got|starts?|moved|moves"
    r"|died|passed|eats|hates|loves|likes|ist|sind|war|hat|hatte|wird|will|kann|muss|darf|soll|wohnt|arbeitet|heißt"
    r"|heisst|kommt|geht|mag|isst|nimmt|fährt|zieht|bekommt|braucht|spielt|lebt|macht|starb)\b"
)


def read(files: Iterable[Path]) -> list[dict[str, Any]]:
    """Return the messages of files."""
    return [
        json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines() if line.strip()
    ]


def turns(messages: Iterable[dict[str, Any]]) -> list[ReaderInput]:
    """Return messages as the reader reads them."""
    return [ReaderInput(each.get("before") or "", each["text"], each.get("to") == "friend") for each in messages]


def edits(quote: str, fact: str) -> tuple[list[tuple[int, int]], list[int], list[str]]:
    """Return the words of a quote, what becomes of each in the fact, and what stands before each; "" for nothing."""
    found = list(WORD.finditer(quote))
    said = [each[0].casefold().replace("’", "'") for each in found]
    target = [each.replace("’", "'") for each in NAMED_WORD.findall(fact.strip().rstrip(".").strip())]
    as_said = {inflected(word): word for word in reversed(said)}
    keys = [word if (word := each.casefold()) in said else as_said.get(word, word) for each in target]
    becomes, before = [DELETE] * len(said), [""] * (len(said) + 1)
    for kind, a, z, b, y in difflib.SequenceMatcher(None, said, keys, autojunk=False).get_opcodes():
        if kind == "equal":
            for place in range(z - a):
                inflects = target[b + place].casefold() != said[a + place]
                becomes[a + place] = INFLECT if inflects else KEEP
        elif y > b:
            before[a] = " ".join(target[b:y])
    return [each.span() for each in found], becomes, before


def leans(fact: dict[str, Any], before: str) -> bool:
    """Return whether a fact has a word that stands before its quote, and not in it."""
    stems = {word[:STEM] for word in words(fact["quote"])}
    missing = {word[:STEM] for word in words(fact["fact"].replace("{NAME}", "")) if len(word) >= STEM} - stems
    return not missing.isdisjoint(word[:STEM] for word in words(before) if len(word) >= STEM)


def phrases(messages: Iterable[dict[str, Any]], count: int) -> list[str]:
    """Return the phrases that most often stand before a word in a fact."""
    counts: Counter[str] = Counter()
    for message in messages:
        for fact in message["facts"]:
            counts.update(filter(None, edits(fact["quote"], fact["fact"])[2]))
    return [phrase for phrase, times in counts.most_common(count) if times > 1]


class Examples:
    """Makes examples of messages."""

    def __init__(self, phrases: Sequence[str]) -> None:
        self.tokenizer = load_tokenizer()
        self.phrases = {phrase: number for number, phrase in enumerate(phrases, 1)}

    def make(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the tokens of a message and their labels."""
        text = message["text"]
        before = self.tokenizer.encode(message.get("before") or "", add_special_tokens=False).ids[-MAX_BEFORE_TOKENS:]
        before = [FRIEND_TOKEN, *before] if message.get("to") == "friend" else before
        read = self.tokenizer.encode(text, add_special_tokens=False)
        ids, places = read.ids[:MAX_WINDOW_TOKENS], read.offsets[:MAX_WINDOW_TOKENS]
        labels = {
            name: np.full(len(ids), UNKNOWN, dtype=np.int64)
            for name in (
                "begins",
                "value",
                "subject",
                "speaker",
                "ends",
                "holds",
                "leans",
                "type",
                "attribute",
                "edit",
                "phrase",
            )
        }
        labels["kept"] = np.zeros(len(ids), dtype=np.int64)
        for fact in message["facts"]:
            self._label(labels, text, places, fact, message.get("before") or "")
        return {
            "ids": [CLS, *before, SEP, *ids, SEP],
            "from": len(before) + 2,
            "labels": labels,
            "any": int(bool(message["facts"])),
            "places": places,
        }

    def _label(
        self, labels: dict[str, Any], text: str, places: Sequence[tuple[int, int]], fact: dict[str, Any], before: str
    ) -> None:
        start = text.find(fact["quote"])
        stop = start + len(fact["quote"])
        inside = [token for token, (a, z) in enumerate(places) if a < stop and z > start]
        if not inside:
            return
        labels["kept"][inside] = 1
        labels["begins"][inside] = 0
        labels["begins"][inside[0]] = 1
        labels["type"][inside] = TYPES.index(fact["type"])
        labels["attribute"][inside] = ATTRIBUTES.index(fact["attribute"])
        labels["ends"][inside] = int(fact["ends"])
        labels["holds"][inside] = int(fact.get("holds", UNKNOWN if fact["ends"] else 1))
        labels["leans"][inside] = int(leans(fact, f"{before} {text[:start]}"))
        of_speaker = not re.match(r"\{NAME\}(?:['’]s|s)\b", fact["fact"]) or fact["type"] == "instruction"
        labels["speaker"][inside] = int(of_speaker)
        labels["value"][inside] = 0
        if fact["value"]:
            self._mark(labels["value"], text, places, fact["value"], start, stop)
        if not of_speaker:
            labels["subject"][inside] = 0
            predicate = fact["fact"].partition(" ")[2]
            end = _VERB.search(predicate)
            subject = predicate[: end.start()].strip() if end else ""
            place = text.casefold().find(subject.casefold(), start, stop) if subject else -1
            if place >= 0:
                self._mark(labels["subject"], text, places, text[place : place + len(subject)], start, stop)
            elif not end:
                labels["subject"][inside] = UNKNOWN
        spans, becomes, added = edits(fact["quote"], fact["fact"])
        if any(each and each not in self.phrases for each in added) or added[-1]:
            return
        for (a, z), edit, phrase in zip(spans, becomes, added, strict=False):
            for token in inside:
                if places[token][0] < start + z and places[token][1] > start + a:
                    labels["edit"][token] = edit
                    labels["phrase"][token] = self.phrases.get(phrase, 0) if places[token][0] <= start + a else UNKNOWN

    @staticmethod
    def _mark(labels: Any, text: str, places: Sequence[tuple[int, int]], marked: str, start: int, stop: int) -> None:
        place = text.find(marked, start, stop)
        if place < 0:
            return
        for token, (a, z) in enumerate(places):
            if a < place + len(marked) and z > place:
                labels[token] = 1
