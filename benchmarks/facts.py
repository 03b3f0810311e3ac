#!/usr/bin/env python3
"""Facts by the reader against LoCoMo's gold facts: how many tokens they take, and how many gold facts they say.

    benchmarks/facts.py [--data FOLDER] [--least N …] [--json FILE]

| column | in percent, but for tokens and facts |
|---|---|
| tokens | of all extracted facts, times those of all gold facts (o200k_base) |
| source | gold facts with an extracted fact from the same message |
| doubles | facts that another one of the same user before them resembles (cosine ≥ 0.9) |
| @500, @1000 | evidence recall of a context of facts alone, by cosine and BM25, all questions but adversarial ones |

Above stand the floors: what the speakers said, taken over as "Speaker: sentence". Below is a row for each least
probability, and for the one that ships a row for each conversation. No store is
needed, and the same data gives the same figures. The last table says how fast the reader reads. How near the words of a
fact are to those of a gold fact is not measured: gold facts are written in the third person, which rewards a form.

The data is not part of memstore: LoCoMo (ACL 2024, CC BY-NC 4.0) as memstore-jsonl, `locomo-dev.jsonl`, its gold facts,
`locomo-dev-gold.jsonl` (kind, user, text, sources), and its questions, `locomo-dev-questions.jsonl`. Four minutes on
two cores, nearly all of it embedding.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from report import Cell, Table, reported

from memstore.derive.facts.drafts import LOOKBACK_MESSAGES
from memstore.derive.facts.note_facts import MIN_NOTE_CONFIDENCE, Utterance, extract, turn_of
from memstore.derive.reader.model import load as load_reader
from memstore.language.sentences import sentences
from memstore.providers import Embedder, TokenCounter, Vectors, load_counter, load_embedder
from memstore.search.ranking import WEIGHTS
from memstore.search.signals import BM25_B, idf, saturate
from memstore.store.tokenize import terms

DOUBLE = 0.9
BUDGETS = (500, 1000)
SWEEP = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
PHOTO = re.compile(r"\[shares: [^\]]*\]")
FIRST_PERSON = re.compile(r"\b(?:i|i'm|i've|i'll|i'd|my|me|we|we're|our|us)\b", re.IGNORECASE)
WORD = re.compile(r"\w[\w']*")


class Message(NamedTuple):
    """A message of the data."""

    user: str
    id: str
    said: Utterance


class Told(NamedTuple):
    """A fact, gold or found, and the messages that it is from."""

    user: str
    sources: tuple[str, ...]
    text: str


class Figures(NamedTuple):
    """A row of the table."""

    tokens: float
    source: float
    count: int


class Measure:
    """The gold facts and questions, and every vector and count that was once made."""

    def __init__(self, messages: list[Message], gold: list[Told], questions: list[dict[str, Any]]) -> None:
        embedder = load_embedder("onnx:all-MiniLM-L6-v2")
        assert embedder is not None
        self.embedder: Embedder = embedder
        self.counter: TokenCounter = load_counter("tiktoken:o200k_base")
        self.known: dict[str, Vectors] = {}
        self.counts: dict[str, int] = {}
        self.when = {(one.user, one.id): one.said.occurred_at for one in messages}
        self.gold, self.questions = gold, questions
        self.speakers = defaultdict(set)
        for one in messages:
            self.speakers[one.user].add(one.said.speaker or "")

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors, shape (texts, dimensions); a text is embedded once."""
        new = sorted({text for text in texts if text not in self.known}, key=lambda text: (len(text), text))
        for start in range(0, len(new), 256):
            batch = new[start : start + 256]
            self.known.update(zip(batch, self.embedder.embed_documents(batch), strict=True))
        return np.array([self.known[text] for text in texts], dtype=np.float32).reshape(len(texts), -1)

    def tokens(self, text: str) -> int:
        """Return the tokens of a text, counted once."""
        if text not in self.counts:
            self.counts[text] = self.counter.count(text)
        return self.counts[text]

    def against_gold(self, found: list[Told], user: str | None = None) -> Figures:
        """Compare with the gold facts, of all users or one."""
        found = [fact for fact in found if user in (None, fact.user)]
        gold = [fact for fact in self.gold if user in (None, fact.user)]
        read = {(fact.user, fact.sources[0]) for fact in found}
        told = [any((fact.user, source) in read for source in fact.sources) for fact in gold]
        ours, theirs = (sum(self.tokens(fact.text) for fact in facts) for facts in (found, gold))
        return Figures(ours / theirs, sum(told) / len(told), len(found))

    def doubles(self, found: list[Told]) -> float:
        """Return the share of facts that are near to one before them."""
        near = 0
        for user in self.speakers:
            vectors = self.vectors([fact.text for fact in found if fact.user == user])
            near += int((np.tril(vectors @ vectors.T, -1) >= DOUBLE).any(axis=1).sum())
        return near / max(1, len(found))

    def evidence(self, found: list[Told]) -> list[float]:
        """Return the mean share of a question's evidence among the facts that fit each budget, the best first."""
        shares: list[list[float]] = []
        for user in self.speakers:
            facts = [fact for fact in found if fact.user == user]
            if facts:
                shares += self._of_user(user, facts)
        return [float(np.mean([share[place] for share in shares])) for place in range(len(BUDGETS))]

    def _of_user(self, user: str, facts: list[Told]) -> list[list[float]]:
        vectors, stems = self.vectors([fact.text for fact in facts]), [terms(fact.text) for fact in facts]
        lines = [f"[{self.when[user, fact.sources[0]]:%d %B %Y}] {fact.text}\n" for fact in facts]
        costs = [self.tokens(line) for line in lines]
        shares = []
        for question in (one for one in self.questions if one["user"] == user):
            scores = vectors @ self.vectors([question["question"]])[0] * WEIGHTS["semantic"]
            scores += WEIGHTS["lexical"] * _lexical(question["question"], stems)
            named = [name for name in self.speakers[user] if re.search(rf"\b{name}\b", question["question"])]
            if len(named) == 1:
                scores += WEIGHTS["speaker"] * np.array([fact.text.startswith(named[0]) for fact in facts])
            order = np.argsort(-np.round(scores, 6), kind="stable")
            evidence = set(question["evidence"])
            shares.append([_packed(facts, costs, order, budget, evidence) for budget in BUDGETS])
        return shares


