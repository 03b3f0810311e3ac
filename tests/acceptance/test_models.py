"""Chat models on the command line, with the real client and a server on a real socket; their cost."""

import asyncio
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import memstore
from memstore.models import CallProgress
from tests.command_line import EMBEDDER, Run, script
from tests.model_server import Behaviour, Json, ScriptedServer, raw, says, status
from tests.rest import asking, path

START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)
HASHING = {"embedder": EMBEDDER}
TEA = {
    "sources": [{"message": 1, "quote": "Green tea"}],
    "text": "The user drinks green tea.",
    "type": "preference",
    "subject": "the user",
}


LONG = "It rains, and nothing else is to be told of this day. " * 6  # what is short is its own summary


def talk(url: str) -> None:
    with memstore.open(url, settings=HASHING) as store:
        trip = store.user("alice").conversation("c")
        trip.add("user", f"Green tea for me. {LONG}", occurred_at=START)
        trip.add("user", f"And I live in Leeds. {LONG}", occurred_at=START + timedelta(days=1))


def test_ollama_away_is_told_and_nothing_else_waits_for_it(cli: Run, url: str) -> None:
    talk(url)
    away = {
        "database_url": url,
        "facts_model": "ollama:qwen3:4b-instruct",
        "ollama_url": "http://127.0.0.1:9",
        "ollama_timeout_seconds": "1",
    }
    told = script("derive", **away)
    assert told.code == 0, told.err
    assert "2 messages → 2 chunks" in told.out
    assert "waiting: facts:" in told.err
    assert "running" in told.err, "what to do"
    assert "Traceback" not in told.err
    again = cli("derive", **away)
    assert (again.code, again.out) == (0, "nothing could be done now\n")
    report = cli("derive", "--json", **away).json
    assert (report["failed"], len(report["waiting"]), report["invalid_responses"]) == ([], 1, 0)
    doctor = cli("doctor", **away)
    assert doctor.code == 1
    assert "FAIL facts model:" in doctor.out
    assert "ok   summary model: none" in doctor.out
    assert "ok   derivations: 1 pending" in doctor.out
    assert "ok   facts model: none" in cli("doctor", database_url=url).out


# -- what doctor asks


def models_at(base: str, url: str) -> dict[str, str]:
    timeouts = {f"{each}_timeout_seconds": "2" for each in ("openai", "ollama", "embedding")}
    names = dict.fromkeys(("facts_model", "embedder", "reranker"), "openai:qwen3:4b-instruct")
    places = {"database_url": url, "ollama_url": base, "openai_url": f"{base}/v1"}
    return places | names | timeouts | {"summary_model": "ollama:qwen3:4b-instruct"}


@pytest.mark.parametrize(
    ("trouble", "why"),
    [(status(401, "no"), "refuses"), (status(404, "no"), "has no qwen3:4b-instruct"), (None, "is away")],
)
def test_doctor_asks_each_model(cli: Run, url: str, trouble: Behaviour | None, why: str) -> None:
    with ScriptedServer() as server:
        paths = ("/v1/models", "/v1/chat/completions", "/v1/embeddings", "/v1/rerank", "/api/chat")
        server.instead = dict.fromkeys(paths, trouble) if trouble else {}
        told = cli("doctor", **models_at(server.url if trouble else "http://127.0.0.1:9", url))
    assert told.code == 1
    for what in ("embedder", "reranker", "facts model", "summary model"):
        assert re.search(f"FAIL {what}: .*{why}", told.out), told.out


def test_doctor_shows_what_the_models_can_do(cli: Run, url: str) -> None:
    with ScriptedServer() as server:
        refusal = raw(b'{"error": {"message": "response_format: json_schema is unknown"}}', 400)
        server.script += [refusal, says({"ok": True}), says({"ok": True})]
        told = cli("doctor", **models_at(server.url, url))
    assert told.code == 0, told.out
    assert "openai:qwen3:4b-instruct gives vectors of 3 dimensions" in told.out
    assert "openai:qwen3:4b-instruct gives 2 scores for 2 texts" in told.out
    of_openai = "a window of 40,960 tokens (told by the server), JSON asked for as json_object_with_schema"
    assert f"facts model: openai:qwen3:4b-instruct answers, with {of_openai}" in told.out
    assert "answers, with a window of 8,192 tokens (allotted), JSON asked for as json_schema" in told.out
    assert "asking ollama:qwen3:4b-instruct; a model that must be loaded first" in told.err


