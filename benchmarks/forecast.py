#!/usr/bin/env python3
"""What a plan of a backfill says it will take, beside what it took: time and tokens, on four histories.

    benchmarks/forecast.py --data FOLDER [--most 800] [--ask 20] [-c 4] [--json FILE]

locomo     two people who chat for months
beam       a user and an assistant, long answers with code
short      the sentences of the first one, each a message of its own, as in a chat of short messages
tools      forty sessions of an assistant with tools, made up: most tokens are results of calls

Time is that of a worker with the embedder that is set, all derivers, no chat model; goal: within 30 %. Tokens are those
of a chat model for summaries and facts: as a plan assumes them, after asking it about a few stretches (goal: within
5 %), and as known from calls so far, here those about the few. The model is made up as well. It copies what it is
shown, more of it where more is said, and knows of its prompts only how many bytes they have, as a model of Ollama's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
from backfill import DEFAULT
from data import Missing, file, objects
from databases import made
from report import Cell, Table, reported
from toolsession import drawn

from memstore.memory.worker import WorkingStore
from memstore.models import BackfillPlan
from memstore.providers import ChatMessage, Completion, T, load_counter

SESSIONS, MESSAGES = 40, 20
HISTORIES = {"locomo": "locomo-dev", "beam": "beam-100K-dev", "short": "locomo-dev", "tools": None}
SENTENCES = re.compile(r"(?<=[.!?])\s+")


class Copyist:
    """A ChatModel without weights: its answers are made of the words that it is shown."""

    name = "copyist"
    context_tokens = 32_768

    def __init__(self) -> None:
        self._count = load_counter("tiktoken:o200k_base").count

    def bound(self, messages: Sequence[ChatMessage]) -> int:
        """Give the bytes, and what a server puts around them."""
        return 756 + sum(16 + len(message["content"].encode()) for message in messages)

    def complete(self, messages: Sequence[ChatMessage], schema: type[T], *, max_tokens: int) -> Completion[T]:
        """Give the beginnings of what was said, or as a fact each statement of somebody about themselves."""
        shown = [json.loads(line) for line in messages[1]["content"].splitlines() if line.startswith("{")]
        text = json.dumps(self._facts(shown) if "facts" in schema.model_fields else self._summary(shown, max_tokens))
        prompt_tokens = sum(8 + self._count(message["content"]) for message in messages)
        return Completion(schema.model_validate_json(text), prompt_tokens, self._count(text))

    def _summary(self, shown: Sequence[dict[str, Any]], max_tokens: int) -> dict[str, str]:
        words: list[str] = []
        for one in shown:
            words += f"{one['from']}: {one['text']}".split()[:14]
        return {"summary": " ".join(words[: max_tokens // 4])}

    def _facts(self, shown: Sequence[dict[str, Any]]) -> dict[str, Any]:
        said = [(one, found) for one in shown for found in re.findall(r"\b(?:I|my|we)\b[^.?!\n]{20,90}", one["text"])]
        return {"facts": [self._fact(one, quote) for one, quote in said[:10]]}

    def _fact(self, one: dict[str, Any], quote: str) -> dict[str, Any]:
        known = {"type": "event", "kind": "episodic", "subject": one["from"], "language": "en", "confidence": 0.8}
        unknown = dict.fromkeys(("attribute", "value", "valid_from", "valid_to"))
        return known | unknown | {"text": quote, "sources": [{"message": one["message"], "quote": quote}]}


def messages_of(name: str, data: Path, most: int) -> Iterator[dict[str, Any]]:
    """Give the messages of a history, in memstore-jsonl."""
    if found := HISTORIES[name]:
        said = objects(file(data, found))
        each = _sentences(said) if name == "short" else said
        for number, one in zip(range(most), each, strict=False):
            yield one | {"external_id": f"{number}"}
        return
    for seed in range(SESSIONS * most // 800):
        for number, one in enumerate(drawn(seed, MESSAGES).messages[:MESSAGES]):
            yield one | {"user": f"user{seed % 4}", "conversation": f"session{seed}", "external_id": f"{seed}:{number}"}


def _sentences(said: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (one | {"content": sentence} for one in said for sentence in SENTENCES.split(one["content"]) if sentence)


async def timed(url: str, embedder: str, concurrency: int) -> tuple[BackfillPlan, float]:
    """Give the plan, which says how many seconds it takes, and those that it takes."""
    async with await WorkingStore.open(url, settings={"embedder": embedder}) as store:
        plan = await store.calibrated(await store.backfills.plan(), concurrency=concurrency)
        assert plan.seconds is not None
        backfill = await store.backfills.begin()
        began = time.perf_counter()
        await store.work_until_done(backfill, lambda _: None, concurrency=concurrency)
        return plan, time.perf_counter() - began


async def counted(url: str, ask: int, concurrency: int) -> tuple[list[BackfillPlan], int, int]:
    """Give the plan that assumes, the one that asks, and the one that knows, the tokens of the run and of asking."""
    async with await WorkingStore.open(url, settings={"embedder": "hashing:64"}) as store:
        store._opened.__dict__["chat_models"] = (Copyist(), Copyist())
        plans = [await store.backfills.plan(), await store.backfills.plan(ask=ask), await store.backfills.plan()]
        before = spent(url)
        backfill = await store.backfills.begin()
        await store.work_until_done(backfill, lambda _: None, concurrency=concurrency)
        return plans, spent(url) - before, before


def spent(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "select coalesce(sum(prompt_tokens + completion_tokens), 0) from model_usage"
        ).fetchone()
    assert row is not None
    return int(row[0])


def off(told: float, was: float) -> str:
    return f"{told / was - 1:+.1%}"


async def tables(options: argparse.Namespace) -> list[Table]:
    """Measure each history, in a store of its own."""
    times: list[list[Cell]] = []
    tokens: list[list[Cell]] = []
    for name in options.histories:
        with tempfile.TemporaryDirectory(prefix="memstore-bench-") as temporary:
            path, count = Path(temporary) / "history.jsonl", 0
            with path.open("w", encoding="utf-8") as out:
                for count, one in enumerate(messages_of(name, options.data, options.most), 1):  # noqa: B007
                    out.write(json.dumps(one, ensure_ascii=False) + "\n")
            async with await WorkingStore.open(f"embedded:{temporary}/store", settings={"embedder": "none"}) as store:
                async with await WorkingStore.open(made(store.url, "given"), settings={"embedder": "none"}) as given:
                    await given.import_file(path)
                first, second = (made(store.url, name, of="given") for name in ("first", "second"))
                if "time" in options.parts:
                    before = os.getloadavg()[0]
                    plan, took = await timed(first, options.embedder, options.concurrency)
                    least, most = (round(one, 1) for one in plan.seconds_between or (0.0, 0.0))
                    told, load = plan.seconds or 0.0, f"{before:.1f}, {os.getloadavg()[0]:.1f}"
                    between = f"{least} to {most}"
                    times.append([name, count, round(told, 1), between, round(took, 1), off(told, took), load])
                    print(*times[-1], flush=True)
                if "tokens" in options.parts:
                    plans, used, cost = await counted(second, options.ask, options.concurrency)
                    tokens.append([name, count, used, *(off(one.model_tokens, used) for one in plans), cost])
                    print(*tokens[-1], flush=True)
    head = ("history", "messages")
    return [
        Table(
            "time",
            f"Time of a backfill, in seconds, {options.embedder}; load before and after",
            (*head, "forecast", "between", "took", "off", "load"),
            times,
        ),
        Table(
            "tokens",
            f"Tokens of chat models, and how far a forecast is off that assumes, asks about {options.ask}, or knows",
            (*head, "spent", "assumed", "asked", "known", "asking took"),
            tokens,
        ),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("histories", nargs="*", default=list(HISTORIES), help="of locomo, beam, short, tools")
    parser.add_argument("--data", type=Path, required=True, help="the folder with the data sets")
    parser.add_argument("--most", type=int, default=800, help="messages of a history, at most")
    parser.add_argument("--ask", type=int, default=20, help="stretches that the model is asked about, by each deriver")
    parser.add_argument("-c", "--concurrency", type=int, default=4)
    parser.add_argument("--embedder", default=DEFAULT)
    parser.add_argument("--parts", nargs="+", default=["time", "tokens"], choices=["time", "tokens"])
    parser.add_argument("--json", type=Path, help="write the figures")
    options = parser.parse_args()
    try:
        found = asyncio.run(tables(options))
    except Missing as reason:
        print(f"skipped: {reason}")
        return 0
    reported(found, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
