"""Requests to a server: asked again for what may pass, limited in time and in size."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import count
from typing import Any, TypeVar
from urllib.parse import urlsplit

from memstore._compat import with_timeout
from memstore.errors import ModelUnavailable

R = TypeVar("R")

TRIES = 4
MOST_BYTES = 64 << 20  # of an answer: a vocabulary has ten million


class TransientError(Exception):
    """A failure that may pass, and the seconds to wait for that where the server says so."""

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait


@dataclass(frozen=True, slots=True)
class Retries:
    """Asks a service again for what may pass: `TRIES` times within `seconds`, with pauses that grow from `backoff`.

    Pauses double and differ by chance, or are as long as the server asks for.
    """

    service: str  # as it is called in errors
    seconds: float
    backoff: float = 0.5
    advice: str = ""  # what to do about a service that does not answer in time

    def run(self, call: Callable[[float], R]) -> R:
        """Return what `call` does within the seconds that it is given; raise `ModelUnavailable` after the last try."""
        end = time.monotonic() + self.seconds
        for attempt in count(1):
            try:
                return call(max(0.001, end - time.monotonic()))
            except TransientError as failure:
                self.pause(attempt, failure, end)
        raise AssertionError("count() has no end")

    def run_in_time(self, call: Callable[[float], R]) -> R:
        """Do as `run`, and wait no longer than the seconds, whatever the call does.

        A server's library limits the silence between two bytes, not the whole: its thread is not waited for.
        """
        return self.run(lambda seconds: self.in_time(seconds, lambda: with_timeout(seconds, lambda: call(seconds))))

    def in_time(self, seconds: float, call: Callable[[], R]) -> R:
        """Return what `call` does; raise `ModelUnavailable` for its TimeoutError."""
        try:
            return call()
        except TimeoutError as error:
            raise ModelUnavailable(f"{self.service} did not answer within {seconds:.0f} s.{self.advice}") from error

    def pause(self, attempt: int, failure: TransientError, end: float) -> None:
        """Wait for the next attempt; raise `ModelUnavailable` where there is none, or not before the end."""
        wait = self.backoff * 2 ** (attempt - 1) * random.uniform(0.5, 1.5) if failure.wait is None else failure.wait
        if attempt == TRIES or time.monotonic() + wait >= end:
            raise ModelUnavailable(f"{self.service} is away: {failure}") from failure
        time.sleep(wait)


def retry_after(header: str | None) -> float | None:
    """Return the seconds that a Retry-After asks for, by number or by date; None where it says nothing of use."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None


def bound(response: Any) -> None:
    """Let a response of httpx break off after `MOST_BYTES`; it is a hook of its client.

    Nobody waits any more for a server that sends without an end, and its thread would fill the memory.
    """
    whole = response.stream

    def parts(_: object) -> Iterator[bytes]:
        left = MOST_BYTES
        for part in whole:
            left -= len(part)
            if left < 0:
                raise TransientError(f"its answer has more than {MOST_BYTES >> 20} MiB")
            yield part

    # A stream of the library's own kind, whichever library it is.
    methods = {"__init__": lambda _: None, "__iter__": parts, "close": lambda _: whole.close()}
    response.stream = type("Bounded", (type(whole),), methods)()


def is_local(url: str) -> bool:
    """Return whether a URL is of this machine, for which no proxy of the environment is asked."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")
