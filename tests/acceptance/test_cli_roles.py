"""Logins and what they may, from the command line: `db grant`, and `users` and `doctor` as such a login."""

from collections.abc import Iterator
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

import memstore
from tests.command_line import Run
from tests.working import HASHING


@pytest.fixture
def login(server_url: str) -> Iterator[str]:
    """A login that was granted nothing yet."""
    name = f"login_{uuid4().hex[:8]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN")
        yield name
        for role in connection.execute(
            "SELECT roleid::regrole::text FROM pg_auth_members WHERE member = %s::regrole", [name]
        ):
            connection.execute(f"REVOKE {role[0]} FROM {name}")
        connection.execute(f"DROP ROLE {name}")


def as_login(url: str, login: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=f"{login}@{parts.netloc.rpartition('@')[2]}").geturl()


def test_an_admin_lists_users_and_is_told_what_is_out_of_reach(url: str, login: str, cli: Run) -> None:
    with memstore.open(url, settings=HASHING) as store:
        for name in ("alice", "bob"):
            store.user(name).conversation("c").add("user", f"I am {name}.")
    granted = cli("db", "grant", login, "--role", "admin", "--json", "-d", url)
    assert granted.json == {"login": login, "role": "admin", "confined": True}
    admin = as_login(url, login)
    assert cli("users", "--json", "-d", admin).json == ["alice", "bob"]
    refused = cli("recall", "I am", "--user", "alice", "-d", admin)
    assert (refused.code, refused.out) == (1, "")
    assert "memstore db grant LOGIN --role app" in refused.err


def test_what_is_granted_is_told_and_what_is_not(url: str, login: str, cli: Run) -> None:
    assert cli("db", "grant", login, "-d", url).out == f"{login} is granted app\n"
    assert "as memstore_app" in cli("doctor", "-d", as_login(url, login)).out
    superuser = cli("db", "grant", urlsplit(url).username or "", "--role", "reader", "-d", url)
    assert superuser.code == 0
    assert "no role confines it" in superuser.err
    assert cli("db", "grant", login, "--role", "king", "-d", url).code == 2
    missing = cli("db", "grant", "nobody_here", "-d", url)
    assert missing.code == 1
    assert 'CREATE ROLE "nobody_here" LOGIN' in missing.err
    himself = cli("db", "grant", login, "--role", "reader", "-d", as_login(url, login))
    assert himself.code == 1
    assert f'GRANT memstore_reader TO "{login}"' in himself.err
