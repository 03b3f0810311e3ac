"""The doors to frameworks, each where its framework is installed. `make conformance` runs suites that others wrote."""

import random
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import memstore
from memstore import BudgetTooSmall, InvalidInput, MemoryStore
from memstore.client.store import AsyncMemoryStore
from memstore.providers.tiktoken import estimate

SETTINGS = {"embedder": "hashing:256"}
PEANUTS = "I am allergic to peanuts."


@pytest.fixture
def store(url: str) -> Iterator[MemoryStore]:
    with memstore.open(url, settings=SETTINGS) as store:
        yield store


@pytest.fixture
async def async_store(url: str) -> AsyncIterator[AsyncMemoryStore]:
    async with await memstore.open_async(url, settings=SETTINGS) as store:
        yield store


# -- LangGraph


def test_langgraph_namespaces_name_users_whose_items_the_database_keeps_apart(store: MemoryStore) -> None:
    pytest.importorskip("langgraph.store.base")
    from memstore.adapters.langgraph import MemstoreStore

    items = MemstoreStore(store, user=lambda namespace: namespace[1])
    items.put(("memories", "alice", "diet"), "nuts", {"text": PEANUTS, "weight": 9})
    items.put(("memories", "alice", "trips"), "ferry", {"text": "The ferry leaves at nine.", "weight": 10})
    items.put(("memories", "bob"), "nuts", {"text": "Bob likes peanuts."})

    found = items.search(("memories", "alice"), query="peanuts")
    assert [one.key for one in found] == ["nuts", "ferry"]
    assert found[0].score > found[1].score
    assert [one.key for one in items.search(("memories", "alice"), filter={"weight": {"$gt": 9}})] == ["ferry"]
    assert items.list_namespaces(prefix=("memories", "bob")) == [("memories", "bob")]
    for everybody in (
        lambda: items.search(("memories",)),
        items.list_namespaces,
        lambda: items.list_namespaces(prefix=("memories", "*")),
    ):
        with pytest.raises(InvalidInput, match="names no user"):
            everybody()

    assert store.user("alice").erase().counts["documents"] == 2
    assert items.get(("memories", "alice", "diet"), "nuts") is None
    assert items.get(("memories", "bob"), "nuts") is not None


# -- OpenAI Agents


ITEMS: list[dict[str, Any]] = [
    {"role": "user", "content": PEANUTS},
    {"role": "user", "content": [{"type": "input_text", "text": "Look:"}, {"type": "input_image", "image_url": "a"}]},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Thinking."}]},
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "fare", "arguments": '{"to": "Ischia"}'},
    {"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": "And \x00 back."}]},
    {"type": "function_call", "call_id": "c2", "name": "fare", "arguments": "{}", "status": "completed"},
    {"type": "function_call_output", "call_id": "c1", "output": "9 euros \x00 or so"},
    {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "9"}], "status": None},
    {"type": "computer_call_output", "call_id": "c3", "output": {"type": "computer_screenshot"}},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "It is 9 euros.", "annotations": []}],
    },
    {"role": "user", "content": "half a pair \ud800"},
    {"type": "item_reference", "id": "msg_0"},
]


async def test_a_session_gives_back_exactly_what_was_put_in(store: MemoryStore) -> None:
    pytest.importorskip("agents")
    from memstore.adapters.openai_agents import MemstoreSession

    alice = store.user("alice")
    session = MemstoreSession("s", alice)
    await session.add_items(ITEMS)
    assert await session.get_items() == ITEMS
    assert await session.get_items(3) == ITEMS[-3:]
    messages = session.conversation.messages()
    assert {PEANUTS, "It is 9 euros."} <= {one.text for one in messages}  # found and derived as what they say
    assert [[call["id"] for call in one.tool_calls] for one in messages if one.tool_calls] == [["c1", "c2"]]
    for item in reversed(ITEMS):
        assert await session.pop_item() == item
    assert await session.pop_item() is None
    assert session.conversation.messages() == []

    await session.add_items(ITEMS[:1])
    await session.clear_session()
    assert await session.get_items() == []
    store.derive()
    assert PEANUTS in [hit.text for hit in alice.recall("peanuts")]
    await session.forget()
    assert alice.recall("peanuts") == []


