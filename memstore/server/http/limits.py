"""How much and how often: the size of a body, requests a second of each caller, and streams at once."""

from __future__ import annotations

import time
from asyncio import Condition
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address
from math import ceil
from typing import TypeVar
from weakref import WeakValueDictionary

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memstore.server.http.problems import SECONDS, Problem

T = TypeVar("T")

AT_ONCE = 10.0  # seconds' worth of requests that may come at once
MOST_KEPT = 10_000  # callers whose buckets are kept: those who asked last


class Buckets:
    """A token bucket for each caller: `rate` requests a second, ten seconds' worth at once. 0 lets all through."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._most = max(1.0, rate * AT_ONCE)
        self._left: dict[str, tuple[float, float]] = {}  # what was left, and when

    def wait(self, caller: str) -> float:
        """Give the seconds until a caller may take one; 0 for now. None is taken."""
        left = self.left(caller)
        return 0.0 if left >= 1.0 else (1.0 - left) / self._rate

    def left(self, caller: str) -> float:
        """Give how many a caller may take now."""
        return self._left_now(caller, self._clock())

    def take(self, caller: str) -> float:
        """Take one; give 0, or the seconds until there is one again."""
        now = self._clock()
        left = self._left_now(caller, now)
        if left < 1.0:
            return (1.0 - left) / self._rate
        if not self._rate:
            return 0.0
        self._left.pop(caller, None)
        self._left[caller] = (left - 1.0, now)
        if len(self._left) > MOST_KEPT:
            del self._left[next(iter(self._left))]  # of whoever has waited longest: what it forgets, it forgives
        return 0.0

    def _left_now(self, caller: str, now: float) -> float:
        left, then = self._left.get(caller, (self._most, now))
        return min(self._most, left + (now - then) * self._rate)


def check_rate(buckets: Buckets, caller: str) -> None:
    """Take one of a caller's requests; raise a `Problem` where it asks too often."""
    if seconds := buckets.take(caller):
        raise _too_many(seconds, "Too many requests; server_requests_per_second is the limit.")


def _too_many(seconds: float, why: str) -> Problem:
    wait = str(ceil(seconds))
    detail = f"{why} Ask again in {wait} s."
    return Problem(HTTPStatus.TOO_MANY_REQUESTS, "too-many-requests", detail, headers={"Retry-After": wait})


class Tries:
    """Tries that may find nothing, so many a second of one place, ten seconds' worth at once.

    Of one place no more are under way than may still fail, so that of many at once none is made beyond that; others
    wait until one of these has ended.
    """

    def __init__(self, failures: float) -> None:
        self._failed = Buckets(failures)
        self._places: WeakValueDictionary[str, _Looking] = WeakValueDictionary()

    async def found(self, place: str, look: Callable[[], Awaitable[T | None]]) -> T | None:
        """Give what a try finds; None is one that failed. Raises a `Problem`, and does not look, after too many."""
        here = self._places.setdefault(place, _Looking())
        async with here.ended:
            while self._failed.left(place) < here.count + 1:
                if not here.count:
                    wait = self._failed.wait(place)
                    raise _too_many(wait, "Too many tokens that do not hold came from your address.")
                await here.ended.wait()
            here.count += 1
        try:
            found = await look()
            if found is None:
                self._failed.take(place)
            return found
        finally:
            here.count -= 1
            async with here.ended:
                here.ended.notify_all()


class _Looking:
    """The tries of one place that are under way."""

    def __init__(self) -> None:
        self.count = 0
        self.ended = Condition()


def place_of(scope: Scope) -> str:
    """Give whence a request comes, as limits count it: an address, of IPv6 its /64, which one client may have whole."""
    address = (scope.get("client") or ("",))[0]
    try:
        ip = ip_address(address)
    except ValueError:  # a name, or a socket of this machine
        return str(address)
    if not isinstance(ip, IPv6Address):
        return str(ip)
    return str(ip.ipv4_mapped or IPv6Address(int(ip) >> 64 << 64))


class Streams:
    """How many streams each caller has open; at most so many, 0 for any number."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    @contextmanager
    def one(self, caller: str) -> Iterator[None]:
        """Count one more of a caller while the block lasts; raises a `Problem` where there are too many."""
        if self._most and self._open[caller] >= self._most:
            detail = f"You have {self._most:,} streams open: close one first. server_streams is the limit."
            raise Problem(HTTPStatus.TOO_MANY_REQUESTS, "too-many-streams", detail, headers={"Retry-After": SECONDS})
        self._open[caller] += 1
        try:
            yield
        finally:
            self._open[caller] -= 1
            if not self._open[caller]:
                del self._open[caller]


class BodyLimit:
    """Refuses bodies of more than so many bytes: by what they say of themselves, else as they come."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer 413."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        said = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if not said.isdigit() or int(said) > self._most:
            await self._problem().response()(scope, receive, send)
            return
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._most:
                raise self._problem()
            return message

        await self._app(scope, counted, send)

    def _problem(self) -> Problem:
        detail = f"The body has more than {self._most:,} bytes: send it in parts, or raise server_body_bytes."
        return Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body-too-large", detail, headers={"Connection": "close"})
