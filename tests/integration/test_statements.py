"""The named statements: each is planned, used and the user's own; the hot ones keep their plans on a large table."""

import ast
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from hashlib import md5
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import psycopg
import pytest

import memstore.store
from memstore._sync.derive.maintenance import maintain_indexes
from memstore._sync.store import database as blocking
from memstore.models import TYPE_ORDER, Role, Tier
from memstore.store import chunks, queue, tables, vector_indexes
from memstore.store.chunks import Filters
from memstore.store.database import Database
from memstore.store.sql import expand_values, statements
from tests.integration import test_schema as schema

Plan = dict[str, Any]
STORE = Path(memstore.store.__file__).parent
FAMILIES = sorted({path.stem for path in (STORE / "sql").glob("*.sql")} - {"fragments"})
EVERY = {(family, name): text for family in FAMILIES for name, text in statements(family).items()}
SETTINGS = {  # say how a transaction is run: nothing to plan
    ("database", "role"),
    ("database", "path"),
    ("database", "scope"),
    ("database", "member_scope"),
    ("database", "operator"),
    ("database", "async_commit"),
    ("database", "snapshot"),
    ("erasure", "impatiently"),
    ("erasure", "as_operator"),
    ("webhooks", "as_operator"),
    ("embedding_models", "for_hours"),
    ("embedding_models", "for_minutes"),
}
BEGIN = {("database", "begin"), ("database", "commit")}
DDL = {  # by the tables' owner, with literals
    ("vector_indexes", "build"),
    ("vector_indexes", "drop"),
    ("queue", "note_version"),
    ("database", "vacuum"),
    ("roles", "rights"),
    ("roles", "grant"),
}
SEARCHES = {  # by the login, of any table: with the names of a table and of its columns, or of files
    (family, name)
    for family, name in EVERY
    if family == "erasure" and name in ("searched", "statistics_of_texts", "rows_with", "events_with", "as_user")
}
SPREADING = {  # by the tables' owner on a Citus, whose functions and catalogue are not here
    (family, name) for family, name in EVERY if family == "distribution"
}
OF_THE_QUEUE = {(family, name) for family, name in EVERY if family == "queue"} - DDL  # of tables of somebody else's
LITERAL = {("vector_indexes", "nearest")}  # explained below, as it is sent
PLANNED = sorted(EVERY.keys() - SETTINGS - BEGIN - DDL - LITERAL - OF_THE_QUEUE - SEARCHES - SPREADING)
OF_THE_SERVER = {  # read no table that has users
    ("roles", "capabilities"),
    ("database", "schema_revision"),
    ("database", "schema_exists"),
    ("database", "own_tables"),
    ("database", "reach_pgvector"),
    ("database", "migration_lock"),
    ("roles", "login_state"),
    ("messages", "tombstone_key"),
    ("receipts", "horizon"),
    ("vector_indexes", "state"),
    ("vector_indexes", "owner"),
    ("vector_indexes", "building_lock"),
    ("vector_indexes", "building_memory"),
    *(("embedding_models", name) for name in ("alone", "models", "share", "exclude", "add_first", "change")),
}
OF_THE_OPERATOR = {  # look over all users, at names and numbers only
    ("watermarks", "pending"),
    ("watermarks", "ending"),
    ("watermarks", "backlog"),
    ("messages", "users"),
    ("watermarks", "behind"),
    ("watermarks", "next_in_line"),
    ("watermarks", "unfinished"),
    ("watermarks", "backfill_backlog"),
    ("watermarks", "user_sizes"),
    ("llm_usage", "spent"),
    ("llm_usage", "total_usage"),
    *(
        (family, name)
        for family, name in EVERY
        if family in ("backfills", "api_tokens", "webhooks") and name != "as_operator"
    ),
    ("postings", "large"),
    ("chunks", "other_tokenizer"),
    ("vectors", "reach"),
    ("erasure", "remove_backfills"),
    ("erasure", "take_back_tokens"),
    ("erasure", "rows_of_operator"),
}
TABLES_IN_LISTS = [table for table in tables.TABLES if isinstance(table.exported, tables.ExportedList)]
TABLES = schema.TABLES | schema.OF_THE_OPERATOR | schema.OUTLIVING | {"grants"}
OF_A_MEMBER = {("grants", "of_member"), ("grants", "spaces_of")}  # of whatever spaces
ASKED = {"SHOW data_directory"}  # asked of a server that may not be memstore's
PARAMETER = re.compile(r"%\((\w+)\)s")
TELLING = ("Index Cond", "Recheck Cond", "Filter")


def numbered(statement: str) -> tuple[str, list[str]]:
    """Give the statement with $1, $2… and what they stand for, as the driver does."""
    names = list(dict.fromkeys(PARAMETER.findall(statement)))
    return PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", statement).replace("%%", "%"), names


