"""How a database becomes memstore's: once, whole, never over somebody else's tables, and with errors that help."""

import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from psycopg.types.json import Jsonb

import memstore
from memstore import ids
from memstore.errors import DatabaseError, MemstoreError, SchemaOutdated, SchemaTooNew
from memstore.store import migrations

Make = Callable[..., str]
SETTINGS = {"embedder": "hashing:256"}
SECRET = "s3cr3t-pa55word"
MIGRATE = "import sys; from memstore.store import migrations; migrations.prepare(sys.argv[1], upgrade_old=True)"
MIGRATE_IN_THREADS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from memstore.store import migrations
with ThreadPoolExecutor() as pool:
    list(pool.map(partial(migrations.prepare, upgrade_old=True), sys.argv[1:]))
"""
CATALOG = {
    "columns": """
        select c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attstorage::text,
               pg_get_expr(d.adbin, d.adrelid)
        from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
        where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r'""",
    "tables": """
        select relname, relkind::text, relrowsecurity, relforcerowsecurity, reloptions, relacl::text,
               relowner::regrole::text
        from pg_class where relnamespace = current_schema()::regnamespace""",
    "constraints": """
        select conrelid::regclass::text, conname, pg_get_constraintdef(oid) from pg_constraint
        where connamespace = current_schema()::regnamespace""",
    "indexes": "select tablename, indexname, indexdef from pg_indexes where schemaname = current_schema()",
    "policies": "select tablename, policyname, roles, cmd, qual, with_check from pg_policies",
    "extensions": "select extname, extversion from pg_extension",
    "revision": "select version_num from memstore_schema",
}


def catalog(url: str) -> dict[str, list[Any]]:
    with psycopg.connect(url) as connection:
        return {name: sorted(connection.execute(query), key=repr) for name, query in CATALOG.items()}


def objects(url: str) -> list[Any]:
    """Give every table, index, type and so on of a database, and the extensions."""
    with psycopg.connect(url) as connection:
        return connection.execute(
            """select relname, oid from pg_class
               where relnamespace not in (select oid from pg_namespace where nspname like 'pg_%')
               union all select extname, oid from pg_extension order by 1, 2"""
        ).fetchall()


def in_schema(url: str, path: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}options={quote(f'-csearch_path={path}')}"


def execute(url: str, statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statements)


def test_six_processes_migrate_a_new_database_at_once(new_database: Make, clone: str) -> None:
    """All six have seen that there are no tables before the first one makes them."""
    url = new_database()
    waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'advisory'"
    with psycopg.connect(url) as first:
        first.execute(migrations.SQL["migration_lock"])
        processes = [
            subprocess.Popen([sys.executable, "-W", "error", "-c", MIGRATE, url], stderr=subprocess.PIPE, text=True)
            for _ in range(6)
        ]
        late = time.monotonic() + 60
        while first.execute(waiting).fetchone() != (6,):
            assert time.monotonic() < late, "they do not wait for one another"
            assert {process.poll() for process in processes} == {None}
            first.execute("select pg_sleep(0.05), pg_stat_clear_snapshot()")
        assert first.execute("select to_regclass('users')").fetchone() == (None,)
    ends = [(process.communicate(timeout=60)[1], process.returncode) for process in processes]
    assert ends == [("", 0)] * 6
    assert catalog(url) == catalog(clone)


def test_threads_migrate_a_new_database_each_at_once(new_database: Make, clone: str) -> None:
    urls = [new_database() for _ in range(4)]
    subprocess.run([sys.executable, "-W", "error", "-c", MIGRATE_IN_THREADS, *urls], timeout=60, check=True)
    assert [catalog(url) for url in urls] == [catalog(clone)] * len(urls)


def test_the_printed_statements_make_the_same_schema(new_database: Make, clone: str) -> None:
    url = new_database()
    printed = migrations.sql()
    assert printed.rstrip().endswith("COMMIT;"), "all or nothing, by hand as well"
    execute(url, printed)
    assert catalog(url) == catalog(clone)
    assert migrations.status(url).current
    with memstore.open(url, settings=SETTINGS) as store:
        store.user("alice").conversation("c").add("user", "I live in Porto.")
        assert store.derive().failed == ()
        assert store.user("alice").recall("Porto", tiers=["messages"])[0].text == "I live in Porto."