async def test_a_model_is_shown_what_is_remembered_in_its_budget(async_store: AsyncMemoryStore) -> None:
    pytest.importorskip("agents")
    from memstore.adapters.openai_agents import MemstoreSession, memory_callback

    alice = async_store.user("alice")
    await alice.conversation("before").add("user", PEANUTS)
    session = MemstoreSession("now", alice)
    await session.add_items([{"role": "user", "content": f"On day {n} the tram goes uphill."} for n in range(60)])
    outputs = [{"type": "function_call_output", "call_id": call, "output": "9 euros"} for call in ("c1", "c2")]
    await session.add_items([*ITEMS[2:6], *outputs])
    await async_store.derive()
    new = [{"role": "user", "content": "May I eat peanuts?"}]
    shown = await memory_callback(session, budget=300)(await session.get_items(), new)
    assert shown[-1] is new[0]
    assert any("allergic to peanuts" in str(item.get("content")) for item in shown[:-1])
    assert [item["type"] for item in shown if "type" in item] == ["function_call"] * 2 + ["function_call_output"] * 2
    assert all(item["content"] for item in shown if "role" in item)
    assert estimate([item for item in shown if "role" in item]) <= 300  # calls are told otherwise
    output = [{"type": "function_call_output", "call_id": "c1", "output": "9"}]
    assert await memory_callback(session, budget=300)(new, output) == new + output
    await session.add_items([*new, ITEMS[3], *output])  # a run that was stopped here
    shown = await memory_callback(session, budget=300)(await session.get_items(), new)
    assert [item.get("type") for item in shown[-3:]] == ["function_call", "function_call_output", None]
    assert shown.count(new[0]) == 1
    with pytest.raises(BudgetTooSmall):
        await memory_callback(session, budget=300)([], [{"role": "user", "content": "word " * 500}])


# -- LangChain


def test_a_retriever_gives_hits_with_where_they_come_from(store: MemoryStore) -> None:
    pytest.importorskip("langchain_core")
    from memstore.adapters.langchain import MemstoreRetriever

    alice = store.user("alice")
    said = alice.conversation("c").add("user", PEANUTS)
    store.derive()
    retriever = MemstoreRetriever(user=alice, k=1, tiers=("messages",))
    [found] = retriever.invoke("peanuts?")
    assert (found.page_content, found.id) == (PEANUTS, str(said.id))
    assert found.metadata["sources"] == [str(said.id)]
    assert len(retriever.invoke("peanuts?", k=5, tiers=("facts", "messages"))) == 2


# -- Anthropic


def test_files_of_claude_are_found_by_what_they_say_and_not_overwritten_unseen(store: MemoryStore) -> None:
    pytest.importorskip("anthropic.lib.tools")
    from anthropic.lib.tools import ToolError

    from memstore.adapters.anthropic import NAMESPACE, MemstoreMemoryTool

    alice = store.user("alice")
    tool = MemstoreMemoryTool(alice)
    tool.call({"command": "create", "path": "/memories/diet/nuts.md", "file_text": f"{PEANUTS}\n"})
    tool.call({"command": "create", "path": "/memories/trips.md", "file_text": "The ferry leaves at nine.\n"})
    [found, _] = alice.documents().search(NAMESPACE, query="peanuts")
    assert found.key == "diet/nuts.md"
    assert "/memories/diet/nuts.md" in str(tool.call({"command": "view", "path": "/memories"}))

    def insert_before(*_: Any, **__: Any) -> Any:
        MemstoreMemoryTool(alice).call(
            {"command": "insert", "path": "/memories/trips.md", "insert_line": 0, "insert_text": "# Trips"}
        )
        return write(*_, **__)

    write, tool._documents.write = tool._documents.write, insert_before
    with pytest.raises(ToolError, match="changed meanwhile"):
        tool.call({"command": "str_replace", "path": "/memories/trips.md", "old_str": "nine", "new_str": "ten"})
    tool = MemstoreMemoryTool(alice)
    assert "nine" in str(tool.call({"command": "view", "path": "/memories/trips.md"}))
    tool.call({"command": "rename", "old_path": "/memories/diet", "new_path": "/memories/health/diet"})
    assert {one.key for one in alice.documents().search(NAMESPACE)} == {"health/diet/nuts.md", "trips.md"}


# -- LlamaIndex


