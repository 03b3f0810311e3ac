"""The chat model over Ollama, through the real client, against a server on a real socket that misbehaves."""

from __future__ import annotations

import json
import pickle
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from pydantic import BaseModel

from memstore import settings
from memstore.errors import (
    ConfigurationError,
    ModelAnswerInvalid,
    ModelUnavailable,
    PromptTooLong,
    ProviderError,
    ProviderMissing,
)
from memstore.providers import load_chat_model
from memstore.providers.ollama import OllamaModel, load
from memstore.providers.services import FEEDBACK
from memstore.testing import check_chat_model
from tests import ollama_server as does
from tests.ollama_server import ScriptedOllama, says, status


class Trip(BaseModel):
    city: str
    days: int


GOOD = {"city": "Lisbon", "days": 3}
PROMPT = [{"role": "system", "content": "Say where."}, {"role": "user", "content": "Three days in Lisbon."}]


@pytest.fixture
def server() -> Iterator[ScriptedOllama]:
    with ScriptedOllama() as server:
        yield server


def model_of(server: ScriptedOllama, **options: Any) -> OllamaModel:
    return OllamaModel("qwen3:4b", **{"url": server.url, "timeout": 10.0, "backoff": 0.01} | options)


def ask(model: OllamaModel, prompt: list[dict[str, str]] = PROMPT, max_tokens: int = 100) -> Trip:
    return model.complete(prompt, Trip, max_tokens=max_tokens).answer


def user(text: str) -> list[dict[str, str]]:
    return [PROMPT[0], {"role": "user", "content": text}]


def test_an_answer_is_read_and_its_cost_told(server: ScriptedOllama) -> None:
    server.script.append(says(GOOD))
    made = model_of(server).complete(PROMPT, Trip, max_tokens=100)
    assert made.answer == Trip(city="Lisbon", days=3)
    assert (made.prompt_tokens, made.completion_tokens) == (100, 20)


def test_every_request_forbids_cutting_and_chance(server: ScriptedOllama) -> None:
    server.script += [says("no"), says(GOOD)]
    ask(model_of(server))
    assert len(server.asked()) == 2
    for body in server.asked():
        assert (body["model"], body["stream"], body["truncate"], body["shift"]) == ("qwen3:4b", False, False, False)
        assert body["format"] == Trip.model_json_schema()
        assert body["options"] == {
            "num_ctx": 8192, "num_predict": 100, "temperature": 0, "seed": 1, "repeat_penalty": 1.0,
        }  # fmt: skip
        assert body["keep_alive"]
        assert body["think"] is False


def test_a_model_that_cannot_think_is_not_told_to_stop_it(server: ScriptedOllama) -> None:
    server.capabilities = ["completion"]
    server.script.append(says(GOOD))
    ask(model_of(server))
    assert "think" not in server.asked()[0]


def test_the_fake_conforms(server: ScriptedOllama) -> None:
    server.script.append(says({"word": "ferry"}))
    check_chat_model(model_of(server))


# What is had of the server before anything is asked


def test_the_name_holds_the_digest(server: ScriptedOllama) -> None:
    model = model_of(server)
    assert server.requests == []
    assert model.name == model.name == "ollama:qwen3:4b@a80c4f17acd5"
    assert [path for path, _, _ in server.requests] == ["/api/show", "/api/tags"]


def test_a_name_without_a_tag_is_the_latest(server: ScriptedOllama) -> None:
    server.model = "qwen3:latest"
    assert OllamaModel("qwen3", url=server.url).name == "ollama:qwen3@a80c4f17acd5"


def test_a_server_that_lists_no_digest_leaves_it_out(server: ScriptedOllama) -> None:
    server.instead["/api/tags"] = does.raw(b'{"models": null}')
    assert model_of(server).name == "ollama:qwen3:4b"


def test_the_window_is_not_larger_than_the_model_was_trained_for(server: ScriptedOllama) -> None:
    server.trained = 2048
    assert model_of(server).context_tokens == 2048
    server.trained = None
    assert model_of(server).context_tokens == 8192


