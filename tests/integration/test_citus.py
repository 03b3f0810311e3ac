"""A real Citus: `pytest --dsn postgresql://…/postgres -m citus`, the coordinator's, in a database that knows its nodes.

With the same --dsn all other tests have a distributed schema too; docs/how-to/many-machines.md says which were run.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from mako.template import Template
from typer.testing import CliRunner

import memstore
from memstore import ids
from memstore.cli import app
from memstore.client.worker import WorkingStore
from memstore.derive.worker import enqueue_pending
from memstore.errors import DatabaseError
from memstore.store import distribution, migrations, roles
from tests.conftest import add_nodes, create_database, drop_database, is_citus, with_database
from tests.integration.test_isolation import SETTINGS, fill
from tests.integration.test_statements import EVERY, OF_THE_QUEUE, PLANNED, numbered

pytestmark = pytest.mark.citus
Make = Callable[..., str]
ALICE = ids.user_id("alice")
LITERALS = {
    "uuid": str(ALICE),
    "text": "x",
    "jsonb": "{}",
    "boolean": "true",
    "date": "2026-01-01",
    "interval": "1 day",
    "timestamp with time zone": "2026-01-01 00:00Z",
    "bytea": "\\x00",
    "vector": "[1,2]",
}
MODELS = {("documents", name) for name in ("lacking", "still_lacking", "count_lacking")} | {
    ("vectors", "lacking"),
    ("chunks", "arrays"),
}  # whose model is there


@pytest.fixture(scope="module", autouse=True)
def cluster(server_url: str) -> None:
    if not is_citus(server_url):
        pytest.skip("needs --dsn of a Citus with workers")


@pytest.fixture
def owned(server_url: str, template: str, new_role: Make, login: Make) -> Iterator[str]:
    """The URL of a database with Citus and no tables, as its owner's: who may make roles, and is no superuser."""
    name, owner = f"test_{uuid4().hex[:12]}", new_role("createrole")
    create_database(server_url, name, owner=owner)
    with psycopg.connect(
        server_url, autocommit=True
    ) as superuser:  # roles are the server's, and its superuser's by now
        for role in roles.ROLES:
            superuser.execute(f"grant {role} to {owner} with admin option")
    add_nodes(server_url, name)
    yield login(with_database(server_url, name), owner)
    drop_database(server_url, name)


@pytest.fixture
def distributed(owned: str) -> str:
    migrations.prepare(owned, upgrade_old=True)
    distribution.distribute(owned)
    return owned


def _state(url: str, user: str) -> object:
    with memstore.open(url, settings=SETTINGS) as store:
        return [hit.id for hit in store.user(user).recall("Lisbon")], [fact.text for fact in store.user(user).facts()]


def test_an_owner_makes_fills_distributes_and_grants(owned: str, new_role: Make, login: Make, tmp_path: Path) -> None:
    """Neither is vector made again (its owner is another), nor may a role that Citus connects as not log in."""
    migrations.prepare(owned, upgrade_old=True)
    fill(owned)
    before = [_state(owned, user) for user in ("alice", "bob")]
    distribution.distribute(owned)
    assert [_state(owned, user) for user in ("alice", "bob")] == before
    granted = {}
    for role in roles.ROLE_NAMES:
        name = new_role()
        assert roles.grant(owned, name, role).confined
        granted[role] = login(owned, name)
    with memstore.open(granted["app"], settings=SETTINGS) as store:
        store.user("carol").conversation("c").add("user", "I live in Ghent and I am allergic to nuts.")
        store.derive()
        assert [fact.text for fact in store.user("carol").facts()] and store.user("carol").recall("nuts")
        assert "Ghent" not in str(store.user("bob").recall("Ghent nuts"))
    with memstore.open(granted["reader"], settings=SETTINGS) as store:
        assert store.user("carol").conversation("c").context("Where do I live?", budget=400).messages
    with memstore.open(granted["loader"], settings=SETTINGS) as store:
        assert store.user("dora").conversation("c").add("user", "I live in Graz.").seq == 1
    with memstore.open(granted["admin"], settings=SETTINGS) as store:
        assert list(store.users()) == ["alice", "bob", "carol", "dora"]


NEXT = """
-- add_column --
alter table messages add column mood text

-- index_column --
create index messages_by_mood on messages (user_id, mood)

-- create_table --
create table moods (user_id uuid not null references users on delete cascade, id uuid not null, words text not null,
                    primary key (user_id, id))

-- confine --
alter table moods enable row level security, force row level security

-- allow --
create policy by_user on moods using (user_id = nullif(current_setting('memstore.user_id', true), '')::uuid)
"""


