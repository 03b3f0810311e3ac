"""Who may ask the REST server and for whom; what it refuses, and what it says then."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from memstore import InvalidInput, NotFound, ids
from memstore.client.admin import AsyncTokens
from memstore.client.store import AsyncMemoryStore
from memstore.errors import DatabaseUnreachable
from memstore.models import ApiToken
from tests.rest import HASHING, PROBLEM, asking, bearer, path, said

SECRET = "I'm allergic to peanuts."


async def refused(answer: httpx.Response, status: int, kind: str) -> dict[str, Any]:
    """Give the problem of an answer that is one, and says what to do."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM), answer.text
    problem = answer.json()
    assert (problem["type"], problem["status"]) == (f"urn:memstore:problem:{kind}", status)
    assert len(problem["detail"]) > 15
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
        for where in (path("alice"), path("bob"), "/v1/users"):
            answer = await client.get(where, headers=headers)
            problem = await refused(answer, 401, "no-token")
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert "memstore token create" in problem["detail"]


async def test_one_user_s_token_opens_nothing_of_another_and_does_not_say_whether_there_is_one(
    store: AsyncMemoryStore,
) -> None:
    message = await store.user("bob").conversation("c").add("user", SECRET)
    await store.user("bob").conversation("gone").add("user", "Nothing.")
    certificate = await store.user("bob").conversation("gone").erase()
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
            ("POST", ("recall",), {"query": "peanuts"}),
            ("GET", ("facts",), None),
            ("GET", ("facts", str(fact.id)), None),
            ("DELETE", ("facts", str(fact.id)), None),
            ("GET", ("receipts", str(receipt)), None),
            ("POST", ("derive",), None),
            ("DELETE", (), None),
            ("DELETE", ("conversations", "c"), None),
            ("DELETE", ("messages", str(message.id)), None),
            ("POST", ("facts", str(fact.id), "erase"), None),
            ("GET", ("erasures",), None),
            ("GET", ("erasures", str(certificate.id)), None),
            ("POST", ("erasures", str(certificate.id), "verify"), None),
        ):
            answers = [await client.request(method, path(name, *rest), json=body) for name in ("bob", "nobody")]
            problems = [await refused(answer, 404, "not-found") for answer in answers]
            assert problems[0] == problems[1]
        await refused(await client.post("/v1/erasures/verify", json=certificate.as_dict()), 403, "operators-only")
        for own in (("facts", str(fact.id)), ("receipts", str(receipt)), ("facts", str(fact.id), "history")):
            assert (await client.get(path("alice", *own))).status_code in (200, 404)
            assert "Leeds" not in (await client.get(path("alice", *own))).text
        await refused(await client.delete(path("alice", "facts", str(fact.id))), 404, "not-found")
        hits = await client.post(path("alice", "recall"), json={"query": "peanuts Leeds"})
        assert "peanuts" not in hits.text and "Leeds" not in hits.text
    assert (await store.user("bob").fact(fact.id)).state == "active"
    assert len(await store.user("bob").conversation("c").messages()) == 1


async def test_what_the_operator_does_a_user_s_token_may_not(store: AsyncMemoryStore) -> None:
    users, operators = await store.tokens.create(user="alice"), await store.tokens.create()
    async with asking(store, token=secret(users)) as client:
        for method, where in (
            ("GET", "/v1/users"),
            ("GET", "/v1/stats"),
            ("POST", "/v1/derive"),
        ):
            await refused(await client.request(method, where), 403, "operators-only")
    async with asking(store, token=secret(operators)) as client:
        assert (await client.get("/v1/stats")).is_success
        assert (await client.get(path("alice"))).is_success


