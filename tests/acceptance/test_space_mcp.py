"""Spaces by MCP: no name, id, resource, session or token opens one to a user without a grant."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest

pytest.importorskip("mcp")

import mcp_types as types
from mcp import Client

from memstore import ids
from memstore.client.store import AsyncMemoryStore
from memstore.errors import InvalidInput
from memstore.server.http.app import load_mcp
from memstore.server.mcp.server import MemoryServer
from memstore.server.owners import SEPARATOR
from tests.rest import HASHING, asking, bearer

SECRET = "heron"
OTTER = ids.user_id("space:otter")
RESOURCES = "memstore://facts", "memstore://inbox", "memstore://profile"
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
FOREIGN_RESOURCES = (
    "memstore://otter/facts",
    "memstore://facts/otter",
    "memstore://spaces/otter/facts",
    "memstore://facts?space=otter",
    "memstore://facts?user=alice",
    "memstore://alice/facts",
    f"memstore://{OTTER}/facts",
    "memstore://facts#otter",
    "memstore://facts/../../alice/facts",
    "memstore://FACTS",
    "memstore://otter@facts",
)


def request(id: int, method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) + "\n"


INITIALIZE = request(
    1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"}
)


@pytest.fixture
async def store(url: str) -> AsyncIterator[AsyncMemoryStore]:
    """A space Otter of Alice's, where Bob writes and Carol reads; Alice has a memory alone, too."""
    async with await AsyncMemoryStore.open(url, settings=HASHING) as store:
        otter = await store.user("alice").create_space("otter")
        await otter.grant("bob")
        await otter.grant("carol", "read")
        await otter.conversation("standup").add("user", "The staging server is called heron.")
        await store.user("alice").conversation("home").add("user", "My own heron is made of glass.")
        await otter.add_fact("Our mascot is a heron.", type="identity")
        await otter.add_fact("Maybe a second heron.", quarantined=True)
        await store.derive()
        yield store


@asynccontextmanager
async def as_owner(store: AsyncMemoryStore, owner: str) -> AsyncIterator[Client]:
    async with Client(MemoryServer(store, owner)) as client:
        yield client


async def answer(client: Client, tool: str, **given: Any) -> tuple[str, bool]:
    result = await client.call_tool(tool, given)
    assert isinstance(result, types.CallToolResult)
    return result.model_dump_json(), bool(result.is_error)


async def read(client: Client, uri: str) -> str:
    try:
        return (await client.read_resource(uri)).model_dump_json()
    except Exception as error:  # whatever it is, it may not have the words
        return f"refused: {error!r} {error.__cause__!r}"


async def everything(store: AsyncMemoryStore) -> dict[str, list[str]]:
    """Return ids that Eve may have heard of: of what stands in Otter and in Alice's memory."""
    found: dict[str, list[str]] = {"fact": [], "message": [], "summary": []}
    for owner in (store.space("otter"), store.user("alice")):
        found["fact"] += [fact.id.hex for fact in await owner.facts(state=None)]
        for conversation in await owner.conversations():
            talk = owner.conversation(conversation.name)
            found["message"] += [f"{conversation.name}#{message.seq}" for message in await talk.messages()]
            found["message"] += [message.id.hex for message in await talk.messages()]
            found["summary"] += [summary.id.hex for summary in await talk.summaries()]
    return found


# Names of spaces and users that are like "otter", and what a path, a header or SQL may make of others.
LOOKALIKES = (
    "otter", "space:otter", "Otter", "OTTER", "otter ", " otter", "otter\t", "оtter", "ｏｔｔｅｒ", "o\u0301tter",
    "otter\u200b",
    "ot\u00adter", "otter/", "/otter", "../otter", "./otter", "alice/spaces/otter", "spaces/otter", "otter%00",
    "%6ftter",
    "otter#", "otter?", "otter;--", "otter' or '1'='1", "%", "_tter", "*", str(OTTER), OTTER.hex, OTTER.hex[:8],
    "alice", "bob",
    "o" * 200, "\U0001f9a6", "𝐨𝐭𝐭𝐞𝐫",
)  # fmt: skip


