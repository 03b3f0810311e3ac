"""Chat models of Ollama and of OpenAI-compatible servers, through the real clients, against one that misbehaves."""

import json
import pickle
import time
import traceback
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from pydantic import BaseModel, Field

from memstore import settings
from memstore.derive.facts.llm_extractor import Inquiry
from memstore.derive.llm import CallMeter, LLMRequest, LLMSession
from memstore.errors import (
    ConfigurationError,
    EmbedderMismatch,
    ModelAnswerInvalid,
    ModelUnavailable,
    PromptTooLong,
    ProviderError,
    ProviderMissing,
)
from memstore.providers import connections, load_chat_model, load_stored_embedder, ollama, openai
from memstore.providers.ollama import OllamaChat, OllamaServer
from memstore.providers.openai import OpenAIChat, OpenAIServer
from memstore.providers.services import ChatEndpoint, ServedChatModel
from tests import model_server as does
from tests.helpers.conformance import check_chat_model, check_reranker
from tests.model_server import ScriptedServer, says, status
from tests.unit.strategies import message


class Trip(BaseModel):
    city: str
    days: int


KEY = "sk-verysecretkey"
GOOD = {"city": "Lisbon", "days": 3}
PROMPT = [{"role": "system", "content": "Say where."}, {"role": "user", "content": "Three days in Lisbon."}]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PAUSE_SECONDS", 0.01)


@pytest.fixture(params=["ollama", "openai"])
def server(request: pytest.FixtureRequest) -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        server.kind = request.param
        yield server


@pytest.fixture
def ollamas() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def openais() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        server.kind = "openai"
        yield server


def model_of(server: Any, name: str = "qwen3:4b-instruct", **options: Any) -> ServedChatModel:
    num_ctx = options.pop("window", 8192)
    endpoint: ChatEndpoint
    if server.kind == "ollama":
        endpoint = OllamaChat(name, OllamaServer(server.url), num_ctx)
    else:
        endpoint = OpenAIChat(name, OpenAIServer(f"{server.url}/v1", options.pop("key", KEY)))
    given = {"window": num_ctx, "timeout": 10.0, "timeout_setting": "THE_TIMEOUT"} | options
    return ServedChatModel(endpoint, **given)


def ask(model: ServedChatModel, prompt: list[dict[str, str]] = PROMPT, max_tokens: int = 100) -> Trip:
    return model.complete(prompt, Trip, max_tokens=max_tokens).answer


def user(text: str) -> list[dict[str, str]]:
    return [PROMPT[0], {"role": "user", "content": text}]


@pytest.mark.parametrize("counted", [None, 0, "many"])
def test_what_a_server_does_not_count_is_estimated(server: ScriptedServer, counted: Any) -> None:
    """Else neither a day nor a backfill would come to its limit, or the database could not keep the sum."""
    server.script += [says(GOOD, prompt_eval_count=counted, eval_count=counted)] * 2  # Ollama is asked to count again
    made = model_of(server).complete(user("word " * 300), Trip, max_tokens=100)
    assert 300 <= made.prompt_tokens <= 500
    assert 4 <= made.completion_tokens <= 20


def test_every_request_forbids_cutting_and_chance(ollamas: ScriptedServer) -> None:
    ollamas.script += [says("no"), says(GOOD)]
    ask(model_of(ollamas))
    assert len(ollamas.asked()) == 2
    for body in ollamas.asked():
        assert (body["model"], body["stream"], body["truncate"], body["shift"]) == (
            "qwen3:4b-instruct",
            False,
            False,
            False,
        )
        assert body["format"] == Trip.model_json_schema()
        assert body["options"] == {
            "num_ctx": 8192, "num_predict": 100, "temperature": 0, "seed": 1, "repeat_penalty": 1.0,
        }  # fmt: skip
        assert body["keep_alive"]
        assert body["think"] is False


def test_a_model_that_cannot_think_is_not_told_to_stop_it(ollamas: ScriptedServer) -> None:
    ollamas.capabilities = ["completion"]
    ollamas.script.append(says(GOOD))
    ask(model_of(ollamas))
    assert "think" not in ollamas.asked()[0]


