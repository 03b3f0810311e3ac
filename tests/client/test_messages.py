"""The recent tier: what goes in comes out, once, in order, unchanged."""

from datetime import UTC, date, datetime, timedelta, timezone
from itertools import groupby
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from memstore import Conflict, DatabaseError, InvalidInput, NotFound
from memstore.client.store import AsyncMemoryStore
from memstore.models import Fact, latest_first

CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Lisboa"}'}}
EARLY = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))
DEEP: dict[str, object] = {}
for _ in range(900):
    DEEP = {"deeper": DEEP}
THEN = datetime(2024, 5, 1, 9, 30, tzinfo=timezone(timedelta(hours=2)))


async def test_a_message_is_numbered_counted_and_dated(store: AsyncMemoryStore) -> None:
    trip = store.user("alice").conversation("lisbon")
    first = await trip.add("user", "I fly on Friday.", occurred_at=THEN, external_id="m1", name="Alice")
    second = await trip.add("assistant", "Noted <|endoftext|> 日本語 🛫")
    assert (first.seq, second.seq) == (1, 2)
    assert (first.role, first.content, first.name, first.external_id) == ("user", "I fly on Friday.", "Alice", "m1")
    assert first.occurred_at == THEN
    assert first.tokens == 5
    assert first.counter == "tiktoken:o200k_base"
    assert [message.content for message in await trip.messages()] == [
        "I fly on Friday.",
        "Noted <|endoftext|> 日本語 🛫",
    ]
    assert (await trip.messages())[0].recorded_at == first.recorded_at > THEN


async def test_parts_and_tool_calls_are_kept_losslessly(store: AsyncMemoryStore) -> None:
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
    ]
    given = [
        {"role": "user", "content": parts},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "content": "", "tool_call_id": "call_1"},
        {
            "role": "developer",
            "content": [],
            "metadata": {"why": ["nested", {"deep": 1.5}]},
            "tags": ["a", 'b"c', "d,e"],
        },
    ]
    trip = store.user("alice").conversation("lisbon")
    await trip.add_many(given)
    stored = await trip.messages()
    assert [message.content for message in stored] == [parts, None, "", []]
    assert stored[0].text == "What is this?"
    assert stored[1].tool_calls == [CALL]
    assert stored[2].tool_call_id == "call_1"
    assert (stored[3].metadata, stored[3].tags) == ({"why": ["nested", {"deep": 1.5}]}, ["a", 'b"c', "d,e"])
    assert stored[1].as_chat() == {"role": "assistant", "content": None, "tool_calls": [CALL]}
    assert stored[1].tokens > 10


