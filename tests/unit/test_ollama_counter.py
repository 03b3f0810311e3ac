"""Counts of Ollama's models, against a server that renders as the real one does: exact, or a bound and called one."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

from memstore.errors import InvalidInput
from memstore.providers import load_counter, ollama_counter, tiktoken
from memstore.providers.huggingface import Vocabulary
from memstore.providers.ollama_counter import PATTERNS, OllamaCounter, build_vocabulary
from memstore.providers.tiktoken import BytesCounter, longest
from memstore.settings import Settings
from tests.helpers.conformance import check_counter
from tests.helpers.tokenizers import CALL, CORPUS, SPECIAL, USER, as_gguf, byte_level, sentencepiece
from tests.model_server import ScriptedServer, raw, says, status

TOOL = {"type": "function", "function": {"name": "find", "parameters": {}}}


def chatml(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> str:
    """Render as a Modelfile's template does, its own system prompt before everything."""
    turns = [{"role": "system", "content": f"You are Qwen. {tools or ''}"}, *messages]
    told = (f"<|im_start|>{one['role']}\n{one['content']}{one.get('tool_calls', '')}<|im_end|>\n" for one in turns)
    return "".join(told) + "<|im_start|>assistant\n"


def tokens(prompt: str) -> int:
    return len(byte_level().encode(prompt, add_special_tokens=False))


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        server.vocabulary = as_gguf(byte_level(), model="gpt2", pre="qwen2")
        server.render = chatml
        yield server


@pytest.fixture
def counter(server: ScriptedServer) -> OllamaCounter:
    made = load_counter("ollama:qwen3:4b-instruct", Settings(ollama_url=server.url))
    assert isinstance(made, OllamaCounter)
    return made


def test_it_conforms(counter: OllamaCounter) -> None:
    check_counter(counter)


def test_what_the_server_renders_is_counted_by_the_models_own_tokenizer(counter: OllamaCounter) -> None:
    counted = counter.count_messages([USER])
    assert (counted, counted.kind) == (tokens(chatml([USER], [])), "exact")
    assert counter.count("<|im_start|>ferry") > tokens("<|im_start|>ferry")
    assert counter.count_messages([USER], [TOOL]) == tokens(chatml([USER], [TOOL])) > counted


def test_arguments_of_calls_are_sent_as_the_objects_that_ollama_takes(
    counter: OllamaCounter, server: ScriptedServer
) -> None:
    assert counter.count_messages([USER, CALL]).kind == "exact"
    sent = server.asked()[-1]["messages"][1]
    assert sent["tool_calls"][0]["function"] == {"name": "find", "arguments": {"what": "ferry"}}
    assert sent["content"] == ""


def test_nothing_is_cut_and_nothing_run(counter: OllamaCounter, server: ScriptedServer) -> None:
    counter.count_messages([USER])
    (body,) = server.asked()
    assert (body["_debug_render_only"], body["truncate"], body["options"]["num_predict"]) == (True, False, 1)


def test_a_model_that_was_pulled_anew_is_another(
    counter: OllamaCounter, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ollama_counter, "MODEL_CHECK_SECONDS", 0.0)
    first = counter.count_messages([USER])
    shown = len(server.asked("/api/show"))
    assert counter.count_messages([USER]) == first
    assert len(server.asked("/api/show")) == shown, "of the same digest nothing is asked again"
    server.digest = "b" * 64
    server.render = lambda messages, tools: "short"
    assert counter.count_messages([USER]) == tokens("short")


def test_the_token_that_begins_a_prompt_is_counted_once(counter: OllamaCounter, server: ScriptedServer) -> None:
    begin = byte_level().token_to_id("<|begin_of_text|>")
    server.vocabulary = as_gguf(byte_level(), model="gpt2", pre="qwen2", bos_token_id=begin, add_bos_token=True)
    assert counter.count_messages([USER]) == tokens(chatml([USER], [])) + 1
    server.render = lambda messages, tools: "<|begin_of_text|>" + chatml(messages, tools)
    assert counter.count_messages([USER, USER]) == tokens(chatml([USER, USER], [])) + 1


def test_an_unknown_tokenizer_makes_a_bound_of_what_is_rendered(counter: OllamaCounter, server: ScriptedServer) -> None:
    server.vocabulary["tokenizer.ggml.pre"] = "of another model"
    counted = counter.count_messages([USER])
    assert (counted, counted.kind) == (longest(chatml([USER], [])) + 1, "upper_bound")
    assert counter.count("ferry") == 6


