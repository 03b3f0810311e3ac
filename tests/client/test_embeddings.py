"""Another embedder in the place of one: recall is as it was before, meanwhile and after, and so is what is derived."""

import json
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import psycopg
import pytest

import memstore
from memstore import Conflict, EmbedderMismatch
from memstore.client.store import AsyncMemoryStore
from memstore.derive import embedding_migration
from memstore.models import Hit, MigrationReport
from memstore.providers import Vectors
from memstore.store import chunks, embedding_models, vector_indexes
from memstore.store.rows import model_id
from memstore.testing import HashingEmbedder
from tests.helpers.conformance import check_alike
from tests.helpers.embedders import TurnedEmbedder, install

OLD, NEW = "turned:1", "turned:2"
START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)
SAID = [
    "I'm allergic to peanuts.",
    "My sister lives in Porto near the river.",
    "We painted the garden fence blue.",
    "The train to Lisbon leaves at nine.",
    "I work as a nurse in Leeds.",
]
QUESTIONS = ["Where does my sister live?", "What am I allergic to?", "Which colour has the fence?", "Leeds"]


@pytest.fixture(autouse=True)
def turned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(install(tmp_path))


async def opened(url: str, embedder: str = OLD, **settings: object) -> AsyncMemoryStore:
    return await AsyncMemoryStore.open(url, settings={"embedder": embedder, **settings})


@pytest.fixture
async def old(url: str) -> AsyncIterator[AsyncMemoryStore]:
    """A store whose setting names the old embedder, whatever happens."""
    async with await opened(url) as store:
        yield store


async def talked(store: AsyncMemoryStore, user: str = "alice", place: str = "c", times: int = 3) -> None:
    said = [
        {"role": "user", "content": f"{text} That was {n}.", "occurred_at": START + timedelta(days=n, minutes=k)}
        for n in range(times)
        for k, text in enumerate(SAID)
    ]
    await store.user(user).conversation(place).add_many(said)
    assert (await store.derive()).failed == ()


async def recalled(store: AsyncMemoryStore, user: str = "alice") -> list[list[Hit]]:
    return [await store.user(user).recall(question, limit=8) for question in QUESTIONS]


def embedder(store: AsyncMemoryStore, name: str) -> TurnedEmbedder:
    found = store._runtime.load_embedder_by_name(name, 256)
    assert isinstance(found, TurnedEmbedder)
    return found


async def states(store: AsyncMemoryStore) -> dict[str, tuple[str, int, int]]:
    """Give the state of each embedder, how many users have vectors of it, and how many chunks have none."""
    return {one.name: (one.state, one.users, one.chunks - one.vectors) for one in await store.embeddings.status()}


def vectors_by(url: str) -> dict[str, int]:
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "select m.name, count(*) from item_vectors v join embedding_models m on m.id = v.model_id group by m.name"
        )
        return dict(found.fetchall())


async def test_recall_is_the_same_by_another_embedder_of_as_many_dimensions(old: AsyncMemoryStore, url: str) -> None:
    await talked(old)
    await talked(old, "bob", times=1)
    before = await recalled(old)
    chunks = (await old.stats())["chunks"]
    told: list[tuple[int, int]] = []
    moved = await old.embeddings.migrate(NEW, progress=lambda *step: told.append(step))
    assert (moved.users, moved.vectors) == (2, chunks)
    assert told[-1] == (chunks, chunks)
    assert await states(old) == {NEW: ("serving", 2, 0), OLD: ("retired", 2, 0)}
    stats = await old.stats()
    assert (stats["vectors"], stats["without_vectors"]) == (chunks, 0)
    check_alike(await recalled(old), before)
    for name in (NEW, OLD):
        async with await opened(url, name) as other:
            check_alike(await recalled(other), before)
    assert (await old.embeddings.migrate(NEW)).users == 0
    assert await old.backfills.verify() == []


