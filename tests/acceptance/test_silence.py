"""A memory that keeps silent where nothing fits, and speaks where something does."""

import pytest

import memstore
from memstore import InvalidInput, Receipt
from memstore.models import Reason
from memstore.settings import ONNX_MINILM
from tests.helpers.silence import add_memories, ask_hook

SETTINGS = {"embedder": ONNX_MINILM}


# Stores of 4 and 44 messages: how many prompts miss what they need, and how many get something that need nothing, at
# most. The goals are 0.05 and 0.1; docs/reference/measurements.md has the figures.
@pytest.mark.parametrize(("size", "missed", "told"), [(4, 0.07, 0.25), (44, 0.2, 0.3)])
async def test_prompts_that_need_a_memory_get_it_and_others_nothing(
    url: str, size: int, missed: float, told: float
) -> None:
    async with await memstore.open_async(url, settings=SETTINGS) as store:
        memories = await add_memories(store, "anna", size)
        await store.derive()
        silence = await ask_hook(store, "anna", memories)
    print(silence, silence.missed, silence.told, sep="\n")
    assert len(silence.missed) <= missed * silence.needed
    assert len(silence.told) <= told * silence.nothing


async def test_a_context_has_nothing_that_is_less_relevant_than_asked_for(url: str) -> None:
    async with await memstore.open_async(url, settings=SETTINGS) as store:
        alice = store.user("alice")
        said = [
            "I'm allergic to walnuts.",
            "We keep the ferry timetable in Postgres.",
            "The staging server is wiped daily.",
        ]
        await alice.conversation("old").add_many([{"role": "user", "content": text} for text in said])
        await store.derive()
        talk = alice.conversation("new")
        near = await talk.context("Where do we keep the ferry timetable?", budget=1000, min_relevance=0.5)
        far = await talk.context("How long does a haskell compiler take?", budget=1000, min_relevance=0.5)
        nothing = await talk.context("ok, go on", budget=1000, min_relevance=0.5)
        usual = await talk.context("How long does a haskell compiler take?", budget=1000)
        assert "ferry timetable" in str(near.messages) and (near.receipt.relevance or 0) > 0.9
        for context in (far, nothing):
            assert "ferry" not in str(context.messages) and "walnuts" in str(context.messages), "what always holds"
            assert context.receipt.relevance is not None and context.receipt.relevance < 0.5
            left_out = {decision.reason for decision in context.receipt.left_out}
            assert left_out == {Reason.NOT_RELEVANT}
            assert Receipt.from_dict(context.receipt.as_dict()) == context.receipt
        assert nothing.receipt.relevance == 0
        assert "ferry" in str(usual.messages) and usual.receipt.relevance is None
        for wrong in (-0.1, 1.5, "much", True, float("nan")):
            with pytest.raises(InvalidInput, match="min_relevance"):
                await talk.context("Hello?", budget=1000, min_relevance=wrong)  # type: ignore[arg-type]


async def test_relevance_is_that_of_other_scopes_left_out_and_of_a_large_user_too(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await memstore.open_async(url, settings=SETTINGS) as store:
        alice = store.user("alice")
        for scope, text in (
            ("otter", "The otter app keeps its sessions in Redis."),
            ("badger", "Badger has a red logo."),
        ):
            await alice.conversation(scope, scope=scope).add("user", text)
        await store.derive()
        asks, relevance = "Where does the app keep sessions?", dict[tuple[bool, str], float]()
        for large in (False, True):
            monkeypatch.setattr(store._database.cache, "max_chunks", 0 if large else 50_000)
            for scope in ("otter", "badger"):
                talk = alice.conversation("new", scope=scope)
                context = await talk.context(asks, budget=500, scope=[scope, None], min_relevance=0.01)
                relevance[large, scope] = context.receipt.relevance or 0
        for large in (False, True):
            assert relevance[large, "otter"] > relevance[large, "badger"]
        for scope in ("otter", "badger"):
            assert abs(relevance[True, scope] - relevance[False, scope]) < 0.05
