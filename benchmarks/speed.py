#!/usr/bin/env python3
"""Speed, side by side with what memstore stands on, in one run: read the ratios, not the absolute figures.

    benchmarks/speed.py                everything, about fifteen minutes
    benchmarks/speed.py adds context   some of it

adds       single and batch adds a second, against bare psycopg doing the same writes; goal: at least 0.7
embedding  messages embedded and stored a second, against the embedder alone on the same texts; goal: at least 0.85
context    context(), warm, of users with 1,000, 10,000 and 100,000 messages, against embedding the question and one
           statement for each tier (kNN, newest messages, outlines of summaries, standing facts), which tokenizes
           nothing; p50 and p99; goal: at 10,000 a median of at most 1.5 times. `--messages` chooses the sizes. Loaded
           data is kept out of garbage collection for both
rls        recall() and context() of a user with 20,000 chunks among 20 others, confined to the app role and policies,
           against the same as a superuser whom no policy holds; goal: at most 1.15 times. Held in the process, searched
           in the database (postings and an index), and read anew; with an embedder without a model, which hides nothing

The rounds of the two sides take turns, so that a machine that is busy is busy for both; medians are printed.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import psycopg
from pgvector.psycopg import register_vector
from report import Cell, Table, command_line, written

import memstore
from memstore import ConversationScope, ids
from memstore.language.sentences import sentences
from memstore.providers import Embedder, Vectors
from memstore.store.index_cache import IndexCache
from memstore.store.sql import statements
from memstore.testing import HashingEmbedder

T = TypeVar("T")

ROUNDS = 7
ROWS: list[list[Cell]] = []  # of the table so far
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
    """Return the sentences of the demo's history: natural text, so that words are as frequent as they are in life."""
    lines = files("memstore.cli").joinpath("sample.jsonl").read_text(encoding="utf-8").splitlines()
    said = [json.loads(line).get("content") or "" for line in lines]
    return [text[start:stop] for text in said for start, stop in sentences(text)]


def texts(count: int, seed: int) -> list[str]:
    """Return messages of one to six sentences."""
    draw = random.Random(seed)
    every = sentences_of_the_sample()
    return [f"{n}. " + " ".join(draw.choices(every, k=draw.choice([1, 1, 2, 3, 6]))) for n in range(count)]


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that the work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def each(work: Callable[[T], object], given: Iterable[T]) -> None:
    """Do the work for one after the other."""
    for one in given:
        work(one)


def side_by_side(
    ours: Callable[[int], object], theirs: Callable[[int], object], rounds: int
) -> tuple[float, float, float]:
    """Run both in turn; give the medians of the seconds, and of the pairs' ratios theirs / ours."""
    pairs = [(timed(partial(ours, n)), timed(partial(theirs, n))) for n in range(rounds)]
    return median(a for a, _ in pairs), median(b for _, b in pairs), median(b / a for a, b in pairs)


def line(what: str, ours: str, theirs: str, ratio: float, goal: str, reached: bool) -> None:
    """Print a row of the table."""
    judged = ("reached" if reached else "MISSED") if goal else ""
    ROWS.append([what, ours, theirs, round(ratio, 2), goal, judged])
    print(f"{what:<38} {ours:>16} {theirs:>16} {ratio:>7.2f}   {goal:<8} {judged}", flush=True)