def nodes(plan: Plan) -> Iterator[Plan]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def scans(plan: Plan) -> list[Plan]:
    """Give the nodes that read a table; an index under a bitmap is told with its table."""
    return [node for node in nodes(plan) if node.get("Relation Name") in TABLES and node["Node Type"] != "ModifyTable"]


def conditions(scan: Plan, *kinds: str) -> str:
    return " ".join(str(node[kind]) for node in nodes(scan) for kind in kinds if kind in node)


def generic_plan(connection: psycopg.Connection[Any], statement: str) -> tuple[Plan, list[str]]:
    text, names = numbered(statement)
    connection.execute("set local plan_cache_mode = force_generic_plan")
    connection.execute(f"prepare tried as {text}")
    nothing = f"({', '.join(['null'] * len(names))})" if names else ""
    row = connection.execute(f"explain (format json, costs off) execute tried{nothing}").fetchone()
    connection.execute("deallocate tried")
    assert row is not None
    return row[0][0]["Plan"], names


@pytest.fixture
def database(clone: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(clone) as connection, connection.transaction(force_rollback=True):
        yield connection


@pytest.fixture(scope="module")
def queued(new_database: Callable[..., str], template: str) -> str:
    """The URL of a migrated database that has a queue."""
    url = new_database(template)
    queue.prepare_queue(url)
    return url


@pytest.mark.parametrize("family", FAMILIES)
def test_statements_keep_the_rules(clone: str, queued: str, family: str) -> None:
    """Planned with the rights of the role that runs it, of one user's rows only, and distributable."""
    with psycopg.connect(queued if family == "queue" else clone, autocommit=True) as connection:
        for name in statements(family):
            with connection.transaction(force_rollback=True):
                check_statement(connection, family, name)
            connection.execute("deallocate all")


def check_statement(database: psycopg.Connection[Any], family: str, name: str) -> None:
    key, statement = (family, name), EVERY[family, name]
    if key not in DDL | SPREADING:
        check_words(statement)
    if key in SETTINGS:
        check_setting(database, statement)
    elif key in OF_THE_QUEUE:
        assert generic_plan(database, statement)
    elif key in PLANNED:
        database.execute("set local role memstore_app")
        assert generic_plan(database, statement)
        if "INSERT INTO" in statement and "DO UPDATE" not in statement and key not in OF_THE_OPERATOR | OF_THE_SERVER:
            check_insert_of_several(database, statement)
        database.execute("reset role")  # with no policy in force
        if key in OF_THE_OPERATOR:
            check_operator(database, statement)
        elif key not in OF_THE_SERVER:
            check_user(database, statement, is_of_member=key in OF_A_MEMBER)


def check_words(statement: str) -> None:
    """Refuse what row-level security or a distributed table refuses."""
    words = " ".join(re.sub(r"--.*|'[^']*'", " ", statement).upper().split())
    assert not re.search(r"\b(COPY|MERGE|TRUNCATE|TRIGGER|NEXTVAL|CREATE|ALTER|DROP|RESET)\b", words)
    assert not ("INSERT INTO" in words and re.search(r"\bSELECT\b", words))
    assert (
        words.count("INSERT INTO") + words.count("UPDATE ") - words.count("FOR UPDATE") <= 1 or "ON CONFLICT" in words
    )
    assert not re.search(r"UPDATE \w+ SET [^;]*\buser_id = [^;]* WHERE", words), "a row never changes its user"


def check_setting(connection: psycopg.Connection[Any], statement: str) -> None:
    """A setting ends with its transaction."""
    parts = [part.strip() for part in re.sub(r"--.*", "", statement).split(";")]
    assert all(part.startswith("SET LOCAL ") for part in parts)
    values = {
        "user_id": str(UUID(int=7)),
        "member_id": str(UUID(int=8)),
        "role": "memstore_app",
        "schema": "public",
        "vectors": "public",
    }
    psycopg.ClientCursor(connection).execute(statement, values)


def check_insert_of_several(connection: psycopg.Connection[Any], statement: str) -> None:
    """An insert of two rows is planned with the values of both, all of them of this user."""
    each = PARAMETER.findall(statement)
    for common in (frozenset[str](), frozenset(each[1::2]) - {"user_id"}):
        text, once, names = expand_values(statement, 2, common)
        assert sorted(once) == sorted(common)
        assert sorted(names) == sorted(name for name in each if name not in common | {"user_id"})
        assert each.count("user_id") == 1
        connection.execute(f"prepare tried{len(common)} as {text}")
        nothing = ", ".join(["null"] * (1 + len(once) + 2 * len(names)))
        [plan] = connection.execute(f"explain (format json, verbose) execute tried{len(common)}({nothing})").fetchall()
        assert "Values Scan" in str(plan)
        assert not PARAMETER.search(text)


def check_user(connection: psycopg.Connection[Any], statement: str, *, is_of_member: bool) -> None:
    """Every table is read by the user's id: given, or of a row joined."""
    plan, names = generic_plan(connection, statement)
    assert "user_id" in names
    user = f"${names.index('user_id') + 1}"
    column = "member_id" if is_of_member else "user_id"
    own = re.compile(rf"\b{column} = (?:\({re.escape(user)}\)::uuid|{re.escape(user)}(?!\d)|\w+\.user_id)")
    for scan in scans(plan):
        assert own.search(conditions(scan, *TELLING)), scan
    if plan.get("Operation") == "Insert":
        text, _ = numbered(statement)
        assert re.search(rf"INSERT INTO \w+ \(user_id, .*\)\s+VALUES \({re.escape(user)}, ", text, re.S)
        if "ON CONFLICT" in text:
            assert re.search(r"ON CONFLICT \(user_id\b", text)
    else:
        assert scans(plan)


def check_operator(connection: psycopg.Connection[Any], statement: str) -> None:
    """What the operator asks reads only tables that the operator may see."""
    plan, _ = generic_plan(connection, statement)
    may_see = {"users", "derivations", "model_usage", "backfills", "api_tokens", "webhooks", "webhook_events"}
    assert {scan["Relation Name"] for scan in scans(plan)} <= may_see


def test_the_exceptions_exist() -> None:
    assert EVERY.keys() >= SETTINGS | BEGIN | DDL | LITERAL | OF_THE_SERVER | OF_THE_OPERATOR | SEARCHES | SPREADING


def uses() -> tuple[set[tuple[str, str]], list[str]]:
    """Give every statement that Python names, by family, and every query that is not one."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in STORE.glob("*.py")}
    families = {}
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "statements":
                families[path.stem] = ast.literal_eval(node.args[0])
    used, strange = set(), []
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Subscript) and (place := ast.unparse(node.value)).split(".")[-1] == "SQL":
                module = place.split(".")[0] if "." in place else path.stem
                names = [one.value for one in ast.walk(node.slice) if isinstance(one, ast.Constant)]
                if isinstance(node.slice, ast.JoinedStr):  # one for each list in an export
                    names = [name + table.name for name in names for table in TABLES_IN_LISTS]
                used.update((families[module], name) for name in names if isinstance(name, str))
                strange += [] if names else [f"{path.name}:{node.lineno}"]
            elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in {"execute", "executemany"}:
                given = node.args[0]
                if isinstance(given, ast.JoinedStr) or (isinstance(given, ast.Constant) and given.value not in ASKED):
                    strange.append(f"{path.name}:{node.lineno}")
    return used, strange


def test_every_statement_is_used_and_every_used_one_exists() -> None:
    used, strange = uses()
    assert used == EVERY.keys()
    assert strange == [], "SQL stands in sql/*.sql, under a name"


# A large table: one user with 20,000 chunks, one with 2,000, 200 with 20 each, as they come in: mixed. The first has
# what users have of whom no arrays are held.

HEAVY_UNITS, MIDDLE_UNITS, SMALL_USERS, SMALL_UNITS, DIMENSIONS = 20_000, 2_000, 200, 20, 32
MODEL = UUID(int=1)
SEED = f"""
select setseed(0.25);
create function pg_temp.id(kind text, a int, b int default 0) returns uuid immutable language sql
    as $$ select md5(kind || '/' || a || '/' || b)::uuid $$;
create temp table chunk as
    select u, n, n / 50 as c, n % 50 + 1 as seq, pg_temp.id('user', u) as user_id, pg_temp.id('item', u, n) as id,
           pg_temp.id('conversation', u, n / 50) as conversation_id,
           timestamptz '2024-01-01 00:00Z' + n * interval '1 minute' as at
    from (select 0 as u, n from generate_series(0, {HEAVY_UNITS} - 1) n
          union all
          select 500 as u, n from generate_series(0, {MIDDLE_UNITS} - 1) n
          union all
          select u, n from generate_series(1, {SMALL_USERS}) u, generate_series(0, {SMALL_UNITS} - 1) n) as all_chunks
    order by random();
insert into users (user_id, name, chunks, chunk_length, last_chunk)
    select user_id, 'user ' || u, count(*), count(*) * 8, count(*) from chunk group by user_id, u;
insert into conversations (user_id, id, name, last_seq)
    select user_id, conversation_id, 'c' || c, count(*) from chunk group by user_id, conversation_id, c;
insert into derivations (user_id, conversation_id, deriver, done_seq, last_seq)
    select user_id, conversation_id, d, case when c % 40 = 0 and u % 40 = 0 then 0 else count(*) end, count(*)
    from chunk, unnest(array['chunks', 'summaries', 'facts']) d group by user_id, conversation_id, d, c, u;
insert into messages (user_id, conversation_id, seq, id, role, text, tokens, counter, occurred_at)
    select user_id, conversation_id, seq, id, (array['user', 'assistant'])[n % 2 + 1], 'said ' || n, 2, 'words', at
    from chunk;
insert into facts (user_id, id, type, subject, text, confidence, recipe, occurred_at, attribute, value)
    select user_id, id, 'trait', 'user ' || n % 300, 'says ' || n, 1, 'r', at,
           case when n % 2 = 0 then 'likes/' || n end, case when n % 2 = 0 then 'user ' || n % 17 end
    from chunk where n % 3 = 1;
insert into fact_sources (user_id, fact_id, message_id)
    select user_id, id, pg_temp.id('item', u, n - 1) from chunk where n % 3 = 1;
insert into receipts (user_id, id, conversation_id, budget, tokens, body, recorded_at)
    select user_id, id, conversation_id, 9, 9, '{{"arguments": {{}}}}', at from chunk;
insert into setting_changes (user_id, id, conversation_id, before, recorded_at)
    select user_id, id, conversation_id, '{{}}', at from chunk;
insert into fact_changes (user_id, id, fact_id, action, other_id, actor)
    select user_id, gen_random_uuid(), id, 'superseded', id, 'r' from chunk, generate_series(1, 2) where n % 3 = 1;
insert into summaries (user_id, id, conversation_id, level, from_seq, to_seq, text, tokens, counter, recipe,
                       occurred_at, occurred_until)
    select user_id, id, conversation_id, 1, seq, seq, 'told ' || n, 2, 'words', 'r', at, at from chunk where n % 3 = 2;
insert into item_text (user_id, item_id, chunk_index, tier, conversation_id, seq, role, tags, start, stop, length,
                       terms, frequencies, occurred_at, number)
    select user_id, id, 0, (array['messages', 'facts', 'summaries'])[n % 3 + 1], conversation_id, seq,
           (array['user', 'assistant'])[n % 2 + 1], case when n % 5 = 0 then '{{trip}}' else '{{}}' end::text[],
           0, 9, 8,
           array(select u * 1000 + (n * 7 + k * 13) % 300 from generate_series(1, 8) k order by 1),
           array_fill(1::smallint, array[8]), at, n + 1
    from chunk;
insert into embedding_models (id, name, dimensions, state) values ('{MODEL}', 'e', {DIMENSIONS}, 'serving');
insert into item_vectors (user_id, item_id, chunk_index, model_id, embedding)
    select user_id, id, 0, '{MODEL}',
           (select array_agg(x)
            from (select random() - 0.5 + 0 * n as x from generate_series(1, {DIMENSIONS})) as own)::vector
    from chunk;
"""


def user_number(u: int) -> UUID:
    return _hashed(f"user/{u}/0")


def item_number(u: int, n: int) -> UUID:
    return _hashed(f"item/{u}/{n}")


def conversation_number(u: int, c: int) -> UUID:
    return _hashed(f"conversation/{u}/{c}")


def _hashed(name: str) -> UUID:
    return UUID(bytes=md5(name.encode(), usedforsecurity=False).digest())


SINCE = datetime(2024, 1, 3, tzinfo=UTC)
HEAVY, MIDDLE, SMALL = user_number(0), user_number(500), user_number(7)


PLANNER = "alter database {} set random_page_cost = 1.1"  # as the embedded server has


@pytest.fixture(scope="module")
def unanalyzed(new_database: Callable[..., str], template: str) -> str:
    url = new_database(template)
    with psycopg.connect(url) as connection:
        connection.execute(PLANNER.format(connection.info.dbname))
        for table in sorted(TABLES):
            connection.execute(f"alter table {table} set (autovacuum_enabled = false)")
        connection.execute(SEED)
    indexed = blocking.Database(url, 1, max_chunks=MIDDLE_UNITS)
    indexed.open()
    maintain_indexes(indexed, HEAVY)
    indexed.close()
    return url


@pytest.fixture(scope="module")
def analyzed(new_database: Callable[..., str], unanalyzed: str) -> str:
    url = new_database(psycopg.conninfo.conninfo_to_dict(unanalyzed)["dbname"])
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(PLANNER.format(connection.info.dbname))
        connection.execute("analyze")
    return url


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Database]:
    database = Database(url, 1)
    await database.open()
    try:
        yield database
    finally:
        await database.close()


@pytest.fixture(params=["unanalyzed", "analyzed"])
async def seeded(request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    """A store of many users, before and after the planner has statistics."""
    async with opened(request.getfixturevalue(request.param)) as database:
        yield database


async def explained(database: Database, user: UUID | None, family: str, name: str, /, **values: Any) -> Plan:
    """Run a statement as memstore does, in a user's scope or the operator's (None); give the plan and its counts."""
    statement: Any = f"EXPLAIN (ANALYZE, FORMAT JSON) {EVERY[family, name]}"
    async with database.admin_transaction() if user is None else database.user_transaction(user) as scope:
        row = await scope.one(statement, dict, **values)
    assert row is not None
    return row["QUERY PLAN"][0]["Plan"]


def rows_read(scan: Plan) -> int:
    removed = sum(scan.get(f"Rows Removed by {what}", 0) for what in ("Filter", "Index Recheck"))
    return round((scan["Actual Rows"] + removed) * scan["Actual Loops"])


def filters(**some: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(("conversation_id", "roles", "tags", "since", "until", "as_of"))
    shown: dict[str, Any] = {"hidden_conversations": [], "hidden_facts": []}
    return {"tiers": [str(tier) for tier in Tier]} | nothing | shown | some


def vector(seed: int = 0) -> Any:
    made = np.random.default_rng(seed).normal(size=DIMENSIONS).astype(np.float32)
    return made / np.linalg.norm(made)


def packed(since: datetime) -> dict[str, Any]:
    return {"model_id": MODEL, "since": since, "tiers": [*map(str, Tier)], "roles": [*map(str, Role)]}


def around(u: int) -> dict[str, Any]:
    """Give the values of `around` for ten chunks of a user: half of them by name, half by number."""
    names = [item_number(u, n) for n in range(0, 10, 2)]
    lists = {"item_ids": names, "chunks": [0] * len(names), "numbers": list(range(11, 20, 2))}
    return lists | {key: value for key, value in packed(SINCE).items() if key != "since"} | {"as_of": None, "far": 4}


def late(u: int) -> dict[str, Any]:
    """Give the number after which no postings tell of a user's chunks."""
    return {"after": HEAVY_UNITS - 20 if u == 0 else 0}


def hot(u: int) -> list[tuple[str, str, dict[str, Any]]]:
    """Give the statements that every turn of a talk runs, with values of one user."""
    place = {"conversation_id": conversation_number(u, 0)}
    some = [item_number(u, n) for n in range(0, 20, 2)]
    like = {
        "id": some[0],
        "subject": "user",
        "type": "trait",
        "attribute": "residence",
        "own": ["user"],
        "named": some[:2],
        "subjects": ["user's sister"],
        "called": "Clara",
        "occurred_at": datetime(2024, 1, 3, tzinfo=UTC),
    }
    like |= place | dict.fromkeys(("message_id", "start", "stop"))
    near = {"subjects": ["user"], "aliases": [""], "vectors": [vector()], "model_id": MODEL, "limit": 3}
    return [
        ("chunks", "version", {"model_id": MODEL}),
        ("chunks", "arrays", packed(datetime(2020, 1, 1, tzinfo=UTC))),
        ("chunks", "nearest", {"query": vector(), "model_id": MODEL, "limit": 200}),
        ("chunks", "nearest_filtered", filters(query=vector(), model_id=MODEL, limit=200, tags=["trip"])),
        ("chunks", "neighbourhood", around(u)),
        (
            "chunks",
            "shown",
            filters(tags=["trip"], **{key: around(u)[key] for key in ("item_ids", "chunks", "numbers")}),
        ),
        ("chunks", "latest", filters(limit=20)),
        ("chunks", "messages_said", {"item_ids": some}),
        ("chunks", "summaries_said", {"item_ids": some}),
        ("chunks", "summaries_marked", {"item_ids": some, "as_of": None}),
        ("chunks", "facts_said", {"item_ids": some, "as_of": None}),
        ("postings", "holding", {"terms": [u * 1000 + 20, u * 1000 + 33]}),
        ("postings", "postings", {"terms": [u * 1000 + 20]}),
        (
            "postings",
            "matching",
            filters(terms=[u * 1000 + 20, u * 1000 + 33], after=HEAVY_UNITS - 100 if u == 0 else 0),
        ),
        ("postings", "unposted", late(u) | {"limit": 1000}),
        ("postings", "reach", {}),
        ("facts", "known", like | {"query": vector(), "model_id": MODEL, "limit": 3, "candidates": some[:5]}),
        ("facts", "nearest", near),
        ("facts", "out_of_scope", {"scopes": ["otter"], "unscoped": True, "as_of": None}),
        (
            "facts",
            "remembered",
            {"model_id": MODEL, "until": datetime.now(UTC), "aside": None, "recipes": [], "limit": 20},
        ),
        (
            "facts",
            "facts",
            dict.fromkeys(("state", "type", "kind", "subject", "as_of"))
            | {"ids": some, "type_order": list(TYPE_ORDER), "hidden": []},
        ),
        (
            *("facts", "standing_facts"),
            {"types": ["trait"], "first": ["allergy"], "limit": 8, "as_of": None, "scopes": None}
            | {"conversation_id": place["conversation_id"], "unscoped": True, "own_scope": None},
        ),
        ("facts", "entity_edges", {"entity": "user 7", "depth": 5}),
        ("facts", "changes", {"fact_id": some[0]}),
        ("facts", "said_facts", {"message_ids": some, "as_of": None, "holding": True}),
        ("facts", "successors", {"fact_ids": some, "as_of": None}),
        ("messages", "newest_messages", place | {"before": 2**62, "limit": 10, "role": "user", "as_of": None}),
        ("messages", "said_at", {"conversation_ids": [place["conversation_id"]] * 20, "seqs": [*range(20)]}),
        ("messages", "known_messages", {"ids": some}),
        (
            "messages",
            "take_numbers",
            {"ids": [place["conversation_id"]], "counts": [1], "since": [SINCE], "until": [SINCE]},
        ),
        ("messages", "raise_watermarks", {"ids": [place["conversation_id"]], "last_seqs": [1], "said_at": [SINCE]}),
        ("messages", "lock_conversations", {"ids": [place["conversation_id"]]}),
        ("summaries", "last", place | {"level": 1, "before": 2**62}),
        ("summaries", "after", place | {"level": 1, "seq": 15, "before": 2**62}),
        ("messages", "settings_as_of", place | {"as_of": datetime(2024, 1, 3, tzinfo=UTC)}),
        ("receipts", "says", {"ids": some, "starts": [0] * len(some), "most": 100}),
        (
            "watermarks",
            "advance",
            place | {"deriver": "chunks", "from_seq": 1, "to_seq": 1, "recipe": "r", "closes_at": None},
        ),
        ("watermarks", "reopen", {}),
        ("watermarks", "is_over", dict.fromkeys(("closes_at", "recorded_at"), datetime(2099, 1, 1, tzinfo=UTC))),
    ]


async def test_a_small_user_pays_for_own_rows_only(seeded: Database) -> None:
    for family, name, values in hot(7):
        plan = await explained(seeded, SMALL, family, name, **values)
        assert scans(plan), name
        for scan in scans(plan):
            assert "user_id" in conditions(scan, "Index Cond"), (name, scan)
            assert rows_read(scan) <= SMALL_UNITS * max(1, scan["Actual Loops"]), (name, scan)
            assert "$" not in conditions(scan, "Index Cond"), (name, "a generic plan")


POINTED = {
    *("version", "neighbourhood", "latest", "facts", "facts_said", "known"),
    *("messages_said", "summaries_said", "summaries_marked"),
}


async def test_a_heavy_user_does_not_pay_for_all_rows_to_read_a_few(analyzed: str) -> None:
    async with opened(analyzed) as database:
        for family, name, values in hot(0):
            if family in ("chunks", "facts") and name not in POINTED:
                continue
            plan = await explained(database, HEAVY, family, name, **values)
            assert scans(plan), name
            for scan in scans(plan):
                assert "user_id" in conditions(scan, "Index Cond"), (name, scan)
                assert rows_read(scan) <= 100, (name, scan)


async def test_new_facts_are_put_beside_those_of_their_subjects_without_reading_other_vectors(seeded: Database) -> None:
    (values,) = (values for family, name, values in hot(0) if (family, name) == ("facts", "nearest"))
    plan = await explained(seeded, HEAVY, "facts", "nearest", **(values | {"subjects": ["user 1"]}))
    read = [scan for scan in scans(plan) if scan["Relation Name"] == "item_vectors"]
    assert 0 < sum(rows_read(scan) for scan in read) <= 100


LEGS = ("neighbourhood", "shown", "latest", "holding", "postings", "matching", "unposted", "reach")


@pytest.mark.parametrize("u", [0, 500, 7], ids=["heavy", "middle", "small"])
async def test_a_leg_reads_what_it_looks_for_and_no_more(seeded: Database, unanalyzed: str, u: int) -> None:
    """Of whichever user, with statistics and without: by an index, and of 20,000 chunks those asked for."""
    for family, name, values in hot(u):
        if name not in LEGS:
            continue
        plan = await explained(seeded, user_number(u), family, name, **values)
        assert scans(plan)
        if name == "latest" and seeded.url == unanalyzed:
            continue  # asked where nothing matches, of users whose tables have long been looked at
        few = MIDDLE_UNITS if (u, name) in {(500, "matching"), (500, "unposted")} else 150  # nothing of them is posted
        for scan in scans(plan):
            assert "user_id" in conditions(scan, "Index Cond"), (name, scan)
            assert rows_read(scan) <= few, (name, scan)


async def nearest_plan(database: Database, user: UUID) -> list[Plan]:
    statement: Any = EVERY["vector_indexes", "nearest"].replace("SELECT", "EXPLAIN (ANALYZE, FORMAT JSON) SELECT", 1)
    values = {"model_id": str(MODEL), "dimensions": DIMENSIONS, "effort": 200, "limit": 100, "query": vector()}
    async with database.user_transaction(user) as tx:
        ((plan,),) = await vector_indexes.literally(tx, statement, **values)
    return scans(plan[0]["Plan"])


async def test_the_index_of_a_heavy_user_is_taken_and_read_by_nobody_else(seeded: Database) -> None:
    (own,) = await nearest_plan(seeded, HEAVY)
    assert own["Index Name"] == vector_indexes.name_of(HEAVY, MODEL)
    assert rows_read(own) == 100
    for user in (MIDDLE, SMALL):
        (other,) = await nearest_plan(seeded, user)
        assert not other["Index Name"].startswith("hnsw"), other
        assert "user_id" in conditions(other, "Index Cond"), other
    async with seeded.user_transaction(HEAVY) as tx:
        row = await (await tx.connection.execute("show enable_sort")).fetchone()
    assert row == ("on",)


async def test_what_the_index_finds_is_nearly_all_that_is_near(analyzed: str) -> None:
    own = await vectors_of(analyzed, HEAVY)
    names, matrix = list(own), np.stack(list(own.values()))
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    shares = []
    async with opened(analyzed) as database, database.user_transaction(HEAVY) as tx:
        assert await vector_indexes.is_ready(tx, MODEL)
        for seed in range(10):
            found = await vector_indexes.nearest(tx, vector(seed), MODEL, 200)
            best = {names[n] for n in np.argsort(-(matrix @ vector(seed).astype(np.float64)))[:20]}
            shares.append(len(best & {key.item_id for key in found}) / 20)
    assert np.mean(shares) >= 0.98


async def test_what_is_pending_is_found_among_what_is_done(analyzed: str) -> None:
    first = UUID(int=0)
    values = {"after_user": first, "after_conversation": first, "limit": 500, "deriver": "chunks"}
    async with opened(analyzed) as database:
        for only in (None, HEAVY, SMALL):
            given = values | {"only": only, "conversation_id": None}
            (pending,) = scans(await explained(database, None, "watermarks", "pending", **given))
            (backlog,) = scans(await explained(database, None, "watermarks", "backlog", only=only))
            assert "user_id" in conditions(pending, "Index Cond"), pending
            assert max(rows_read(pending), rows_read(backlog)) <= 60, "a fortieth of the conversations and of the users"


async def vectors_of(url: str, user: UUID, where: str = "true") -> dict[UUID, Any]:
    query = "select item_id, embedding::text from item_vectors join item_text using (user_id, item_id, chunk_index)"
    async with await psycopg.AsyncConnection.connect(url) as connection:
        rows = await connection.execute(f"{query} where user_id = %s and {where}", [user])
        return {item: np.fromstring(text[1:-1], sep=",", dtype=np.float64) async for item, text in rows}


PLACE = conversation_number(0, 3)
HIDDEN = [item_number(0, n) for n in range(40)]


CHOSEN = [
    (Filters(), "true"),
    (Filters(tiers=[Tier.FACTS]), "tier = 'facts'"),
    (Filters(roles=["user"], tags=["trip"]), "role = 'user' and tags @> '{trip}'"),
    (Filters(conversation_id=PLACE), f"conversation_id = '{PLACE}'"),
    (
        Filters(since=SINCE, until=datetime(2024, 1, 9, tzinfo=UTC)),
        "occurred_at >= '2024-01-03Z' and occurred_at < '2024-01-09Z'",
    ),
    (Filters(as_of=datetime(2020, 1, 1, tzinfo=UTC)), "false"),
    (Filters(hidden_conversations=[PLACE]), f"(tier = 'facts' or conversation_id <> '{PLACE}')"),
    (Filters(hidden_facts=HIDDEN), f"(tier <> 'facts' or item_id <> all('{{{','.join(map(str, HIDDEN))}}}'))"),
]


@pytest.mark.parametrize("user", [HEAVY, SMALL], ids=["heavy", "small"])
async def test_nearest_neighbours_are_exact(analyzed: str, user: UUID) -> None:
    """Recall 1.0 and the same order as by brute force, with and without a filter."""
    for chosen, where in CHOSEN:
        own = await vectors_of(analyzed, user, where)
        names = list(own)
        matrix = np.stack(list(own.values())) if own else np.zeros((0, DIMENSIONS))
        matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
        async with opened(analyzed) as database, database.user_transaction(user) as tx:
            query = vector(3)
            cosines = matrix @ query.astype(np.float64)
            best = np.argsort(-cosines)[:50]
            found = await chunks.nearest(tx, query, MODEL, chosen, 50)
            assert [key.item_id for key in found] == [names[n] for n in best], where
            assert list(found.values()) == pytest.approx(list(cosines[best]), abs=1e-6)


async def test_ties_come_in_one_order(clone: str) -> None:
    """Equal vectors (the same words, said twice) are told apart by id, so that a context is the same every time."""
    user, texts = UUID(int=5), sorted(uuid4() for _ in range(60))
    with psycopg.connect(clone) as connection:
        connection.execute("insert into users (user_id, name) values (%s, 'twice')", [user])
        for item in reversed(texts):
            connection.execute(
                "insert into item_text (user_id, item_id, chunk_index, tier, start, stop, length, terms,"
                " frequencies, occurred_at, number) values (%s, %s, 0, 'messages', 0, 1, 1, '{1}', '{1}', now(), 1)",
                [user, item],
            )
            connection.execute("insert into item_vectors values (%s, %s, 0, %s, '[1,1]')", [user, item, MODEL])
    async with opened(clone) as database, database.user_transaction(user) as tx:
        query = np.array([1, 1], dtype=np.float32)
        assert [key.item_id for key in await chunks.nearest(tx, query, MODEL, Filters(), 40)] == texts[:40]
        tiers = Filters(tiers=[Tier.MESSAGES])
        assert [key.item_id for key in await chunks.nearest(tx, query, MODEL, tiers, 40)] == texts[:40]
        assert [key.item_id for key in await chunks.latest(tx, Filters(), 40)] == texts[:40]


@pytest.mark.parametrize("name", ["nearest", "nearest_filtered"])
def test_a_vector_index_is_not_taken_even_when_everything_else_is_forbidden(
    database: psycopg.Connection[Any], name: str
) -> None:
    """Behind a filter by user an index over all users has a recall of 0.08, and the planner would choose it."""
    database.execute("alter table item_vectors alter embedding type vector(2)")
    database.execute("create index trap on item_vectors using hnsw (embedding vector_cosine_ops)")
    for setting in ("enable_seqscan", "enable_bitmapscan", "enable_sort"):
        database.execute(f"set local {setting} = off")
    wanted = {"query": "[1,1]", "limit": "10", "user_id": str(HEAVY), "model_id": str(MODEL), "tiers": "{facts}"}

    def taken(statement: str) -> bool:
        text, names = numbered(statement)
        literals = [f"'{wanted[one]}'" if one in wanted else "null" for one in names]
        database.execute(f"prepare trapped as {text}")
        row = database.execute(f"explain (format json) execute trapped({', '.join(literals)})").fetchone()
        database.execute("deallocate trapped")
        assert row is not None
        return any(node.get("Index Name") == "trap" for node in nodes(row[0][0]["Plan"]))

    statement = EVERY["chunks", name]
    free = statement.replace("(v.embedding <=> %(query)s) + 0, v.item_id, v.chunk_index", "v.embedding <=> %(query)s")
    assert free != statement
    assert taken(free), "the trap does not work"
    assert not taken(statement)


@pytest.mark.parametrize("analyze", ["select", "analyze"])
async def test_whose_turn_it_is_is_read_from_an_index(
    new_database: Callable[..., str], template: str, analyze: str
) -> None:
    """Of 10,000 conversations of a user whose facts wait."""
    url = new_database(template)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(PLANNER.format(connection.info.dbname))
        connection.execute(f"""
            create function pg_temp.id(n int) returns uuid language sql as $$ select md5('c' || n)::uuid $$;
            insert into users (user_id, name) values ('{SMALL}', 'a');
            insert into conversations (user_id, id, name, last_seq)
                select '{SMALL}', pg_temp.id(n), n, 1 from generate_series(1, 10000) n;
            insert into derivations (user_id, conversation_id, deriver, last_seq, pending_since)
                select '{SMALL}', pg_temp.id(n), d, 1, '2024-01-01 00:00Z'::timestamptz + n * interval '1 hour'
                from generate_series(1, 10000) n, unnest(array['chunks', 'facts']) d;
            {analyze}""")
    place = {"user": SMALL, "conversation_id": UUID(bytes=md5(b"c9999", usedforsecurity=False).digest())}
    nobody = {"after_user": UUID(int=0), "after_conversation": UUID(int=0), "open": [], "limit": 500}
    async with opened(url) as database:
        for name, values, most in (
            ("behind", place, 10), ("next_in_line", {"user": SMALL, "backfill": None}, 10),
            ("unfinished", nobody | {"backfill": None}, 3000),
        ):  # fmt: skip
            plan = await explained(database, None, "watermarks", name, **values)
            assert sum(map(rows_read, scans(plan))) <= most, name
