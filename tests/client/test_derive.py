"""The derived tiers: complete, idempotent, with sources, and visible where they fail."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memstore.client.store import AsyncMemoryStore
from memstore.errors import ProviderError
from memstore.providers import Vectors
from memstore.testing import HashingEmbedder

START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)
SAID = [
    "I'm allergic to peanuts, so please keep that in mind.",
    "My sister Clara lives in Porto and works as a nurse.",
    "The weather was awful and we stayed in.",
    "We are flying to Lisbon on 14 June 2024 with my sister.",
    "I started learning Portuguese with a teacher in Leeds.",
]


def history(sessions: int) -> list[dict[str, object]]:
    """Sessions of ten messages, a day apart."""
    return [
        {
            "role": "user" if n % 2 == 0 else "assistant",
            "content": SAID[(n // 2 + day) % 5] if n % 2 == 0 else f"Noted for day {day}, point {n}. Shall we go on?",
            "occurred_at": START + timedelta(days=day, minutes=n),
            "external_id": f"{day}:{n}",
        }
        for day in range(sessions)
        for n in range(10)
    ]


async def test_without_an_embedder_words_alone_are_enough_and_progress_is_told(url: str) -> None:
    told: list[tuple[str, int, int]] = []
    async with await AsyncMemoryStore.open(url, settings={"embedder": "none"}) as store:
        for number in range(5):
            await store.user(f"user{number % 2}").conversation(f"c{number}").add_many(history(20))
        report = await store.derive(progress=lambda *one: told.append(one))
        assert (report.messages, report.chunks, report.failed) == (1000, 1000, ())
        done = [done for name, done, _ in told if name == "chunks"]
        assert done == sorted(done)
        assert done[-1] == 1000
        assert {step for step in told if step[1] == step[2]} == {
            (name, 1000, 1000) for name in ("chunks", "facts", "summaries")
        }
        assert {total for name, _, total in told if name == "chunks"} == {1000}
        assert (await store.stats())["vectors"] == 0
        hits = await store.user("user1").recall("Where does Clara live?", tiers=["messages"], limit=3)
        assert {hit.text for hit in hits} == {SAID[1]}


class PickyEmbedder(HashingEmbedder):
    """Refuses every text with one word in it."""

    def __init__(self, refused: str) -> None:
        super().__init__(256)
        self.name, self._refused = "picky", refused

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if any(self._refused in text for text in texts):
            raise ValueError("no")
        return super().embed_documents(texts)

    def embed_query(self, text: str) -> Vectors:
        return HashingEmbedder(256).embed_query(text)


def picky(model: str) -> PickyEmbedder:
    return PickyEmbedder(model)


async def test_a_text_that_the_embedder_refuses_is_named_and_holds_up_no_other(url: str) -> None:
    settings = {"embedder": "tests.client.test_derive:picky:Clara"}
    async with await AsyncMemoryStore.open(url, settings=settings) as store:
        talk = store.user("alice").conversation("c")
        messages = await talk.add_many([{"role": "user", "content": text} for text in SAID])
        report = await store.derive()
        assert (report.messages, report.chunks) == (5, 5) and report.facts > 0
        [why] = report.failed
        assert str(messages[1].id) in why and all(str(message.id) not in why for message in messages[2:])
        assert (await store.derive()).failed == ()
        hits = await talk.user.recall("Clara", tiers=["messages"], limit=1)
        assert hits[0].id == messages[1].id
        await talk.add("user", "Clara moved to Leeds.")
        assert len((await store.derive()).failed) == 1, "a batch of one text"


async def test_an_embedder_that_takes_no_text_leaves_messages_pending(url: str) -> None:
    async with await AsyncMemoryStore.open(url, settings={"embedder": "tests.client.test_derive:picky: "}) as store:
        await store.user("alice").conversation("c").add_many([{"role": "user", "content": text} for text in SAID])
        report = await store.derive()
        assert report.messages == report.chunks == 0
        assert "ValueError" in report.failed[0]


class LateEmbedder(HashingEmbedder):
    """Fails `failures` times with an error of the network, or of the memory, at texts with one word in it."""

    def __init__(self, error: type[Exception], failures: int) -> None:
        super().__init__(256)
        self.error, self.failures = error, failures

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if self.failures and any("Clara" in text for text in texts):
            self.failures -= 1
            raise self.error("later")
        return super().embed_documents(texts)


class WrappedTimeout(Exception):
    """Stands for an HTTP client's own class."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.__cause__ = TimeoutError()


