"""Every resource of the REST server, as a program uses it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from memstore.client.store import AsyncMemoryStore
from memstore.models import Certificate
from tests.rest import PROBLEM, asking, path, said

PEANUTS = "I'm allergic to peanuts, and I live in Porto."


@pytest.fixture
async def client(store: AsyncMemoryStore) -> AsyncIterator[httpx.AsyncClient]:
    async with asking(store) as client:
        yield client


async def ok(client: httpx.AsyncClient, method: str, where: str, body: Any = None, **more: Any) -> Any:
    answer = await client.request(method, where, json=body, **more)
    assert answer.is_success, answer.text
    return answer.json()


async def test_a_turn_of_an_assistant(client: httpx.AsyncClient) -> None:
    trip = path("alice", "conversations", "lisbon")
    (stored,) = await ok(client, "POST", f"{trip}/messages", said(PEANUTS))
    assert (stored["seq"], stored["content"]) == (1, PEANUTS)
    report = await ok(client, "POST", path("alice", "derive"))
    assert (report["messages"], report["failed"]) == (1, [])
    asked = {"query": "What should I avoid eating?", "budget": 500, "system": "You are kind.", "receipt": True}
    context = await ok(client, "POST", f"{trip}/context", asked)
    assert "peanuts" in str(context["messages"])
    assert context["messages"][-1] == {"role": "user", "content": asked["query"]}
    assert context["tokens"] == sum(context["sections"].values()) <= 500
    receipt = await ok(client, "GET", path("alice", "receipts", context["receipt_id"]))
    assert receipt == context["receipt"]


async def test_a_context_is_the_library_s(client: httpx.AsyncClient, store: AsyncMemoryStore) -> None:
    trip = store.user("alice").conversation("lisbon")
    await trip.add_many([{"role": "user", "content": f"Point {n}: {PEANUTS}"} for n in range(30)])
    await store.derive()
    for format in ("openai", "anthropic", "text"):
        asked = {"query": "Where do I live?", "budget": 300, "format": format, "model": "gpt-4o", "strategy": []}
        answer = await ok(client, "POST", path("alice", "conversations", "lisbon", "context"), asked)
        made = await trip.context(**asked)  # type: ignore[arg-type]
        assert answer["messages"] == made.messages
        assert (answer["system"], answer["text"]) == (made.system, made.text)
        assert (answer["tokens"], answer["sections"]) == (made.tokens, dict(made.receipt.sections))


async def test_recall_finds_hits(client: httpx.AsyncClient, store: AsyncMemoryStore) -> None:
    await store.user("alice").conversation("lisbon").add("user", PEANUTS)
    await store.derive()
    asked = {"query": "peanuts", "limit": 5, "conversation": "lisbon", "tiers": ["messages"], "roles": ["user"]}
    (hit,) = await ok(client, "POST", path("alice", "recall"), asked)
    assert (hit["text"], hit["tier"], hit["role"]) == (PEANUTS, "messages", "user")
    assert hit["score"] == pytest.approx(sum(hit["parts"].values()))
    assert await ok(client, "POST", path("alice", "recall"), asked | {"since": "2999-01-01T00:00:00Z"}) == []


async def test_null_is_as_if_left_out_and_a_day_is_a_time(client: httpx.AsyncClient) -> None:
    told = {"role": "user", "content": "We painted the fence.", "occurred_at": "2026-05-03T10:00:00Z", "name": None}
    talk = path("alice", "conversations", "home", "messages")
    sent = await client.post(talk, json={"messages": [told | {"tags": None, "metadata": None}], "on_conflict": None})
    assert sent.json()[0]["metadata"] == {} and "meta" not in sent.json()[0]
    await client.post(path("alice", "derive"))
    nulls = dict.fromkeys(("limit", "tiers", "conversation", "roles", "min_score", "as_of"))
    for day, expected in (("2026-05-01", 1), ("2026-05-04", 0)):
        asked = {"query": "fence", "since": day, **nulls, "tiers": ["messages"]}
        assert len((await client.post(path("alice", "recall"), json=asked)).json()) == expected
    context = {"query": "fence?", "budget": 200, "sections": None, "tools": None, "format": None, "receipt": None}
    assert (await client.post(path("alice", "conversations", "home", "context"), json=context)).is_success


async def test_facts_by_hand_and_back(client: httpx.AsyncClient) -> None:
    facts = path("alice", "facts")
    made = await ok(client, "POST", facts, {"text": "The user lives in Porto.", "type": "identity"})
    again = await ok(client, "POST", facts, {"text": "The user lives in Porto.", "type": "identity"})
    assert again["id"] == made["id"]
    edited = await ok(client, "PATCH", f"{facts}/{made['id']}", {"text": "The user lives in Leeds."})
    assert [one["id"] for one in (await ok(client, "GET", facts))["items"]] == [edited["id"]]
    assert (await ok(client, "GET", f"{facts}/{made['id']}"))["state"] == "superseded"
    assert (await ok(client, "DELETE", f"{facts}/{edited['id']}"))["state"] == "retracted"
    assert (await ok(client, "GET", facts))["items"] == []
    history = await ok(client, "GET", f"{facts}/{edited['id']}/history")
    retracted = next(one for one in history if one["action"] == "retracted")
    assert (await ok(client, "POST", path("alice", "changes", retracted["id"], "undo")))["undoes"] == retracted["id"]


async def test_plans_whose_time_has_passed_are_ended_and_back(client: httpx.AsyncClient) -> None:
    told = [
        {"role": "user", "content": text, "occurred_at": "2026-05-25T10:00:00Z"}
        for text in ("I'm going camping next month.", "I have a dentist appointment next week.")
    ]
    await ok(client, "POST", path("alice", "conversations", "may", "messages"), {"messages": told})
    await ok(client, "POST", path("alice", "derive"))
    tidy = path("alice", "tidy")
    proposals = await ok(client, "GET", tidy)
    assert {proposal["ends_at"][:10] for proposal in proposals} == {"2026-06-08", "2026-07-01"}
    (ended, kept) = (proposal["fact"]["id"] for proposal in proposals)
    unknown = await client.post(tidy, json={"accept": [ended, str(uuid4())]})
    assert (unknown.status_code, len(await ok(client, "GET", tidy))) == (404, 2)
    changes = await ok(client, "POST", tidy, {"accept": [ended], "refuse": [kept]})
    assert [change["action"] for change in changes if change["fact_id"] == ended] == ["edited"]
    assert (await ok(client, "GET", path("alice", "facts", ended)))["state"] == "ended"
    assert await ok(client, "GET", tidy) == []
    (change,) = (change["id"] for change in changes if change["fact_id"] == ended)
    assert [undone["fact_id"] for undone in await ok(client, "POST", f"{tidy}/{change}/undo")] == [ended]
    assert (await ok(client, "GET", path("alice", "facts", ended)))["state"] == "active"
    assert (await client.post(f"{tidy}/{change}/undo")).status_code == 409


async def test_what_was_said_is_erased_with_a_certificate_that_is_verified(
    client: httpx.AsyncClient, store: AsyncMemoryStore
) -> None:
    said = [
        {"role": "user", "content": text} for text in ("I live in Porto.", "I am allergic to nuts.", "I have a cat.")
    ]
    messages = (await client.post(path("alice", "conversations", "c", "messages"), json={"messages": said})).json()
    await client.post(path("alice", "conversations", "d", "messages"), json={"messages": said[:1]})
    await client.post(path("alice", "derive"))
    facts = (await client.get(path("alice", "facts"))).json()["items"]
    [nuts] = [fact["id"] for fact in facts if "nuts" in fact["text"]]
    places = [
        ("DELETE", path("alice", "messages", messages[2]["id"])),
        ("POST", path("alice", "facts", nuts, "erase")),
        ("DELETE", path("alice", "conversations", "c")),
        ("DELETE", path("alice")),
    ]
    for method, place in places:
        for misspelt in ({"dryRun": True}, {"dry-run": True}):
            assert (await client.request(method, place, params=misspelt)).status_code == 422
        for params, body in ({"dry_run": [True, False]}, None), ({}, {"dry_run": True}), ({}, [1]):
            answer = await client.request(method, place, params=params, json=body)
            assert (answer.status_code, answer.json()["errors"][0]["where"]) == (
                422,
                "body" if body else "query.dry_run",
            )
        rehearsal = (await client.request(method, place, params={"dry_run": True}, json={})).json()
        answer = await client.request(method, place)
        certificate = answer.json()
        assert answer.is_success and rehearsal["id"] is None and rehearsal["counts"] == certificate["counts"]
        assert Certificate.from_dict(certificate).id is not None
        kept = path("alice", "erasures", certificate["id"])
        assert (await client.get(kept)).json() == certificate
        verified = (await client.post(f"{kept}/verify")).json()
        assert verified["tables"] > 10 and verified["found"] == {}
        assert (await client.post("/v1/erasures/verify", json=certificate)).json() == verified
        for wrong in (certificate | {"erased": []}, certificate | {"scope": "moon"}, {}):
            assert (await client.post("/v1/erasures/verify", json=wrong)).status_code == 422
    assert (await client.get(path("alice", "erasures"))).json()[0] == certificate
    assert (await store.stats(user="alice"))["messages"] == 0
    assert (await client.delete(path("alice", "messages", str(uuid4())))).status_code == 404
    assert (await client.delete(path("nobody"))).json()["counts"] == {}


async def test_conversations_are_described_and_listed(client: httpx.AsyncClient, store: AsyncMemoryStore) -> None:
    trip = path("alice", "conversations", "lisbon")
    missing = await client.get(trip)
    assert (missing.status_code, missing.headers["content-type"]) == (404, PROBLEM)
    described = {"title": "Lisbon", "channel": "mail", "strategy": "tool_calls", "settings": {"context_budget": 900}}
    made = await ok(client, "PATCH", trip, described)
    assert (made["name"], made["title"], made["channel"], made["last_seq"]) == ("lisbon", "Lisbon", "mail", 0)
    assert [one["strategy"] for one in made["settings"]["strategy"]] == ["tool_calls"]
    await ok(client, "POST", f"{trip}/messages", said(PEANUTS, "And on Friday I fly to Lisbon.", "That is all."))
    assert (await ok(client, "POST", f"{trip}/context", {}))["budget"] == 900
    summary = await store.user("alice").conversation("lisbon").summarize(1, 2)
    (listed_summary,) = await ok(client, "GET", f"{trip}/summaries", params={"level": 0})
    assert (listed_summary["id"], listed_summary["level"]) == (str(summary.id), 0)
    listed = await ok(client, "GET", path("alice", "conversations"), params={"channel": "mail"})
    assert [one["name"] for one in listed["items"]] == ["lisbon"]
    assert (await ok(client, "GET", path("alice", "conversations"), params={"channel": "chat"}))["items"] == []


async def test_memory_is_asked_for_in_a_scope(client: httpx.AsyncClient, store: AsyncMemoryStore) -> None:
    for scope in ("otter", "lynx"):
        talk = path("alice", "conversations", scope)
        assert (await ok(client, "PATCH", talk, {"scope": scope}))["scope"] == scope
        await ok(client, "POST", f"{talk}/messages", said(f"We decided to deploy {scope} on Fridays."))
    await store.derive()
    asked = {"query": "When do we deploy?", "scope": "otter"}
    alone = await ok(client, "POST", path("alice", "recall"), asked | {"scope": ["otter"]})
    context = await ok(client, "POST", f"{path('alice', 'conversations', 'new')}/context", asked | {"budget": 900})
    listed = await ok(client, "GET", path("alice", "facts"), params={"scope": "otter"})
    profile = await ok(client, "GET", path("alice", "profile"), params={"scope": "otter", "subject": "The user"})
    for shown in (await ok(client, "POST", path("alice", "recall"), asked), alone, context, listed):
        assert "otter" in str(shown) and "lynx" not in str(shown)
    assert "lynx" not in str(profile)
    refused = await client.post(path("alice", "recall"), json=asked | {"scope": []})
    assert refused.status_code == 422


async def test_the_operator_sees_users_and_numbers_and_derives(client: httpx.AsyncClient) -> None:
    for name in ("alice", "bob", "carol"):
        await ok(client, "POST", path(name, "conversations", "c", "messages"), said(PEANUTS))
    first = await ok(client, "GET", "/v1/users", params={"limit": 2})
    assert first["items"] == ["alice", "bob"]
    rest = await ok(client, "GET", "/v1/users", params={"cursor": first["next_cursor"]})
    assert rest == {"items": ["carol"], "next_cursor": None}
    assert (await ok(client, "GET", "/v1/stats"))["messages"] == 3
    assert (await ok(client, "GET", path("bob")))["stats"]["messages"] == 1
    assert (await ok(client, "POST", "/v1/derive"))["messages"] == 3


@pytest.mark.parametrize(
    "name", ["a/b", "50%", "%2F", "zoë 漢字 👩‍👩‍👧", "line\nbreak", "a?b#c;d", "..", "a+b&c=d", "\u202eevil", "x" * 300]
)
async def test_names_may_be_anything(client: httpx.AsyncClient, store: AsyncMemoryStore, name: str) -> None:
    await ok(client, "POST", path(name, "conversations", name, "messages"), said(PEANUTS))
    assert [user async for user in store.users()] == [name]
    assert [one.name for one in await store.user(name).conversations()] == [name]
    found = await ok(client, "GET", path(name, "conversations", name, "messages"))
    assert [one["content"] for one in found["items"]] == [PEANUTS]
    assert (await ok(client, "GET", path(name)))["name"] == name


@pytest.mark.parametrize("part", ["%00", "%ff", "%20", "%ED%A0%80"])
async def test_what_no_name_may_be_is_refused(client: httpx.AsyncClient, part: str) -> None:
    answer = await client.get(f"/v1/users/{part}")
    assert (answer.status_code, answer.headers["content-type"]) == (422, PROBLEM)


async def test_a_parameter_that_is_a_list_may_be_repeated(client: httpx.AsyncClient) -> None:
    talk = path("alice", "conversations", "talk", "messages")
    roles = ("system", "user", "assistant", "tool")
    await ok(client, "POST", talk, {"messages": [{"role": role, "content": "Hello."} for role in roles]})
    page = await ok(client, "GET", talk, params={"role": ["user", "assistant"]})
    assert [message["role"] for message in page["items"]] == ["user", "assistant"]
    twice = await client.get(talk, params={"role": ["user", "tool"], "limit": [1, 2]})
    assert [error["where"] for error in twice.json()["errors"]] == ["query.limit"]


async def pages(client: httpx.AsyncClient, where: str, limit: int) -> AsyncIterator[list[Any]]:
    params: dict[str, Any] = {"limit": limit}
    while params:
        page = await ok(client, "GET", where, params=params)
        yield page["items"]
        params = {"limit": limit, "cursor": page["next_cursor"]} if page["next_cursor"] else {}


async def test_pages_have_every_message_once_while_more_are_said(client: httpx.AsyncClient) -> None:
    talk = path("alice", "conversations", "talk", "messages")
    await ok(client, "POST", talk, said(*(f"Point {n}." for n in range(25))))
    seen: list[int] = []
    async for page in pages(client, talk, 10):
        seen += [one["seq"] for one in page]
        if len(seen) == 20:
            await ok(client, "POST", talk, said(*(f"Later {n}." for n in range(7))))
    assert seen == list(range(1, 33))


async def test_a_fact_that_is_proposed_waits_until_it_is_confirmed(client: httpx.AsyncClient) -> None:
    facts, fact = path("alice", "facts"), {"text": "The user lives in Porto.", "type": "identity"}
    recall, asked = path("alice", "recall"), {"query": "Porto", "tiers": ["facts"]}
    made = await ok(client, "POST", facts, fact | {"quarantined": True})
    assert made["state"] == "quarantined"
    assert (await ok(client, "GET", facts))["items"] == await ok(client, "POST", recall, asked) == []
    waiting = await ok(client, "GET", facts, params={"state": "quarantined"})
    assert [one["id"] for one in waiting["items"]] == [made["id"]]
    assert (await ok(client, "POST", f"{facts}/{made['id']}/confirm"))["state"] == "active"
    assert [one["id"] for one in await ok(client, "POST", recall, asked)] == [made["id"]]
    assert (await ok(client, "POST", facts, fact | {"quarantined": True}))["state"] == "active"
    for wrong in ("yes", 1):
        assert (await client.post(facts, json=fact | {"quarantined": wrong})).status_code == 422


async def test_pages_of_conversations_and_facts_have_each_once(client: httpx.AsyncClient) -> None:
    names = [f"c{n}" for n in range(7)]
    for name in names:
        await ok(client, "POST", path("alice", "conversations", name, "messages"), said(f"I like tea number {name}."))
        await ok(client, "POST", path("alice", "facts"), {"text": f"The user likes {name}.", "type": "preference"})
    for place, field in (("conversations", "name"), ("facts", "text")):
        seen = [one[field] async for page in pages(client, path("alice", place), 3) for one in page]
        assert len(seen) == len(set(seen)) == 7
    assert seen[0] == "The user likes c6."
    facts = path("alice", "facts")
    page = await ok(client, "GET", facts, params={"limit": 3})
    await ok(client, "POST", f"{facts}/{page['items'][-1]['id']}/erase")
    gone = await client.get(facts, params={"cursor": page["next_cursor"]})
    assert (gone.status_code, "begin at the first page" in gone.json()["detail"]) == (404, True)


async def test_a_cursor_that_is_none_is_refused(client: httpx.AsyncClient) -> None:
    users = await ok(client, "POST", path("alice", "conversations", "c", "messages"), said("a", "b"))
    assert users
    page = await ok(client, "GET", path("alice", "conversations", "c", "messages"), params={"limit": 1})
    for cursor in ("nonsense", "é", page["next_cursor"], "W10", "WzFd"):
        answer = await client.get("/v1/users", params={"cursor": cursor})
        assert (answer.status_code, answer.headers["content-type"]) == (422, PROBLEM)


async def test_messages_with_ids_are_stored_once_in_a_row_and_at_once(client: httpx.AsyncClient) -> None:
    talk = path("alice", "conversations", "talk", "messages")
    body = {"messages": [one | {"external_id": str(n)} for n, one in enumerate(said("First.", "Second.")["messages"])]}
    answers = await asyncio.gather(*(ok(client, "POST", talk, body) for _ in range(8)))
    assert all(answer == answers[0] for answer in answers)
    assert await ok(client, "POST", talk, body) == answers[0]
    assert len((await ok(client, "GET", talk))["items"]) == 2
    other = {"messages": [body["messages"][0] | {"content": "Other."}]}
    refused = await client.post(talk, json=other)
    assert (refused.status_code, refused.headers["content-type"]) == (409, PROBLEM)
