"""Who may ask the REST server, for whom, how much and how often; and what it says where that may not be."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections import Counter
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from memstore.errors import DatabaseUnreachable
from memstore.memory.store import AsyncMemoryStore
from memstore.memory.tokens import AsyncTokens, hashed
from memstore.models import ApiToken
from memstore.server.http import door, metrics
from memstore.server.http.metrics import collect
from tests.rest import HASHING, PROBLEM, asking, bearer, path, said, serving

SECRET = "I'm allergic to peanuts."


@pytest.fixture
async def store(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AsyncMemoryStore]:
    monkeypatch.setattr(door, "SECONDS_KNOWN", 0.0)
    async with await AsyncMemoryStore.open(url, settings=HASHING) as store:
        yield store


async def refused(answer: httpx.Response, status: int, kind: str) -> dict[str, Any]:
    """Give the problem of an answer that is one, and says what to do."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM), answer.text
    problem = answer.json()
    assert (problem["type"], problem["status"]) == (f"urn:memstore:problem:{kind}", status)
    assert len(problem["detail"]) > 20
    return dict(problem)


def secret(token: ApiToken) -> str:
    assert token.secret is not None
    return token.secret


@pytest.mark.parametrize("held", ["none", "unknown", "expired", "revoked", "not a bearer", "blank", "not ASCII"])
async def test_who_has_no_token_that_holds_is_told_the_same(store: AsyncMemoryStore, url: str, held: str) -> None:
    good, revoked = await store.tokens.create(user="alice"), await store.tokens.create(user="alice")
    expired = await store.tokens.create(user="alice", days=1)
    await store.tokens.revoke(revoked)
    with psycopg.connect(url) as connection:
        connection.execute("update api_tokens set expires_at = now() where id = %s", [expired.id])
    headers: dict[str, Any] = {
        "none": {},
        "unknown": bearer("mst_unknown"),
        "expired": bearer(expired.secret),
        "revoked": bearer(revoked.secret),
        "not a bearer": {"Authorization": f"Basic {good.secret}"},
        "blank": {"Authorization": "Bearer "},
        "not ASCII": {"Authorization": "Bearer mst_ü".encode()},
    }[held]
    async with asking(store) as client:
        assert (await client.get(path("alice"), headers=bearer(good.secret))).is_success
        for where in (path("alice"), path("bob"), "/v1/users", "/v1/nothing"):
            answer = await client.get(where, headers=headers)
            problem = await refused(answer, 401, "no-token")
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert "memstore token create" in problem["detail"]


async def test_a_revoked_token_is_refused_once_what_is_known_of_it_is_old(
    store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "SECONDS_KNOWN", 3600.0)
    token = await store.tokens.create(user="alice")
    async with asking(store, token=secret(token)) as client:
        assert (await client.get(path("alice"))).is_success
        await store.tokens.revoke(token)
        assert (await client.get(path("alice"))).is_success
        monkeypatch.setattr(door, "SECONDS_KNOWN", 0.0)
        door_ = next(one for one in client._transport.app.user_middleware if one.cls is door.Door)  # type: ignore[attr-defined]
        door_.kwargs["callers"]._known.clear()
        await refused(await client.get(path("alice")), 401, "no-token")


async def test_only_the_hash_of_a_token_is_kept(store: AsyncMemoryStore, url: str) -> None:
    token = await store.tokens.create(user="alice", name="laptop", days=2)
    assert len(secret(token)) > 40
    with psycopg.connect(url) as connection:
        (row,) = connection.execute("select to_jsonb(t)::text from api_tokens t").fetchone() or ("",)
    assert secret(token) not in row and secret(token)[4:] not in row
    (listed,) = await store.tokens.all()
    assert (listed.secret, listed.user, listed.name) == (None, "alice", "laptop")
    assert listed.expires_at is not None and listed.expires_at - listed.created_at == timedelta(days=2)
    assert secret(token) not in repr(token)


