"""Chat models on the command line, with the real client and a server on a real socket; and in a pool of one."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import memstore
from memstore.providers import ChatMessage
from tests.command_line import EMBEDDER, Run, script
from tests.helpers.fakes import Scripted, ScriptedChatModel
from tests.ollama_server import Behaviour, says as says_of

START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)
HASHING = {"embedder": EMBEDDER}
TEA = {
    "sources": [{"message": 1, "quote": "Green tea"}],
    "text": "The user drinks green tea.",
    "type": "preference",
    "subject": "the user",
}


def says(content: str | dict[str, Any]) -> Behaviour:
    """Answer, having read more tokens than any prompt here has words."""
    return says_of(content, prompt_eval_count=2000)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


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
        "facts_model": "ollama:qwen3:4b",
        "ollama_url": f"http://127.0.0.1:{free_port()}",
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


# -- no connection is held while a model works


def answers(use: Callable[[], object]) -> tuple[ScriptedChatModel, ScriptedChatModel]:
    """Give models that use the store before they answer: one writes summaries, the other finds facts."""

    def answer(scripted: Scripted) -> Callable[[Sequence[ChatMessage]], Scripted]:
        def after(_: Sequence[ChatMessage]) -> Scripted:
            use()
            return scripted

        return after

    summary, facts = answer({"summary": "The user drinks tea."}), answer({"facts": [TEA]})
    return ScriptedChatModel([summary] * 3), ScriptedChatModel([facts, answer("no use")])


async def test_a_pool_of_one_answers_while_a_chat_model_works_in_async_code(url: str) -> None:
    talk(url)
    loop = asyncio.get_running_loop()
    async with await memstore.open_async(url, settings=HASHING | {"pool_size": 1}) as store:
        trip = store.user("alice").conversation("c")

        def use() -> None:
            used: Any = asyncio.run_coroutine_threadsafe(trip.messages(), loop)
            used.result(timeout=10)

        store._runtime.chat_models = answers(use)
        report = await store.derive()
        assert (report.failed, report.waiting, report.invalid_responses) == ((), (), 1)
        assert (await trip.summarize()).text == "The user drinks tea."