async def test_no_name_of_a_space_opens_it_to_a_stranger(store: AsyncMemoryStore) -> None:
    asked = 0
    async with as_owner(store, "eve") as eve:
        await answer(eve, "add_memory", text="I am Eve.")
        for name in (*LOOKALIKES, "o" * 10_000, "otter\0", "\0otter", "otter\ud800"):
            for spaces in ([name], name, [name, name], ["eve", name], {"name": name}, [[name]]):
                try:
                    text, failed = await answer(eve, "search_memories", query="heron", spaces=spaces)
                except UnicodeEncodeError:
                    continue
                assert failed, (name, spaces)
                assert "mascot" not in text and "staging" not in text and "glass" not in text
                assert "Traceback" not in text and "psycopg" not in text
                asked += 1
        assert asked > 150


async def test_no_id_of_a_space_s_memory_opens_it_to_a_stranger_or_to_another_memory(store: AsyncMemoryStore) -> None:
    found = await everything(store)
    assert all(found[kind] for kind in ("fact", "message"))
    asked = 0
    for user in ("eve", "bob"):
        async with as_owner(store, user) as client:
            for kind, ids_of_kind in found.items():
                for id in ids_of_kind:
                    for form in (f"{kind}:{id}", id, f"{kind}:{id[:8]}", f"{kind}:{id[:4]}", f" {kind}:{id.upper()}"):
                        if len(form.strip()) < 4:
                            continue
                        for tool, more in (
                            ("get_memory", {}),
                            ("update_memory", {"text": "Mine."}),
                            ("delete_memory", {}),
                        ):
                            text, failed = await answer(client, tool, id=form, **more)
                            assert failed, (tool, form)
                            assert SECRET not in text
                            asked += 1
                        text, failed = await answer(client, "list_memories", cursor=form)
                        assert SECRET not in text
                        text, failed = await answer(client, "add_memory", text="A new fact.", sources=[form])
                        assert failed and SECRET not in text
                        asked += 2
    assert asked > 150
    assert {fact.state for fact in await store.space("otter").facts(state=None)} == {"active", "quarantined"}


async def test_every_tool_and_resource_for_a_space_is_refused_without_a_grant(store: AsyncMemoryStore) -> None:
    calls: dict[str, dict[str, Any]] = {
        "search_memories": {"query": "heron"},
        "add_memory": {"text": "I was here."},
        "get_memory": {"id": "message:standup#1"},
        "list_memories": {},
        "update_memory": {"id": (await store.space("otter").facts())[0].id.hex, "text": "I was here."},
        "delete_memory": {"id": (await store.space("otter").facts())[0].id.hex},
        "get_context": {"query": "heron?", "conversation": "standup"},
        "remember_messages": {"conversation": "standup", "messages": [{"role": "user", "content": "I was here."}]},
    }
    asked = 0
    async with AsyncExitStack() as stack:
        for owner in (
            f"eve{SEPARATOR}otter",
            f"eve{SEPARATOR}no-such",
            f"alice{SEPARATOR}seal",
            f"otter{SEPARATOR}otter",
        ):
            client = await stack.enter_async_context(as_owner(store, owner))
            assert {tool.name for tool in (await client.list_tools()).tools} == calls.keys()
            for tool, given in calls.items():
                text, failed = await answer(client, tool, **given)
                assert failed, (owner, tool)
                assert SECRET not in text
                assert "There is no such space" in text, text
                asked += 1
            for uri in (*RESOURCES, *FOREIGN_RESOURCES):
                told = await read(client, uri)
                assert told.startswith("refused"), (owner, uri)
                assert SECRET not in told
                asked += 1
        for owner in (
            f"eve{SEPARATOR}space:otter",
            f"eve{SEPARATOR}{OTTER}",
            f"eve{SEPARATOR}otter{SEPARATOR}x",
            "space:otter",
            f"{SEPARATOR}otter",
        ):
            client = await stack.enter_async_context(as_owner(store, owner))
            for tool, given in calls.items():
                text, failed = await answer(client, tool, **given)
                assert failed and SECRET not in text, (owner, tool)
                asked += 1
        eve = await stack.enter_async_context(as_owner(store, "eve"))
        for uri in (*RESOURCES, *FOREIGN_RESOURCES):
            assert SECRET not in await read(eve, uri)
            asked += 1
    assert asked > 100
    said = await store.space("otter").conversation("standup").messages()
    assert len(said) == 1
    assert [name async for name in store.spaces()] == ["otter"]


