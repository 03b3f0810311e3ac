#!/usr/bin/env python3
"""How long it takes to erase, and whether anything is left: one message, one conversation, one user of many messages.

    benchmarks/erasure.py [--messages 100000] [--store FOLDER] [--json FILE]

The store is made up, with the rows that derivation leaves: for each message a chunk, a vector of 384 dimensions and an
event, for ten a fact with two sources, for thirty a summary, for a hundred a receipt that names 40 messages. Each
message has a word of its own. Another user has a tenth of that. Every table is searched afterwards.
Seconds are also shown as those of CPU, of this process and the server together: on a busy machine read these.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
from report import Cell, Table, reported

import memstore
from memstore import Certificate, ids

DIMENSIONS, EACH = 384, 200  # messages of a conversation
SEED = """
select setseed(0.25);
create function pg_temp.id(kind text, a int) returns uuid immutable language sql
    as $$ select md5(%(user)s || kind || '/' || a)::uuid $$;
create temp table said as
    select n, n / %(each)s as c, n %% %(each)s + 1 as seq, pg_temp.id('item', n) as id,
           pg_temp.id('conversation', n / %(each)s) as place, timestamptz '2022-01-01' + n * interval '5 minutes' as at,
           'I saw word' || n || %(name)s || ' today, and told everybody who came by what it was like, twice.' as text
    from generate_series(0, %(messages)s - 1) n;
insert into users (user_id, name, chunks, chunk_length, last_chunk)
    values (%(user)s, %(name)s, %(messages)s, %(messages)s * 14, %(messages)s);
insert into conversations (user_id, id, name, last_seq)
    select %(user)s, place, 'c' || c, count(*) from said group by place, c;
insert into derivations (user_id, conversation_id, deriver, done_seq, last_seq, recipe)
    select %(user)s, place, d, count(*), count(*), 'r'
    from said, unnest(array['chunks', 'summaries', 'facts']) d group by place, d;
insert into messages (user_id, conversation_id, seq, id, role, text, tokens, counter, occurred_at, external_id)
    select %(user)s, place, seq, id, 'user', text, 20, 'words', at, case when n %% 2 = 0 then n::text end from said;
insert into facts (user_id, id, type, subject, text, confidence, recipe, occurred_at, attribute, value)
    select %(user)s, pg_temp.id('fact', n), 'event', 'The user', 'saw word' || n || %(name)s, 1, 'r', at, 'saw',
           'word' || n
    from said where n %% 10 = 0;
insert into fact_sources (user_id, fact_id, message_id)
    select %(user)s, pg_temp.id('fact', n), pg_temp.id('item', n + k)
    from said, generate_series(0, 1) k where n %% 10 = 0;
insert into fact_changes (user_id, id, fact_id, action, actor)
    select %(user)s, pg_temp.id('change', n), pg_temp.id('fact', n), 'edited', 'r'
    from said where n %% 10 = 0;
insert into summaries (user_id, id, conversation_id, level, from_seq, to_seq, text, tokens, counter, recipe,
                       occurred_at, occurred_until)
    select %(user)s, pg_temp.id('summary', n), place, 1, seq, seq + 19, text, 20, 'words', 'r', at, at
    from said where seq %% 20 = 1;
insert into item_text (user_id, item_id, chunk_index, tier, conversation_id, seq, role, start, stop, length, terms,
                       frequencies, occurred_at, number)
    select %(user)s, id, 0, 'messages', place, seq, 'user', 0, 80, 14,
           array(select (n * 7919 + k * 104729) %% 20000 from generate_series(1, 14) k),
           array_fill(1::smallint, array[14]), at, n + 1 from said;
insert into embedding_models (id, name, dimensions, state) values (%(model)s, 'hashing:384', 384, 'serving')
    on conflict do nothing;
insert into item_vectors (user_id, item_id, chunk_index, model_id, embedding)
    select %(user)s, id, 0, %(model)s, v.v
    from said, (select array_agg(random() - 0.5)::vector as v from generate_series(1, %(dimensions)s)) v;
insert into receipts (user_id, id, conversation_id, budget, tokens, body, sent)
    select %(user)s, pg_temp.id('receipt', n), place, 2000, 1990,
           jsonb_build_object('included', (select jsonb_agg(jsonb_build_object('id', pg_temp.id('item', n - k)))
                                           from generate_series(0, 39) k)), convert_to(text, 'UTF8')
    from said where n %% 100 = 99;
insert into events (user_id, id, conversation_id, type, body)
    select %(user)s, pg_temp.id('event', n), place, 'message_added', '{"tokens": 20}' from said;
drop table said;
"""


def seeded(url: str, name: str, messages: int) -> None:
    """Put a user into a store who has said so much."""
    model = ids.model_id("hashing:384", DIMENSIONS)
    values = {"user": str(ids.user_id(name)), "name": name, "model": model, "messages": messages}
    with psycopg.connect(url) as connection:
        psycopg.ClientCursor(connection).execute(SEED, values | {"each": EACH, "dimensions": DIMENSIONS})


def cpu(url: str) -> float:
    """Return the seconds of CPU that this process and the server's have taken so far (Linux)."""
    with psycopg.connect(url) as connection:
        asked = connection.execute("select pid from pg_stat_activity where backend_type = 'client backend'")
        pids = [pid for (pid,) in asked if pid != connection.info.backend_pid]
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def timed(url: str, what: str, erase: Callable[[], Certificate]) -> list[Cell]:
    """Erase; give how long it took, what was removed, and in how many tables something is left."""
    worked, began = cpu(url), time.perf_counter()
    done = erase()
    seconds, worked = time.perf_counter() - began, cpu(url) - worked
    rows = sum(done.counts.values())
    print(f"{what}: {seconds:.2f} s", file=sys.stderr, flush=True)
    return [what, round(seconds, 2), round(worked, 2), rows, done.tombstones, len(done.scan.found)]


def main() -> int:
    """Make the store, erase, look."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--store", type=Path, default=Path(tempfile.mkdtemp(prefix="memstore-erasure-")) / "store")
    parser.add_argument("--json", type=Path, help="write the figures")
    asked = parser.parse_args()
    settings = {"embedder": "hashing:384"}
    with memstore.open(f"embedded:{asked.store}", settings=settings) as store:
        for name, messages in (("alice", asked.messages), ("bob", asked.messages // 10)):
            seeded(store.url, name, messages)
        with psycopg.connect(store.url, autocommit=True) as connection:
            connection.execute("analyze")
        alice = store.user("alice")
        place = alice.conversation("c7")
        place.id = next(one.id for one in alice.conversations() if one.name == "c7")  # its id is made up
        message = place.messages()[33]
        ways: dict[str, Callable[[], Certificate]] = {
            "one message": lambda: alice.erase_message(message),
            "a conversation of 200 messages": place.erase,
            "the user, rehearsed": lambda: alice.erase(dry_run=True),
            "the user": alice.erase,
        }
        rows = [timed(store.url, what, erase) for what, erase in ways.items()]
        for certificate in alice.erasures():
            left = store.verify_erasure(certificate)
            assert left.is_clean, f"something is left: {left.found}"
        assert store.stats(user="bob")["messages"] == asked.messages // 10
    columns = ("erased", "seconds", "of CPU", "rows", "tombstones", "tables with something left")
    reported([Table("erasure", f"Of a user of {asked.messages:,} messages", columns, rows)], asked.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
