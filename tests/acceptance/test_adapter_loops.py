"""Each framework's own loop with a scripted model: what four turns store is the same with memory and without it."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import memstore
from memstore.client.store import AsyncMemoryStore

QUESTIONS = ("What should I avoid eating?", "How warm is it in Porto and in Faro?", "Book Porto.", "Bye")
ANSWERS = ("No satay, then.", "18 and 24 degrees.", "Booked.", "Bye")
PLACES = ("Porto", "Faro")
FENCES = ("<memory>", "<standing>")


@pytest.fixture
async def store(url: str) -> AsyncIterator[AsyncMemoryStore]:
    async with await memstore.open_async(url, settings={"embedder": "hashing:256"}) as store:
        await store.user("alice").conversation("before").add("user", "I am allergic to peanuts.")
        await store.derive()
        yield store


def weather(city: str) -> str:
    """Return the weather of a city."""
    return f"{city}: \x00 warm"


@pytest.mark.parametrize("streamed", [False, True])
async def test_openai_agents(store: AsyncMemoryStore, streamed: bool) -> None:
    pytest.importorskip("agents")
    from agents import Agent, RunConfig, Runner, SQLiteSession, function_tool
    from agents.testing import ScriptedModel, assistant_message, function_call

    from memstore.adapters.openai_agents import MemstoreSession, memory_callback

    def book(city: str) -> str:
        """Book a room."""
        return f"booked {city}"

    async def talk(session: Any, callback: Any) -> tuple[list[int], list[Any], list[Any]]:
        calls = [function_call("weather", {"city": city}, call_id=city) for city in PLACES]
        first, second, third, fourth = ([assistant_message(text)] for text in ANSWERS)
        booking = [function_call("book", {"city": "Porto"}, call_id="c3")]
        model = ScriptedModel([first, calls, second, booking, third, fourth])
        tools = [function_tool(weather), function_tool(book, needs_approval=True)]
        agent = Agent(name="guide", model=model, tools=tools)
        config = RunConfig(session_input_callback=callback, tracing_disabled=True)

        async def run(given: Any) -> Any:
            if not streamed:
                return await Runner.run(agent, given, session=session, run_config=config)
            result = Runner.run_streamed(agent, given, session=session, run_config=config)
            async for _ in result.stream_events():
                pass
            return result

        counts = []
        for question in QUESTIONS:
            result = await run(question)
            if result.interruptions:
                state = result.to_state()
                state.approve(result.interruptions[0])
                await run(state)
            counts.append(len(await session.get_items()))
            await store.derive()
        return counts, await session.get_items(), [call.input for call in model.calls]

    session = MemstoreSession("lisbon", store.user("alice"))
    counts, items, shown = await talk(session, memory_callback(session, budget=4000))
    try:
        theirs = SQLiteSession("lisbon")
        assert (counts, items) == (await talk(theirs, None))[:2]
    finally:
        theirs.close()
    assert counts == [2, 8, 12, 14]
    assert all("allergic to peanuts" in str(model_input) for model_input in shown)
    kinds = [item.get("type") for item in shown[-1] if item.get("type") in ("function_call", "function_call_output")]
    assert kinds == ["function_call"] * 2 + ["function_call_output"] * 2 + ["function_call", "function_call_output"]
    assert [str(shown[-1]).count(question) for question in QUESTIONS] == [1] * 4


@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")  # of LlamaIndex
@pytest.mark.parametrize("method", ["system", "user"])
async def test_llamaindex(store: AsyncMemoryStore, method: str) -> None:
    pytest.importorskip("llama_index.core")
    pytest.importorskip("aiosqlite")
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.core.base.llms.types import ToolCallBlock
    from llama_index.core.llms import ChatMessage, TextBlock
    from llama_index.core.llms.mock import MockFunctionCallingLLM
    from llama_index.core.memory import InsertMethod, Memory
    from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
    from llama_index.core.tools import FunctionTool

    from memstore.adapters.llamaindex import MemstoreChatStore, MemstoreMemoryBlock

    alice = store.user("alice")
    long = " ".join(f"On day {day} the peanuts of the tram to Porto were sold out." for day in range(200))
    questions = (QUESTIONS[0], QUESTIONS[1], long, "What about peanuts?")

    async def talk(**options: Any) -> tuple[list[Any], list[Any]]:
        calls = [ToolCallBlock(tool_call_id=city, tool_name="weather", tool_kwargs={"city": city}) for city in PLACES]
        texts = [TextBlock(text=text) for text in ANSWERS]
        script = iter([texts[:1], calls, *([text] for text in texts[1:])])
        shown: list[Any] = []

        def answer(messages: Any, **_: Any) -> ChatMessage:
            shown.append("\n".join(chat.content or "" for chat in messages))
            return ChatMessage(role="assistant", blocks=next(script))

        model = MockFunctionCallingLLM(response_generator=answer, is_chat_model=True)
        agent = FunctionAgent(tools=[FunctionTool.from_defaults(weather)], llm=model, streaming=False)
        memory = Memory.from_defaults(session_id="lisbon", token_limit=9000, tokenizer_fn=str.split, **options)
        memory.insert_method = InsertMethod(method)
        for question in questions:
            await agent.run(question, memory=memory)
            await store.derive()
        return await memory.aget_all(), shown

    block = MemstoreMemoryBlock(user=alice, max_tokens=800)
    stored, shown = await talk(chat_store=MemstoreChatStore(user=alice), memory_blocks=[block])
    theirs = SQLAlchemyChatStore(table_name="chats")
    assert stored == (await talk(chat_store=theirs))[0]
    assert theirs._async_engine is not None
    await theirs._async_engine.dispose()
    assert all("I am allergic to peanuts." in text for text in (shown[0], shown[-1]))
    said = await alice.conversation("lisbon").messages()
    assert [one.text or "" for one in said if one.role == "user"] == [*questions]
    assert [call["id"] for one in said for call in one.tool_calls or ()] == [*PLACES]
    assert [one.tool_call_id for one in said if one.role == "tool"] == [*PLACES]
    hits = await alice.recall(questions[-1], tiers=("messages",))
    parts = [hit.text for hit in hits if hit.text != long and hit.text in long]
    assert parts
    assert [shown[-1].count(part) for part in parts] == [1] * len(parts)  # the queue shows them


async def test_pydantic_ai(store: AsyncMemoryStore) -> None:
    pytest.importorskip("pydantic_ai.conversation_store")
    from pydantic_ai import Agent
    from pydantic_ai.conversation import Conversation
    from pydantic_ai.conversation_store import InMemoryConversationStore
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from memstore.adapters.pydantic_ai import MemstoreConversationStore

    alice = store.user("alice")

    async def talk(conversations: Any) -> tuple[list[Any], list[str]]:
        calls = [ToolCallPart("weather", {"city": city}, city) for city in PLACES]
        script = iter([[TextPart(ANSWERS[0])], calls, *([TextPart(text)] for text in ANSWERS[1:])])
        shown: list[str] = []

        def answer(_: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            shown.append(info.instructions or "")
            return ModelResponse(next(script))

        agent = Agent(FunctionModel(answer), tools=[weather])

        @agent.instructions
        async def remembered() -> str:
            return "\n".join(hit.text for hit in await alice.recall("peanuts"))

        for question in QUESTIONS:
            conversation = await conversations.load("lisbon") or Conversation(conversation_id="lisbon")
            await conversations.save(await agent.run(question, conversation=conversation))
            await store.derive()
        stored = await conversations.load("lisbon")
        parts = [(type(part), getattr(part, "content", None)) for one in stored.messages for part in one.parts]
        return parts, shown

    parts, shown = await talk(MemstoreConversationStore(alice))
    assert parts == (await talk(InMemoryConversationStore()))[0]
    assert all("allergic to peanuts" in text for text in shown)
    said = [one.text for one in await alice.conversation("lisbon").messages()]
    assert said == [text for pair in zip(QUESTIONS, ANSWERS, strict=True) for text in pair]


def test_langgraph(url: str) -> None:
    pytest.importorskip("langgraph.graph")
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.messages import SystemMessage
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.store.base import BaseStore
    from langgraph.store.memory import InMemoryStore

    from memstore.adapters.langgraph import MemstoreStore

    place = ("memories", "alice")

    def talk(items: BaseStore) -> tuple[list[str], dict[str, Any]]:
        model = FakeListChatModel(responses=[*ANSWERS])

        def answer(state: MessagesState, *, store: BaseStore) -> dict[str, Any]:
            question = state["messages"][-1].text
            remembered = SystemMessage(f"<memory>{store.search(place, query=question)}</memory>")
            store.put(place, f"question {len(state['messages'])}", {"text": question})
            return {"messages": [model.invoke([remembered, *state["messages"]])]}

        graph = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer")
        program: Any = graph.compile(checkpointer=InMemorySaver(), store=items)
        thread = {"configurable": {"thread_id": "lisbon"}}
        for question in QUESTIONS:
            program.invoke({"messages": [("user", question)]}, thread)
        said = [message.text for message in program.get_state(thread).values["messages"]]
        return said, {item.key: item.value for item in items.search(place)}

    with memstore.open(url, settings={"embedder": "hashing:256"}) as store:
        assert talk(MemstoreStore(store, user="alice")) == talk(InMemoryStore())


def test_langchain(url: str) -> None:
    pytest.importorskip("langchain_core")
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.prompts import ChatPromptTemplate

    from memstore.adapters.langchain import MemstoreRetriever

    with memstore.open(url, settings={"embedder": "hashing:256"}) as store:
        alice = store.user("alice")
        conversation = alice.conversation("lisbon")
        conversation.add("user", "I am allergic to peanuts.")
        prompt = ChatPromptTemplate([("system", "<memory>{memory}</memory>"), ("placeholder", "{history}")])
        chain = prompt | FakeListChatModel(responses=[*ANSWERS])
        retriever = MemstoreRetriever(user=alice)
        for question in QUESTIONS:
            store.derive()
            history = [*((one.role, one.text) for one in conversation.recent()), ("user", question)]
            answer = chain.invoke({"memory": retriever.invoke(question), "history": history})
            conversation.add_many(
                [{"role": "user", "content": question}, {"role": "assistant", "content": answer.text}]
            )
        store.derive()
        found = retriever.invoke("peanuts", k=100, tiers=("messages", "summaries", "facts"))
        assert [one.text for one in conversation.recent()][1:] == [
            text for pair in zip(QUESTIONS, ANSWERS, strict=True) for text in pair
        ]
        assert not any(fence in one.page_content for one in found for fence in FENCES)


def test_anthropic(url: str, tmp_path: Path) -> None:
    pytest.importorskip("anthropic.lib.tools")
    import anthropic
    import httpx2
    from anthropic.tools import BetaLocalFilesystemMemoryTool

    from memstore.adapters.anthropic import MemstoreMemoryTool

    path = "/memories/diet.md"
    commands: list[list[dict[str, Any]]] = [
        [{"command": "create", "path": path, "file_text": "Alice is allergic to peanuts.\n"}],
        [{"command": "view", "path": path}],
        [{"command": "str_replace", "path": path, "old_str": "peanuts", "new_str": "nuts"}],
        [{"command": "insert", "path": path, "insert_line": 1, "insert_text": "She eats fish.\n"}],
    ]

    def talk(tool: Any) -> list[Any]:
        uses = [
            [
                {"type": "tool_use", "id": f"t{turn}_{at}", "name": "memory", "input": each}
                for at, each in enumerate(group)
            ]
            for turn, group in enumerate(commands)
        ]
        script = iter([answer for group in uses for answer in (group, [{"type": "text", "text": "Noted."}])])
        sent: list[Any] = []

        def reply(request: httpx2.Request) -> httpx2.Response:
            sent.append(json.loads(request.content)["messages"])
            content = next(script)
            reason = "tool_use" if content[0]["type"] == "tool_use" else "end_turn"
            usage = {"input_tokens": 1, "output_tokens": 1}
            message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
            return httpx2.Response(200, json=message | {"content": content, "stop_reason": reason, "usage": usage})

        with httpx2.Client(transport=httpx2.MockTransport(reply)) as http:
            client = anthropic.Anthropic(api_key="none", http_client=http)
            messages: list[Any] = []
            for question in QUESTIONS:
                messages.append({"role": "user", "content": question})
                runner = client.beta.messages.tool_runner(model="m", max_tokens=99, messages=messages, tools=[tool])
                messages.append({"role": "assistant", "content": runner.until_done().content[0].text})
        return [*sent, str(tool.call({"command": "view", "path": path}))]

    with memstore.open(url, settings={"embedder": "hashing:256"}) as store:
        ours = talk(MemstoreMemoryTool(store.user("alice")))
    assert ours == talk(BetaLocalFilesystemMemoryTool(base_path=tmp_path))
