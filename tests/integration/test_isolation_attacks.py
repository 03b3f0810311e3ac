"""Whoever runs SQL as an application's login, in somebody's scope, tries to get at somebody else's rows."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.errors import FeatureNotSupported, InsufficientPrivilege, InvalidFunctionDefinition

import memstore
from memstore import Fact
from memstore.store import queue, roles
from tests.integration.test_isolation import ALICE, BOB, SETTINGS, TABLES, count, fill, owners, say, undone

Rows = psycopg.Connection[Any]
Make = Callable[..., str]
BOBS = ("Leeds", "cello", "for bob")
STORE = Path(memstore.__file__).parent / "store"


@pytest.fixture(scope="module")
def filled(filled: str) -> str:
    """That database with a queue."""
    queue.prepare_queue(filled)
    with psycopg.connect(filled, autocommit=True) as superuser:
        superuser.execute("analyze")  # so that there are statistics to look into
    return filled


@pytest.fixture(scope="module")
def application(filled: str, new_role: Make, login: Make) -> str:
    """The URL of an application: its login is a member of the app role and nothing else."""
    name = new_role()
    assert roles.grant(filled, name, "app").confined
    return login(filled, name)


@pytest.fixture
def alice(application: str) -> Iterator[Rows]:
    """A connection as that login in alice's scope, in a transaction that is not committed."""
    with psycopg.connect(application) as connection:
        connection.execute("set local role memstore_app")
        say(connection, "user_id", ALICE)
        assert owners(connection, "messages") == {ALICE}
        yield connection
        connection.rollback()


def shown(connection: Rows) -> set[UUID]:
    """Give whose rows are seen, in whichever table; a table that is out of reach shows nobody's."""
    found: set[UUID] = set()
    for table in TABLES:
        try:
            with undone(connection):
                found |= owners(connection, table)
        except InsufficientPrivilege:
            pass
    return found


@pytest.mark.parametrize(
    ("statement", "refused"),
    [
        ("reset role", False),
        ("set role none", False),
        ("set local role memstore_app", False),
        ("set session authorization default", False),
        ("set role {superuser}", True),
        ("set session authorization {superuser}", True),
        ("set local role memstore_admin", True),
        ("set local role pg_read_all_data", True),
        ("alter role memstore_app bypassrls", True),
        ("alter role current_user superuser", True),
        ("grant pg_read_all_data to memstore_app", True),
        ("grant {superuser} to current_user", True),
        ("create role helper bypassrls", True),
        ("alter table messages disable row level security", True),
        ("alter table messages no force row level security", True),
        ("drop policy by_user on messages", True),
        ("create policy mine on messages using (true)", True),
        ("create view everything as select * from messages", True),
        ("create trigger peek after insert on messages for each row execute function now()", True),
        ("create rule peek as on insert to messages do also select 1", True),
    ],
)
def test_nobody_steps_out_of_the_role(alice: Rows, server_url: str, statement: str, refused: bool) -> None:
    statement = statement.format(superuser=psycopg.conninfo.conninfo_to_dict(server_url)["user"])
    if refused:
        with pytest.raises((InsufficientPrivilege, psycopg.errors.WrongObjectType)), undone(alice):
            alice.execute(statement)
    else:
        alice.execute(statement)
    assert shown(alice) == {ALICE}


def test_row_security_cannot_be_switched_off(alice: Rows) -> None:
    with pytest.raises(InsufficientPrivilege, match="row-level security"), undone(alice):
        alice.execute("set local row_security = off")
        count(alice, "messages")


@pytest.mark.parametrize("statement", ["reset memstore.user_id", "reset all", "set memstore.user_id = ''"])
def test_without_its_scope_the_login_sees_nobody(alice: Rows, statement: str) -> None:
    alice.execute("reset role")
    alice.execute(statement)
    assert shown(alice) == set()


def test_copy_gives_own_rows_and_takes_none(alice: Rows) -> None:
    for what in ("messages", "(select * from facts)", "(select m.* from users u left join messages m using (user_id))"):
        with alice.cursor().copy(f"copy {what} to stdout") as copied:
            told = b"".join(copied).decode()
        assert "Porto" in told
        assert not any(word in told for word in BOBS)
    with pytest.raises(FeatureNotSupported, match="row-level security"), undone(alice):
        alice.execute("copy messages from stdin")
    for place in ("program 'id'", "'/tmp/memstore-peek'"):
        for way in ("to", "from"):
            with pytest.raises(InsufficientPrivilege), undone(alice):
                alice.execute(f"copy facts {way} {place}")


