"""Sentences of newcomers in a store: what changes one thing leaves the others, and order leaves no trace."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memstore.client.store import AsyncMemoryStore
from memstore.derive.facts import reader_extractor

START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)
RELATIVES = ("sister", "brother", "mother", "father", "aunt", "uncle", "cousin", "nephew", "niece")


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
            ["I play the cello.", "I live in Hamburg.", "I live in Porto now."],
            {"The user plays the cello.", "The user lives in Porto now."},
        ),
        (
            ["I live in Oslo.", "I'm spending June in Riga."],
            {"The user lives in Oslo.", "The user is spending June in Riga."},
        ),
        (["I live in Berlin.", "I live in Germany.", "I live in Spain now."], {"The user lives in Spain now."}),
        (
            ["I'm allergic to peanuts.", "The doctor says I'm not allergic to peanuts."],
            {'The user: "The doctor says I\'m not allergic to peanuts."'},
        ),
        (
            ["I'm allergic to peanuts.", "My sister is not allergic to peanuts."],
            {"The user is allergic to peanuts.", "The user's sister is not allergic to peanuts."},
        ),
        (
            ["Ich bin allergisch gegen Nüsse.", "Ich bin nicht mehr allergisch gegen Nüsse."],
            {'The user: "Ich bin nicht mehr allergisch gegen Nüsse."'},
        ),
        (
            ["I'm married.", "My sister got divorced.", "My parents divorced when I was ten."],
            {
                "The user is married.",
                "The user's sister got divorced.",
                'The user: "My parents divorced when I was ten."',
            },
        ),
        (["My daughter Lily is 9.", "My daughter Lily is 10 now."], {"The user's daughter Lily is 10 now."}),
        (["I live in Cork.", "I no longer live in Cork."], {'The user: "I no longer live in Cork."'}),
        (["I live in York.", "I live in New York now."], {"The user lives in New York now."}),
        (
            ["I live in Cork with Anna.", "Anna lives in Dublin now."],
            {"The user lives in Cork with Anna.", "Anna lives in Dublin now."},
        ),
        (
            ["Ibuprofen gives me ulcers.", "I take ibuprofen daily now."],
            {'The user: "Ibuprofen gives me ulcers."', "The user takes ibuprofen daily now."},
        ),
        (
            ["Ich trinke jeden Morgen Kaffee.", "Kaffee trink ich nicht mehr"],
            {'The user: "Kaffee trink ich nicht mehr"'},
        ),
        (
            ["I have a dog called Rex.", "My dog Rex is a beagle."],
            {"The user has a dog called Rex.", "The user's dog Rex is a beagle."},
        ),
        (
            ["I live in Leeds.", "I'm moving to Cork in June."],
            {"The user lives in Leeds.", "The user is moving to Cork in June."},
        ),
    ],
)
async def test_what_changes_one_thing_leaves_the_others(
    store: AsyncMemoryStore, said: list[str], left: set[str]
) -> None:
    for day, text in enumerate(said):
        await say(store, text, day, place=text)
    assert await active(store) == left


@pytest.mark.parametrize(
    "said",
    [("I'm allergic to peanuts.", "I'm not allergic to peanuts."), ("My locker is 12.", "My locker is 14.")],
)
async def test_a_disagreement_is_logged_the_same_whichever_is_derived_first(
    store: AsyncMemoryStore, said: tuple[str, str]
) -> None:
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
        ("I'm allergic to peanuts.", 0), ("I'm allergic to cats.", 1), ("I'm not allergic to peanuts.", 5),
    ]  # fmt: skip
    for place in order:
        await say(store, *said[place], place=f"place {place}")
    assert await active(store) == {"The user is allergic to cats.", "The user is not allergic to peanuts."}
    alice = store.user("alice")
    steps = [step.action for fact in await alice.facts(state="all") for step in await alice.fact_history(fact)]
    assert "conflicted" not in steps


@pytest.mark.parametrize("days", [(0, 5), (5, 0)])
async def test_what_became_outdated_is_of_who_was_told_of_whichever_is_derived_first(
    store: AsyncMemoryStore, days: tuple[int, int]
) -> None:
    pairs = [
        ("I'm a nurse.", "I'm a plumber now."),
        ("We have a cat called Momo.", "Our cat Momo died."),
        ("My daughter Lily is 9.", "My daughter Lily is 10 now."),
        ("I have a gym membership.", "I cancelled my gym membership."),
    ]
    earlier, later = zip(*pairs, strict=True)
    for day in days:  # what is said first is derived first, or last
        for place, text in enumerate(later if day else earlier):
            await say(store, text, day, place=f"{day} {place}")
    assert await active(store) == {
        "The user is a plumber now.",
        "The user's cat Momo died.",
        "The user's daughter Lily is 10 now.",
        'The user: "I cancelled my gym membership."',
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
    await conversation.add("user", "Our cat Momo died.", name="Bob", occurred_at=START + timedelta(days=5))
    await store.derive()
    assert await active(store) == {"The user has a cat called Momo.", "Bob's cat Momo died."}


async def test_many_facts_are_stored_in_steps(store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    said = [f"I painted fence number {n}." for n in range(100)]
    said[9::10] = [f"My manager is {('Anna', 'Bob', 'Carol')[n % 3]} now." for n in range(10)]
    states = {}
    for user, most in (("alice", reader_extractor.MAX_BATCH_FACTS), ("bob", 10_000)):
        monkeypatch.setattr(reader_extractor, "MAX_BATCH_FACTS", most)
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
    managers = [(text, state) for text, state, *_ in states["alice"] if "manager" in text]
    assert managers == [
        ("The user's manager is Anna now.", "active"),
        ("The user's manager is Bob now.", "superseded"),
        ("The user's manager is Carol now.", "superseded"),
    ]


async def test_what_another_assistant_remembered_becomes_facts_with_their_source(
    store: AsyncMemoryStore, tmp_path: Path
) -> None:
    saved = (
        "User is allergic to nuts.",
        "User's cat is called Momo.",
        "The user lives in Porto.",
        "Prefers metric units.",
        "User lives in Leeds now.",
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
        "The user's cat is called Momo.",
        'The user: "Prefers metric units."',
        "The user lives in Leeds now.",
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
    said = ["My manager is Anna.", "My manager is Bob now.", "I play the cello.", "My manager is Carol now."]
    for number, text in enumerate(said):
        await user.conversation("c").add("user", text, occurred_at=START - number * back)
        if in_steps:
            await store.derive()
    await store.derive()
    states = {fact.text: fact.state for fact in await user.facts(state=None)}
    assert states == {
        "The user's manager is Anna.": "superseded",
        "The user's manager is Bob now.": "superseded",
        "The user plays the cello.": "active",
        "The user's manager is Carol now.": "active",
    }
    left = {"The user plays the cello.", "The user's manager is Carol now."}
    monkeypatch.setattr(reader_extractor, "RECIPE", "reader/test")
    assert (await store.derive(redo="facts")).redone == 1
    assert await active(store) == left

    text = "My manager is Dora now."
    await user.conversation("other").add("user", text, occurred_at=START - timedelta(days=1))
    await store.derive()
    assert await active(store) == left


async def test_a_home_is_compared_with_the_last_one_however_many_facts_are_nearer(store: AsyncMemoryStore) -> None:
    user = store.user("alice")
    said = ["I live in Porto.", *(f"My {who} lives in Cork now." for who in RELATIVES), "I live in Cork now."]
    for number, text in enumerate(said):
        await user.conversation("c").add("user", text, occurred_at=START + number * timedelta(days=1))
    await store.derive()
    states = {fact.text: fact.state for fact in await user.facts(state=None)}
    assert (states["The user lives in Porto."], states["The user lives in Cork now."]) == ("superseded", "active")
