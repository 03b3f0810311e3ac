"""Behind pgbouncer in transaction mode: everything works, no session keeps anything, nobody sees another's rows."""

import asyncio
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import memstore
from memstore import ids
from memstore.client.store import AsyncMemoryStore
from memstore.client.user import AsyncUserScope
from memstore.store.roles import capabilities
from tests.command_line import Run
from tests.conftest import with_database
from tests.helpers.user_rows import rows
from tests.working import HASHING, fill, wait_until_derived, worker

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
needs_pgbouncer = pytest.mark.skipif(PGBOUNCER is None, reason="needs pgbouncer: apt-get install pgbouncer")
PORT = 6432  # of a socket in a folder of its own
SETTINGS = """
[databases]
* = host={host} port={port}
[pgbouncer]
unix_socket_dir = {folder}
listen_port = {listen}
auth_type = trust
auth_file = {folder}/users.txt
admin_users = admin
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 500
client_login_timeout = 10
server_login_retry = 1
logfile = {folder}/log
"""


@contextmanager
def pooled(url: str, size: int) -> Iterator[str]:
    """Run a pooler that holds at most so many sessions of each login; give the URL of the same database through it."""
    given = conninfo_to_dict(url)
    place = {"host": given.get("host", "localhost"), "port": given.get("port", 5432)}
    with tempfile.TemporaryDirectory(prefix="memstore-pooler-") as name:
        folder = Path(name)
        users = {str(given["user"]): str(given.get("password", "")), "memstore_app": "", "admin": ""}
        (folder / "users.txt").write_text("".join(f'"{user}" "{secret}"\n' for user, secret in users.items()))
        (folder / "ini").write_text(SETTINGS.format(**place, folder=folder, listen=PORT, size=size))
        assert PGBOUNCER is not None
        process = subprocess.Popen([PGBOUNCER, "-q", folder / "ini"], **_as_owner_of(folder, str(place["host"])))
        try:
            through = _through(url, folder)
            _wait_for(through, process)
            yield through
        finally:
            process.kill()
            process.wait()


def _as_owner_of(folder: Path, socket: str) -> dict[str, Any]:
    """Give the folder, and the process, to whoever may reach the server's socket: pgbouncer refuses to be root."""
    if os.geteuid() != 0:
        return {}
    owner = 65534
    if socket.startswith("/"):
        owner = Path(socket).stat().st_uid
        for parent in Path(socket).parents:  # a test's own folder is its maker's alone
            closed = parent.stat().st_uid == 0 and not parent.stat().st_mode & stat.S_IXOTH
            if closed and parent.is_relative_to(tempfile.gettempdir()):
                parent.chmod(parent.stat().st_mode | stat.S_IXOTH)
    for path in (folder, *folder.iterdir()):
        os.chown(path, owner, -1)
    return {"user": owner, "group": 65534, "extra_groups": []}


def _through(url: str, folder: Path) -> str:
    parts = urlsplit(url)
    user = f"{quote(str(conninfo_to_dict(url)['user']))}@"
    return parts._replace(netloc=user, query=f"host={quote(str(folder))}&port={PORT}").geturl()


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    late = time.monotonic() + 20
    while True:
        assert process.poll() is None, "pgbouncer has ended"
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            assert time.monotonic() < late, "pgbouncer does not answer"
            time.sleep(0.05)


pytestmark = needs_pgbouncer
DOSE = int(os.environ.get("TEST_DOSE", "1"))
LEFT = """
select current_user = session_user, coalesce(current_setting('memstore.user_id', true), ''),
       coalesce(current_setting('memstore.operator', true), ''), current_setting('search_path'),
       current_setting('plan_cache_mode'), current_setting('synchronous_commit'),
       (select setting from pg_settings where name = 'maintenance_work_mem') = (select boot_val from pg_settings
                                                                                where name = 'maintenance_work_mem'),
       (select count(*) from pg_locks where locktype = 'advisory'),
       (select count(*) from pg_prepared_statements), (select count(*) from pg_cursors),
       (select count(*) from pg_listening_channels()), to_regnamespace('pg_temp') is null
"""


@pytest.fixture
def through(url: str) -> Iterator[str]:
    """The URL of a database whose one session everybody shares."""
    with pooled(url, size=1) as through:
        yield through


def left(url: str) -> Any:
    """Give what the one session keeps, asked by whoever comes next."""
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as connection:
        return connection.execute(LEFT).fetchone()


