"""What the suites of others run on: one embedded server for the run, and a migrated database for each store."""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from uuid import uuid4

import psycopg

from memstore.store import migrations
from memstore.store.embedded.server import EmbeddedServer

TEMPLATE = "memstore_template"
# What tests of LangGraph's Postgres store look at and change behind its back.
VIEW = """
CREATE VIEW store AS
SELECT array_to_string(namespace, '.') AS prefix, key, value, created_at, updated_at, expires_at FROM documents
"""


@cache
def server() -> str:
    """The URL of a server that ends with the run."""
    folder = tempfile.TemporaryDirectory(prefix="memstore-suite-")
    started = EmbeddedServer.open(Path(folder.name) / "store")
    atexit.register(folder.cleanup)
    atexit.register(started.close)
    with psycopg.connect(started.url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute(f"CREATE DATABASE {TEMPLATE} TEMPLATE template0")
    migrations.upgrade(of(started.url, TEMPLATE))
    return started.url


@contextmanager
def cloned_url() -> Iterator[str]:
    """Give the URL of a new, empty database."""
    name = f"test_{uuid4().hex[:12]}"
    with psycopg.connect(server(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
    yield of(server(), name)


def of(url: str, database: str) -> str:
    place, _, options = url.partition("?")
    return f"{place.rpartition('/')[0]}/{database}" + (f"?{options}" if options else "")
