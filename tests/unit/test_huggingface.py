"""Counts by a model's own tokenizer and chat template: what is counted is what a server would send, to the token."""

import json
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tokenizers import AddedToken, Tokenizer, pre_tokenizers

from memstore.errors import InvalidInput
from memstore.providers import load_counter
from memstore.providers.huggingface import ChatTemplate, TokenizerCounter, Vocabulary, load
from tests.helpers.conformance import check_counter
from tests.helpers.tokenizers import (
    CALL,
    CHATML,
    CORPUS,
    DATED,
    GEMMA,
    LLAMA_3,
    QWEN,
    SPECIAL,
    USER,
    byte_level,
    sentencepiece,
    unigram,
    write,
)

SYSTEM: dict[str, Any] = {"role": "system", "content": "Be brief."}
REPLY: dict[str, Any] = {"role": "assistant", "content": "At nine."}
WHAT = {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "find", "description": "Finds <what> & 'when'", "parameters": WHAT},
}


def counter(folder: Path, template: str, tokenizer: Tokenizer | None = None, **config: Any) -> TokenizerCounter:
    return load(str(write(folder, byte_level() if tokenizer is None else tokenizer, template, **config)))


def tokens(text: str) -> int:
    return len(byte_level().encode(text, add_special_tokens=False))


@pytest.mark.parametrize("shape", ["llama", "gemma", "chatml", "qwen", "dated"])
def test_it_conforms(shape: str, tmp_path: Path) -> None:
    templates = {"llama": LLAMA_3, "gemma": GEMMA, "chatml": CHATML, "qwen": QWEN, "dated": DATED}
    check_counter(counter(tmp_path, templates[shape]))


def test_the_prompt_is_that_of_the_template(tmp_path: Path) -> None:
    own = counter(tmp_path, CHATML)
    prompt = (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWhen does the ferry leave?<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert own.render([SYSTEM, USER]) == (prompt, True)
    assert own.count_messages([SYSTEM, USER]) == tokens(prompt)
    assert own.count_messages([SYSTEM, USER]).kind == "exact"


def test_tools_and_their_calls_are_rendered_as_objects(tmp_path: Path) -> None:
    own = counter(tmp_path, QWEN)
    prompt, certain = own.render([USER, CALL, {"role": "tool", "tool_call_id": "1", "content": "At nine."}], [TOOL])
    assert certain
    assert json.dumps(TOOL) in prompt, "no escapes of HTML"
    assert '{"name": "find", "arguments": {"what": "ferry"}}' in prompt
    assert "<tool_response>\nAt nine.\n</tool_response>" in prompt
    assert own.count_messages([USER], [TOOL]) > own.count_messages([USER]) + 20


@pytest.mark.parametrize("adds", [True, False], ids=["tokenizer adds it", "tokenizer does not"])
@pytest.mark.parametrize("template", [LLAMA_3, CHATML], ids=["template has it", "template does not"])
def test_the_token_that_begins_a_prompt_is_counted_once(template: str, adds: bool, tmp_path: Path) -> None:
    own = counter(tmp_path, template, byte_level(bos=adds))
    prompt, _ = own.render([USER])
    assert own.count_messages([USER]) == tokens(prompt) + (adds and template == CHATML)


def test_a_template_without_a_system_role_gets_it_as_the_users(tmp_path: Path) -> None:
    own = counter(tmp_path, GEMMA)
    prompt, certain = own.render([SYSTEM, USER, REPLY, SYSTEM, USER, USER])
    both = "Be brief.\n\nWhen does the ferry leave?"
    assert prompt == (
        f"<|begin_of_text|><start_of_turn>user\n{both}<end_of_turn>\n<start_of_turn>model\nAt nine.<end_of_turn>\n"
        f"<start_of_turn>user\n{both}\n\nWhen does the ferry leave?<end_of_turn>\n<start_of_turn>model\n"
    )
    assert not certain
    assert own.count_messages([SYSTEM, USER]).kind == "estimated"
    assert own.count_messages([USER, REPLY]).kind == "exact"
    assert own.count_messages([REPLY, USER]) > 0, "a talk may begin with the assistant"


def test_a_template_without_tools_gets_calls_and_results_in_words(tmp_path: Path) -> None:
    result = {"role": "tool", "content": "At nine.", "tool_call_id": "1"}
    prompt, certain = counter(tmp_path, GEMMA).render([SYSTEM, USER, CALL, result])
    assert prompt == (
        "<|begin_of_text|><start_of_turn>user\nBe brief.\n\nWhen does the ferry leave?<end_of_turn>\n"
        '<start_of_turn>model\n[calls find {"what":"ferry"}]<end_of_turn>\n'
        "<start_of_turn>user\n[result of find]\nAt nine.<end_of_turn>\n<start_of_turn>model\n"
    )
    assert not certain


def test_what_a_template_refuses_is_told_with_its_words(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="never on Mondays"):
        counter(tmp_path, "{{ raise_exception('never on Mondays') }}").count_messages([USER])


def test_a_date_in_the_template_does_not_change_the_count(tmp_path: Path) -> None:
    own = counter(tmp_path, DATED)
    assert own.render([USER]) == ("<|begin_of_text|>Today Date: 26 Jul 2024user: When does the ferry leave?", False)
    assert own.count_messages([USER]).kind == "estimated", "a server has another date"


def test_special_tokens_that_a_user_writes_are_text_alone_and_special_in_a_prompt(tmp_path: Path) -> None:
    own = counter(tmp_path, CHATML)
    forged = {"role": "user", "content": "<|im_end|>"}
    assert own.count("<|im_end|>") > 2
    assert own.count_messages([forged]) == own.count_messages([{"role": "user", "content": ""}]) + 1


def test_nothing_is_cut_and_nothing_padded(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_str(byte_level().to_str())
    tokenizer.enable_truncation(10)
    tokenizer.enable_padding(length=10)
    own = counter(tmp_path, CHATML, tokenizer)
    assert own.count("") == 0
    assert own.count("ferry " * 1000) >= 1000


def test_other_files_are_another_counter(tmp_path: Path) -> None:
    folder = write(tmp_path / "model", byte_level(), CHATML)
    name = load_counter(f"tokenizer:{folder}").name
    assert name.startswith(f"tokenizer:{folder}@")
    assert load_counter(f"tokenizer:{folder / 'tokenizer.json'}").name == name
    write(folder, byte_level(), QWEN)
    assert load(str(folder)).name != name


def test_a_template_may_stand_in_the_configuration(tmp_path: Path) -> None:
    named = [
        {"name": "default", "template": "{{ messages[0].content }}"},
        {"name": "tool_use", "template": "with tools"},
    ]
    own = load(str(write(tmp_path, byte_level(), None, chat_template=named)))
    assert own.render([USER]) == (USER["content"], True)
    assert own.render([USER], [TOOL]) == ("with tools", True)
    own = load(str(write(tmp_path, byte_level(), None, chat_template="{{ bos_token }}{{ eos_token }}")))
    assert own.render([USER]) == ("<|begin_of_text|><|eot_id|>", True)


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ cycler.__init__.__globals__.os.system('true') }}",
        "{% include '/etc/passwd' %}",
    ],
)
def test_a_template_cannot_reach_out(template: str) -> None:
    with suppress(InvalidInput):
        assert ChatTemplate(template, {}).render([USER])[0] == ""


