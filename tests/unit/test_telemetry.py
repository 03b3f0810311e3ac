"""What OpenTelemetry is told, read by its own SDK: numbers, and nothing that anybody said or is called."""

import json
import logging
import subprocess
import sys

import pytest

from memstore.telemetry import EXTRA_FIELDS, JsonFormatter
from tests.conftest import Databases

SECRET = "Quollstreet"
PROGRAM = """
import asyncio, json, sys
from contextlib import suppress
import memstore
assert "opentelemetry" not in sys.modules, "whoever wants no telemetry does not pay for it"
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

spans, reader, provider = InMemorySpanExporter(), InMemoryMetricReader(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)
metrics.set_meter_provider(MeterProvider([reader]))

def blocking():
    with memstore.open(sys.argv[1], settings={"embedder": "hashing:64"}) as store:
        talk = store.user("Quollstreet").conversation("Quollstreet")
        talk.add("user", "I live in Quollstreet.")
        store.derive()
        talk.user.recall("Where is Quollstreet?")
        talk.context("Where is Quollstreet?", budget=500)
        with suppress(memstore.BudgetTooSmall):
            talk.context("Where is Quollstreet?", budget=3)

async def waiting():
    async with await memstore.open_async(sys.argv[1], settings={"embedder": "hashing:64"}) as store:
        with trace.get_tracer("mine").start_as_current_span("mine"):
            await asyncio.gather(*(store.user("Quollstreet").recall("Quollstreet") for _ in range(2)))

blocking()
asyncio.run(waiting())
print(json.dumps([json.loads(span.to_json()) for span in spans.get_finished_spans()]))
print(reader.get_metrics_data().to_json(indent=None))
"""


@pytest.fixture(scope="module")
def told(databases: Databases) -> tuple[str, str]:
    with databases.one() as url:
        ran = subprocess.run([sys.executable, "-c", PROGRAM, url], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    spans, metrics = ran.stdout.splitlines()
    return spans, metrics


def test_each_operation_is_a_span_with_its_numbers(told: tuple[str, str]) -> None:
    spans = json.loads(told[0])
    assert [span["name"].removeprefix("memstore.") for span in spans] == [
        "add", "derive", "recall", "context", "context", "recall", "recall", "mine",
    ]  # fmt: skip
    add, derive, recall, context, failed, one, other, mine = spans
    assert add["attributes"]["memstore.messages"] == 1 and add["attributes"]["memstore.tokens"] > 3
    assert derive["attributes"]["memstore.facts"] == 1
    assert recall["attributes"]["memstore.hits"] == 2
    assert 0 < context["attributes"]["memstore.tokens"] <= context["attributes"]["memstore.budget"] == 500
    assert failed["status"]["status_code"] == "ERROR"
    assert failed["attributes"]["error.type"] == "BudgetTooSmall"
    assert one["parent_id"] == other["parent_id"] == mine["context"]["span_id"]


def test_each_number_is_a_metric(told: tuple[str, str]) -> None:
    scopes = json.loads(told[1])["resource_metrics"][0]["scope_metrics"]
    metrics = {metric["name"]: metric["data"]["data_points"] for scope in scopes for metric in scope["metrics"]}
    took = {
        (point["attributes"]["memstore.operation"], point["attributes"].get("error.type")): point["count"]
        for point in metrics["memstore.operation.duration"]
    }
    expected = {("add", None): 1, ("derive", None): 1, ("recall", None): 3, ("context", None): 1}
    assert took == expected | {("context", "BudgetTooSmall"): 1}
    assert metrics["memstore.add.messages"][0]["sum"] == 1
    assert metrics["memstore.context.tokens"][0]["sum"] <= 500
    assert metrics["memstore.recall.hits"][0]["count"] == 3


def test_a_record_as_json_has_its_fields_and_of_an_error_no_message() -> None:
    try:
        raise ValueError(SECRET)
    except ValueError:
        error = sys.exc_info()
    given = {"msg": "it failed: %d", "args": (3,), "exc_info": error, EXTRA_FIELDS: {"status": 500}}
    line = JsonFormatter().format(logging.makeLogRecord(given))
    found = json.loads(line)
    assert (found["message"], found["status"], found["error"]) == ("it failed: 3", 500, "ValueError")
    assert "test_telemetry" in found["raised"][0]
    assert SECRET not in line


def test_nothing_that_was_said_or_is_a_name_is_told(told: tuple[str, str]) -> None:
    assert SECRET.lower() not in (told[0] + told[1]).lower()