def test_doctor_warns_of_models_that_think_and_of_limits_that_are_too_small(cli: Run, url: str) -> None:
    def summary_model(tokens: int, **settings: str) -> str:
        names = dict.fromkeys(("facts_model", "embedder"), "none") | {"summary_model": "ollama:qwen3:4b-instruct"}
        with ScriptedServer([says({"ok": True}, eval_count=tokens)]) as server:
            server.capabilities, server.allotted = capabilities, None
            told = cli("doctor", ollama_url=server.url, database_url=url, **names, **settings)
        assert told.code == 0, told.out
        return next(line for line in told.out.splitlines() if "summary model" in line)

    capabilities = ["completion", "thinking"]
    assert "an instruct model is safer" in summary_model(5)
    capabilities = ["completion"]
    assert summary_model(5, ollama_timeout_seconds="300").endswith("JSON asked for as json_schema")
    assert "it wrote 300 tokens where a few were asked for" in summary_model(300)
    few = summary_model(5, ollama_num_ctx="2048", ollama_timeout_seconds="60")
    assert "a window of 8,192 tokens or more" in few
    assert "60 seconds are few for a model without a GPU: MEMSTORE_OLLAMA_TIMEOUT_SECONDS=300 or more" in few


def test_stats_and_doctor_say_what_was_not_believed(cli: Run, url: str) -> None:
    talk(url)
    three, four = (TEA | {"text": f"The user drinks {number} teas."} for number in ("3", "4.5"))
    unsaid = TEA | {"text": "The user has a dog.", "sources": [{"message": 1, "quote": "my dog"}]}
    with ScriptedServer() as server:
        answers = ({"facts": [three, unsaid, unsaid, four]}, "no", "no", {"ok": True})
        server.script += [says(answer, prompt_eval_count=900) for answer in answers]
        settings = settings_of(server, url, summary_model="none")
        report, stats = cli("derive", "--json", **settings).json, cli("stats", "--json", **settings).json
        told = cli("doctor", **settings).out
    for counts in (report, stats):
        assert (counts["invalid_responses"], counts["refused"]) == (1, 4)
    assert "2 because nobody has said the number; 2 because its quote stands nowhere; 1 because ollama:qwen3" in told


# What calls cost: shown while they run, counted as the server counts, by user and deriver, in money


DERIVERS = ("summaries", "facts")
PRICES = {"summary_price": "1/10", "facts_price": "0.25/2"}