async def test_a_chat_store_answers_as_the_one_of_llamaindex_does(async_store: AsyncMemoryStore) -> None:
    pytest.importorskip("llama_index.core")
    pytest.importorskip("aiosqlite")
    from llama_index.core.llms import ChatMessage, TextBlock
    from llama_index.core.storage.chat_store.base_db import MessageStatus
    from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore

    from memstore.adapters.llamaindex import MemstoreChatStore

    chance = random.Random(7)
    ours, theirs = MemstoreChatStore(user=async_store.user("alice")), SQLAlchemyChatStore(table_name="chats")
    statuses = (MessageStatus.ACTIVE, MessageStatus.ARCHIVED, None)

    def said(number: int) -> ChatMessage:
        blocks = (
            [TextBlock(text=f"{number} of"), TextBlock(text="two")] if number % 3 else [TextBlock(text=str(number))]
        )
        more = {"tool_call_id": "c"} if number % 2 else {}
        return ChatMessage(role=("user", "assistant", "function")[number % 3], blocks=blocks, additional_kwargs=more)

    for number in range(40):
        key = chance.choice("ab")
        call: tuple[str, tuple[Any, ...]] = chance.choice(
            [
                ("add_message", (key, said(number))),
                ("add_message", (key, said(number), MessageStatus.ARCHIVED)),
                ("add_messages", (key, [said(number), said(number + 1)])),
                ("archive_oldest_messages", (key, chance.randint(0, 2))),
                ("delete_oldest_messages", (key, chance.randint(0, 2))),
                ("delete_messages", (key, chance.choice(statuses))),
                ("set_messages", (key, [said(number)] * 3)),
                ("get_messages", (key, chance.choice(statuses), 2, 1)),
                ("count_messages", (key, chance.choice(statuses))),
            ]
        )
        name, given = call
        answers = [await getattr(one, name)(*given) for one in (ours, theirs)]
        assert answers[0] == answers[1], call
        for status in statuses:
            assert await ours.get_messages(key, status) == await theirs.get_messages(key, status), call
        assert sorted(await ours.get_keys()) == sorted(await theirs.get_keys())
    assert theirs._async_engine is not None
    await theirs._async_engine.dispose()


async def test_a_memory_block_keeps_its_tokens(async_store: AsyncMemoryStore) -> None:
    pytest.importorskip("llama_index.core")
    from llama_index.core.llms import ChatMessage

    from memstore.adapters.llamaindex import MemstoreMemoryBlock

    alice = async_store.user("alice")
    await alice.conversation("c").add_many([{"role": "user", "content": f"{PEANUTS} Note {n}."} for n in range(20)])
    await async_store.derive()
    block = MemstoreMemoryBlock(user=alice, max_tokens=100)
    content = await block.aget([ChatMessage(role="user", content="What about peanuts?")], session_id="s")
    assert 50 < estimate([{"role": "system", "content": content}]) <= 110
    less = await block.atruncate(content, 50)
    assert less is not None
    assert content.startswith(less)
    assert estimate([{"role": "system", "content": less}]) <= 60
    assert await block.atruncate(content, 1000) is None


# -- pydantic-ai


async def test_a_conversation_store_answers_as_the_one_in_memory_does(async_store: AsyncMemoryStore) -> None:
    pytest.importorskip("pydantic_ai.conversation_store")
    from pydantic_ai.conversation import Conversation
    from pydantic_ai.conversation_store import ConversationConflict, InMemoryConversationStore
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

    from memstore.adapters.pydantic_ai import MemstoreConversationStore

    alice = async_store.user("alice")
    told: list[list[Any]] = []
    for store in (MemstoreConversationStore(alice), InMemoryConversationStore()):
        facts: list[Any] = []
        told.append(facts)
        talk = Conversation(conversation_id="lisbon")
        stale = None
        for turn in range(3):
            talk.messages += [
                ModelRequest([UserPromptPart(f"{PEANUTS} Turn {turn}.")]),
                ModelResponse([TextPart(f"Noted {turn}.")]),
            ]
            facts.append(len(await store.save(talk, scope="web")))
            stale = stale or await store.load("lisbon")
        assert stale is not None
        with pytest.raises(ConversationConflict):
            await store.save(stale)
        entries = await store.load_entries("lisbon")
        assert entries is not None
        branched = await store.branch("lisbon", at=2, expected_revision=talk.revision)
        fork = await store.fork("lisbon", from_entry=entries[3].id, new_conversation_id="fork")
        facts += [len(entries), len(branched.messages), len(fork.messages), fork.messages == talk.messages[:4]]
        facts += [(one.conversation_id, one.scope, len(one.branches)) for one in await store.list_conversations()]
        facts.append([one.conversation_id for one in await store.list_conversations(scope="web", limit=1)])
        facts.append(await store.load("lisbon", scope="another") is None)
        if isinstance(store, MemstoreConversationStore):
            assert [one.text for one in await alice.conversation("lisbon").messages()][:2] == [
                f"{PEANUTS} Turn 0.",
                "Noted 0.",
            ]
        await store.delete("lisbon")
        again = await store.load("fork", limit=1)
        assert again is not None
        facts += [await store.load("lisbon") is None, len(again.messages)]
        with pytest.raises(LookupError):
            await store.read_entry(entries[5].id)
    assert told[0] == told[1]
    assert await alice.conversation("lisbon").messages() == []