async def test_documents_are_moved_too_and_found_by_the_embedder_that_serves(old: AsyncMemoryStore, url: str) -> None:
    """One with texts of its own, which stand nowhere else, one without, and a user who has nothing but documents."""
    await talked(old)
    own = {"a": "The ferry leaves at nine.", "b": "The tram goes uphill."}
    for user in ("alice", "carol"):
        await old.user(user).documents().put(("notes",), "texts", {"n": 1}, texts=own)
        await old.user(user).documents().put(("notes",), "whole", {"text": "Peanuts are nuts."})
    apart = old.user("alice").documents(embedder=HashingEmbedder(64))
    await apart.put(("apart",), "x", {"text": "The ferry is mine."})

    async def found(store: AsyncMemoryStore, user: str) -> list[tuple[str, float]]:
        asked = [await store.user(user).documents().search(query=one) for one in ("when does the ferry leave", "nuts")]
        return [(one.key, pytest.approx(one.score, abs=1e-6)) for some in asked for one in some]

    before = {user: await found(old, user) for user in ("alice", "carol")}
    chunks = (await old.stats())["chunks"]
    assert [len(one) for one in before.values()] == [4, 4]
    moved = await old.embeddings.migrate(NEW)
    assert (moved.users, moved.vectors) == (2, chunks + 6)
    for name in (OLD, NEW):
        async with await opened(url, name) as store:
            for user, hits in before.items():
                assert await found(store, user) == hits
    await old.user("carol").documents().put(("notes",), "later", {"text": "Ferries again."})
    assert (await old.embeddings.clean()).vectors == chunks + 6
    with psycopg.connect(url) as connection:
        left = connection.execute("select model_id, count(*) from document_vectors group by 1").fetchall()
    assert sorted(count for _, count in left) == [1, 7], "the application's own stay"
    async with await opened(url, NEW) as store:
        assert (await store.user("carol").documents().search(query="ferries again"))[0].key == "later"


