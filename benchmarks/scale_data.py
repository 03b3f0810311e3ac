"""Made-up users of any size for `run.py scale`: vectors in clusters, words as frequent as in life, loaded by COPY.

Nothing here means anything. It resembles real memories in the properties on which speed and approximate search depend:
how vectors lie, how frequencies of words fall (Zipf and Mandelbrot), how long messages are, and users mixed in the
tables. One
thing is harder than in life: topics are at random, so a graph of many vectors cannot be walked from one to another, and
an index that tries few candidates finds all or nothing of a topic (NOTES.md has what that makes of it).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector.psycopg import register_vector

from memstore import ids
from memstore.store.tokenize import hash_term

DIMENSIONS, WORDS, BATCH, CONVERSATION = 384, 30_000, 256, 500
MODEL = "made-up"
START = datetime(2020, 1, 1, tzinfo=UTC)
TABLES = {
    "messages": "user_id, conversation_id, seq, id, role, text, tokens, counter, occurred_at",
    "item_text": "user_id, item_id, chunk_index, tier, conversation_id, seq, role, speaker, start, stop, length, "
    "terms, frequencies, occurred_at, number",
    "item_vectors": "user_id, item_id, chunk_index, model_id, embedding",
}
TYPES = {
    "messages": "uuid uuid int8 uuid text text int8 text timestamptz",
    "item_text": "uuid uuid int4 text uuid int8 text text int8 int8 int8 int8[] int2[] timestamptz int8",
    "item_vectors": "uuid uuid int4 uuid vector",
}
Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Made:
    """A user of so many messages, each of which is a chunk."""

    name: str
    chunks: int
    seed: int = 0

    @cached_property
    def id(self) -> UUID:
        """The user's id."""
        return ids.user_id(self.name)

    @cached_property
    def centres(self) -> Vectors:
        """The topics of the messages: one for every 200 of them, and at least 20."""
        drawn = np.random.default_rng([self.seed, 1]).normal(size=(max(20, self.chunks // 200), DIMENSIONS))
        return _chunk(drawn)

    @cached_property
    def hashes(self) -> NDArray[np.int64]:
        """The hash of each word."""
        return np.array([hash_term(f"w{n}", self.id) for n in range(WORDS)], dtype=np.int64)

    def vectors(self, batch: int) -> Vectors:
        """Return the vectors of a batch: cosine of about 0.55 with others of their topic, 0 with all others."""
        draw = np.random.default_rng([self.seed, 2, batch])
        about = self.centres[draw.integers(len(self.centres), size=BATCH)]
        return _chunk(about + 0.9 * _chunk(draw.normal(size=about.shape)))

    def words(self, batch: int) -> list[NDArray[np.int64]]:
        """Return the words of each message of a batch."""
        draw = np.random.default_rng([self.seed, 3, batch])
        lengths = np.minimum(draw.geometric(1 / 14, size=BATCH) + 2, 80)
        return np.split(draw.choice(WORDS, size=lengths.sum(), p=FREQUENCIES), np.cumsum(lengths)[:-1])

    def question(self, number: int) -> tuple[str, Vectors]:
        """Return the words of a question about a message, half of them its own, and a vector near to its."""
        draw = np.random.default_rng([self.seed, 4, number])
        batch, place = divmod(int(draw.integers(self.chunks)), BATCH)
        own = self.words(batch)[place]
        words = [*draw.choice(own, size=3), *draw.choice(WORDS, size=3, p=FREQUENCIES)]
        near = self.vectors(batch)[place] + 0.9 * _chunk(draw.normal(size=DIMENSIONS))
        return " ".join(f"w{word}" for word in words), _chunk(near)


def _chunk(vectors: NDArray[np.floating[Any]]) -> Vectors:
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


# No stop words among them: the most frequent word stands in one message of ten, half of all words in less than one of
# a thousand.
FREQUENCIES = 1 / (np.arange(WORDS) + 20.0)
FREQUENCIES /= FREQUENCIES.sum()


def load(url: str, users: Iterable[Made]) -> None:
    """Store users by COPY, as whom row-level security does not hold; their batches are mixed as life mixes them."""
    users = list(users)
    batches = [(user, batch) for user in users for batch in range(-(-user.chunks // BATCH))]
    order = np.random.default_rng(0).permutation(len(batches))
    place = {id(user): 0 for user in users}
    with psycopg.connect(url) as connection:
        register_vector(connection)
        for user in users:
            _begun(connection, user)
        connection.commit()
        for start in range(0, len(order), 200):
            some = []
            for n in order[start : start + 200]:
                user = batches[n][0]
                some.append((user, place[id(user)]))  # each user's in their order
                place[id(user)] += 1
            rows = [_rows(user, batch) for user, batch in some]
            for table in TABLES:
                _copied(connection, table, (row for one in rows for row in one[table]))
            connection.commit()
    with psycopg.connect(url, autocommit=True) as connection:
        for user in users:
            connection.execute(_COUNTED, {"user_id": user.id})
        connection.execute("VACUUM (ANALYZE) item_text, item_vectors, messages, users")


_COUNTED = """
UPDATE users SET (chunks, chunk_length, last_chunk)
    = (SELECT count(*), coalesce(sum(length), 0), count(*) FROM item_text WHERE user_id = %(user_id)s)
WHERE user_id = %(user_id)s"""


def _begun(connection: psycopg.Connection[Any], user: Made) -> None:
    connection.execute("INSERT INTO users (user_id, name) VALUES (%s, %s)", [user.id, user.name])
    model = ids.model_id(MODEL, DIMENSIONS)
    columns = "INSERT INTO embedding_models (id, name, dimensions, state) VALUES (%s, %s, %s, 'serving')"
    connection.execute(f"{columns} ON CONFLICT DO NOTHING", [model, MODEL, DIMENSIONS])
    many = -(-user.chunks // CONVERSATION)
    statement = "INSERT INTO conversations (user_id, id, name, last_seq) VALUES (%s, %s, %s, %s)"
    rows = [(user.id, ids.conversation_id(user.id, f"c{n}"), f"c{n}", CONVERSATION) for n in range(many)]
    with connection.cursor() as cursor:
        cursor.executemany(statement, rows)


def _copied(connection: psycopg.Connection[Any], table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    statement: Any = f"COPY {table} ({TABLES[table]}) FROM STDIN (FORMAT BINARY)"
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(TYPES[table].split())
        for row in rows:
            copy.write_row(row)


def _rows(user: Made, batch: int) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of a batch, by table."""
    found: dict[str, list[tuple[Any, ...]]] = {table: [] for table in TABLES}
    model = ids.model_id(MODEL, DIMENSIONS)
    vectors, words = user.vectors(batch), user.words(batch)
    for (n, at, item), vector, own in zip(_named(user, batch), vectors, words, strict=False):
        place, seq = divmod(n, CONVERSATION)
        conversation = ids.conversation_id(user.id, f"c{place}")
        role = ("user", "assistant")[n % 2]
        text = " ".join(f"w{word}" for word in own)
        once, counts = np.unique(user.hashes[own], return_counts=True)
        found["messages"].append((user.id, conversation, seq + 1, item, role, text, len(own) + 3, "words", at))
        place_in_text = (0, len(text), len(own), once.tolist(), counts.tolist(), at, n + 1)
        found["item_text"].append(
            (user.id, item, 0, "messages", conversation, seq + 1, role, role, *place_in_text),
        )
        found["item_vectors"].append((user.id, item, 0, model, vector))
    return found


def _named(user: Made, batch: int) -> Iterator[tuple[int, datetime, UUID]]:
    """Return number, time and id of each message; the ids sort by time, as real ones do."""
    chance = np.random.default_rng([user.seed, 5, batch]).bytes(10 * BATCH)
    for place, n in enumerate(range(batch * BATCH, min((batch + 1) * BATCH, user.chunks))):
        at = START + timedelta(minutes=n * 3)
        head = int(at.timestamp() * 1000).to_bytes(6, "big")
        yield n, at, UUID(bytes=head + chance[10 * place : 10 * place + 10])
