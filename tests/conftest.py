"""One server for the session, a migrated template database once, a clone of it for each test that asks for a `url`."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

from memstore.derive.reader.model import Reader
from memstore.store import distribution, migrations
from memstore.store.embedded.server import EmbeddedServer

for name in [name for name in os.environ if name.startswith("MEMSTORE_")]:
    del os.environ[name]
os.environ["MEMSTORE_CONFIG"] = ""  # whoever runs the tests may have settings
os.environ["HF_HUB_OFFLINE"] = "1"

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would every program that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

TEMPLATE = "memstore_template"
ROOT = Path(__file__).parents[1]
SMOKE = 1  # test of each generated file that is not marked slow
# What is derived and ranked, by functions that the twins share or that are generated line by line: CI runs one of each.
DERIVED = {
    "test_answers_and_lists", "test_changes", "test_facts_by_reader", "test_outdated", "test_own_facts", "test_profile",
    "test_scopes", "test_tidy", "test_trust",
}  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--dsn",
        help="a Postgres of your own whose superuser this logs in as, instead of the embedded one; or the coordinator "
        "of a Citus, in a database that knows its nodes: then every test has a distributed schema",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Write tests/_sync before anything is collected, once for all processes that share the tests."""
    if not hasattr(config, "workerinput"):
        subprocess.run([sys.executable, ROOT / "tools" / "unasync.py", "--tests"], check=True)


def pytest_report_header(config: pytest.Config) -> str:
    torch = "with" if find_spec("sentence_transformers") else "without"
    return f"memstore: {config.getoption('--dsn') or 'embedded Postgres'}, {torch} sentence-transformers"


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name bytes by their place: what gzip packs holds the time, and processes that share the tests would not agree."""
    return argname if isinstance(val, bytes) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    missing = find_spec("sentence_transformers") is None
    blocking = Counter[Path]()
    for item in items:
        blocking[item.path] += ROOT / "tests" / "_sync" in item.path.parents
        if blocking[item.path] > SMOKE:
            item.add_marker("twin" if item.path.stem in DERIVED else "slow")
        if item.get_closest_marker("torch"):
            item.add_marker("slow")  # importing it takes ten seconds in each process
            if missing:
                item.add_marker(pytest.mark.skip(reason="needs the extra sentence-transformers"))
        if item.get_closest_marker("root") and os.geteuid() != 0:
            item.add_marker(pytest.mark.skip(reason="needs root, to become another user"))


def pytest_collection_finish() -> None:
    """Let collections of garbage pass over what was imported and collected: they took a tenth of the time."""
    gc.freeze()
    gc.set_threshold(20_000)


@pytest.fixture(scope="session", autouse=True)
def readings() -> Iterator[None]:
    """Have the reader read a text once: many tests tell the same history, and a text is read alone."""
    run = Reader._run

    @lru_cache(4_096)
    def read_once(reader: Reader, output: str, before: tuple[int, ...], said: tuple[int, ...]) -> object:
        logits = run(reader, output, before, said)
        logits.flags.writeable = False
        return logits

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Reader, "_run", lambda reader, output, *texts: read_once(reader, output, *(tuple(text) for text in texts))
        )
        yield


@pytest.fixture(scope="session")
def server_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a server; what it is of is the database `postgres` or whatever was given."""
    if dsn := request.config.getoption("--dsn"):
        yield dsn
        return
    with tempfile.TemporaryDirectory(prefix="memstore-tests-") as folder:
        server = EmbeddedServer.open(Path(folder) / "store")
        with psycopg.connect(server.url, autocommit=True) as connection:  # nothing here outlives a crash anyway
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")
        yield server.url
        server.close()


@pytest.fixture(scope="session")
def template(server_url: str) -> Iterator[str]:
    """The name of a migrated database that nobody is connected to."""
    name = f"{TEMPLATE}_{uuid4().hex[:8]}"
    create_database(server_url, name)
    url = with_database(server_url, name)
    if is_citus(server_url):
        add_nodes(server_url, name)
    migrations.upgrade(url)
    if is_citus(server_url):
        distribution.distribute(url)
        for node in nodes(server_url):  # Citus' own daemons leave, or nothing can be made from it
            with psycopg.connect(node, autocommit=True) as connection:
                connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
                connection.execute(
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", [name]
                )
    yield name
    drop_database(server_url, name)


@pytest.fixture(scope="session")
def databases(server_url: str, template: str, request: pytest.FixtureRequest) -> Iterator[Databases]:
    """Databases that are as the template is, one at a time for whoever asks."""
    databases = Databases(server_url, template)
    yield databases
    if request.config.getoption("--dsn"):
        for name in databases.names:
            drop_database(server_url, name)


@pytest.fixture
def url(databases: Databases) -> Iterator[str]:
    """The URL of a database of the test's own."""
    with databases.one() as made:
        yield made


@pytest.fixture
def twin(databases: Databases) -> Iterator[str]:
    """The URL of a second database, in which nothing is."""
    with databases.one() as made:
        yield made


