"""A rate is that of all that was done at once, whoever of them ended first."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from memstore.ingest.backfill import calibration
from memstore.ingest.backfill.calibration import forecast
from memstore.store.watermarks import Pending

PIECE = Pending(UUID(int=1), UUID(int=2), "embed", 0, 10)


async def test_messages_of_every_conversation_at_work_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Pending] = []

    async def ten(database: Any, deriver: Any, work: Pending) -> int:
        tried.append(work)
        await asyncio.sleep(0)
        return 10

    monkeypatch.setattr(calibration, "_tried", ten)
    monkeypatch.setattr(calibration.time, "monotonic", lambda: 0.5 * len(tried))
    nothing: Any = None
    rate = await calibration._measured(nothing, nothing, [PIECE] * 8, 4, 100.0)
    assert len(tried) == 9, "once to begin with, then all"
    assert rate == pytest.approx(4.0 / 80)


def test_a_forecast_adds_what_each_deriver_takes_and_knows_nothing_of_chat_models() -> None:
    assert forecast({"embed": 100, "facts": 50}, {"embed": 0.1}) == pytest.approx(10.0)