class CountingOllama(ScriptedServer):
    """A server that counts: whose words a call had, for what, and its tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.counted: list[tuple[str, str, int, int]] = []  # user, deriver, tokens in and out

    def next(self, body: Json) -> Behaviour:
        is_summary = "summary" in json.dumps(body["format"])
        user = "bob" if "Bob" in body["messages"][-1]["content"] else "alice"
        tokens = (1000 + 7 * len(self.counted), 30 + len(self.counted))
        self.counted.append((user, DERIVERS[not is_summary], *tokens))
        return says(
            {"summary": f"{user.title()} saw places."} if is_summary else {"facts": []},
            prompt_eval_count=tokens[0],
            eval_count=tokens[1],
        )

    def total(self, *users: str) -> dict[str, tuple[int, int, int]]:
        mine = {name: [one for one in self.counted if one[1] == name and one[0] in users] for name in DERIVERS}
        return {
            name: (len(calls), sum(each[2] for each in calls), sum(each[3] for each in calls))
            for name, calls in mine.items()
        }


@pytest.fixture
def server() -> Iterator[CountingOllama]:
    with CountingOllama() as server:
        yield server


def settings_of(server: ScriptedServer, url: str, **more: str) -> dict[str, str]:
    named = "ollama:qwen3:4b-instruct"
    return {"database_url": url, "facts_model": named, "summary_model": named, "ollama_url": server.url} | more


def talk_for_days(url: str, user: str, days: int = 3, conversation: str = "c") -> None:
    """Add some messages a day: each day is a segment."""
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        place = store.user(user).conversation(conversation)
        for day in range(days):
            for text in (f"Here is {user.title()}.", f"I saw place {day}. {LONG}"):
                place.add("user", text, occurred_at=START + timedelta(days=day))


def by_deriver(usage: Any) -> dict[str, tuple[int, int, int]]:
    rows = [one if isinstance(one, dict) else {name: getattr(one, name) for name in FIELDS} for one in usage]
    return {one["deriver"]: tuple(one[name] for name in FIELDS[1:]) for one in rows}  # type: ignore[misc]


FIELDS = ("deriver", "calls", "prompt_tokens", "completion_tokens")


def money(total: dict[str, tuple[int, int, int]]) -> dict[str, float]:
    (_, read, written), (_, more_read, more_written) = total["summaries"], total["facts"]
    return {
        "summaries": (read * 1 + written * 10) / 1e6,
        "facts": (more_read * 0.25 + more_written * 2) / 1e6,
    }


# -- while they run


def test_each_call_is_told_as_it_begins_and_as_it_ends(server: CountingOllama, url: str) -> None:
    talk_for_days(url, "alice")
    told: list[CallProgress] = []
    with memstore.open(settings=settings_of(server, url) | {"embedder": EMBEDDER}) as store:
        report = store.derive(on_call=told.append)
    facts = [one for one in told if one.usage.deriver == "facts"]
    assert [one.has_ended for one in facts] == [False, True] * 3
    assert [one.asked_at is None for one in facts] == [False, True] * 3
    assert [one.usage.calls for one in facts] == [0, 1, 1, 2, 2, 3]
    assert [(one.done, one.total) for one in facts[::2]] == [(0, 6), (2, 6), (4, 6)]
    assert [one.seconds_left is None for one in facts] == [True, True, False, False, False, False]
    assert facts[-1].usage in report.usage


# -- afterwards


async def test_stats_and_rest_have_what_the_server_counted_of_each_user(
    server: CountingOllama, cli: Run, url: str
) -> None:
    await asyncio.to_thread(talk_for_days, url, "alice")
    await asyncio.to_thread(talk_for_days, url, "bob", 2)
    prices = settings_of(server, url, **PRICES)
    async with await memstore.open_async(settings=prices | {"embedder": EMBEDDER}) as store:
        report = await store.derive()
        everybody, bob = server.total("alice", "bob"), server.total("bob")
        assert bob["facts"][0] == 2
        assert by_deriver(report.usage) == everybody
        assert {one.deriver: one.cost for one in report.usage} == pytest.approx(money(everybody))
        token = (await store.tokens.create(user="bob")).secret
        async with asking(store, token=(await store.tokens.create()).secret) as operator:
            stats = (await operator.get("/v1/stats")).json()
            assert stats["users"] == 2
            assert by_deriver(stats["usage"]) == everybody
            seen = (await operator.get(path("alice"))).json()["usage"]
            assert by_deriver(seen) == server.total("alice")
        async with asking(store, token=token, allow_local=False) as tenant:
            seen = (await tenant.get(path("bob"))).json()["usage"]
            assert by_deriver(seen) == bob
            assert {one["deriver"]: one["cost"] for one in seen} == pytest.approx(money(bob))
            assert (await tenant.get(path("alice"))).status_code in (403, 404)
            assert (await tenant.get("/v1/stats")).status_code == 403
    shown = await asyncio.to_thread(cli, "stats", "--user", "bob", "--json", **prices)
    assert by_deriver(shown.json["usage"]) == bob
    calls, read, written = bob["facts"]
    text = (await asyncio.to_thread(cli, "stats", "--user", "bob", **prices)).out
    assert f"{calls} calls of ollama:qwen3:4b-instruct: {read:,} tokens in, {written:,} out" in text
    assert f"cost {money(bob)['facts']:.4f}" in text


def test_a_plan_reckons_with_what_calls_took_here(cli: Run, url: str) -> None:
    talk_for_days(url, "alice", days=4)
    with CountingOllama() as server:
        prices = settings_of(server, url, **PRICES)
        first = cli("backfill", "plan", "--json", **prices).json
        assert first["model_tokens"] > 0, "they are assumed"
        assert cli("derive", **prices).code == 0
        total = server.total("alice")
        talk_for_days(url, "bob", days=8)
        plan = cli("backfill", "plan", "--json", **prices).json
        for name, (calls, read, written) in total.items():
            planned = plan["derivers"][name]
            share = planned["calls"] / calls
            assert planned["calls"] >= 7
            tokens = (planned["prompt_tokens"], planned["answer_tokens"])
            assert tokens == pytest.approx((share * read, share * written), abs=1)
        ran = cli("backfill", "run", **prices)
        new = server.total("bob")
        calls, read, written = (sum(numbers) for numbers in zip(*new.values(), strict=True))
        assert f"{calls} calls of chat models: {read:,} tokens in, {written:,} out" in ran.out
