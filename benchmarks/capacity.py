#!/usr/bin/env python3
"""How many machines so many users take: from what a user of a real store costs, measured, to a million and more.

    benchmarks/capacity.py embedded:FOLDER --users 1e6 1e8 --messages 3000

Bytes by table and messages are those of the store that is given: derive it first, and let it hold a history like your
users'. The rest are assumptions, each an option; the formulas stand in `Model`.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psycopg

import memstore

SHARED = {"alembic_version", "memstore_schema", "api_tokens", "backfills", "store_keys", "webhooks", "webhook_events"}
BYTES = """
SELECT c.relname, pg_total_relation_size(c.oid)
FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
  AND c.relname NOT LIKE 'procrastinate%' ORDER BY 2 DESC
"""
GIB = 2**30
ASSUMED = {
    "hot": "part of the users who are active in an hour",
    "node_memory": "bytes of memory that a machine has",
    "node_disk": "bytes of disk that a machine has",
    "full": "part of a disk or a memory that is filled, at most",
    "copies": "machines in the place of one, with its standbys",
    "shards_a_node": "shards of a machine",
}


@dataclass(frozen=True)
class Model:
    """The formulas. Sizes are bytes."""

    users: float
    messages: float  # of each user
    bytes_a_message: float  # in every table and index, measured
    hot: float = 0.02  # part of the users who are active in an hour: their rows are to be in memory
    node_memory: float = 64 * GIB
    node_disk: float = 4096 * GIB
    full: float = 0.7  # of a disk or a memory, at most
    copies: float = 2.0  # a standby beside each
    shards_a_node: int = 16  # so that nodes can be added without splitting

    @property
    def disk(self) -> float:
        """Of all users, one copy."""
        return self.users * self.messages * self.bytes_a_message

    @property
    def memory(self) -> float:
        """What the active users' rows take."""
        return self.disk * self.hot

    @property
    def nodes(self) -> int:
        """As many as disk or memory asks for, whichever is more; without standbys."""
        by_disk = self.disk / (self.node_disk * self.full)
        return max(1, math.ceil(max(by_disk, self.memory / (self.node_memory * self.full))))

    @property
    def shards(self) -> int:
        """The next power of two; citus.shard_count."""
        return int(2 ** math.ceil(math.log2(max(32, self.nodes * self.shards_a_node))))


def measured(address: str) -> tuple[dict[str, int], int]:
    """Return bytes by table and the number of messages."""
    with memstore.open(address, settings={"embedder": "none"}) as store, psycopg.connect(store.url) as connection:
        sizes = {name: int(size) for name, size in connection.execute(BYTES) if name not in SHARED}
        return sizes, store.stats()["messages"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print bytes a message by table, and a row for each number of users."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", help="embedded:FOLDER or a URL")
    parser.add_argument("--users", type=float, nargs="+", default=[1e4, 1e6, 1e8])
    parser.add_argument("--messages", type=float, default=3000, help="of each user, in all years")
    for name, words in ASSUMED.items():
        default = getattr(Model, name)
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default, help=words)
    parser.add_argument("--json", type=Path, help="write the figures here")
    given = parser.parse_args(arguments)
    sizes, messages = measured(given.store)
    if not messages:
        print("This store has no messages: derive a history first.", file=sys.stderr)
        return 1
    each = sum(sizes.values()) / messages
    print(f"{messages:,} messages, {each:,.0f} bytes a message with all that is derived of it")
    for name, size in sizes.items():
        if size / sum(sizes.values()) > 0.01:
            print(f"  {name:<18}{size / messages:>10,.0f}{size / sum(sizes.values()):>8.0%}")
    assumed = {name: getattr(given, name) for name in ASSUMED}
    models = [Model(users, given.messages, each, **assumed) for users in given.users]
    print(
        f"\n{'users':>13}{'messages':>18}{'disk GiB':>12}{'hot GiB':>10}{'nodes':>8}{'with standbys':>15}{'shards':>8}"
    )
    for one in models:
        print(
            f"{one.users:>13,.0f}{one.users * one.messages:>18,.0f}{one.disk / GIB:>12,.0f}{one.memory / GIB:>10,.0f}"
            f"{one.nodes:>8,}{one.nodes * one.copies:>15,.0f}{one.shards:>8,}"
        )
    if given.json:
        rows = [asdict(one) | {"disk": one.disk, "nodes": one.nodes, "shards": one.shards} for one in models]
        given.json.write_text(json.dumps({"bytes": sizes, "messages": messages, "models": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
