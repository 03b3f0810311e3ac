"""Erasing: nothing of what was erased is left in any table, everything else is as it was, and it does not come back."""

import json
import re
import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, ClassVar

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from memstore import Certificate, Erased, InvalidInput, ids
from memstore.client.store import AsyncMemoryStore
from memstore.client.user import AsyncUserScope
from memstore.ingest import add
from memstore.models import Section
from memstore.providers import ChatMessage
from memstore.store import facts as store_facts
from memstore.store.tables import TABLES
from memstore.strategies.base import ConversationView, Strategy
from tests.conftest import is_citus, nodes, with_database
from tests.helpers.fakes import ScriptedChatModel
from tests.helpers.locks import deleting
from tests.helpers.user_rows import add_missing_rows

START = datetime(2024, 3, 1, 9, tzinfo=UTC)
TWO_GRANTS = """insert into grants (user_id, member_id, space_name, member_name, access)
                select gen_random_uuid(), gen_random_uuid(), 'otter', 'ann', 'read' from generate_series(1, 2)"""
STAYING = {"tombstones", "erasures", "store_keys", "memstore_schema"}  # of an erasure: hashes, ids and counts
SETTINGS = {"embedder": "hashing:256", "segment_tokens": 60}
HARMLESS = [f"{table.name}.{column}" for table in TABLES for column in table.harmless]


def dumped(url: str, user: str | None = None) -> dict[str, list[str]]:
    """Give every row of every table as text, as a superuser sees it; of one user, or of all."""
    found: dict[str, list[str]] = {}
    with psycopg.connect(url, autocommit=True) as superuser:
        tables = superuser.execute(
            "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
        )
        for (table,) in tables.fetchall():
            rows = [(row, b"") for (row,) in superuser.execute(f"select to_jsonb(t)::text from {table} t").fetchall()]
            if table == "receipts":
                rows = superuser.execute("select (to_jsonb(t) - 'sent')::text, sent from receipts t").fetchall()
            read = [row + zlib.decompress(sent).decode() if sent else row for row, sent in rows]
            mine = [row for row in read if user is None or str(ids.user_id(user)) in row]
            if table not in STAYING:
                found[table] = sorted(mine)
    return found


def holding(url: str, *sought: object) -> dict[str, int]:
    """Give how many rows of each table have one of these texts or ids."""
    texts = [str(one).lower() for one in sought]
    every = {
        table: sum(any(text in row.lower() for text in texts) for row in rows) for table, rows in dumped(url).items()
    }
    return {table: rows for table, rows in every.items() if rows}


def catalogued(url: str, *sought: str) -> dict[str, int]:
    """Give how many rows of each table of every schema, the catalogue with its statistics too, have one of these."""
    tables = "select oid::regclass::text from pg_class where relkind in ('r', 'm', 'p') order by oid"
    with psycopg.connect(url, autocommit=True) as superuser:
        found = {
            table: superuser.execute(
                f"select count(*) from {table} t where lower(t::text) ~ %s",
                ["|".join(word.lower() for word in sought)],
            ).fetchall()[0][0]
            for (table,) in superuser.execute(tables).fetchall()
        }
    return {table: rows for table, rows in found.items() if rows}


def said(name: str, room: str, count: int = 12) -> list[dict[str, Any]]:
    """Give messages that each have a word which is said nowhere else."""
    return [
        {
            "role": "user" if number % 3 else "assistant",
            "content": f"I live in {name}{room}{number}ville. My dog is called {name}{room}{number}rex, by the way.",
            "occurred_at": START + timedelta(hours=7 * number),
            "external_id": f"{name}-{room}-{number}" if number % 2 else None,
            "metadata": {"note": f"{name}{room}{number}meta"},
        }
        for number in range(1, count + 1)
    ]


async def talked(
    store: AsyncMemoryStore, name: str = "alice", rooms: Collection[str] = ("lisbon", "work")
) -> AsyncUserScope:
    """Give a user of whom something stands in every table."""
    user = store.user(name)
    for room in rooms:
        place = user.conversation(room, title=f"About {room}")
        await place.add_many(said(name, room))
        await store.derive(user=name)
        await place.summarize(1, 5)
        await place.update(settings={"mood": f"{name} likes it"})
        for question in ("Where do I live?", "What is my dog called?"):
            await place.context(question, budget=900, system="Be kind.", strategy=["summary_buffer"])
        await place.context(budget=300, strategy=["hierarchical"])
    fact = (await user.facts())[0]
    await user.edit_fact(fact, confidence=0.5)
    await user.documents().put(("notes",), "first", {"text": f"{name} keeps a note."})
    await store.tokens.create(user=name, name=f"{name}'s laptop")
    with psycopg.connect(store.url) as connection:
        connection.execute(
            "insert into invalid_responses"
            " (user_id, id, conversation_id, deriver, from_seq, to_seq, recipe, error, payload)"
            " select user_id, gen_random_uuid(), conversation_id, 'facts', seq, seq, 'r', 'ModelAnswerInvalid', text"
            " from messages where user_id = %s",
            [user.id],
        )
    with psycopg.connect(store.url, autocommit=True) as connection:
        connection.execute("analyze")
    return user


