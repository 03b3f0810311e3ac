"""Sentences of newcomers in a store: what changes one thing leaves the others, and order leaves no trace."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memstore.client.store import AsyncMemoryStore
from memstore.derive.facts import changes, reader_extractor

START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)


async def say(store: AsyncMemoryStore, text: str, day: int = 0, place: str = "one", user: str = "alice") -> None:
    conversation = store.user(user).conversation(place)
    await conversation.add("user", text, occurred_at=START + timedelta(days=day))
    await store.derive()


async def active(store: AsyncMemoryStore) -> set[str]:
    return {fact.text for fact in await store.user("alice").facts()}


@pytest.mark.parametrize(
    ("said", "left"),
    [
        (
            ["I live in Hamburg with my husband and work as a nurse.", "I moved to Porto."],
            {"The user works as a nurse.", "The user lives in Porto."},
        ),
        (
            ["I live in Oslo.", "I moved to Riga until June."],
            {"The user lives in Oslo.", "The user moved to Riga until June."},
        ),
        (["I live in Berlin.", "I live in Germany."], {"The user lives in Berlin.", "The user lives in Germany."}),
        (["I live in Germany.", "I live in Berlin."], {"The user lives in Berlin."}),
        (["I live in Berlin.", "I live in Germany.", "I moved to Spain."], {"The user lives in Spain."}),
        (
            ["I'm allergic to peanuts.", "The doctor says I'm not allergic to peanuts."],
            {"The user is not allergic to peanuts."},
        ),
        (
            ["The doctor says I'm allergic to peanuts.", "My sister is not allergic to peanuts."],
            {"The user is allergic to peanuts.", "The user's sister is not allergic to peanuts."},
        ),
        (
            ["Ich bin gegen Nüsse allergisch.", "Ich bin nicht mehr gegen Nüsse allergisch."],
            {"Der Nutzer ist nicht allergisch gegen Nüsse."},
        ),
        (
            ["I'm married.", "My sister got divorced.", "My parents divorced when I was ten."],
            {
                "The user is married.",
                "The user's sister is divorced.",
                'The user: "My parents divorced when I was ten."',
            },
        ),
        (
            ["My daughter Lily is 9.", "Lily is 10.", "Lily is 11."],
            {"Lily is 11 years old.", "The user has a daughter Lily."},
        ),
        (["Meine Tochter Lily ist 9.", "Lily ist 10."], {"Lily ist 10 Jahre alt."}),
    ],
)
async def test_what_changes_one_thing_leaves_the_others(
    store: AsyncMemoryStore, said: list[str], left: set[str]
) -> None:
    for day, text in enumerate(said):
        await say(store, text, day, place=text)
    assert await active(store) == left


async def test_a_disagreement_is_logged_the_same_whichever_is_derived_first(store: AsyncMemoryStore) -> None:
    said = ("I live in Leeds.", "I live in Porto.")
    for user, order in (("alice", said), ("bob", said[::-1])):
        for place, text in enumerate(order):
            await say(store, text, place=f"place {place}", user=user)
        found = await store.user(user).facts()
        steps = [step for fact in found for step in await store.user(user).fact_history(fact)]
        (step,) = [step for step in steps if step.action == "conflicted"]
        assert (step.fact_id, step.other_id) == (max(fact.id for fact in found), min(fact.id for fact in found))


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
async def test_what_is_said_last_of_an_allergy_holds_whichever_is_derived_first(
    store: AsyncMemoryStore, order: tuple[int, ...]
) -> None:
    said = [
        ("The doctor says I'm allergic to peanuts.", 0), ("I'm allergic to cats.", 1),
        ("I'm allergic to sesame, not peanuts.", 5),
    ]  # fmt: skip
    for place in order:
        await say(store, *said[place], place=f"place {place}")
    assert await active(store) == {
        "The user is allergic to cats.", "The user is allergic to sesame.", "The user is not allergic to peanuts.",
    }  # fmt: skip
    alice = store.user("alice")
    steps = [step.action for fact in await alice.facts(state="all") for step in await alice.fact_history(fact)]
    assert "conflicted" not in steps


@pytest.mark.parametrize("days", [(0, 5), (5, 0)])
async def test_a_divorce_a_death_and_a_birthday_are_of_who_was_told_of(
    store: AsyncMemoryStore, days: tuple[int, int]
) -> None:
    pairs = [
        ("My husband Paul is a chef.", "Paul and I got divorced."),
        ("We have a cat called Momo.", "Momo died."),
        ("My daughter Lily is 9.", "Lily is 10, not 9."),
        ("I'm engaged to Leo.", "We called off the wedding."),
    ]
    earlier, later = zip(*pairs, strict=True)
    for day in days:  # what is said first is derived first, or last
        for place, text in enumerate(later if day else earlier):
            await say(store, text, day, place=f"{day} {place}")
    assert await active(store) == {
        "The user is divorced.",
        "The user is no longer with Paul.",
        "Momo has died.",
        "Lily is 10, not 9.",
        "The user has a daughter Lily.",
        "The user is not engaged.",
        "The user is with Leo.",
        "The user's wedding is off.",
    }


async def test_what_protects_somebody_is_no_guess(store: AsyncMemoryStore) -> None:
    for day, text in enumerate(
        [
            "I keep bees in the garden.",
            "@bob: I'm allergic to nuts.",
            "I had the test, and I am allergic to shellfish.",
        ]
    ):
        await say(store, text, day, place=text)
    allergies = {fact.attribute for fact in await store.user("alice").facts(type="constraint") if fact.attribute}
    assert allergies == {"allergy/nut", "allergy/shellfish"}


async def test_what_another_says_of_a_cat_of_the_name_ends_nothing(store: AsyncMemoryStore) -> None:
    await say(store, "We have a cat called Momo.")
    conversation = store.user("alice").conversation("two")
    await conversation.add("user", "Momo died.", name="Bob", occurred_at=START + timedelta(days=5))
    await store.derive()
    assert "The user's cat is called Momo." in await active(store)


async def test_many_facts_are_stored_in_steps(store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    said = [f"I painted fence number {n}. I live in {('Leeds', 'Porto', 'Rome')[n % 3]}." for n in range(100)]
    states = {}
    monkeypatch.setattr(changes, "NEAR", 2.0)  # all fences are as near to each other: ids would decide, and differ
    for user, most in (("alice", reader_extractor.MOST_FACTS), ("bob", 10_000)):
        monkeypatch.setattr(reader_extractor, "MOST_FACTS", most)
        scope = store.user(user)
        await scope.conversation("c").add_many(
            {"role": "user", "content": text, "occurred_at": START + timedelta(hours=n)} for n, text in enumerate(said)
        )
        await store.derive()
        steps = await scope.events(types=["facts_extracted"])
        assert (len(steps) > 1) == (user == "alice")
        known = await scope.facts(state="all")
        states[user] = sorted((fact.text, fact.state, str(fact.valid_to), len(fact.sources)) for fact in known)
    assert states["alice"] == states["bob"]


async def test_what_another_assistant_remembered_becomes_facts_with_their_source(
    store: AsyncMemoryStore, tmp_path: Path
) -> None:
    saved = (
        "User is allergic to nuts.",
        "User's name is Bea.",
        "The user lives in Porto.",
        "Prefers metric units.",
        "User has moved to Leeds.",
    )
    instructions = {"content_type": "user_editable_context", "user_profile": None, "user_instructions": "Be brief."}
    contents = [{"content_type": "text", "parts": [text]} for text in saved]
    messages = [
        {"author": {"role": "assistant"}, "recipient": "bio", "create_time": number, "content": content}
        for number, content in enumerate(contents, 1)
    ] + [{"author": {"role": "user"}, "create_time": 9, "content": instructions}]
    mapping = {f"m{n}": {"parent": f"m{n - 1}" if n else None, "message": one} for n, one in enumerate(messages)}
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([{"conversation_id": "c", "mapping": mapping, "current_node": "m5"}]))
    assert [(await store.import_file(path, user="alice")).new for _ in range(2)] == [6, 0]
    await store.derive()

    user = store.user("alice")
    facts = {fact.text: fact for fact in await user.facts()}
    assert facts.keys() == {
        "The user is allergic to nuts.",
        "The user's name is Bea.",
        'The user: "Prefers metric units."',
        "The user lives in Leeds.",
        'The user: "Be brief."',
    }
    assert (facts['The user: "Be brief."'].type, facts["The user is allergic to nuts."].type) == (
        "procedure",
        "constraint",
    )
    (message,) = [one for one in await user.conversation("chatgpt-memories").messages() if "nuts" in str(one.content)]
    assert facts["The user is allergic to nuts."].sources == [message.id]

    await user.conversation("chat").add("user", "I'm allergic to nuts.")
    await store.derive()
    assert len(await user.facts()) == 5
    await user.erase()
    assert await user.facts() == []


@pytest.mark.parametrize("back", [timedelta(0), timedelta(milliseconds=80), timedelta(days=2)])
@pytest.mark.parametrize("in_steps", [True, False])
async def test_within_a_conversation_what_was_said_last_holds_whatever_its_clock_says(
    store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch, back: timedelta, in_steps: bool
) -> None:
    user = store.user("alice")
    said = ["I live in Porto.", "I live in Leeds now.", "My bike is blue.", "I live in Bonn now."]
    for number, text in enumerate(said):
        await user.conversation("c").add("user", text, occurred_at=START - number * back)
        if in_steps:
            await store.derive()
    await store.derive()
    states = {fact.text: fact.state for fact in await user.facts(state=None) if fact.attribute == "residence"}
    assert states == {
        "The user lives in Porto.": "superseded",
        "The user lives in Leeds.": "superseded",
        "The user lives in Bonn.": "active",
    }
    monkeypatch.setattr(reader_extractor, "RECIPE", "rules/test")
    await store.derive(redo="facts")
    assert [fact.text for fact in await user.facts() if fact.attribute == "residence"] == ["The user lives in Bonn."]

    await user.conversation("other").add("user", "I live in Riga now.", occurred_at=START - timedelta(days=1))
    await store.derive()
    assert [fact.text for fact in await user.facts() if fact.attribute == "residence"] == ["The user lives in Bonn."]