async def test_one_user_s_token_opens_nothing_of_another_and_does_not_say_whether_there_is_one(
    store: AsyncMemoryStore,
) -> None:
    await store.user("bob").conversation("c").add("user", SECRET)
    fact = await store.user("bob").add_fact("The user lives in Leeds.", type="identity")
    receipt = (await store.user("bob").conversation("c").context("Where?", budget=200)).receipt.id
    token = secret(await store.tokens.create(user="alice"))
    async with asking(store, token=token) as client:
        await client.post(path("alice", "conversations", "c", "messages"), json=said("I am Alice."))
        asked = {"query": "peanuts", "budget": 300}
        for method, rest, body in (
            ("GET", (), None),
            ("GET", ("conversations",), None),
            ("GET", ("conversations", "c"), None),
            ("PATCH", ("conversations", "c"), {"title": "mine"}),
            ("GET", ("conversations", "c", "messages"), None),
            ("POST", ("conversations", "c", "messages"), said("x")),
            ("POST", ("conversations", "c", "context"), asked),
            ("GET", ("conversations", "c", "summaries"), None),
            ("GET", ("conversations", "c", "receipts"), None),
            ("POST", ("recall",), {"query": "peanuts"}),
            ("GET", ("facts",), None),
            ("GET", ("facts", str(fact.id)), None),
            ("DELETE", ("facts", str(fact.id)), None),
            ("GET", ("receipts", str(receipt)), None),
            ("GET", ("events",), None),
            ("GET", ("events", "stream"), None),
            ("POST", ("derive",), None),
        ):
            answers = [await client.request(method, path(name, *rest), json=body) for name in ("bob", "nobody")]
            problems = [await refused(answer, 404, "not-found") for answer in answers]
            assert problems[0] == problems[1]
        for own in (("facts", str(fact.id)), ("receipts", str(receipt)), ("facts", str(fact.id), "history")):
            assert (await client.get(path("alice", *own))).status_code in (200, 404)
            assert "Leeds" not in (await client.get(path("alice", *own))).text
        await refused(await client.delete(path("alice", "facts", str(fact.id))), 404, "not-found")
        hits = await client.post(path("alice", "recall"), json={"query": "peanuts Leeds"})
        assert "peanuts" not in hits.text and "Leeds" not in hits.text
    assert (await store.user("bob").fact(fact.id)).state == "active"
    assert len(await store.user("bob").conversation("c").messages()) == 1


class Echo:
    """Something beside REST, that tells what it was asked for."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self.ran.append("began")
        yield
        self.ran.append("ended")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse(scope["raw_path"])(scope, receive, send)


async def test_what_is_mounted_beside_is_behind_the_same_door(store: AsyncMemoryStore) -> None:
    token, beside = secret(await store.tokens.create(user="a/b")), Echo()
    async with asking(store, token=token, mounted={"/mcp": beside}) as client:
        assert (await client.post("/mcp/a%2Fb")).text == "/mcp/a%2Fb"
        assert (await client.post("/mcp/a%2Fb/more")).is_success
        for where in ("/mcp/bob", "/mcp/nobody", "/mcp/", "/mcp/%00", "/mcp/%ff", "/mcp/bob/a%2Fb"):
            await refused(await client.post(where), 404, "not-found")
        await refused(await client.post("/mcp/a%2Fb", headers=bearer("mst_other")), 401, "no-token")
        assert beside.ran == ["began"]
    assert beside.ran == ["began", "ended"]


async def test_a_path_that_is_written_otherwise_names_nobody_else(store: AsyncMemoryStore) -> None:
    """The user `mcp` once had everybody's memory: what was behind a second /mcp was served, and the first checked."""
    token = secret(await store.tokens.create(user="mcp"))
    async with asking(store, token=token, mounted={"/mcp": Echo()}) as client:
        assert (await client.post("/mcp/mcp")).is_success
        for where in ("/%6dcp/mcp/bob", "/%6dcp/mcp", "/mc%70/mcp/mcp/bob", "/mcp//mcp"):
            await refused(await client.post(where), 404, "not-found")


