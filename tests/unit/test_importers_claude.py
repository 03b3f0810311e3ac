"""The export of Claude: which messages of its trees are taken, what they say, and what a damaged file still gives."""

import json
from datetime import UTC, datetime

import pytest

from memstore.ingest.importers import Record, importer_for
from memstore.ingest.importers.claude import Claude
from tests.unit.importing import Samples, ignored, read_file, reasons, texts, zipped

NOON = "2026-03-29T12:00:00.5Z"


ROOT_ID = "00000000-0000-4000-8000-000000000000"
SAMPLE = [{"uuid": "c", "name": "T", "chat_messages": [{"uuid": "m", "sender": "human", "text": "hello"}]}]
SAMPLES: Samples = {
    "claude": ("conversations.json", SAMPLE),
    "claude zip": ("a.zip", zipped({"conversations.json": json.dumps(SAMPLE)})),
}


def said(key: str, says: object = "hello", sender: object = "human", parent: object = ROOT_ID, **more: object) -> dict:
    content = says if isinstance(says, list) else [{"type": "text", "text": says, "citations": []}]
    message = {"uuid": key, "sender": sender, "text": "flat", "content": content, "created_at": NOON}
    return message | {"parent_message_uuid": parent, "attachments": [], "files": []} | more


def conversation(*messages: object, **more: object) -> dict:
    kept = {"uuid": "c1", "name": "Lisbon", "created_at": "2026-03-29T11:00:00Z", "account": {"uuid": "a"}}
    return kept | {"chat_messages": list(messages)} | more


@pytest.fixture
def read(tmp_path):
    return lambda *conversations: read_file(Claude, tmp_path / "conversations.json", conversations)


def test_a_message_comes_in_the_keys_of_memstore_jsonl(read):
    (record,) = read(conversation(said("m1", "Where to?")))
    assert record == Record(
        user=None,
        conversation="c1",
        message={
            "role": "user",
            "content": "Where to?",
            "external_id": "m1",
            "metadata": {},
            "occurred_at": datetime(2026, 3, 29, 12, 0, 0, 500_000, tzinfo=UTC),
        },
        title="Lisbon",
        channel="claude",
        where="conversations.json, conversation 'Lisbon' (c1), message m1",
    )


TREE = (
    said("q"),
    said("old", "old answer", "assistant", "q", created_at="2026-03-29T12:00:01Z"),
    said("new", "new answer", "assistant", "q", created_at="2026-03-29T12:00:02Z"),
)


def test_without_a_current_message_the_newest_branch_is_taken_and_the_other_counted(read):
    found = read(conversation(*TREE))
    assert texts(found) == ["hello", "new answer"]
    assert ignored(found) == {"messages of other branches": 1}
    assert texts(read(conversation(*TREE, current_leaf_message_uuid="old"))) == ["hello", "old answer"]


def test_a_malformed_message_is_named_and_the_rest_comes(read):
    bad = [said("2", "x", "narrator", "1"), said("3", "x", parent="2", content=7), said("4", [7], parent="3")]
    found = read(conversation(said("1", "before", created_at=None), *bad, said("5", "after", parent="4")))
    assert (texts(found), len(reasons(found))) == (["before", "after"], 3)
    assert found[0].message["metadata"] == {"occurred_at": "inherited"}


def test_an_old_export_without_parents_is_a_list(read):
    messages = [said(key, key) for key in "abc"]
    for message in messages:
        del message["parent_message_uuid"]
    assert texts(read(conversation(*messages))) == ["a", "b", "c"]


def test_content_goes_before_text_which_goes_before_nothing(read):
    found = read(
        conversation(
            said("1", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
            said("2", [], parent="1", text="flat"),
            said("3", None, parent="2", content=None, text="old"),
            said("4", [], parent="3", text=""),
        )
    )
    assert texts(found) == ["a\n\nb", "flat", "old"]
    assert ignored(found) == {"empty messages": 1}


def test_thoughts_and_tools_are_left_out_and_counted(read):
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "tool_use", "id": "t", "name": "artifacts", "input": {}},
        {"type": "tool_result", "tool_use_id": "t", "content": []},
        {"type": "text", "text": "Done."},
    ]
    found = read(conversation(said("1", blocks, "assistant"), said("2", blocks[:1], "assistant", "1")))
    assert texts(found) == ["Done."]
    assert ignored(found) == {"thoughts of the model": 2, "calls of tools": 1, "results of tools": 1}


def test_what_was_attached_is_said_even_where_nothing_else_is(read):
    attached = [{"file_name": "plan.txt", "extracted_content": "day one"}, {"extracted_content": "pasted"}]
    files = [{"file_name": "plan.txt"}, {"file_name": "map.png"}]
    (record,) = read(conversation(said("1", [], text="", attachments=attached, files=files)))
    assert record.message["content"] == "[file: plan.txt]\nday one\n\n[file]\npasted\n\n[file: map.png]"


def test_the_zip_is_told_from_that_of_chatgpt(tmp_path):
    path = tmp_path / "data-2026-04-01-batch-0000.zip"
    history = json.dumps([conversation(said("1"))])
    path.write_bytes(zipped({"users.json": "[]", "projects.json": "[]", "conversations.json": history}))
    assert importer_for(path).name == "claude"
    assert texts(Claude(path).read()) == ["hello"]


def test_a_null_costs_itself(read):
    message = said(
        "m1", [None, {"type": "text", "text": "hello"}], attachments=[None], files=[None, {"file_name": "a.txt"}]
    )
    found = read(conversation(None, message, None))
    assert (texts(found), reasons(found)) == (["hello\n\n[file: a.txt]"], [])


def test_what_claude_remembers_becomes_messages_of_the_person(tmp_path):
    path = tmp_path / "data-2026-04-01-batch-0000.zip"
    memory = {
        "conversations_memory": "**Work context**\n\nBea is a nurse in Porto.\n\n**Home**\n\nShe has a cat.\n",
        "project_memories": {"p1": "A garden with herbs.", "p2": None},
        "account_uuid": "a",
    }
    history = json.dumps([conversation(said("1"))])
    for written in ([memory], memory):
        path.write_bytes(zipped({"conversations.json": history, "memories.json": json.dumps(written)}))
        assert importer_for(path).name == "claude"
        found = list(Claude(path).read())
        assert [(record.conversation, record.message["content"]) for record in found] == [
            ("c1", "hello"),
            ("claude-memories", "Bea is a nurse in Porto."),
            ("claude-memories", "She has a cat."),
            ("claude-memories", "A garden with herbs."),
        ]
        kinds = [record.message["metadata"].get("imported_memory") for record in found]
        assert kinds == [None, "saved memory", "saved memory", "project"]
        assert found[1].message["metadata"]["occurred_at"] == "imported"
    assert texts(read_file(Claude, tmp_path / "memories.json", [memory])) == texts(found)[1:]
    assert importer_for(tmp_path / "memories.json").name == "claude"
