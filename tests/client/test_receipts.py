"""Receipts: what was considered, kept and read later, and what was sent."""

import json
import zlib
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from memstore import Context, DatabaseError, InvalidInput, NotFound, Receipt
from memstore.client.conversation import AsyncConversationScope
from memstore.client.store import AsyncMemoryStore
from memstore.context.candidates import MAX_OFFERED_FACTS
from memstore.ids import user_id
from memstore.models import Json, Reason, Section

START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)
PLACES = ("Porto", "Lisbon", "Leeds", "Rome", "Cádiz", "Łódź", "東京")
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Porto"}'}}
ALICE = str(user_id("alice"))


async def talk(store: AsyncMemoryStore, name: str = "c", turns: int = 60) -> AsyncConversationScope:
    """Give a derived conversation with facts, summaries, a call of a tool, and something long enough for chunks."""
    scope = store.user("alice").conversation(name)
    said: list[Json] = [{"role": "user", "content": "I'm allergic to peanuts. I live in Porto.", "name": "Alice"}]
    for n in range(turns):
        place = PLACES[n % len(PLACES)]
        said += [
            {"role": "user", "content": f"Day {n}: what is there to see in {place}, near the river?", "name": "Alice"},
            {"role": "assistant", "content": f"In {place} there are {n} bridges. A boat leaves at {n % 12}."},
        ]
    long = " ".join(f"On day {n} we went to {PLACES[n % 7]} and ate there, sort {n}." for n in range(60))
    said[5:5] = [{"role": "user", "content": long}]
    said += [
        {"role": "user", "content": "And the weather?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "content": "Sunny.", "tool_call_id": "call_1"},
        {"role": "assistant", "content": "It is sunny."},
    ]
    await scope.add_many([one | {"occurred_at": START + timedelta(hours=n)} for n, one in enumerate(said)])
    assert (await store.derive()).failed == ()
    return scope


def run(store: AsyncMemoryStore, statement: str, *values: object) -> None:
    """Do to alice's rows what memstore has no call for: erase."""
    with psycopg.connect(store.url, autocommit=True) as connection:
        connection.execute(statement, values)  # type: ignore[arg-type]


def included(context: Context, kinds: Collection[str]) -> list[str]:
    return [str(one.id) for one in context.receipt.included if one.kind in kinds]


async def test_a_receipt_names_every_candidate_its_score_and_the_reason(store: AsyncMemoryStore) -> None:
    scope = await talk(store)
    system = "You are a travel assistant."
    context = await scope.context("What did we see in Lisbon?", budget=900, reserve=100, system=system)
    receipt = context.receipt
    assert (receipt.budget, receipt.reserve, receipt.counter, receipt.count) == (900, 100, store.counter.name, "exact")
    assert receipt.question == "What did we see in Lisbon?"
    assert receipt.models["embedder"] == "hashing:256"
    hits = [one for one in receipt.decisions() if one.section in ("hits", "facts") and one.id]
    assert hits
    for one in hits:
        assert one.score == pytest.approx(sum(one.parts.values()), abs=1e-5)
    assert all(one.reason in set(Reason) for one in receipt.left_out)
    assert all(one.reason is None for one in receipt.included)
    assert {one.reason for one in receipt.left_out} >= {Reason.OVER_BUDGET, Reason.ALREADY_IN_RECENT}
    listed = max(sum(one.section == section for one in receipt.left_out) for section in ("hits", "recent", "facts"))
    assert listed <= 24
    canonical = json.dumps(context.messages, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    assert receipt.content_hash == sha256(canonical.encode()).hexdigest()
    assert len(json.dumps(receipt.as_dict())) < 60_000


async def test_messages_that_are_too_old_to_be_read_are_named_too(store: AsyncMemoryStore) -> None:
    scope = store.user("alice").conversation("c")
    await scope.add_many([{"role": "user", "content": f"Day {n}: we saw a boat on the river."} for n in range(300)])
    context = await scope.context(budget=300)
    ranges = [one.seqs for one in context.receipt.left_out if one.section == "recent" and one.seqs]
    left_out = {seq for first, last in ranges for seq in range(first, last + 1)}
    assert left_out >= set(range(1, 280))


async def test_a_receipt_is_read_later_and_goes_round_as_json(store: AsyncMemoryStore) -> None:
    scope = await talk(store)
    made = [(await scope.context(f"What of {place}?", budget=700)).receipt for place in PLACES]
    found = await scope.receipts(limit=3)
    assert [one.id for one in found] == [one.id for one in made[:-4:-1]]
    last = await scope.user.receipt(str(made[-1].id))
    assert last == made[-1] == found[0]
    assert last.recorded_at is not None
    assert Receipt.from_dict(json.loads(json.dumps(last.as_dict()))) == last
    events = await scope.user.events(types=["context_assembled"])
    assert [event.body["receipt"] for event in events] == [str(one.id) for one in made]
    with pytest.raises(InvalidInput, match="no receipt"):
        await store.user("bob").receipt(made[0])
    with pytest.raises(InvalidInput, match="no receipt"):
        await scope.user.receipt(uuid4())
    with pytest.raises(InvalidInput, match="no id"):
        await scope.user.receipt("x")
    with pytest.raises(ValueError, match="budget"):
        Receipt.from_dict({"tokens": 1})


async def test_a_context_itself_stands_for_its_receipt(store: AsyncMemoryStore) -> None:
    scope = await talk(store, turns=3)
    context = await scope.context("Where do I live?", budget=400)
    replay = await scope.user.replay(context)
    assert (replay.receipt, replay.messages) == (context.receipt, context.messages)
    assert await scope.user.receipt(context) == context.receipt
    with pytest.raises(InvalidInput, match="is no id") as error:
        await scope.user.replay([context] * 50)  # type: ignore[arg-type]
    assert len(str(error.value)) < 200


async def test_explain_says_what_items_say_and_why(store: AsyncMemoryStore) -> None:
    scope = await talk(store)
    context = await scope.context("What am I allergic to?", budget=500, system="Be brief.")
    told = context.explain()
    assert "allergic to peanuts" in told
    assert "over budget" in told
    assert "more were looked at and left out" in told
    assert f"{context.tokens:,} of 500 tokens" in told
    assert "█" in told
    later = await scope.user.receipt(context.receipt)
    assert later.explain() == told
    run(store, "DELETE FROM facts WHERE user_id = %s", ALICE)
    run(store, "DELETE FROM messages WHERE user_id = %s", ALICE)
    assert "peanuts" not in (await scope.user.receipt(context.receipt)).explain()


async def test_explain_says_what_held_once_and_what_holds_in_its_place(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    scope = alice.conversation("c")
    await scope.add("user", "Good morning.")
    lives: dict[str, Any] = {"type": "identity", "subject": "Alice", "attribute": "residence"}
    await alice.add_fact("Alice lives in Leeds.", value="leeds", **lives)
    moment = (await alice.add_fact("Alice sings alto.", type="preference", subject="Alice")).recorded_at
    porto = await alice.add_fact("Alice lives in Porto.", value="porto", **lives)
    sings = await alice.retract_fact((await alice.facts(type="preference"))[0])
    context = await scope.context("Where does Alice live, and what does she sing?", budget=500)
    held = {one.preview: one for one in context.receipt.left_out if one.reason == Reason.SUPERSEDED}
    assert held.keys() == {"Alice lives in Leeds.", sings.text}
    assert held["Alice lives in Leeds."].others == (porto.id,)
    assert held[sings.text].others == (), "nothing is in its place"
    told = context.explain()
    assert "superseded; in its place is “Alice lives in Porto.”" in told
    assert " 0 tokens, score" not in told
    assert (await alice.receipt(context)).explain() == told
    past = await scope.context("Where does Alice live?", budget=500, as_of=moment)
    assert f"of what was known at {moment.isoformat()}" in past.explain()
    assert "known at" not in told
    assert not [one for one in past.receipt.left_out if one.reason == Reason.SUPERSEDED]
    await alice.erase_fact(porto)
    with pytest.raises(NotFound):
        await alice.receipt(context)


@pytest.mark.parametrize("budget", [120, 400, 900, 2500, 9000])
async def test_a_replay_gives_the_bytes_that_were_sent(store: AsyncMemoryStore, budget: int) -> None:
    scope = await talk(store)
    elsewhere = await talk(store, "elsewhere", 20)
    asked = [
        await scope.context("What did we see in Lisbon?", budget=budget, system="Be brief."),
        await scope.context(budget=budget),
        await elsewhere.context("Which boats leave from Porto?", budget=budget),
        await scope.context("And 東京?", budget=budget, strategy=["tool_calls", "sliding_window", "summary_buffer"]),
        await store.user("alice").conversation("elsewhere").context("Peanuts?", budget=budget, strategy="goal_batch"),
    ]
    await talk(store, "later", 5)
    await scope.add("user", "I live in Rome now.", name="Alice", occurred_at=START - timedelta(days=400))
    await scope.add("user", "I'm allergic to peanuts.", name="Alice", occurred_at=START - timedelta(days=900))
    await store.derive()
    for fact in await scope.user.facts():
        await scope.user.retract_fact(fact)
    for context in asked:
        assert context.receipt.id is not None
        replay = await scope.user.replay(context.receipt.id)
        assert json.dumps(replay.messages) == json.dumps(context.messages)
        assert (replay.system, replay.text) == (None, None)


async def test_a_receipt_says_what_ranks_lower_than_all_that_was_offered(store: AsyncMemoryStore) -> None:
    scope = await talk(store, turns=80)
    receipt = (await scope.context("What am I allergic to?", budget=400)).receipt
    [lower] = [one for one in receipt.left_out if one.reason == Reason.RANKED_LOWER]
    assert lower.note.startswith("all but the best ")
    assert lower.note in receipt.explain()
    moment = datetime.now(UTC)
    await scope.add_many([{"role": "user", "content": f"@carol tulip {number}"} for number in range(9)])
    await store.derive()
    for request in ({"as_of": moment}, {"viewer": "bob"}):
        receipt = (await scope.context("What am I allergic to?", budget=400, **request)).receipt
        [lower] = [one for one in receipt.left_out if one.reason == Reason.RANKED_LOWER]
        assert lower.note.startswith("all but the best ")


async def test_nothing_ranks_lower_where_all_is_offered(store: AsyncMemoryStore) -> None:
    scope = await talk(store, turns=9)
    receipt = (await scope.user.conversation("new").context("Which bridges are in Porto?", budget=400)).receipt
    assert not [one for one in receipt.left_out if one.reason == Reason.RANKED_LOWER]


async def test_what_is_left_out_in_great_number_does_not_hide_how_many_rank_lower(store: AsyncMemoryStore) -> None:
    scope = store.user("alice").conversation("thanks")
    said = [{"role": "user", "content": f"Trams in Porto stop at gate {n} of the harbour, I think."} for n in range(80)]
    said += [{"role": "user", "content": "Sounds great, thanks!"} for _ in range(40)]
    said += [{"role": "user", "content": "I prefer trams to buses in Porto."}]
    await scope.add_many(said)
    await store.derive()
    receipt = (await store.user("alice").conversation("new").context("Great, trams in Porto?", budget=400)).receipt
    reasons = [one.reason for one in receipt.left_out if one.section == "hits"]
    assert Reason.RANKED_LOWER in reasons
    assert Reason.SAYS_NOTHING in reasons


@pytest.mark.parametrize(("count", "others"), [(MAX_OFFERED_FACTS, 0), (MAX_OFFERED_FACTS + 1, 1)])
async def test_facts_rank_lower_only_if_there_are_more_than_are_offered(
    store: AsyncMemoryStore, count: int, others: int
) -> None:
    user = store.user("alice")
    for n in range(count):
        await user.add_fact(f"Alice owns the red book number {n}.", type="statement")
    receipt = (await user.conversation("new").context("Which red books does Alice own?", budget=400)).receipt
    lower = [one for one in receipt.left_out if (one.section, one.reason) == ("facts", Reason.RANKED_LOWER)]
    assert len(lower) == others


async def test_a_transaction_that_has_committed_takes_no_further_statement(store: AsyncMemoryStore) -> None:
    conversation = store.user("alice").conversation("c")
    await conversation.add("user", "Hello!")
    async with store._database.user_transaction(conversation.user.id) as tx:
        await tx.run_together([], commit=True)
        with pytest.raises(RuntimeError, match="has committed"):
            await tx.value("SELECT count(*) FROM messages", int)


async def test_a_receipt_from_before_what_was_sent_was_kept_says_that_it_has_no_replay(store: AsyncMemoryStore) -> None:
    scope = await talk(store, turns=3)
    context = await scope.context("Where do I live?", budget=400)
    run(store, "UPDATE receipts SET sent = NULL WHERE user_id = %s", ALICE)
    with pytest.raises(NotFound, match=r"no replay: the memstore that made it did not keep.*schema 0021"):
        await scope.user.replay(context)
    assert (await scope.user.receipt(context)).explain() == context.explain()


ANOTHER = "(SELECT r.sent FROM receipts r WHERE r.id <> receipts.id)"
PACKED_NULL = f"'\\x{zlib.compress(b'null').hex()}'"


@pytest.mark.parametrize("change", ["sent || 'x'", "'x'", ANOTHER, PACKED_NULL])
async def test_a_replay_that_is_not_what_was_sent_is_an_error(store: AsyncMemoryStore, change: str) -> None:
    scope = await talk(store, turns=3)
    await scope.context("What do I eat?", budget=300)
    context = await scope.context("Where do I live?", budget=400)
    assert context.receipt.id is not None
    run(store, f"UPDATE receipts SET sent = {change} WHERE id = %s", context.receipt.id)
    if change == "sent || 'x'":
        assert (await scope.user.replay(context)).messages == context.messages, "what follows its end is not read"
        return
    with pytest.raises(DatabaseError, match="keeps other bytes than were sent"):
        await scope.user.replay(context)


async def test_the_row_of_a_receipt_has_no_text_but_the_question_and_what_was_sent(store: AsyncMemoryStore) -> None:
    scope = await talk(store, turns=20)
    own = [Section("calendar", text=["Dentist on Friday.", "Choir " * 400])]
    context = await scope.context("And now?", budget=2000, strategy="summary_buffer", sections=own)
    with psycopg.connect(store.url) as connection:
        [(body,)] = connection.execute("SELECT body FROM receipts WHERE id = %s", [context.receipt.id]).fetchall()
    previews = {one["preview"] for name in ("included", "left_out") for one in body[name] if "preview" in one}
    (block,) = [one for one in context.receipt.included if one.kind == "block"]
    assert (block.reason, previews) == (Reason.COMPRESSED, {"Dentist on Friday.", block.preview})
    stored = await scope.user.receipt(context)
    assert [one.preview for one in stored.included] == [one.preview for one in context.receipt.included]


async def test_receipts_are_kept_for_a_time(url: str) -> None:
    settings = {"embedder": "hashing:256", "receipt_retention_days": 30}
    async with await AsyncMemoryStore.open(url, settings=settings) as store:
        scope = await talk(store, turns=3)
        old, new = [(await scope.context("x", budget=300)).receipt for _ in range(2)]
        run(store, "UPDATE receipts SET recorded_at = now() - interval '31 days' WHERE id = %s", old.id)
        await scope.add("user", "One more.")
        await store.derive()
        assert [one.id for one in await scope.receipts()] == [new.id]
    async with await AsyncMemoryStore.open(url, settings=settings | {"receipt_retention_days": 0}) as store:
        scope = store.user("alice").conversation("c")
        context = await scope.context("x", budget=300)
        assert context.receipt.id is None
        assert len(await scope.receipts()) == 1
        with pytest.raises(InvalidInput, match="was not kept"):
            await scope.user.replay(context.receipt)