@pytest.mark.parametrize("path", ["/api/show", "/api/tags"])
def test_no_name_is_guessed_while_the_server_is_away(server: ScriptedOllama, path: str) -> None:
    server.instead[path] = status(503, "starting")
    with pytest.raises(ModelUnavailable, match="503 starting"):
        print(model_of(server).name)


def test_a_missing_model_says_how_to_get_it(server: ScriptedOllama) -> None:
    with pytest.raises(ModelUnavailable, match=r"ollama pull llama3\.2"):
        ask(OllamaModel("llama3.2", url=server.url))


def test_a_model_for_embeddings_is_refused(server: ScriptedOllama) -> None:
    server.capabilities = ["embedding"]
    with pytest.raises(ProviderMissing, match="only embedding"):
        ask(model_of(server))


# Away for a moment


@pytest.mark.parametrize(
    "trouble",
    [
        status(500, "llama runner process has terminated"), status(502, "bad gateway"), status(503, "server busy"),
        status(429, "too many requests"), status(408, "timeout"), does.raw(b"<html>502</html>", 502),
        does.raw(b'"bad gateway"', 502), does.raw(b"[]", 504), does.raw(b"", 500),
        does.raw(b'{"error": "an error was encountered while running the model"}'), does.raw(b"not json"),
        does.raw(b"[1]"), does.raw(b"[" * 100_000), does.raw(b"\xff\xfe"), does.raw(b""),
        does.resets_before_headers, does.resets_in_the_body, does.closes_in_the_body,
        says(GOOD, done=None, done_reason=None), says(GOOD, done=False),
        does.raw(json.dumps(does.chat("{")).encode() + b"\n" + json.dumps(does.chat("}")).encode()),
    ],
)  # fmt: skip
def test_what_may_pass_is_tried_again(server: ScriptedOllama, trouble: does.Behaviour) -> None:
    server.script += [trouble, says(GOOD)]
    assert ask(model_of(server)).city == "Lisbon"
    server.script += [trouble] * 4
    with pytest.raises(ModelUnavailable, match="is away"):
        ask(model_of(server))
    assert len(server.asked()) == 6