def upgrade_to(url: str, revision: str, folder: Path) -> None:
    """Make the tables of an older revision."""
    old = shutil.copytree(migrations.scripts(), folder / "schema")
    for file in (old / "versions").glob("0*"):
        if file.name[:4] > revision:
            file.unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrations, "scripts", lambda: old)
        migrations.upgrade(url)


def test_the_embedder_of_most_users_becomes_the_store_s(new_database: Make, tmp_path: Path) -> None:
    """Whoever had another is found by words until a migration makes the vectors, of documents too."""
    url = new_database()
    upgrade_to(url, "0021", tmp_path)
    names = {"alice": "hashing:64", "bob": "hashing:256", "carol": "hashing:256"}
    for user, embedder in names.items():
        dimensions = int(embedder.partition(":")[2])
        values = {"user": ids.user_id(user), "name": user, "model": ids.model_id(embedder, dimensions)}
        values |= {
            "embedder": embedder,
            "dimensions": dimensions,
            "id": ids.document_id(ids.user_id(user), ("n",), "k"),
        }
        with psycopg.connect(url) as connection:
            for statement in (
                "insert into users (user_id, name) values (%(user)s, %(name)s)",
                "insert into embedding_models (user_id, id, name, dimensions)"
                " values (%(user)s, %(model)s, %(embedder)s, %(dimensions)s)",
                "insert into documents (user_id, id, namespace, key, value)"
                " values (%(user)s, %(id)s, '{n}', 'k', '{}')",
                "insert into document_vectors (user_id, id, path, model_id, embedding, text) values (%(user)s, %(id)s,"
                " 'p', %(model)s, array_fill(0.1, array[%(dimensions)s::int])::vector, 'The ferry leaves at nine.')",
            ):
                connection.execute(statement, values)
    migrations.upgrade(url)
    with psycopg.connect(url) as connection:
        found = connection.execute("select name, state from embedding_models order by 1").fetchall()
    assert found == [("hashing:256", "serving"), ("hashing:64", "retired")]
    for setting in set(names.values()):
        with memstore.open(url, settings={"embedder": setting}) as store:
            assert len(store.user("bob").documents().search(query="ferry")) == 1
    with memstore.open(url, settings=SETTINGS) as store:
        assert store.user("alice").documents().search(query="ferry") == []
        assert store.embeddings.clean().vectors == 0, "her text stands nowhere else"
        report = store.embeddings.migrate("hashing:256")
        assert (report.users, report.vectors) == (1, 1)
        assert len(store.user("alice").documents().search(query="ferry")) == 1
        assert store.embeddings.clean().vectors == 1


def test_opening_twice_changes_nothing(new_database: Make) -> None:
    url = new_database()
    assert migrations.status(url) == migrations.Status(None)
    migrations.prepare(url, upgrade_old=False)
    before = objects(url)
    migrations.prepare(url, upgrade_old=True)
    migrations.upgrade(url)
    assert objects(url) == before
    assert migrations.status(url) == migrations.Status(migrations.NEWEST_REVISION)


def test_a_migration_that_fails_leaves_nothing_behind(new_database: Make) -> None:
    url = new_database()
    execute(url, "create table receipts (mine int)")
    before = objects(url)
    with pytest.raises(DatabaseError, match='relation "receipts" already exists'):
        migrations.prepare(url, upgrade_old=True)
    assert objects(url) == before


