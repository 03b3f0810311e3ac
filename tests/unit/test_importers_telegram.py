"""Telegram's export: whose it is, who said what and who forwarded it, and files of any size."""

import json
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from memstore.errors import InvalidInput
from memstore.ingest.importers import ImportItem, ImportOptions, OptionMissing, Record, importer_for
from memstore.ingest.importers.files import OpenFile, nested_values
from memstore.ingest.importers.telegram import Telegram
from tests.unit.importing import Samples, ignored, read_file, reasons, records, texts, zipped

NOT_INCLUDED = "(File not included. Change data exporting settings to download.)"
PEOPLE = {"user7": "Ann", "user8": "Bob", "user9": "Cat", "channel5": "News"}


def said(id: int, text: Any, by: str = "user7", **more: Any) -> dict[str, Any]:
    """Return a message as Telegram Desktop writes it, a minute after the one with the number before."""
    message = {"id": id, "type": "message", "date": f"2026-11-20T10:{id:02}:30"}
    message |= {"date_unixtime": str(1795165230 + 60 * id), "from": PEOPLE[by], "from_id": by}
    return message | {"text": text, "text_entities": [{"type": "plain", "text": text}]} | more


def chat(*messages: Any, name: str | None = "Bob", type: str = "personal_chat", id: Any = 8) -> dict[str, Any]:
    return {"name": name, "type": type, "id": id, "messages": [*messages]}


def account(*chats: Any, left: Any = (), **more: Any) -> dict[str, Any]:
    person = {"user_id": 7, "first_name": "Ann", "last_name": "", "phone_number": "+49 1", "username": "@annlee"}
    about = {"about": "Here is the data you requested.", "personal_information": person}
    others = {"contacts": {"about": "x", "list": [{"user_id": 8, "first_name": "Bob"}]}, "frequent_contacts": {}}
    lists = {"chats": {"about": "x", "list": [*chats]}, "left_chats": {"about": "x", "list": [*left]}}
    return about | others | lists | more


JOINED = {"id": 1, "type": "service", "date": "2026-11-20T10:01:30", "date_unixtime": "1795165290", "actor": "Bob",
          "actor_id": "user8", "action": "joined_telegram", "text": "", "text_entities": []}  # fmt: skip
CHAT = chat(JOINED, said(2, "hello"), said(3, "hello", "user8", reply_to_message_id=2))
SAMPLES: Samples = {
    "telegram": ("result.json", CHAT),
    "telegram account": ("export.json", account(CHAT, chat(said(9, "later"), name=None, type="saved_messages", id=7))),
    "telegram zip": ("a.zip", zipped({"DataExport_2026-11-20/result.json": json.dumps(account(CHAT), indent=1)})),
}


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., list[ImportItem]]:
    return lambda content, **how: read_file(Telegram, tmp_path / "result.json", content, **how)


Read = Callable[..., list[ImportItem]]


def names(found: list[ImportItem]) -> list[str | None]:
    return [record.message.get("name") for record in records(found)]


# --- whose it is ----------------------------------------------------------------------------------------------------


def test_an_account_says_whose_it_is(read: Read) -> None:
    group = chat(said(4, "all", "user9"), said(5, "mine"), name="House", type="private_supergroup", id=8)
    found = read(account(CHAT, group, left=[chat(said(6, "old", "user8"), name="Old", type="private_group", id=3)]))
    assert texts(found) == ["hello", "hello", "all", "mine", "old"]
    assert names(found) == [None, "Bob", "Cat", None, "Bob"]
    mine, theirs, of_group, _, left = records(found)
    assert (mine.conversation, mine.title, mine.channel) == ("telegram user8", "Bob", "telegram")
    assert (of_group.conversation, left.conversation) == ("telegram channel8", "telegram chat3")
    assert mine.where == "result.json, chat 'Bob' (telegram user8), message 2"
    assert (mine.message["role"], mine.message["external_id"]) == ("user", "2")
    assert mine.message["occurred_at"] == datetime.fromtimestamp(1795165350, UTC)
    assert theirs.message["metadata"] == {"reply_to": "2"}
    assert (ignored(found), reasons(found)) == ({"notices of Telegram": 1}, [])