@pytest.mark.parametrize("scheme", ["first", "always", "never"])
@settings(deadline=None, max_examples=60)
@given(
    parts=st.lists(st.sampled_from(["<|im_start|>", "<|im_end|>", "ferry", " to", "\n", "é", "去", " "]), max_size=12)
)
def test_a_prompt_counted_in_pieces_counts_as_a_whole(scheme: str, parts: list[str]) -> None:
    tokenizer = Tokenizer.from_str(unigram().to_str())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    tokenizer.add_special_tokens(["<|im_start|>"])
    tokenizer.add_tokens([AddedToken("<|im_end|>", special=False, normalized=False, lstrip=scheme == "never")])
    prompt = "".join(parts)
    whole = len(tokenizer.encode(prompt, add_special_tokens=False))
    assert Vocabulary(tokenizer, None).count_prompt(prompt) == whole


# Against transformers, which is where chat templates come from


def chats(seed: int, number: int) -> list[list[dict[str, Any]]]:
    drawn = random.Random(seed)
    words = [*" ".join(CORPUS[:5]).split(" "), *SPECIAL, "\n", "  "]

    def message() -> dict[str, Any]:
        text = " ".join(drawn.choices(words, k=drawn.randrange(30)))
        return {"role": drawn.choice(["system", "user", "assistant"]), "content": text}

    return [[message() for _ in range(drawn.randrange(1, 8))] for _ in range(number)]


@pytest.mark.torch  # with it comes transformers
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
    found = {"type": "function", "function": TOOL["function"] | {"description": "Finds <what> & 'when', ü"}}
    for number, chat in enumerate(chats(3, 150)):
        tools = [found] if number % 3 == 0 else []
        given = {"tools": tools or None, "add_generation_prompt": True}
        prompt = theirs.apply_chat_template(chat, tokenize=False, **given)
        assert own.render(chat, tools) == (prompt, True)
        counted = own.count_messages(chat, tools)
        assert (counted, counted.kind) == (len(theirs.encode(prompt, add_special_tokens=False)), "exact")
