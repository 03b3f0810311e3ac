"""Connections to a server: what each of them asks for, and how long it waits for an answer."""

from __future__ import annotations

from collections.abc import Generator
from time import monotonic
from typing import Any, TypeVar

from pgvector.psycopg import register_vector_async
from psycopg import AsyncConnection
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.json import JsonbDumper

from memstore.store.errors import NoAnswer
from memstore.store.sql import statements

R = TypeVar("R")

DEFAULTS = {
    "application_name": "memstore",
    "connect_timeout": 10,
    # A server that vanished without a word (its machine, the network) is noticed in a minute, not after hours.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
# More than any statement takes: this ends what would wait for good.
MAX_SILENCE_SECONDS = 3600.0
SQL = statements("database")


def options_of(url: str) -> dict[str, Any]:
    """Return the options of a connection to this URL, whose own come before the defaults; texts are sent in UTF-8."""
    return DEFAULTS | conninfo_to_dict(url) | {"client_encoding": "utf8"}


class WatchedConnection(AsyncConnection[Any]):
    """A connection that is closed once nothing has come or gone for `MAX_SILENCE_SECONDS` amid a statement."""

    async def wait(self, gen: PQGen[R], *args: Any, **kwargs: Any) -> R:
        try:
            return await super().wait(_watch(gen), *args, **kwargs)
        except NoAnswer:
            self.pgconn.finish()
            raise


def _watch(gen: PQGen[R]) -> Generator[Any, Any, R]:
    """Hand on what the driver waits for and what is ready; it asks every tenth of a second where nothing is."""
    last = monotonic()
    try:
        awaited = next(gen)
        while True:
            ready = yield awaited
            if ready:
                last = monotonic()
            elif monotonic() > last + MAX_SILENCE_SECONDS:
                raise NoAnswer(f"no answer for {MAX_SILENCE_SECONDS:.0f} s")
            awaited = gen.send(ready)
    except StopIteration as end:
        result: R = end.value
        return result


async def configure(connection: AsyncConnection[Any]) -> None:
    # Behind a pooler, a setting of the session would be somebody else's.
    async with connection.transaction():
        await connection.execute(SQL["reach_pgvector"])
        await register_vector_async(connection)
    connection.adapters.register_dumper(dict, JsonbDumper)
