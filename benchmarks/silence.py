"""Measure when a memory keeps silent: python benchmarks/silence.py [--data ../shared/data]

Two measurements, with the floor that coding agents have by default:

1. The hook's contexts for 60 prompts that need a memory and 60 that need none (tests/data/silence), with 4, 44 and
   4,000 messages stored. The other messages are LoCoMo's, and those of BEAM's users.
2. Contexts of 1,000 tokens for the questions of LoCoMo and BEAM: how many get no hits of another user's store, and
   which share of the evidence that a context has without a floor is lost by it.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import data as data_sets
from contexts import Told

import memstore
from memstore.context.relevance import DEFAULT_MIN_RELEVANCE
from memstore.settings import ONNX_MINILM

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.helpers.silence import BUDGET, add_memories, ask_hook

SETTINGS = {"embedder": ONNX_MINILM, "receipt_retention_days": 0}
SIZES = (4, 44, 4_000)


async def add_talk(store: memstore.AsyncMemoryStore, user: str, folder: Path, count: int) -> None:
    """Store so many messages of others as the user's own."""
    texts = [each["content"] for each in data_sets.objects(data_sets.file(folder, "locomo-dev"))]
    for name in ("beam-100K-dev", "beam-500K-dev"):
        texts += [each["content"] for each in data_sets.objects(data_sets.file(folder, name)) if each["role"] == "user"]
    random.Random(7).shuffle(texts)
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    for start in range(0, count, 40):
        at = begin + timedelta(days=start // 13)
        turns = [
            {"role": "user", "content": text, "occurred_at": at + timedelta(minutes=minute)}
            for minute, text in enumerate(texts[start : min(start + 40, count)])
        ]
        await store.user(user).conversation(f"talk {start}").add_many(turns)


async def measure_hook(folder: Path, root: Path) -> None:
    for size in SIZES:
        async with await memstore.open_async(f"embedded:{root}/{size}", settings=SETTINGS) as store:
            stored = await add_memories(store, "anna", size)
            if size > len(stored) + 10:
                await add_talk(store, "anna", folder, size - len(stored))
            await store.derive()
            silence = await ask_hook(store, "anna", stored)
        print(f"{size:,} messages: {silence}", flush=True)
        print(f"  missed: {silence.missed}\n  told: {silence.told}", flush=True)


def measure_questions(folder: Path, root: Path, floor: float) -> None:
    chance = random.Random(3)
    for name in ("locomo-dev", "beam-100K-dev"):
        with memstore.open(f"embedded:{root}/{name}", settings=SETTINGS) as store:
            store.import_file(data_sets.file(folder, name))
            store.derive()
            questions = data_sets.questions(folder, name)
            told = {user: Told(store, user) for user in sorted({each.user for each in questions})}
            silent, found, lost = 0, 0, 0
            for question in questions:
                other = chance.choice([user for user in told if user != question.user])
                asked = (
                    store.user(other).conversation("asked").context(question.text, budget=BUDGET, min_relevance=floor)
                )
                silent += not any(each.section == "hits" for each in asked.receipt.included)
                own = store.user(question.user).conversation("asked")
                context = own.context(question.text, budget=BUDGET)
                evidence = set[str]().union(
                    told[question.user].quoted(context, question.evidence),
                    *told[question.user].of(context, question.evidence),
                )
                found += len(evidence)
                relevance = own.context(question.text, budget=BUDGET, min_relevance=floor).receipt.relevance
                lost += len(evidence) * (relevance is not None and relevance < floor)
        print(
            f"{name}: {silent / len(questions):.1%} of {len(questions)} questions get no hits of another user's store; "
            f"{lost} of {found} messages of evidence are lost in their own, {lost / found:.2%}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--floor", type=float, default=DEFAULT_MIN_RELEVANCE, help="of the questions")
    parser.add_argument("--only", choices=["hook", "questions"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        if given.only != "questions":
            asyncio.run(measure_hook(given.data, Path(root)))
        if given.only != "hook":
            measure_questions(given.data, Path(root), given.floor)


if __name__ == "__main__":
    main()
