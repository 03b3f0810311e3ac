"""Databases for a whole file of tests, where a clone for each test would take longer than the tests."""

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

from memstore.store.roles import ROLES
from memstore.store.tables import tables_of
from tests.conftest import create_database, drop_database, is_citus

TABLES = set(tables_of("user"))
OF_THE_OPERATOR = set(tables_of("operator"))
OUTLIVING = set(tables_of("kept"))
KEYS = set(tables_of("store"))

ACROSS = "its own SQL reads or changes rows across users, in ways that a Citus refuses"
GOES_ON = "goes on in a transaction that an error of a node has ended; nothing is shown in it"
UNTAKEN = "a login that takes no role: nodes do not know what it was granted, and refuse"
PLANS = "reads plans of the tables, which are on other machines; test_citus.py plans the statements there"
OF_ONE_SERVER = {  # tests that a Citus is not asked, and why; docs/compatibility.md lists them
    "test_a_join_on_another_user_finds_nothing": ACROSS,
    "test_no_row_becomes_another_user_s": ACROSS,
    "test_what_was_said_is_never_changed": ACROSS,
    "test_copy_gives_own_rows_and_takes_none": ACROSS,
    "test_nobody_steps_out_of_the_role": GOES_ON,
    "test_without_its_scope_the_login_sees_nobody": GOES_ON,
    "test_what_reads_past_the_tables_is_refused": GOES_ON,
    "test_the_loader_brings_history_in_and_sees_nothing_derived": UNTAKEN,
    "test_the_admin_lists_users_and_reads_nothing_of_theirs": UNTAKEN,
    "test_what_somebody_has_and_what_nobody_has_are_refused_alike": "compares errors, which name a shard there",
    "test_nothing_is_kept_where_policies_do_not_reach": "lists all relations, of which a Citus has its own",
    "test_nothing_that_a_distributed_table_refuses": "lists all triggers, of which a Citus has its own",
    "test_every_row_goes_with_its_user": "lists all foreign keys, of which a Citus has its own",
    "test_six_processes_migrate_a_new_database_at_once": "compares with a schema that is not distributed",
    "test_the_printed_statements_make_the_same_schema": "compares with a schema that is not distributed",
    "test_statements_keep_the_rules": PLANS,
    "test_a_small_user_pays_for_own_rows_only": PLANS,
    "test_a_heavy_user_does_not_pay_for_all_rows_to_read_a_few": PLANS,
    "test_new_facts_are_put_beside_those_of_their_subjects_without_reading_other_vectors": PLANS,
    "test_a_leg_reads_what_it_looks_for_and_no_more": PLANS,
    "test_the_index_of_a_heavy_user_is_taken_and_read_by_nobody_else": PLANS,
    "test_what_the_index_finds_is_nearly_all_that_is_near": PLANS,
    "test_what_is_pending_is_found_among_what_is_done": PLANS,
    "test_nearest_neighbours_are_exact": PLANS,
    "test_a_vector_index_is_not_taken_even_when_everything_else_is_forbidden": PLANS,
    "test_whose_turn_it_is_is_read_from_an_index": PLANS,
}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    dsn = item.config.getoption("--dsn")
    reason = OF_ONE_SERVER.get(getattr(item, "originalname", ""))
    if dsn and reason and is_citus(dsn):
        pytest.skip(reason)


@pytest.fixture(scope="module")
def new_role(server_url: str, template: str, request: pytest.FixtureRequest) -> Iterator[Callable[..., str]]:
    """Make a role that may log in and has the attributes given; give its name. The app role is there already."""
    made: list[str] = []

    def make(attributes: str = "") -> str:
        made.append(f"role_{uuid4().hex[:8]}")
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {made[-1]} LOGIN NOSUPERUSER {attributes}")
        return made[-1]

    yield make
    if request.config.getoption("--dsn"):
        with psycopg.connect(server_url, autocommit=True) as connection:
            for name in reversed(made):  # who was granted something before who granted it
                connection.execute(f"DROP ROLE {name}")


@pytest.fixture(scope="module")
def new_database(
    server_url: str, new_role: Callable[..., str], request: pytest.FixtureRequest
) -> Iterator[Callable[..., str]]:
    """Make a database, empty or a clone, that may belong to another role; give its URL."""
    made: list[str] = []

    def make(template: str = "template0", owner: str = "DEFAULT") -> str:
        made.append(f"test_{uuid4().hex[:12]}")
        create_database(server_url, made[-1], template, owner)
        return urlsplit(server_url)._replace(path=f"/{made[-1]}").geturl()

    yield make
    if request.config.getoption("--dsn"):
        for name in made:
            drop_database(server_url, name)


@pytest.fixture(scope="module")
def clone(new_database: Callable[..., str], template: str) -> str:
    """The URL of a migrated database that all tests of the file share."""
    return new_database(template)


@pytest.fixture(scope="module")
def filled(new_database: Callable[..., str], template: str) -> str:
    """The URL of a database in which two users have rows in every table."""
    from tests.integration.test_isolation import fill  # which has its tables from here

    url = new_database(template)
    fill(url)
    return url


@pytest.fixture
def without_roles(server_url: str, template: str, request: pytest.FixtureRequest) -> Iterator[None]:
    """A server that knows none of memstore's roles, until the test ends."""
    if request.config.getoption("--dsn"):
        pytest.skip("roles are renamed for a moment, which a server of your own may not like")
    mark = uuid4().hex[:8]
    with psycopg.connect(server_url, autocommit=True) as connection:
        for role in ROLES:
            connection.execute(f"ALTER ROLE {role} RENAME TO {role}_{mark}")
        yield
        for role in ROLES:
            if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [role]).fetchone() is not None:
                connection.execute(f"ALTER ROLE {role} RENAME TO made_{role}_{mark}")
            connection.execute(f"ALTER ROLE {role}_{mark} RENAME TO {role}")


def as_role(url: str, name: str, password: str = "") -> str:
    parts = urlsplit(url)
    secret = f":{password}" if password else ""
    return parts._replace(netloc=f"{name}{secret}@{parts.netloc.rpartition('@')[2]}").geturl()


@pytest.fixture(scope="session")
def login() -> Callable[..., str]:
    return as_role
