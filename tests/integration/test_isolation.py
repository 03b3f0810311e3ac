"""Rows of a user are out of reach without that user's scope: held by the database, whatever the SQL says."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.errors import ForeignKeyViolation, InsufficientPrivilege, InvalidTextRepresentation

import memstore
from memstore import ids
from memstore.client.store import AsyncMemoryStore
from memstore.store import messages as stored, migrations
from tests.helpers.user_rows import add_missing_rows
from tests.integration.conftest import OUTLIVING, TABLES as LIVING

Rows = psycopg.Connection[Any]
Make = Callable[..., str]
SETTINGS = {"embedder": "hashing:256"}
ALICE, BOB = ids.user_id("alice"), ids.user_id("bob")
SAID = {"alice": "I live in Porto and I am allergic to peanuts.", "bob": "I live in Leeds and I play the cello."}
TABLES = tuple(sorted(LIVING | OUTLIVING))
UPDATED = ("users", "conversations", "facts", "derivations", "documents")
FOR_THE_OPERATOR = ("users", "derivations", "model_usage", "events")


def fill(url: str) -> None:
    """Put two users into every table, in the way of an application."""
    with memstore.open(url, settings=SETTINGS | {"segment_tokens": 50}) as store:
        for name, text in SAID.items():
            trip = store.user(name).conversation("c")
            trip.add_many([{"role": "user", "content": f"Hello {n} from {name}. {text}"} for n in range(13)])
        assert store.derive().failed == ()
        for name in SAID:
            store.user(name).erase_message(store.user(name).conversation("c").messages()[5])
        assert store.derive().failed == ()
        for name in SAID:
            store.user(name).conversation("c").context("Where do I live?", budget=400)
            store.user(name).conversation("c").update(settings={"budget": 400})
            scope = store.user(name)
            scope.documents().put(("notes",), "first", {"text": SAID[name]}, ttl=timedelta(days=9))
            scope.retract_fact(scope.add_fact(f"{SAID[name]} So says a hand.", type="identity"))
    with psycopg.connect(url) as connection:  # what takes a chat model, its server, or very many chunks
        for user in (ALICE, BOB):
            say(connection, "user_id", user)  # whoever is no superuser has but these rows
            add_missing_rows(connection, user)


@pytest.fixture(params=["set role", "login"])
def app(request: pytest.FixtureRequest, filled: str, login: Make) -> Iterator[Rows]:
    """A connection as the app role, in a transaction that is not committed: by SET ROLE, and logged in as it."""
    with psycopg.connect(filled if request.param == "set role" else login(filled, "memstore_app")) as connection:
        if request.param == "set role":
            connection.execute("set role memstore_app")
        yield connection
        connection.rollback()


def say(connection: Rows, setting: str, value: object) -> None:
    name = sql.Identifier("memstore", setting)
    connection.execute(sql.SQL("set local {} = {}").format(name, sql.Literal(str(value))))  # set_config reaches no node


def count(connection: Rows, table: str) -> int:
    row = connection.execute(sql.SQL("select count(*) from {}").format(sql.Identifier(table))).fetchone()
    assert row is not None
    return int(row[0])


def counts(connection: Rows) -> dict[str, int]:
    return {table: count(connection, table) for table in TABLES}


def owners(connection: Rows, table: str) -> set[UUID]:
    return {row[0] for row in connection.execute(sql.SQL("select user_id from {}").format(sql.Identifier(table)))}


@contextmanager
def undone(connection: Rows) -> Iterator[None]:
    with connection.transaction(force_rollback=True):
        yield


def test_there_is_something_to_hide(filled: str) -> None:
    with psycopg.connect(filled) as superuser:
        assert {table: owners(superuser, table) for table in TABLES} == {table: {ALICE, BOB} for table in TABLES}


def test_without_a_scope_there_are_no_rows(app: Rows) -> None:
    assert counts(app) == dict.fromkeys(TABLES, 0)
    for query in (
        "select 1 where exists (select 1 from messages)",
        "select 1 where exists (select 1 from item_vectors v join item_text t using (user_id, item_id, chunk_index))",
        "select m.text from users u left join messages m using (user_id)",
        "select text from messages union all select text from facts union all select text from summaries",
        "with every as materialized (select * from messages) select * from every",
        "select max(seq) from messages having count(*) > 0",
        "select row_to_json(m) from messages m",
    ):
        assert app.execute(query).fetchall() == [], query
    assert app.execute("select (select text from messages limit 1), array(select text from facts)").fetchone() == (
        None,
        [],
    )


@pytest.mark.parametrize("user", [ALICE, BOB], ids=["alice", "bob"])
def test_a_scope_shows_the_rows_of_one_user(app: Rows, user: UUID) -> None:
    say(app, "user_id", user)
    assert {table: owners(app, table) for table in TABLES} == {table: {user} for table in TABLES}
    texts = app.execute(
        "select text from messages union all select text from summaries union all select text from facts"
    )
    said = [text for (text,) in texts]
    other = "Leeds" if user == ALICE else "Porto"
    assert said
    assert not any(other in text for text in said)


def test_a_join_on_another_user_finds_nothing(app: Rows) -> None:
    say(app, "user_id", ALICE)
    joined = "select count(*) from messages m join conversations c on c.user_id <> m.user_id"
    assert app.execute(joined).fetchone() == (0,)


@pytest.mark.parametrize("table", TABLES)
def test_rows_of_another_user_can_neither_be_made_nor_changed_nor_removed(app: Rows, table: str) -> None:
    name = sql.Identifier(table)
    columns = [column.name for column in app.execute(sql.SQL("select * from {}").format(name)).description or ()]
    fresh = sql.SQL(", ").join(
        [sql.Placeholder("bob") if column == "user_id" else sql.Identifier(column) for column in columns]
    )
    say(app, "user_id", ALICE)
    before = count(app, table)
    with pytest.raises(InsufficientPrivilege, match="row-level security policy"), undone(app):
        app.execute(sql.SQL("insert into {0} select {1} from {0}").format(name, fresh), {"bob": uuid4()})
    with pytest.raises(InsufficientPrivilege, match="row-level security policy"), undone(app):
        app.execute(sql.SQL("insert into {0} select {1} from {0}").format(name, fresh), {"bob": BOB})
    if table in OUTLIVING:
        with pytest.raises(InsufficientPrivilege), undone(app):
            app.execute(sql.SQL("delete from {}").format(name))
        return
    with undone(app):
        assert app.execute(sql.SQL("delete from {} where user_id = %s").format(name), [BOB]).rowcount == 0
        assert app.execute(sql.SQL("delete from {} where user_id <> %s").format(name), [ALICE]).rowcount == 0
    with undone(app):
        assert app.execute(sql.SQL("delete from {}").format(name)).rowcount == before
        say(app, "user_id", BOB)
        assert count(app, table) > 0


@pytest.mark.parametrize("table", sorted(UPDATED))
def test_no_row_becomes_another_user_s(app: Rows, table: str) -> None:
    say(app, "user_id", ALICE)
    change = sql.SQL("update {} set user_id = %s where user_id = %s").format(sql.Identifier(table))
    assert app.execute(change, [BOB, BOB]).rowcount == 0
    with pytest.raises(InsufficientPrivilege, match="row-level security policy"), undone(app):
        app.execute(change, [BOB, ALICE])


def test_a_row_cannot_hang_on_another_users_row(app: Rows) -> None:
    """Foreign keys are checked past the policies, so they must not take a row of anybody else."""
    say(app, "user_id", BOB)
    row = app.execute("select conversation_id, id from messages limit 1").fetchone()
    assert row is not None
    say(app, "user_id", ALICE)
    with pytest.raises(ForeignKeyViolation), undone(app):
        app.execute(
            "insert into messages (user_id, conversation_id, seq, id, role, tokens, counter, occurred_at)"
            " values (%s, %s, 999, %s, 'user', 1, 'words', now())",
            [ALICE, row[0], uuid4()],
        )
    with pytest.raises(ForeignKeyViolation), undone(app):
        fact = app.execute("select id from facts limit 1").fetchone()
        assert fact is not None
        app.execute(
            "insert into fact_sources (user_id, fact_id, message_id) values (%s, %s, %s)", [ALICE, fact[0], row[1]]
        )


@pytest.mark.parametrize(
    ("table", "add"),
    [
        ("backfills", "insert into backfills (id, derivers) values (gen_random_uuid(), '{facts}')"),
        ("webhooks", "insert into webhooks values (gen_random_uuid(), 'http://a', '{fact.created}', 'secret')"),
        ("webhook_events", f"insert into webhook_events values (gen_random_uuid(), '{ALICE}', '{{}}')"),
        ("api_tokens", f"insert into api_tokens values (gen_random_uuid(), sha256('x'), '{ALICE}', 'alice')"),
    ],
)
def test_what_is_the_operator_s_is_no_user_s(app: Rows, table: str, add: str) -> None:
    """Nor are a user's own tokens: whoever speaks SQL in the user's scope would else make itself one."""
    say(app, "operator", "on")
    app.execute(add)
    assert count(app, table) == 1
    say(app, "operator", "")
    say(app, "user_id", ALICE)
    assert count(app, table) == 0
    with pytest.raises(InsufficientPrivilege), undone(app):
        app.execute(add)


@pytest.mark.parametrize(
    "value", ["", " ", "alice", "00000000-0000-0000-0000-000000000000", "null", "%", str(ALICE)[:-1]]
)
def test_a_scope_that_names_nobody_shows_nothing(app: Rows, value: str) -> None:
    say(app, "user_id", value)
    for table in TABLES:
        try:
            with undone(app):
                assert count(app, table) == 0
        except InvalidTextRepresentation:
            assert value not in ("", "00000000-0000-0000-0000-000000000000")


def test_a_scope_ends_with_its_transaction(app: Rows) -> None:
    app.commit()
    for end in (app.commit, app.rollback):
        say(app, "user_id", ALICE)
        say(app, "operator", "on")
        assert count(app, "messages") > 0
        end()
        assert counts(app) == dict.fromkeys(TABLES, 0)
        assert app.execute("select current_setting('memstore.user_id', true)").fetchone() == ("",)


def test_the_operator_sees_who_there_is_and_nothing_that_was_said(app: Rows) -> None:
    say(app, "operator", "on")
    assert {table for table, rows in counts(app).items() if rows} == set(FOR_THE_OPERATOR)
    for table in FOR_THE_OPERATOR:
        assert owners(app, table) == {ALICE, BOB}
        shown = str(app.execute(sql.SQL("select * from {}").format(sql.Identifier(table))).fetchall())
        assert not any(word in shown for word in ("Porto", "Leeds", "peanuts", "cello"))
    for table in {*TABLES} - OUTLIVING:
        name = sql.Identifier(table)
        assert app.execute(sql.SQL("delete from {}").format(name)).rowcount == 0
        if table in UPDATED:
            assert app.execute(sql.SQL("update {} set user_id = user_id").format(name)).rowcount == 0
    with pytest.raises(InsufficientPrivilege), undone(app):
        app.execute("insert into users (user_id, name) values (%s, 'mallory')", [uuid4()])


@pytest.mark.parametrize("name", ["", "memstore_app"], ids=["superuser", "app role"])
async def test_what_memstore_runs_is_confined_whoever_logs_in(filled: str, login: Make, name: str) -> None:
    """A superuser ignores every policy, so that memstore steps down; the app role needs no more than the tables."""
    url = login(filled, name) if name else filled
    async with await AsyncMemoryStore.open(url, settings=SETTINGS) as store:
        asked = "select current_user, current_setting('memstore.user_id', true), current_setting('plan_cache_mode')"
        async with store._database.user_transaction(ALICE) as tx:
            found = await (await tx.connection.execute(asked)).fetchone()
            assert found == ("memstore_app", str(ALICE), "force_custom_plan")
            everybody = await (await tx.connection.execute("select distinct user_id from messages")).fetchall()
            assert everybody == [(ALICE,)]
        async with store._database.admin_transaction() as tx:
            found = await (await tx.connection.execute(asked)).fetchone()
            assert found is not None
            assert found[:2] in {("memstore_app", ""), ("memstore_app", None)}
            assert await (await tx.connection.execute("select text from messages")).fetchall() == []
        assert [(await store.stats(user=name))["messages"] for name in ("alice", "bob", "carol")] == [12, 12, 0]
        assert [user async for user in store.users()] == ["alice", "bob"]


async def test_a_statement_that_forgets_the_user_still_gives_one_users_rows(filled: str) -> None:
    """The WHERE is for the plan; the promise is the policy's."""
    async with (
        await AsyncMemoryStore.open(filled, settings=SETTINGS) as store,
        store._database.user_transaction(ALICE) as tx,
    ):
        tx.user_id = BOB
        assert await stored.conversations(tx) == []
        assert set((await stored.counts(tx)).values()) == {0}


