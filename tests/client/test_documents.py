"""Documents: kept by name, found by meaning or by what they hold, gone when their time is over."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from memstore import Conflict, InvalidInput
from memstore.client.store import AsyncMemoryStore
from memstore.models import NewDocument
from memstore.store.documents import Match
from memstore.testing import HashingEmbedder

PLACE = ("notes", "trips")
DAY = timedelta(days=1)


async def test_a_document_is_found_by_name_by_meaning_and_by_what_it_holds(store: AsyncMemoryStore) -> None:
    notes = store.user("alice").documents()
    await notes.put(PLACE, "ferry", {"text": "The ferry to Ischia leaves at nine.", "price": 9, "to": {"island": True}})
    await notes.put(("notes",), "tram", {"text": "The tram goes uphill.", "price": 10.5, "tags": ["lisbon"]})
    await notes.put(("notesy",), "other", {"text": "The ferry again.", "price": "9"})

    found = await notes.get(PLACE, "ferry")
    assert found is not None
    assert (found.namespace, found.value["price"], found.score) == (PLACE, 9, None)
    assert await notes.get(PLACE, "tram") is None

    by_meaning = await notes.search(("notes",), query="when does the ferry leave")
    assert [one.key for one in by_meaning] == ["ferry", "tram"]
    assert by_meaning[0].score is not None and by_meaning[1].score is not None
    assert by_meaning[0].score > by_meaning[1].score
    assert [one.key for one in await notes.search(("notes",))] == ["tram", "ferry"]  # the latest change first

    async def held(where: dict[str, object]) -> set[str]:
        return {one.key for one in await notes.search(where=where)}

    assert await held({"price": {"$gt": 9}}) == {"tram"}  # as a number: as a text, "10.5" is less than "9"
    assert await held({"price": {"$gte": 9, "$lt": 10}}) == {"ferry"}
    assert await held({"price": 9.0}) == {"ferry"}
    assert await held({"price": {"$ne": 9}}) == {"tram", "other"}
    assert await held({"to": {"island": True}}) == {"ferry"}
    assert await held({"tags": ["lisbon"]}) == {"tram"}
    assert await held({"tags": None}) == {"ferry", "other"}
    with pytest.raises(InvalidInput, match=r"\$like"):
        await held({"price": {"$like": 9}})

    assert await notes.namespaces() == [("notes",), PLACE, ("notesy",)]
    assert await notes.namespaces(depth=1) == [("notes",), ("notesy",)]
    assert await notes.namespaces([Match(("*", "trips"))]) == [PLACE]
    assert await notes.namespaces([Match(("trips",), at_end=True)]) == [PLACE]
    assert await store.user("bob").documents().search() == []


async def test_what_is_put_anew_is_found_by_its_new_words_and_by_its_own_embedder(store: AsyncMemoryStore) -> None:
    notes = store.user("alice").documents()
    await notes.put(PLACE, "plan", {"text": "peanuts"}, ttl=DAY)
    await notes.put(PLACE, "plan", {"text": "ferries"})
    [found] = await notes.search(query="ferries")
    assert found.score is not None
    assert found.value == {"text": "ferries"}
    assert found.expires_at is None
    assert found.updated_at > found.created_at
    assert await notes.search(query="peanuts")  # further away, but the only one there is

    await notes.put(PLACE, "silent", {"text": "ferries"}, texts={})
    assert [one.key for one in await notes.search(query="ferries")] == ["plan"]
    own = store.user("alice").documents(embedder=HashingEmbedder(64), distance="l2")
    assert await own.search(query="ferries") == []
    await own.put(PLACE, "own", {"a": "ferries", "b": "unlike it"}, texts={"a": "ferries", "b": "unlike it"})
    [near] = await own.search(query="ferries")
    assert near.score == pytest.approx(0, abs=1e-6)


async def test_a_vector_may_be_longer_than_a_page(store: AsyncMemoryStore) -> None:
    notes = store.user("alice").documents(embedder=HashingEmbedder(3072))
    await notes.put(PLACE, "plan", {"text": "peanuts and ferries"})
    assert [one.key for one in await notes.search(query="ferries")] == ["plan"]


async def test_a_document_whose_time_is_over_is_not_seen_and_then_gone(store: AsyncMemoryStore, url: str) -> None:
    notes = store.user("alice").documents()
    await notes.put(PLACE, "read", {}, ttl=DAY)
    await notes.put(PLACE, "kept", {})
    first = await notes.get(PLACE, "read", refresh=False)
    again = await notes.get(PLACE, "read")
    third = await notes.get(PLACE, "read", refresh=False)
    assert first and again and third and first.expires_at and third.expires_at
    assert third.expires_at > first.expires_at  # reading it has moved that

    with psycopg.connect(url) as connection:
        connection.execute("UPDATE documents SET expires_at = now() - interval '1 minute' WHERE expires_at IS NOT NULL")
    assert await notes.get(PLACE, "read") is None
    assert [one.key for one in await notes.search()] == ["kept"]
    assert [one.key for one in await notes.search(expired=True, refresh=False)] == ["kept", "read"]
    await store.apply_retention(user="alice")
    assert [one.key for one in await notes.search(expired=True)] == ["kept"]


async def test_of_two_who_change_one_document_one_is_told(store: AsyncMemoryStore) -> None:
    notes = store.user("alice").documents()

    async def claim(who: str) -> str:
        try:
            await notes.write([NewDocument(PLACE, "claim", {"who": who})], unchanged=lambda there: not there)
        except Conflict:
            return "too late"
        return who

    told = [await claim("one"), await claim("two")]
    assert told == ["one", "too late"]
    found = await notes.get(PLACE, "claim")
    assert found is not None
    assert found.value == {"who": "one"}


async def test_what_is_no_document_is_refused(store: AsyncMemoryStore) -> None:
    notes = store.user("alice").documents()
    wrong: list[tuple[Any, Any, Any, dict[str, Any], str]] = [  # namespace, key, value, options, words of the error
        ((), "k", {}, {}, "at least one"),
        ("notes", "k", {}, {}, "tuple of names"),
        (PLACE, "k\0", {}, {}, "NUL"),
        (PLACE, "k", {"deep": [{"a": "\0"}]}, {}, "NUL"),
        (PLACE, "k", {}, {"texts": {"text": None}}, "texts"),
        *((PLACE, "k", {}, {"ttl": ttl}, "ttl") for ttl in (timedelta(0), -DAY, timedelta.max, 30)),
    ]
    for namespace, key, value, options, words in wrong:
        with pytest.raises(InvalidInput, match=words):
            await notes.put(namespace, key, value, **options)
    for page in ({"offset": -1}, {"depth": 0}, {"limit": 0}, {"depth": 2**40}):
        with pytest.raises(InvalidInput, match=next(iter(page))):
            await notes.namespaces(**page)
    with pytest.raises(InvalidInput, match="distance"):
        store.user("alice").documents(distance="far")  # type: ignore[arg-type]
    assert await notes.search() == []