late: list[LateEmbedder] = []


def latest(_: str) -> LateEmbedder:
    return late[-1]


@pytest.mark.parametrize("error", [ConnectionError, TimeoutError, MemoryError, WrappedTimeout])
async def test_an_error_that_passes_sets_no_text_aside(url: str, error: type[Exception]) -> None:
    for failures, waits in ((1, False), (3, False), (99, True)):
        late.append(LateEmbedder(error, failures))
        settings = {"embedder": f"{__name__}:latest:{error.__name__} {failures}"}
        async with await AsyncMemoryStore.open(url, settings=settings) as store:
            talk = store.user(f"alice{failures}").conversation("c")
            await talk.add_many([{"role": "user", "content": text} for text in SAID])
            report = await store.derive()
            assert report.failed == ()
            assert [bool(report.waiting), report.chunks] == [waits, 0 if waits else 5]
            late[-1].failures = 0
            await store.derive()
            stats = await store.stats(user=talk.user.name)
            assert (stats["pending"], stats["without_vectors"], stats["failed"]) == (0, 0, 0)


class WrongEmbedder(HashingEmbedder):
    """Returns vectors that are none."""

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return [WRONG[self.name] for _ in texts[:-1]] + [WRONG[self.name][: 256 - ("lengths" in self.name)]]

    def embed_query(self, text: str) -> Any:
        return WRONG[self.name]


WRONG: dict[str, Any] = {
    "strings": ["0.1"] * 256, "none": [None] * 256, "lengths": [1.0] * 256, "endless": [float("nan")] * 256,
    "short": [1.0] * 255,
}  # fmt: skip


def wrong(name: str) -> WrongEmbedder:
    embedder = WrongEmbedder(256)
    embedder.name = name
    return embedder


@pytest.mark.parametrize("name", WRONG)
async def test_vectors_that_are_none_are_refused_with_what_an_embedder_returns(url: str, name: str) -> None:
    settings = {"embedder": f"{__name__}:wrong:{name}"}
    async with await AsyncMemoryStore.open(url, settings=settings) as store:
        alice = store.user("alice")
        await alice.conversation("c").add_many([{"role": "user", "content": text} for text in SAID])
        report = await store.derive()
        assert any(f"The embedder '{name}' must return finite numbers of the shape" in why for why in report.failed)
        if name != "lengths":
            with pytest.raises(ProviderError, match=r"must return finite numbers of the shape \(256,\)"):
                await alice.recall("Clara")


async def test_what_is_pasted_is_found_apart_from_what_is_said(store: AsyncMemoryStore) -> None:
    code = "```python\n" + "\n".join(f"rows.append(fetch(page={n}))" for n in range(8)) + "\n```"
    said = ["Why does my crawler stop after the first page?", "It worked on Tuesday."]
    trip = store.user("alice").conversation("crawler")
    message = await trip.add("user", f"{said[0]}\n{code}\n{said[1]}")
    answer = await trip.add("assistant", f"Like this it goes on:\n{code}\nTry it.")
    assert (await store.derive()).chunks == 4, "an assistant's code is its answer"
    alice = trip.user
    for query in (said[0], "fetch rows append", "Did it work on Tuesday?"):
        hits = await alice.recall(query, tiers=["messages"], roles=["user"])
        assert [hit.sources for hit in hits] == [(message.id,)], "a message once"
        assert hits[0].text in (*said, code)
        assert (message.text or "")[hits[0].start :].startswith(hits[0].text)
    assert (await alice.recall(said[0], tiers=["messages"], limit=1))[0].text == said[0]
    assert [hit.text for hit in await alice.recall("x", roles=["assistant"])] == [answer.text]


async def test_no_sentence_of_a_long_message_is_invisible(store: AsyncMemoryStore) -> None:
    filler = " ".join(
        f"The {n}th paragraph is about nothing in particular and goes on for a while." for n in range(300)
    )
    text = f"{filler} The spare key hangs behind the blue door. {filler}"
    trip = store.user("alice").conversation("lisbon")
    message = await trip.add("assistant", text)
    report = await store.derive()
    assert report.chunks > 20
    hit = (await trip.user.recall("Where does the spare key hang?", tiers=["messages"], limit=1))[0]
    assert "The spare key hangs behind the blue door." in hit.text
    assert hit.text in text
    assert len(hit.text) < len(text) / 10
    assert hit.sources == (message.id,)
