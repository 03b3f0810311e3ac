"""The password of the database's URL is told to nobody: no log, error, traceback, receipt, event or output has it."""

import logging
import traceback
import warnings
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import psycopg
import pytest

import memstore
from memstore.errors import MemstoreError
from memstore.settings import Settings
from tests.command_line import Run
from tests.working import HASHING

SECRET = "Xs3cr3tX"
COMMANDS = (
    "doctor", "stats", "users", "conversations --user alice", "derive", "derive --redo facts", "db upgrade",
    "db status", "db grant postgres --role reader", "db grant nobody_here", "db index", "db stop",
    "recall Porto --user alice", "context Porto --user alice --conversation c --budget 400 --explain",
    "facts --user alice",
    "jobs", "backfill plan", "backfill status", "recall Porto --user nobody",
    "context Porto --user alice --conversation c --budget 1",
    "fact retract 0000 --user alice", "facts --user alice --type nonsense",
)  # fmt: skip
# More of what cannot be a URL: tests/integration/test_migrations.py.
SPOILT: dict[str, Callable[[str], str]] = {
    "another host": lambda url: url.replace("@/", "@nowhere.invalid/").partition("?")[0],
    "another port": lambda url: url.replace("port=5432", "port=1"),
    "another database": lambda url: urlsplit(url)._replace(path="/nothing_here").geturl(),
    "a password that is not quoted": lambda url: url.replace(SECRET, f"{SECRET}@{SECRET}/{SECRET}"),
    "another scheme": lambda url: url.replace("postgresql://", "mysql://"),
    "words": lambda url: f"host=/nowhere password={SECRET} user=u",
    "password as an option": lambda url: url.replace(f":{SECRET}", "").replace("5432", "1") + f"&password={SECRET}",
}


@pytest.fixture
def secret(url: str) -> str:
    """The URL of a database with a password in it, which the server does not even ask for."""
    parts = urlsplit(url)
    return parts._replace(netloc=f"{parts.netloc.partition('@')[0]}:{SECRET}@").geturl()


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """Everything that is logged, by whichever library, and every warning; searched in the end, with what is added."""
    found: list[str] = []
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as warned:
        for name in ("memstore", "psycopg", "psycopg.pool", "procrastinate", "alembic", "sqlalchemy"):
            caplog.set_level(logging.DEBUG, name)
        warnings.simplefilter("always")
        yield found
    found += [logging.Formatter("%(message)s %(args)s").format(record) for record in caplog.records]
    found += [str(one.message) for one in warned]
    assert found
    assert [text for text in found if SECRET in text] == []


def rows(url: str) -> str:
    with psycopg.connect(url) as connection:
        tables = connection.execute("select tablename from pg_tables where schemaname = 'public'").fetchall()
        return str([connection.execute(f"select * from {table}").fetchall() for (table,) in tables])


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["for people", "for programs"])
def test_no_command_tells_it(secret: str, told: list[str], cli: Run, form: tuple[str, ...]) -> None:
    with memstore.open(secret, settings=HASHING) as store:
        talk = store.user("alice").conversation("c")
        talk.add("user", "I live in Porto.")
        store.derive()
        told += [repr(store), repr(store.user("alice")), repr(talk), repr(talk.context("Where?", budget=400))]
    codes = set()
    for command in COMMANDS:
        ran = cli("--verbose", *command.split(), *form, database_url=secret)
        told += [ran.out, ran.err]
        codes.add(ran.code)
    assert codes >= {0, 1, 2, 4}, "what works, and what does not"
    told.append(rows(secret))


@pytest.mark.parametrize("how", SPOILT)
def test_no_error_tells_it(secret: str, told: list[str], cli: Run, how: str) -> None:
    """Neither the message nor the traceback, with every error that came before it."""
    spoilt = SPOILT[how](secret)
    assert SECRET in spoilt
    with pytest.raises(MemstoreError) as caught:
        memstore.open(spoilt, settings=HASHING)
    told += ["".join(traceback.format_exception(caught.value)), repr(caught.value)]
    for command in ("stats -d", "doctor --json -d", "db upgrade -d", "db status --json -d"):
        ran = cli("--verbose", *command.split(), spoilt)
        assert ran.code
        told += [ran.out, ran.err]


def test_settings_do_not_tell_it(secret: str, told: list[str]) -> None:
    settings = Settings(database_url=secret)
    told += [repr(settings), str(settings), f"{settings!r}", str([settings])]
    assert settings.database_url == secret