def test_an_older_server_is_refused_before_anything_else(new_database: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    url = new_database()
    before = objects(url)
    monkeypatch.setattr(migrations, "SERVER_VERSION", 990000)
    for attempt in (lambda: migrations.prepare(url, upgrade_old=True), lambda: memstore.open(url, settings=SETTINGS)):
        with pytest.raises(DatabaseError, match=r"is PostgreSQL \d\d; memstore needs 15 or newer"):
            attempt()
    assert objects(url) == before


@pytest.mark.parametrize("upgrade_old", [False, True])
def test_tables_of_a_newer_memstore_are_left_alone(new_database: Make, template: str, upgrade_old: bool) -> None:
    url = new_database(template)
    execute(url, "update memstore_schema set version_num = '9999'")
    before = catalog(url)
    with pytest.raises(SchemaTooNew, match=r"schema 9999.*knows up to.*pip install -U memstore"):
        migrations.prepare(url, upgrade_old=upgrade_old)
    assert catalog(url) == before


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "'' is no database"),
        ("embedded:", "embedded:FOLDER"),
        ("postgresql://alice@127.0.0.1:1/store?pgbouncer=true", "the option 'pgbouncer'.*take it out"),
        ("postgresql://alice@127.0.0.1:1/store?sslmode=disable&connection_limit=1", "the option 'connection_limit'"),
    ],
)
def test_a_url_that_names_no_database_opens_none(url: str, why: str) -> None:
    with pytest.raises(memstore.ConfigurationError, match=why):
        memstore.open(url, settings=SETTINGS)


def test_tables_of_a_version_before_the_first_release_are_not_upgraded(new_database: Make, template: str) -> None:
    url = new_database(template)
    execute(url, "update memstore_schema set version_num = '0016'")
    with pytest.raises(SchemaOutdated, match=r"schema 0016.*before the first release.*memstore export"):
        migrations.prepare(url, upgrade_old=True)


