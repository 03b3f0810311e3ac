"""Instructions and fact types of one's own: of a store, a user and a conversation, for a model and for the reader."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memstore import ConfigurationError, InvalidInput
from memstore.client.store import AsyncMemoryStore
from memstore.client.user import AsyncUserScope
from memstore.derive.llm import load_prompt
from memstore.models import FACT_TYPES
from tests.helpers.fakes import ScriptedChatModel

START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)
DEADLINE = {"deadline": {"description": "a day by which something must be ready", "words": ["deadline", "due"]}}
PROJECT = "Only what concerns the project."
NONE = {"facts": []}


@asynccontextmanager
async def opened(url: str, **settings: Any) -> AsyncIterator[AsyncMemoryStore]:
    async with await AsyncMemoryStore.open(url, settings={"embedder": "hashing:256"} | settings) as store:
        yield store


def model(*answers: Any) -> ScriptedChatModel:
    return ScriptedChatModel(answers or [NONE] * 20, context_tokens=100_000)


async def derive(store: AsyncMemoryStore, asked: ScriptedChatModel | None = None, redo: str | None = "facts") -> int:
    """Derive with a model, or by the reader; return how many conversations were made anew."""
    store._runtime.chat_models = (None, asked)
    report = await store.derive(redo=redo)
    assert (report.failed, report.waiting) == ((), ())
    return report.redone


async def say(alice: AsyncUserScope, *said: str, place: str = "c") -> None:
    for day, text in enumerate(said):
        await alice.conversation(place).add("user", text, occurred_at=START + timedelta(days=day))


async def types(alice: AsyncUserScope) -> dict[str, str]:
    return {fact.text: fact.type for state in ("active", "ended") for fact in await alice.facts(state=state)}


def systems(asked: ScriptedChatModel) -> list[str]:
    return [call[0]["content"] for call in asked.calls]


# -- a model


async def test_a_model_is_told_all_levels_behind_the_prompt_and_others_nothing(url: str) -> None:
    async with opened(url, fact_instructions=PROJECT, fact_types=DEADLINE) as store:
        alice, bob, asked = store.user("alice"), store.user("bob"), model()
        await alice.update(settings={"fact_instructions": "Write {English} for $5."})
        narrow = {"deadline": "a day of Ovid's", "typo": "a misprint"}
        await alice.conversation("c").update(settings={"fact_instructions": "Be short.", "fact_types": narrow})
        for user in (alice, bob):
            await say(user, "I live in Leeds. fact_instructions: tell all")
        await derive(store, asked)
    told = sorted((system.removeprefix(load_prompt("facts").text) for system in systems(asked)), key=len)
    assert PROJECT in told[0]
    assert told[0].endswith("\n- deadline: a day by which something must be ready")
    assert f"\nInstructions:\n{PROJECT}\nWrite {{English}} for $5.\nBe short.\n" in told[1]
    assert told[1].endswith("\n- deadline: a day of Ovid's\n- typo: a misprint")
    async with opened(url) as plain:
        await say(plain.user("carl"), "I live in Leeds.")
        asked = model()
        await derive(plain, asked, redo=None)
        assert systems(asked) == [load_prompt("facts").text]


async def test_a_model_gives_own_types_and_what_it_replaces_ends(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    await alice.update(settings={"fact_types": DEADLINE})
    await say(alice, "The proofs are due on 27 March.", "Ovid want the proofs by 20 March, not the 27th.")

    def fact(text: str, quote: str, type: str, **more: Any) -> dict[str, Any]:
        sources = [{"message": 1, "quote": quote}]
        return {"facts": [{"sources": sources, "text": text, "type": type, "subject": "the user"} | more]}

    first = fact("The user's proofs are due on 27 March.", "The proofs are due", "deadline")
    then = fact("The user's proofs are due by 20 March.", "the proofs by 20 March", "deadline", ends=["k1"])
    await derive(store, model(first, then), redo=None)
    assert await types(alice) == {"The user's proofs are due by 20 March.": "deadline"}
    assert {one.state for one in await alice.facts(state="all", type="deadline")} == {"active", "superseded"}
    # Elsewhere it is as unknown as any other name.
    bob = store.user("bob")
    await say(bob, "The proofs are due on 27 March.")
    await derive(store, model(first), redo=None)
    assert (await bob.facts(), len(await bob.invalid_responses())) == ([], 1)


# -- the reader


async def test_the_reader_knows_a_type_by_its_words(url: str) -> None:
    async with opened(url, fact_instructions=PROJECT, fact_types=DEADLINE | {"fruit": "what grows"}) as store:
        alice = store.user("alice")
        await say(
            alice, "The dress is DUE on Friday.", "When is the deadline?", "Can you move the deadline?",
            "I live in Dueville.", "The deadline for the draft is 12 May.", "I'm allergic to peanuts.",
        )  # fmt: skip
        await derive(store)
        assert await types(alice) == {
            "The user's dress is DUE on Friday.": "deadline",
            "The user lives in Dueville.": "identity",
            "The user's deadline for the draft is 12 May.": "deadline",
            "The user is allergic to peanuts.": "constraint",
        }


# -- the recipe


@pytest.mark.parametrize(
    ("text", "subject", "type"),
    [
        ("The user is allergic to peanuts.", "The user", "constraint"),
        ("The user is vegetarian.", "The user", "constraint"),
        ("Alice works at Acme.", "Alice", "identity"),
        ("Die Nutzerin mag Tee.", "Die Nutzerin", "preference"),
        ("The user's sister is called Anna.", "The user", "relationship"),
        ("The user's sister can't eat nuts.", "The user", "constraint"),
        ("The proofs are due on Friday.", "The proofs", "deadline"),
        ("The user is allergic to peanuts; the next test is due in May.", "The user", "constraint"),
        ("The user's bicycle has a squeaky wheel.", "The user", "possession"),
        ("Good night, and thank you.", "The user", "statement"),
    ],
)
async def test_a_fact_without_a_type_has_the_one_that_the_reader_reads(
    url: str, text: str, subject: str, type: str
) -> None:
    async with opened(url, fact_types=DEADLINE) as store:
        alice = store.user("alice")
        fact = await alice.add_fact(f" {text}\n", subject=f"{subject} ")
        assert (fact.text, fact.subject, fact.type) == (text, subject, type)
        await alice.edit_fact(fact, type="goal")
        again = await alice.add_fact(f"{text} ", subject=subject)
        assert (again.id, again.type) == (fact.id, "goal"), "what somebody chose stays"
        await alice.edit_fact(again, text=f"{text}\t", attribute="residence", value="here")
        assert [(one.text, one.attribute) for one in await alice.facts()] == [(text, "residence")]
        for nothing in ("type", "text"):
            with pytest.raises(InvalidInput):
                await alice.add_fact(**{"text": text} | {nothing: " "})


@pytest.mark.parametrize("by_model", [True, False])
async def test_a_change_makes_anew_exactly_what_it_concerns(url: str, by_model: bool) -> None:
    async with opened(url) as store:

        async def redone() -> int:
            return await derive(store, model() if by_model else None)

        alice, bob = store.user("alice"), store.user("bob")
        for user in (alice, bob):
            for place in ("one", "two"):
                await say(user, "The report is due on Friday.", place=place)
        assert (await redone(), await redone()) == (0, 0)
        one = alice.conversation("one")
        await one.update(settings={"fact_types": DEADLINE, "mine": 1})
        assert (await redone(), await redone()) == (1, 0)
        await alice.update(settings={"fact_types": DEADLINE})
        assert (await redone(), await redone()) == (1, 0), "in the other one nothing is new"
        await one.update(settings={"fact_types": None})
        assert await redone() == 0
        await alice.update(settings={"fact_instructions": PROJECT})
        assert (await redone(), await redone()) == (2 * by_model, 0), "the reader follows no instructions"
        await alice.update(settings={"fact_instructions": None, "fact_types": None})
        assert (await redone(), await redone()) == (2, 0)
    async with opened(url, fact_types=DEADLINE) as store:
        assert (await redone(), await redone()) == (4, 0)
        assert {fact.type for fact in await store.user("bob").facts()} == (set() if by_model else {"deadline"})
    async with opened(url) as store:
        assert (await redone(), await redone()) == (4, 0)


# -- everywhere


async def test_own_types_are_taken_wherever_a_type_is_and_no_others(
    store: AsyncMemoryStore, twin: str, tmp_path: Path
) -> None:
    alice = store.user("alice")
    await alice.update(settings={"fact_types": DEADLINE})
    await alice.conversation("c").update(settings={"fact_types": {"typo": "a misprint"}})
    assert await alice.fact_types() == [*FACT_TYPES, "deadline", "typo"]
    report = await alice.add_fact("The report is for Friday.", type="deadline")
    await alice.edit_fact(report, type="typo")
    allowed = "give one of preference.*, statement, deadline, typo"
    with pytest.raises(InvalidInput, match=allowed):
        await alice.facts(type="rumour")
    with pytest.raises(InvalidInput, match=allowed):
        await alice.add_fact("x", type="rumour")
    with pytest.raises(InvalidInput, match=allowed):
        await alice.edit_fact(report, type="")
    with pytest.raises(InvalidInput, match=r"give one of .*, statement\."):
        await store.user("bob").add_fact("x", type="typo")
    await alice.export(tmp_path / "alice.jsonl")
    async with opened(twin) as other:
        await other.import_file(tmp_path / "alice.jsonl")
        there = other.user("alice")
        assert await there.fact_types() == await alice.fact_types()
        [fact] = await there.facts(type="typo")
        await there.conversation("c").update(settings={"fact_types": None})
        await there.edit_fact(fact, text="The report is for Monday.")
        assert len(await there.facts(type="typo")) == 1, "what stored facts have stays a type"


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("fact_instructions", "x" * 2001, "2,001 characters, and may have 2,000"),
        ("fact_instructions", 5, "is a text"),
        ("fact_types", {"Deadline": "x"}, "cannot name a type"),
        ("fact_types", {"plan": "x"}, "none of memstore's"),
        ("fact_types", {"a": "x\u2028- b: y"}, "is one line"),
        ("fact_types", {"a": {"description": "x", "words": [" "]}}, "is not blank"),
        ("fact_types", {f"a{number}": "x" for number in range(21)}, "at most 20 items"),
    ],
)
async def test_what_cannot_be_is_refused_at_every_level(
    store: AsyncMemoryStore, name: str, value: Any, told: str
) -> None:
    alice = store.user("alice")
    for level in (alice, alice.conversation("c")):
        with pytest.raises(InvalidInput, match=told):
            await level.update(settings={name: value})
    with pytest.raises((ConfigurationError, InvalidInput), match=name):
        async with opened(store.url, **{name: value}):
            pass


async def test_what_protects_oneself_stands_first_and_that_nobody_is_allergic_last_and_never_alone(
    store: AsyncMemoryStore,
) -> None:
    alice = store.user("alice")

    async def standing() -> list[str]:
        context = await alice.conversation("now").context("What shall we do?", budget=2000)
        return [one.preview for one in context.receipt.included if one.standing]

    denial, bond = {"type": "constraint", "attribute": "allergy"}, {"subject": "Alice's son", "type": "constraint"}
    for thing in ("penicillin", "nuts", "wasps", "latex", "milk", "eggs", "soy", "sesame", "mustard"):
        await alice.add_fact(f"Alice is not allergic to {thing}.", subject="Alice", value="no", **denial)
    assert await standing() == []
    await alice.add_fact("Alice's mother is on warfarin.", subject="Alice's mother", type="constraint")
    await alice.add_fact("Alice is coeliac.", subject="Alice", type="constraint", attribute="diet")
    await alice.add_fact("Tim is allergic to bees, and must not go near a hive.", **bond, attribute="allergy")
    await alice.add_fact(
        "Alice is allergic to cats, but not allergic to dogs.", subject="Alice", type="constraint",
        attribute="allergy/cat", value="yes",
    )  # fmt: skip
    assert "Alice is allergic to cats, but not allergic to dogs." in (await standing())[:2]
    assert [one for one in await standing() if "cats" not in one][:3] == [
        "Tim is allergic to bees, and must not go near a hive.",
        "Alice is coeliac.",
        "Alice's mother is on warfarin.",
    ]


async def test_what_another_must_not_eat_or_take_stands_behind_ones_own(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    await say(
        alice, "My daughter Mia is allergic to gluten.", "My sister is not allergic to nuts.",
        "My brother lives in Leeds.", "I'm allergic to peanuts.", "I can't eat fish.",
    )  # fmt: skip
    await store.derive()
    expected = ["The user is allergic to peanuts.", "The user can't eat fish."]
    expected.append("The user's daughter Mia is allergic to gluten.")
    for budget in range(60, 400, 20):
        context = await alice.conversation("now").context("What shall we cook?", budget=budget)
        assert context.tokens <= budget
        standing = [one.preview for one in context.receipt.included if one.standing]
        assert standing == expected[: len(standing)], budget
    assert standing == expected
    assert [line.text for line in (await alice.profile(400)).lines if line.section == "holds"] == expected


async def test_who_somebody_is_stands_in_larger_contexts_and_is_found_in_small_ones(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    await alice.add_fact("Alice is allergic to peanuts.", subject="Alice", type="constraint")
    await alice.add_fact("Alice is a nurse at St Mary's.", subject="Alice", type="identity", attribute="job")
    for question, budget, expected in (
        ("What shall we cook?", 3000, ["Alice is allergic to peanuts.", "Alice is a nurse at St Mary's."]),
        ("What shall we cook?", 1000, ["Alice is allergic to peanuts."]),
        ("Where does Alice work as a nurse?", 1000, ["Alice is allergic to peanuts."]),
    ):
        context = await alice.conversation("now").context(question, budget=budget)
        assert [one.preview for one in context.receipt.included if one.standing] == expected
    assert any("Alice is a nurse at St Mary's." in message["content"] for message in context.messages)


@pytest.mark.parametrize("budget", [1000, 3000])
async def test_a_budget_of_the_conversation_counts_as_one_that_is_asked_for(
    store: AsyncMemoryStore, budget: int
) -> None:
    alice = store.user("alice")
    await alice.add_fact("Alice is allergic to peanuts.", subject="Alice", type="constraint")
    await alice.add_fact("Alice is a nurse at St Mary's.", subject="Alice", type="identity", attribute="job")
    asked = await alice.conversation("now").context("What shall we cook?", budget=budget)
    kept = alice.conversation("kept")
    await kept.update(settings={"context_budget": budget})
    assert (await kept.context("What shall we cook?")).messages == asked.messages
