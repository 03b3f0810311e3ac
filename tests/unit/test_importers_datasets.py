"""What has no times and often no ids: fine-tuning files of OpenAI's, and dumps of LangChain."""

import json

import pytest

from memstore.ingest.importers import ImportOptions, ImportProblem, importer_for
from tests.unit.importing import Samples, ignored, reasons, records, texts

NOW = {"occurred_at": "imported"}


SAMPLES: Samples = {
    "openai": ("a.jsonl", {"messages": [{"role": "user", "content": "hello"}]}),
    "langchain": ("a.json", [{"type": "human", "data": {"content": "hello"}}]),
}


@pytest.fixture
def read(tmp_path):
    """Write lines, or one JSON value, and read them by the importer that is found for them."""

    def read(*values: object, expect: str, name: str = "data.jsonl", **how: object):
        path = tmp_path / name
        lines = (value if isinstance(value, str) else json.dumps(value) for value in values)
        path.write_text("\n".join(lines) + "\n")
        importer = importer_for(path)
        assert importer.name == expect
        return list(importer(path, ImportOptions(**how)).read())

    return read


# --- OpenAI ---------------------------------------------------------------------------------------------------------

CALL = {"id": "t", "type": "function", "function": {"name": "find", "arguments": '{"what": "ferry"}'}}


def test_fine_tuning_comes_with_roles_and_tools(read):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "When?"}, {"type": "image_url", "image_url": {}}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "t", "content": "at nine"},
        {"role": "assistant", "content": "At nine.", "name": "Guide"},
    ]
    found = read({"messages": messages, "tools": [{}]}, expect="openai")
    said = [record.message for record in records(found)]
    assert [one["role"] for one in said] == ["system", "user", "assistant", "tool", "assistant"]
    assert [one["content"] for one in said] == ["Be brief.", "When?\n\n[image]", None, "at nine", "At nine."]
    assert (said[2]["tool_calls"], said[2]["metadata"]) == ([CALL], NOW)
    assert (said[3]["tool_call_id"], said[4]["name"]) == ("t", "Guide")
    assert all("occurred_at" not in one for one in said)
    assert ignored(found) == {"definitions of tools": 1}


def test_equal_lines_are_conversations_of_their_own_and_keep_their_names(read):
    one, other = ({"messages": [{"role": "user", "content": text}]} for text in "ab")
    first = [record.conversation for record in read(one, other, one, expect="openai")]
    assert len(set(first)) == 3
    assert [record.conversation for record in read(one, other, one, other, expect="openai")][:3] == first


def test_what_is_broken_or_malformed_costs_itself(read):
    good = {"role": "user", "content": "a"}
    messages = [good, 7, {"role": "critic", "content": "x"}, {"role": "user", "content": 7}, good]
    broken = ['{"messages": [', "{}", '{"messages": 3}', "7"]
    found = read({"messages": messages}, *broken, {"messages": [good]}, expect="openai")
    assert texts(found) == ["a"] * 3
    assert [one.where for one in found if isinstance(one, ImportProblem)] == [
        *(f"data.jsonl, line 1, message {n}" for n in (2, 3, 4)),
        *(f"data.jsonl, line {n}" for n in range(2, 6)),
    ]


def test_a_chat_has_its_times_and_its_name(read):
    said = [{"role": "user", "content": "a", "timestamp": 1744577557}, {"role": "assistant", "content": "b"}]
    said += [{"role": "user", "content": "c", "created_at": "2025-04-13T21:00:00Z"}]
    chat = {"title": "Ferries", "history": {"currentId": "b"}, "messages": said}
    for value in ({"id": "7"} | chat, [{"id": "7", "chat": chat}]):
        found = records(read(value, expect="openai"))
        assert [f"{one.message['occurred_at']:%d %H:%M}" for one in found] == ["13 20:52", "13 20:52", "13 21:00"]
        assert [one.message["metadata"] for one in found] == [{}, {"occurred_at": "inherited"}, {}]
        assert {(one.conversation, one.title) for one in found} == {("7", "Ferries")}
    found = read({"messages": [{"role": "user", "content": "a", "timestamp": "2025-04-13T21:00:00"}]}, expect="openai")
    (reason,) = reasons(found)
    assert reason.endswith("has no zone: add Z for UTC, or an offset such as +02:00")