class Databases:
    """Clones of the template; one in which only rows have changed is emptied for the next test.

    To make one takes 80 ms and 330 files, and to remove the files of thousands took minutes: emptying takes 10 ms.
    """

    def __init__(self, server_url: str, template: str) -> None:
        self._server, self._template = server_url, template
        self.names: list[str] = []
        self._free: list[str] = []
        self._fresh: object = None

    @contextmanager
    def one(self) -> Iterator[str]:
        """Give the URL of a database that nobody else has."""
        name = self._free.pop() if self._free else self._made()
        yield with_database(self._server, name)
        if self._emptied(name):
            self._free.append(name)
        else:
            drop_database(self._server, name)

    def _made(self) -> str:
        name = f"test_{uuid4().hex[:12]}"
        self.names.append(name)
        create_database(self._server, name, self._template)
        if self._fresh is None:
            with psycopg.connect(with_database(self._server, name)) as connection:
                self._fresh = connection.execute(SHAPE).fetchone()
        return name

    def _emptied(self, name: str) -> bool:
        """Empty a database; False where somebody is still there, or it has other tables, rights or settings by now."""
        with suppress(psycopg.Error), psycopg.connect(with_database(self._server, name)) as connection:
            if connection.execute(SHAPE).fetchone() == self._fresh:
                for statement in EMPTY:
                    connection.execute(statement)
                return True
        return False


# What a database is but for its rows, and that nobody else is in it: of what describes it, how much there is and the
# latest transaction that wrote it. Nothing was analyzed, and not much was deleted: else statements are planned by what
# was there before, and one test took two minutes in place of ten seconds.
CATALOGUES = "pg_class", "pg_attribute", "pg_constraint", "pg_policy", "pg_proc", "pg_namespace", "pg_trigger"
SHAPE = f"""
select (select count(*) from pg_stat_activity where datname = current_database() and backend_type = 'client backend'
                                                     and application_name not like 'citus_internal%'),
       {", ".join(f"(select (count(*), max(xmin::text::bigint))::text from {name})" for name in CATALOGUES)},
       (select md5(string_agg(setconfig::text, ',' order by setrole)) from pg_db_role_setting
        where setdatabase = (select oid from pg_database where datname = current_database())),
       (select count(*) from pg_class
        where relnamespace = current_schema()::regnamespace and relkind = 'r' and reltuples >= 0),
       (select sum(pg_relation_size(oid)) < 4000000 from pg_class where relnamespace = current_schema()::regnamespace),
       (select string_agg(key::text, ',') from store_keys),
       (select string_agg(version_num, ',') from memstore_schema)
"""
EMPTY = (  # one by one: a Citus sends its nodes the whole message that a setting stands in
    "set local lock_timeout = '2s'",
    "set local session_replication_role = replica",
    """
do $$
declare
    name text;
    filled boolean;
begin
    for name in select relname from pg_class where relnamespace = current_schema()::regnamespace and relkind = 'r'
                and relname not in ('memstore_schema', 'store_keys') loop
        execute format('select exists (select 1 from %I)', name) into filled;
        if filled then execute format('delete from %I', name); end if;
    end loop;
end $$
""",
)


def with_database(url: str, name: str) -> str:
    place, _, options = url.partition("?")
    return f"{place.rpartition('/')[0]}/{name}" + (f"?{options}" if options else "")


def is_citus(server_url: str) -> bool:
    return len(nodes(server_url)) > 1


@cache
def nodes(server_url: str) -> list[str]:
    """Return the URLs of the nodes of a Citus, the coordinator first; of another server its own."""
    with psycopg.connect(server_url) as connection:
        if connection.execute("SELECT to_regclass('pg_dist_node')").fetchone() == (None,):
            return [server_url]
        places = connection.execute("SELECT nodename || ':' || nodeport FROM pg_dist_node ORDER BY groupid").fetchall()
    parts = urlsplit(server_url)
    login = parts.netloc.rpartition("@")[0]
    return [parts._replace(netloc=f"{login}@{place}").geturl() for (place,) in places]


def create_database(server_url: str, name: str, template: str = "template0", owner: str = "DEFAULT") -> None:
    """Make a database, on each node of a Citus."""
    for node in nodes(server_url):
        with psycopg.connect(node, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} OWNER {owner}")
            if is_citus(server_url) and template != "template0":  # which gives tables, and no settings
                connection.execute(f"ALTER DATABASE {name} SET citus.propagate_set_commands = 'local'")


def drop_database(server_url: str, name: str) -> None:
    """Drop a database, on each node of a Citus."""
    for node in nodes(server_url):
        with psycopg.connect(node, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def add_nodes(server_url: str, name: str) -> None:
    """Make a database one of Citus, with few shards."""
    every = nodes(server_url)
    for node in every:
        with psycopg.connect(with_database(node, name), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION citus")
            connection.execute("SET citus.enable_ddl_propagation = off; CREATE EXTENSION vector")
            connection.execute(f"ALTER DATABASE {name} SET citus.shard_count = 4")
    places = [urlsplit(node) for node in every]
    with psycopg.connect(with_database(server_url, name), autocommit=True) as connection:
        connection.execute("SELECT citus_set_coordinator_host(%s, %s)", [places[0].hostname, places[0].port])
        for place in places[1:]:
            connection.execute("SELECT citus_add_node(%s, %s)", [place.hostname, place.port])