class Bare:
    """Psycopg, writing what memstore writes, without checking, counting or giving anything back."""

    def __init__(self, url: str, user: str) -> None:
        self.connection = psycopg.connect(url, prepare_threshold=None)
        self.user, self.conversation = ids.user_id(user), ids.conversation_id(ids.user_id(user), "bare")
        self.sql = statements("messages")
        known = statements("database")
        self.scope = ";\n".join(known[name] for name in ("role", "path", "scope"))

    def add(self, batch: list[str]) -> None:
        """Store messages in one transaction."""
        with self.connection.transaction(), self.connection.cursor() as cursor:
            confined = {"role": "memstore_app", "schema": "public", "vectors": "public", "user_id": str(self.user)}
            psycopg.ClientCursor(self.connection).execute(self.scope, confined)
            values: dict[str, Any] = {"user_id": self.user, "id": self.conversation, "count": len(batch)}
            row = cursor.execute(self.sql["take_numbers"], values).fetchone()
            assert row is not None
            first = row[0] - len(batch) + 1
            rows = [self.row(seq, text) for seq, text in enumerate(batch, first)]
            cursor.executemany(self.sql["add_message"], rows)
            values = {"user_id": self.user, "ids": [self.conversation], "last_seqs": [row[0]]}
            values["said_at"] = [rows[0]["occurred_at"]]
            cursor.execute(self.sql["raise_watermarks"], values)

    def row(self, seq: int, text: str) -> dict[str, Any]:
        """Return the columns of a message."""
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
        lambda n: each(partial(ours.add, "user"), single),
        lambda n: each(bare.add, [[text] for text in single]),
        rounds,
    )
    line("single adds", f"{300 / mine:,.0f}/s", f"{300 / theirs:,.0f}/s", ratio, ">= 0.7", ratio >= 0.7)
    batch = texts(2000, 2)
    given = [{"role": "user", "content": text} for text in batch]
    mine, theirs, ratio = side_by_side(lambda n: ours.add_many(given), lambda n: bare.add(batch), rounds)
    line("adds in batches of 2,000", f"{2000 / mine:,.0f}/s", f"{2000 / theirs:,.0f}/s", ratio, ">= 0.7", ratio >= 0.7)


def embedding(store: memstore.MemoryStore, rounds: int) -> None:
    """Compare the embed deriver, from rows to rows, with the embedder alone on the same texts."""
    from memstore._sync.derive.pipeline import DeriveScope, derive
    from memstore.derive.dependencies import Dependencies

    embedder = store.embedder
    assert embedder is not None
    resources = Dependencies(store.counter, embedder, store.settings)
    given = [texts(512, seed) for seed in range(rounds)]

    def ours(n: int) -> None:
        report = derive(store._database, resources, DeriveScope(ids.user_id(f"embed-{n}"), derivers=("chunks",)))
        assert report.chunks >= 512

    for n, batch in enumerate(given):
        store.user(f"embed-{n}").conversation("c").add_many([{"role": "user", "content": text} for text in batch])
    embedder.embed_documents(given[0][:64])
    taken: list[tuple[float, float]] = []
    for n, batch in enumerate(given):
        said = [f"user: {text}" for text in batch]
        mine, alone = map(timed, (partial(ours, n), partial(embedder.embed_documents, said)))
        taken.append((mine, alone))
    mine, alone = (512 / median(seconds) for seconds in zip(*taken, strict=True))
    ratio = median(alone / mine for mine, alone in taken)
    line("messages embedded", f"{mine:,.0f}/s", f"{alone:,.0f}/s", ratio, ">= 0.85", ratio >= 0.85)


class Filling:
    """The store's embedder for questions, and for documents vectors without a model: their meaning is not measured."""

    def __init__(self, real: Embedder) -> None:
        self._real, self._hashing = real, HashingEmbedder(real.dimensions)
        self.name, self.dimensions, self.max_tokens = real.name, real.dimensions, real.max_tokens
        self.count, self.embed_query = real.count, real.embed_query

    def embed_documents(self, given: Sequence[str]) -> Vectors:
        """Return vectors of the real ones' shape."""
        return self._hashing.embed_documents(given)


