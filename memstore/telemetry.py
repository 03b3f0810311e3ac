"""Spans and metrics of what memstore does, for OpenTelemetry: numbers only.

No text, no name and no id is ever an attribute, and of an error its class alone, for its message may quote. An
application that sets up an SDK imports OpenTelemetry's API; without that, nothing of it is imported.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from typing import Any, Literal

Operation = Literal["add", "derive", "recall", "context"]
Number = int | float
SERVICE = "memstore"
DURATION_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SIZES = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000)
IRREGULAR_UNITS = {"budget": "{token}", "summaries": "{summary}", "failed": "{conversation}"}


class OperationSpan:
    """What an operation came to: numbers, by what they are of. Each is an attribute and a metric."""

    def __init__(self) -> None:
        self.numbers: dict[str, Number] = {}

    def set(self, **numbers: Number) -> None:
        """Set numbers."""
        self.numbers.update(numbers)


@contextmanager
def operation_span(operation: Operation) -> Iterator[OperationSpan]:
    """Record how long an operation took, what it came to, and whether it failed: `memstore.recall` and so on."""
    outcome = OperationSpan()
    if not _is_on():
        yield outcome
        return
    began, about = time.perf_counter(), {"memstore.operation": operation}
    try:
        with _span(f"memstore.{operation}", about) as span:
            yield outcome
            for name, number in outcome.numbers.items():
                span.set_attribute(f"memstore.{name}", number)
                unit = IRREGULAR_UNITS.get(name, f"{{{name.removesuffix('s')}}}")
                _histogram(f"memstore.{operation}.{name}", unit, SIZES).record(number)
    finally:
        _histogram("memstore.operation.duration", "s", DURATION_BUCKETS).record(time.perf_counter() - began, about)


@contextmanager
def _span(name: str, about: dict[str, Any]) -> Iterator[Any]:
    """Yield a span. The class of an error is recorded in it and in `about`."""
    trace = _api("trace")
    # Both would quote the message.
    quiet = {"record_exception": False, "set_status_on_exception": False}
    with trace.get_tracer(SERVICE).start_as_current_span(name, attributes=about, **quiet) as span:
        try:
            yield span
        except BaseException as error:
            # The span records an interrupt too.
            about["error.type"] = type(error).__name__
            span.set_attributes(about)
            span.set_status(trace.StatusCode.ERROR)
            raise


def _is_on() -> bool:
    return "opentelemetry.trace" in sys.modules


def _api(module: str) -> Any:
    return import_module(f"opentelemetry.{module}")


@cache
def _histogram(name: str, unit: str, bounds: tuple[float, ...]) -> Any:
    return _api("metrics").get_meter(SERVICE).create_histogram(name, unit, explicit_bucket_boundaries_advisory=bounds)


@cache
def _gauge(name: str, unit: str) -> Any:
    return _api("metrics").get_meter(SERVICE).create_gauge(name, unit)


def gauge(name: str, unit: str, value: Number, about: Mapping[str, str] | None = None) -> None:
    """Record a number as it is now."""
    if _is_on():
        _gauge(name, unit).set(value, about)


# What a record has in its `extra`: numbers and names of its own.
EXTRA_FIELDS = "memstore"


class JsonFormatter(logging.Formatter):
    """A record as one JSON object: `time`, `level`, `logger`, `message`, and what else the record tells.

    Of an error it has the class and where it was raised: a message may quote what somebody said.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, EXTRA_FIELDS, {}),
        }
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            line |= {"error": type(error).__name__, "raised": traceback.format_tb(error.__traceback__)}
        return json.dumps(line, default=str)  # in ASCII: a terminal may show it