def test_a_pooler_is_recognized(url: str, through: str, cli: Run) -> None:
    assert not capabilities(url).pooled
    assert capabilities(through).pooled
    assert "through a pooler" in cli("doctor", "-d", through).out


def test_everything_works_and_the_session_keeps_nothing(url: str, twin: str, cli: Run) -> None:
    """Two sessions for eight connections: what is set on one is soon on another's. An index needs both at once."""
    for address in (url, twin):
        fill(address, users=2, conversations=2, messages=60)
    with pooled(url, size=2) as through:
        with memstore.open(through, settings=HASHING | {"max_chunks_in_memory": 50}) as store:
            assert store.derive().failed == ()
            assert store.unindexed_users() == []
            user = store.user("user0")
            assert "user0talk1" in user.recall("What is the plan for user0talk1?", limit=1)[0].text
            context = user.conversation("user0talk0").context("Where do I live?", budget=600)
            assert user.receipt(context).tokens == context.tokens
            assert cli("jobs", "--json", "-d", through).json["counts"]["failed"] == 0
        with memstore.open(twin, settings=HASHING) as store:
            store.derive()
            same = store.user("user0").conversation("user0talk0").context("Where do I live?", budget=600)
        assert context.messages == same.messages
        kept = {left(through) for _ in range(4)}
    assert kept == {left(url)}


def test_a_new_database_is_made_through_a_pooler(server_url: str) -> None:
    name = f"pooled_{uuid4().hex[:8]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        with pooled(with_database(server_url, name), size=1) as through:
            with memstore.open(through, settings=HASHING) as store:
                store.user("alice").conversation("c").add("user", "I live in Porto.")
                assert store.jobs() == []
            assert left(through) == left(with_database(server_url, name))
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_worker_works_through_a_pooler(url: str, twin: str, tmp_path: Path) -> None:
    users = fill(url, users=2, conversations=2, messages=25)
    fill(twin, users=2, conversations=2, messages=25)
    with memstore.open(twin, settings=HASHING) as store:
        store.derive()
    with pooled(url, size=8) as through:
        with worker(through, tmp_path) as process:
            wait_until_derived(url)
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0, (tmp_path / "worker.log").read_text()
        assert rows(url, *users) == rows(twin, *users)
        assert left(through) == left(url)


# Fifty users, each with a word of their own in everything they say, and every answer is searched for the others'.

USERS, SESSIONS = 50, 8
WORD = re.compile(r"zebra(\d\d)")
IDS = {str(ids.user_id(f"user{number}")): number for number in range(USERS)}
UUIDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
Operation = Callable[["Talker"], Awaitable[object]]


class Talker:
    """One of the users, who does things by chance, and knows some ids of everybody."""

    everybody: list[tuple[int, str, UUID]]  # whose, what, which

    def __init__(self, number: int, store: AsyncMemoryStore, chance: random.Random) -> None:
        self.number, self.chance, self.store = number, chance, store
        self.word = f"zebra{number:02}"
        self.user: AsyncUserScope = store.user(f"user{number}")
        self.talk = self.user.conversation(chance.choice(["home", "work"]))

    def says(self) -> str:
        place = self.chance.choice(["Porto", "Leeds", "Oslo"])
        return f"I live in {place} and my {self.word} is number {self.chance.randrange(10**6)}."

    def knows(self, what: str, which: UUID) -> None:
        self.everybody.append((self.number, what, which))

    def somebody_else_s(self, what: str) -> UUID:
        found = [which for number, kind, which in self.everybody[-500:] if kind == what and number != self.number]
        return self.chance.choice(found) if found else UUID(int=7)


async def add(one: Talker) -> object:
    return await one.talk.add(one.chance.choice(["user", "assistant"]), one.says())


async def add_many(one: Talker) -> object:
    return await one.talk.add_many([{"role": "user", "content": one.says()} for _ in range(one.chance.randint(2, 9))])


async def recall(one: Talker) -> object:
    other = f"zebra{one.chance.randrange(USERS):02}"
    return [(hit.text, hit.sources) for hit in await one.user.recall(f"Whose is {other}?".replace(other, "zebra"))]


async def context(one: Talker) -> object:
    made = await one.talk.context("Where do I live, and which number is it?", budget=700)
    if made.receipt.id is not None:
        one.knows("receipt", made.receipt.id)
    return made.messages, made.receipt


async def fact(one: Talker) -> object:
    added = await one.user.add_fact(one.says(), type="identity")
    one.knows("fact", added.id)
    return added


