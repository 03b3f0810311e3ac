"""What is made anew: facts that come out again keep their past, and chunks that lack vectors get them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memstore import EmbedderMismatch
from memstore.client.store import AsyncMemoryStore
from memstore.client.user import AsyncUserScope
from memstore.derive.facts import reader_extractor
from memstore.derive.facts.drafts import FactDraft
from memstore.derive.facts.utterances import Utterance
from memstore.derive.reader.notes import Note
from memstore.models import Fact
from tests.helpers.user_rows import rows

START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)
RECIPE = "memstore.derive.facts.reader_extractor.RECIPE"


async def talk(alice: AsyncUserScope, *said: str, place: str = "c") -> None:
    for day, text in enumerate(said):
        await alice.conversation(place).add("user", text, occurred_at=START + timedelta(days=day))


async def known(alice: AsyncUserScope, **then: Any) -> tuple[list[dict[str, Any]], list[tuple[Any, ...]]]:
    facts = [
        {name: getattr(fact, name) for name in Fact.model_fields} for fact in await alice.facts(state="all", **then)
    ]
    hits = await alice.recall("Where does the user live?", tiers=["facts"], **then)
    return facts, [(hit.id, hit.text, hit.sources) for hit in hits]


# -- facts


async def test_what_was_known_before_a_redo_is_still_seen_after_it(
    store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = store.user("alice")
    moments, seen = [], []
    for text in ("I live in Leeds.", "I live in Porto now.", "I'm allergic to peanuts.", "I live in Leeds."):
        await talk(alice, text, place=text)
        await talk(alice, "I live in Rome.", text, place="c")
        await store.derive()
        moments.append(datetime.now(UTC))
        seen.append(await known(alice))
    monkeypatch.setattr(RECIPE, "reader/test")
    assert (await store.derive(redo="facts")).redone == 4
    assert {fact.recipe for fact in await alice.facts(state="all")} == {"reader/test"}
    for moment, then in zip(moments, seen, strict=True):
        assert await known(alice, as_of=moment) == then
    again = await alice.facts(state="all")
    assert [fact.recorded_at for fact in again] == [fact["recorded_at"] for fact in seen[-1][0]]


async def test_a_redo_keeps_what_comes_out_again_and_makes_only_what_is_new(
    store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = store.user("alice")
    await talk(alice, "I live in Leeds.", "I live in Porto now.", "I'm allergic to peanuts.")
    await store.derive()
    leeds, porto, peanuts = sorted(await alice.facts(state="all"), key=lambda fact: fact.occurred_at)
    assert (leeds.state, porto.state) == ("superseded", "active")
    extract = reader_extractor.extract

    def other(said: Utterance, notes: Sequence[Note], before: Sequence[Utterance], **_: Any) -> list[FactDraft]:
        if "Porto" in said.text:
            return []
        walnuts = replace(said, text=said.text.replace("peanuts", "walnuts"))
        in_words = [replace(one, sentence=(one.sentence or "").replace("peanuts", "walnuts")) for one in notes]
        return extract(walnuts, in_words, before)

    monkeypatch.setattr(reader_extractor, "extract", other)
    monkeypatch.setattr(RECIPE, "reader/test")
    moment = datetime.now(UTC)
    report = await store.derive(redo="facts")
    assert (report.redone, report.facts) == (1, 1)
    now = {fact.text: fact for fact in await alice.facts(state="all")}
    assert set(now) == {"The user lives in Leeds.", "The user is allergic to walnuts."}
    kept = now["The user lives in Leeds."]
    assert (kept.id, kept.state, kept.recorded_at) == (leeds.id, "active", leeds.recorded_at)
    assert now["The user is allergic to walnuts."].recorded_at > moment
    stats = await store.stats()
    assert (stats["chunks"], stats["vectors"]) == (3 + 2 + stats["summaries"],) * 2
    assert not {porto.id, peanuts.id} & {hit.id for hit in await alice.recall("Porto or peanuts?", tiers=["facts"])}


# -- vectors


EMBEDDER = "hashing:256"
SAID = ("I live in Leeds.", "I live in Porto.", "I'm allergic to peanuts.", "Bye!")


async def of_words(url: str, *users: str) -> None:
    """Derive what these users say, without an embedder."""
    async with await AsyncMemoryStore.open(url, settings={"embedder": "none"}) as words:
        for user in users:
            await talk(words.user(user), *SAID)
        await words.derive()
        assert (await words.stats())["without_vectors"] == (await words.stats())["chunks"] > 0


async def test_chunks_without_vectors_get_those_that_they_would_have_had(store: AsyncMemoryStore, url: str) -> None:
    await of_words(url, "alice", "bob")
    alice = store.user("alice")
    await talk(alice, "We sail to Rome.", place="d")
    await store.derive()
    lacking = (await store.stats())["without_vectors"]
    hits = await alice.recall("Leeds", tiers=["messages"])  # so that the arrays are kept here
    assert not any(hit.parts["semantic"] for hit in hits if hit.text == "I live in Leeds.")
    assert (await store.embeddings.migrate(EMBEDDER)).vectors == lacking
    assert (await store.stats())["without_vectors"] == 0
    hits = await alice.recall("Leeds", tiers=["messages"])
    assert all(hit.parts["semantic"] for hit in hits if hit.text == "I live in Leeds.")
    assert (await store.embeddings.migrate(EMBEDDER)).users == 0
    await talk(store.user("carol"), *SAID)
    await store.derive()
    assert embedded(url, "bob") == embedded(url, "carol"), "as if the embedder had been there from the start"


def embedded(url: str, user: str) -> list[str]:
    return sorted(row["embedding"] for row in rows(url, user)[f"{user}: item_vectors"])


async def test_nothing_is_stored_without_vectors_beside_what_has_them(store: AsyncMemoryStore, url: str) -> None:
    alice = store.user("alice")
    await talk(alice, "I live in Leeds.")
    await store.derive()
    stored = rows(url, "alice")
    async with await AsyncMemoryStore.open(url, settings={"embedder": "none"}) as words:
        with pytest.raises(EmbedderMismatch, match=r"hashing:256.*MEMSTORE_EMBEDDER"):
            await words.user("alice").add_fact("The user lives in Porto.", type="identity")
        assert rows(url, "alice") == stored
        await talk(words.user("alice"), "I moved to Porto.", place="d")
        with pytest.raises(EmbedderMismatch, match=r"hashing:256.*MEMSTORE_EMBEDDER"):
            await words.derive()
    assert (await store.derive()).failed == ()
    assert (await store.stats())["without_vectors"] == 0