async def test_what_the_operator_does_a_user_s_token_may_not(store: AsyncMemoryStore) -> None:
    users, operators = await store.tokens.create(user="alice"), await store.tokens.create()
    some = f"/v1/backfills/{uuid4()}"
    async with asking(store, token=secret(users)) as client:
        for method, where in (
            ("GET", "/v1/users"),
            ("GET", "/v1/stats"),
            ("POST", "/v1/derive"),
            ("POST", "/v1/derive/stream"),
            ("GET", "/v1/backfills"),
            ("GET", some),
            ("GET", f"{some}/progress"),
            ("POST", f"{some}/cancel"),
            ("GET", "/v1/jobs"),
        ):
            await refused(await client.request(method, where), 403, "operators-only")
    async with asking(store, token=secret(operators)) as client:
        assert (await client.get("/v1/stats")).is_success
        assert (await client.get(path("alice"))).is_success


async def test_this_machine_needs_no_token_until_there_was_one(store: AsyncMemoryStore) -> None:
    async with asking(store) as client:
        assert (await client.get("/v1/users")).is_success
        token = await store.tokens.create(user="alice")
        await refused(await client.get("/v1/users"), 401, "no-token")
        await store.tokens.revoke(token)
        await refused(await client.get("/v1/users"), 401, "no-token")
    async with asking(store, at_home=False, hosts=()) as client:
        await refused(await client.get("/v1/users"), 401, "no-token")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example:8377"}, 421),
        ({"Host": "[::1"}, 421),
        ({"Host": ""}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "localhost:8377"}, 200),
        ({"Host": "[::1]:8377"}, 200),
        ({"Host": "Memory.Example", "Origin": "https://memory.example"}, 200),
        ({"Origin": "http://127.0.0.1:3000"}, 200),
    ],
)
async def test_a_web_page_cannot_ask_in_its_visitor_s_name(
    store: AsyncMemoryStore, headers: dict[str, str], status: int
) -> None:
    async with asking(store, hosts=("127.0.0.1", "memory.example")) as client:
        for where in ("/v1/users", "/healthz"):
            assert (await client.get(where, headers=headers)).status_code == status


async def test_what_cannot_be_used_is_named_and_nothing_is_stored(store: AsyncMemoryStore) -> None:
    talk = path("alice", "conversations", "c", "messages")
    deep = '{"messages": ' + "[" * 100_000 + "]" * 100_000 + "}"
    headers = {"Content-Type": "application/json"}
    async with asking(store) as client:
        unread = await refused(await client.post(talk, content=b"{}"), 422, "invalid-request")
        assert "Content-Type: application/json" in unread["detail"]
        for body in ("{", "", "\xff", deep, '{"messages": NaN', "[1, 2"):
            answer = await client.post(
                talk, content=body.encode("latin-1"), headers={"Content-Type": "application/json"}
            )
            assert answer.status_code in (400, 422)
            assert answer.headers["content-type"] == PROBLEM
        for body, where in (
            ({}, "body.messages"),
            ({"messages": []}, "body.messages"),
            ({"messages": [{"role": "user", "content": "x", "colour": "red"}]}, "body.messages.0.colour"),
            ({"messages": [{"role": "king", "content": "x"}]}, "body.messages.0.role"),
            ({"messages": [{"role": "user"}]}, "body.messages.0"),
            ({"messages": [{"role": "user", "content": "x"}], "extra": 1}, "body.extra"),
            (
                {"messages": [{"role": "user", "content": "x", "occurred_at": "yesterday"}]},
                "body.messages.0.occurred_at",
            ),
        ):
            problem = await refused(await client.post(talk, json=body), 422, "invalid-request")
            assert where in [one["where"] for one in problem["errors"]], problem
        for text in ("nul \x00", "half \ud800"):
            raw = json.dumps({"messages": [{"role": "user", "content": text}]})
            answer = await client.post(talk, content=raw, headers=headers)
            assert (answer.status_code, answer.headers["content-type"]) == (422, PROBLEM)
        misspelt = await refused(await client.get(talk, params={"limt": 5, "role": "user"}), 422, "invalid-request")
        assert [one["where"] for one in misspelt["errors"]] == ["query.limt"]
        assert "limit" in misspelt["detail"]
        await refused(await client.get("/v1/stats", params={"x": "1"}), 422, "invalid-request")
        unknown = await client.get(talk, params={"limit": 0})
        assert "query.limit" in (await refused(unknown, 422, "invalid-request"))["detail"]
        assert (await client.get("/v1/stats")).json()["messages"] == 0