def test_old_tables_of_a_server_that_is_not_embedded_wait_for_the_operator(
    new_database: Make, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = new_database(template)
    before, newest = catalog(url), migrations.NEWEST_REVISION
    monkeypatch.setattr(migrations, "NEWEST_REVISION", "9999")
    with pytest.raises(SchemaOutdated, match=rf"schema {newest}.*Run: memstore db upgrade"):
        memstore.open(url, settings=SETTINGS)
    assert catalog(url) == before


def test_a_receipt_from_before_what_was_sent_was_kept_is_upgraded(new_database: Make, tmp_path: Path) -> None:
    url = new_database()
    upgrade_to(url, "0020", tmp_path)
    user, conversation, receipt = ids.user_id("alice"), ids.conversation_id(ids.user_id("alice"), "c"), ids.uuid7()
    decision = {"section": "recent", "kind": "turn", "id": str(receipt), "tokens": 4, "length": 9}
    body = {
        "budget": 9, "tokens": 4, "counter": "words", "sections": [["recent", 4]], "included": [decision],
        "left_out": [], "renderer": "openai/5", "asked": [3],
    }  # fmt: skip
    with psycopg.connect(url) as connection:
        connection.execute("insert into users (user_id, name) values (%s, 'alice')", [user])
        connection.execute("insert into conversations (user_id, id, name) values (%s, %s, 'c')", [user, conversation])
        connection.execute(
            "insert into receipts (user_id, id, conversation_id, budget, tokens, body, texts)"
            " values (%s, %s, %s, 9, 4, %s, %s)",
            [user, receipt, conversation, Jsonb(body), Jsonb({"query": "Where to?" * 40, "system": "Be kind."})],
        )
    migrations.upgrade(url)
    with memstore.open(url, settings=SETTINGS) as store:
        kept = store.user("alice").receipt(receipt)
        assert (kept.question, kept.sections) == (("Where to?" * 40)[:160], {"recent": 4})
        assert [one.seqs for one in kept.included] == [None]
        with pytest.raises(memstore.NotFound, match="did not keep what was sent"):
            store.user("alice").replay(kept)


def test_somebody_elses_tables_are_left_alone(new_database: Make) -> None:
    url = new_database()
    execute(url, "create table messages (id int, body text); insert into messages values (1, 'theirs')")
    before = objects(url)
    with pytest.raises(DatabaseError, match=r"a table 'messages' that is not memstore's.*search_path"):
        memstore.open(url, settings=SETTINGS)
    with pytest.raises(DatabaseError):
        migrations.status(url)
    assert objects(url) == before
    with psycopg.connect(url) as connection:
        assert connection.execute("select * from messages").fetchall() == [(1, "theirs")]


@pytest.mark.parametrize("prepared", ["", "create extension vector"], ids=["without vector", "with vector in public"])
def test_two_memstores_in_two_schemas_do_not_mix(new_database: Make, prepared: str) -> None:
    url = new_database()
    execute(url, f"create schema mem; create schema other; {prepared}")
    for schema in ("mem", "other"):
        with memstore.open(in_schema(url, schema), settings=SETTINGS) as store:
            assert list(store.users()) == []
            store.user("alice").conversation("c").add("user", f"I live in the schema {schema}.")
            assert store.derive().failed == ()
    for schema in ("mem", "other"):
        with memstore.open(in_schema(url, schema), settings=SETTINGS) as store:
            assert store.stats()["messages"] == 1
            hits = store.user("alice").recall("Where do I live?", tiers=["messages"])
            assert [hit.text for hit in hits] == [f"I live in the schema {schema}."]
            assert hits[0].parts["semantic"] > 0
    assert migrations.status(url) == migrations.Status(None)


def test_a_schema_does_not_take_the_tables_of_the_next_one_on_the_path(new_database: Make, template: str) -> None:
    """`search_path=mem,public` names a store in mem, also where public has one."""
    url = new_database(template)
    execute(url, "create schema mem")
    with memstore.open(url, settings=SETTINGS) as store:
        store.user("alice").conversation("c").add("user", "in public")
    both = in_schema(url, "mem,public")
    assert migrations.status(both) == migrations.Status(None)
    with memstore.open(both, settings=SETTINGS) as store:
        assert store.stats()["messages"] == 0
        store.user("bob").conversation("c").add("user", "in mem")
    with memstore.open(url, settings=SETTINGS) as store:
        assert list(store.users()) == ["alice"]


def test_a_missing_extension_is_the_administrators_part(new_database: Make, new_role: Make, login: Make) -> None:
    owner = new_role()
    url = login(new_database(owner=owner), owner)
    with pytest.raises(DatabaseError, match=r'permission denied to create extension "vector".*[Ss]uperuser'):
        memstore.open(url, settings=SETTINGS)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://alice:{SECRET}@/store?host=/no/such/folder&port=1",
        f"postgresql://alice@/store?host=/no/such/folder&port=1&password={SECRET}",
        f"postgresql://alice:{SECRET}%zz@127.0.0.1:1/store",
        f"postgresql://alice:{SECRET}%00@127.0.0.1:1/store",
        f"postgresql://alice:{SECRET} x@127.0.0.1:1/store",
        f"postgresql://alice:x@{SECRET}@127.0.0.1:1/store",
        f"postgresql://alice:x/{SECRET}@127.0.0.1:1/store",
        f"postgresql://alice:{SECRET}/x@127.0.0.1:1/store",
        f"postgresql://alice:x?{SECRET}@127.0.0.1:1/store",
        f"postgresql://alice:{SECRET}@127.0.0.1:port/store",
        f"postgresql://alice:{SECRET}@[::1/store",
        f"postgresql://alice:{SECRET}@127.0.0.1:1/store?sslmode=perhaps",
        f"postgresql://alice:{SECRET}@127.0.0.1:1/store?colour=red",
        f"postgresql://alice:{SECRET}@127.0.0.1:1/store?password={SECRET}%zz",
    ],
)
def test_no_error_says_the_password(url: str) -> None:
    for attempt in (lambda: memstore.open(url, settings=SETTINGS), lambda: migrations.upgrade(url)):
        with pytest.raises(MemstoreError, match=r"MEMSTORE_DATABASE_URL|Write postgresql://|refused") as caught:
            attempt()
        assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_every_url_that_the_driver_takes_is_migrated_too(new_database: Make) -> None:
    """The folder of the socket may stand in the place of the host, and several hosts in a row."""
    parts = psycopg.conninfo.conninfo_to_dict(new_database())
    host, port = quote(str(parts["host"]), safe=""), parts["port"]
    for there in (f"{host}:{port}", f"{host}:1,{host}:{port}"):
        url = new_database()
        name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
        migrations.prepare(f"postgresql://{parts['user']}@{there}/{name}", upgrade_old=False)
        assert migrations.status(url).current