async def read(one: Talker) -> object:
    every: list[Callable[[], Awaitable[object]]] = [
        one.talk.messages, one.talk.summaries, one.talk.receipts, one.talk.info, one.talk.statistics,
        one.user.facts, one.user.conversations, one.user.events, one.user.invalid_responses,
    ]  # fmt: skip
    return await one.chance.choice(every)()


async def derive(one: Talker) -> object:
    return await one.store.derive(user=one.user.name)


async def intrude(one: Talker) -> object:
    """Somebody else's ids are nobody's."""
    what = one.chance.choice(["fact", "receipt"])
    which = one.somebody_else_s(what)
    call = one.user.receipt if what == "receipt" else one.chance.choice([one.user.retract_fact, one.user.fact_history])
    with pytest.raises(memstore.InvalidInput):
        await call(which)
    return None


async def break_off(one: Talker) -> object:
    """A call that is cut off in the middle leaves its session to the next."""
    with suppress(TimeoutError):
        async with asyncio.timeout(one.chance.uniform(0, 0.02)):
            return await one.chance.choice([add_many, context, recall])(one)
    return None


async def clash(one: Talker) -> object:
    """A transaction that fails in the middle, by an id that is taken."""
    with suppress(memstore.Conflict):
        await one.talk.add("user", one.says(), external_id="the same")
    return None


OPERATIONS: dict[Operation, int] = {
    add: 20, add_many: 8, recall: 18, context: 10, fact: 8, read: 20, derive: 3, intrude: 6, break_off: 5, clash: 2,
}  # fmt: skip


def leaks(number: int, told: str) -> set[int]:
    """Give the other users whose word or whose id stands in a text."""
    words = {int(found) for found in WORD.findall(told)}
    return (words | {IDS[one] for one in UUIDS.findall(told) if one in IDS}) - {number}


async def operate(through: str, operations: int, seed: int) -> tuple[int, list[str]]:
    """Do so many things at once over two stores of eight connections; give how many, and what leaked."""
    found: list[str] = []
    chance = random.Random(seed)
    Talker.everybody = []
    left_over = iter(range(operations))
    async with (
        await AsyncMemoryStore.open(through, settings=HASHING | {"pool_size": 8}) as one,
        await AsyncMemoryStore.open(through, settings=HASHING | {"pool_size": 8}) as other,
    ):

        async def go_on() -> int:
            done = 0
            for done, _ in enumerate(left_over, 1):  # noqa: B007  (how many this one did)
                talker = Talker(chance.randrange(USERS), chance.choice([one, other]), chance)
                (operation,) = chance.choices(list(OPERATIONS), list(OPERATIONS.values()))
                if seen := leaks(talker.number, repr(await operation(talker))):
                    found.append(f"{operation.__name__} of user{talker.number} shows {seen}")
            return done

        done = sum(await asyncio.gather(*(go_on() for _ in range(16))))
        with suppress(memstore.MemstoreError):
            await one.derive()
    return done, found


def mixed_up(url: str) -> dict[str, int]:
    """Count rows, table by table, that hold a word of somebody who is not their user."""
    found = {}
    with psycopg.connect(url) as superuser:
        for table in ("messages", "summaries", "facts", "receipts", "events", "conversations", "fact_changes"):
            rows = superuser.execute(f"select user_id::text, to_jsonb(t)::text from {table} t").fetchall()
            if table == "receipts":
                sent = superuser.execute("select user_id::text, sent from receipts").fetchall()
                rows += [(user, zlib.decompress(packed).decode()) for user, packed in sent]
            found[table] = sum(bool(leaks(IDS[user], told)) for user, told in rows)
            assert rows or table == "summaries", table  # those come with long conversations
    return found


@pytest.mark.slow
def test_fifty_users_over_eight_sessions_see_nothing_of_each_other(url: str) -> None:
    """TEST_DOSE=25 does ten thousand operations."""
    with pooled(url, size=SESSIONS) as through:
        done, found = asyncio.run(operate(through, 400 * DOSE, seed=7))
        sessions = "select count(*) from pg_stat_activity where application_name = 'memstore' and datname = %s"
        with psycopg.connect(url) as superuser:
            name = superuser.info.dbname
            row = superuser.execute(sessions, [name]).fetchone()
            assert row is not None
            assert 1 < row[0] <= SESSIONS
    print(f"{done} operations, {len(found)} leaks")
    assert (done, found) == (400 * DOSE, [])
    assert mixed_up(url) == dict.fromkeys(mixed_up(url), 0)