def test_a_revision_reaches_every_node_and_its_tables_are_distributed(
    distributed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with memstore.open(distributed, settings=SETTINGS) as store:
        store.user("gina").conversation("c").add("user", "I live in Graz.")
    folder = shutil.copytree(migrations.scripts(), tmp_path / "schema")
    made = Template(filename=str(folder / "script.py.mako")).render(
        message="", up_revision="9999", down_revision=migrations.NEWEST_REVISION
    )
    (folder / "versions" / "9999_next.py").write_text(str(made))
    (folder / "versions" / "9999_next.sql").write_text(NEXT)
    monkeypatch.setattr(migrations, "scripts", lambda: folder)
    monkeypatch.setattr(migrations, "NEWEST_REVISION", "9999")
    ended = CliRunner().invoke(app, ["db", "upgrade", "-d", distributed])
    assert (ended.exit_code, "moods is distributed" in ended.stderr) == (0, True)
    assert distribution.distribute(distributed) == distribution.DistributedTables((), ())
    with psycopg.connect(distributed) as connection:
        connection.execute("set local citus.propagate_set_commands = 'local'")
        connection.execute(f"set local memstore.user_id = '{ids.user_id('gina')}'")
        values = [ids.user_id("gina"), uuid4()]
        connection.execute("insert into moods values (%s, %s, 'glad')", values)
        connection.execute("update messages set mood = 'glad' where user_id = %s", values[:1])
        assert connection.execute("select mood from messages where user_id = %s", values[:1]).fetchall() == [("glad",)]
    with memstore.open(distributed, settings=SETTINGS) as store:
        assert store.user("gina").erase().counts["messages"] == 1


@pytest.mark.parametrize("values", ["null", "given", "false"])
def test_every_statement_is_planned(clone: str, values: str) -> None:
    """With values, and with those that make a side empty: what Citus then no longer knows to be of one user."""
    failed = {}
    with psycopg.connect(clone, autocommit=True) as connection:
        for key in set(PLANNED) - OF_THE_QUEUE:
            text, names = numbered(EVERY[key])
            try:
                with connection.transaction(force_rollback=True):
                    connection.execute("set local plan_cache_mode = force_custom_plan")
                    connection.execute(f"prepare tried as {text}")
                    [(types,)] = connection.execute(
                        "select parameter_types::text[] from pg_prepared_statements where name = 'tried'"
                    ).fetchall()
                    pairs = zip(names, types, strict=True)
                    given = ", ".join(_literal(name, of, values, key in MODELS) for name, of in pairs)
                    connection.execute(f"explain execute tried{f'({given})' if given else ''}")
            except psycopg.Error as error:
                failed[key] = str(error)
            connection.execute("deallocate all")
    assert failed == {}


def _literal(name: str, of: str, values: str, has_model: bool) -> str:
    is_id = name in ("user_id", "id", "conversation_id", "user") or (
        name == "model_id" and (has_model or values == "given")
    )
    if (values == "null" and not is_id) or (name == "model_id" and not is_id):
        return "null"
    kind = of.removesuffix("[]")
    value = "false" if kind == "boolean" and values == "false" else LITERALS.get(kind, "1")
    return f"array['{value}'::{kind}]" if of.endswith("[]") else f"'{value}'::{of}"


def test_nothing_is_sent_to_a_node_twice(clone: str) -> None:
    """For each SET LOCAL Citus sends the text of the whole message to its nodes: what else is in it would run there."""
    sent: list[str] = []
    with memstore.open(
        f"{clone}?options=-ccitus.log_remote_commands%3Don",
        settings=SETTINGS | {"max_chunks_in_memory": 5, "pool_size": 1},
    ) as store:
        with store._database._pool.connection() as connection:
            connection.add_notice_handler(lambda diag: sent.append(str(diag.message_primary)))
        talk = store.user("zoe").conversation("c")
        talk.add_many([{"role": "user", "content": f"I live in Ghent, at number {n}."} for n in range(9)])
        store.derive()
        store.build_indexes()
        assert store.user("zoe").recall("Ghent") and talk.context("Where do I live?", budget=500).receipt.id
    own = [text.removeprefix("issuing ") for text in sent if text.startswith("issuing ")]
    assert sum("INSERT INTO public.messages" in text for text in own) == 1
    settings = [text for text in own if "SET LOCAL" in text]
    assert settings
    for text in settings:
        parts = [part.strip() for part in text.split(";") if part.strip()]
        words = {part.split()[0].upper() for part in parts if not part.startswith("--")}
        assert words <= {"BEGIN", "SET", "SELECT"}, text
        assert sum("SELECT" in part for part in parts) <= 1, text  # Citus' own, of the transaction's number


def test_a_verification_searches_every_node_as_the_user(distributed: str) -> None:
    with memstore.open(distributed, settings=SETTINGS) as store:
        talk = store.user("hana").conversation("c")
        first, _ = talk.add_many([{"role": "user", "content": f"I live in Ghent, at number {n}."} for n in range(2)])
        certificate = store.user("hana").erase_message(first)
        assert store.verify_erasure(certificate).found == {}
        talk.update(title=f"About {first.id}")
        assert store.verify_erasure(certificate).found == {"conversations": 1}


async def test_workers_backfills_tokens_and_erasure(distributed: str) -> None:
    """What the operator has stays on the coordinator, and is asked for beside what users have."""
    async with await WorkingStore.open(distributed, settings=SETTINGS) as store:
        token, erin = await store.tokens.create(user="erin", days=1), ids.user_id("erin")
        talk = store.user("erin").conversation("c")
        await talk.add_many([{"role": "user", "content": f"I live in Ghent, at number {n}."} for n in range(30)])
        backfill = await store.backfills.begin(user="erin")
        assert (await store.backfills.pause(backfill)).backfill.state == "paused"
        await enqueue_pending(store._database)
        assert erin not in {job.user_id for job in await store.jobs()}, "what a paused backfill has waits for it"
        assert (await store.backfills.resume(backfill)).backfill.state == "running"
        await enqueue_pending(store._database)
        with psycopg.connect(distributed) as connection:
            connection.execute("set local citus.propagate_set_commands = 'local'")
            connection.execute(f"set local memstore.user_id = '{erin}'")
            connection.execute("update derivations set last_error = 'Timeout' where user_id = %s", [erin])
        (error,) = {job.error for job in await store.jobs() if job.user_id == erin}
        assert error == "chunks: Timeout, facts: Timeout, summaries: Timeout"
        done = await store.work_until_done(backfill, lambda _: None)
        assert (done.backfill.state, await store.backfills.verify(user="erin")) == ("done", [])
        assert (await store.tokens.revoke(token)).revoked_at is not None
        await store.user("erin").erase()
        assert [one.user for one in await store.tokens.all()] == [None]
        assert await store.backfills.plan(user="erin") is not None


def test_events_are_complete_and_in_order(clone: str) -> None:
    """The number of a transaction is the coordinator's, whatever the nodes count."""
    with memstore.open(clone, settings=SETTINGS) as store:
        talk = store.user("fay").conversation("c")
        for n in range(5):
            talk.add("user", f"Number {n}.")
        late = time.monotonic() + 30
        events = store.user("fay").events(types=["message_added"])
        while len(events) < 5 and time.monotonic() < late:  # they wait for what is open, in other databases too
            events = store.user("fay").events(types=["message_added"])
        assert [event.body["to_seq"] for event in events] == [1, 2, 3, 4, 5]
        later = store.user("fay").events(after=events[2].cursor, types=["message_added"])
        assert [event.body["to_seq"] for event in later] == [4, 5]


def test_shards_move_while_their_users_write(distributed: str) -> None:
    """As docs/how-to/many-machines.md says: the tables' owner does it, who is no superuser."""
    stop, written = Event(), dict[str, int]()

    def write(name: str) -> None:
        with memstore.open(distributed, settings=SETTINGS) as store:
            talk, n = store.user(name).conversation("c"), 1
            while not stop.is_set():
                with suppress(DatabaseError):  # a shard that is split is not there for a moment
                    talk.add("user", f"{name} says {n}.", external_id=str(n))
                    written[name], n = n, n + 1

    writers = [Thread(target=write, args=[f"writer{n}"]) for n in range(3)]
    for writer in writers:
        writer.start()
    try:
        with psycopg.connect(distributed, autocommit=True) as owner:
            change_tables(owner, "no force")
            move(owner, "block_writes")
            move(owner, "auto")
            alone = [ids.user_id("writer0")]
            owner.execute("select isolate_tenant_to_new_shard('users', %s, 'CASCADE', 'block_writes')", alone)
            change_tables(owner, "force")
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert len(written) == 3
    with memstore.open(distributed, settings=SETTINGS) as store:
        for name, last in written.items():
            messages = store.user(name).conversation("c").messages()
            assert [message.text for message in messages] == [f"{name} says {n}." for n in range(1, last + 1)]
            assert [message.seq for message in messages] == list(range(1, last + 1))


def change_tables(owner: psycopg.Connection[Any], policies: str) -> None:
    tables = "select relname from pg_class where relnamespace = 'public'::regnamespace and relrowsecurity"
    for (table,) in owner.execute(tables).fetchall():
        owner.execute(f"alter table {table} {policies} row level security")


def move(owner: psycopg.Connection[Any], mode: str) -> None:
    """Move each shard of users, and all that is theirs, to the other node."""
    nodes = owner.execute("select nodename, nodeport from pg_dist_node where groupid > 0").fetchall()
    shards = "select shardid, nodename, nodeport from citus_shards where table_name = 'users'::regclass"
    for shard, *place in owner.execute(shards).fetchall():
        (other,) = [node for node in nodes if node != tuple(place)]
        owner.execute("select citus_move_shard_placement(%s, %s, %s, %s, %s, %s)", [shard, *place, *other, mode])