async def test_this_machine_needs_no_token_until_there_was_one(store: AsyncMemoryStore) -> None:
    async with asking(store) as client:
        assert (await client.get("/v1/users")).is_success
        token = await store.tokens.create(user="alice")
        assert (await client.get(path("alice"), headers=bearer(token.secret))).is_success
        await refused(await client.get("/v1/users"), 401, "no-token")
        await store.tokens.revoke(token)
        await refused(await client.get("/v1/users"), 401, "no-token")
        await refused(await client.get(path("alice"), headers=bearer(token.secret)), 401, "no-token")
    async with asking(store, allow_local=False, hosts=()) as client:
        await refused(await client.get("/v1/users"), 401, "no-token")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 400),  # which a page on the web may have for a name of 127.0.0.1 (DNS rebinding)
        ({"Host": "127.0.0.1.evil.example:8377"}, 400),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Host": "localhost:8377", "Origin": "http://localhost:8377"}, 200),
        ({"Host": "[::1]:8377"}, 200),
        ({"Host": "Memory.Example", "Origin": "https://memory.example"}, 200),
    ],
)
async def test_a_web_page_cannot_ask_in_its_visitor_s_name(
    store: AsyncMemoryStore, headers: dict[str, str], status: int
) -> None:
    async with asking(store, hosts=("127.0.0.1", "localhost", "[::1]", "memory.example")) as client:
        assert (await client.post(path("alice", "derive"), headers=headers)).status_code == status
        assert (await client.get("/healthz", headers=headers)).status_code == (400 if status == 400 else 200)


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
            ({"messages": []}, "body.messages"),
            ({"messages": [{"role": "user", "content": "x", "colour": "red"}]}, "body.messages.0.colour"),
            ({"messages": [{"role": "king", "content": "x"}]}, "body.messages.0.role"),
            ({"messages": [{"role": "user", "content": "x"}], "extra": 1}, "body.extra"),
        ):
            problem = await refused(await client.post(talk, json=body), 422, "invalid-request")
            assert where in [one["where"] for one in problem["errors"]], problem
        for text in ("nul \x00", "half \ud800"):
            raw = json.dumps({"messages": [{"role": "user", "content": text}]})
            answer = await client.post(talk, content=raw, headers=headers)
            assert (answer.status_code, answer.headers["content-type"]) == (422, PROBLEM)
        misspelt = await refused(await client.get(talk, params={"limt": 5, "role": "user"}), 422, "invalid-request")
        assert [one["where"] for one in misspelt["errors"]] == ["query.limt"]
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
        for model in ("estimated:nan", "tiktoken:nope"):
            await refused(await client.post(context, json={"budget": 90, "model": model}), 422, "provider-missing")
        await refused(await client.post(context, json={"budget": 90, "strategy": ["magic"]}), 422, "invalid-input")
        await refused(await client.get(path("alice", "facts", str(uuid4()))), 404, "not-found")
        await refused(await client.get(path("alice", "receipts", str(uuid4()))), 404, "not-found")
        await refused(await client.get(path("alice", "receipts", "no-id")), 422, "invalid-request")
        await refused(await client.get("/v1/elsewhere"), 404, "not-found")
        await refused(await client.put("/v1/stats"), 405, "method-not-allowed")


async def test_without_a_token_nothing_of_a_body_is_read(store: AsyncMemoryStore) -> None:
    read = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(100):
            read += 1
            yield b" " * 1000

    async with asking(store, allow_local=False) as client:
        for place in (path("alice", "recall"), "/v1/derive", "/mcp/alice"):
            answer = await client.post(place, content=body(), headers={"Content-Type": "application/json"})
            await refused(answer, 401, "no-token")
            await refused(await client.post(place, content=b" " * 17_000_000), 401, "no-token")
        assert (await client.get("/metrics")).status_code == 401
    assert read <= 3, "the first piece at most"


async def test_a_body_that_is_too_large_is_refused_before_it_is_read(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = HASHING | {"server_body_bytes": 1000}
    talk = path("alice", "conversations", "c", "messages")

    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(100):
            read += 100
            yield b" " * 100

    async with await AsyncMemoryStore.open(url, settings=settings) as store, asking(store) as client:
        assert (await client.post(talk, json=said("x" * 100))).is_success
        with caplog.at_level(logging.ERROR):
            await refused(await client.post(talk, json=said("x" * 1000)), 413, "body-too-large")
        assert not caplog.records
        headers = {"Content-Type": "application/json"}
        await refused(await client.post(talk, content=endless(), headers=headers), 413, "body-too-large")
    assert read <= 1200, "one piece more at most"


async def test_what_takes_too_long_is_given_up(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with await AsyncMemoryStore.open(url, settings=HASHING) as store:

        async def slowly(**_: object) -> dict[str, int]:
            await asyncio.sleep(30)
            return {}

        monkeypatch.setattr(store, "stats", slowly)
        monkeypatch.setattr("memstore.server.http.app.ANSWER_SECONDS", 0.2)
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


async def test_without_its_database_it_says_so_and_not_where_that_is(
    store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = (await store.tokens.create()).secret

    async def away(*_: object) -> None:
        raise DatabaseUnreachable("10.1.2.3 does not answer")

    async with asking(store, token=token) as client:
        monkeypatch.setattr(AsyncTokens, "holder", away)
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


# Tokens


@pytest.mark.parametrize(
    "wrong", [{"user": " "}, {"name": ""}, {"days": 0}, {"days": -1}, {"days": 1e9}, {"user": "\0"}]
)
async def test_a_token_that_cannot_be_is_refused(store: AsyncMemoryStore, wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        await store.tokens.create(**wrong)  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        await store.tokens.revoke(ids.uuid7())
    assert not await store.tokens.exist()