def test_nobody_at_the_address() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        model = OllamaModel("qwen3:4b", url=f"http://127.0.0.1:{bound.getsockname()[1]}", backoff=0.01)
        with pytest.raises(ModelUnavailable, match="is away: ConnectionError"):
            ask(model)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made, which are none here."""
    made: list[float] = []
    monkeypatch.setattr(time, "sleep", made.append)
    return made


def test_a_server_that_says_when_is_asked_then(server: ScriptedOllama, waits: list[float]) -> None:
    server.script += [status(429, "slow down", retry_after="7"), says(GOOD)]
    assert ask(model_of(server)).days == 3
    assert waits == [7]


def test_pauses_grow_and_differ(server: ScriptedOllama, waits: list[float]) -> None:
    for _ in range(2):
        server.script += [status(503, "busy")] * 3 + [says(GOOD)]
        ask(model_of(server, backoff=0.1))
    first, second = waits[:3], waits[3:]
    assert first != second
    for pauses in (first, second):
        assert all(0.5 <= pause / (0.1 * 2**number) <= 1.5 for number, pause in enumerate(pauses))


@pytest.mark.parametrize(
    "when", ["3600", format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)], ids=["seconds", "date"]
)
def test_no_wait_goes_beyond_the_time_limit(server: ScriptedOllama, when: str) -> None:
    server.script.append(status(429, "slow down", retry_after=when))
    with pytest.raises(ModelUnavailable, match="429 slow down"):
        ask(model_of(server, backoff=0))
    assert len(server.asked()) == 1


@pytest.mark.parametrize("when", ["soon", "", "-5", "Fri, 31 Feb 2026 09:00:00 GMT"])
def test_a_retry_after_without_sense_is_no_obstacle(server: ScriptedOllama, when: str) -> None:
    server.script += [status(503, "busy", retry_after=when), says(GOOD)]
    assert ask(model_of(server)).days == 3


@pytest.mark.parametrize("hanging", [does.hangs_before_headers, does.hangs_in_the_body, does.drips, does.drips_headers])
@pytest.mark.parametrize("path", ["/api/chat", "/api/show", "/api/ps"])
def test_nothing_hangs(server: ScriptedOllama, hanging: does.Behaviour, path: str) -> None:
    server.instead[path] = hanging
    server.script.append(says(GOOD))
    if path == "/api/ps":  # what cannot be asked aside is done without
        assert ask(model_of(server, timeout=0.5)).city == "Lisbon"
        return
    with pytest.raises(ModelUnavailable, match=r"did not answer within|is away"):
        ask(model_of(server, timeout=0.5))


# What the server refuses


@pytest.mark.parametrize("code", [400, 422])
def test_a_refused_request_is_not_repeated(server: ScriptedOllama, code: int) -> None:
    server.script.append(status(code, "invalid format"))
    with pytest.raises(ProviderError, match=r"refuses the request .*invalid format") as raised:
        ask(model_of(server))
    assert raised.type is ProviderError
    assert len(server.asked()) == 1


def test_a_key_that_is_missing_makes_it_unavailable(server: ScriptedOllama) -> None:
    server.script.append(status(401, "unauthorized"))
    with pytest.raises(ModelUnavailable, match="OLLAMA_API_KEY"):
        ask(model_of(server))


def test_what_was_said_is_sent_to_no_other_server(server: ScriptedOllama) -> None:
    with ScriptedOllama() as other:
        server.script.append(does.raw(b"{}", 307, location=f"{other.url}/api/chat"))
        with pytest.raises(ProviderError, match="307"):
            ask(model_of(server))
        assert other.requests == []


def test_the_environment_leads_nowhere_else(server: ScriptedOllama, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_words_around_the_json_are_forgiven(server: ScriptedOllama, said: str) -> None:
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
        ('{"city": "Lisbon", "days": 3}', {"done_reason": "length", "eval_count": 100}, "cut off after 100 tokens"),
        ("", {"done_reason": "load"}, "cut off"),
    ],
)
def test_an_answer_that_cannot_be_used_is_asked_for_once_more_and_then_kept(
    server: ScriptedOllama, said: str, fields: dict[str, Any], feedback: str
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
def test_an_answer_without_a_text_is_one_that_cannot_be_used(server: ScriptedOllama, message: object) -> None:
    server.script += [says("", message=message), says(GOOD)]
    assert ask(model_of(server)).city == "Lisbon"


def test_the_feedback_has_the_room_that_was_kept_for_it(server: ScriptedOllama) -> None:
    class Long(BaseModel):
        model_config = {"extra": "forbid"}

    server.script += [says({"ш" * 5000: 1, "и" * 5000: 2}), says({})]
    model = model_of(server)
    model.complete(PROMPT, Long, max_tokens=100)
    first, second = (body["messages"][1]["content"].encode() for body in server.asked())
    assert len(first) < len(second) <= len(first) + FEEDBACK


# Whether the prompt fits


def test_what_may_not_fit_is_not_sent(server: ScriptedOllama) -> None:
    model = model_of(server)
    room = model.context_tokens - 100 - model.max_prompt_tokens(user(""))
    server.script.append(says(GOOD))
    ask(model, user("x" * room))
    for text in ("x" * (room + 1), "語" * (room // 3 + 1), "\ud800" * (room + 1)):
        with pytest.raises(PromptTooLong, match="Nothing was sent"):
            ask(model, user(text))
    with pytest.raises(PromptTooLong):
        ask(model, max_tokens=8192)
    assert len(server.asked()) == 1


def test_a_lone_surrogate_is_sent_as_the_replacement_character(server: ScriptedOllama) -> None:
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
def test_a_server_that_says_it_is_too_long_is_believed(server: ScriptedOllama, code: int, told: str) -> None:
    server.script.append(status(code, told))
    with pytest.raises(PromptTooLong, match="window that Ollama gave"):
        ask(model_of(server))
    assert len(server.asked()) == 1


def test_gos_cancelled_contexts_are_not_the_models(server: ScriptedOllama) -> None:
    server.script += [status(500, "context deadline exceeded"), says(GOOD)]
    assert ask(model_of(server)).days == 3


def test_an_answer_to_a_prompt_that_was_cut_is_thrown_away(server: ScriptedOllama) -> None:
    server.script += [says(GOOD, prompt_eval_count=200), says("", done_reason="length", prompt_eval_count=200)]
    with pytest.raises(PromptTooLong, match="read 200 tokens of a prompt of 302 words"):
        ask(model_of(server), user("word " * 300))


@pytest.mark.parametrize("counted", [12, 0, None])
def test_a_count_that_leaves_out_the_cache_is_not_taken_for_a_cut(server: ScriptedOllama, counted: int | None) -> None:
    server.script += [
        says(GOOD, prompt_eval_count=counted),
        says("{", done_reason="length", prompt_eval_count=410),
    ]
    assert ask(model_of(server), user("word " * 300)).city == "Lisbon"
    first, again = (body["messages"] for body in server.asked())
    assert again[0]["content"] != first[0]["content"]
    assert again[0]["content"].endswith(first[0]["content"])
    assert server.asked()[1]["options"]["num_predict"] == 1


def test_a_smaller_window_than_asked_for_is_noticed_and_kept_to(server: ScriptedOllama) -> None:
    server.allotted = 4096
    server.script += [says(GOOD, prompt_eval_count=5000)] + [says(GOOD)] * 3
    model = model_of(server)
    with pytest.raises(PromptTooLong, match="window of 4096"):
        ask(model, user("x" * 5000))
    assert model.context_tokens == 4096
    assert ask(model).city == "Lisbon"
    server.allotted = 8192  # loaded anew
    ask(model)
    assert model.context_tokens == 8192


def test_a_template_that_is_longer_than_thought_is_learnt(server: ScriptedOllama) -> None:
    model = model_of(server)
    before = model.max_prompt_tokens(PROMPT)
    server.script.append(says(GOOD, prompt_eval_count=8150))
    with pytest.raises(PromptTooLong, match="more than its bound"):
        ask(model)
    assert model.max_prompt_tokens(PROMPT) == 8150
    assert before < 8150


def test_a_model_pulled_anew_meanwhile_gets_another_name(server: ScriptedOllama) -> None:
    model = model_of(server)
    before = model.name
    server.digest = "f" * 64
    server.script += [says(GOOD)] * 2
    with pytest.raises(ModelUnavailable, match="pulled anew"):
        ask(model)
    assert model.name == "ollama:qwen3:4b@ffffffffffff" != before
    assert ask(model).days == 3


@pytest.mark.parametrize("told", [status(404, "404 page not found"), does.raw(b'{"models": [{"name": 1}, 2]}')])
def test_a_server_that_tells_no_window_is_done_without(server: ScriptedOllama, told: does.Behaviour) -> None:
    server.instead["/api/ps"] = told
    server.script.append(says(GOOD))
    assert ask(model_of(server)).city == "Lisbon"


# The settings


def test_none_is_no_model_and_a_name_is_needed() -> None:
    assert load_chat_model("none") is None
    with pytest.raises(ProviderMissing, match="ollama list"):
        load("", settings.load({}))
    with pytest.raises(ProviderMissing, match=r"memstore\.chat_models"):
        load_chat_model("nobody:x")


def test_it_is_found_by_its_name_and_told_the_settings(server: ScriptedOllama) -> None:
    server.script.append(says(GOOD))
    server.allotted = 4096
    model = load_chat_model("ollama:qwen3:4b", settings.load({"ollama_url": server.url, "ollama_num_ctx": 4096}))
    assert model is not None
    assert model.context_tokens == 4096
    assert model.complete(PROMPT, Trip, max_tokens=10).answer.city == "Lisbon"
    assert server.asked()[0]["options"]["num_ctx"] == 4096


@pytest.mark.parametrize("url", ["", "localhost:11434", "ftp://x", "http://", "http://x:port"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="ollama_url"):
        settings.load({"ollama_url": url})


def test_without_the_library_its_absence_is_told() -> None:
    code = (
        "import sys; sys.modules['ollama'] = None\n"
        "from memstore.errors import ProviderMissing\n"
        "try:\n    import memstore.providers.ollama\n"
        "except ProviderMissing as error:\n    print(error)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ".[ollama]" in result.stdout