async def test_a_process_that_cannot_have_the_embedder_that_serves_says_so(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await opened(url, "hashing:64") as store:
        await talked(store)
        await store.embeddings.migrate(NEW)
    monkeypatch.undo()  # as on a machine where the kind is not installed
    monkeypatch.setattr("memstore.providers._LOADED", {})
    async with await opened(url, "hashing:64") as store:
        with pytest.raises(EmbedderMismatch, match=r"turned:2.*here it is 'hashing:64'.*Install what brings it"):
            await store.user("alice").recall("peanuts")
        await store.user("alice").conversation("c").add("user", "I keep bees.")
        with pytest.raises(EmbedderMismatch, match=r"turned:2"):
            await store.derive()
        with pytest.raises(EmbedderMismatch, match=r"turned:2"):
            await store.warm_up()


async def test_a_store_that_is_set_to_an_embedder_that_nobody_was_moved_to_is_refused(
    old: AsyncMemoryStore, url: str
) -> None:
    await talked(old)
    async with await opened(url, NEW) as other:
        with pytest.raises(EmbedderMismatch, match=r"turned:1.*turned:2.*memstore embeddings migrate --to turned:2"):
            await other.user("alice").recall("peanuts")
        with pytest.raises(EmbedderMismatch, match=r"memstore embeddings migrate"):
            await other.user("alice").conversation("c").context("peanuts", budget=500)
        with pytest.raises(EmbedderMismatch):
            await other.user("alice").add_fact("The user lives in Porto.", type="identity")
    assert vectors_by(url) == {OLD: (await old.stats())["chunks"]}


async def test_what_is_derived_after_the_switch_is_by_the_new_one_wherever(old: AsyncMemoryStore, url: str) -> None:
    await talked(old)
    await old.embeddings.migrate(NEW)
    kept = vectors_by(url)[OLD]
    await talked(old, place="d")
    alice = old.user("alice")
    await alice.add_fact("The user plays the cello.", type="preference")
    await alice.conversation("c").summarize()
    assert vectors_by(url) == {OLD: kept, NEW: (await old.stats())["chunks"]}
    context = await alice.conversation("d").context("Where does my sister live?", budget=800)
    assert context.receipt.models["embedder"] == NEW
    assert "cello" in (await alice.recall("Who plays the cello?", limit=1))[0].text
    await talked(old, "carol")  # nobody knew her: the setting does not say
    chunks = (await old.stats())["chunks"]
    assert await states(old) == {NEW: ("serving", 2, 0), OLD: ("retired", 1, chunks - kept)}
    async with await opened(url, NEW) as new:
        check_alike(await recalled(new, "carol"), await recalled(old, "carol"))
        assert (await new.embeddings.migrate(NEW)) == MigrationReport(0, 0)


# -- cut off


async def cut_off(store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch, batches: int) -> None:
    """Begin a migration, which ends after so many batches of three."""
    monkeypatch.setattr(embedding_migration, "MAX_BATCH_ITEMS", 3)
    there = embedder(store, NEW)
    real, left = there.embed_documents, [batches]

    def failing(texts: Sequence[str]) -> Vectors:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return real(texts)

    with monkeypatch.context() as patch:
        patch.setattr(there, "embed_documents", failing)
        with pytest.raises(KeyboardInterrupt):
            await store.embeddings.migrate(NEW)


async def test_what_was_cut_off_goes_on_with_what_is_left(
    old: AsyncMemoryStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await talked(old)
    before, chunks = await recalled(old), (await old.stats())["chunks"]
    held = embedder(old, NEW)  # so that nobody loads another one
    await cut_off(old, monkeypatch, 2)
    assert await states(old) == {OLD: ("serving", 1, 0), NEW: ("building", 1, chunks - 6)}
    check_alike(await recalled(old), before)
    async with await opened(url, NEW) as new:  # set to the new one already: the old one serves, no mistake
        check_alike(await recalled(new), before)
        await talked(new, place="d", times=1)
    assert vectors_by(url) == {OLD: (await old.stats())["chunks"], NEW: 6}
    for other in ("hashing:256", "turned:3"):
        with pytest.raises(Conflict, match=r"turned:2.*not done"):
            await old.embeddings.migrate(other)
    with pytest.raises(Conflict, match=r"not done"):
        await old.embeddings.clean()
    held.asked.clear()
    moved = await old.embeddings.migrate(NEW)
    assert moved.vectors == (await old.stats())["chunks"] - 6 == sum(map(len, held.asked))
    assert await states(old) == {NEW: ("serving", 1, 0), OLD: ("retired", 1, 0)}


async def test_what_was_cut_off_can_be_given_up(
    old: AsyncMemoryStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await talked(old)
    before, chunks = await recalled(old), (await old.stats())["chunks"]
    await cut_off(old, monkeypatch, 2)
    await old.embeddings.migrate(OLD)  # it serves: what was begun beside it is given up
    assert await states(old) == {OLD: ("serving", 1, 0), NEW: ("retired", 1, chunks - 6)}
    check_alike(await recalled(old), before)
    assert (await old.embeddings.clean()).vectors == 6


async def test_nobody_migrates_while_somebody_else_does(old: AsyncMemoryStore, url: str) -> None:
    await talked(old)
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("select pg_advisory_lock(hashtextextended('memstore:embeddings', 0))")
        for call in (lambda: old.embeddings.migrate(NEW), old.embeddings.clean):
            with pytest.raises(Conflict, match="another process"):
                await call()
        assert list(await states(old)) == [OLD]
        other.execute("select pg_advisory_unlock_all()")
    assert (await old.embeddings.migrate(NEW)).users == 1


async def test_texts_that_the_new_embedder_refuses_are_reported_and_hold_up_no_other(
    old: AsyncMemoryStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_migration, "MAX_BATCH_ITEMS", 2)
    await talked(old)
    for key in "abcd":
        await old.user("alice").documents().put(("notes",), key, {"text": f"The fence is {key}."})
    new = embedder(old, NEW)
    embed = new.embed_documents

    def picky(texts: Sequence[str]) -> Vectors:
        if any("fence" in text for text in texts):
            raise ValueError("no")
        return embed(texts)

    with monkeypatch.context() as patch:
        patch.setattr(new, "embed_documents", picky)
        moved = await old.embeddings.migrate(NEW)
        said = [one for one in await old.user("alice").conversation("c").messages() if "fence" in one.text]
        derived = {one for one in moved.refused if not one.startswith("documents")}
        assert {f"messages {message.id} of alice" for message in said} <= derived
        assert len(moved.refused) == len(derived) + 4
        assert await states(old) == {NEW: ("serving", 1, len(derived)), OLD: ("retired", 1, 0)}
        hits = await old.user("alice").recall("Which colour has the fence?")
        assert "fence" in hits[0].text, "by its words"
        again = await old.embeddings.migrate(NEW)
        assert (again.users, again.vectors, set(again.refused)) == (1, 0, set(moved.refused))
    assert await old.embeddings.migrate(NEW) == MigrationReport(1, len(derived) + 4)


# -- back


async def test_the_way_back_makes_what_came_since(
    old: AsyncMemoryStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for world in ("memstore", "memstore._sync"):
        monkeypatch.setattr(f"{world}.store.chunks.OVERLAP", timedelta())
    await talked(old)
    before = await recalled(old)
    await old.embeddings.migrate(NEW)
    check_alike(await recalled(old), before)
    held = embedder(old, OLD)
    held.asked.clear()
    await talked(old, place="d", times=1)
    assert held.asked == []
    after = await recalled(old)
    lacking = (await old.stats())["chunks"] - vectors_by(url)[OLD]
    async with old._database.user_transaction(
        old.user("alice").id
    ) as tx:  # as a question that the switch has overtaken
        version = await tx.get(chunks.index_version(model_id(held)))
        assert version is not None
        assert await chunks.read_index(tx, model_id(held), version.version) is not None
    moved = await old.embeddings.migrate(OLD)
    assert (moved.users, moved.vectors) == (1, lacking)
    check_alike(await recalled(old), after)
    assert await states(old) == {OLD: ("serving", 1, 0), NEW: ("retired", 1, 0)}
    assert (await old.embeddings.migrate(NEW)).vectors == 0
    check_alike(await recalled(old), after)


async def test_large_users_are_indexed_before_the_switch(url: str) -> None:
    async with await opened(url, max_chunks_in_memory=0) as large, await opened(url) as small:
        await talked(large, times=8)
        alice, before = large.user("alice"), await recalled(large)
        ids = {name: model_id(embedder(large, name)) for name in (OLD, NEW)}

        async def indexed() -> dict[str, bool]:
            async with large._database.user_transaction(alice.id) as tx:
                return {name: await vector_indexes.is_made(tx, ids[name]) for name in ids}

        assert await indexed() == {OLD: True, NEW: False}
        await large.embeddings.migrate(NEW)
        assert await indexed() == {OLD: True, NEW: True}
        check_alike(await recalled(large), before)
        check_alike(await recalled(small), before)
        await large.embeddings.clean()
        assert await indexed() == {OLD: False, NEW: True}
        await talked(large, place="d", times=1)
        assert await indexed() == {OLD: False, NEW: True}, "nobody makes an index for what is gone"


# -- at the same moment


Hook = Callable[[], object]


def once(there: TurnedEmbedder, method: str, hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have something happen while the embedder is first at work from now on."""
    real, left = getattr(there, method), [hook]

    def hooked(given: object) -> object:
        if left:
            left.pop()()
        return real(given)

    monkeypatch.setattr(there, method, hooked)


def moving(url: str, to: str = NEW) -> Hook:
    def moved() -> None:
        with memstore.open(url, settings={"embedder": OLD}) as other:
            other.embeddings.migrate(to)

    return moved


async def check_vectors(store: AsyncMemoryStore, url: str) -> None:
    """Every vector is of the embedder under whose name it is kept: turned straight, those of a chunk are the same."""
    await store.embeddings.migrate(OLD)  # so that what came after the switch has vectors of both
    found: dict[tuple[object, int], list[Vectors]] = {}
    with psycopg.connect(url) as connection:
        for item, chunk, name, vector in connection.execute(
            "select v.item_id, v.chunk_index, m.name, v.embedding::text from item_vectors v join embedding_models m"
            " on m.id = v.model_id"
        ):
            own = embedder(store, name).straight(np.array(json.loads(vector), dtype=np.float32))
            found.setdefault((item, chunk), []).append(own)
    assert {len(every) for every in found.values()} == {2}
    assert all(one == pytest.approx(other, abs=1e-6) for one, other in found.values())


@pytest.mark.parametrize("made", ["message", "fact", "edit", "summary", "redo"])
async def test_whatever_is_made_during_the_switch_is_made_by_the_new_one(
    old: AsyncMemoryStore, url: str, monkeypatch: pytest.MonkeyPatch, made: str
) -> None:
    await talked(old)
    alice = old.user("alice")
    fact = await alice.add_fact("The user keeps bees.", type="preference")
    monkeypatch.setattr("memstore.derive.facts.reader_extractor.RECIPE", "rules/test")
    if made == "message":
        await alice.conversation("d").add("user", "I keep bees behind the house.")
    once(embedder(old, OLD), "embed_documents", moving(url), monkeypatch)
    if made == "message":
        report = await old.derive()
        assert (report.failed, report.messages) == ((), 1)
        assert "bees" in (await alice.recall("Who keeps bees?", limit=1))[0].text
    elif made == "fact":
        await alice.add_fact("The user plays the cello.", type="preference")
    elif made == "edit":
        await alice.edit_fact(fact, text="The user keeps wild bees.")
    elif made == "summary":
        await alice.conversation("c").summarize(2, 9)
    else:
        assert (await old.derive(redo="facts")).redone == 1
    stats = await old.stats()
    assert stats["without_vectors"] == 0
    assert await states(old) == {NEW: ("serving", 1, 0), OLD: ("retired", 1, stats["chunks"] - vectors_by(url)[OLD])}
    await check_vectors(old, url)


async def test_a_question_that_the_switch_overtakes_is_answered_by_the_new_one(
    old: AsyncMemoryStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await talked(old)
    before = await recalled(old)
    once(embedder(old, OLD), "embed_query", moving(url), monkeypatch)
    check_alike(await recalled(old), before)
    await old.embeddings.migrate(OLD)
    trip = old.user("alice").conversation("c")
    expected = await trip.context(QUESTIONS[0], budget=600)
    assert expected.receipt.models["embedder"] == OLD
    once(embedder(old, OLD), "embed_query", moving(url), monkeypatch)
    context = await trip.context(QUESTIONS[0], budget=600)
    assert context.messages == expected.messages
    scores = [[one.score for one in each.receipt.included] for each in (context, expected)]
    assert scores[0] == pytest.approx(scores[1], abs=2e-6)


async def test_all_users_stay_on_the_old_one_until_all_are_done(
    old: AsyncMemoryStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile one of those who are done writes messages and a document, and somebody comes."""
    for user in ("alice", "bob"):
        await talked(old, user)
    seen = list[str]()

    def writing() -> None:
        with memstore.open(url, settings={"embedder": OLD}) as other:
            for user in ("alice", "carol"):
                other.user(user).conversation("late").add("user", "I keep bees behind the house.")
                other.user(user).documents().put(("notes",), "late", {"text": "Bees sting."})
            assert other.derive().failed == ()
            seen.extend(vectors_by(url))
            assert "bees" in other.user("alice").recall("Who keeps bees?", limit=1)[0].text
            assert [one.state for one in other.embeddings.status()] == ["serving", "building"]

    # Bob is embedded last.
    there = embedder(old, NEW)
    real, calls = there.embed_documents, list[int]()

    def hooked(texts: Sequence[str]) -> Vectors:
        calls.append(len(texts))
        if len(calls) == 2:
            writing()
        return real(texts)

    monkeypatch.setattr(there, "embed_documents", hooked)
    moved = await old.embeddings.migrate(NEW)
    assert sorted(seen) == [OLD, NEW]
    assert moved.users == 3
    chunks = (await old.stats())["chunks"]
    assert await states(old) == {NEW: ("serving", 3, 0), OLD: ("retired", 3, 0)}
    assert vectors_by(url) == {OLD: chunks, NEW: chunks}
    for user in ("alice", "carol"):
        [found] = await old.user(user).documents().search(query="bees", limit=1)
        assert (found.key, found.score is not None) == ("late", True)


async def test_a_switch_for_which_too_much_is_left_is_tried_again_with_the_connections_that_it_has(
    old: AsyncMemoryStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await talked(old)
    monkeypatch.setattr(embedding_migration, "MAX_BATCH_ITEMS", 1)
    opened = list[int]()
    real = embedding_models.Database

    def writing(url: str, size: int, *, max_chunks: int) -> object:
        opened.append(size)
        with memstore.open(url, settings={"embedder": OLD}) as other:
            other.user("alice").conversation("late").add("user", "I keep bees behind the house.")
            assert other.derive().failed == ()
        return real(url, size, max_chunks=max_chunks)

    monkeypatch.setattr(embedding_models, "Database", writing)
    await old.embeddings.migrate(NEW)
    assert len(opened) == 1
    assert await states(old) == {NEW: ("serving", 1, 0), OLD: ("retired", 1, 0)}


async def test_the_first_embedder_of_a_store_is_active_before_its_vectors_are_made(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut off, its vectors are those that `clean` keeps, and no other becomes the first."""
    async with await opened(url, "none") as store:
        await talked(store)
        await cut_off(store, monkeypatch, 0)
        assert (await states(store))[NEW][0] == "serving"
    async with await opened(url, OLD) as other:
        with pytest.raises(EmbedderMismatch):
            await other.user("alice").recall("Porto")


async def test_of_two_embedders_at_once_one_is_the_store_s_and_nothing_is_lost(
    old: AsyncMemoryStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await old.user("alice").conversation("c").add("user", SAID[0])

    def first() -> None:
        with memstore.open(url, settings={"embedder": NEW}) as other:
            assert other.derive().failed == ()

    there, lock = embedder(old, OLD), threading.Lock()
    real, left = there.embed_documents, [first]

    def hooked(texts: Sequence[str]) -> Vectors:
        # Another deriver waits too.
        with lock:
            if left:
                left.pop()()
        return real(texts)

    monkeypatch.setattr(there, "embed_documents", hooked)
    assert (await old.derive()).failed == ()
    async with await opened(url, NEW) as new:
        assert (await new.derive()).failed == ()
        assert (await new.user("alice").recall("peanuts"))[0].text == SAID[0]
        assert await states(new) == {NEW: ("serving", 1, 0)}
        await talked(new, "bob")
        with pytest.raises(EmbedderMismatch, match="memstore embeddings migrate --to turned:1"):
            await old.user("bob").recall("peanuts")
        await old.user("bob").conversation("c").add("user", "I keep bees.")
        with pytest.raises(EmbedderMismatch, match="memstore embeddings migrate --to turned:1"):
            await old.derive()
        assert (await new.derive()).messages == 1


async def test_what_was_erased_meanwhile_leaves_no_vector(
    old: AsyncMemoryStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A summary is made again under its id: the vector of what it said before is not to be written to it."""
    await talked(old)
    place = old.user("alice").conversation("c")
    summary = (await place.summaries())[0]
    there = embedder(old, NEW)
    monkeypatch.setattr(embedding_migration, "MAX_BATCH_ITEMS", 1)
    real, left = there.embed_documents, [(await place.messages())[2]]

    def erased(texts: Sequence[str]) -> Vectors:
        if left and summary.text.startswith(texts[0]):
            with memstore.open(url, settings={"embedder": OLD}) as other:
                other.user("alice").erase_message(left.pop().id)
                assert other.derive().failed == ()
        return real(texts)

    monkeypatch.setattr(there, "embed_documents", erased)
    assert (await old.embeddings.migrate(NEW)).users == 1
    again = (await place.summaries())[0]
    assert (again.id == summary.id, again.text == summary.text, left) == (True, False, [])
    await check_vectors(old, url)