def test_a_server_that_only_runs_models_is_asked_once_and_then_bounded(
    counter: OllamaCounter, server: ScriptedServer
) -> None:
    server.render = None
    server.script.append(says("At"))
    for _ in range(3):
        counted = counter.count_messages([USER])
        assert (counted, counted.kind) == (BytesCounter().count_messages([USER]), "upper_bound")
    assert len(server.asked()) == 1


def test_a_context_is_had_while_the_server_is_away(counter: OllamaCounter, server: ScriptedServer) -> None:
    server.instead["/api/tags"] = raw(b"{}", 503)
    counted = counter.count_messages([USER])
    assert (counted, counted.kind) == (BytesCounter().count_messages([USER]), "upper_bound")
    before = len(server.requests)
    assert counter.count_messages([USER]).kind == "upper_bound"
    assert counter.count_message(USER) == BytesCounter().count_message(USER)
    assert len(server.requests) == before, "it is not asked again at once"


def test_messages_that_the_server_refuses_are_refused(counter: OllamaCounter, server: ScriptedServer) -> None:
    server.instead["/api/chat"] = status(400, "qwen3:4b-instruct does not support tools")
    with pytest.raises(InvalidInput, match="does not support tools"):
        counter.count_messages([USER], [TOOL])


# Tokenizers built from what a GGUF file tells are the ones that it was made of


texts = st.lists(st.one_of(st.sampled_from([*CORPUS, *SPECIAL, " ", "\n", "\ud800"]), st.text(max_size=20)), max_size=6)


def built(info: dict[str, Any]) -> Vocabulary:
    made = build_vocabulary(info)
    assert made is not None
    return made


@cache
def built_byte_level(pre: str) -> Vocabulary:
    return built(as_gguf(byte_level(pre), model="gpt2", pre=pre))


@cache
def built_sentencepiece() -> Vocabulary:
    return built(as_gguf(sentencepiece(), model="llama", merges=None, add_bos_token=False))


@pytest.mark.parametrize("pre", sorted(PATTERNS))
@settings(deadline=None, max_examples=60)
@given(parts=texts)
def test_byte_level_bpe(pre: str, parts: list[str]) -> None:
    text = "".join(parts)
    whole = text.replace("\ud800", "\ufffd")
    expected = len(byte_level(pre).encode(whole, add_special_tokens=False))
    assert built_byte_level(pre).count_prompt(text) == expected


@settings(deadline=None, max_examples=200)
@given(parts=texts)
def test_sentencepiece(parts: list[str]) -> None:
    # No piece of a text is one of the tokens that stand for a byte, whatever it looks like.
    text = "".join(parts).replace("\ud800", "").replace("<0x", "<0")
    assert built_sentencepiece().count_text(text) == len(sentencepiece().encode(text, add_special_tokens=False))


@pytest.mark.parametrize(("pre", "encoding"), [("gpt-4o", "o200k_base"), ("llama-bpe", "cl100k_base")])
@settings(deadline=None, max_examples=100)
@given(parts=texts)
def test_texts_are_cut_as_openai_cuts_them(pre: str, encoding: str, parts: list[str]) -> None:
    """Llama 3 took the pattern of cl100k_base over, llama.cpp's "gpt-4o" is that of o200k_base.

    But for blanks at the very end, which cl100k_base takes together.
    """
    text = "".join(parts).replace("\ud800", "") + "."
    pattern = tiktoken._encoding(encoding)._pat_str.replace("{1,3}+", "{1,3}")  # "possessive" there, "repeated" here
    theirs = Split(Regex(pattern), "isolated")
    ours = Split(Regex(PATTERNS[pre]), "isolated")
    assert ours.pre_tokenize_str(text) == theirs.pre_tokenize_str(text)


@pytest.mark.parametrize(
    "told",
    [
        {"model": "gpt2", "pre": "of another model"},
        {"model": "gpt2", "pre": "qwen2", "merges": None},
        {"model": "bert"},
        {"model": "llama", "scores": None},
        {"model": "gpt2", "pre": "qwen2", "tokens": None},
    ],
)
def test_what_is_not_known_for_certain_is_not_built(told: dict[str, Any]) -> None:
    assert build_vocabulary(as_gguf(byte_level(), **told)) is None
    assert build_vocabulary({}) is None
