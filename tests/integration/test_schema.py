"""The migrated database itself: what the models say, keys that begin with the user, policies on everything, rights."""

from collections.abc import Iterator
from typing import Any, get_args
from uuid import UUID

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from psycopg.errors import CheckViolation, InsufficientPrivilege, UniqueViolation
from sqlalchemy import MetaData, Table, create_engine, pool
from sqlmodel import SQLModel
from sqlmodel.main import get_column_from_field

from memstore import ids
from memstore.export import schema
from memstore.models import Conversation, FactColumns, InvalidResponse, Message, Summary
from memstore.store import migrations, tables
from tests.integration.conftest import KEYS, OF_THE_OPERATOR, OUTLIVING, TABLES

VERSIONS = "memstore_schema"  # Alembic's own: the one table that is nobody's
NARROW = ("users", "conversations", "derivations", "model_usage", "backfills")
NEVER_CHANGED = sorted(table.name for table in tables.TABLES if table.name in TABLES and "UPDATE" not in table.app)
SAID = {"messages", "summaries", "fact_sources", "fact_changes", "item_text", "item_vectors", "receipts"}
ALICE = ids.user_id("alice")


@pytest.fixture
def database(clone: str) -> Iterator[psycopg.Connection[Any]]:
    """A transaction that is never committed."""
    with psycopg.connect(clone) as connection, connection.transaction(force_rollback=True):
        yield connection