async def test_nothing_is_left_on_a_connection_that_many_share(url: str) -> None:
    """One connection, two users, everything at once: each call begins where the last one ended."""
    async with await AsyncMemoryStore.open(url, settings=SETTINGS | {"pool_size": 1}) as store:

        async def talk(name: str, turn: int) -> None:
            trip = store.user(name).conversation("c")
            await trip.add("user", f"{SAID[name]} Turn {turn}.", external_id=f"{name}{turn}")
            other = "Leeds" if name == "alice" else "Porto"
            context = await trip.context("Where do I live?", budget=600)
            assert other not in str(context.messages)
            assert other not in str(await trip.user.recall("I live in"))
            assert other not in str(await trip.user.facts()) + str(await trip.messages())

        for turn in range(3):
            await asyncio.gather(*(talk(name, turn) for name in SAID))
            assert (await store.derive()).failed == ()
        with pytest.raises(memstore.Conflict):
            await store.user("alice").conversation("c").add("user", "other words", external_id="alice0")
        async with store._database._pool.connection() as connection:
            left = await connection.execute(
                "select current_user = session_user, current_setting('memstore.user_id', true),"
                " current_setting('memstore.operator', true), current_setting('plan_cache_mode')"
            )
            assert await left.fetchone() in {(True, "", "", "auto"), (True, None, None, "auto")}
            async with connection.transaction():
                await connection.execute("set local role memstore_app")
                assert await (await connection.execute("select * from messages")).fetchall() == []