def words(name: str, room: str, number: int) -> list[str]:
    return [f"{name}{room}{number}{what}" for what in ("ville", "rex", "meta")]


async def is_whole(store: AsyncMemoryStore) -> None:
    assert [(one.problem, one.user) for one in await store.backfills.verify()] == []


@pytest.mark.parametrize("number", [1, 2, 5, 11])
async def test_of_an_erased_message_nothing_is_left(store: AsyncMemoryStore, number: int) -> None:
    await talked(store, "bob")
    alice = await talked(store)
    bob = dumped(store.url, "bob")
    place = alice.conversation("lisbon")
    message = (await place.messages())[number - 1]
    assert set(holding(store.url, *words("alice", "lisbon", number))) >= {"messages", "facts", "invalid_responses"}
    assert set(catalogued(store.url, *words("alice", "lisbon", number))) >= {"messages", "facts", "invalid_responses"}
    certificate = await alice.erase_message(message)
    assert catalogued(store.url, *words("alice", "lisbon", number)) == {}
    assert holding(store.url, *words("alice", "lisbon", number), message.id) == {}
    assert certificate.scan.is_clean
    assert certificate.counts["messages"] == 1
    assert (await store.derive()).failed == ()
    assert holding(store.url, *words("alice", "lisbon", number), message.id) == {}
    assert dumped(store.url, "bob") == bob
    assert [one.seq for one in await place.messages()] == [n for n in range(1, 13) if n != number]
    statistics = await place.statistics()
    assert (statistics.messages_kept, statistics.messages_total) == (11, 11)
    await is_whole(store)


@dataclass(frozen=True)
class Quoting(Strategy):
    """A strategy that tells facts in place of turns, in words of its own."""

    name: ClassVar[str] = "quoting"
    by_facts: ClassVar[bool] = True

    def run(self, view: ConversationView) -> ConversationView:
        told = " / ".join(fact.text.replace(" ", "_") for fact in view.facts)
        [run] = view.runs(0, len(view.entries))
        block = view.block(self, run, told, run[-1].first_seq)
        return replace(view, entries=(block, *(entry for entry in view.entries if entry not in run)))


@pytest.mark.parametrize("redo", [False, True], ids=["as derived", "derived anew"])
async def test_no_receipt_quotes_what_was_erased_elsewhere(store: AsyncMemoryStore, redo: bool) -> None:
    """By a hit, a fact, a summary or a strategy in another conversation; also of facts that were derived anew since."""
    alice, canary = store.user("alice"), "quollnuts"
    elsewhere, question = alice.conversation("work"), "Which allergies does my dog have?"
    await elsewhere.add_many([{"role": "user", "content": f"The door {n} is blue."} for n in range(20)])
    await store.derive()
    before = await elsewhere.context("Which door?", budget=900, strategy=Quoting())
    await alice.conversation("lisbon").add_many(said("alice", "lisbon"))
    message = await alice.conversation("lisbon").add("user", f"I'm allergic to {canary}, and so is my dog.")
    await store.derive()
    await alice.conversation("lisbon").summarize()
    facts_alone = [Section("hits", maximum=0), Section("recent", maximum=0)]
    quoting = {
        "turns": await alice.conversation("lisbon").context(question, budget=900),
        "hits": await elsewhere.context(question, budget=3000),
        "facts": await elsewhere.context("Is it?", budget=900, sections=facts_alone),
        "strategy": await elsewhere.context("Is it?", budget=900, strategy=Quoting()),
        "profile": await elsewhere.context("Is it?", budget=900, sections=[*facts_alone, Section("profile")]),
    }
    for name, context in quoting.items():
        assert canary in str(context.messages), name
        assert canary in str((await alice.replay(context)).messages), name
    assert holding(store.url, canary)["receipts"] == len(quoting)
    if redo:
        with psycopg.connect(store.url) as superuser:
            superuser.execute("delete from facts where text ~ %s", [canary])
            superuser.execute("delete from summaries")
    certificate = await alice.erase_message(message)
    assert holding(store.url, canary) == {}
    assert certificate.counts["receipts"] >= len(quoting)
    assert (await alice.replay(before)).messages == before.messages, "which was sent before it was said"