async def test_a_reader_changes_nothing_by_any_tool_and_reads_all(store: AsyncMemoryStore) -> None:
    [fact] = [fact for fact in await store.space("otter").facts() if "mascot" in fact.text]
    before = [fact.model_dump() for fact in await store.space("otter").facts(state=None)]
    async with as_owner(store, f"carol{SEPARATOR}otter") as carol:
        text, failed = await answer(carol, "search_memories", query="heron")
        assert not failed and "heron" in text
        for uri in RESOURCES:
            assert not (await read(carol, uri)).startswith("refused")
        changes: dict[str, dict[str, Any]] = {
            "add_memory": {"text": "I was here."},
            "update_memory": {"id": fact.id.hex, "text": "I was here."},
            "delete_memory": {"id": fact.id.hex},
            "remember_messages": {"conversation": "c", "messages": [{"role": "user", "content": "I was here."}]},
        }
        for tool, given in changes.items():
            text, failed = await answer(carol, tool, **given)
            assert failed and "may read the space" in text, (tool, text)
        text, failed = await answer(carol, "get_context", query="What is the mascot?")
        assert not failed, text
        assert "mascot" in text
    assert [fact.model_dump() for fact in await store.space("otter").facts(state=None)] == before


async def test_a_space_named_like_a_user_and_a_user_named_like_a_space_are_apart(store: AsyncMemoryStore) -> None:
    mallory = store.user("mallory")
    await (await mallory.create_space("alice")).conversation("c").add("user", "Mallory's words.")
    for name in ("spaces", "alice/spaces/otter", "otter", "space"):
        await store.user(name).conversation("c").add("user", "A user's words.")
    await store.derive()
    async with as_owner(store, f"mallory{SEPARATOR}alice") as client:
        text, failed = await answer(client, "search_memories", query="heron glass")
        assert not failed and SECRET not in text
    for name in ("otter", "alice/spaces/otter", "spaces"):
        async with as_owner(store, name) as client:
            text, failed = await answer(client, "search_memories", query="staging heron")
            assert not failed and SECRET not in text
    for name in ("space:otter", "space:", "space:x"):
        with pytest.raises(InvalidInput):
            store.user(name)


async def opened(http: httpx.AsyncClient, path: str, token: dict[str, str]) -> dict[str, str]:
    """Open a session; return its headers."""
    answer = await http.post(path, content=INITIALIZE, headers=HEADERS | token)
    assert answer.status_code == 200, answer.text
    return {"mcp-session-id": answer.headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}


async def test_paths_and_sessions_over_http_open_nothing_to_a_stranger(store: AsyncMemoryStore) -> None:
    async with asking(store, mcp=load_mcp(store)) as http:
        await check_paths_and_sessions(store, http)


