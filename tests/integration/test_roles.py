"""Four roles: what each may do, by the product and in raw SQL; and how logins get them, with no superuser at hand."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from mcp import Client
from psycopg.errors import InsufficientPrivilege

import memstore
from memstore.errors import DatabaseError, InvalidInput
from memstore.server.mcp.server import MemoryServer
from memstore.store import migrations, roles
from memstore.store.roles import RoleGrant
from tests.integration.test_isolation import ALICE, BOB, SETTINGS, TABLES, counts, owners, say

Make = Callable[..., str]
HISTORY = [
    {"user": user, "conversation": "old", "role": "user", "content": f"I live in {place}.", "external_id": str(n)}
    for n, (user, place) in enumerate([("alice", "Faro"), ("bob", "Bath"), ("carol", "Graz")])
]


@pytest.fixture(scope="module")
def granted(filled: str, new_role: Make, login: Make) -> Callable[[str], str]:
    """Give the URL of a login that was granted a role."""
    made: dict[str, str] = {}

    def of(role: str) -> str:
        if role not in made:
            name = new_role()
            assert roles.grant(filled, name, role) == RoleGrant(name, role, True)
            made[role] = login(filled, name)
        return made[role]

    return of


@pytest.mark.parametrize("role", roles.ROLE_NAMES)
def test_a_store_steps_down_to_its_role(granted: Callable[[str], str], role: str) -> None:
    with memstore.open(granted(role), settings=SETTINGS) as store:
        assert store.role == role
        with store._database.admin_transaction() as tx:
            assert tx.connection.execute("select current_user").fetchone() == (f"memstore_{role}",)


def test_a_login_with_another_encoding_stores_every_character(filled: str, new_role: Make, login: Make) -> None:
    name = new_role()
    roles.grant(filled, name, "app")
    with psycopg.connect(filled, autocommit=True) as owner:
        owner.execute(f"alter role {name} set client_encoding to 'LATIN1'")
    with memstore.open(login(filled, name), settings=SETTINGS) as store:
        message = store.user("zoë").conversation("c").add("user", "日本語 🛫")
        assert store.user("zoë").messages([message.id])[0].text == "日本語 🛫"


def test_the_application_verifies_erasures_where_there_is_a_queue_that_it_may_not_read(
    granted: Callable[[str], str], filled: str
) -> None:
    with memstore.open(filled, settings=SETTINGS) as owner:
        owner.jobs()  # makes the queue
    with memstore.open(granted("app"), settings=SETTINGS) as store:
        store.user("dora").conversation("c").add("user", "I live in Graz.")
        certificate = store.user("dora").erase()
        assert store.verify_erasure(certificate).is_clean
        with pytest.raises(DatabaseError, match="permission denied for table procrastinate_jobs"):
            store.job_counts()


def test_the_reader_recalls_and_stores_nothing(granted: Callable[[str], str], filled: str) -> None:
    with psycopg.connect(filled) as superuser:
        before = counts(superuser)
    with memstore.open(granted("reader"), settings=SETTINGS) as store:
        alice = store.user("alice")
        assert "Porto" in alice.recall("Where do I live?", limit=1)[0].text
        context = alice.conversation("c").context("Where do I live?", budget=400)
        assert "Porto" in str(context.messages)
        assert context.receipt.id is None, "of which none is kept"
        assert {fact.state for fact in alice.facts()} == {"active"}
        assert alice.documents().get(("notes",), "first") is not None, "though it lives no longer for it"
        assert [one.key for one in alice.documents().search(query="Porto")] == ["first"]
        for call in (
            lambda: alice.conversation("c").add("user", "More."),
            lambda: alice.add_fact("I play chess.", type="preference"),
            lambda: store.derive() if store.stats()["pending"] else alice.conversation("c").add("user", "More."),
        ):
            with pytest.raises(DatabaseError, match=r"permission denied.* memstore db grant LOGIN --role app"):
                call()
    with psycopg.connect(filled) as superuser:
        assert counts(superuser) == before


async def test_tools_that_read_need_no_more_than_the_reader(granted: Callable[[str], str], filled: str) -> None:
    with memstore.open(filled, settings=SETTINGS) as owner:
        owner.user("alice").conversation("c").add("user", "This waits for a deriver.")
        fact = str(owner.user("alice").facts()[0].id)
    asked: dict[str, dict[str, str]] = {
        "search_memories": {"query": "Where do I live?"},
        "get_memory": {"id": f"fact:{fact}"},
        "list_memories": {},
        "get_context": {"query": "Where do I live?"},
    }
    async with await memstore.open_async(granted("reader"), settings=SETTINGS) as store:
        server = MemoryServer(store, "alice")
        async with Client(server) as client:
            reading = {tool.name for tool in (await client.list_tools()).tools if tool.annotations.read_only_hint}
            assert reading == set(asked)
            for tool, arguments in asked.items():
                answer = await client.call_tool(tool, arguments)
                assert not answer.is_error, answer
                assert "Porto" in str(answer.content)
        assert not server.background.is_pending("alice"), "nothing that cannot be stored is derived"


def test_the_loader_brings_history_in_and_sees_nothing_derived(
    granted: Callable[[str], str], filled: str, tmp_path: Path
) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in HISTORY))
    with memstore.open(granted("loader"), settings=SETTINGS) as store:
        assert [store.import_file(path).new for _ in range(2)] == [3, 0]
        assert [one.name for one in store.user("carol").conversations()] == ["old"]
        for call in (lambda: store.user("alice").facts(), lambda: store.user("alice").recall("Where do I live?")):
            with pytest.raises(DatabaseError, match="permission denied"):
                call()
    with psycopg.connect(granted("loader")) as connection:
        say(connection, "user_id", ALICE)
        assert owners(connection, "messages") == {ALICE}
        written = ("delete from messages", "delete from users", "update messages set text = ''", "truncate messages")
        for statement in (*written, "select from facts", "select from receipts", "select from item_text"):
            with pytest.raises(InsufficientPrivilege), connection.transaction():
                connection.execute(statement)
    with memstore.open(filled, settings=SETTINGS) as store:
        assert store.derive().failed == ()
        assert "Graz" in store.user("carol").recall("Where do I live?", limit=1)[0].text


def test_who_may_not_erase_does_not_and_the_loader_brings_nothing_back(
    granted: Callable[[str], str], filled: str, tmp_path: Path
) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text("".join(json.dumps(line | {"user": "erin"}) + "\n" for line in HISTORY))
    with memstore.open(filled, settings=SETTINGS) as store:
        assert store.import_file(path).new == 3
        store.user("erin").erase_message(store.user("erin").conversation("old").messages()[0])
    with memstore.open(granted("loader"), settings=SETTINGS) as store:
        done = store.import_file(path)
        assert (done.new, done.known, done.ignored) == (0, 2, {"erased before": 1})
    for role in ("loader", "reader", "admin"):
        with memstore.open(granted(role), settings=SETTINGS) as store:
            for erase in (store.user("erin").erase, store.user("erin").conversation("old").erase):
                with pytest.raises(DatabaseError, match="permission denied"):
                    erase()
    with memstore.open(granted("app"), settings=SETTINGS) as store:
        assert store.user("erin").erase().counts["messages"] == 2


def test_the_admin_lists_users_and_reads_nothing_of_theirs(granted: Callable[[str], str]) -> None:
    with memstore.open(granted("admin"), settings=SETTINGS) as store:
        assert {"alice", "bob"} <= set(store.users())
        for call in (
            lambda: store.user("alice").conversation("c").messages(),
            lambda: store.user("alice").recall("Where do I live?"),
            lambda: store.user("alice").facts(),
            lambda: store.user("alice").conversations(),
            lambda: store.user("alice").conversation("c").add("user", "More."),
            lambda: store.stats(),
        ):
            with pytest.raises(DatabaseError, match="permission denied"):
                call()
    with psycopg.connect(granted("admin"), autocommit=True) as connection:
        for table in {*TABLES, "backfills", "api_tokens", "webhooks", "webhook_events", "store_keys"} - {"users"}:
            for user in (ALICE, BOB):
                with pytest.raises(InsufficientPrivilege), connection.transaction():
                    say(connection, "user_id", user)
                    say(connection, "operator", "on")
                    connection.execute(f"select from {table}")
        with pytest.raises(InsufficientPrivilege):
            connection.execute("select settings from users")
        assert connection.execute("select user_id, name, created_at from users").fetchall() == [], (
            "unless it asks as such"
        )
        for statement in ("delete from users", "update users set name = 'x'", "set role memstore_app"):
            with pytest.raises(InsufficientPrivilege):
                connection.execute(statement)


@pytest.mark.parametrize(
    ("login_name", "role", "error", "words"),
    [
        ("nobody_here", "app", DatabaseError, r"""no login 'nobody_here'.*CREATE ROLE "nobody_here" LOGIN"""),
        ("o'brien\"; drop", "app", DatabaseError, r'CREATE ROLE "o\'brien""; drop" LOGIN'),
        ("postgres", "owner", InvalidInput, "none of app, loader, reader, admin"),
    ],
)
def test_what_cannot_be_granted_is_told(
    filled: str, login_name: str, role: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        roles.grant(filled, login_name, role)


# Managed Postgres: nobody is a superuser.


def test_an_owner_who_may_make_roles_needs_no_superuser(
    new_database: Make, new_role: Make, login: Make, server_url: str, without_roles: None
) -> None:
    owner, application = new_role("createrole"), new_role()
    url = login(new_database(owner=owner), owner)
    extended(server_url, url, login)
    migrations.prepare(url, upgrade_old=False)
    for role in roles.ROLE_NAMES:
        assert roles.grant(url, application, role) == RoleGrant(application, role, True)
    with memstore.open(login(url, application), settings=SETTINGS) as store:
        store.user("alice").conversation("c").add("user", "I live in Porto.")
        assert store.derive().failed == ()
    with psycopg.connect(login(url, application)) as connection:
        assert owners(connection, "messages") == set()
        say(connection, "user_id", BOB)
        assert owners(connection, "messages") == set()


def test_an_owner_without_any_right_is_told_what_an_administrator_has_to_run(
    new_database: Make, new_role: Make, login: Make, server_url: str, without_roles: None
) -> None:
    """Each error names one statement; run one after the other they are all that is needed."""
    owner, application = new_role(), new_role()
    url = login(new_database(owner=owner), owner)
    extended(server_url, url, login)
    ran = []
    with psycopg.connect(server_url, autocommit=True) as administrator:
        for call in (
            lambda: migrations.prepare(url, upgrade_old=False),
            *(lambda role=role: roles.grant(url, application, role) for role in roles.ROLE_NAMES),
        ):
            for _ in range(5):
                try:
                    call()
                    break
                except DatabaseError as error:
                    found = re.search(r"As an administrator: (.*?;?)(?:; then try again\.|$)", str(error))
                    assert found, str(error)
                    ran.append(found[1].rstrip(";").split(";")[0])
                    for statement in found[1].split(";"):
                        if statement.strip():
                            administrator.execute(statement)
    assert len(ran) <= 9, ran
    with memstore.open(login(url, application), settings=SETTINGS) as store:
        assert store.role == "app"
        store.user("alice").conversation("c").add("user", "I live in Porto.")


def extended(server_url: str, url: str, login: Make) -> None:
    """Make pgvector known in a database, as managed servers let owners do."""
    with psycopg.connect(server_url) as superuser:
        name = superuser.info.user
    with psycopg.connect(login(url, name), autocommit=True) as inside:
        inside.execute("create extension vector")