async def test_every_kind_of_failure_says_what_to_do(store: AsyncMemoryStore) -> None:
    context = path("alice", "conversations", "c", "context")
    async with asking(store) as client:
        await client.post(path("alice", "conversations", "c", "messages"), json=said(SECRET))
        problem = await refused(await client.post(context, json={"budget": 3}), 422, "budget-too-small")
        assert (await client.post(context, json={"budget": problem["needed"]})).is_success
        await refused(await client.post(context, json={}), 422, "invalid-input")
        await refused(
            await client.post(context, json={"budget": 90, "model": "tokenizer:/etc"}), 422, "invalid-request"
        )
        await refused(await client.post(context, json={"budget": 90, "strategy": ["magic"]}), 422, "invalid-input")
        await refused(await client.get(path("alice", "facts", str(uuid4()))), 404, "not-found")
        await refused(await client.get(path("alice", "receipts", str(uuid4()))), 404, "not-found")
        await refused(await client.get(path("alice", "receipts", "no-id")), 422, "invalid-request")
        await refused(await client.get("/v1/elsewhere"), 404, "not-found")
        put = await client.put(path("alice", "facts", str(uuid4())))
        await refused(put, 405, "method-not-allowed")
        assert put.headers["allow"] == "DELETE, GET, PATCH"


async def test_a_body_that_is_too_large_is_refused_before_it_is_read(url: str) -> None:
    settings = HASHING | {"server_body_bytes": 1000}
    talk = path("alice", "conversations", "c", "messages")

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 100

    async with await AsyncMemoryStore.open(url, settings=settings) as store, asking(store) as client:
        assert (await client.post(talk, json=said("x" * 100))).is_success
        problem = await refused(await client.post(talk, json=said("x" * 1000)), 413, "body-too-large")
        assert "1,000 bytes" in problem["detail"]
        headers = {"Content-Type": "application/json"}
        await refused(await client.post(talk, content=endless(), headers=headers), 413, "body-too-large")
        lying = await client.post(talk, content=b"{}", headers=headers | {"Content-Length": "nonsense"})
        await refused(lying, 413, "body-too-large")


async def test_who_asks_too_often_waits_and_others_do_not(url: str) -> None:
    settings = HASHING | {"server_requests_per_second": 0.05}
    async with await AsyncMemoryStore.open(url, settings=settings) as store:
        alice, bob = await store.tokens.create(user="alice"), await store.tokens.create(user="bob")
        async with asking(store, token=secret(alice)) as client:
            answers = [await client.get(path("alice")) for _ in range(3)]
            assert [one.status_code for one in answers] == [200, 429, 429]
            await refused(answers[-1], 429, "too-many-requests")
            assert 0 < int(answers[-1].headers["retry-after"]) <= 20
            assert (await client.get(path("bob"), headers=bearer(bob.secret))).is_success


async def test_guessing_tokens_is_slowed_down(store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "REFUSED_A_SECOND", 0.05)
    good = await store.tokens.create(user="alice")
    async with asking(store) as client:
        assert (await client.get(path("alice"), headers=bearer(good.secret))).is_success
        assert (await client.get(path("alice"), headers=bearer("mst_0"))).status_code == 401
        asked, holding = [], AsyncTokens.holding

        async def counted(self: AsyncTokens, hash: bytes) -> Any:
            asked.append(hash)
            return await holding(self, hash)

        monkeypatch.setattr(AsyncTokens, "holding", counted)
        answers = [await client.get(path("alice"), headers=bearer(f"mst_{n}")) for n in range(1, 4)]
        assert [one.status_code for one in answers] == [429, 429, 429]
        assert asked == []  # the database is not asked whose a guess is
        assert (await client.get(path("alice"), headers=bearer(good.secret))).is_success