@pytest.mark.parametrize(
    "statement",
    [
        "select pg_read_file('postgresql.conf')",
        "select pg_ls_dir('.')",
        "select lo_import('/etc/hostname')",
        "select lo_export(1, '/tmp/memstore-peek')",
        "select * from pg_statistic",
        "select * from pg_authid",
        "create function peek() returns text language c as 'peek'",
        "select * from procrastinate_jobs",
        "delete from procrastinate_jobs",
        "insert into procrastinate_jobs (queue_name, task_name) values ('derive', 'memstore.derive')",
    ],
)
def test_what_reads_past_the_tables_is_refused(alice: Rows, statement: str) -> None:
    with pytest.raises((InsufficientPrivilege, InvalidFunctionDefinition)) as caught:
        alice.execute(statement)
    assert not any(word in str(caught.value) for word in BOBS)


def refusal(connection: Rows, statement: str, values: list[object]) -> tuple[object, ...]:
    """Give how the server refuses, as somebody who looks for a difference would read it."""
    with pytest.raises(psycopg.Error) as caught, undone(connection):
        connection.execute(statement, values)
    told = caught.value.diag
    detail = re.sub(r"[0-9a-f-]{36}", "ID", told.message_detail or "")
    return caught.value.sqlstate, told.message_primary, detail, told.constraint_name


def test_what_somebody_has_and_what_nobody_has_are_refused_alike(alice: Rows, filled: str) -> None:
    """Unique and foreign keys are checked past the policies: they must not tell whether there is such a row."""
    with psycopg.connect(filled) as superuser:
        ids = [
            superuser.execute(f"select id from {table} where user_id = %s limit 1", [BOB]).fetchone()
            for table in ("conversations", "messages", "facts", "receipts")
        ]
    conversation, message, fact, receipt = (row[0] for row in ids if row)
    new = "insert into users (user_id, name) values (%s, 'x')"
    rest_on = "insert into fact_sources (user_id, fact_id, message_id) values (%s, %s, %s)"
    say_more = (
        "insert into messages (user_id, conversation_id, seq, id, role, tokens, counter, occurred_at)"
        " values (%s, %s, 1, %s, 'user', 1, 'w', now())"
    )
    tell = "insert into receipts (user_id, id, conversation_id, budget, tokens, body) values (%s, %s, %s, 1, 1, '{}')"
    for statement, there, nowhere in (
        (new, [BOB], [uuid4()]),
        (f"{new} on conflict do nothing", [BOB], [uuid4()]),
        (f"{new} on conflict (user_id) do update set name = 'x'", [BOB], [uuid4()]),
        ("insert into conversations (user_id, id, name) values (%s, %s, 'x')", [BOB, conversation], [BOB, uuid4()]),
        (say_more, [BOB, conversation, message], [BOB, conversation, uuid4()]),
        (say_more, [ALICE, conversation, uuid4()], [ALICE, uuid4(), uuid4()]),
        (tell, [BOB, receipt, conversation], [BOB, uuid4(), conversation]),
        (tell, [ALICE, uuid4(), conversation], [ALICE, uuid4(), uuid4()]),
        (rest_on, [ALICE, fact, message], [ALICE, uuid4(), message]),
    ):  # fmt: skip
        assert refusal(alice, statement, list(there)) == refusal(alice, statement, list(nowhere)), statement
    for table, id in (("facts", fact), ("messages", message), ("receipts", receipt)):
        assert alice.execute(f"delete from {table} where id = %s", [id]).rowcount == 0
    for id in (message, fact, receipt):  # the same id as one's own is no conflict
        own = alice.execute("select id from conversations limit 1").fetchone()
        assert own is not None
        assert alice.execute(tell, [ALICE, id, own[0]]).rowcount == 1


def test_no_function_runs_with_the_owner_s_rights(filled: str) -> None:
    with psycopg.connect(filled) as superuser:
        found = superuser.execute(
            "select proname from pg_proc where prosecdef and pronamespace = 'public'::regnamespace"
        ).fetchall()
    assert found == []


