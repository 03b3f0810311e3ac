"""The REST server on a real socket: a stop with a request under way, logs, metrics, tokens, and its description."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

import memstore
from memstore.client.store import AsyncMemoryStore
from memstore.server.http.app import create_app, load_mcp
from memstore.settings import Settings
from tests import documented
from tests.command_line import Run
from tests.rest import HASHING, bearer, path, said, served, serving

ROOT = Path(__file__).parents[2]


async def test_a_stop_lets_a_request_finish(store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    began = asyncio.Event()

    async def slowly(**_: object) -> dict[str, int]:
        began.set()
        await asyncio.sleep(0.5)
        return {"messages": 7}

    monkeypatch.setattr(store, "stats", slowly)
    async with serving(store) as (client, server), asyncio.timeout(60):
        under_way = asyncio.ensure_future(client.get("/v1/stats"))
        await began.wait()
        server.stop()
        assert (await under_way).json()["messages"] == 7
        with pytest.raises(httpx.TransportError):
            await client.get("/healthz")


async def test_who_sends_too_much_is_told_so(store: AsyncMemoryStore) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(400):
            yield b" " * 100_000

    places = {path("alice", "recall"): "server_body_bytes", "/mcp/alice": "send it in parts", "/ui/sign-in": "64 KiB"}
    headers = {"Content-Type": "application/json"}
    async with serving(store, mcp=load_mcp(store)) as (client, _):
        for place, advice in places.items():
            for content in (b" " * 40_000_000, pieces()):
                answer = await client.post(place, content=content, headers=headers)
                assert (answer.status_code, advice in answer.text) == (413, True), answer.text


def test_the_how_to_page_calls_it_with_curl_and_with_python(url: str, tmp_path: Path) -> None:
    """Its TypeScript is run by `make test-typescript`."""
    steps = [one for one in documented.read(ROOT / "docs/how-to/call-over-rest.md").steps if not one.skipped]
    with served(url, tmp_path) as (_, address):
        shell, program = (
            "\n".join(one.code for one in steps if one.language == language).replace("http://127.0.0.1:8377", address)
            for language in ("sh", "python")
        )
        ran = subprocess.run(["bash", "-euo", "pipefail", "-c", shell], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "urn:memstore:problem:budget-too-small" in ran.stdout
        names: dict[str, Any] = {}
        exec(program.replace("/users/alice", "/users/bob"), names)  # what was erased is not stored again
        names["alice"].close()
    assert (names["certificate"]["counts"]["messages"], names["verified"]["found"]) == (1, {})
    assert "The user is allergic to peanuts." in [fact["text"] for fact in names["facts"]]
    assert (names["context"]["budget"], names["refused"]["status"]) == (500, 422)
    with memstore.open(url, settings=HASHING) as store:
        assert store.stats()["messages"] == 0


def test_the_program_serves_stops_and_logs_nothing_that_was_said(url: str, tmp_path: Path) -> None:
    with memstore.open(url, settings=HASHING) as store:
        token = store.tokens.create(user="alice-by-name").secret
    with (
        served(url, tmp_path) as (process, address),
        httpx.Client(base_url=address, headers=bearer(token), timeout=60) as client,
    ):
        talk = path("alice-by-name", "conversations", "talk-by-name")
        assert client.post(f"{talk}/messages", json=said("I'm allergic to peanuts.")).status_code == 201
        assert client.post(f"{talk}/context", json={"query": "peanuts?", "budget": 200}).json()["tokens"] <= 200
        assert client.get("/v1/users").status_code == 403
        assert client.get(path("bob-by-name"), headers=bearer("mst_guessed")).status_code == 401
        assert client.post(f"{talk}/messages", json="peanuts").status_code == 422
        assert "Read-only" in client.get("/ui/users/alice-by-name/conversations/talk-by-name").text
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    log = (tmp_path / "server.log").read_text()
    assert "POST /v1/users/{user}/conversations/{conversation}/messages 201" in log
    assert "GET /ui/users/{user}/conversations/{conversation} 200" in log
    assert token is not None
    for hidden in ("peanuts", "by-name", token, "mst_", "Traceback"):
        assert hidden not in log


def logged(file: Path, lines: int) -> list[Any]:
    """Give records of a log as soon as so many are there: an answer is sent before its line is written."""
    until = time.monotonic() + 30
    while len(found := file.read_text().splitlines()) < lines and time.monotonic() < until:
        time.sleep(0.05)
    return [json.loads(line) for line in found]


def test_the_operator_reads_metrics_and_logs_are_json_and_neither_names_anybody(url: str, tmp_path: Path) -> None:
    with memstore.open(url, settings=HASHING) as store:
        operators, alices = store.tokens.create().secret, store.tokens.create(user="alice-by-name").secret
    with (
        served(url, tmp_path, log_format="json") as (_, address),
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        talk = path("alice-by-name", "conversations", "talk-by-name")
        posted = client.post(f"{talk}/messages", json=said("peanuts", "more"), headers=bearer(operators))
        assert [client.get("/metrics", headers=bearer(token)).status_code for token in (None, alices)] == [401, 403]
        for asked, body in (("recall", {"query": "peanuts"}), ("conversations/talk-by-name/context", {"budget": 99})):
            assert (
                client.post(path("alice-by-name") + f"/{asked}", json=body, headers=bearer(alices)).status_code == 200
            )
        assert client.post("/v1/derive", json={}, headers=bearer(operators)).status_code == 200
        lines = client.get("/metrics", headers=bearer(operators)).text.splitlines()
        first, *log = logged(tmp_path / "server.log", 7)
    numbers = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line[0] != "#"}
    name, route = 'otel_scope_name="memstore"', "/v1/users/{user}/conversations/{conversation}/messages"

    def number(metric: str, *about: str) -> float:
        (found,) = [
            value for key, value in numbers.items() if key.startswith(metric + "{") and all(one in key for one in about)
        ]
        return found

    assert number("memstore_add_messages_sum", name) == 2
    assert number("memstore_operation_duration_seconds_count", 'memstore_operation="add"') == 1
    assert number("http_server_request_duration_seconds_count", f'http_route="{route}"', 'status_code="201"') == 1
    assert number("memstore_workers") == 0
    expected = {"level": "info", "method": "POST", "route": route, "status": 201}
    assert expected.items() <= first.items()
    assert first["id"] == posted.headers["x-request-id"]
    assert [one["status"] for one in log] == [401, 403, 200, 200, 200, 200]
    for hidden in ("peanuts", "by-name", str(operators), str(alices)):
        assert hidden not in json.dumps([first, log, lines])
    drawn = (ROOT / "docker" / "grafana-memstore.json").read_text()
    shown = set(re.findall(r"\b(?:memstore|http)_\w+(?=[\[{])", drawn.replace("\\n", "")))
    assert len(shown) > 10
    assert shown - {line.partition("{")[0] for line in lines} == set(), "of the dashboard, and not to be had"


def test_elsewhere_it_does_not_start_without_a_token(cli: Run, url: str) -> None:
    elsewhere = cli("serve", "--host", "0.0.0.0", "--port", "0", "-d", url)
    proxied = cli("serve", "--port", "0", "-d", url, server_hosts="memory.example")
    for refused in (elsewhere, proxied):
        assert (refused.code, refused.out) == (2, "")
        assert "memstore token create" in refused.err


def test_tokens_are_made_listed_and_revoked(cli: Run, url: str) -> None:
    made = cli("token", "create", "--user", "alice", "--days", "2", "--name", "laptop", "-d", url, "--json").json
    assert made["secret"].startswith("mst_")
    shown = cli("token", "create", "--operator", "-d", url)
    assert shown.out.startswith("mst_") and shown.out.count("\n") == 1
    (operators, alices) = cli("token", "list", "-d", url, "--json").json
    assert (operators["user"], alices["user"], alices["name"]) == (None, "alice", "laptop")
    assert "secret" not in alices and made["secret"] not in cli("token", "list", "-d", url).out
    first, again = (cli("token", "revoke", made["id"], "-d", url, "--json").json["revoked_at"] for _ in range(2))
    assert first == again is not None
    unknown = cli("token", "revoke", "3f2a0000-0000-0000-0000-000000000000", "-d", url)
    assert (unknown.code, "token list" in unknown.err) == (2, True)
    for wrong in ((), ("--user", "alice", "--operator"), ("--user", "alice", "--days", "0")):
        assert cli("token", "create", *wrong, "-d", url).code == 2


def test_without_the_extra_the_error_names_it(cli: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("memstore.server")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    without = cli("serve", "-d", url)
    assert without.code == 2
    assert ".[server]" in without.err


# What it says of itself


DOSE = int(os.environ.get("TEST_DOSE", "1"))
# `positive_data_acceptance` is not among the checks: that a budget is too small, a
# conversation empty is no matter of a schema, and answered with 422.
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
    "response_schema_conformance,negative_data_rejection,missing_required_header,unsupported_method,ignored_auth"
)


def test_the_page_has_every_resource() -> None:
    page = (ROOT / "docs" / "reference" / "rest.md").read_text(encoding="utf-8")
    closed: Any = SimpleNamespace(settings=Settings(), tokens=None)
    for place in create_app(closed).openapi()["paths"]:
        assert place.removeprefix("/v1/users/{user}").removeprefix("/v1") in page, place


@pytest.mark.slow
def test_requests_made_from_the_description_find_no_fault(url: str, tmp_path: Path) -> None:
    pytest.importorskip("schemathesis")
    with memstore.open(url, settings=HASHING) as store:
        token = store.tokens.create().secret
    with served(url, tmp_path) as (_, address):
        command = [Path(sys.executable).parent / "schemathesis", "run", f"{address}/openapi.json", "--no-color"]
        options = ["-H", f"Authorization: Bearer {token}", "--checks", CHECKS]
        # The phase that goes through every boundary takes a minute and a half: with TEST_DOSE=2 and more.
        phases = "coverage,fuzzing" if DOSE > 1 else "fuzzing"
        dose = ["--max-examples", str(5 * DOSE), "--phases", phases, "--generation-database", "none"]
        ran = subprocess.run([*command, *options, *dose], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
    log = (tmp_path / "server.log").read_text()
    assert "Traceback" not in log and "unexpected" not in log
