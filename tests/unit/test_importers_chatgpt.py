"""The export of ChatGPT: which messages of the tree are taken, in which words, and what a damaged file still gives."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from memstore.ingest.importers import IgnoredContent, Record
from memstore.ingest.importers.chatgpt import ChatGPT
from tests.unit.importing import Samples, ignored, read_file, reasons, texts, zipped

NOON = 1714564800.0  # 2024-05-01T12:00:00Z


TREE = {
    "a": {"parent": None, "message": None},
    "b": {
        "parent": "a",
        "message": {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["hello"]}},
    },
}
SAMPLE = [{"id": "c", "title": "T", "create_time": 1.5, "mapping": TREE, "current_node": "b"}]
SAMPLES: Samples = {
    "chatgpt": ("conversations.json", SAMPLE),
    "chatgpt zip": ("a.zip", zipped({"conversations-0.json": json.dumps(SAMPLE), "conversations-1.json": "[]"})),
}


def said(text: object = "hello", role: object = "user", **more: object) -> dict:
    content = text if isinstance(text, dict) else {"content_type": "text", "parts": [text]}
    message = {"author": {"role": role, "name": None, "metadata": {}}, "content": content, "create_time": NOON}
    return message | {"weight": 1.0, "recipient": "all", "metadata": {}} | more


def node(parent: object, message: object) -> dict:
    return {"parent": parent, "children": [], "message": message}


def chain(*messages: object) -> dict:
    """A tree without branches: an empty root, then n1, n2, …"""
    mapping = {"root": node(None, None)}
    for number, message in enumerate(messages, 1):
        mapping[f"n{number}"] = node(f"n{number - 1}" if number > 1 else "root", message)
    return mapping


def conversation(mapping: object, **more: object) -> dict:
    current = next(reversed(mapping), None) if isinstance(mapping, dict) else None
    kept = {"id": "c1", "conversation_id": "c1", "title": "Lisbon", "create_time": NOON - 60}
    return kept | {"mapping": mapping, "current_node": current} | more


@pytest.fixture
def read(tmp_path):
    def read(given: object, name: str = "conversations.json"):
        return [one for one in read_file(ChatGPT, tmp_path / name, given) if not isinstance(one, IgnoredContent)]

    return read


@pytest.fixture
def one(read):
    return lambda *messages, **more: read([conversation(chain(*messages), **more)])


def test_a_message_comes_in_the_keys_of_memstore_jsonl(one):
    user, at = {"role": "user", "name": "Ana"}, datetime(2024, 5, 1, 12, tzinfo=UTC)
    first, second = one(
        said("Where to?", id="m1", author=user),
        said("Lisbon.", "assistant", create_time=NOON + 1.5, metadata={"model_slug": "gpt-x"}),
    )
    assert first == Record(
        user=None,
        conversation="c1",
        message={
            "role": "user", "content": "Where to?", "name": "Ana", "external_id": "m1", "metadata": {},
            "occurred_at": at,
        },
        title="Lisbon",
        channel="chatgpt",
        where="conversations.json, conversation 'Lisbon' (c1), message n1",
    )  # fmt: skip
    assert second.message == {
        "role": "assistant", "content": "Lisbon.", "external_id": "n2", "metadata": {"model": "gpt-x"},
        "occurred_at": at + timedelta(seconds=1.5),
    }  # fmt: skip


# --- which messages -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("current", "found"),
    [
        ("old", ["question", "old"]),
        ("new", ["question", "new"]),
        (None, ["question", "new"]),  # of the newest branch
        ("gone", ["question", "new"]),
    ],
)
def test_the_branch_that_was_seen_last_is_taken(read, current, found):
    mapping = chain(said("question")) | {
        "new": node("n1", said("new", "assistant", create_time=NOON + 2)),
        "old": node("n1", said("old", "assistant", create_time=NOON + 1)),
        "none": node("n1", said("no time", "assistant", create_time=None)),
    }
    assert texts(read([conversation(mapping, current_node=current)])) == found


HIDDEN = {
    "system": said("x", "system"),
    "developer": said("x", "developer"),
    "tool": said("x", "tool"),
    "call_of_a_tool": said("x", "assistant", recipient="python"),
    "no_weight": said("x", weight=0.0),
    "hidden": said("x", metadata={"is_visually_hidden_from_conversation": True}),
    "empty": said(""),
    "blank": said(" \n"),
    "no_parts": said({"content_type": "text", "parts": []}),
    "null_part": said({"content_type": "text", "parts": [None]}),
    "thoughts": said({"content_type": "thoughts", "thoughts": [{"summary": "a", "content": "b"}]}, "assistant"),
    "recap": said({"content_type": "reasoning_recap", "content": "Thought for 3 s"}, "assistant"),
    "no_instructions": said({"content_type": "user_editable_context", "user_profile": "", "user_instructions": None}),
    "no_memories": said({"content_type": "model_editable_context", "model_set_context": ""}, "assistant"),
    "a_memory_to_forget": said("Forget that User lives in Porto.", "assistant", recipient="bio"),
}


def test_what_the_format_hides_is_left_out_and_counted(tmp_path):
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([conversation(chain(said("before"), *HIDDEN.values(), said("after")))]))
    found = list(ChatGPT(path).read())
    assert (texts(found), reasons(found)) == (["before", "after"], [])
    counts = ignored(found)
    assert counts.total() == len(HIDDEN)
    assert (counts["system messages"], counts["custom instructions"], counts["thoughts of the model"]) == (2, 2, 2)
    assert counts["calls of tools"] == 2


# --- what they say --------------------------------------------------------------------------------------------------

IMAGE = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x", "width": 1}
AUDIO = {"content_type": "audio_asset_pointer", "asset_pointer": "x"}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"content_type": "text", "parts": ["one", "", "two"]}, "one\n\ntwo"),
        ({"content_type": "multimodal_text", "parts": [IMAGE, "What is it?"]}, "[image]\n\nWhat is it?"),
        ({"content_type": "multimodal_text", "parts": [{"content_type": "new_pointer"}]}, "[new_pointer]"),
        (
            {
                "content_type": "multimodal_text",
                "parts": [{"content_type": "audio_transcription", "text": "Hi"}, AUDIO],
            },
            "Hi",
        ),
        ({"content_type": "multimodal_text", "parts": [AUDIO, AUDIO]}, "[audio]"),
        ({"content_type": "code", "language": "python", "text": "1 + 1"}, "1 + 1"),
        ({"content_type": "execution_output", "text": "2"}, "2"),
        ({"content_type": "tether_quote", "url": "u", "title": "t", "text": "quoted"}, "quoted"),
        ({"content_type": "tether_browsing_display", "result": "found", "summary": None}, "found"),
    ],
)
def test_each_kind_of_content_becomes_text(one, content, text):
    assert texts(one(said(content))) == [text]


CITE = "\ue200cite\ue202turn0search0\ue202turn1news2\ue201"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (f"It rains {CITE}. Often.{CITE}", "It rains. Often."),
        ('In \ue200entity\ue202["city","Lisbon","capital"]\ue201 now', "In Lisbon now"),
        ("See \ue200url\ue202the map\ue202https://maps.example\ue201.", "See the map."),
        ("In 2020【3:4†source】【12†L3-L9】, see 【12†press release】.", "In 2020, see press release."),
        ("\ue203marked\ue204 \ue202x", "marked x"),
        ("\ue200cite\ue202never\nclosed", "citenever\nclosed"),
    ],
)
def test_references_become_what_a_reader_sees(one, given, text):
    assert texts(one(said(given, "assistant"))) == [text]


def test_what_no_database_keeps_is_replaced_and_said(one):
    (record,) = one(said("a\0b\ud83d"), title="Cut \ud83d")
    assert record.message["content"] == "a\ufffdb\ufffd"
    assert record.message["metadata"] == {"replaced": 2}
    assert record.title == "Cut \ufffd"


def test_an_attached_file_is_named(one):
    files = [{"name": "lease.pdf", "mime_type": "application/pdf"}, {"name": "a.png", "mime_type": "image/png"}, None]
    assert texts(one(said("Sum up.", metadata={"attachments": files}))) == ["Sum up.\n\n[file: lease.pdf]"]


# --- what ChatGPT remembers ------------------------------------------------------------------------------------------

WRAPPED = {
    "content_type": "user_editable_context",
    "user_profile": "This profile is shown to you.\nUser profile:\n```Role: nurse```",
    "user_instructions": "The user said how to respond:\n```Be brief.```",
}
LISTED = "1. [2024-04-02]. User is vegetarian.\n\n2. [2024-04-30]. User lives in Porto,\nnear the river.\n"


@pytest.mark.parametrize(
    ("message", "memories"),
    [
        (said("User likes tea.", "assistant", recipient="bio"), [("saved memory", "User likes tea.", NOON)]),
        (
            said({"content_type": "model_editable_context", "model_set_context": LISTED}, "assistant"),
            [
                ("saved memory", "User is vegetarian.", 1712016000.0),
                ("saved memory", "User lives in Porto,\nnear the river.", 1714435200.0),
            ],
        ),
        (said(WRAPPED), [("about the user", "Role: nurse", NOON), ("instructions", "Be brief.", NOON)]),
        (
            said(
                WRAPPED | {"user_profile": "x"},
                metadata={"user_context_message_data": {"about_user_message": "I'm a nurse."}},
                create_time=None,
            ),
            [("about the user", "I'm a nurse.", NOON), ("instructions", "Be brief.", NOON)],
        ),
        (
            said("", "system", metadata={"user_context_message_data": {"about_model_message": "No emojis."}}),
            [("instructions", "No emojis.", NOON)],
        ),
    ],
)
def test_what_chatgpt_remembers_becomes_messages_of_the_person(one, message, memories):
    hello, *found = one(said("hello"), message)
    assert (hello.conversation, {record.conversation for record in found}) == ("c1", {"chatgpt-memories"})
    assert [
        (item["metadata"]["imported_memory"], item["content"], item["occurred_at"].timestamp())
        for item in (record.message for record in found)
    ] == memories
    assert {(record.message["role"], record.title, record.channel) for record in found} == {
        ("user", "Saved memories", "chatgpt")
    }


def test_a_memory_of_many_conversations_comes_once_and_the_latest_last(read):
    def saved(text: str, time: float) -> dict:
        return conversation(
            chain(said(text, "assistant", recipient="bio", create_time=time)), conversation_id=str(time)
        )

    newest_first = [saved("User lives in Leeds.", NOON + 9), saved("User lives in Porto.", NOON + 5)]
    found = read([*newest_first, saved("User lives in Leeds.", NOON + 7)])
    again = read(newest_first)
    assert texts(found) == texts(again) == ["User lives in Porto.", "User lives in Leeds."]
    assert found[1].message["occurred_at"].timestamp() == NOON + 7
    assert [one.message["external_id"] for one in found] == [one.message["external_id"] for one in again]


# --- when -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("time", [None, "yesterday", 1e20])
def test_a_message_without_a_time_inherits_it_and_where_nothing_has_one_none_is_made_up(one, time):
    first, second, third = one(
        said(create_time=time), said("x", "tool", create_time=NOON), said(), said(create_time=time)
    )
    moments = [record.message["occurred_at"].timestamp() for record in (first, second, third)]
    assert moments == [NOON - 60, NOON, NOON]
    inherited = {"occurred_at": "inherited"}
    assert [record.message["metadata"] for record in (first, second, third)] == [inherited, {}, inherited]
    (record,) = one(said(create_time=time), create_time=None)
    assert "occurred_at" not in record.message
    assert record.message["metadata"] == {"occurred_at": "imported"}


# --- malformed ------------------------------------------------------------------------------------------------------


def test_what_is_malformed_is_named_and_the_rest_comes(read):
    nameless = conversation({}, id=None, conversation_id=None)
    bad = [said("x", "critic"), said(content=None), said({"content_type": "hologram", "rays": 3})]
    whole = conversation(chain(said("1"), *bad, said("2")), title=" ")
    empty = conversation({}, current_node=None)
    found = read([whole, None, nameless, conversation(None), empty, conversation(chain(said("3")), id="c3")])
    assert texts(found) == ["1", "2", "3"]
    place = "conversations.json, conversation '", "conversations.json, conversation "
    wheres = [one.where for one in found if not isinstance(one, Record)]
    assert wheres == [f"{place[0]} ' (c1), message n{n}" for n in (2, 3, 4)] + [f"{place[1]}{n}" for n in (2, 3, 4)]
    for words, reason in zip(
        ("role (critic) is not known", "not as expected", "content (hologram) is not known", "not as expected",
         "the name of a conversation is a text", "not as expected"),
        reasons(found), strict=True,
    ):  # fmt: skip
        assert words in reason
    assert found[0].title is None


def test_a_node_that_is_null_costs_itself(read):
    found = read([conversation({"a": None} | chain(said("1"), said("2")), current_node="a")])
    assert (texts(found), reasons(found)) == (["1", "2"], [])


def test_a_missing_parent_is_told_and_what_was_said_after_it_comes(read):
    mapping = {"a": node("gone", said("1")), "b": node("a", said("2"))}
    found = read([conversation(mapping)])
    assert texts(found) == ["1", "2"]
    assert [("is missing, and all that was said before it" in reason) for reason in reasons(found)] == [True]


# --- files ----------------------------------------------------------------------------------------------------------


def listed(*words: str) -> bytes:
    return json.dumps([conversation(chain(said(word)), conversation_id=word) for word in words]).encode()


def test_the_zip_is_read_as_it_comes(read, tmp_path):
    members = {
        "user.json": b"{}",
        "chat.html": b"<html>",
        "__MACOSX/conversations.json": b"junk",
        "shared_conversations.json": b"[]",
        "conversations-010.json": listed("4"),
        "conversations-001.json": listed("3"),
        "conversations-000.json": listed("1", "2"),
        "export/conversations.json": listed("5"),
    }
    found = read(zipped(members), name="export.zip")
    assert texts(found) == ["1", "2", "3", "4", "5"]
    assert reasons(found) == []
    assert found[0].where == "export.zip, conversations-000.json, conversation 'Lisbon' (1), message n1"
    assert ChatGPT.sniff(tmp_path / "export.zip")
