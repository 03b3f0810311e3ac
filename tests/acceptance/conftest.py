"""What the tests of the whole product share."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest

from tests.conftest import with_database


@pytest.fixture
def twin(server_url: str, template: str) -> Iterator[str]:
    """The URL of a second database, for the same history undisturbed."""
    name = f"twin_{uuid4().hex[:12]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        yield with_database(server_url, name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
