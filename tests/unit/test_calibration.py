"""A forecast goes by the size of what was tried, and by what each deriver had of the time; nothing of it is kept."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from memstore.ingest.backfill import calibration
from memstore.ingest.resources import Resources
from memstore.settings import load
from memstore.store.watermarks import Pending
from memstore.testing import WordCounter

ASKING = {"embed": False, "summarize": True, "facts": False}
NOTHING: Any = None


class Machine:
    """One whose clock goes on by what derivers take for what they are tried on, one after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: dict[str, float], sizes: list[int]) -> None:
        self.now, self._seconds = 0.0, seconds
        self.tried: list[str] = []
        pieces = [Pending(UUID(int=1), UUID(int=number), "", 0, size) for number, size in enumerate(sizes)]
        monkeypatch.setattr(calibration, "STARTING", 0.0)

        async def sample(database: Any, deriver: str, user: Any) -> list[Pending]:
            return pieces

        derivers = [SimpleNamespace(name=name, method=SimpleNamespace(asks=asks)) for name, asks in ASKING.items()]
        monkeypatch.setattr(calibration, "derivers_of", lambda _: derivers)
        monkeypatch.setattr(calibration, "_sample", sample)
        monkeypatch.setattr(calibration, "_tried", self.derive)
        monkeypatch.setattr(calibration.time, "monotonic", lambda: self.now)

    async def derive(self, database: Any, deriver: Any, work: Pending, most: int) -> tuple[int, float]:
        await asyncio.sleep(0)
        spent = self._seconds[deriver.name] * work.last_seq
        self.now += spent
        self.tried.append(deriver.name)
        return work.last_seq, spent

    async def told(self, sizes: dict[str, int], concurrency: int = 1) -> calibration.Forecast:
        resources = Resources(WordCounter(), None, load({}))
        return await calibration.forecast(NOTHING, resources, sizes, concurrency=concurrency, seconds=60.0)


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("lengths", [[10] * 20, [1, 1, 1, 97] * 5])
async def test_a_forecast_goes_by_size_and_adds_what_each_deriver_takes(
    monkeypatch: pytest.MonkeyPatch, concurrency: int, lengths: list[int]
) -> None:
    machine = Machine(monkeypatch, {"embed": 0.1, "facts": 0.02}, lengths)
    found = await machine.told({"embed": 1000, "summarize": 9000, "facts": 5000}, concurrency)
    assert set(machine.tried) == {"embed", "facts"}, "chat models are not asked"
    assert found.seconds == pytest.approx(1000 * 0.1 + 5000 * 0.02, rel=0.05)
    assert found.least <= found.seconds * 1.001
    assert found.most >= found.seconds * 0.999


async def test_of_what_is_not_behind_nothing_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, {"embed": 0.1, "facts": 0.02}, [10] * 9)
    assert (await machine.told({"embed": 0, "facts": 700})).seconds == pytest.approx(14.0)
    assert set(machine.tried) == {"facts"}
    assert (await machine.told({})).seconds == 0.0


async def test_a_machine_that_becomes_slower_meanwhile_widens_the_range(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {"embed": 0.1, "facts": 0.02}
    machine = Machine(monkeypatch, seconds, [10] * 9)
    steady, derive = await machine.told({"embed": 1000}), machine.derive
    assert steady.most - steady.least < 0.01 * steady.seconds

    async def slower(*args: Any) -> tuple[int, float]:
        seconds["embed"] *= 1.02
        return await derive(*args)

    monkeypatch.setattr(calibration, "_tried", slower)
    found = await machine.told({"embed": 1000})
    assert found.least < found.seconds < found.most
    assert found.most > 1.3 * found.least


@pytest.mark.parametrize(("tokens", "most"), [(9, 256), (99, 81), (10_000, 8)])
async def test_derivers_are_tried_on_as_much_at_once_and_on_fewer_long_messages(
    monkeypatch: pytest.MonkeyPatch, tokens: int, most: int
) -> None:
    """Else who has less to try is done, and the others have the processors to themselves, as in no turn."""
    machine, tried = Machine(monkeypatch, {}, [1000]), set[tuple[str, int, int]]()

    async def derive(database: Any, deriver: Any, work: Pending, count: int) -> tuple[int, float]:
        tried.add((deriver.name, count, work.done_seq))
        machine.now += count
        return count * (tokens + 1), float(count)

    monkeypatch.setattr(calibration, "_tried", derive)
    found = await machine.told({"embed": 1000 * (tokens + 1), "facts": 1000 * (tokens + 1)})
    assert found.seconds == pytest.approx(2000)
    assert {(name, count) for name, count, _ in tried} == {
        (name, count) for name in ("embed", "facts") for count in (calibration.FIRST, most)
    }
    assert {begin % most for _, _, begin in tried} <= {0}
