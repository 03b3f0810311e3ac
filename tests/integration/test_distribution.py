"""Distributing, against what Citus was measured to refuse: its functions stand in; test_citus.py asks a real one."""

from collections.abc import Callable
from dataclasses import replace

import psycopg
import pytest

import memstore
from memstore.errors import DatabaseError
from memstore.store import distribution
from tests.command_line import script
from tests.conftest import is_citus
from tests.integration.test_isolation import SETTINGS, fill
from tests.integration.test_schema import KEYS, OUTLIVING, TABLES

Make = Callable[..., str]


@pytest.fixture(scope="module", autouse=True)
def plain(server_url: str) -> None:
    if is_citus(server_url):
        pytest.skip("its functions stand in here")


# Each check is a line of what was found by running Citus 14: research of the schema, written down when it was designed.
STAND_IN = """
create table pg_dist_partition (logicalrelid regclass primary key, at_root boolean);
create function check_movable(place regclass) returns void language plpgsql as $$
declare rows bigint; forced boolean := (select relforcerowsecurity from pg_class where oid = place);
begin
    if exists (select from pg_constraint where contype = 'f' and place in (conrelid, confrelid)) then
        raise 'foreign keys lead to % or from it', place;
    elsif exists (select from pg_trigger where tgrelid = place and not tgisinternal) then
        raise 'triggers are not supported';
    end if;
    execute format('select count(*) from %s', place) into rows;
    if forced and rows > 0 then raise 'COPY FROM not supported with row-level security'; end if;
end $$;
create function create_distributed_table(place regclass, by text, colocate_with text) returns void
language plpgsql as $$
declare own smallint := (select attnum from pg_attribute where attrelid = place and attname = by);
begin
    perform check_movable(place);
    if current_setting('citus.multi_shard_modify_mode', true) is distinct from 'sequential' then
        raise 'parallel after sequential';
    elsif exists (select from pg_index where indrelid = place and indisunique and own <> all (indkey::smallint[])) then
        raise 'a unique index of % is without %', place, by;
    elsif (colocate_with = 'none') <> (place = 'users'::regclass)
          or colocate_with <> 'none' and not exists (select from pg_dist_partition
                                                     where logicalrelid = colocate_with::regclass) then
        raise '% is not together with the others', place;
    end if;
    insert into pg_dist_partition values (place, colocate_with = 'none');
end $$;
create function create_reference_table(place regclass) returns void language plpgsql as $$
begin
    perform check_movable(place);
    insert into pg_dist_partition values (place, null);
end $$;
"""
CONSTRAINTS = (
    "select conrelid::regclass::text, conname, pg_get_constraintdef(oid) from pg_constraint where contype = 'f'"
)
FORCED = "select relname from pg_class where relforcerowsecurity order by 1"


def test_every_table_is_spread_by_user_or_copied_and_keys_and_policies_are_as_before(
    new_database: Make, template: str
) -> None:
    url = new_database(template)
    fill(url)
    with psycopg.connect(url, autocommit=True) as connection:
        keys, forced = set(connection.execute(CONSTRAINTS)), connection.execute(FORCED).fetchall()
        connection.execute(STAND_IN)
        done = distribution.distribute(url)
        assert set(done.distributed) == TABLES | OUTLIVING
        assert set(done.reference) == KEYS
        assert set(connection.execute(CONSTRAINTS)) == keys and len(keys) > 10
        assert connection.execute(FORCED).fetchall() == forced
    with psycopg.connect(url) as connection:
        told = connection.execute("select current_setting('citus.propagate_set_commands')").fetchone()
        assert told == ("local",), "or no other node hears whose rows a transaction is for"
    assert distribution.distribute(url) == distribution.DistributedTables((), ())
    with memstore.open(url, settings=SETTINGS) as store:
        assert store.user("alice").recall("Lisbon")


def test_all_or_nothing(new_database: Make, template: str) -> None:
    url = new_database(template)
    with psycopg.connect(url, autocommit=True) as connection:
        keys = set(connection.execute(CONSTRAINTS))
        connection.execute(STAND_IN)
        connection.execute("create unique index on summaries (id)")
        with pytest.raises(DatabaseError, match="without user_id"):
            distribution.distribute(url)
        assert set(connection.execute(CONSTRAINTS)) == keys
        assert connection.execute("select count(*) from pg_dist_partition").fetchone() == (0,)


def test_without_citus_it_says_what_to_do(clone: str) -> None:
    told = script("db", "distribute", "-d", clone)
    assert (told.code, "CREATE EXTENSION citus" in told.err) == (1, True)


def test_no_setting_shares_its_message_with_anything(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each SET LOCAL Citus sends its nodes the text of the whole message: what else is in it would run there."""
    with memstore.open(url, settings=SETTINGS | {"max_chunks_in_memory": 5}) as store:
        able = store._database.capabilities
        monkeypatch.setattr(store._database, "capabilities", replace(able, citus=True))
        messages: list[str] = []
        real = psycopg.ClientCursor.execute

        def record(self: psycopg.ClientCursor[object], query: object, *values: object, **options: object) -> object:
            messages.append(str(query))
            return real(self, query, *values, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(psycopg.ClientCursor, "execute", record)
        talk = store.user("zoe").conversation("c")
        talk.add_many([{"role": "user", "content": f"I live in Ghent, at number {n}."} for n in range(9)])
        store.derive()
        assert store.build_indexes() == []
        assert store.user("zoe").recall("Ghent") and talk.context("Where do I live?", budget=500).receipt.id
    sent = [message for message in messages if "SET LOCAL" in message]
    assert any("hnsw.ef_search" in message for message in sent)
    assert [message for message in sent if ";" in message.removesuffix(";")] == []
