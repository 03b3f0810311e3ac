"""What the tests of the whole product share."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest

from memstore.cli import app
from memstore.cli.exits import ended
from tests.command_line import EMBEDDER, Ended, Run, variables
from tests.conftest import with_database


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Run a command in this process, which spares it the imports, with these settings."""
    handlers, level = logging.root.handlers[:], logging.root.level
    monkeypatch.setenv("MEMSTORE_EMBEDDER", EMBEDDER)

    def run(*args: str, **settings: str) -> Ended:
        with monkeypatch.context() as patch:
            for name, value in variables(settings).items():
                patch.setenv(name, value)
            capsys.readouterr()
            code = ended(lambda: app(args))
        return Ended(code, *capsys.readouterr())

    yield run
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)
    logging.getLogger("memstore").setLevel(logging.NOTSET)


@pytest.fixture
def twin(server_url: str, template: str) -> Iterator[str]:
    """The URL of a second database, for the same history undisturbed."""
    name = f"twin_{uuid4().hex[:12]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        yield with_database(server_url, name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
