#!/usr/bin/env python3
"""Speed, side by side with what memstore stands on, in one run: read the ratios, not the absolute figures.

    benchmarks/speed.py                everything, about five minutes
    benchmarks/speed.py adds context   some of it

adds       single and batch adds a second, against bare psycopg doing the same writes; goal: at least 0.7
embedding  messages embedded and stored a second, against calling the encoder directly; goal: at least 0.9
context    p50 of context(), warm, 5,000 messages, against embedding the question and one kNN; goal: at most 2 times

The rounds of the two sides take turns, so that a machine that is busy is busy for both; medians are printed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
from pgvector.psycopg import register_vector

import memstore
from memstore import ids
from memstore.ingest.sentences import sentences
from memstore.store.statements import statements

ROUNDS = 7
START = datetime(2024, 1, 1, tzinfo=UTC)
QUESTIONS = [
    "What am I allergic to?",
    "When do we fly to Lisbon?",
    "What did Tom say about the job in Porto?",
    "Which dessert did I cook for my mother's birthday?",
    "How is the cat doing after the move?",
    "Where does my aunt Ulla live?",
    "What is the weather going to be in May?",
    "Which contract do I have to send before Friday?",
]


@cache
def sentences_of_the_sample() -> list[str]:
    """Give the sentences of the demo's history: natural text, so that words are as frequent as they are in life."""
    lines = files("memstore.cli").joinpath("sample.jsonl").read_text(encoding="utf-8").splitlines()
    said = [json.loads(line).get("content") or "" for line in lines]
    return [text[start:stop] for text in said for start, stop in sentences(text)]


def texts(count: int, seed: int) -> list[str]:
    """Give messages of one to six sentences."""
    draw = random.Random(seed)
    every = sentences_of_the_sample()
    return [f"{n}. " + " ".join(draw.choices(every, k=draw.choice([1, 1, 2, 3, 6]))) for n in range(count)]


def timed(work: Callable[[], object]) -> float:
    """Give the seconds that the work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def side_by_side(
    ours: Callable[[int], object], theirs: Callable[[int], object], rounds: int
) -> tuple[float, float, float]:
    """Run both in turn; give the medians of the seconds, and of the pairs' ratios theirs / ours."""
    pairs = [(timed(lambda n=n: ours(n)), timed(lambda n=n: theirs(n))) for n in range(rounds)]
    return median(a for a, _ in pairs), median(b for _, b in pairs), median(b / a for a, b in pairs)


def line(what: str, ours: str, theirs: str, ratio: float, goal: str, reached: bool) -> None:
    """Print a row of the table."""
    print(
        f"{what:<34} {ours:>16} {theirs:>16} {ratio:>7.2f}   {goal:<8} {'reached' if reached else 'MISSED'}", flush=True
    )


class Bare:
    """Psycopg, writing what memstore writes, without checking, counting or giving anything back."""

    def __init__(self, url: str, user: str) -> None:
        self.connection = psycopg.connect(url, prepare_threshold=None)
        self.user, self.conversation = ids.user_id(user), ids.conversation_id(ids.user_id(user), "bare")
        self.sql = statements("messages")
        self.scope = statements("database")["scope"]

    def add(self, batch: list[str]) -> None:
        """Store messages in one transaction."""
        with self.connection.transaction(), self.connection.cursor() as cursor:
            psycopg.ClientCursor(self.connection).execute(self.scope, {"user_id": str(self.user)})
            values: dict[str, Any] = {"user_id": self.user, "id": self.conversation, "count": len(batch)}
            row = cursor.execute(self.sql["take_numbers"], values).fetchone()
            assert row is not None
            first = row[0] - len(batch) + 1
            rows = [self.row(seq, text) for seq, text in enumerate(batch, first)]
            cursor.executemany(self.sql["add_message"], rows)
            values = {"user_id": self.user, "conversation_id": self.conversation, "last_seq": row[0]}
            cursor.execute(self.sql["raise_watermark"], values)

    def row(self, seq: int, text: str) -> dict[str, Any]:
        """Give the columns of a message."""
        empty = dict.fromkeys(("name", "parts", "tool_calls", "tool_call_id", "external_id"))
        return empty | {
            "user_id": self.user,
            "conversation_id": self.conversation,
            "seq": seq,
            "id": ids.uuid7(),
            "role": "user",
            "text": text,
            "tokens": 1,
            "counter": "none",
            "tags": [],
            "meta": psycopg.types.json.Jsonb({}),
            "occurred_at": START,
            "recorded_at": START,
        }