def test_the_fake_conforms(server: ScriptedServer) -> None:
    server.script.append(says({"word": "ferry"}))
    check_chat_model(model_of(server))


# What is had of the server before anything is asked


def test_the_window_is_not_larger_than_the_model_was_trained_for(server: ScriptedServer) -> None:
    server.trained = 2048
    assert model_of(server).context_tokens == 2048
    server.trained = None
    assert model_of(server).context_tokens == 8192


@pytest.mark.parametrize("path", ["/api/show", "/api/tags"])
def test_no_name_is_guessed_while_the_server_is_away(ollamas: ScriptedServer, path: str) -> None:
    ollamas.instead[path] = status(503, "starting")
    with pytest.raises(ModelUnavailable, match="503 starting"):
        print(model_of(ollamas).name)


# Away for a moment


@pytest.mark.parametrize(
    "trouble",
    [
        status(500, "llama runner process has terminated"), status(502, "bad gateway"), status(503, "server busy"),
        status(429, "too many requests"), status(408, "timeout"), does.raw(b"<html>502</html>", 502),
        does.raw(b'"bad gateway"', 502), does.raw(b"[]", 504), does.raw(b"", 500),
        does.raw(b'{"error": "an error was encountered while running the model"}'), does.raw(b"not json"),
        does.raw(b"[1]"), does.raw(b"[" * 100_000), does.raw(b"\xff\xfe"), does.raw(b""),
        does.resets, does.resets_in_the_body,
        does.raw(b'{"choices": []}'),
        does.raw(json.dumps(does.chat("{")).encode() + b"\n" + json.dumps(does.chat("}")).encode()),
    ],
)  # fmt: skip
def test_what_may_pass_is_tried_again(server: ScriptedServer, trouble: does.Behaviour) -> None:
    server.script += [trouble, says(GOOD)]
    assert ask(model_of(server)).city == "Lisbon"
    server.script += [trouble] * 4
    with pytest.raises(ModelUnavailable, match="is away"):
        ask(model_of(server))
    assert len(server.asked()) == 6


