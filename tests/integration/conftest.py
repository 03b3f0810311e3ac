"""Databases for a whole file of tests, where a clone for each test would take longer than the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

from memstore.store.roles import ROLES
from tests.conftest import create_database, drop_database

TABLES = {
    "users",
    "conversations",
    "messages",
    "summaries",
    "facts",
    "fact_sources",
    "item_text",
    "term_postings",
    "item_vectors",
    "embedding_models",
    "derivations",
    "receipts",
    "setting_changes",
    "fact_changes",
    "invalid_responses",
    "model_usage",
    "events",
    "documents",
    "document_vectors",
}
OF_THE_OPERATOR = {"backfills", "api_tokens"}  # of no user: ids and numbers, and who may ask for whom
OUTLIVING = {"tombstones", "erasures"}  # what is left of an erasure: hashes, ids and counts
KEYS = {"store_keys"}  # of no user: what tombstones are hashed with


@pytest.fixture(scope="module")
def new_role(server_url: str, template: str, request: pytest.FixtureRequest) -> Iterator[Callable[..., str]]:
    """Make a role that may log in and has the attributes given; give its name. The app role is there already."""
    made: list[str] = []

    def make(attributes: str = "") -> str:
        made.append(f"role_{uuid4().hex[:8]}")
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {made[-1]} LOGIN NOSUPERUSER {attributes}")
        return made[-1]

    yield make
    if request.config.getoption("--dsn"):
        with psycopg.connect(server_url, autocommit=True) as connection:
            for name in reversed(made):  # who was granted something before who granted it
                connection.execute(f"DROP ROLE {name}")


@pytest.fixture(scope="module")
def new_database(
    server_url: str, new_role: Callable[..., str], request: pytest.FixtureRequest
) -> Iterator[Callable[..., str]]:
    """Make a database, empty or a clone, that may belong to another role; give its URL."""
    made: list[str] = []

    def make(template: str = "template0", owner: str = "DEFAULT") -> str:
        made.append(f"test_{uuid4().hex[:12]}")
        create_database(server_url, made[-1], template, owner)
        return urlsplit(server_url)._replace(path=f"/{made[-1]}").geturl()

    yield make
    if request.config.getoption("--dsn"):
        for name in made:
            drop_database(server_url, name)


@pytest.fixture(scope="module")
def clone(new_database: Callable[..., str], template: str) -> str:
    """The URL of a migrated database that all tests of the file share."""
    return new_database(template)


@pytest.fixture
def without_roles(server_url: str, template: str, request: pytest.FixtureRequest) -> Iterator[None]:
    """A server that knows none of memstore's roles, until the test ends."""
    if request.config.getoption("--dsn"):
        pytest.skip("roles are renamed for a moment, which a server of your own may not like")
    mark = uuid4().hex[:8]
    with psycopg.connect(server_url, autocommit=True) as connection:
        for role in ROLES:
            connection.execute(f"ALTER ROLE {role} RENAME TO {role}_{mark}")
        yield
        for role in ROLES:
            if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [role]).fetchone() is not None:
                connection.execute(f"ALTER ROLE {role} RENAME TO made_{role}_{mark}")
            connection.execute(f"ALTER ROLE {role}_{mark} RENAME TO {role}")


@pytest.fixture
def without_app_role(server_url: str, template: str, request: pytest.FixtureRequest) -> Iterator[None]:
    """A server that knows no role memstore_app, until the test ends."""
    if request.config.getoption("--dsn"):
        pytest.skip("the role is renamed for a moment, which a server of your own may not like")
    aside = f"memstore_app_{uuid4().hex[:8]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"ALTER ROLE memstore_app RENAME TO {aside}")
        yield
        if connection.execute("SELECT FROM pg_roles WHERE rolname = 'memstore_app'").fetchone() is not None:
            connection.execute(f"ALTER ROLE memstore_app RENAME TO made_{aside}")
        connection.execute(f"ALTER ROLE {aside} RENAME TO memstore_app")


def as_role(url: str, name: str, password: str = "") -> str:
    """Give the URL with another login."""
    parts = urlsplit(url)
    secret = f":{password}" if password else ""
    return parts._replace(netloc=f"{name}{secret}@{parts.netloc.rpartition('@')[2]}").geturl()


@pytest.fixture(scope="session")
def login() -> Callable[..., str]:
    """Change the login of a URL."""
    return as_role