async def test_no_receipt_quotes_a_fact_that_was_erased(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    fact = await alice.add_fact("Alice keeps quollwen.", type="preference")
    place = alice.conversation("work")
    await place.add_many([{"role": "user", "content": f"The door {n} is blue."} for n in range(20)])
    await store.derive()
    for options in ({}, {"sections": [Section("profile", maximum=0.9)]}):
        assert "quollwen" in str((await place.context("What does Alice keep?", budget=900, **options)).messages)
    for n in range(80):
        await alice.add_fact(f"Alice owns the red book {n}.", type="preference")
    told = await place.context("Which red books does Alice own?", budget=5000, strategy=Quoting())
    assert "Alice_keeps_quollwen." in str(told.messages)
    assert fact.id not in {one.id for one in told.receipt.decisions()}, "it is not even a candidate"
    assert holding(store.url, "quollwen")["receipts"] == 3
    assert (await alice.erase_fact(fact)).counts["receipts"] == 3
    assert holding(store.url, "quollwen") == {}


async def test_of_an_erased_conversation_nothing_is_left(store: AsyncMemoryStore) -> None:
    await talked(store, "bob")
    alice = await talked(store)
    bob, place = dumped(store.url, "bob"), alice.conversation("lisbon")
    certificate = await place.erase()
    gone = [word for number in range(1, 13) for word in words("alice", "lisbon", number)]
    assert holding(store.url, *gone, place.id) == catalogued(store.url, *gone) == {}
    assert certificate.scan.is_clean
    assert certificate.counts["messages"] == 12
    assert certificate.tombstones == 18  # ids of all, contents of those without an external id
    assert dumped(store.url, "bob") == bob
    assert (await store.derive()).failed == ()
    assert holding(store.url, *gone, place.id) == {}
    assert len(await alice.conversation("work").messages()) == 12
    assert any("work" in fact.text for fact in await alice.facts())
    await is_whole(store)


async def test_of_an_erased_user_nothing_is_left(store: AsyncMemoryStore) -> None:
    await talked(store, "bob")
    alice = await talked(store)
    bob, held = dumped(store.url, "bob"), dumped(store.url, "alice")
    certificate = await alice.erase()
    assert holding(store.url, "alice", alice.id) == catalogued(store.url, "alicelisbon", "alicework") == {}
    assert dumped(store.url, "bob") == bob
    assert certificate.scan.is_clean
    assert certificate.scan.tables >= len([table for table, rows in held.items() if rows])
    assert certificate.counts["documents"] == certificate.counts["document_vectors"] == 1
    assert {table: rows for table, rows in certificate.counts.items() if rows} == {
        table: len(rows) for table, rows in held.items() if rows
    }
    assert [name async for name in store.users()] == ["bob"]
    assert await alice.recall("Where do I live?") == []


async def test_of_an_erased_fact_nothing_is_left_and_its_messages_stay(store: AsyncMemoryStore) -> None:
    alice = await talked(store)
    before = dumped(store.url, "alice")
    fact = next(one for one in await alice.facts() if "rex" in one.text)
    certificate = await alice.erase_fact(fact)
    assert holding(store.url, fact.id) == {}
    assert fact.text not in str(dumped(store.url)["facts"])
    assert certificate.counts["facts"] == 1
    after = dumped(store.url, "alice")
    for table in ("messages", "conversations", "summaries", "derivations"):
        assert after[table] == before[table]
    await store.derive(redo="facts")
    with psycopg.connect(store.url) as connection:
        connection.execute("update derivations set recipe = null where deriver = 'facts'")
    await store.derive(redo="facts")
    assert fact.text not in str(await alice.facts(state="all"))


async def test_a_rehearsal_tells_the_same_and_does_nothing(store: AsyncMemoryStore) -> None:
    alice = await talked(store)
    message, fact = (await alice.conversation("lisbon").messages())[3], (await alice.facts())[0]
    before = dumped(store.url)
    rehearsed = [
        await alice.erase_fact(fact, dry_run=True),
        await alice.erase_message(message, dry_run=True),
        await alice.conversation("work").erase(dry_run=True),
        await alice.erase(dry_run=True),
    ]
    assert dumped(store.url) == before
    assert [one.id for one in rehearsed] == [None] * 4
    done = await alice.erase_message(message)
    assert (done.counts, done.tombstones) == (rehearsed[1].counts, rehearsed[1].tombstones)
    assert [one.id for one in await alice.erasures()] == [done.id]


async def test_the_second_time_there_is_nothing_left_to_do(store: AsyncMemoryStore) -> None:
    alice = await talked(store)
    place = alice.conversation("lisbon")
    message, fact = (await place.messages())[3], (await alice.facts())[0]
    for erase in (lambda: alice.erase_fact(fact), lambda: alice.erase_message(message), place.erase, alice.erase):
        first = await erase()
        assert not first.is_empty
        kept = dumped(store.url)
        second = await erase()
        assert (second.is_empty, second.id) == (True, None)
        assert dumped(store.url) == kept
    with pytest.raises(InvalidInput, match="no message"):
        await alice.erase_message(ids.uuid7())
    with pytest.raises(InvalidInput, match="no fact"):
        await alice.erase_fact(ids.uuid7())


async def test_what_was_erased_does_not_come_back(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    place = alice.conversation("lisbon")
    history = said("alice", "lisbon")
    await place.add_many(history)
    found = await place.messages()
    await alice.erase_message(found[0], found[1])
    with pytest.raises(Erased, match="message 1, 2 was erased") as raised:
        await place.add_many(history)
    assert raised.value.numbers == (1, 2)
    again = await place.add_many([*history[:2], {"role": "user", "content": "new"}], on_conflict="skip")
    assert [one.text for one in again] == ["new"]
    await alice.erase()
    assert await place.add_many(history, on_conflict="skip") == []
    fresh = await place.add_many([{"role": "user", "content": history[1]["content"]}])
    assert len(fresh) == 1  # the same words at another time: said anew


async def test_what_was_erased_is_not_imported_again(store: AsyncMemoryStore, tmp_path: Any) -> None:
    file = tmp_path / "history.jsonl"
    history = [
        one | {"user": "alice", "conversation": "lisbon", "occurred_at": one["occurred_at"].isoformat()}
        for one in said("alice", "lisbon")
    ]
    file.write_text("\n".join(json.dumps(one) for one in history))
    assert (await store.import_file(file)).new == 12
    alice = store.user("alice")
    await alice.erase_message(*(await alice.conversation("lisbon").messages())[:3])
    for _ in range(2):
        done = await store.import_file(file)
        assert (done.new, done.known, done.ignored) == (0, 9, {"erased before": 3})
    await alice.erase()
    done = await store.import_file(file)
    assert (done.new, done.ignored) == (0, {"erased before": 12})
    assert holding(store.url, "alice") == {}


async def test_a_certificate_holds_no_content_and_is_read_again(store: AsyncMemoryStore) -> None:
    alice = await talked(store)
    certificate = await alice.conversation("lisbon").erase()
    assert Certificate.from_dict(json.loads(json.dumps(certificate.as_dict()))) == certificate
    with psycopg.connect(store.url) as superuser:
        kept = str(superuser.execute("select to_jsonb(t) from tombstones t").fetchall())
        kept += str(superuser.execute("select to_jsonb(t) from erasures t").fetchall())
    assert "lisbon" not in kept + json.dumps(certificate.as_dict())
    assert not any(str(ids.message_id(certificate.erased[0], f"alice-lisbon-{n}")) in kept for n in range(12))
    [found] = await alice.erasures()
    assert (found.id, found.counts) == (certificate.id, certificate.counts)
    assert (await store.verify_erasure(certificate)).is_clean


def open_columns(superuser: psycopg.Connection[Any]) -> list[tuple[str, str, str]]:
    """Give table, name and type of the columns of text that no check of the database closes."""
    return superuser.execute(
        """
        select c.relname::text, a.attname::text, format_type(a.atttypid, null) from pg_attribute a
        join pg_class c on c.oid = a.attrelid
        where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped
          and a.atttypid = any ('{text,text[],jsonb}'::regtype[]) and not c.relname || '.' || a.attname = any (%s)
          and not exists (select from pg_constraint k where k.conrelid = c.oid and a.attnum = any (k.conkey)
                          and k.contype = 'c' and pg_get_constraintdef(k.oid) like '%%= ANY (ARRAY%%')
        """,
        [HARMLESS],
    ).fetchall()


async def test_the_planner_keeps_no_samples_of_what_people_say(store: AsyncMemoryStore) -> None:
    await talked(store, "bob")
    await talked(store)
    values = {"text": "quollwen", "text[]": "{quollwen}", "jsonb": '{"w": "quollwen"}'}
    with psycopg.connect(store.url, autocommit=True) as superuser:
        add_missing_rows(superuser, store.user("alice").id)
        two = "insert into backfills (id, derivers) select gen_random_uuid(), '{facts}' from generate_series(1, 2)"
        superuser.execute(two)
        superuser.execute(TWO_GRANTS)
        columns = open_columns(superuser)
        for table, column, kind in columns:
            superuser.execute(f"update {table} set {column} = '{values[kind]}'")
        superuser.execute("analyze")
    name = conninfo_to_dict(store.url)["dbname"]
    found = {table for node in nodes(store.url) for table in catalogued(with_database(node, name), "quollwen")}
    assert {re.sub(r"_\d+$", "", table) for table in found} == {table for table, *_ in columns}


async def test_a_verification_finds_what_is_left(store: AsyncMemoryStore) -> None:
    alice = await talked(store)
    message = (await alice.conversation("lisbon").messages())[0]
    certificate = await alice.erase_message(message)
    assert (await store.verify_erasure(certificate)).is_clean
    assert holding(store.url, "alicelisbon1ville") == {}
    with psycopg.connect(store.url) as superuser:
        superuser.execute(
            "insert into events (user_id, id, type, body) values (%s, %s, 'x', jsonb_build_object('m', %s::text))",
            [alice.id, ids.uuid7(), message.id],
        )
    assert (await store.verify_erasure(certificate)).found == {"events": 1}


async def test_a_verification_finds_samples_whose_target_somebody_has_raised(store: AsyncMemoryStore) -> None:
    if is_citus(store.url):
        pytest.skip("a Citus sets no targets of tables that are distributed")
    await talked(store, "bob")
    alice = await talked(store)
    certificate = await alice.erase_message((await alice.conversation("lisbon").messages())[0])
    with psycopg.connect(store.url, autocommit=True) as superuser:
        add_missing_rows(superuser, alice.id)
        superuser.execute("insert into backfills (id, derivers) values (gen_random_uuid(), '{facts}')")
        superuser.execute(TWO_GRANTS)
        columns = open_columns(superuser)
        for table, column, _ in columns:
            superuser.execute(f"alter table {table} alter column {column} set statistics 100")
        superuser.execute("analyze")
        assert (await store.verify_erasure(certificate)).found == {"pg_stats": len(columns)}
        for table, column, _ in columns:
            superuser.execute(f"alter table {table} alter column {column} set statistics 0")
    assert (await store.verify_erasure(certificate)).found == {"pg_stats": len(columns)}, "the samples are still there"


async def test_a_fact_that_was_understood_through_an_erased_message_goes(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    named, _ = await alice.conversation("c").add_many(
        [{"role": "user", "content": "Quollwen?"}, {"role": "user", "content": "I live in Leeds."}]
    )
    await store.derive()
    with psycopg.connect(store.url) as superuser:  # as a chat model words it, which reads the messages before
        superuser.execute("update facts set text = 'The user lives in Leeds with Quollwen.'")
    certificate = await alice.erase_message(named)
    assert (certificate.again["facts"], certificate.counts["facts"]) == (1, 1)
    await store.derive()
    assert [fact.text for fact in await alice.facts()] == ["The user lives in Leeds."]


async def test_a_name_that_only_an_erased_message_said_stays_in_no_fact_of_a_model(store: AsyncMemoryStore) -> None:
    talk = store.user("alice").conversation("c")
    said = ["My sister lives in Leeds.", *(f"It rained on day {n}." for n in range(20)), "Her name is Quollwen."]
    messages = await talk.add_many([{"role": "user", "content": text} for text in said])
    await store.derive()
    with psycopg.connect(store.url) as superuser:  # as a chat model words it, which reads a whole segment
        superuser.execute(
            "update facts set subject = 'Quollwen', recipe = 'llm-facts/9 openai:x' where text like '%Leeds%'"
        )
    certificate = await talk.user.erase_message(messages[-1])
    assert certificate.again["facts"] == 1
    assert holding(store.url, "quollwen") == {}
    await store.derive()
    assert any("Leeds" in fact.text for fact in await talk.user.facts())
    assert holding(store.url, "quollwen") == {}


async def test_words_that_a_model_was_shown_stay_in_nothing_that_it_said_of_other_conversations(
    store: AsyncMemoryStore,
) -> None:
    def answer(messages: Sequence[ChatMessage]) -> str:
        shown.append(messages[-1]["content"])
        return "no JSON: " + shown[-1]

    alice, shown = store.user("alice"), list[str]()
    models = store._runtime.__dict__
    named = await alice.conversation("a").add("user", "My sister Quollwen lives in Leeds.", occurred_at=START)
    await alice.conversation("b").add("user", "I live in Ghent.", occurred_at=START + timedelta(days=1))
    await store.derive()
    models["chat_models"] = (None, ScriptedChatModel([answer], context_tokens=10**6))
    await alice.conversation("c").add("user", "Where my sister lives it rains.", occurred_at=START + timedelta(days=2))
    assert (await store.derive()).invalid_responses == 1
    assert "Quollwen" in shown[0]
    models["chat_models"] = (None, None)
    with psycopg.connect(store.url) as superuser:  # as a chat model words it, which is shown what is known
        told = superuser.execute(
            "update facts set text = 'Quollwen is in Ghent.', recipe = 'llm-facts/9 openai:x' where text like '%Ghent%'"
        )
        assert told.rowcount == 1
    certificate = await alice.erase_message(named)
    assert holding(store.url, "quollwen") == {}
    assert (certificate.counts["invalid_responses"], certificate.again["facts"]) == (1, 1)
    await store.derive()
    assert any("Ghent" in fact.text for fact in await alice.facts())


async def test_words_of_a_fact_by_hand_stay_in_no_answer_of_a_model(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    fact = await alice.add_fact("The user's sister is Quollwen.", type="relationship")
    answer = "no JSON: Quollwen"
    store._runtime.__dict__["chat_models"] = (None, ScriptedChatModel([answer] * 2, context_tokens=10**6))
    await alice.conversation("b").add("user", "It rains.")
    await store.derive()
    assert holding(store.url, "quollwen").keys() == {"facts", "invalid_responses"}
    await alice.erase_fact(fact)
    assert holding(store.url, "quollwen") == {}


WRITES: dict[str, Callable[[AsyncUserScope], Any]] = {
    "message": lambda alice: alice.conversation("c").add("user", "Hello."),
    "known message": lambda alice: alice.conversation("c").add("user", "Hello.", external_id="once"),
    "conversation": lambda alice: alice.conversation("c").update(title="Lisbon"),
    "document": lambda alice: alice.documents().put(("notes",), "after", {}),
    "fact": lambda alice: alice.add_fact("The user likes tea."),
    "setting": lambda alice: alice.update(settings={"message_retention_days": 9}),
}


@pytest.mark.parametrize("write", WRITES)
async def test_who_writes_while_the_user_is_erased_writes_afterwards(store: AsyncMemoryStore, write: str) -> None:
    alice = store.user("alice")
    await alice.documents().put(("notes",), "before", {})
    with deleting(store.url, "users"):
        await WRITES[write](alice)
    assert [name async for name in store.users()] == ["alice"]
    assert [one.key for one in await alice.documents().search()] == (["after"] if write == "document" else [])


@pytest.mark.parametrize("external_id", [None, "once"])
async def test_a_message_is_stored_where_its_conversation_is_made_and_erased_by_others_meanwhile(
    store: AsyncMemoryStore, url: str, monkeypatch: pytest.MonkeyPatch, external_id: str | None
) -> None:
    real, raced = add.make_conversations, list[object]()

    async def race(tx: Any, conversations: Any) -> None:
        raced.append(tx)
        if len(raced) > 1:
            await real(tx, conversations)
            return
        async with await AsyncMemoryStore.open(url, settings=SETTINGS) as other:
            await other.user("alice").conversation("c").add("user", "Hello.")
        with deleting(url, "conversations"):
            await real(tx, conversations)

    monkeypatch.setattr(add, "make_conversations", race)
    await store.user("alice").conversation("c").add("user", "Again.", external_id=external_id)
    assert [one.text for one in await store.user("alice").conversation("c").messages()] == ["Again."]


@pytest.mark.parametrize("marked", [{}, {"importance": "pinned"}, {"importance": "unimportant"}, {"expires_at": START}])
async def test_a_fact_stays_with_its_marks_if_another_message_says_all_its_words(
    store: AsyncMemoryStore, marked: dict[str, Any]
) -> None:
    alice = store.user("alice")
    one, other = alice.conversation("one"), alice.conversation("other")
    first = await one.add("user", "I am allergic to peanuts.", occurred_at=START)
    await store.derive()
    second = await other.add("user", "I am allergic to peanuts.", occurred_at=START + timedelta(days=9))
    await store.derive()
    [fact] = await alice.facts()
    assert len(fact.sources) == 2
    if marked:
        fact = await alice.edit_fact(fact, **marked)
    certificate = await alice.erase_message(first)
    assert certificate.again == {"summaries": 1}
    await store.derive()
    assert (await one.erase()).id is not None
    assert holding(store.url, one.id, first.id) == {}
    if marked.get("importance") != "unimportant" and "expires_at" not in marked:
        [hit] = await alice.recall("peanuts", tiers=["facts"], conversation="other")
        assert hit.id == fact.id
    [again] = await alice.facts(state="all")
    assert (again.id, again.text, list(again.sources)) == (fact.id, fact.text, [second.id])
    assert (again.importance, again.expires_at) == (fact.importance, fact.expires_at)
    assert again.occurred_at == START + timedelta(days=9)


async def test_a_fact_in_words_of_the_erased_is_made_again_from_another_message(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    first = await alice.conversation("one").add("user", "I am allergic to peanuts.", occurred_at=START)
    await store.derive()
    await alice.conversation("other").add("user", "I am allergic to peanuts.", occurred_at=START + timedelta(days=9))
    await store.derive()
    with psycopg.connect(store.url) as superuser:  # as a chat model words it
        superuser.execute("update facts set text = 'Peanuts kill Quollwen.'")
    certificate = await alice.erase_message(first)
    assert certificate.again == {"summaries": 1, "facts": 1}
    await store.derive()
    [again] = await alice.facts()
    assert (again.text, len(again.sources)) == ("The user is allergic to peanuts.", 1)


async def test_of_three_values_the_first_does_not_hold_again_where_the_second_is_erased(
    store: AsyncMemoryStore,
) -> None:
    alice = store.user("alice")
    facts = [await alice.add_fact(f"Quollwen reads {book}.", type="statement") for book in ("Emma", "Ulysses", "Dune")]
    async with store._database.user_transaction(alice.id) as tx:  # as a chat model ends what has no slot
        for fact, other in pairwise(facts):
            await store_facts.change(tx, fact, "superseded", actor="facts/9", other=other.id, state="superseded")
    await alice.erase_fact(facts[1])
    assert [fact.text for fact in await alice.facts()] == [facts[2].text]
    await alice.erase_fact(facts[2])
    assert [fact.text for fact in await alice.facts()] == [facts[0].text]


@pytest.mark.parametrize("rooms", ["aaa", "aba"])
async def test_what_was_said_once_more_and_erased_ends_nothing(store: AsyncMemoryStore, rooms: str) -> None:
    alice = store.user("alice")
    denied, meant = "I'm not allergic to peanuts.", "I'm allergic to peanuts."
    said = [
        await alice.conversation(room).add("user", text, occurred_at=START + timedelta(days=day))
        for day, (room, text) in enumerate(zip(rooms, (denied, meant, denied), strict=True))
    ]
    await store.derive()
    assert ["not allergic" in fact.text for fact in await alice.facts()] == [True]
    await alice.erase_message(said[2])
    await store.derive()
    assert ["not allergic" in fact.text for fact in await alice.facts()] == [False]


async def test_what_has_ended_since_does_not_hold_again(store: AsyncMemoryStore) -> None:
    texts = ("I live in Lisbon.", "I live in Porto now.", "I live in Rome now.")
    alice = store.user("alice")
    talk = alice.conversation("c")
    said = [await talk.add("user", text, occurred_at=START + timedelta(days=day)) for day, text in enumerate(texts)]
    await store.derive()
    await alice.erase_message(said[1])
    assert [fact.text for fact in await alice.facts()] == ["The user lives in Rome now."]


async def test_what_an_erased_fact_had_superseded_holds_again(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    place = alice.conversation("c")
    await place.add("user", "I live in Porto.", occurred_at=START)
    moved = await place.add("user", "I live in Leeds now.", occurred_at=START + timedelta(days=90))
    await store.derive()
    assert [one.text for one in await alice.facts() if "live" in one.text] == ["The user lives in Leeds now."]
    leeds = (await alice.facts())[0].id
    await alice.erase_message(moved)
    assert [one.text for one in await alice.facts() if "live" in one.text] == ["The user lives in Porto."]
    assert holding(store.url, "Leeds", leeds, moved.id) == {}


async def test_what_people_entered_stays_and_what_they_made_of_a_derived_fact_goes(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    place = alice.conversation("c")
    message = await place.add("user", "I am allergic to peanuts.", occurred_at=START)
    await store.derive()
    [fact] = await alice.facts()
    edited = await alice.edit_fact(fact, text="The user is badly allergic to peanuts.")
    entered = await alice.add_fact("The user plays the cello.", type="preference", sources=[message.id])
    await alice.erase_message(message)
    assert [one.id for one in await alice.facts(state="all")] == [entered.id]
    assert (await alice.facts())[0].sources == []
    assert holding(store.url, "peanuts", edited.id, message.id) == {}


@pytest.mark.parametrize("end", ["first", "last"])
async def test_a_summary_is_made_again_of_what_is_left_and_the_others_stay(store: AsyncMemoryStore, end: str) -> None:
    async with await AsyncMemoryStore.open(store.url, settings=SETTINGS) as short:
        place = short.user("alice").conversation("c")
        minutes = [one | {"occurred_at": START + timedelta(minutes=n)} for n, one in enumerate(said("alice", "c", 60))]
        await place.add_many(minutes)
        await short.derive()
        before = {(one.level, one.from_seq, one.to_seq): one for one in await place.summaries()}
        stretch = next(
            one for one in before.values() if one.level == 1 and one.from_seq > 20 and one.to_seq > one.from_seq
        )
        found = await place.messages()
        seq = stretch.from_seq if end == "first" else stretch.to_seq
        certificate = await short.user("alice").erase_message(found[seq - 1])
        assert certificate.again == {"summaries": 1}
        left = {(one.level, one.from_seq, one.to_seq) for one in await place.summaries()}
        gone = {key for key in before if key[1] <= seq <= key[2]}
        assert left == before.keys() - gone
        assert (await short.derive()).failed == ()
        nest = list(await place.summaries(level=1))
        covered = {seq for one in nest for seq in range(one.from_seq, one.to_seq + 1)}
        assert covered >= set(range(stretch.from_seq, stretch.to_seq + 1)) - {seq}
        again = [one for one in nest if (one.level, one.from_seq, one.to_seq) not in left]
        assert [(one.from_seq, one.to_seq) for one in again] == [
            (stretch.from_seq + (end == "first"), stretch.to_seq - (end == "last"))
        ]
        assert all(
            one.recorded_at == before[1, one.from_seq, one.to_seq].recorded_at for one in nest if one not in again
        )
        assert await short.job_counts() is not None
        await is_whole(short)


async def test_messages_that_are_gone_before_they_were_derived_hold_nobody_up(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    place = alice.conversation("c")
    found = await place.add_many(said("alice", "c", 40))
    await alice.erase_message(*found[5:])
    report = await store.derive()
    assert (report.failed, report.messages) == ((), 40)
    assert (await store.stats(user="alice"))["pending"] == 0
    assert holding(store.url, *words("alice", "c", 20)) == {}


async def test_erased_users_and_messages_are_not_recalled_by_whoever_has_them_in_memory(
    store: AsyncMemoryStore,
) -> None:
    alice = await talked(store)
    async with await AsyncMemoryStore.open(store.url, settings=SETTINGS) as other:
        there = other.user("alice")
        assert any("lisbon2ville" in hit.text for hit in await there.recall("alicelisbon2ville"))
        message = next(one for one in await alice.conversation("lisbon").messages() if "lisbon2v" in (one.text or ""))
        await alice.erase_message(message)
        assert not any("lisbon2v" in hit.text for hit in await there.recall("alicelisbon2ville"))
        await alice.erase()
        assert await there.recall("alicelisbon2ville") == []
        assert other._database.cache.get(there.id, ids.model_id("hashing:256", 256)) is None


async def test_old_messages_are_kept_no_longer_than_a_rule_says(store: AsyncMemoryStore) -> None:
    alice, now = await talked(store), datetime.now(UTC)
    recent = await alice.conversation("lisbon").add("user", "I have a new cello.", occurred_at=now - timedelta(days=3))
    await store.derive()
    assert len(await alice.conversation("lisbon").messages()) == 13  # no rule
    await alice.conversation("work").update(settings={"message_retention_days": 0})
    await alice.update(settings={"message_retention_days": 30})
    assert await store.apply_retention(user="alice") == 12
    assert [one.id for one in await alice.conversation("lisbon").messages()] == [recent.id]
    assert len(await alice.conversation("work").messages()) == 12  # its own rule: for ever
    assert holding(store.url, "alicelisbon3ville", "alicelisbon12rex") == {}
    [kept] = await alice.erasures()
    assert kept.scope == "retention"
    assert kept.scan is not None and kept.scan.is_clean
    assert (await store.verify_erasure(kept)).is_clean, "the conversation goes on"
    await alice.conversation("work").update(settings={"message_retention_days": None})
    await alice.conversation("work").add("user", "One more for the derivers.")
    await store.derive()  # looks after whom it derived something of
    assert len(await alice.conversation("work").messages()) == 1
    for wrong in (-1, True, "30"):
        with pytest.raises(InvalidInput, match="message_retention_days"):
            await alice.update(settings={"message_retention_days": wrong})
        with pytest.raises(InvalidInput, match="message_retention_days"):
            await alice.conversation("work").update(settings={"message_retention_days": wrong})
    with pytest.raises(InvalidInput, match="give one of message_retention_days"):
        await alice.update(settings={"message_days": 1})


async def test_a_large_user_is_erased_with_the_index_and_the_postings(url: str) -> None:
    """Of a user whose chunks are searched in the database there are postings and an index of vectors, too."""
    async with await AsyncMemoryStore.open(url, settings=SETTINGS | {"max_chunks_in_memory": 10}) as store:
        alice = await talked(store)
        await store.build_indexes()
        message = (await alice.conversation("lisbon").messages())[3]
        await alice.erase_message(message)
        await store.derive()
        assert not any("lisbon4" in hit.text for hit in await alice.recall("alicelisbon4ville"))
        await is_whole(store)
        await alice.erase()
        with psycopg.connect(url) as superuser:
            assert superuser.execute("select count(*) from pg_class where relname like 'hnsw%'").fetchone() == (0,)
            assert superuser.execute("select count(*) from term_postings").fetchone() == (0,)


async def test_a_question_that_is_erased_leaves_the_answer_alone(store: AsyncMemoryStore) -> None:
    ana = store.user("ana")
    conversation = ana.conversation("c")
    asked = await conversation.add("assistant", "What did the clinic in Zagreb say you should avoid?")
    await conversation.add("user", "penicillin, it put me in hospital twice", name="Ana")
    await store.derive()
    [fact] = await ana.facts()
    assert "Zagreb" in fact.text
    await ana.erase_message(asked.id)
    await store.derive()
    [fact] = await ana.facts(state=None)
    assert "penicillin" in fact.text.casefold()
    assert "Zagreb" not in fact.text


@pytest.mark.parametrize(
    "asker",
    [
        {"role": "assistant", "name": "Nova"},
        {"role": "assistant", "metadata": {"to": "Ana"}},
        {"role": "assistant", "metadata": {"trust": "untrusted"}},
        {"role": "user", "name": "Ana"},
        {"role": "user", "name": "Ben", "content": "@Ana what did the clinic in Zagreb say you should avoid?"},
    ],
)
async def test_a_question_that_not_all_may_see_or_nobody_vouches_for_is_not_quoted(
    store: AsyncMemoryStore, asker: dict[str, Any]
) -> None:
    ana = store.user("ana")
    conversation = ana.conversation("c")
    await conversation.add_many([{"content": "What did the clinic in Zagreb say you should avoid?", **asker}])
    await conversation.add("user", "penicillin, it put me in hospital twice", name="Ana")
    await store.derive()
    facts = await ana.facts()
    assert any("penicillin" in fact.text.casefold() for fact in facts)
    assert not any("Zagreb" in fact.text for fact in facts)