@pytest.mark.parametrize("fields", [{"done": None, "done_reason": None}, {"done": False}])
def test_an_answer_of_ollamas_that_breaks_off_is_asked_for_again(
    ollamas: ScriptedServer, fields: dict[str, Any]
) -> None:
    ollamas.script += [says(GOOD, **fields), says(GOOD)]
    assert ask(model_of(ollamas)).city == "Lisbon"
    assert len(ollamas.asked()) == 2


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made, which are none here."""
    made: list[float] = []
    monkeypatch.setattr(time, "sleep", made.append)
    return made


def test_a_server_that_says_when_is_asked_then(server: ScriptedServer, waits: list[float]) -> None:
    server.script += [status(429, "slow down", retry_after="7"), says(GOOD)]
    assert ask(model_of(server)).days == 3
    assert waits == [7]


def test_no_wait_goes_beyond_the_time_limit(server: ScriptedServer) -> None:
    server.script.append(status(429, "slow down", retry_after="3600"))
    with pytest.raises(ModelUnavailable, match="429 slow down"):
        ask(model_of(server))
    assert len(server.asked()) == 1


@pytest.mark.parametrize("hanging", [does.hangs, does.hangs_in_the_body, does.drips])
@pytest.mark.parametrize("path", ["/api/chat", "/api/show", "/api/ps", "/v1/chat/completions", "/v1/models"])
def test_nothing_hangs(ollamas: ScriptedServer, hanging: does.Behaviour, path: str) -> None:
    ollamas.kind = "openai" if path.startswith("/v1") else "ollama"
    ollamas.instead[path] = hanging
    ollamas.script.append(says(GOOD))
    if path in ("/api/ps", "/v1/models"):  # what cannot be asked aside is done without
        assert ask(model_of(ollamas, timeout=0.5)).city == "Lisbon"
        return
    with pytest.raises(ModelUnavailable, match=r"did not answer within|is away"):
        ask(model_of(ollamas, timeout=0.5))


# What the server refuses


@pytest.mark.parametrize("code", [400, 422])
def test_a_refused_request_is_not_repeated(server: ScriptedServer, code: int) -> None:
    server.script.append(status(code, "invalid format"))
    with pytest.raises(connections.RequestRefused, match=r"refuses the request .*invalid format"):
        ask(model_of(server))
    assert len(server.asked()) == 1


def test_what_was_said_is_sent_to_no_other_server(server: ScriptedServer) -> None:
    with ScriptedServer() as other:
        server.script.append(does.raw(b"{}", 307, location=f"{other.url}/api/chat"))
        with pytest.raises(ProviderError, match="307"):
            ask(model_of(server))
        assert other.requests == []


def test_the_environment_leads_nowhere_else(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OLLAMA_HOST", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    server.script.append(says(GOOD))
    assert ask(model_of(server)).city == "Lisbon"


# What the model answers


@pytest.mark.parametrize(
    "said",
    [
        '```json\n{"city": "Lisbon", "days": 3}\n```',
        'Sure! Here it is:\n{"city": "Lisbon", "days": 3}\nAnything else?',
        '<think>Is {"city": "Porto"} meant?</think>{"city": "Lisbon", "days": 3}',
        '\n {"city": "Lisbon", "days": 3, "more": [1]} \n',
    ],
)
def test_words_around_the_json_are_forgiven(server: ScriptedServer, said: str) -> None:
    server.script.append(says(said))
    assert ask(model_of(server)) == Trip(city="Lisbon", days=3)


@pytest.mark.parametrize(
    ("said", "fields", "feedback"),
    [
        ("", {}, "holds no JSON object"),
        ("Lisbon, three days.", {}, "holds no JSON object"),
        ('["Lisbon", 3]', {}, "holds no JSON object"),
        ('{"city": "Lisbon", "days": 3', {}, "holds no JSON object"),
        ('{"city": "Lisbon"} {"days": 3}', {}, "Invalid JSON"),
        ('{"city": "Lisbon", "days": "three"}', {}, "days: Input should be a valid integer"),
        ('{"town": "Lisbon"}', {}, "city: Field required; days: Field required"),
        ('{"a":' * 5000 + "1" + "}" * 5000, {}, "Invalid JSON"),
        ('{"city": "Lis', {"done_reason": "length", "eval_count": 100}, "cut off after 100 tokens"),
    ],
)
def test_an_answer_that_cannot_be_used_is_asked_for_once_more_and_then_kept(
    server: ScriptedServer, said: str, fields: dict[str, Any], feedback: str
) -> None:
    server.script += [says(said, **fields), says(GOOD)]
    made = model_of(server).complete(PROMPT, Trip, max_tokens=100)
    assert made.answer.city == "Lisbon"
    assert made.prompt_tokens == 200
    first, second = server.asked()
    assert first["messages"] == PROMPT
    assert [each["role"] for each in second["messages"]] == ["system", "user"]
    assert second["messages"][1]["content"].startswith(PROMPT[1]["content"])
    assert feedback in second["messages"][1]["content"]

    server.script += [says("no"), says(said, **fields)]
    with pytest.raises(ModelAnswerInvalid) as raised:
        ask(model_of(server))
    assert raised.value.payload == said
    assert raised.value.prompt_tokens == 200
    assert raised.value.completion_tokens >= 40
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (str(copy), copy.payload, copy.prompt_tokens) == (str(raised.value), said, 200)


@pytest.mark.parametrize("message", [None, "Lisbon", {"role": "assistant"}, {"role": "assistant", "content": None}])
def test_an_answer_without_a_text_is_one_that_cannot_be_used(server: ScriptedServer, message: object) -> None:
    server.script += [says("", message=message), says(GOOD)]
    assert ask(model_of(server)).city == "Lisbon"


# Whether the prompt fits


def test_what_may_not_fit_is_not_sent(server: ScriptedServer) -> None:
    model = model_of(server)
    room = 2 * (model.context_tokens - 100 - model.max_prompt_tokens(user("")))  # bytes, two to a token at first
    server.script.append(says(GOOD))
    for text in ("x" * (room + 2), "語" * (room // 3 + 1), "\ud800" * (room // 3 + 1)):
        with pytest.raises(PromptTooLong, match="Nothing was sent"):
            ask(model, user(text))
    ask(model, user("x" * room))
    with pytest.raises(PromptTooLong):
        ask(model, max_tokens=8192)
    assert len(server.asked()) == 1


def test_a_lone_surrogate_is_sent_as_the_replacement_character(server: ScriptedServer) -> None:
    server.script.append(says(GOOD))
    ask(model_of(server), user("a\ud800b 👩‍👧 \u0000"))
    assert server.asked()[0]["messages"][1]["content"] == "a\ufffdb 👩‍👧 \u0000"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (400, "request (8889 tokens) exceeds the available context size (4096 tokens), try increasing it"),
        (400, "the prompt is longer than the context length currently available to the model; shorten it"),
        (400, "prompt too long; exceeded max context length by 4 tokens"),
        (500, "input is too long"),
        (200, "the prompt exceeds the context window"),
    ],
)
def test_a_server_that_says_it_is_too_long_is_believed(server: ScriptedServer, code: int, told: str) -> None:
    server.script.append(status(code, told))
    with pytest.raises(PromptTooLong, match="does not fit into the window of"):
        ask(model_of(server))
    assert len(server.asked()) == 1


@pytest.mark.parametrize(("text", "words"), [("word " * 300, 302), ("去" * 1200, 303)])
def test_an_answer_to_a_prompt_that_was_cut_is_thrown_away(server: ScriptedServer, text: str, words: int) -> None:
    server.script += [says(GOOD, prompt_eval_count=200), says("", done_reason="length", prompt_eval_count=200)]
    with pytest.raises(PromptTooLong, match=f"read 200 tokens of a prompt of {words} words"):
        ask(model_of(server), user(text))


@pytest.mark.parametrize("counted", [12, 0, None])
def test_a_count_that_leaves_out_the_cache_is_not_taken_for_a_cut(ollamas: ScriptedServer, counted: int | None) -> None:
    ollamas.script += [
        says(GOOD, prompt_eval_count=counted),
        says("{", done_reason="length", prompt_eval_count=410),
    ]
    assert ask(model_of(ollamas), user("word " * 300)).city == "Lisbon"
    first, again = (body["messages"] for body in ollamas.asked())
    assert again[0]["content"] != first[0]["content"]
    assert again[0]["content"].endswith(first[0]["content"])
    assert ollamas.asked()[1]["options"]["num_predict"] == 1


def test_a_smaller_window_than_asked_for_is_noticed_and_kept_to(ollamas: ScriptedServer) -> None:
    ollamas.allotted = 4096
    assert model_of(ollamas).context_tokens == 4096, "as it is loaded"
    ollamas.instead["/api/ps"] = does.raw(b'{"models": []}')
    model = model_of(ollamas)
    assert model.context_tokens == 8192
    del ollamas.instead["/api/ps"]
    ollamas.script += [says(GOOD, prompt_eval_count=5000)] + [says(GOOD)] * 3
    with pytest.raises(PromptTooLong, match="window of 4096"):
        ask(model, user("x" * 5000))
    assert model.context_tokens == 4096
    assert ask(model).city == "Lisbon"
    ollamas.allotted = 8192  # loaded anew
    ask(model)
    assert model.context_tokens == 8192
    ollamas.allotted = 2048
    assert model_of(ollamas).context_tokens == 8192, "another program's: asked for more, it is loaded anew"


def test_the_size_of_prompts_is_learnt_from_what_the_server_counts(server: ScriptedServer) -> None:
    model = model_of(server)
    text = user("word " * 1_000)
    first = model.max_prompt_tokens(text)
    server.script.append(says(GOOD, prompt_eval_count=1_100))
    ask(model, text)
    assert 1_100 < model.max_prompt_tokens(text) < 1_600 < first
    server.script.append(says(GOOD, prompt_eval_count=4_000))  # another language: what was counted at most is expected
    ask(model, text)
    assert model.max_prompt_tokens(text) > 4_000


def test_of_an_answer_that_was_cut_what_is_whole_is_used(server: ScriptedServer) -> None:
    class Trips(BaseModel):
        trips: list[Trip]

    cut = '{"trips": [{"city": "Lisbon", "days": 3}, {"city": "Porto", "days": 2}, {"city": "Fa'
    server.script.append(says(cut, done_reason="length"))
    made = model_of(server).complete(PROMPT, Trips, max_tokens=100)
    assert [trip.city for trip in made.answer.trips] == ["Lisbon", "Porto"]
    assert not made.is_whole
    assert made.calls == 1


def test_a_model_pulled_anew_meanwhile_gets_another_name(ollamas: ScriptedServer) -> None:
    model = model_of(ollamas)
    before = model.name
    ollamas.digest = "f" * 64
    ollamas.script += [says(GOOD)] * 2
    with pytest.raises(ModelUnavailable, match="pulled anew"):
        ask(model)
    assert model.name == "ollama:qwen3:4b-instruct@ffffffffffff" != before
    assert ask(model).days == 3


# What OpenAI-compatible servers differ in


def refuses(why: str, code: int = 400) -> does.Behaviour:
    return does.raw(json.dumps({"error": {"message": why, "type": "invalid_request_error"}}).encode(), code)


def test_what_a_server_refuses_by_name_is_asked_for_in_another_way_from_then_on(openais: ScriptedServer) -> None:
    openais.script += [
        refuses("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'."),
        refuses("Unsupported value: 'temperature' does not support 0 with this model."),
        refuses("'response_format' of type json_schema is not supported"),
        refuses("Unknown parameter: 'response_format.schema'"),
        says(GOOD),
        says(GOOD),
    ]
    model = model_of(openais)
    assert [ask(model).city, ask(model).city] == ["Lisbon", "Lisbon"]
    *_, last, again = openais.asked()
    for body in (last, again):
        assert (body["max_completion_tokens"], body["response_format"]) == (100, {"type": "json_object"})
        assert not {"max_tokens", "temperature"} & set(body)
        assert '"days": {"type": "integer"}' in body["messages"][0]["content"]
        assert [each["role"] for each in body["messages"]] == ["system", "user"]


def test_a_server_that_takes_no_response_format_at_all_is_asked_in_words(openais: ScriptedServer) -> None:
    openais.script += [*[refuses("response_format: unknown field")] * 3, says(GOOD)]
    assert ask(model_of(openais)).days == 3
    assert "response_format" not in openais.asked()[-1]


def test_llama_cpp_python_has_a_schema_of_its_own_spelling(openais: ScriptedServer) -> None:
    why = "1 validation error:\n  {'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be 'text' or …\"}"
    openais.script += [refuses(why, 500), says(GOOD)]
    assert ask(model_of(openais)).days == 3
    shape = openais.asked()[-1]["response_format"]
    assert (shape["type"], shape["schema"]["required"]) == ("json_object", ["city", "days"])


def test_schemas_are_what_strict_modes_take(openais: ScriptedServer) -> None:
    class Stop(BaseModel):
        town: str = Field(max_length=30)
        nights: int = Field(default=1, ge=0)

    class Tour(BaseModel):
        stops: list[Stop]
        title: str | None = None

    openais.script.append(says({"stops": [{"town": "Faro", "nights": 2}], "title": None}))
    model_of(openais).complete(PROMPT, Tour, max_tokens=100)
    told = openais.asked()[0]["response_format"]["json_schema"]
    assert told["strict"] is True
    schema, stop = told["schema"], told["schema"]["$defs"]["Stop"]
    assert (schema["required"], stop["required"]) == (["stops", "title"], ["town", "nights"])
    assert (schema["additionalProperties"], stop["additionalProperties"]) == (False, False)
    assert stop["properties"] == {"town": {"type": "string"}, "nights": {"type": "integer"}}


@pytest.mark.parametrize("code", [200, 400, 401, 404, 429, 503])
def test_no_key_stands_in_an_error(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", KEY)
    told = f"{KEY} has no right: Bearer {KEY}"
    error = told if server.kind == "ollama" else {"message": told, "code": "insufficient_quota"}
    server.script += [does.raw(json.dumps({"error": error}).encode(), code)] * 4
    with pytest.raises(ProviderError if code == 400 else ModelUnavailable) as raised:
        ask(model_of(server))
    assert KEY.removeprefix("sk-") not in "".join(traceback.format_exception(raised.value))


def test_the_key_of_ollama_is_sent_with_each_request(ollamas: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", KEY)
    ollamas.script.append(says(GOOD))
    ask(model_of(ollamas))
    assert {headers["Authorization"] for _, _, headers in ollamas.requests} == {f"Bearer {KEY}"}


def test_a_redirect_is_told_without_what_its_url_may_hold(openais: ScriptedServer) -> None:
    openais.script.append(does.raw(b"{}", 307, location=f"https://elsewhere.example/v1?api_key={KEY}"))
    with pytest.raises(ProviderError, match=r"elsewhere \(307\), which is not followed") as raised:
        ask(model_of(openais))
    assert KEY not in str(raised.value)


def test_an_account_without_quota_is_not_asked_again(openais: ScriptedServer) -> None:
    openais.script += [does.raw(b'{"error": {"message": "no quota", "code": "insufficient_quota"}}', 429), says(GOOD)]
    with pytest.raises(ModelUnavailable, match="no quota left"):
        ask(model_of(openais))
    assert len(openais.asked()) == 1


@pytest.mark.parametrize(
    ("listed", "window"),
    [
        ({"id": "qwen3:4b-instruct", "max_model_len": 4096}, 4096),
        ({"id": "qwen3:4b-instruct", "context_length": 4096}, 4096),
        ({"id": "qwen3:4b-instruct", "meta": {"n_ctx": 4096}}, 4096),
        ({"id": "another", "max_model_len": 4096}, 8192),
        ({"id": "qwen3:4b-instruct"}, 8192),
        (None, 8192),
    ],
)
def test_the_window_is_what_the_server_lists(openais: ScriptedServer, listed: Any, window: int) -> None:
    openais.instead["/v1/models"] = (
        status(404, "no list") if listed is None else does.raw(json.dumps({"data": [listed]}).encode())
    )
    model = model_of(openais, window=None)
    assert model.context_tokens == window
    known = "told by the server" if window == 4096 else "assumed"
    assert model.abilities == f"a window of {window:,} tokens ({known}), JSON asked for as json_schema"
    assert "1,024 tokens (set)" in model_of(openais, window=1024).abilities


def test_the_key_of_openai_goes_to_openai_alone(openais: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-ours")
    openais.script.append(says(GOOD))
    model = openai.load("qwen3:4b-instruct", settings.load({"openai_url": f"{openais.url}/v1"}))
    assert ask(model).days == 3
    assert not any(KEY in str(headers) or "org-ours" in str(headers) for _, _, headers in openais.requests)


def test_a_service_that_speaks_openais_api_is_asked_with_its_own_key(
    openais: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gemini's row, at a server of this machine."""
    service = replace(openai.GEMINI, url=f"{openais.url}/v1")
    elsewhere = settings.load({"openai_url": "http://127.0.0.1:9/v1", "openai_api_key": "sk-of-another"})
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    with pytest.raises(ProviderMissing, match="set GEMINI_API_KEY"):
        service.load("gemini-2.5-flash", elsewhere)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    openais.script.append(says(GOOD))
    model = service.load("gemini-2.5-flash", elsewhere)
    assert ask(model).days == 3
    assert (model.name, model.counter_name) == ("gemini:gemini-2.5-flash",) * 2
    embedder = service.load_embedder("gemini-embedding-001", elsewhere)
    assert (embedder.name, embedder.dimensions) == ("gemini:gemini-embedding-001", 3)
    sent = [{name.casefold(): value for name, value in headers.items()} for _, _, headers in openais.requests]
    assert {headers["authorization"] for headers in sent} == {f"Bearer {KEY}"}


