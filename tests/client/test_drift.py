"""How far counts were from what a model's server told: kept by model and counter, and each user's own."""

from __future__ import annotations

import pytest

from memstore import InvalidInput
from memstore.client.store import AsyncMemoryStore


async def test_what_a_server_tells_is_held_against_what_was_counted(store: AsyncMemoryStore) -> None:
    talk = store.user("alice").conversation("lisbon")
    await talk.add("user", "When does the ferry leave?")
    context = await talk.context(budget=500)
    for told in (context.tokens, context.tokens - 2, context.tokens + 1):
        await talk.observed(context, prompt_tokens=told, model="gpt-4o")
    await talk.observed(context, prompt_tokens=2 * context.tokens, model="llama3.2")
    exact, wild = await store.user("alice").drift()
    assert (exact.model, exact.counter, exact.calls) == ("gpt-4o", store.counter.name, 3)
    assert (exact.predicted, exact.observed) == (3 * context.tokens, 3 * context.tokens - 1)
    assert exact.largest_miss == 2
    assert exact.largest_share == pytest.approx(2 / (context.tokens - 2))
    assert (wild.calls, wild.largest_miss, wild.largest_share) == (1, context.tokens, 0.5)
    assert wild.last_seen >= exact.last_seen
    assert await store.user("bob").drift() == []


async def test_nothing_is_kept_of_a_conversation_that_is_not_there(store: AsyncMemoryStore) -> None:
    talk = store.user("alice").conversation("lisbon")
    context = await talk.context("When does the ferry leave?", budget=500)
    await talk.observed(context, prompt_tokens=40, model="gpt-4o")
    assert await store.user("alice").drift() == []


async def test_what_no_server_tells_is_refused(store: AsyncMemoryStore) -> None:
    talk = store.user("alice").conversation("lisbon")
    await talk.add("user", "When does the ferry leave?")
    context = await talk.context(budget=500)
    with pytest.raises(InvalidInput, match="at least one"):
        await talk.observed(context, prompt_tokens=0, model="gpt-4o")
    with pytest.raises(InvalidInput, match="model"):
        await talk.observed(context, prompt_tokens=40, model="")
