"""Rows that another transaction holds and deletes, as an erasure does."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import LiteralString

import psycopg

from tests.conftest import is_citus


@contextmanager
def deleting(url: str, table: LiteralString) -> Iterator[None]:
    """Hold all rows of a table, and delete them as soon as somebody waits for one."""

    def delete() -> None:
        until = time.monotonic() + 30
        while not waits(url):
            assert time.monotonic() < until, "nobody waits"
        other.execute(f"DELETE FROM {table}")
        other.commit()

    with psycopg.connect(url) as other, ThreadPoolExecutor(1) as pool:
        users = [user for (user,) in other.execute(f"SELECT DISTINCT user_id FROM {table}")]
        for user in users:  # a Citus refuses to lock rows of several
            other.execute(f"SELECT FROM {table} WHERE user_id = %s FOR UPDATE", [user])
        deleted = pool.submit(delete)
        yield
        deleted.result()


def waits(url: str) -> bool:
    """Whether somebody waits for a lock of another one, on a Citus at any node."""
    blocked = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    if is_citus(url):
        blocked = "SELECT FROM citus_lock_waits"
    with psycopg.connect(url) as connection:
        return connection.execute(blocked).rowcount > 0
