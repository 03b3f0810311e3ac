"""A memory that keeps silent where nothing fits, and speaks where something does."""

import pytest

import memstore
from memstore.settings import ONNX_MINILM
from tests.helpers.silence import add_memories, ask_hook

SETTINGS = {"embedder": ONNX_MINILM}


@pytest.mark.parametrize("size", [4, 44])
async def test_prompts_that_need_a_memory_get_it_and_others_nothing(url: str, size: int) -> None:
    async with await memstore.open_async(url, settings=SETTINGS) as store:
        stored = await add_memories(store, "anna", size)
        await store.derive()
        silence = await ask_hook(store, "anna", stored)
    print(silence, silence.missed, silence.told, sep="\n")
    assert len(silence.told) <= 0.1 * silence.nothing
    assert len(silence.missed) <= 0.05 * silence.needed