@pytest.fixture
def in_filled(filled: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(filled) as connection, connection.transaction(force_rollback=True):
        yield connection


def as_alice(connection: psycopg.Connection[Any]) -> None:
    connection.execute("set local role memstore_app")
    connection.execute(f"set local memstore.user_id = '{ALICE}'")  # set_config reaches no node


def test_what_models_declare_are_the_columns_of_their_tables(clone: str) -> None:
    metadata = MetaData()
    models: dict[str, type[SQLModel]] = {
        "conversations": Conversation,
        "messages": Message,
        "summaries": Summary,
        "facts": FactColumns,
        "invalid_responses": InvalidResponse,
    }
    for name, model in models.items():
        table = Table(name, metadata)
        for field, declared in model.model_fields.items():
            column = get_column_from_field(declared)
            column.name = column.key = field
            table.append_column(column)
    engine = create_engine(clone.replace("postgresql://", "postgresql+psycopg://", 1), poolclass=pool.NullPool)
    with engine.connect() as connection:
        options = {
            "include_name": lambda name, kind, _: kind in ("schema", "column") or name in models,
            "include_object": lambda _, name, kind, *__: kind in ("table", "column"),
            "compare_server_default": True,
        }
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []
    engine.dispose()


def test_the_head_that_the_code_wants_is_the_newest_revision() -> None:
    config = Config()
    config.set_main_option("script_location", str(migrations.scripts()))
    scripts = ScriptDirectory.from_config(config)
    assert scripts.get_heads() == [migrations.NEWEST_REVISION]
    revisions = [script.revision for script in scripts.walk_revisions()]
    assert revisions == sorted(revisions, reverse=True), "a database is told to be too new by comparing revisions"


def test_every_table_is_declared_with_the_columns_that_it_has(database: psycopg.Connection[Any]) -> None:
    columns = database.execute(
        """select c.relname, a.attname, format_type(a.atttypid, null) from pg_class c
           join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
           where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p')"""
    ).fetchall()
    assert {table for table, *_ in columns} == {table.name for table in tables.TABLES} | {VERSIONS}
    kinds = {(table, column): kind for table, column, kind in columns}
    for table in tables.TABLES:
        ids = {*table.id_columns, *filter(None, [table.conversation, table.message])}
        assert {kinds[table.name, column] for column in ids} <= {"uuid"}, table
        assert {kinds[table.name, column] for column in table.harmless} <= {"text", "text[]", "jsonb", "bytea"}, table
        assert table.json == "" or kinds[table.name, table.json] == "jsonb", table
        assert not table.user_column or table.owner == "store" or kinds[table.name, table.user_column] == "uuid", table


def test_rows_that_hang_on_others_are_declared_to_name_them(database: psycopg.Connection[Any]) -> None:
    """Erasure counts what goes with a conversation or a message, and searches the columns with ids that it erases."""
    keys = database.execute(
        """select c.relname, p.relname, a.attname from pg_constraint k
           join pg_class c on c.oid = k.conrelid and c.relnamespace = current_schema()::regnamespace
           join pg_class p on p.oid = k.confrelid
           join pg_attribute a on a.attrelid = c.oid and a.attnum = k.conkey[2]
           where k.contype = 'f' and p.relname in ('conversations', 'messages', 'summaries', 'facts', 'item_text')"""
    ).fetchall()
    declared = {table.name: table for table in tables.TABLES}
    for parent, attribute in (("conversations", "conversation"), ("messages", "message")):
        held = {(table, column) for table, of, column in keys if of == parent}
        columns = {(table.name, getattr(table, attribute)) for table in tables.TABLES}
        assert held == {(name, column) for name, column in columns if column and name != parent}
    for table, _, column in keys:
        assert column in (declared[table].conversation, declared[table].message, *declared[table].id_columns), table


@pytest.mark.parametrize("line", get_args(schema.ExportLine))
def test_lines_of_an_export_have_the_lists_that_tables_declare(line: Any) -> None:
    lists = {rows.name: set(rows.columns) for rows in tables.exported_lists(line.table).values()}
    elements = {name: get_args(line.model_fields[name].annotation)[0] for name in lists}
    assert {name: set(element.model_fields) for name, element in elements.items()} == lists
    known = {line.table for line in get_args(schema.ExportLine)}
    assert {
        table.exported.parent for table in tables.TABLES if isinstance(table.exported, tables.ExportedList)
    } <= known


def test_every_key_begins_with_the_user(database: psycopg.Connection[Any]) -> None:
    indexes = database.execute(
        """select c.relname, i.indexrelid::regclass::text, a.attname from pg_index i
           join pg_class c on c.oid = i.indrelid and c.relnamespace = current_schema()::regnamespace
           left join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]"""
    ).fetchall()
    keys = database.execute(
        """select c.relname, k.conname, a.attname, f.attname, k.contype from pg_constraint k
           join pg_class c on c.oid = k.conrelid and c.relnamespace = current_schema()::regnamespace
           join pg_attribute a on a.attrelid = k.conrelid and a.attnum = k.conkey[1]
           left join pg_attribute f on f.attrelid = k.confrelid and f.attnum = k.confkey[1]
           where k.contype in ('p', 'u', 'f', 'x')"""
    ).fetchall()
    nobodys = {VERSIONS} | OF_THE_OPERATOR | KEYS
    assert [row for row in indexes if row[0] not in nobodys and row[2] != "user_id"] == []
    assert [row for row in keys if row[0] not in nobodys and row[2] != "user_id"] == []
    assert [row for row in keys if row[4] == "f" and row[3] != "user_id"] == []
    assert {row[0] for row in indexes} == {row[0] for row in keys} == TABLES | OUTLIVING | nobodys


def test_every_row_goes_with_its_user(in_filled: psycopg.Connection[Any]) -> None:
    """Foreign keys cascade, and nothing of a user is left when the user is gone; what an erasure keeps has none."""
    actions = in_filled.execute(
        "select distinct confdeltype::text, confupdtype::text from pg_constraint where contype = 'f'"
    )
    assert actions.fetchall() == [("c", "a")]
    in_filled.execute("delete from users")
    for table in sorted(TABLES):
        assert in_filled.execute(f"select count(*) from {table}").fetchone() == (0,), table


def test_nothing_that_a_distributed_table_refuses(database: psycopg.Connection[Any]) -> None:
    triggers = database.execute("select tgrelid::regclass::text, tgname from pg_trigger where not tgisinternal")
    assert triggers.fetchall() == []
    others = database.execute(
        """select relkind::text, relname from pg_class
           where relnamespace = current_schema()::regnamespace and relkind not in ('r', 'i')"""
    )
    assert others.fetchall() == [], "a sequence, a view, a partitioned table?"
    rules = database.execute(
        "select tablename, rulename from pg_rules where schemaname = current_schema()"
        " union all select p.proname, '' from pg_proc p where p.pronamespace = current_schema()::regnamespace"
        " and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')"
    )
    assert rules.fetchall() == [("memstore_space", "")], "it reads a table that each node has"


def test_policies_are_enabled_and_forced_on_every_table(database: psycopg.Connection[Any]) -> None:
    found = database.execute(
        """select relname from pg_class where relnamespace = current_schema()::regnamespace and relkind = 'r'
           and relrowsecurity and relforcerowsecurity"""
    )
    assert {name for (name,) in found} == TABLES | OF_THE_OPERATOR | OUTLIVING | KEYS
    policies = database.execute(
        "select tablename, policyname, permissive, roles::text, cmd, qual, with_check from pg_policies"
        " where schemaname = current_schema()"
    ).fetchall()
    user = "(NULLIF(current_setting('memstore.user_id'::text, true), ''::text))::uuid"
    by_user, by_writer = (
        f"(user_id = COALESCE({user}, memstore_space('{needed}'::text)))" for needed in ("read", "write")
    )
    by_space, of_members = (
        f"(user_id = {user})",
        (
            "(member_id = (COALESCE(NULLIF(current_setting('memstore.user_id'::text, true), ''::text), "
            "NULLIF(current_setting('memstore.member_id'::text, true), ''::text)))::uuid)"
        ),
    )
    operator = "(current_setting('memstore.operator'::text, true) = 'on'::text)"
    assert set(policies) == {
        *(
            (table, name, "PERMISSIVE", "{public}", command, using, check)
            for table in TABLES | OUTLIVING
            for name, command, using, check in (
                ("by_user", "SELECT", by_user, None),
                ("by_user_add", "INSERT", None, by_writer),
                ("by_user_change", "UPDATE", by_writer, None),
                ("by_user_remove", "DELETE", by_writer, None),
            )
        ),
        *((table, "for_everybody", "PERMISSIVE", "{public}", "SELECT", "true", None) for table in KEYS - {"grants"}),
        ("grants", "by_space", "PERMISSIVE", "{public}", "ALL", by_space, by_space),
        ("grants", "for_members", "PERMISSIVE", "{public}", "SELECT", of_members, None),
        ("embedding_models", "of_the_first", "PERMISSIVE", "{public}", "INSERT", None, "(state = 'serving'::text)"),
        ("embedding_models", "for_operator", "PERMISSIVE", "{public}", "ALL", operator, operator),
        *(
            (table, "for_operator", "PERMISSIVE", "{public}", "SELECT", operator, None)
            for table in ("users", "derivations", "model_usage", "events")
        ),
        *((table, "for_operator", "PERMISSIVE", "{public}", "ALL", operator, operator) for table in OF_THE_OPERATOR),
    }


def test_the_app_role_owns_nothing_and_is_nobody_special(database: psycopg.Connection[Any]) -> None:
    role = database.execute(
        """select rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication, rolcanlogin
           from pg_roles where rolname = 'memstore_app'"""
    ).fetchone()
    assert role == (False, False, False, False, False, True)
    owned = database.execute(
        """select deptype, classid::regclass::text, objid from pg_shdepend
           where refobjid = 'memstore_app'::regrole and deptype = 'o'"""
    )
    assert owned.fetchall() == []
    member = "select roleid::regrole::text from pg_auth_members where member = 'memstore_app'::regrole"
    assert database.execute(member).fetchall() == []


def test_the_app_role_has_the_rights_that_it_needs_and_no_more(database: psycopg.Connection[Any]) -> None:
    granted = database.execute(
        """select c.relname, array_agg(a.privilege_type::text order by a.privilege_type), bool_or(a.is_grantable)
           from pg_class c, aclexplode(c.relacl) a
           where c.relnamespace = current_schema()::regnamespace and a.grantee = 'memstore_app'::regrole
           group by c.relname"""
    )
    declared = {table.name: (sorted(table.app.split(", ")), False) for table in tables.TABLES}
    assert {table: (rights, grantable) for table, rights, grantable in granted} == {
        VERSIONS: (["SELECT"], False),
        **declared,
    }
    assert set(NEVER_CHANGED) >= SAID
    makes = "select has_schema_privilege('memstore_app', current_schema(), 'create')"
    assert database.execute(makes).fetchone() == (False,)


@pytest.mark.parametrize("table", NEVER_CHANGED)
def test_what_was_said_is_never_changed(in_filled: psycopg.Connection[Any], table: str) -> None:
    as_alice(in_filled)
    assert in_filled.execute(f"select count(*) from {table}").fetchone() != (0,)
    columns = "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0 and not attisdropped"
    for (column,) in in_filled.execute(columns, [table]).fetchall():
        if (table, column) == ("fact_changes", "other_id"):  # the log forgets what was erased
            continue
        if table == "item_text" and column in ("terms", "frequencies", "length"):  # another tokenizer makes them anew
            continue
        if (table, column) == ("item_text", "conversation_id"):  # a fact's own may be erased
            continue
        with pytest.raises(InsufficientPrivilege), in_filled.transaction():
            in_filled.execute(f"update {table} set {column} = {column}")
    if table not in ("fact_changes", "item_text"):  # a right on one column is enough for that
        with pytest.raises(InsufficientPrivilege), in_filled.transaction():
            in_filled.execute(f"select from {table} for update")
    with pytest.raises(InsufficientPrivilege), in_filled.transaction():
        in_filled.execute(f"truncate {table} cascade")


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("messages", "role = 'bot'"),
        ("messages", "tokens = -1"),
        ("summaries", "level = -1"),
        ("summaries", "to_seq = from_seq - 1"),
        ("facts", "confidence = 1.1"),
        ("facts", "confidence = -0.1"),
        ("facts", "confidence = 'nan'"),
        ("facts", "state = 'forgotten'"),
        ("item_text", "tier = 'notes'"),
        ("embedding_models", "state = 'asleep'"),
    ],
)
def test_what_makes_no_sense_is_refused(in_filled: psycopg.Connection[Any], table: str, change: str) -> None:
    with pytest.raises(CheckViolation):
        in_filled.execute(f"update {table} set {change}")


