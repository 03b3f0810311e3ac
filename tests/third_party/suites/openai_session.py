"""A session that is made as those of the OpenAI Agents SDK are."""

from __future__ import annotations

import atexit
from functools import cache
from itertools import count
from typing import Any, Self

from memstore_suite import cloned_url

import memstore
from memstore.adapters.openai_agents import MemstoreSession

MEMORY = count()


@cache
def store() -> Any:
    """One store for all: sessions of one file are of one user."""
    made = cloned_url()
    opened = memstore.open(made.__enter__(), settings={"embedder": "none"})
    atexit.register(opened.close)
    return opened


class Engine:
    """What tests dispose of in the end."""

    async def dispose(self) -> None:
        """Dispose of nothing."""


class Session(MemstoreSession):
    """A session of the user named after the file that the tests give, or of a new one."""

    engine = Engine()

    def __init__(
        self,
        session_id: str,
        db_path: Any = ":memory:",
        *_: Any,
        engine: Any = None,
        create_tables: bool = False,
        **settings: Any,
    ) -> None:
        db_path = db_path if engine is None else engine.url
        whose = f"memory {next(MEMORY)}" if ":memory:" in str(db_path) else str(db_path)
        super().__init__(session_id, store().user(whose), **settings)

    @classmethod
    def from_url(cls, session_id: str, *, url: str, **settings: Any) -> Self:
        """Make one by URL."""
        return cls(session_id, url, **settings)

    def close(self) -> None:
        """Close nothing: the store is not the session's own."""