async def check_paths_and_sessions(store: AsyncMemoryStore, http: httpx.AsyncClient) -> None:
    names = "bob", "eve", "otter", "spaces", "space:otter"
    tokens = {name: bearer((await store.tokens.create(user=name)).secret) for name in names}
    there = "/mcp/bob/spaces/otter"
    session = await opened(http, there, tokens["bob"])
    search = request(2, "tools/call", name="search_memories", arguments={"query": "heron"})
    assert "heron" in (await http.post(there, content=search, headers=HEADERS | tokens["bob"] | session)).text
    paths = (
        there, "/mcp/eve/spaces/otter", "/mcp/eve", "/mcp/eve/spaces/bob", "/mcp/bob", "/mcp/otter", "/mcp/space:otter",
        "/mcp/space%3Aotter", "/mcp/eve/spaces/space:otter", "/mcp/eve%2Fspaces%2Fotter", "/mcp/eve%00otter",
        "/mcp/bob%00otter", "/mcp/eve/spaces/otter%00", "/mcp/eve/spaces/../../bob/spaces/otter",
        "/mcp/eve/spaces//otter",
        "/mcp//spaces/otter", "/mcp/eve/spaces/otter/", "/mcp/eve/spaces/%6ftter", "/mcp/eve/spaces/eve/spaces/otter",
        f"/mcp/{OTTER}", f"/mcp/eve/spaces/{OTTER}", "/mcp/eve/spaces/", "/mcp/eve/spaces/%FF",
        "/mcp/eve/spaces/%ED%A0%80",
        "/mcp/eve/spaces/otter%0A", "/mcp/eve/SPACES/otter", "/mcp/eve/spaces/" + "o" * 5000,
        "/mcp/eve/spaces/%5Cotter",
    )  # fmt: skip
    asked = 0
    for name in names[1:]:
        for path in paths:
            for headers in ({}, session):
                for content in (INITIALIZE, search, request(3, "resources/read", uri="memstore://facts")):
                    answer = await http.post(path, content=content, headers=HEADERS | tokens[name] | headers)
                    assert "heron" not in answer.text, (name, path)
                    assert answer.status_code < 500, (name, path)
                    if path.startswith("/mcp/bob") or path == "/mcp/eve/spaces/otter":
                        assert answer.status_code in (404, 422), (name, path)
                    asked += 1
            left = await http.delete(path, headers=HEADERS | tokens[name] | session)
            assert left.status_code in (307, 400, 404, 405, 422), (name, path, left.status_code)
    assert asked > 400
    assert "heron" in (await http.post(there, content=search, headers=HEADERS | tokens["bob"] | session)).text


async def test_a_session_of_a_member_reads_nothing_once_the_grant_or_the_token_is_gone(store: AsyncMemoryStore) -> None:
    async with asking(store, mcp=load_mcp(store)) as http:
        await check_session_without_grant(store, http)


async def check_session_without_grant(store: AsyncMemoryStore, http: httpx.AsyncClient) -> None:
    bob = bearer((await store.tokens.create(user="bob")).secret)
    there, own = "/mcp/bob/spaces/otter", "/mcp/bob"
    session, alone = await opened(http, there, bob), await opened(http, own, bob)
    calls = [
        request(2, "tools/call", name="search_memories", arguments={"query": "heron"}),
        request(3, "tools/call", name="list_memories", arguments={}),
        request(4, "tools/call", name="get_memory", arguments={"id": "message:standup#1"}),
        request(5, "tools/call", name="get_context", arguments={"query": "heron"}),
        *(request(6, "resources/read", uri=uri) for uri in RESOURCES),
    ]
    together = request(7, "tools/call", name="search_memories", arguments={"query": "heron", "spaces": ["otter"]})

    async def ask() -> str:
        said = [await http.post(there, content=call, headers=HEADERS | bob | session) for call in calls]
        said.append(await http.post(own, content=together, headers=HEADERS | bob | alone))
        return " ".join(each.text for each in said)

    assert (await ask()).count("heron") >= 7
    await store.user("alice").space("otter").revoke("bob")
    assert "heron" not in await ask()
    await store.user("alice").space("otter").grant("bob", "read")
    assert "heron" in await ask()
    await store.user("bob").erase()
    assert "heron" not in await ask()


async def test_what_is_found_in_a_space_is_read_there(url: str) -> None:
    async with await AsyncMemoryStore.open(url, settings=HASHING) as store:
        otter = await store.user("alice").create_space("otter")
        await otter.conversation("standup").add("user", "The staging server is called heron.")
        await store.derive()
        async with Client(MemoryServer(store, "alice")) as client:
            text, failed = await answer(client, "search_memories", query="staging heron", spaces=["otter"])
            assert not failed, text
            body = json.loads(text)
            found = {memory["tier"]: memory for memory in body["structured_content"]["memories"]}
            assert found["messages"]["id"] == "message:standup#1"
            for memory in found.values():
                detail, failed = await answer(client, "get_memory", id=memory["id"], space="otter")
                assert not failed and SECRET in detail
                _, failed = await answer(client, "get_memory", id=memory["id"])
                assert failed