def life(store: memstore.MemoryStore, count: int) -> ConversationScope:
    """Return a conversation of so many messages; of a kept store, the one that is there.

    The longest has no facts: finding them takes half an hour and changes little.
    """
    from memstore._sync.derive.pipeline import DeriveScope, derive
    from memstore.derive.dependencies import Dependencies

    scope = store.user(f"long-{count}").conversation("life")
    if scope.info() is not None:
        return scope
    given = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": text, "occurred_at": START + timedelta(hours=n)}
        for n, text in enumerate(texts(count, 3))
    ]
    for start in range(0, count, 2000):
        scope.add_many(given[start : start + 2000])
    assert store.embedder is not None
    resources = Dependencies(store.counter, Filling(store.embedder), store.settings)
    derivers = ("chunks", "summaries", "facts") if count <= 10_000 else ("chunks", "summaries")
    for deriver in derivers:
        derive(store._database, resources, DeriveScope(scope.user.id, derivers=(deriver,)))
    return scope


def context(store: memstore.MemoryStore, rounds: int, sizes: Sequence[int] = (1000, 10_000, 100_000)) -> None:
    """Compare context() with embedding its question and one statement for each tier."""
    embedder = store.embedder
    assert embedder is not None
    model = ids.model_id(embedder.name, embedder.dimensions)
    with psycopg.connect(store.url, autocommit=True, prepare_threshold=None) as connection:
        register_vector(connection)
        for size in sizes:
            scope = life(store, size)
            values: dict[str, Any] = {
                "user_id": scope.user.id,
                "model_id": model,
                "conversation_id": scope.id,
                "as_of": None,
            }
            values |= {"before": 2**62, "types": ["constraint", "procedure", "identity"]}
            values |= {"role": None, "first": ["allergy", "answer_style"]}
            tiers = [
                (statements("chunks")["nearest"], 20),
                (statements("messages")["newest_messages"], 60),
                (statements("summaries")["outlines"], 0),
                (statements("facts")["standing_facts"], 8),
            ]

            def least(question: str, values: dict[str, Any] = values, tiers: Sequence[Any] = tiers) -> None:
                query = embedder.embed_query(question)
                for statement, limit in tiers:
                    connection.execute(statement, values | {"query": query, "limit": limit}).fetchall()

            compare(scope, least, size, rounds)