def test_what_the_environment_has_for_openai_goes_nowhere_else(
    openais: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Secret: of-another-server\nAuthorization: Bearer sk-of-another")
    openais.script.append(says(GOOD))
    ask(model_of(openais))
    sent = openais.requests[-1][2]
    assert {name.casefold(): value for name, value in sent.items()}["authorization"] == f"Bearer {KEY}"
    assert "another" not in str(sent)


@pytest.mark.parametrize("reason", ["content_filter", "model_length", "insufficient_system_resource"])
def test_an_answer_that_ended_otherwise_is_not_whole(openais: ScriptedServer, reason: str) -> None:
    openais.script += [says(GOOD, done_reason=reason), says(GOOD)]
    made = model_of(openais).complete(PROMPT, Trip, max_tokens=100)
    assert (made.calls, made.is_whole) == (2, True)


def test_what_the_database_names_calls_no_function() -> None:
    with pytest.raises(EmbedderMismatch):
        load_stored_embedder("json:loads:[1]", 3, settings.load({"embedder": "hashing:8"}))
    for name in ("json:decoder", "..x:f", "os:sep"):
        with pytest.raises(ProviderMissing):
            load_chat_model(name)


def test_settings_show_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTORE_OPENAI_API_KEY", KEY)
    given = settings.load({"openai_api_key": KEY, "embedding_api_key": KEY, "rerank_api_key": KEY})
    assert KEY not in repr(given)
    for url in (f"https://user:{KEY}@x/v1", f"https://:{KEY}@x/v1", f"https://x/v1#{KEY}", f"https://x/v1?key={KEY}"):
        for name in ("openai_url", "ollama_url"):
            with pytest.raises(ConfigurationError, match="URL without a key") as raised:
                settings.load({name: url})
            assert KEY not in str(raised.value)


def test_embeddings_and_rerank(openais: ScriptedServer) -> None:
    given = settings.load(
        {
            "openai_url": "http://127.0.0.1:9/v1", "embedding_url": f"{openais.url}/v1", "embedding_api_key": KEY,
            "rerank_url": f"{openais.url}/v1", "embedding_query_prefix": "query: ", "embedding_dimensions": 3,
        }
    )  # fmt: skip
    embedder = openai.load_embedder("bge-m3", given)
    assert embedder.dimensions == 3
    assert np.allclose(embedder.embed_documents(["a", "bee"])[1], embedder.embed_documents(["bee"])[0])
    assert np.allclose(np.linalg.norm(embedder.embed_documents(["a", "bee", ""]), axis=1), 1)
    embedder.embed_query("ferry")
    sent = openais.asked("/v1/embeddings")
    assert [body["input"] for body in sent[-2:]] == [["a", "bee", " "], ["query: ferry"]]
    assert {body["dimensions"] for body in sent} == {3}
    assert embedder.name.startswith(f"openai:bge-m3@{openais.url}/v1#")
    assert openai.load_embedder(embedder.name.removeprefix("openai:"), given).name == embedder.name
    reranker = openai.load_reranker("reader", given)
    assert list(reranker.scores("the ferry", ["a ferry", "trams", "the ferry"])) == [1, 0, 2]
    check_reranker(reranker)


@pytest.mark.parametrize("load", [openai.load_embedder, ollama.load_embedder])
@pytest.mark.parametrize("rows", [[], [[1.0]], [[1.0], [1.0, 2.0]], [[0.0], [0.0]], [["x"], ["y"]], None])
def test_vectors_that_are_none_are_refused(openais: ScriptedServer, load: Any, rows: Any) -> None:
    data = None if rows is None else [{"index": index, "embedding": row} for index, row in enumerate(rows)]
    openais.instead["/v1/embeddings"] = does.raw(json.dumps({"data": data}).encode())
    openais.instead["/api/embed"] = does.raw(json.dumps({"embeddings": rows}).encode())
    embedder = load("m", settings.load({"openai_url": f"{openais.url}/v1", "ollama_url": openais.url}))
    with pytest.raises(ProviderError, match="no vector for each of 2 texts"):
        embedder.embed_documents(["a", "b"])


def test_a_function_of_ones_own_is_a_provider() -> None:
    given = settings.load({"openai_url": "http://127.0.0.1:9/v1"})
    model = load_chat_model("memstore.providers.openai:load:gpt-5-mini", given)
    assert repr(model) == "<ServedChatModel The server at http://127.0.0.1:9/v1>"
    for name, why in (("json:nothing", "has no function nothing"), ("nowhere.to:load", "Nobody knows the provider")):
        with pytest.raises(ProviderMissing, match=why):
            load_chat_model(name, given)


# An answer that was cut, and its rest


def told(text: str) -> dict[str, Any]:
    sources = [{"message": 1, "quote": text}]
    return {"sources": sources, "text": f"Alice says: {text}", "type": "statement", "subject": "Alice"}


SAID = [message(1, "user", "I sail. I row. I swim.", "Alice")]
CUT = json.dumps({"repeats": [{"k": "k1", "message": 1, "quote": "x"}], "facts": [told("I sail"), told("I row")]})[:-60]


def find(model: ServedChatModel) -> tuple[list[str], LLMSession]:
    session = LLMSession(model, CallMeter(), "facts")
    findings = Inquiry(SAID).run(session, LLMRequest(UUID(int=1), "facts", 1, 1, "recipe"))
    return [draft.fact.text for draft, _ in findings.facts], session


def test_the_rest_of_an_answer_that_was_cut_is_asked_for(server: ScriptedServer) -> None:
    server.trained = 40_960
    server.script += [
        says(CUT, done_reason="length", prompt_eval_count=900),
        says({"facts": [told("I row"), told("I swim")]}, prompt_eval_count=900),
    ]
    texts, session = find(model_of(server))
    assert texts == ["Alice says: I sail", "Alice says: I row", "Alice says: I swim"]
    assert (session.usage.calls, session.usage.completion_tokens) == (2, 40)
    first, second = (body["messages"][-1]["content"] for body in server.asked())
    assert second.startswith(first)
    assert '{"text": "Alice says: I sail"}' in second.removeprefix(first)
    assert "I row" not in second.removeprefix(first)


def test_a_model_that_comes_to_no_end_is_recorded_with_what_it_said(server: ScriptedServer) -> None:
    server.script += [says(CUT, done_reason="length", prompt_eval_count=900)] * 10
    texts, session = find(model_of(server, window=40_960))
    assert set(texts) == {"Alice says: I sail"}
    assert ["came to no end" in response.error for response in session.invalid_responses] == [True]
    assert session.usage.calls == len(server.asked()) == 6


def test_a_streamed_answer_is_shown_as_it_comes_and_asked_for_again_until_then(openais: ScriptedServer) -> None:
    lis, bon = ({"choices": [{"delta": {"content": piece}}]} for piece in ("Lis", "bon"))
    end = {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}
    openais.script += [does.streams_events(), does.streams_events(lis, bon, end), does.streams_events(lis)]
    shown: list[str] = []
    answer = model_of(openais).stream(PROMPT, max_tokens=10, show=shown.append)
    assert shown == ["Lis", "bon"]
    assert (answer.text, answer.is_whole, answer.prompt_tokens, answer.completion_tokens) == ("Lisbon", True, 9, 2)
    assert len(openais.asked()) == 2
    with pytest.raises(ModelUnavailable, match="broke off its answer: it ended before it was done"):
        model_of(openais).stream(PROMPT, max_tokens=10, show=shown.append)
    assert shown == ["Lis", "bon", "Lis"]


def test_a_stream_without_an_end_is_ended(server: ScriptedServer) -> None:
    server.script.append(does.streams_for_ever("word "))
    answer = model_of(server).stream(PROMPT, max_tokens=10, show=lambda _: None)
    assert not answer.is_whole
    assert len(answer.text) < 200


def test_a_stream_that_says_nothing_is_ended_and_asked_for_again(server: ScriptedServer) -> None:
    server.script += [does.streams_for_ever("")] * 4
    with pytest.raises(ModelUnavailable, match="its answer has no words"):
        model_of(server, timeout=1.0).stream(PROMPT, max_tokens=10, show=lambda _: None)
    assert len(server.asked()) == 4
    server.script.clear()
    server.script += [does.streams_for_ever(""), does.streams_for_ever("word ")]
    assert model_of(server).stream(PROMPT, max_tokens=10, show=lambda _: None).text.startswith("word word")
