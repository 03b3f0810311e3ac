"""Users with more chunks than a process holds: the database finds what the process would, and stays fast behind it."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit
from uuid import UUID

import psycopg
import pytest

from memstore import ids
from memstore.client.store import AsyncMemoryStore
from memstore.store import postings, vector_indexes
from memstore.store.errors import ConcurrentUpdate
from tests.helpers.conformance import check_alike

START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)
LINES = [
    ("user", "Alice", "I'm allergic to peanuts."),
    ("assistant", None, "Noted: no peanuts for you."),
    ("user", "Bob", "My sister lives in Porto near the river."),
    ("user", "Alice", " ".join(f"On day {n} the train to Porto was late, and nobody knew why." for n in range(40))),
    ("user", "Alice", "We painted the garden fence blue."),
]
QUESTIONS = ["Porto", "Who lives near the river?", "Which colour has the fence?", "xyzzy", "late on day 7", "?"]
LARGE = {"embedder": "hashing:64", "max_chunks_in_memory": 0}


@pytest.fixture(autouse=True)
def no_run_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    for world in ("memstore", "memstore._sync"):
        monkeypatch.setattr(f"{world}.store.postings.MIN_RUN_CHUNKS", 1)
        monkeypatch.setattr(f"{world}.store.postings.CHUNKS_PER_RUN", 20)  # several runs


@pytest.fixture
async def large(url: str) -> AsyncIterator[AsyncMemoryStore]:
    """A store to which every user is large."""
    async with await AsyncMemoryStore.open(url, settings=LARGE) as store:
        yield store


@pytest.fixture
async def small(url: str, large: AsyncMemoryStore) -> AsyncIterator[AsyncMemoryStore]:
    """The same one, which holds everything in the process."""
    async with await AsyncMemoryStore.open(url, settings=LARGE | {"max_chunks_in_memory": 1000}) as store:
        yield store


async def talked(store: AsyncMemoryStore, name: str = "c", times: int = 6) -> None:
    scope = store.user("alice").conversation(name)
    await scope.add_many(
        [
            {
                "role": role,
                "content": f"{text} ({n}.)" if n % 3 else text,
                "name": speaker,
                "tags": [f"line{k}"],
                "occurred_at": START + timedelta(hours=n // 2 * 12 + n % 2, minutes=10 * k),
            }
            for n in range(times)
            for k, (role, speaker, text) in enumerate(LINES)
        ]
    )
    await store.derive()


async def reach(store: AsyncMemoryStore) -> postings.PostingReach:
    async with store._database.user_transaction(store.user("alice").id) as tx:
        return await postings.reach(tx)


def model(store: AsyncMemoryStore) -> UUID:
    assert store.embedder is not None
    return ids.model_id(store.embedder.name, store.embedder.dimensions)


async def test_the_database_finds_what_the_process_does(small: AsyncMemoryStore, large: AsyncMemoryStore) -> None:
    await talked(large)
    between = datetime.now(UTC)
    await talked(large, "other", 2)
    known = await reach(large)
    assert known.posted == known.last_chunk == known.chunks > 60
    assert await large.unindexed_users() == []
    for filters in (
        {},
        {"tiers": ["messages"]},
        {"tiers": ["facts", "summaries"]},
        {"roles": ["assistant"]},
        {"tags": ["line2"]},
        {"conversation": "other"},
        {"since": START + timedelta(hours=9), "until": START + timedelta(hours=20)},
        {"as_of": between},
        {"as_of": START},
    ):
        for question in [*QUESTIONS, *([] if filters else ["What did Bob say about the river?"])]:
            warm = await small.user("alice").recall(question, limit=40, **filters)  # type: ignore[arg-type]
            found = await large.user("alice").recall(question, limit=40, **filters)  # type: ignore[arg-type]
            check_alike([warm], [found])
        assert bool(warm) == (filters != {"as_of": START})


async def test_nothing_waits_for_what_makes_it_fast(small: AsyncMemoryStore, large: AsyncMemoryStore) -> None:
    """What came after the postings is found, and so is everything where there are none, nor an index."""
    await talked(large)
    await small.user("alice").conversation("c").add("user", "A parrot came to Porto.")
    await small.derive()
    known = await reach(large)
    assert known.posted < known.last_chunk
    assert await large.unindexed_users() == ["alice"]
    for question in ("parrot", "Porto"):
        hits = await large.user("alice").recall(question, limit=40)
        check_alike([hits], [await small.user("alice").recall(question, limit=40)])
        assert "A parrot came to Porto." in {hit.text for hit in hits}


async def test_who_is_small_again_keeps_none_of_it(large: AsyncMemoryStore, small: AsyncMemoryStore, url: str) -> None:
    await talked(large)
    await small.build_indexes()
    assert (await reach(large)).posted
    await talked(small, "other", 1)
    assert await reach(large) == await reach(small)
    assert (await reach(small)).posted == 0
    with psycopg.connect(url) as connection:
        assert connection.execute("select count(*) from term_postings").fetchone() == (0,)
        assert connection.execute("select indexname from pg_indexes where indexname like 'hnsw%'").fetchall() == []


async def test_what_is_removed_is_not_found(large: AsyncMemoryStore, small: AsyncMemoryStore, url: str) -> None:
    await talked(large)
    (fact, *_) = await large.user("alice").facts()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("update derivations set recipe = 'older' where deriver = 'summaries'")
    await large.derive(redo="summaries")
    await large.user("alice").retract_fact(fact.id)
    for question in QUESTIONS:
        hits = await large.user("alice").recall(question, limit=40)
        assert fact.id not in {hit.id for hit in hits}
        assert hits  # postings still count what is gone, so that scores differ a little from those of arrays
        assert {hit.id for hit in hits} <= {hit.id for hit in await small.user("alice").recall(question, limit=400)}


async def test_two_who_build_at_once_build_one(large: AsyncMemoryStore, small: AsyncMemoryStore, url: str) -> None:
    await talked(small)
    async with large._database.user_transaction(large.user("alice").id) as first:
        run = await postings.next_run(first, 0)
        await postings.post(first, run, 0)
    with pytest.raises(ConcurrentUpdate):
        async with large._database.user_transaction(large.user("alice").id) as second:
            await postings.post(second, run, 0)
    await large.build_indexes()
    with psycopg.connect(url) as connection:
        posted = connection.execute("select sum(holding) from term_postings").fetchone()
        assert posted == connection.execute("select sum(cardinality(terms)) from item_text").fetchone()


async def test_a_login_that_may_not_build_is_told(large: AsyncMemoryStore, small: AsyncMemoryStore, url: str) -> None:
    await talked(small)
    parts = urlsplit(url)
    app = parts._replace(netloc=f"memstore_app@{parts.netloc.rpartition('@')[2]}").geturl()
    async with await AsyncMemoryStore.open(app, settings=LARGE) as confined:
        assert await confined.build_indexes() == ["alice"]
        check_alike([await confined.user("alice").recall("Porto")], [await small.user("alice").recall("Porto")])
        assert await large.build_indexes() == []
        assert await confined.unindexed_users() == []
        check_alike([await confined.user("alice").recall("Porto")], [await small.user("alice").recall("Porto")])


async def test_what_was_cut_off_while_it_was_built_is_not_asked(large: AsyncMemoryStore, url: str) -> None:
    await talked(large)
    name = vector_indexes.name_of(large.user("alice").id, model(large))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("update pg_index set indisvalid = false where indexrelid = %s::regclass", [name])
    assert await large.unindexed_users() == ["alice"]
    assert await large.user("alice").recall("Porto")
    assert await large.build_indexes() == []
    assert await large.unindexed_users() == []


# Chunks kept in the process: never older than the database


async def test_what_others_add_and_remove_is_seen_at_once(
    store: AsyncMemoryStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for world in ("memstore", "memstore._sync"):
        monkeypatch.setattr(f"{world}.store.chunks.OVERLAP", timedelta())
    await talked(store)
    alice = store.user("alice")
    await alice.recall("parrot")
    async with await AsyncMemoryStore.open(url, settings={"embedder": "hashing:256"}) as other:
        for n in range(4):
            await other.user("alice").conversation("c").add("user", f"Parrot number {n} flew to Porto.")
            await other.derive()
            hits = await alice.recall("parrot Porto", limit=60)
            assert sum("Parrot" in hit.text for hit in hits if hit.tier == "messages") == n + 1
            async with await AsyncMemoryStore.open(url, settings={"embedder": "hashing:256"}) as cold:
                assert await cold.user("alice").recall("parrot Porto", limit=60) == hits
    with psycopg.connect(url, autocommit=True) as connection, connection.transaction():
        gone = next(hit.id for hit in hits if "number 0" in hit.text)
        connection.execute("delete from item_text where item_id = %s", [gone])
        connection.execute("update users set chunks = chunks - 1")
    left = await alice.recall("parrot Porto", limit=60)
    assert gone not in {hit.id for hit in left}
    assert len(left) >= len(hits) - 1


async def test_what_was_made_anew_is_not_taken_for_what_was_there(store: AsyncMemoryStore, url: str) -> None:
    await talked(store)
    alice, between = store.user("alice"), datetime.now(UTC)
    assert "facts" in {hit.tier for hit in await alice.recall("peanuts", as_of=between)}
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("update derivations set recipe = 'older'")
    await store.derive(redo="facts")
    async with await AsyncMemoryStore.open(url, settings={"embedder": "hashing:256"}) as cold:
        for moment in (between, None):
            warm = await alice.recall("peanuts Porto", limit=60, as_of=moment)
            assert warm == await cold.user("alice").recall("peanuts Porto", limit=60, as_of=moment)
