"""One server for the session, a migrated template database once, a clone of it for each test that asks for a `url`."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from memstore.store import migrations
from memstore.store.embedded import EmbeddedServer

for name in [name for name in os.environ if name.startswith("MEMSTORE_")]:
    del os.environ[name]
os.environ["MEMSTORE_CONFIG"] = ""  # whoever runs the tests may have settings
os.environ["MEMSTORE_RESIDENT_MINUTES"] = "0"  # no process outlives the test that started it
os.environ["HF_HUB_OFFLINE"] = "1"

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would every program that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

TEMPLATE = "memstore_template"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--dsn", help="a Postgres of your own whose login may create databases, instead of the embedded one"
    )


def pytest_report_header(config: pytest.Config) -> str:
    encoder = "with" if find_spec("sentence_transformers") else "without"
    return f"memstore: {config.getoption('--dsn') or 'embedded Postgres'}, {encoder} the real encoder"


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name bytes by their place: what gzip packs holds the time, and processes that share the tests would not agree."""
    return argname if isinstance(val, bytes) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    missing = find_spec("sentence_transformers") is None
    for item in items:
        if missing and item.get_closest_marker("encoder"):
            item.add_marker(pytest.mark.skip(reason="needs the extra `local`"))
        if item.get_closest_marker("root") and os.geteuid() != 0:
            item.add_marker(pytest.mark.skip(reason="needs root, to become another user"))


@pytest.fixture(scope="session")
def server_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a server; what it is of is the database `postgres` or whatever was given."""
    if dsn := request.config.getoption("--dsn"):
        yield dsn
        return
    with tempfile.TemporaryDirectory(prefix="memstore-tests-") as folder:
        server = EmbeddedServer.open(Path(folder) / "store")
        with psycopg.connect(server.url, autocommit=True) as connection:  # nothing here outlives a crash anyway
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")
        yield server.url
        server.close()


@pytest.fixture(scope="session")
def template(server_url: str) -> Iterator[str]:
    """The name of a migrated database that nobody is connected to."""
    name = f"{TEMPLATE}_{uuid4().hex[:8]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        migrations.upgrade(with_database(server_url, name))
        yield name
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def url(server_url: str, template: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a database of the test's own. An embedded server goes with the session, and dropping takes time."""
    with cloned(server_url, template, drop=bool(request.config.getoption("--dsn"))) as made:
        yield made


@pytest.fixture
def twin(server_url: str, template: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a second database, in which nothing is."""
    with cloned(server_url, template, drop=bool(request.config.getoption("--dsn"))) as made:
        yield made


@contextmanager
def cloned(server_url: str, template: str, *, drop: bool) -> Iterator[str]:
    """Give the URL of a new database, as the template is."""
    name = f"test_{uuid4().hex[:12]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        yield with_database(server_url, name)
        if drop:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def with_database(url: str, name: str) -> str:
    """Give the URL of another database of the same server."""
    place, _, options = url.partition("?")
    return f"{place.rpartition('/')[0]}/{name}" + (f"?{options}" if options else "")
