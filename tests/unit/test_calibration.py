"""A rate is that of all that was done at once, whoever of them ended first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from memstore.ingest.backfill import calibration
from memstore.ingest.resources import Resources
from memstore.settings import load
from memstore.store.watermarks import Pending
from memstore.testing import WordCounter

PIECE = Pending(UUID(int=1), UUID(int=2), "embed", 0, 10)
NOTHING: Any = None


async def test_messages_of_every_conversation_at_work_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    async def ten(database: Any, deriver: Any, work: Pending) -> int:
        tried.append(deriver)
        await asyncio.sleep(0)
        return 10

    monkeypatch.setattr(calibration, "_tried", ten)
    monkeypatch.setattr(calibration.time, "monotonic", lambda: 0.5 * len(tried))
    one: Any = "embed"
    other: Any = "facts"
    rate = await calibration._measured(NOTHING, [(one, [PIECE] * 8), (other, [PIECE] * 3)], 4, 100.0)
    assert (tried.count(one), tried.count(other)) == (9, 9), "once to begin with, then all, beside each other"
    assert rate == pytest.approx(8.0 / 80)


async def test_a_forecast_adds_what_those_take_that_are_behind_and_leaves_chat_models_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asking = {"embed": False, "summarize": True, "facts": False}
    derivers = [SimpleNamespace(name=name, method=SimpleNamespace(asks=asks)) for name, asks in asking.items()]
    measured: list[list[str]] = []

    async def sample(database: Any, deriver: str, user: Any, seed: int) -> list[Pending]:
        return [PIECE]

    async def rate(database: Any, behind: Sequence[Any], concurrency: int, seconds: float) -> float:
        measured.append([deriver.name for deriver, _ in behind])
        return 0.1 * len(behind)

    monkeypatch.setattr(calibration, "derivers_of", lambda _: derivers)
    monkeypatch.setattr(calibration, "_sample", sample)
    monkeypatch.setattr(calibration, "_measured", rate)
    resources = Resources(WordCounter(), None, load({}))
    messages = {"embed": 100, "summarize": 900, "facts": 40}
    found = await calibration.seconds_for(NOTHING, resources, messages, concurrency=2)
    assert measured == [["embed", "facts"], ["embed"]]
    assert found == pytest.approx(40 * 0.2 + 60 * 0.1)