async def test_a_conversation_is_as_old_as_its_messages(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    for name, year in (("old", 2023), ("older", 2019)):
        await alice.conversation(name).add("user", "It was hot.", occurred_at=datetime(year, 7, 1, tzinfo=UTC))
    await alice.conversation("old").add("user", "And dry.", occurred_at=datetime(2022, 7, 1, tzinfo=UTC))
    listed = await alice.conversations()
    assert [(one.name, one.created_at.year, one.updated_at.year) for one in listed] == [
        ("old", 2022, 2023),
        ("older", 2019, 2019),
    ]


async def test_the_same_external_id_is_the_same_message(store: AsyncMemoryStore) -> None:
    trip = store.user("alice").conversation("lisbon")
    given = [{"role": "user", "content": f"line {n}", "external_id": f"m{n}"} for n in range(5)]
    first = await trip.add_many(given[:3])
    again = await trip.add_many([*given, given[4]])
    assert [message.id for message in again[:3]] == [message.id for message in first]
    assert [message.seq for message in again] == [1, 2, 3, 4, 5, 5]
    assert len(await trip.messages()) == 5
    other = store.user("alice").conversation("porto")
    await other.add("user", "in another conversation", external_id="m1")
    assert [message.content for message in await other.messages()] == ["in another conversation"]
    assert await other.add_many([]) == []


async def test_other_content_under_a_known_id_is_a_conflict_and_changes_nothing(store: AsyncMemoryStore) -> None:
    trip = store.user("alice").conversation("lisbon")
    await trip.add("user", "by train", external_id="m1")
    with pytest.raises(Conflict, match=r"message 2.*'m1'.*on_conflict"):
        await trip.add_many(
            [{"role": "user", "content": "new"}, {"role": "user", "content": "by plane", "external_id": "m1"}]
        )
    assert [message.content for message in await trip.messages()] == ["by train"]
    kept = await trip.add_many([{"role": "user", "content": "by plane", "external_id": "m1"}], on_conflict="skip")
    assert kept[0].content == "by train"


async def test_keys_that_say_nothing_are_as_if_left_out(store: AsyncMemoryStore) -> None:
    of_a_library = {"role": "assistant", "content": "Noted.", "refusal": None, "audio": None, "annotations": []}
    given = of_a_library | {
        "function_call": None,
        "tool_calls": None,
        "tags": None,
        "metadata": None,
        "occurred_at": None,
    }
    trip = store.user("alice").conversation("lisbon")
    [stored] = await trip.add_many([given])
    assert (stored.content, stored.tags, stored.metadata) == ("Noted.", [], {})
    with pytest.raises(InvalidInput, match="refusal: memstore does not know this key"):
        await trip.add_many([given | {"refusal": "I will not."}])


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"role": "bot", "content": "hi"}, "message 2: role: Input should be 'system', 'developer', 'user'"),
    ({"role": "user", "content": "a\0b"}, "message 2: content holds a NUL character at position 1"),
    ({"role": "user", "content": "a\ud800"}, r"content holds half a surrogate pair \(U\+D800\)"),
    ({"role": "user", "content": "hi", "metadata": {"k\0": 1}}, "metadata holds a NUL"),
    ({"role": "user", "content": "hi", "metadata": {"k": float("nan")}}, "must be JSON"),
    ({"role": "user", "content": "x" * 4_000_001}, "it holds 4,000,001 bytes and a message may have 4,000,000"),
    ({"role": "user", "content": "hi", "occurred_at": datetime(2024, 1, 1)}, "occurred_at.*with its zone"),
    ({"role": "user"}, "neither content nor tool_calls"),
    ({"role": "user", "content": "hi", "colour": "red"}, "colour: memstore does not know this key.*metadata"),
    ({"role": "user", "content": "hi", "name": "N" * 201}, "name: .*200"),
    ({"role": "user", "content": [{"type": [1], "text": "\0"}]}, "content holds a NUL"),
    ({"role": "user", "content": "hi", "occurred_at": EARLY}, "outside of the years"),
    ({"role": "user", "content": "hi", "metadata": DEEP}, "nested deeper than 100 levels"),
    ({"role": "assistant", "tool_calls": [{"id": {"a": 1}}]}, "id of a tool call is a text"),
    ({"role": "user", "content": "hi", "user": "bob"}, "message 2: it is of the user 'bob' and was given to 'alice'"),
    ("hi", "message 2: it is a str; give a dict"),
]


async def test_what_cannot_be_stored_is_said_and_nothing_is(store: AsyncMemoryStore) -> None:
    trip = store.user("alice").conversation("lisbon")
    for given, words in REFUSED:
        with pytest.raises(InvalidInput, match=words):
            await trip.add_many([{"role": "user", "content": "good"}, given])
    assert await trip.messages() == []
    assert await trip.info() is None