@pytest.mark.parametrize("me", ["Ann", "ann", "user7", "7"])
def test_of_one_chat_a_name_or_an_id_says_it(read: Read, me: str) -> None:
    assert names(read(CHAT, me=me)) == [None, "Bob"]
    assert names(read(CHAT, me="Bob")) == ["Ann", None]


@pytest.mark.parametrize("me", ["@AnnLee", "annlee", "Ann", "user7"])
def test_the_owner_of_an_account_may_be_named_too(read: Read, me: str) -> None:
    assert names(read(account(CHAT), me=me)) == [None, "Bob"]
    assert names(read(account(CHAT), me="Bob")) == ["Ann", None]


WITHOUT_OWNER = account(CHAT)
del WITHOUT_OWNER["personal_information"]


@pytest.mark.parametrize(
    ("content", "me", "words"),
    [
        (CHAT, None, "say who of them you are; --me takes one of: Ann, Bob"),
        (CHAT, "Zoe", "nobody in it is called Zoe; --me takes one of: Ann, Bob"),
        (WITHOUT_OWNER, None, "say who of them you are; --me takes one of: Ann, Bob"),
        (chat({"id": 1, "type": "message", "from": "Bob", "text": "a"}), None, "--me takes one of: Bob"),
        (account(CHAT), "Zoe", "nobody in it is called Zoe; --me takes one of: Ann, Bob"),
        (chat(said(1, "a", "user9"), type="private_group"), "Catt", "nobody in it is called Catt"),
        (
            chat(said(1, "a"), said(2, "b", "user8", **{"from": "Ann"}), type="private_group"),
            "Ann",
            "several in it are called Ann; --me takes one of: user7, user8",
        ),
    ],
)
def test_what_only_a_person_knows_is_asked_for_before_anything_comes(
    tmp_path: Path, content: Any, me: str | None, words: str
) -> None:
    first = zipped({"1/result.json": json.dumps(account(CHAT)), "2/result.json": json.dumps(content)})
    for path, data in ((tmp_path / "result.json", json.dumps(content).encode()), (tmp_path / "a.zip", first)):
        if me is None or path.suffix == ".json":
            path.write_bytes(data)
            with pytest.raises(OptionMissing, match=words):
                next(Telegram(path, ImportOptions(me=me)).read())


def test_a_group_in_which_i_never_wrote_and_a_channel_are_imported(read: Read) -> None:
    found = read(chat(said(1, "a", "user8"), said(2, "b", "user9"), name="House", type="private_group"), me="Zoe")
    assert (names(found), ignored(found)) == (["Bob", "Cat"], {"chats without a message of Zoe": 1})
    found = read(chat(said(1, "a", "channel5", author="Dan"), name="News", type="public_channel", id=5))
    assert (names(found), ignored(found)) == (["News"], {})
    assert records(found)[0].message["metadata"] == {"author": "Dan"}


def test_who_has_no_name_has_an_id_and_a_bot_is_the_assistant(read: Read) -> None:
    deleted = {"from": None}
    found = read(account(chat(said(1, "a", "user8", **deleted), said(2, "b", "user9", **deleted), name=None)))
    assert (names(found), records(found)[0].title) == (["user8", "user9"], None)
    found = read(account(chat(said(1, "hi"), said(2, "Welcome", "user8"), type="bot_chat")))
    assert [record.message["role"] for record in records(found)] == ["user", "assistant"]
    found = read(chat(said(1, "a", from_id=7), said(2, "b", from_id=8, **{"from": "Bob"})), me="user7")
    assert names(found) == [None, "Bob"]


def test_what_is_forwarded_is_its_authors(read: Read) -> None:
    found = read(
        account(
            chat(
                said(1, "I am allergic to nuts.", forwarded_from="Dan"),
                said(2, "from nobody", forwarded_from=None),
                said(3, "my own", forwarded_from="Ann"),
                said(4, "my own", forwarded_from="A. Lee", forwarded_from_id="user7"),
                said(5, "mine again", "user8", forwarded_from="Ann", forwarded_from_id="user7"),
                said(6, "Bob's", "user8", forwarded_from="Bob"),
            )
        )
    )
    assert names(found) == ["Dan", "?", None, None, None, "Bob"]
    by = [record.message["metadata"].get("forwarded_by") for record in records(found)]
    assert by == ["Ann", "Ann", None, None, "Bob", None]


