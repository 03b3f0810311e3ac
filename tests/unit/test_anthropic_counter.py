"""Counts of Claude's tokens by Anthropic's count endpoint, against a server that answers in its shapes."""

from __future__ import annotations

import json
import logging
import time
import traceback
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

import memstore
from memstore.errors import BudgetTooSmall, InvalidInput, ModelUnavailable, ProviderError, ProviderMissing
from memstore.providers import Count, connections, load_counter
from memstore.settings import Settings
from tests.helpers.conformance import check_counter
from tests.model_server import Behaviour, Handler, ScriptedServer, hangs, raw

if TYPE_CHECKING:  # to import it takes seconds, in each process that collects the tests
    from memstore.providers.anthropic import AnthropicCounter

PATH = "/v1/messages/count_tokens"
KEY = "sk-ant-" + "api03-not-a-key"
USER: dict[str, Any] = {"role": "user", "content": "When does the ferry leave?"}
CALL: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "a.1", "type": "function", "function": {"name": "find", "arguments": '{"what": "ferry"}'}}],
}
RESULT: dict[str, Any] = {"role": "tool", "content": "At nine.", "tool_call_id": "a.1"}
TOOL = {"type": "function", "function": {"name": "find", "description": "Finds.", "parameters": {"type": "object"}}}


def counting(count: Callable[[Any], int]) -> Behaviour:
    """Answer as the endpoint does, and refuse what it refuses."""

    def behave(handler: Handler) -> None:
        body = handler.body
        texts = [block for turn in body["messages"] for block in turn["content"] if block["type"] == "text"]
        assert body["messages"][0]["role"] == "user"
        assert all(block["text"].strip() for block in texts if isinstance(block, dict))
        handler.send(200, json.dumps({"input_tokens": count(body)}).encode())

    return behave


def size(body: Any) -> int:
    """Return the count of the scripted endpoint: a token for each two signs of the JSON."""
    return len(json.dumps(body["messages"] + body.get("system", []) + body.get("tools", []))) // 2


def failure(code: int, kind: str, message: str, **headers: str) -> Behaviour:
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return raw(json.dumps(body).encode(), code, **{key.replace("_", "-"): value for key, value in headers.items()})


def then(*behaviours: Behaviour) -> Behaviour:
    """Do one after the other, request by request; the last for ever."""
    left = list(behaviours)
    return lambda handler: (left.pop(0) if len(left) > 1 else left[0])(handler)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    monkeypatch.setattr(connections, "MAX_TRIES", 2)
    with ScriptedServer() as server:
        server.instead[PATH] = counting(size)
        yield server


@pytest.fixture
def counter(server: ScriptedServer) -> AnthropicCounter:
    from memstore.providers.anthropic import AnthropicCounter

    loaded = load_counter("anthropic:claude-x", Settings(anthropic_url=server.url, anthropic_api_key=KEY))
    assert isinstance(loaded, AnthropicCounter)
    return loaded


def test_it_conforms(counter: AnthropicCounter) -> None:
    check_counter(counter)


def test_the_finished_messages_are_counted_by_the_endpoint_once(
    counter: AnthropicCounter, server: ScriptedServer
) -> None:
    counts = [counter.count_messages([{"role": "system", "content": "Be brief."}, USER]) for _ in range(3)]
    ((path, body, headers),) = server.requests
    assert counts == [size(body)] * 3
    assert {count.kind for count in counts} == {"server"}
    assert (path, body["model"]) == (PATH, "claude-x")
    assert KEY in " ".join(headers.values())
    assert body["system"] == [{"type": "text", "text": "Be brief."}]
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": USER["content"]}]}]


def test_nothing_is_asked_about_texts_single_messages_and_instructions_alone(
    counter: AnthropicCounter, server: ScriptedServer
) -> None:
    assert counter.count("ferry") > 0 < counter.count_message(USER)
    assert counter.count_messages([]).kind == counter.count_messages([{"role": "system", "content": "x"}]).kind
    assert counter.count_messages([]).kind == "estimated"
    assert server.requests == []


def test_tool_calls_results_and_definitions_are_sent_in_anthropics_shape() -> None:
    from memstore.providers.anthropic import as_request

    request = as_request([USER, CALL, RESULT], [TOOL])
    _, call, result = request["messages"]
    use = {"type": "tool_use", "id": "a_1", "name": "find", "input": {"what": "ferry"}}
    assert call == {"role": "assistant", "content": [use]}
    told = [{"type": "text", "text": "At nine."}]
    assert result == {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a_1", "content": told}]}
    assert request["tools"] == [{"name": "find", "description": "Finds.", "input_schema": {"type": "object"}}]
    again = as_request(request["messages"], request["tools"])
    assert again == request, "what is Anthropic's already stays"
    undefined = as_request([USER, CALL, RESULT], [])
    assert undefined["tools"] == [{"input_schema": {"type": "object"}, "name": "find"}]
    without_ids = [USER, {"role": "assistant", "tool_calls": [{"function": {"name": "find"}}]}, {"role": "tool"}]
    _, call, result = as_request(without_ids, [])["messages"]
    assert call["content"][0]["id"] == result["content"][0]["tool_use_id"]
    assert as_request([CALL], [])["messages"][0]["role"] == "user", "who has the first word"


def test_parts_of_others_are_estimated(counter: AnthropicCounter) -> None:
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]}
    assert counter.count_messages([image]).kind == "estimated"
    own = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    assert (
        counter.count_messages([{"role": "user", "content": [{"type": "text", "text": "See:"}, own]}]).kind == "server"
    )