async def test_messages_are_filtered(store: AsyncMemoryStore) -> None:
    trip = store.user("alice").conversation("lisbon")
    for n in range(6):
        await trip.add(
            "user" if n % 2 else "assistant",
            f"line {n}",
            occurred_at=datetime(2024, 1, 1 + n, tzinfo=UTC),
            tags=["even" if n % 2 == 0 else "odd", "all"],
            metadata={"session": n // 3},
        )

    async def found(**filters: object) -> list[int]:
        return [message.seq for message in await trip.messages(**filters)]  # type: ignore[arg-type]

    assert await found(roles=["user"]) == [2, 4, 6]
    assert await found(tags=["odd", "all"]) == [2, 4, 6]
    assert await found(metadata={"session": 1}) == [4, 5, 6]
    assert await found(since=datetime(2024, 1, 2, tzinfo=UTC), until=datetime(2024, 1, 4, tzinfo=UTC)) == [2, 3]
    assert await found(since="2024-01-02", until=date(2024, 1, 4)) == [2, 3]
    assert await found(since="2024-01-02T00:00:01Z", until="2024-01-04T01:00+01:00") == [3]
    assert await found(from_seq=2, limit=2) == [2, 3]


async def test_a_conversation_has_a_title_a_channel_and_settings(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    await alice.conversation("lisbon", title="Lisbon", channel="web").add("user", "hi")
    await alice.conversation("work", channel="slack").add("user", "hi")
    await alice.conversation("lisbon").update(settings={"budget": 500})
    await alice.conversation("lisbon").update(title="Lisboa", settings={"model": "openai:gpt-4o"})
    info = await alice.conversation("lisbon").info()
    assert info is not None
    assert (info.title, info.channel, info.last_seq) == ("Lisboa", "web", 1)
    assert info.settings == {"budget": 500, "model": "openai:gpt-4o"}
    assert [one.name for one in await alice.conversations(channel="slack")] == ["work"]
    assert {one.name for one in await alice.conversations()} == {"lisbon", "work"}


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"arguments": {"x": 1e23, "y": [1, 2.0, True]}}}]},
        {"role": "user", "content": [{"type": "text", "text": "é", "n": (1, 2)}]},
    ],
)
async def test_what_jsonb_gives_back_in_other_words_is_still_the_same(
    store: AsyncMemoryStore, message: dict[str, object]
) -> None:
    trip = store.user("alice").conversation("lisbon")
    first = await trip.add_many([message | {"external_id": "m"}])
    again = await trip.add_many([message | {"external_id": "m"}])
    assert (first[0].id, first[0].seq) == (again[0].id, again[0].seq)


async def test_a_closed_store_says_so(store: AsyncMemoryStore) -> None:
    await store.close()
    with pytest.raises(DatabaseError, match="This store is closed"):
        await store.user("alice").conversation("c").messages()


# Events: kept in the outbox with what happened, for readers who miss none


async def test_each_call_that_stores_messages_is_kept_and_what_was_rolled_back_or_known_is_not(
    store: AsyncMemoryStore,
) -> None:
    alice = store.user("alice")
    place = alice.conversation("c")
    await place.add("user", "one two three", external_id="1")
    stored = await place.add_many([{"role": "user", "content": text} for text in ("four", "five six")])
    await place.add("user", "one two three", external_id="1")
    with pytest.raises(Conflict):
        await place.add_many([{"role": "user", "content": "new"}, {"role": "user", "content": "x", "external_id": "1"}])
    kept = await alice.events()
    assert [event.body for event in kept] == [
        {"from_seq": 1, "to_seq": 1, "tokens": 3},
        {"from_seq": 2, "to_seq": 3, "tokens": sum(message.tokens for message in stored)},
    ]
    assert {(event.type, event.conversation_id, event.user_id) for event in kept} == {
        ("message_added", place.id, alice.id)
    }
    assert await store.user("bob").events() == []