def _lexical(question: str, stems: list[Counter[str]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    lengths = np.array([sum(each.values()) for each in stems], dtype=np.float64)
    scores = np.zeros(len(stems))
    for term in terms(question):
        counts = np.array([each[term] for each in stems], dtype=np.float64)
        weight = idf(int(np.count_nonzero(counts)), len(stems))
        scores += weight * saturate(counts, lengths, max(lengths.mean(), 1e-9), BM25_B)
    return scores / max(scores.max(initial=0.0), 1e-9)


def _packed(facts: list[Told], costs: list[int], order: Iterable[int], budget: int, evidence: set[str]) -> float:
    found: set[str] = set()
    for place in order:
        budget -= costs[place]
        if budget < 0:
            break
        found.update(facts[place].sources)
    return len(found & evidence) / len(evidence)


def in_turn(messages: list[Message]) -> Iterator[tuple[Message, list[Utterance]]]:
    """Return each message with those before it that may be needed to understand it."""
    before: list[Utterance] = []
    user = ""
    for one in messages:
        before, user = (before if one.user == user else []), one.user
        yield one, before[-LOOKBACK_MESSAGES:]
        before.append(one.said)


def extracted(messages: list[Message], least: float = MIN_NOTE_CONFIDENCE) -> list[Told]:
    """Return what the reader finds, from the probability `least` on or as it ships."""
    turns = list(in_turn(messages))
    notes = load_reader().read([turn_of(one.said, before) for one, before in turns])
    return [
        Told(one.user, (one.id,), draft.fact.text)
        for (one, before), noted in zip(turns, notes, strict=True)
        for draft in extract(one.said, noted, before, least=least)
    ]


def derived(messages: list[Message]) -> tuple[int, float]:
    """Return how many facts `derive` reads, and in how many seconds of a processor."""
    begun = process_time()
    return len(extracted(messages)), process_time() - begun


def _long(least: int) -> Callable[[str], bool]:
    return lambda sentence: len(WORD.findall(sentence)) >= least


def _states(sentence: str) -> bool:
    return _long(6)(sentence) and not sentence.rstrip().endswith("?")


def _of_speaker(sentence: str) -> bool:
    return _states(sentence) and bool(FIRST_PERSON.search(sentence))


def said_as_it_was(messages: list[Message], kept: Callable[[str], bool], *, longest: bool = False) -> list[Told]:
    """Return the sentences of messages that are `kept`, without photos; with `longest` only one of each message."""
    found = []
    for one in messages:
        text = PHOTO.sub("", one.said.text).strip()
        chosen = [text[start:stop] for start, stop in sentences(text) if kept(text[start:stop])]
        if longest:
            chosen = sorted(chosen, key=len, reverse=True)[:1]
        found += [Told(one.user, (one.id,), f"{one.said.speaker}: {sentence}") for sentence in chosen]
    return found


def floors(messages: list[Message]) -> dict[str, list[Told]]:
    """Return what any extraction must beat."""
    return {
        "whole messages": [Told(one.user, (one.id,), f"{one.said.speaker}: {one.said.text}") for one in messages],
        "every sentence of 4 words or more": said_as_it_was(messages, _long(4)),
        "no questions, 6 words or more": said_as_it_was(messages, _states),
        "first person, no question, 6 words": said_as_it_was(messages, _of_speaker),
        "the longest such of a message": said_as_it_was(messages, _of_speaker, longest=True),
    }


def row(name: str, figures: Figures, rest: Sequence[float] = ()) -> list[Cell]:
    """Return a row of a table."""
    source = round(100 * figures.source, 1)
    return [name, round(figures.tokens, 2), source, figures.count, *(round(100 * share, 1) for share in rest)]


def tables(measure: Measure, messages: list[Message], sweep: Sequence[float]) -> Iterator[Table]:
    """Return the floors, the curve, the chosen point by conversation, and what `derive` takes."""
    count, seconds = derived(messages)
    rows = {"gold facts": measure.gold, **floors(messages)}
    rows |= {f"reader from {least:.3g}": extracted(messages, least) for least in sweep}
    columns = ("", "tokens", "source", "facts")
    yield Table(
        "facts",
        f"Of {len(measure.gold):,} gold facts, in percent; {len(measure.questions)} questions",
        (*columns, "doubles", *(f"@{budget}" for budget in BUDGETS)),
        [
            row(name, measure.against_gold(found), [measure.doubles(found), *measure.evidence(found)])
            for name, found in rows.items()
        ],
    )
    chosen = extracted(messages)
    by_user = [row(user, measure.against_gold(chosen, user)) for user in sorted(measure.speakers)]
    yield Table("conversations", "As it ships, by conversation", columns, by_user)
    yield Table(
        "derive", "What `derive` reads", ("", "facts", "seconds"), [["one processor", count, round(seconds, 1)]]
    )


def main() -> int:
    """Read the data, print the tables, write them."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--least", type=float, nargs="+", default=SWEEP)
    parser.add_argument("--json", type=Path, help="write the figures")
    options = parser.parse_args()
    files = [options.data / f"locomo-dev{part}.jsonl" for part in ("", "-gold", "-questions")]
    if not all(file.is_file() for file in files):
        print(f"skipped: {options.data} has not all of {', '.join(file.name for file in files)}; name it with --data")
        return 0
    history, gold, asking = ([json.loads(line) for line in file.read_text("utf-8").splitlines()] for file in files)
    messages = [
        Message(
            one["user"],
            one["external_id"],
            Utterance(one["content"], one["role"], one["name"], datetime.fromisoformat(one["occurred_at"])),
        )
        for one in history
    ]
    facts = [Told(one["user"], tuple(one["sources"]), one["text"]) for one in gold if one["kind"] == "fact"]
    questions = [one for one in asking if one["evidence"] and one["category"] != "adversarial"]
    reported(tables(Measure(messages, facts, questions), messages, options.least), options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
