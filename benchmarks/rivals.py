"""The peers as processes: each in an environment of its own, with the same chunks, vectors and Postgres."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

import psycopg
from corpus import Chunk
from data import Question
from report import ROOT, Cell

from memstore.store.embedded.server import EmbeddedServer

sys.path.append(str(ROOT / "benchmarks" / "peers"))

import known
from environments import System, Unavailable, python_of

Json = dict[str, Any]
PEERS = {
    "LangChain PGVector": ("PGVector", ""),
    "LangGraph PostgresStore": ("LangGraph", ""),
    "mem0 (infer off, qdrant)": ("mem0", "qdrant"),
    "mem0 (infer off, pgvector)": ("mem0", "pgvector"),
    "Hindsight (no LLM)": ("Hindsight", ""),
}
BATCH = 200  # chunks


def installed(titles: Iterable[str], cache: Path) -> dict[str, Path]:
    """Return the interpreters of the peers that can be had; tell why the others cannot."""
    found = {}
    for title in titles:
        try:
            found[title] = python_of(PEERS[title][0], cache)
        except Unavailable as reason:
            print(f"skipped: {title} cannot be installed: {reason}", file=sys.stderr, flush=True)
    return found


class Peers:
    """The processes of the peers, and the Postgres that they share; a context manager.

    `folder` holds the vectors that they look up (`known.write`).
    """

    def __init__(self, folder: Path, pythons: Mapping[str, Path]) -> None:
        self.folder = folder
        self.systems: dict[str, System] = {}
        self._stack = ExitStack()
        server = EmbeddedServer.open(folder / "postgres")
        self._stack.callback(server.close)
        for title, python in pythons.items():
            with self.leaving_out(title):
                self.systems[title] = self._started(title, python, server.url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextmanager
    def leaving_out(self, title: str) -> Iterator[None]:
        """Leave a peer out from now on where what is done meanwhile fails, and tell why."""
        try:
            yield
        except RuntimeError as reason:
            self.systems.pop(title, None)
            print(f"left out: {title}: {reason}", file=sys.stderr, flush=True)

    def _started(self, title: str, python: Path, url: str) -> System:
        peer, variant = PEERS[title]
        own = re.sub(r"\W+", "_", f"{peer} {variant}".strip().lower())
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{own}"')
        (self.folder / own).mkdir()
        environment = {
            known.VECTORS: str(self.folder),
            known.DATABASE: re.sub(r"/memstore\?", f"/{own}?", url),
            known.FOLDER: str(self.folder / own),
        }
        return self._stack.enter_context(System(peer, variant, python, environment))

    def add(self, user: str, chunks: Sequence[Chunk]) -> None:
        """Return every peer a user's chunks; one that fails is left out from now on."""
        for title in list(self.systems):
            with self.leaving_out(title):
                seconds = self.add_to(title, user, chunks)
                print(f"{title}: {len(chunks):,} chunks in {seconds:.0f} s", file=sys.stderr, flush=True)

    def add_to(self, title: str, user: str, chunks: Sequence[Chunk]) -> float:
        """Return one peer a user's chunks; give its seconds. Raises RuntimeError with what it said."""
        seconds = 0.0
        for start in range(0, len(chunks), BATCH):
            rows = [
                {"row": row, "said": one.said, "role": one.role, "at": one.at.isoformat()}
                for row, one in enumerate(chunks[start : start + BATCH], start)
            ]
            seconds += _checked(self.systems[title].answer({"user": user, "chunks": rows}))["seconds"]
        return seconds

    def answers(self, question: Question, limit: int) -> Iterator[tuple[str, Json]]:
        """Return each peer's answer: `rows` of the user's chunks, and its `seconds`."""
        asked = {"user": question.user, "question": question.text, "limit": limit}
        for title in list(self.systems):
            with self.leaving_out(title):
                yield title, _checked(self.systems[title].answer(asked))

    def versions(self) -> list[list[Cell]]:
        """Return what each peer says of itself."""
        return [[title, ", ".join(f"{n} {v}" for n, v in one.versions.items())] for title, one in self.systems.items()]


def _checked(reply: Json) -> Json:
    if "error" in reply:
        raise RuntimeError(f"{reply['error']}: {reply.get('says')}")
    return reply
