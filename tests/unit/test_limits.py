"""How often a caller of the server may ask, by a clock of the test's own."""

from __future__ import annotations

import asyncio

import pytest

from memstore.errors import DatabaseUnreachable
from memstore.server.http import limits
from memstore.server.http.limits import Buckets, Tries, place_of
from memstore.server.http.problems import Problem


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_ten_seconds_worth_at_once_and_then_as_they_come() -> None:
    clock = Clock()
    buckets = Buckets(2.0, clock)
    assert [buckets.take("alice") for _ in range(20)] == [0.0] * 20
    assert buckets.take("alice") == pytest.approx(0.5)
    clock.now = 0.4
    assert buckets.take("alice") == pytest.approx(0.1)
    clock.now = 1.0
    assert [buckets.take("alice") for _ in range(2)] == [0.0, 0.0]
    assert buckets.take("alice") > 0
    clock.now = 1000.0
    assert [buckets.take("alice") for _ in range(20)] == [0.0] * 20
    assert buckets.take("alice") > 0


def test_who_only_asks_how_long_to_wait_takes_nothing() -> None:
    clock = Clock()
    buckets = Buckets(0.1, clock)
    assert [buckets.wait("alice"), buckets.wait("alice"), buckets.take("alice")] == [0.0, 0.0, 0.0]
    assert buckets.wait("alice") == buckets.take("alice") == pytest.approx(10)


def test_callers_do_not_take_from_each_other() -> None:
    buckets = Buckets(0.01, Clock())
    assert (buckets.take("alice"), buckets.take("bob")) == (0.0, 0.0)
    assert buckets.take("alice") == buckets.take("bob") == pytest.approx(100)


def test_no_rate_is_no_limit() -> None:
    buckets = Buckets(0.0, Clock())
    assert {buckets.take("alice") for _ in range(1000)} == {0.0}


def test_who_asked_longest_ago_is_forgotten_where_too_many_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_KEPT", 50)
    buckets = Buckets(0.1, Clock())
    assert buckets.take("alice") == 0.0
    for number in range(49):
        assert buckets.take(f"{number}") == 0.0
    assert buckets.take("0") > 0  # refused: it is not kept for longer by that
    assert buckets.take("alice") > 0
    assert [buckets.take("one more"), buckets.take("and one")] == [0.0, 0.0]
    assert len(buckets._left) == 50
    assert buckets.take("1") > 0
    assert buckets.take("alice") == 0.0  # as if it had never asked, which is no harm to it


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::"),
        ("2001:db8:1:3::1", "2001:db8:1:3::"),
        ("::1", "::"),
        ("fe80::1%eth0", "fe80::"),
        ("testclient", "testclient"),
    ],
)
def test_limits_count_a_network_of_ipv6_as_one_place(address: str, place: str) -> None:
    assert place_of({"type": "http", "client": (address, 1)}) == place
    assert place_of({"type": "http", "client": None}) == place_of({"type": "http"}) == ""


async def test_of_many_tries_at_once_no_more_are_made_than_may_fail() -> None:
    tries, looked = Tries(0.5), []

    async def nothing() -> None:
        looked.append("nothing")
        await asyncio.sleep(0)

    async def something() -> str:
        looked.append("something")
        await asyncio.sleep(0)
        return "found"

    ends = await asyncio.gather(*(tries.found("here", nothing) for _ in range(200)), return_exceptions=True)
    assert looked == ["nothing"] * 5
    assert ends[:5] == [None] * 5
    assert {one.status for one in ends[5:] if isinstance(one, Problem)} == {429}
    assert await asyncio.gather(*(tries.found("there", something) for _ in range(200))) == ["found"] * 200
    assert "there" not in tries._places


async def test_a_try_that_could_not_be_made_is_none_that_failed() -> None:
    tries = Tries(0.1)

    async def broken() -> None:
        raise DatabaseUnreachable("away")

    for _ in range(20):
        with pytest.raises(DatabaseUnreachable):
            await tries.found("here", broken)


async def test_tries_of_one_place_do_not_wait_for_each_other_while_they_may_all_fail() -> None:
    tries, begun, go = Tries(0.5), asyncio.Semaphore(0), asyncio.Event()

    async def silent() -> None:
        begun.release()
        await go.wait()
        raise DatabaseUnreachable("away")

    asked = [asyncio.ensure_future(tries.found("here", silent)) for _ in range(6)]
    async with asyncio.timeout(5):
        for _ in range(5):
            await begun.acquire()
    assert begun.locked(), "the sixth waits: all before may fail"
    go.set()
    ends = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(one, DatabaseUnreachable) for one in ends)
