"""A memory in a process of its own: takes chunks in, and is asked. What comes in is, a line each,

    {"user": …, "chunks": [{"row": number, "said": "Alice: …", "role": …, "at": ISO time}, …]}
    {"user": …, "question": …, "limit": …}

and what goes out is {"seconds": …}, of a question with {"rows": [number, …]}, the best first.
"""

from __future__ import annotations

from time import perf_counter
from typing import Protocol

from lines import Json, serve


class Memory(Protocol):
    """What a driver writes around a system."""

    def add(self, user: str, chunks: list[Json]) -> None: ...

    def search(self, user: str, question: str, limit: int) -> list[int]: ...


def serve_memory(packages: list[str], memory: Memory) -> None:
    """Answer the lines of stdin; only the system's own work is timed."""

    def answer(asked: Json) -> Json:
        begun = perf_counter()
        if "chunks" in asked:
            memory.add(asked["user"], asked["chunks"])
            return {"seconds": perf_counter() - begun}
        rows = memory.search(asked["user"], asked["question"], asked["limit"])
        return {"rows": rows, "seconds": perf_counter() - begun}

    serve(packages, answer)