async def test_of_200_guesses_at_once_no_more_reach_the_database_than_may_be_refused(
    store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "REFUSED_A_SECOND", 0.5)  # five at once
    good, new = await store.tokens.create(user="alice"), await store.tokens.create(user="bob")
    looked, holding = [], AsyncTokens.holding

    async def counted(self: AsyncTokens, hash: bytes) -> Any:
        looked.append(hash)
        return await holding(self, hash)

    async with asking(store) as client:
        assert (await client.get(path("alice"), headers=bearer(good.secret))).is_success
        monkeypatch.setattr(AsyncTokens, "holding", counted)
        guesses = [client.get(path("alice"), headers=bearer(f"mst_{n}")) for n in range(200)]
        known = [client.get(path("alice"), headers=bearer(good.secret)) for _ in range(10)]
        answers = [one.status_code for one in await asyncio.gather(*guesses, *known)]
        assert Counter(answers[:200]) == {401: 5, 429: 195}
        assert answers[200:] == [200] * 10
        assert len({*looked} - {hashed(secret(good))}) == 5
        again = await client.get(path("bob"), headers=bearer(new.secret))
        assert "address" in (await refused(again, 429, "too-many-requests"))["detail"]


async def test_many_who_come_at_once_with_new_tokens_from_one_address_all_come_in(
    store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "REFUSED_A_SECOND", 0.5)
    tokens = [secret(await store.tokens.create(user="alice")) for _ in range(20)]
    async with asking(store) as client:
        asked = [client.get(path("alice"), headers=bearer(one)) for one in tokens * 5]
        assert {one.status_code for one in await asyncio.gather(*asked)} == {200}


async def test_who_was_let_in_longest_ago_is_looked_up_anew_where_too_many_are_known(
    store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "SECONDS_KNOWN", 3600.0)
    monkeypatch.setattr(door, "MOST_KNOWN", 3)
    callers = door.Callers(store.tokens, open_without_tokens=False)
    hashes = [hashed(secret(await store.tokens.create(user="alice"))) for _ in range(4)]
    for one in hashes:
        assert await callers.caller(one) is not None
    assert [callers.met(one) is not None for one in hashes] == [False, True, True, True]


async def test_who_asks_too_often_costs_the_database_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "SECONDS_KNOWN", 0.0)
    settings = HASHING | {"server_requests_per_second": 0.05}

    async def never(*_: object) -> None:
        raise AssertionError("the database was asked")

    async with await AsyncMemoryStore.open(url, settings=settings) as store, asking(store) as client:
        alices = bearer((await store.tokens.create(user="alice")).secret)
        assert (await client.get(path("alice"), headers=alices)).is_success
        monkeypatch.setattr(AsyncTokens, "holding", never)
        await refused(await client.get(path("alice"), headers=alices), 429, "too-many-requests")


async def test_a_caller_has_so_many_streams_and_others_have_theirs(url: str) -> None:
    async with await AsyncMemoryStore.open(url, settings=HASHING | {"server_streams": 2}) as store:
        alice, bob = [bearer((await store.tokens.create(user=name)).secret) for name in ("alice", "bob")]
        async with serving(store) as (client, _), AsyncExitStack() as left:

            async def opened(user: str, headers: dict[str, str]) -> httpx.Response:
                asked = client.stream("GET", path(user, "events", "stream"), headers=headers)
                return await left.enter_async_context(asked)

            assert [(await opened("alice", alice)).status_code for _ in range(3)] == [200, 200, 429]
            assert (await opened("bob", bob)).status_code == 200
            assert (await client.get(path("alice", "events"), headers=alice)).is_success
            await left.aclose()
            async with asyncio.timeout(20):  # the server sees at its own pace that somebody left
                while (again := await opened("alice", alice)).status_code == 429:
                    problem = json.loads(await again.aread())
                    assert problem["type"].endswith("too-many-streams")
                    await asyncio.sleep(0.1)
            assert again.status_code == 200