async def test_two_scopes_at_once_do_not_mix(filled: str) -> None:
    async with await AsyncMemoryStore.open(filled, settings=SETTINGS | {"pool_size": 2}) as store:
        both = asyncio.Barrier(2)

        async def seen(user: UUID) -> set[UUID]:
            found: set[UUID] = set()
            async with store._database.user_transaction(user) as tx:
                for _ in range(5):
                    await both.wait()
                    rows = await (await tx.connection.execute("select user_id from messages")).fetchall()
                    found.update(row[0] for row in rows)
            return found

        async with asyncio.timeout(20):
            assert await asyncio.gather(seen(ALICE), seen(BOB)) == [{ALICE}, {BOB}]


@pytest.mark.parametrize(
    ("change", "becomes"),
    [
        ("grant memstore_app to {}", True),
        ("revoke memstore_app from {}", False),
        ("grant memstore_app to {} with set false", False),
    ],
    ids=["a member", "no member", "a member that may not become it"],
)
def test_an_ordinary_owner_is_confined_too(
    new_database: Make, new_role: Make, login: Make, server_url: str, change: str, becomes: bool
) -> None:
    """The owner of the tables is no exception: FORCE. It holds also where the right to become the app role is gone."""
    owner = new_role()
    url = login(new_database(owner=owner), owner)
    with psycopg.connect(server_url, autocommit=True) as superuser:
        superuser.execute(f"grant memstore_app to {owner}")
        with psycopg.connect(login(url, superuser.info.user), autocommit=True) as inside:
            inside.execute("create extension vector")
        migrations.prepare(url, upgrade_old=False)
        if "with set" in change and superuser.info.server_version < 160000:
            pytest.skip("before Postgres 16 every member may")
        superuser.execute(change.format(owner))
    fill(url)
    with memstore.open(url, settings=SETTINGS) as store:
        assert "Leeds" in store.user("bob").recall("Where do I live?", tiers=["messages"])[0].text
        assert list(store.users()) == ["alice", "bob"]
        with store._database.user_transaction(ALICE) as tx:
            asked = tx.connection.execute("select current_user").fetchone()
            assert asked == ("memstore_app" if becomes else owner,)
            assert {table: owners(tx.connection, table) for table in TABLES} == {table: {ALICE} for table in TABLES}
    with psycopg.connect(url) as connection:
        assert connection.execute("select current_user").fetchone() == (owner,)
        assert counts(connection) == dict.fromkeys(TABLES, 0)
