"""Rows of a space are out of reach without a grant: held by the database, whatever the SQL says."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege

import memstore
from memstore import ids
from tests.helpers.user_rows import add_missing_rows
from tests.integration.test_isolation import SETTINGS, TABLES, UPDATED, count, counts, owners, say, undone

ALICE, BOB, CAROL, EVE = (ids.user_id(name) for name in ("alice", "bob", "carol", "eve"))
OTTER, SEAL = ids.user_id("space:otter"), ids.user_id("space:seal")
Rows = psycopg.Connection[Any]
OUTLIVING = {"tombstones", "erasures"}
REMOVED = sorted({*TABLES} - OUTLIVING)


@pytest.fixture(scope="module")
def shared(new_database: Callable[..., str], template: str) -> str:
    """The URL of a database with rows of two spaces in every table: Alice rules, Bob writes, Carol reads Otter."""
    url = new_database(template)
    with memstore.open(url, settings=SETTINGS | {"segment_tokens": 50}) as store:
        for name in ("otter", "seal"):
            space = store.space(name)
            space.conversation("c").add_many(
                [{"role": "user", "content": f"Hello {n} from {name}. I live in Porto."} for n in range(13)]
            )
            store.derive()
            space.erase_message(space.conversation("c").messages()[5])
            store.derive()
            space.conversation("c").context("Where do I live?", budget=400)
            space.conversation("c").update(settings={"budget": 400})
            space.documents().put(("notes",), "first", {"text": "Porto"})
            space.retract_fact(space.add_fact("We live in Porto, so says a hand.", type="identity"))
        otter = store.user("alice").create_space("harbour") and store.space("otter")
        otter.grant("alice", "admin")
        otter.grant("bob")
        otter.grant("carol", "read")
        store.space("seal").grant("eve", "admin")
    with psycopg.connect(url) as connection:
        for space_id in (OTTER, SEAL):
            say(connection, "user_id", space_id)
            add_missing_rows(connection, space_id)
    return url


@pytest.fixture
def app(shared: str) -> Iterator[Rows]:
    with psycopg.connect(shared) as connection:
        connection.execute("set role memstore_app")
        yield connection
        connection.rollback()


def act(connection: Rows, member: object, space: object = OTTER) -> None:
    say(connection, "user_id", "")
    say(connection, "space_id", space)
    say(connection, "member_id", member)


def test_there_is_something_to_hide(shared: str) -> None:
    with psycopg.connect(shared) as superuser:
        assert {table for table in TABLES if {OTTER, SEAL} <= owners(superuser, table)} == {*TABLES}


@pytest.mark.parametrize("member", [ALICE, BOB, CAROL], ids=["admin", "writer", "reader"])
def test_a_grant_opens_the_rows_of_its_space_alone(app: Rows, member: UUID) -> None:
    act(app, member)
    assert {table: owners(app, table) for table in TABLES} == {table: {OTTER} for table in TABLES}
    act(app, member, SEAL)
    assert counts(app) == dict.fromkeys(TABLES, 0)


@pytest.mark.parametrize("member", [EVE, "", UUID(int=0), str(EVE).upper()], ids=str)
def test_without_a_grant_there_are_no_rows(app: Rows, member: object) -> None:
    forms = (OTTER, str(OTTER).upper(), f"{{{OTTER}}}", OTTER.hex)
    for owner in forms:
        act(app, member, owner)
        assert counts(app) == dict.fromkeys(TABLES, 0), owner
        assert app.execute("select count(*) from grants where user_id = %s", [OTTER]).fetchone() == (0,)


def test_no_other_user_s_scope_shows_a_space(app: Rows) -> None:
    for user in (ALICE, BOB, CAROL, EVE):
        act(app, user)
        say(app, "user_id", user)
        for table in TABLES:
            assert not owners(app, table) & {OTTER, SEAL}, table
    joined = "select count(*) from grants g join messages m on m.user_id = g.user_id"
    assert app.execute(joined).fetchone() == (0,)


@pytest.mark.parametrize("table", REMOVED)
def test_who_reads_removes_nothing(app: Rows, table: str) -> None:
    act(app, CAROL)
    before = count(app, table)
    with undone(app):
        assert before > 0
        assert app.execute(f"delete from {table}").rowcount == 0
    act(app, BOB)
    with undone(app):
        app.execute("set constraints all deferred")
        assert app.execute("delete from receipts").rowcount > 0


@pytest.mark.parametrize("table", UPDATED)
def test_who_reads_changes_nothing(app: Rows, table: str) -> None:
    act(app, CAROL)
    with undone(app):
        assert app.execute(f"update {table} set user_id = user_id").rowcount == 0
    act(app, BOB)
    with undone(app):
        assert app.execute(f"update {table} set user_id = user_id").rowcount > 0


def test_who_reads_adds_nothing(app: Rows) -> None:
    add = "insert into conversations (user_id, id, name) values (%s, gen_random_uuid(), 'c')"
    act(app, CAROL)
    with pytest.raises(InsufficientPrivilege), undone(app):
        app.execute(add, [OTTER])
    act(app, BOB)
    for other in (SEAL, ALICE):
        with pytest.raises(InsufficientPrivilege), undone(app):
            app.execute(add, [other])
    with undone(app):
        app.execute(add, [OTTER])


@pytest.mark.parametrize("member", [ALICE, BOB, CAROL, EVE], ids=["admin", "writer", "reader", "stranger"])
def test_no_member_grants_by_sql(app: Rows, member: UUID) -> None:
    """An admin's grants are made for the space itself, where the client has looked whether it is one."""
    columns = "user_id, member_id, space_name, member_name, access"
    add = f"insert into grants ({columns}) values (%s, %s, 'otter', 'x', 'admin')"
    for scope in ("", member):
        act(app, member)
        say(app, "user_id", scope)
        with pytest.raises(InsufficientPrivilege), undone(app):
            app.execute(add, [OTTER, EVE])
        with undone(app):
            assert app.execute("update grants set access = 'admin'").rowcount == 0
            assert app.execute("delete from grants").rowcount == 0
        mine = app.execute("select distinct member_id from grants").fetchall()
        assert mine == [(member,)]


def test_a_grant_that_ends_in_the_midst_of_a_transaction_closes_it(app: Rows, shared: str) -> None:
    act(app, BOB)
    assert count(app, "messages") > 0
    with memstore.open(shared, settings=SETTINGS) as store:
        store.space("otter").revoke("bob")
        assert counts(app) == dict.fromkeys(TABLES, 0)
        app.rollback()
        store.space("otter").grant("bob")
    app.execute("set role memstore_app")
    act(app, BOB)
    assert count(app, "messages") > 0