async def test_metrics_are_served_while_the_database_is_away(
    store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect()
    operators, alices = [bearer((await store.tokens.create(user=name)).secret) for name in (None, "alice")]
    async with asking(store) as client:
        up = "\nmemstore_database_up{"
        assert "} 1.0" in (await client.get("/metrics", headers=operators)).text.partition(up)[2].partition("\n")[0]
        assert (await client.get(path("alice"), headers=alices)).is_success

        async def away(*_: object) -> None:
            raise DatabaseUnreachable("10.1.2.3 does not answer")

        monkeypatch.setattr(AsyncTokens, "holding", away)
        monkeypatch.setattr(AsyncMemoryStore, "job_counts", away)
        told = await client.get("/metrics", headers=operators)
        assert (told.status_code, told.text.partition(up)[2].partition("\n")[0][-5:]) == (200, "} 0.0")
        await refused(await client.get("/metrics", headers=alices), 403, "operators-only")
        await refused(await client.get("/metrics", headers=bearer("mst_new")), 503, "no-database")
        await refused(await client.get("/v1/stats", headers=operators), 503, "no-database")


async def test_metrics_of_a_database_that_is_silent_keep_no_thread(
    store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "SECONDS_KNOWN", 0.0)
    monkeypatch.setattr(door, "SECONDS_TO_LOOK", 0.1)
    monkeypatch.setattr(metrics, "SECONDS", 0.1)
    collect()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    async with asking(store) as client:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            silents = f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/none"
            assert (await client.get("/metrics")).is_success
            monkeypatch.setattr(store._database, "url", silents)
            monkeypatch.setattr(AsyncTokens, "exist", lambda _: asyncio.sleep(30))
            for _ in range(3):
                told = (await client.get("/metrics")).text
                assert "\nmemstore_database_up{" in told and "} 0.0" in told
            async with asyncio.timeout(3):
                await asyncio.to_thread(bool)


async def test_what_takes_too_long_is_given_up(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with await AsyncMemoryStore.open(url, settings=HASHING | {"server_timeout_seconds": 0.2}) as store:

        async def slowly(**_: object) -> dict[str, int]:
            await asyncio.sleep(30)
            return {}

        monkeypatch.setattr(store, "stats", slowly)
        async with asking(store) as client:
            await refused(await client.get("/v1/stats"), 503, "too-slow")


async def test_a_failure_nobody_expected_is_answered_and_logged_without_what_it_says(
    store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def failing(**_: object) -> dict[str, int]:
        raise RuntimeError(f"could not store {SECRET!r}")

    monkeypatch.setattr(store, "stats", failing)
    async with asking(store) as client:
        with caplog.at_level(logging.DEBUG):
            answer = await client.get("/v1/stats")
    await refused(answer, 500, "internal-error")
    assert "RuntimeError" in caplog.text and "peanuts" not in caplog.text + answer.text
    assert answer.headers["x-request-id"] in caplog.text


async def test_no_content_no_name_and_no_token_is_logged(
    store: AsyncMemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    token = secret(await store.tokens.create(user="alice-by-name"))
    with caplog.at_level(logging.DEBUG, logger="memstore"):
        async with asking(store, token=token) as client:
            talk = path("alice-by-name", "conversations", "lisbon-by-name")
            assert (await client.post(f"{talk}/messages", json=said(SECRET))).is_success
            assert (await client.post(f"{talk}/context", json={"query": SECRET, "budget": 300})).is_success
            await client.get(path("alice-by-name", "conversations"), params={"channel": SECRET})
            await client.post(f"{talk}/messages", json={"messages": [{"role": SECRET}]})
            await client.get(path("bob-by-name"), headers=bearer("mst_guessed"))
    assert "POST /v1/users/{user}/conversations/{conversation}/messages 201" in caplog.text
    for hidden in ("peanuts", "by-name", token, "mst_"):
        assert hidden not in caplog.text


async def test_without_its_database_it_says_so_and_not_where_that_is(
    store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = (await store.tokens.create()).secret

    async def away(*_: object) -> None:
        raise DatabaseUnreachable("10.1.2.3 does not answer")

    async with asking(store, token=token) as client:
        monkeypatch.setattr(AsyncTokens, "holding", away)
        answer = await client.get("/v1/users")
        await refused(answer, 503, "no-database")
        assert answer.headers["retry-after"]
        assert "10.1.2.3" not in answer.text


async def test_health_needs_no_token_and_tells_nothing(
    store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.tokens.create()
    async with asking(store) as client:
        for where in ("/healthz", "/readyz"):
            assert (await client.get(where)).json() == {"status": "ok"}
        await store._database.close()
        assert (await client.get("/healthz")).is_success
        await refused(await client.get("/readyz"), 503, "no-database")