def compare(scope: ConversationScope, least: Callable[[str], None], size: int, rounds: int) -> None:
    """Take turns with the floor, and print the medians and the slowest of a hundred."""
    for question in QUESTIONS:
        scope.context(question, budget=2000)
        least(question)
    gc.collect()
    gc.freeze()
    pairs = [
        (timed(partial(scope.context, q, budget=2000)), timed(partial(least, q)))
        for _ in range(2 * rounds)
        for q in QUESTIONS
    ]
    mine, theirs = sorted(a for a, _ in pairs), sorted(b for _, b in pairs)
    for name, place in (("p50", len(pairs) // 2), ("p99", int(len(pairs) * 0.99))):
        ratio = median(a / b for a, b in pairs) if name == "p50" else mine[place] / theirs[place]
        judged = name == "p50" and size == 10_000
        line(
            f"context() of {size:,} messages, {name}",
            f"{1000 * mine[place]:.1f} ms",
            f"{1000 * theirs[place]:.1f} ms",
            ratio,
            "<= 1.5" if judged else "",
            not judged or ratio <= 1.5,
        )


UNITS, NEIGHBOURS = 20_000, 20


def rls(store: memstore.MemoryStore, rounds: int) -> None:
    """Compare what is confined by row-level security with the same where nothing confines it."""
    hashing = {"embedder": "hashing:384"}
    with (
        memstore.open(store.url, settings=hashing) as held,
        memstore.open(store.url, settings=hashing | {"max_chunks_in_memory": 1000}) as searched,
    ):
        scope = crowd(held)
        chunks = held.stats(user=scope.user.name)["chunks"]
        held.build_indexes()
        searched.build_indexes()
        for where, opened in (("held", held), ("searched", searched)):
            same = opened.user(scope.user.name)
            talk = same.conversation(scope.name)
            with_and_without(opened, f"recall, {chunks:,} chunks, {where}", same.recall, rounds)
            with_and_without(opened, f"context, {chunks:,} chunks, {where}", partial(talk.context, budget=2000), rounds)
        anew = partial(read_anew, held, scope.user.recall)
        with_and_without(held, f"recall, {chunks:,} chunks, read anew", anew, max(1, rounds // 3))


def crowd(store: memstore.MemoryStore) -> ConversationScope:
    """Return a conversation of a user with 20,000 chunks, who has neighbours; from a kept store the present one."""
    from memstore._sync.derive.pipeline import DeriveScope, derive

    scope = store.user("isolated").conversation("life")
    resources = store._runtime.load_dependencies()
    people = [(f"neighbour-{n}", UNITS // NEIGHBOURS) for n in range(NEIGHBOURS)] + [("isolated", UNITS)]
    for seed, (name, count) in enumerate(people):
        user = store.user(name)
        if user.conversation("life").info() is not None:
            continue
        for start in range(0, int(count / 1.04), 2000):  # a message has a little more than a chunk
            said = texts(min(2000, int(count / 1.04) - start), seed * 100 + start)
            user.conversation("life").add_many([{"role": "user", "content": text} for text in said])
        derive(store._database, resources, DeriveScope(user.id, derivers=("chunks", "summaries")))
        for text in texts(50, seed):
            user.add_fact(text, type="identity")
    return scope


def read_anew(store: memstore.MemoryStore, ask: Callable[[str], object], question: str) -> None:
    """Ask a process that holds nothing yet."""
    store._database.cache = IndexCache(store._database.max_chunks, 512 * 2**20)
    ask(question)


def with_and_without(store: memstore.MemoryStore, what: str, ask: Callable[[str], object], rounds: int) -> None:
    """Take turns with and without policies, and print the medians."""
    database, confined = store._database, store._database.capabilities
    assert confined.ignores_policies, "the login is a superuser's, who is held by nothing but the role"

    def asked(question: str, role: str | None) -> float:
        database.capabilities = replace(confined, role=role)
        return timed(partial(ask, question))

    for question in QUESTIONS:
        asked(question, confined.role)
        asked(question, None)
    order = [(q, n % 2 == 0) for n in range(2 * rounds) for q in QUESTIONS]
    pairs = []
    for question, first in order:
        sides = [confined.role, None] if first else [None, confined.role]
        taken = {role: asked(question, role) for role in sides}
        pairs.append((taken[confined.role], taken[None]))
    database.capabilities = confined
    mine, theirs = median(a for a, _ in pairs), median(b for _, b in pairs)
    line(what, f"{1000 * mine:.2f} ms", f"{1000 * theirs:.2f} ms", mine / theirs, "<= 1.15", mine / theirs <= 1.15)


PARTS: dict[str, Callable[[memstore.MemoryStore, int], None]] = {
    "adds": adds,
    "embedding": embedding,
    "context": context,
    "rls": rls,
}


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)}; all by default")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each side takes its turn")
    parser.add_argument("--store", type=Path, help="a folder in which the store is kept for the next run")
    parser.add_argument(
        "--messages", type=int, nargs="+", default=[1000, 10_000, 100_000], help="of a user, for context"
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown: {', '.join(unknown)}; choose from {', '.join(PARTS)}")
    print(f"{'':<38} {'memstore':>16} {'beside it':>16} {'ratio':>7}   goal")
    with (
        tempfile.TemporaryDirectory(prefix="memstore-bench-") as folder,
        memstore.open(f"embedded:{options.store or Path(folder) / 'store'}") as store,
    ):
        for name in options.parts or PARTS:
            if name == "context":
                context(store, options.rounds, options.messages)
            else:
                PARTS[name](store, options.rounds)
    if options.json:
        title = "In turns, medians; the ratio is of the work done in the same time, or of the time for the same work"
        table = Table("speed", title, ("", "memstore", "beside it", "ratio", "goal", ""), ROWS)
        written(options.json, command_line(sys.argv), [table])
    return 0


if __name__ == "__main__":
    sys.exit(main())