async def test_a_reader_goes_on_where_it_was_and_asks_for_types(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    for text in ("a", "b", "c", "d"):
        await alice.conversation("c").add("user", text)
    first = await alice.events(limit=3)
    rest = await alice.events(after=first[-1].cursor)
    assert [event.body["to_seq"] for event in first + rest] == [1, 2, 3, 4]
    assert await alice.events(after=rest[-1].cursor) == []
    assert await alice.events(types=["context_assembled"]) == []
    nobody = "00000000-0000-0000-0000-000000000000"
    for wrong in ("nonsense", "1/x", f"x/{nobody}", f"{2**63}/{nobody}", f"-1/{nobody}", 5):
        with pytest.raises(InvalidInput, match="cursor"):
            await alice.events(after=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="types"):
        await alice.events(types=["message_eaten"])


async def test_a_reader_misses_no_transaction_that_commits_late(store: AsyncMemoryStore) -> None:
    """One that began before others and ends after them is seen when it has ended, and those others not before it."""
    alice = store.user("alice")
    await alice.conversation("c").add("user", "first")
    cursor = (await alice.events())[-1].cursor
    with psycopg.connect(store.url) as late:
        late.execute(
            "insert into events (user_id, id, type) values (%s, gen_random_uuid(), 'message_added')", [alice.id]
        )
        await alice.conversation("c").add("user", "second")
        assert await alice.events(after=cursor) == []
    assert len(await alice.events(after=cursor)) == 2


async def test_without_retention_no_events_are_kept(url: str) -> None:
    settings = {"embedder": "hashing:256", "event_retention_days": 0}
    async with await AsyncMemoryStore.open(url, settings=settings) as store:
        await store.user("alice").conversation("c").add("user", "one")
        assert await store.user("alice").events() == []


# Looking through a memory page by page and by id


BEGAN = datetime(2025, 3, 1, 9, tzinfo=UTC)
KIN = {"lisbon": ("cat", "sister", "cousin", "uncle"), "porto": ("dog", "brother", "aunt", "niece")}


async def test_a_memory_is_looked_through_in_pages(store: AsyncMemoryStore) -> None:
    alice, bob = store.user("alice"), store.user("bob")
    said = []
    for number, (name, kin) in enumerate(KIN.items()):
        at = BEGAN + timedelta(days=300 * number)
        told = [{"role": "user", "content": f"My {one} is called Ana.", "occurred_at": at} for one in ("name", *kin)]
        said += await alice.conversation(name).add_many(told)
    await bob.conversation("lisbon").add("user", "My cat is called Ana.")
    await store.derive()

    every = await alice.facts(state=None)
    pages, last = [], None
    while page := await alice.facts(state=None, before=last, limit=2):
        pages += [one.id for one in page]
        last = page[-1]
    assert pages == [one.id for one in every]
    assert len(pages) >= 4
    assert await alice.facts(type=every[0].type, subject=every[0].subject.upper(), limit=100)
    assert {one.id for one in await alice.facts_said_by([said[0].id])} == {
        one.id for one in every if said[0].id in one.sources
    }
    said_by = [one.id for one in latest_first(every) if one.sources]
    for number in range(1, len(said_by) + 1):
        latest = await alice.facts_said_by([one.id for one in said], limit=number)
        assert [one.id for one in latest] == said_by[:number]
    assert await bob.facts_said_by([said[0].id]) == []

    lisbon = alice.conversation("lisbon")
    summary = await lisbon.summarize(2, 4)
    assert summary.id in {one.id for one in await alice.summaries_over(lisbon.id, 4, 5)}
    assert summary.id not in {one.id for one in await alice.summaries_over(lisbon.id, 5, 5)}

    made = [await alice.conversation(name).context("Where?", budget=300) for name in ("lisbon", "porto", "lisbon")]
    ids = [one.receipt.id for one in made]
    first = await alice.receipt_page(limit=2)
    assert [one.id for one in first] == ids[:0:-1]
    assert [one.id for one in await alice.receipt_page(before=first[-1].id)] == ids[:1]
    assert [one.id for one in await alice.receipt_page(conversation_id=lisbon.id)] == [ids[2], ids[0]]
    assert await bob.receipt_page() == []


TYPES = (
    *("constraint", "procedure", "identity", "relationship", "deadline", "goal", "plan", "task", "decision"),
    *("preference", "possession", "event", "statement"),
)
THINGS = """
apples bridges cats dunes elephants fog goats hats igloos jam kites lemons maps nuts owls pears quilts rain salt tea
umbrellas violins walnuts yoghurt zebras beans clouds drums ferns grass honey ivy jazz kale lakes moss olives plums
roses
"""


async def test_lists_of_facts_begin_with_what_matters_and_so_do_their_pages(store: AsyncMemoryStore) -> None:
    alice, importances = store.user("alice"), ("pinned", "normal", "unimportant")
    await alice.update(settings={"fact_types": {"deadline": "a day by which something must be ready"}})
    things = iter(THINGS.split())
    for type in reversed(TYPES):
        for number in range(3):
            importance = importances[number] if type in ("plan", "deadline") else "normal"
            await alice.add_fact(
                f"The user likes {next(things)}.",
                type=type,
                importance=importance,
                confidence=0.9 if number == 1 else 1,
            )
    with psycopg.connect(store.url, autocommit=True) as database:  # two of each type at the same time
        database.execute("UPDATE facts SET occurred_at = CASE WHEN confidence < 1 THEN %s ELSE %s END", [BEGAN, THEN])

    every = await alice.facts()
    expected = sorted(every, key=lambda one: (importances.index(one.importance), TYPES.index(one.type)))
    by_place = groupby(expected, key=lambda one: (one.importance, one.type))
    assert every == [one for _, group in by_place for one in latest_first(group)]
    assert len({one.occurred_at for one in every}) == 2
    assert len(every) == 3 * len(TYPES)
    assert await alice.facts(as_of=datetime.now(UTC)) == every
    assert list((await alice.entity("likes")).facts) == latest_first(every)
    for limit in (1, 3):
        walked: list[Fact] = []
        for _ in every:
            walked += await alice.facts(before=walked[-1] if walked else None, limit=limit)
        assert walked == every
    await alice.retract_fact(every[5])
    assert await alice.facts(before=every[5].id, limit=2) == every[6:8]
    await alice.erase_fact(every[4])
    with pytest.raises(NotFound, match="is gone: begin at the first page"):
        await alice.facts(before=every[4], limit=2)
    assert await alice.facts(before=every[-1], limit=2) == []


async def test_items_are_found_by_their_ids(store: AsyncMemoryStore) -> None:
    alice, bob = store.user("alice"), store.user("bob")
    lisbon, porto = alice.conversation("lisbon"), alice.conversation("porto")
    said = [await place.add("user", f"I'm in {place.name}.") for place in (porto, lisbon)]
    summary = await lisbon.summarize()
    fact = await alice.add_fact("The user likes tea.", type="preference", sources=[said[1].id])
    ids = [said[1].id, uuid4(), said[0].id]
    assert [one.text for one in await alice.messages(ids)] == ["I'm in porto.", "I'm in lisbon."]  # as they were said
    assert await alice.conversation_names([lisbon.id, uuid4()]) == {lisbon.id: "lisbon"}
    assert (await alice.summary(summary.id)).text == summary.text
    assert await alice.resolve_id(summary.id.hex[:8], kind="summary") == summary.id
    await alice.retract_fact(fact)
    assert (await alice.fact(str(fact.id))).state == "retracted"

    assert await bob.messages(ids) == []
    assert await bob.conversation_names([lisbon.id]) == {}
    with pytest.raises(InvalidInput, match="This user has no fact"):
        await bob.fact(fact.id)
    with pytest.raises(InvalidInput, match="This user has no summary"):
        await bob.summary(summary.id)
    with pytest.raises(InvalidInput, match="This user has no summary"):
        await bob.resolve_id(summary.id.hex[:8], kind="summary")