def test_a_limit_of_requests_is_waited_for(counter: AnthropicCounter, server: ScriptedServer) -> None:
    limited = failure(429, "rate_limit_error", "too many", retry_after="0.1")
    server.instead[PATH] = then(limited, counting(lambda _: 5))
    assert counter.count_messages([USER]) == Count(5, "server")
    assert len(server.requests) == 2
    server.instead[PATH] = limited
    with pytest.raises(ModelUnavailable, match=r"is away: 429 .*too many.*\"estimated\""):
        counter.count_messages([CALL])


@pytest.mark.parametrize(
    ("code", "kind", "error"),
    [
        (401, "authentication_error", ModelUnavailable),
        (404, "not_found_error", ModelUnavailable),
        (529, "overloaded_error", ModelUnavailable),
        (400, "invalid_request_error", InvalidInput),
        (302, "elsewhere", ProviderError),
    ],
)
def test_a_refusal_is_an_error_without_the_key(
    counter: AnthropicCounter,
    server: ScriptedServer,
    code: int,
    kind: str,
    error: type[Exception],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    server.instead[PATH] = failure(code, kind, f"invalid x-api-key: {KEY}", Location="http://elsewhere/")
    with pytest.raises(error) as caught:
        counter.count_messages([USER])
    assert f"The count endpoint of {server.url}" in str(caught.value)
    assert str(code) in str(caught.value)
    told = "".join(traceback.format_exception(caught.value))
    assert KEY not in told + caplog.text + repr(counter)


def test_an_endpoint_that_is_away_or_slow_is_an_error_in_time(
    counter: AnthropicCounter, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memstore.providers.anthropic.COUNT_TIMEOUT_SECONDS", 0.5)
    server.instead[PATH] = hangs
    begin = time.monotonic()
    with pytest.raises(ModelUnavailable, match=r"did not answer within .* \"estimated\" has"):
        counter.count_messages([USER])
    monkeypatch.setattr("memstore.providers.anthropic.COUNT_TIMEOUT_SECONDS", 10.0)
    with pytest.raises(ModelUnavailable, match="is away"):
        type(counter)("claude-x", "http://127.0.0.1:9").count_messages([USER])
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize("body", [b"<html>", b"{}", b'{"input_tokens": "5"}', b'{"input_tokens": -1}'])
def test_an_answer_without_a_count_is_none(counter: AnthropicCounter, server: ScriptedServer, body: bytes) -> None:
    server.instead[PATH] = raw(body)
    with pytest.raises(ModelUnavailable, match="its answer"):
        counter.count_messages([USER])


def test_the_key_is_the_settings_or_the_environments_and_goes_to_no_other_server(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ProviderMissing, match="MEMSTORE_ANTHROPIC_API_KEY"):
        load_counter("anthropic:claude-x", Settings())
    with pytest.raises(ProviderMissing, match="anthropic:MODEL"):
        load_counter("anthropic:", Settings(anthropic_api_key=KEY))
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", KEY)
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", f"X-Mine: {KEY}")
    assert load_counter("anthropic:claude-x", Settings()).name == "anthropic:claude-x"
    load_counter("anthropic:claude-x", Settings(anthropic_url=server.url)).count_messages([USER])
    assert KEY not in json.dumps(server.requests)
    assert KEY not in repr(Settings(anthropic_api_key=KEY))


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.5])
def test_a_context_of_a_thousand_items_asks_a_few_times_and_keeps_its_budget(
    server: ScriptedServer, url: str, factor: float
) -> None:
    server.instead[PATH] = counting(lambda body: 7 + int(factor * size(body)))
    with memstore.open(url, settings={"embedder": "none", "anthropic_url": server.url}) as store:
        talk = store.user("alice").conversation(f"lisbon-{factor}")
        talk.add_many(
            {"role": ("user", "assistant")[n % 2], "content": f"The ferry number {n} leaves from quay {n % 7}. " * 3}
            for n in range(1000)
        )
        for format in ("openai", "anthropic"):
            server.requests.clear()
            budget = 4000
            context = talk.context(f"Which for {format}?", budget=budget, model="anthropic:claude-x", format=format)
            assert (context.receipt.counter, context.receipt.count) == ("anthropic:claude-x", "server")
            asked = [body for path, body, _ in server.requests]
            assert context.tokens in [7 + int(factor * size(body)) for body in asked]
            assert 0.9 * budget < context.tokens <= budget
            assert len(asked) <= 12
        with pytest.raises(BudgetTooSmall):
            talk.context("Which?", budget=8, model="anthropic:claude-x")
