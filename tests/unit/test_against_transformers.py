"""Our prompts and counts against those of transformers, which is where chat templates come from."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from memstore.providers.huggingface import load
from tests.helpers.tokenizers import CHATML, CORPUS, LLAMA_3, QWEN, SPECIAL, byte_level, sentencepiece, write

pytestmark = pytest.mark.torch  # with it comes transformers

TOOL = {
    "type": "function",
    "function": {
        "name": "find",
        "description": "Finds <what> & 'when', ü",
        "parameters": {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]},
    },
}


def chats(seed: int, number: int) -> list[list[dict[str, Any]]]:
    drawn = random.Random(seed)
    words = [*" ".join(CORPUS[:5]).split(" "), *SPECIAL, "\n", "  "]

    def message() -> dict[str, Any]:
        text = " ".join(drawn.choices(words, k=drawn.randrange(30)))
        return {"role": drawn.choice(["system", "user", "assistant"]), "content": text}

    return [[message() for _ in range(drawn.randrange(1, 8))] for _ in range(number)]


@pytest.mark.parametrize("template", [LLAMA_3, CHATML, QWEN], ids=["llama", "chatml", "qwen"])
@pytest.mark.parametrize("kind", ["byte-level", "SentencePiece"])
def test_prompts_and_counts_are_those_of_transformers(template: str, kind: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = byte_level() if kind == "byte-level" else sentencepiece()
    folder = write(tmp_path, tokenizer, template, bos_token="<|begin_of_text|>" if kind == "byte-level" else "<s>")
    own = load(str(folder))
    theirs = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), bos_token="<|begin_of_text|>" if kind == "byte-level" else "<s>"
    )
    theirs.chat_template = template
    for number, chat in enumerate(chats(3, 150)):
        tools = [TOOL] if number % 3 == 0 else []
        given = {"tools": tools or None, "add_generation_prompt": True}
        prompt = theirs.apply_chat_template(chat, tokenize=False, **given)
        assert own.render(chat, tools) == (prompt, True)
        counted = own.count_messages(chat, tools)
        assert (counted, counted.kind) == (len(theirs.encode(prompt, add_special_tokens=False)), "exact")