def test_a_table_left_in_a_connection_is_not_taken_for_the_store_s(filled: str) -> None:
    """Else whoever ran SQL there, as behind a pooler, would be sent what others say next."""
    with memstore.open(filled, settings=SETTINGS | {"pool_size": 1}) as store:
        with store._database._pool.connection() as connection:
            for table in TABLES:
                connection.execute(f"create temp table {table} as select * from public.{table}")
                connection.execute(f"grant all on {table} to public")
        carol = store.user("carol")
        carol.conversation("c").add("user", "I live in Cork.")
        assert store.derive().failed == ()
        assert [fact.text for fact in carol.facts()] == ["The user lives in Cork."]
        assert "Cork" in carol.recall("Cork", limit=1)[0].text
        with store._database._pool.connection() as connection:
            for table in TABLES:
                owned = connection.execute(f"select distinct user_id from pg_temp.{table}").fetchall()
                assert {user for (user,) in owned} == {ALICE, BOB}, "what it held when it was made"


def test_nothing_is_kept_where_policies_do_not_reach(filled: str) -> None:
    """Tables have policies, and there is nothing but tables: tests/integration/test_schema.py."""
    with psycopg.connect(filled) as superuser:
        assert superuser.execute("select count(*) from pg_largeobject_metadata").fetchone() == (0,)
        opened = """select c.relname, a.privilege_type from pg_class c, aclexplode(c.relacl) a
                    where c.relnamespace = 'public'::regnamespace and a.grantee = 0"""
        assert superuser.execute(opened).fetchall() == [], "nothing for everybody"


# Ids of another user in every call that takes one.


def test_somebody_else_s_ids_are_nobody_s_in_every_call(clone: str) -> None:
    fill(clone)
    with memstore.open(clone, settings=SETTINGS) as store:
        alice, bob = store.user("alice"), store.user("bob")
        context = bob.conversation("c").context("Where do I live?", budget=400)
        fact = bob.facts()[0]
        change = bob.fact_history(bob.facts(state="retracted")[0])[-1]
        message = bob.conversation("c").messages()[0]
        bobs = str([bob.facts(), bob.conversation("c").messages(), bob.conversation("c").receipts()])
        calls: dict[str, Callable[[], object]] = {
            "receipt": lambda: alice.receipt(str(context.receipt.id)),
            "receipt of a context": lambda: alice.receipt(context),
            "replay": lambda: alice.replay(str(context.receipt.id)),
            "replay of a context": lambda: alice.replay(context),
            "edit_fact": lambda: alice.edit_fact(fact, text="mine"),
            "edit_fact by id": lambda: alice.edit_fact(fact.id, text="mine"),
            "retract_fact": lambda: alice.retract_fact(fact),
            "undo": lambda: alice.undo(change),
            "fact_history": lambda: alice.fact_history(fact.id),
            "resolve_id of a fact": lambda: alice.resolve_id(fact.id.hex[:12], kind="fact"),
            "resolve_id of a receipt": lambda: alice.resolve_id(str(context.receipt.id)[:12], kind="receipt"),
            "resolve_id of a change": lambda: alice.resolve_id(change.id.hex[:12], kind="change"),
            "add_fact": lambda: alice.add_fact("I play the flute.", type="preference", sources=[message.id]),
            "erase_message": lambda: alice.erase_message(message),
            "erase_fact": lambda: alice.erase_fact(fact),
        }
        for name, call in calls.items():
            with pytest.raises(memstore.MemstoreError) as caught:
                call()
            assert not any(word in str(caught.value) for word in BOBS), name
        cursor = bob.events(limit=1)[0].cursor
        assert {event.user_id for event in alice.events(after=cursor)} <= {ALICE}
        same = alice.conversation("c").add("user", "Mine.", external_id="0")
        assert bob.conversation("c").add("user", "His.", external_id="0").id != same.id
        for found in (alice.recall("cello Leeds"), alice.facts(), alice.entity("Leeds")):
            assert not any(word in str(found) for word in ("cello", "for bob"))
        assert bobs in str([bob.facts(), bob.conversation("c").messages(to_seq=13), bob.conversation("c").receipts()])
        assert isinstance(fact, Fact)


# No statement runs outside a scope.