# --- times ----------------------------------------------------------------------------------------------------------


def test_times_of_old_exports_have_the_zone_that_is_given(read: Read) -> None:
    old = [said(minute, "a") for minute in (1, 2)]
    for message in old:
        del message["date_unixtime"]
    with pytest.raises(OptionMissing, match=r"times without a zone; give .* --timezone Europe/Berlin"):
        read(account(chat(*old)))
    first, _ = records(read(account(chat(*old)), timezone=ZoneInfo("Europe/Berlin")))
    assert first.message["occurred_at"] == datetime(2026, 11, 20, 9, 1, 30, tzinfo=UTC)
    found = read(account(chat(said(0, "new"), *old)))
    assert texts(found) == ["new"]
    assert len([reason for reason in reasons(found) if "its time has no zone; give" in reason]) == 2


def test_a_message_without_a_time_has_that_of_the_one_before(read: Read) -> None:
    lost = said(2, "b") | {"date": "nonsense", "date_unixtime": "nonsense"}
    first, second = records(read(account(chat(said(1, "a"), lost))))
    assert second.message["occurred_at"] == first.message["occurred_at"]
    assert second.message["metadata"] == {"occurred_at": "inherited"}


# --- what was said --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "seen"),
    [
        ({"text": ["See ", {"type": "link", "text": "https://a.example"}, " or ", {"type": "bold", "text": "me"}]},
         "See https://a.example or me"),
        ({"text": [{"type": "text_link", "text": "here", "href": "https://a.example"}, "."]}, "here (https://a.example)."),
        ({"text": "", "text_entities": [{"type": "plain", "text": "only here"}]}, "only here"),
        ({"photo": NOT_INCLUDED, "width": 1, "text": "look"}, "look\n\n[image]"),
        ({"photo": "photos/photo_1@20-11-2026_10-15-30.jpg"}, "[image]"),
        ({"file": NOT_INCLUDED, "file_name": "plan.pdf", "mime_type": "application/pdf"}, "[file: plan.pdf]"),
        ({"file": "files/plan (1).pdf"}, "[file: plan (1).pdf]"),
        ({"file": NOT_INCLUDED}, "[file]"),
        ({"file": "a/b.ogg", "media_type": "voice_message", "duration_seconds": 3}, "[voice message]"),
        ({"file": NOT_INCLUDED, "media_type": "sticker", "sticker_emoji": "👍"}, "[sticker 👍]"),
        ({"file": "a/b.mp4", "media_type": "video_file"}, "[video]"),
        ({"file": "a/b.mp3", "media_type": "audio_file", "performer": "Bach", "title": "Air"}, "[audio: Bach, Air]"),
        ({"contact_information": {"first_name": "Dan", "last_name": "", "phone_number": "+1"}}, "[contact: Dan, +1]"),
        ({"location_information": {"latitude": 52.5, "longitude": 13.4}}, "[location: 52.5, 13.4]"),
        ({"location_information": None}, "[location]"),
        ({"place_name": "Pool", "address": "Bath Road 1"}, "[location: Pool, Bath Road 1]"),
        ({"poll": {"question": "Pool or lake?", "total_voters": 1, "answers": [{"text": "Pool"}, {"text": "Lake"}]}},
         "Pool or lake?\n- Pool\n- Lake"),
        ({"game_title": "Chess"}, "[game: Chess]"),
        ({"invoice_information": '{"title": "x"}'}, "[invoice]"),
        ({"giveaway_information": {"quantity": 3}}, "[giveaway]"),
    ],
)  # fmt: skip
def test_texts_of_parts_and_what_was_sent_besides_text(read: Read, message: dict[str, Any], seen: str) -> None:
    found = read(account(chat({**said(1, ""), "text_entities": [], **message})))
    assert (texts(found), reasons(found)) == ([seen], [])