# --- LangChain ------------------------------------------------------------------------------------------------------


def as_dict(kind: str, content: object, **more: object) -> dict:
    return {"type": kind, "data": {"content": content, "type": kind, "additional_kwargs": {}, "id": None} | more}


def as_dump(name: str, content: object, **more: object) -> dict:
    path = ["langchain", "schema", "messages", name]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": {"content": content} | more}


def as_fields(kind: str, content: object, **more: object) -> dict:
    return {"type": kind, "content": content, "response_metadata": {}} | more


CALLED = {"name": "find", "args": {"what": "ferry"}, "id": "t", "type": "tool_call"}


@pytest.mark.parametrize(
    "messages",
    [
        [as_dict("human", "q"), as_dict("ai", "", tool_calls=[CALLED]), as_dict("tool", "r", tool_call_id="t")],
        [
            as_dump("HumanMessage", "q"),
            as_dump("AIMessageChunk", "", tool_calls=[CALLED]),
            as_dump("ToolMessage", "r", tool_call_id="t"),
        ],
        [as_fields("human", "q"), as_fields("ai", "", tool_calls=[CALLED]), as_fields("tool", "r", tool_call_id="t")],
    ],
)
@pytest.mark.parametrize("wrap", ["list", "lines", "object"])
def test_langchains_ways_to_write_a_message_are_one(read, messages, wrap):
    values = {"list": [messages], "lines": messages, "object": [{"messages": messages, "session_id": "data"}]}[wrap]
    found = read(*values, expect="langchain", name="data.json")
    said = [record.message for record in found]
    assert [one["role"] for one in said] == ["user", "assistant", "tool"]
    assert [one["content"] for one in said] == ["q", None, "r"]
    assert said[1]["tool_calls"] == [CALL]
    assert said[2]["tool_call_id"] == "t"
    assert {record.conversation for record in found} == {"data"}
    assert [one["external_id"] for one in said] == ["turn:1", "turn:2", "turn:3"]


def test_what_is_no_message_costs_itself(read):
    found = read(as_dict("human", "q"), {"a": 1}, {"messages": [as_dict("alien", "x")]}, 7, None, expect="langchain")
    assert texts(found) == ["q"]
    assert len(reasons(found)) == 4


def test_lists_of_a_file_lose_no_message(read):
    def talk(*texts: str, **more: object) -> dict:
        return {
            "messages": [as_dict(kind, text) for kind, text in zip(("human", "ai", "human"), texts, strict=False)],
            **more,
        }

    found = read(
        talk("q", "r"),
        talk("x", "y"),
        talk("a", "b", session_id=42),
        talk("c", session_id="42"),
        talk("d", "e", thread_id="t"),
        talk("d", "e", "f", thread_id="t"),
        {"session_id": 0, "message": as_dict("human", "z", id=7)},
        expect="langchain",
    )
    assert not reasons(found)
    assert [(one.conversation, one.message["external_id"], one.message["content"]) for one in records(found)] == [
        *(("data", "turn:1", "q"), ("data", "turn:2", "r"), ("data-2", "turn:1", "x"), ("data-2", "turn:2", "y")),
        *(("42", "turn:1", "a"), ("42", "turn:2", "b"), ("42", "turn:3", "c")),
        *(("t", "turn:1", "d"), ("t", "turn:2", "e")),
        *(("t", "turn:1", "d"), ("t", "turn:2", "e"), ("t", "turn:3", "f")),
        ("0", "7", "z"),
    ]


def test_rows_of_a_table_are_messages_of_their_sessions(read):
    rows = [
        {"id": 1, "session_id": "s", "message": as_fields("human", "q")},
        {"id": 2, "session_id": "s", "message": as_dict("ai", "r")},
        {"id": 3, "session_id": "t", "message": as_dict("human", "x")},
    ]
    found = records(read(rows, expect="langchain"))
    assert [(one.conversation, one.message["content"], one.message["external_id"]) for one in found] == [
        ("s", "q", "turn:1"),
        ("s", "r", "turn:2"),
        ("t", "x", "turn:1"),
    ]