def adds(store: memstore.MemoryStore, rounds: int) -> None:
    """Compare single and batch adds."""
    bare = Bare(store.url, "bare")
    for user, name in (("bare", "bare"), ("ours", "c")):
        store.user(user).conversation(name).add("user", "warm")
    ours = store.user("ours").conversation("c")
    single = texts(300, 1)
    mine, theirs, ratio = side_by_side(
        lambda n: [ours.add("user", text) for text in single],
        lambda n: [bare.add([text]) for text in single],
        rounds,
    )
    line("single adds", f"{300 / mine:,.0f}/s", f"{300 / theirs:,.0f}/s", ratio, ">= 0.7", ratio >= 0.7)
    batch = texts(2000, 2)
    given = [{"role": "user", "content": text} for text in batch]
    mine, theirs, ratio = side_by_side(lambda n: ours.add_many(given), lambda n: bare.add(batch), rounds)
    line("adds in batches of 2,000", f"{2000 / mine:,.0f}/s", f"{2000 / theirs:,.0f}/s", ratio, ">= 0.7", ratio >= 0.7)


def embedding(store: memstore.MemoryStore, rounds: int) -> None:
    """Compare the embed deriver, from rows to rows, with the encoder alone on the same texts."""
    from memstore._sync.ingest.derive import Part, derive
    from memstore.ingest.resources import Resources

    embedder = store.embedder
    assert embedder is not None
    resources = Resources(store.counter, embedder, store.settings)
    given = [texts(512, seed) for seed in range(rounds)]

    def ours(n: int) -> None:
        report = derive(store._database, resources, Part(ids.user_id(f"embed-{n}"), derivers=("embed",)))
        assert report.units >= 512

    for n, batch in enumerate(given):
        store.user(f"embed-{n}").conversation("c").add_many([{"role": "user", "content": text} for text in batch])
    embedder.embed_documents(given[0][:64])
    mine, theirs, ratio = side_by_side(
        ours, lambda n: embedder.embed_documents([f"user: {text}" for text in given[n]]), rounds
    )
    line("messages embedded", f"{512 / mine:,.0f}/s", f"{512 / theirs:,.0f}/s", ratio, ">= 0.9", ratio >= 0.9)


def context(store: memstore.MemoryStore, rounds: int) -> None:
    """Compare context() on 5,000 messages with embedding its question and one kNN statement."""
    scope = store.user("long").conversation("life")
    if scope.info() is None:  # a kept store has them
        given = [
            {"role": "user" if n % 2 == 0 else "assistant", "content": text, "occurred_at": START + timedelta(hours=n)}
            for n, text in enumerate(texts(5000, 3))
        ]
        scope.add_many(given)
        store.derive(user="long")
    questions = QUESTIONS
    embedder = store.embedder
    assert embedder is not None
    knn = statements("items")["nearest"]
    model = ids.model_id(embedder.name, embedder.dimensions)
    with psycopg.connect(store.url, autocommit=True, prepare_threshold=None) as connection:
        register_vector(connection)

        def least(question: str) -> None:
            query = embedder.embed_query(question)
            values = {"query": query, "user_id": scope.user.id, "model_id": model, "limit": 20}
            assert len(connection.execute(knn, values).fetchall()) == 20

        for question in questions:
            scope.context(question, budget=2000)
            least(question)
        pairs = [
            (timed(lambda q=q: scope.context(q, budget=2000)), timed(lambda q=q: least(q)))
            for _ in range(3 * rounds)
            for q in questions
        ]
    mine, theirs = median(a for a, _ in pairs), median(b for _, b in pairs)
    ratio = median(a / b for a, b in pairs)
    line(
        "context() of 5,000 messages, p50",
        f"{1000 * mine:.1f} ms",
        f"{1000 * theirs:.1f} ms",
        ratio,
        "<= 2",
        ratio <= 2,
    )


PARTS: dict[str, Callable[[memstore.MemoryStore, int], None]] = {
    "adds": adds,
    "embedding": embedding,
    "context": context,
}


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)}; all by default")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each side takes its turn")
    parser.add_argument("--store", type=Path, help="a folder in which the store is kept for the next run")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown: {', '.join(unknown)}; choose from {', '.join(PARTS)}")
    print(f"{'':<34} {'memstore':>16} {'beside it':>16} {'ratio':>7}   goal")
    with (
        tempfile.TemporaryDirectory(prefix="memstore-bench-") as folder,
        memstore.open(f"embedded:{options.store or Path(folder) / 'store'}") as store,
    ):
        for name in options.parts or PARTS:
            PARTS[name](store, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