NOWHERE = """
create function nowhere() returns bool stable language plpgsql as $$
begin
    if coalesce(current_setting('memstore.user_id', true), '') <> '' then
        if current_setting('role') <> 'memstore_app' then raise 'in a scope, but as %', current_user; end if;
    elsif coalesce(current_setting('memstore.operator', true), '') <> 'on' then raise 'outside of any scope';
    end if;
    return true;
end $$
"""


def test_no_statement_runs_outside_a_scope(server_url: str, new_database: Make, new_role: Make, login: Make) -> None:
    """Each table complains of whoever looks into it in no scope, or without stepping down."""
    owner = new_role("createrole")
    url = login(new_database(owner=owner), owner)
    with psycopg.connect(server_url, autocommit=True) as superuser:
        superuser.execute(f"grant memstore_app to {owner}")
        with psycopg.connect(login(url, superuser.info.user), autocommit=True) as inside:
            inside.execute("create extension vector")
    with memstore.open(url, settings=SETTINGS):
        pass
    with psycopg.connect(url) as own:
        own.execute(NOWHERE)
        own.execute("grant execute on function nowhere to public")
        policies = "select tablename, policyname, qual from pg_policies where policyname = 'by_user' or tablename = %s"
        for table, policy, rule in own.execute(policies, ["backfills"]).fetchall():
            # asked of every row, before it is asked whose it is
            own.execute(f"alter policy {policy} on {table} using (case when nowhere() then {rule} end)")
    talked: list[Callable[[memstore.UserScope], object]] = [
        lambda user: user.recall("Where do I live?"),
        lambda user: user.conversation("c").statistics(),
        lambda user: [user.conversations(), user.events(), user.invalid_responses()],
        lambda user: user.replay(user.conversation("c").receipts()[0]),
    ]
    fill_by_calls(url)
    with memstore.open(url, settings=SETTINGS | {"max_chunks_in_memory": 5}) as store:
        store.user("alice").conversation("c").add("user", "And now I live in Faro.")
        assert store.derive().failed == ()
        for call in talked:
            call(store.user("alice"))
        assert list(store.users()) == ["alice", "bob"]
        assert store.job_counts().failed == 0
        begun = store.backfills.begin()
        assert store.backfills.status(begun).left == {}
        assert store.backfills.verify() == []
        assert store.stats()["messages"] == 25
        assert "bob" in store.unindexed_users()
    with psycopg.connect(url) as own, pytest.raises(psycopg.errors.RaiseException, match="outside of any scope"):
        own.execute("select * from messages")


def fill_by_calls(url: str) -> None:
    """Fill as an application does; rows that only a chat model makes need none here."""
    with memstore.open(url, settings=SETTINGS | {"segment_tokens": 50}) as store:
        for name in ("alice", "bob"):
            talk = store.user(name).conversation("c")
            talk.add_many([{"role": "user", "content": f"Hello {n} from {name}. I live in Porto."} for n in range(12)])
        assert store.derive().failed == ()
        for name in ("alice", "bob"):
            store.user(name).conversation("c").context("Where do I live?", budget=400)


def test_no_statement_leaves_anything_in_a_session() -> None:
    """Behind a pooler, or on a pooled connection, it would be the next one's."""
    leaving = re.compile(
        r"\bSET (?!LOCAL)(?=\w+(\.\w+)? *(=|TO)\b)|\bSET SESSION\b|WITH HOLD|\bPREPARE\b|\bLISTEN\b|\bTEMP(ORARY)?\b"
        r"|pg_(try_)?advisory_lock|set_config\(.*, false\)",
        re.I,
    )
    found = {}
    for path in STORE.glob("sql/*.sql"):
        text = re.sub(r"--.*", "", path.read_text(encoding="utf-8"))
        for statement in leaving.finditer(text):
            found[path.stem] = text[max(0, statement.start() - 40) : statement.end()].strip()
    assert found.keys() == {"vector_indexes"}, found  # the builder's memory, and not behind a pooler
    assert "maintenance_work_mem" in found["vector_indexes"]


@pytest.mark.parametrize("table", TABLES)
def test_a_login_without_any_role_reaches_nothing(filled: str, new_role: Make, login: Make, table: str) -> None:
    with psycopg.connect(login(filled, new_role())) as connection:
        say(connection, "user_id", ALICE)
        with pytest.raises(InsufficientPrivilege):
            count(connection, table)
