"""Recall told in time, by session, and as facts with the messages that they were made from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from memstore.client.store import AsyncMemoryStore
from memstore.models import Hit, HitGroup

START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)
PORTO = "My sister lives in Porto near the river."
# Hours after the start: a silence of exactly four hours ends no session, a longer one does.
SAID = [
    ("trip", 0.0, "user", "I'm allergic to peanuts."),
    ("trip", 0.5, "assistant", "Noted: no peanuts for you."),
    ("trip", 4.5, "user", PORTO),
    ("trip", 8.51, "user", "The train to Porto leaves at nine."),
    ("trip", 9.0, "user", "We painted the garden fence blue."),
    ("home", 1.0, "user", "I'm allergic to peanuts and to cats."),
    ("home", 40.0, "user", "A parrot from Porto came to the garden."),
]
SESSIONS = [  # in the order in which they began
    ("trip", 0.0, 4.5),
    ("home", 1.0, 1.0),
    ("trip", 8.51, 9.0),
    ("home", 40.0, 40.0),
]


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


async def talked(store: AsyncMemoryStore) -> None:
    for name, hours, role, text in SAID:
        speaker = "Alice" if role == "user" else None
        await store.user("alice").conversation(name).add(role, text, name=speaker, tags=[name], occurred_at=at(hours))
    await store.derive()


def spans(groups: list[HitGroup]) -> list[tuple[datetime, datetime]]:
    return [(group.since, group.until) for group in groups]


def texts(hits: tuple[Hit, ...] | list[Hit]) -> list[str]:
    return [hit.text for hit in hits]


async def test_in_time_the_best_hits_are_told_as_they_were_said(store: AsyncMemoryStore) -> None:
    await talked(store)
    alice = store.user("alice")
    best = await alice.recall("Porto", limit=3, tiers=["messages"])
    told = await alice.recall("Porto", limit=3, tiers=["messages"], order="time")
    assert texts(told) == [SAID[2][3], SAID[3][3], SAID[6][3]]
    assert sorted(hit.id for hit in best) == sorted(hit.id for hit in told)


async def test_a_silence_parts_sessions_and_each_says_when_it_was(store: AsyncMemoryStore) -> None:
    await talked(store)
    alice = store.user("alice")
    groups = await alice.recall("Porto", group_by="session", order="time")
    assert spans(groups) == [(at(since), at(until)) for _, since, until in SESSIONS]
    assert [group.conversation_id for group in groups] == [alice.conversation(name).id for name, _, _ in SESSIONS]
    messages = [[hit.text for hit in group.hits if hit.tier == "messages"] for group in groups]
    assert messages == [texts_of(0, 1, 2), texts_of(5), texts_of(3, 4), texts_of(6)]
    assert all(group.fact is None for group in groups)
    peanuts = [[hit.text for hit in group.hits].count("Alice is allergic to peanuts.") for group in groups]
    assert peanuts == [0, 1, 0, 0], "a fact is where it was said last"


def texts_of(*places: int) -> list[str]:
    return [SAID[place][3] for place in places]


async def test_the_limit_is_of_sessions_the_best_first(store: AsyncMemoryStore) -> None:
    await talked(store)
    alice = store.user("alice")
    everything = await alice.recall("the train to Porto", group_by="session")
    assert everything[0].since == at(8.51)
    assert len(everything) == 4
    for group in everything:
        scores = [hit.score for hit in group.hits]
        assert scores == sorted(scores, reverse=True)
        assert group.score == scores[0]
    assert [group.score for group in everything] == sorted((group.score for group in everything), reverse=True)
    for limit in (1, 2, 3):
        assert await alice.recall("the train to Porto", group_by="session", limit=limit) == everything[:limit]


async def test_filters_hold_and_a_session_is_whole_for_all_that(store: AsyncMemoryStore) -> None:
    await talked(store)
    alice = store.user("alice")
    only = {"tiers": ["messages"], "group_by": "session"}
    [group] = await alice.recall("Porto", since=at(4), until=at(8), **only)  # type: ignore[call-overload]
    assert texts(group.hits) == [PORTO]
    assert (group.since, group.until) == (at(0), at(4.5))
    found = await alice.recall("Porto", conversation="home", order="time", **only)  # type: ignore[call-overload]
    assert spans(found) == [(at(1), at(1)), (at(40), at(40))]
    assert await alice.recall("Porto", min_score=99, **only) == []  # type: ignore[call-overload]
    assert await store.user("nobody").recall("Porto", group_by="session") == []


async def test_what_came_later_is_in_no_session_of_the_past(store: AsyncMemoryStore) -> None:
    await talked(store)
    moment = datetime.now(UTC)
    await store.user("alice").conversation("home").add("user", "And a cat, too.", occurred_at=at(41))
    await store.derive()
    alice = store.user("alice")
    then, now = [
        await alice.recall("parrot", group_by="session", limit=1, as_of=as_of, tiers=["messages"])
        for as_of in (moment, None)
    ]
    assert spans(then) == [(at(40), at(40))]
    assert spans(now) == [(at(40), at(41))]


async def test_facts_come_with_the_messages_that_they_were_made_from(store: AsyncMemoryStore) -> None:
    await talked(store)
    alice = store.user("alice")
    groups = await alice.recall("What is Alice allergic to? Peanuts?", group_by="fact")
    assert all(group.fact is not None and group.score == group.fact.score for group in groups)
    assert [group.score for group in groups] == sorted((group.score for group in groups), reverse=True)
    peanuts = next(group for group in groups if group.fact and group.fact.text == "Alice is allergic to peanuts.")
    assert texts(peanuts.hits) == texts_of(0, 5)
    assert (peanuts.since, peanuts.until) == (at(0), at(1))
    assert peanuts.fact is not None
    assert {hit.id for hit in peanuts.hits} == set(peanuts.fact.sources)
    assert all(hit.score >= peanuts.score for hit in peanuts.hits), "each has the score of its best fact"
    assert len(await alice.recall("peanuts", group_by="fact", limit=1)) == 1


async def test_evidence_is_the_whole_message_however_long(store: AsyncMemoryStore) -> None:
    days = " ".join(f"On day {n} the train was late, and nobody knew why." for n in range(80))
    await store.user("alice").conversation("c").add("user", f"{days} I'm allergic to peanuts.", name="Alice")
    await store.derive()
    [group] = await store.user("alice").recall("peanuts", group_by="fact", limit=1)
    assert texts(group.hits) == [f"{days} I'm allergic to peanuts."]
    assert group.hits[0].start == 0


async def test_a_fact_that_was_entered_by_hand_stands_alone(store: AsyncMemoryStore) -> None:
    await talked(store)
    alice = store.user("alice")
    fact = await alice.add_fact("Alice plays the cello.", type="preference", subject="Alice")
    [group] = await alice.recall("Who plays the cello?", group_by="fact", limit=1)
    assert group.fact is not None
    assert (group.fact.id, group.hits, group.since) == (fact.id, (), group.fact.occurred_at)
    [group] = await alice.recall("Who plays the cello?", group_by="session", limit=1)
    assert ([hit.id for hit in group.hits], group.conversation_id) == ([fact.id], None)
    assert len(await alice.recall("Who plays the cello?", group_by="session")) == 5


async def test_a_viewer_is_shown_no_evidence_that_it_does_not_see(store: AsyncMemoryStore) -> None:
    room = store.user("world").conversation("room")
    await room.add("user", "I'm allergic to peanuts. Tell nobody, Carol.", name="alice", metadata={"to": ["carol"]})
    await room.add("user", "I'm allergic to peanuts.", name="alice")
    await store.derive()
    everything = await store.user("world").recall("peanuts", group_by="fact", limit=1)
    hidden = await store.user("world").recall("peanuts", group_by="fact", limit=1, viewer="bob")
    assert len(everything[0].hits) == 2
    assert texts(hidden[0].hits) == ["I'm allergic to peanuts."]


async def test_a_viewer_is_not_told_when_the_session_was_of_which_it_sees_a_part(store: AsyncMemoryStore) -> None:
    room = store.user("world").conversation("room")
    for hours, text in ((0, "@carol The vault is open."), (1, "The garden gate is open."), (2, "@carol It is shut.")):
        await room.add("user", text, occurred_at=at(hours))
    await store.derive()
    for viewer, span in ((None, (at(0), at(2))), ("bob", (at(1), at(1)))):
        groups = await store.user("world").recall("the gate", group_by="session", tiers=["messages"], viewer=viewer)
        assert spans(groups) == [span]