def test_what_is_no_message_is_counted_and_an_edit_is_marked(read: Read) -> None:
    edited = said(4, "b", edited="2026-11-20T11:00:00", via_bot="@gif")
    found = read(account(chat(JOINED, {"id": 2, "type": "unsupported"}, said(3, ""), edited)))
    assert ignored(found) == {
        "notices of Telegram": 1, "messages that Telegram does not export": 1, "empty messages": 1
    }  # fmt: skip
    assert records(found)[0].message["metadata"] == {"via_bot": "@gif", "edited": True}


# --- damage ---------------------------------------------------------------------------------------------------------


def test_what_is_broken_costs_only_itself(read: Read) -> None:
    broken = [None, "x", {"type": "message"}, said(1, "a") | {"id": "1"}, said(2, 5), said(3, "") | {"type": "new"}]
    found = read(account(chat(*broken, said(4, "good")), chat(said(5, "lost"), id=None), 7, CHAT))
    assert texts(found) == ["good", "hello", "hello"]
    wrong = reasons(found)
    assert len(wrong) == 8
    assert wrong[3].startswith("its id (1) is no number")
    assert wrong[5] == "its type (new) is not known; report it, if it should be"
    assert wrong[6].startswith("its id is not given before its messages")
    assert wrong[7].startswith("a chat in it is none")


def test_of_a_file_that_is_cut_off_what_is_whole_comes(read: Read) -> None:
    whole = json.dumps(account(CHAT), indent=1)
    found = read(whole[: whole.index('"left_chats"')])
    assert texts(found) == ["hello", "hello"]
    (reason,) = reasons(found)
    assert reason.startswith("the file ends in the middle; the rest of the file was not read; export it")
    assert texts(read(whole[: whole.rindex("hello")])) == ["hello"]


def test_control_characters_are_read_as_telegram_writes_them(read: Read) -> None:
    written = json.dumps(account(chat(said(1, "a\x0bb \\x41 \x00c"), said(2, "d"))))
    found = read(written.replace("\\u000b", "\\x0B").replace("\\u0000", "\\x00"))
    assert (texts(found), reasons(found)) == (["a\x0bb \\x41 �c", "d"], [])
    assert records(found)[0].message["metadata"] == {"replaced": 1}


def test_what_else_lies_in_a_folder_is_named(tmp_path: Path) -> None:
    for name, content in (("1/result.json", {"passed": 3}), ("2/result.json", account(CHAT)), ("2/a.json", [])):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps(content))
    assert importer_for(tmp_path) is Telegram
    found = list(Telegram(tmp_path).read())
    assert texts(found) == ["hello", "hello"]
    assert reasons(found) == ["it is not of the format telegram, and was skipped"]
    with pytest.raises(InvalidInput, match="no folder of a known export"):
        importer_for(tmp_path / "1")


# --- files of any size ----------------------------------------------------------------------------------------------


def test_a_huge_file_is_found_and_read_in_bounded_memory(tmp_path: Path) -> None:
    message = json.dumps(said(1, "x" * 1000))
    path = tmp_path / "export.json"
    for start, me in ((json.dumps(account())[:-1] + ', "chats": {"list": [', None), ("", "Ann")):
        head = '{"name": "Bob", "type": "personal_chat", "id": 8, "messages": ['
        path.write_text(start + head + ",\n".join([message] * 4_000) + "]}" + ("]}}" if start else ""))
        tracemalloc.start()
        assert importer_for(path) is Telegram
        found = Telegram(path, ImportOptions(me=me)).read()
        assert sum(isinstance(one, Record) for one in found) == 4_000
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 6 << 20 < path.stat().st_size


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(values, st.integers(0, 3), st.sampled_from([None, 1]), st.sampled_from([1, 7, 1000]))
def test_values_are_those_of_json_however_much_is_held(value: Any, depth: int, indent: int | None, held: int) -> None:
    def flat(value: Any, path: tuple[str | int, ...] = ()) -> list[Any]:
        if len(path) >= depth or not isinstance(value, dict | list):
            return [(path, value)]
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        return [one for key, inner in pairs for one in flat(inner, (*path, key))]

    file = OpenFile("a", "a", BytesIO(json.dumps(value, indent=indent).encode()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memstore.ingest.importers.files.READ_BYTES", held)
        assert [*nested_values(file, lambda path: len(path) < depth, "again")] == flat(value)