def test_one_embedding_model_is_active(in_filled: psycopg.Connection[Any]) -> None:
    second = "insert into embedding_models (id, name, dimensions, state) values (%s, 'f', 2, %s)"
    with pytest.raises(UniqueViolation), in_filled.transaction():
        in_filled.execute(second, [UUID(int=3), "serving"])
    in_filled.execute(second, [UUID(int=3), "building"])


def test_no_user_s_scope_makes_another_model_active(in_filled: psycopg.Connection[Any]) -> None:
    as_alice(in_filled)
    assert in_filled.execute("update embedding_models set state = 'retired'").rowcount == 0
    with pytest.raises(InsufficientPrivilege), in_filled.transaction():
        in_filled.execute(
            "insert into embedding_models (id, name, dimensions, state) values (%s, 'f', 2, 'building')", [UUID(int=3)]
        )


def test_the_physical_layout_that_was_measured(database: psycopg.Connection[Any]) -> None:
    """Vectors lie in the row (2.8 to 11 times quicker than in TOAST); what is updated often has room beside it."""
    storage = (
        "select attstorage::text from pg_attribute where attrelid = 'item_vectors'::regclass and attname = 'embedding'"
    )
    assert database.execute(storage).fetchone() == ("p",)
    found = database.execute(
        """select relname, reloptions from pg_class
           where relnamespace = current_schema()::regnamespace and relkind = 'r' and reloptions is not null"""
    )
    assert dict(found.fetchall()) == {name: ["fillfactor=70"] for name in NARROW}


def test_counters_and_watermarks_stay_out_of_the_indexes(database: psycopg.Connection[Any]) -> None:
    """A counter in an index makes every update write to the index as well, whatever room the row has."""
    indexed = database.execute(
        """select distinct c.relname || '.' || a.attname from pg_index i
           join pg_class c on c.oid = i.indrelid
           join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
           where c.relname in ('users', 'conversations')"""
    )
    keys = {"users.user_id", "conversations.user_id", "conversations.id"}
    assert {name for (name,) in indexed} == keys | {"conversations.created_at"}
