"""Slack's export: channels, threads, people and bots, and texts as a reader sees them."""

import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memstore.errors import InvalidInput
from memstore.ingest.importers import ImportItem, ImportOptions, importer_for
from memstore.ingest.importers.slack import Slack
from tests.unit.importing import Samples, ignored, reasons, records, texts, zipped

USERS = [
    {"id": "U1", "name": "ann", "real_name": "Ann Lee", "profile": {"display_name": "Ann", "real_name": "Ann Lee"}},
    {"id": "U2", "name": "bob", "profile": {"display_name": "", "real_name": "Bob Ray"}},
]
CHANNELS = [{"id": "C1", "name": "general", "members": ["U1", "U2"]}]
DMS = [{"id": "D1", "members": ["U1", "U2"]}]
TS = "1714564800.000100"  # 2024-05-01T12:00:00.0001Z


SAMPLES: Samples = {
    "slack zip": (
        "a.zip",
        zipped(
            {
                "channels.json": '[{"id": "C1", "name": "general"}]',
                "general/2024-05-01.json": '[{"user": "U1", "text": "hello", "ts": "1714564800.1"}]',
            },
            zipfile.ZIP_STORED,
        ),
    )
}


def said(text: object = "hello", ts: object = TS, user: object = "U1", **more: object) -> dict[str, Any]:
    return {"type": "message", "user": user, "text": text, "ts": ts} | more


@pytest.fixture
def export(tmp_path):
    def write(messages: object, where: str = "general/2024-05-01.json", **files: object) -> Path:
        kept = {"users": USERS, "channels": CHANNELS, "dms": DMS} | files
        path = tmp_path / "slack.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name, value in kept.items():
                if value is not None:
                    archive.writestr(f"{name}.json", json.dumps(value))
            archive.writestr(where, messages if isinstance(messages, bytes) else json.dumps(messages))
        return path

    return write


def read(path: Path, **how: object) -> list[ImportItem]:
    return list(Slack(path, ImportOptions(**how)).read())


def test_a_channel_is_a_conversation_in_the_order_of_time(export):
    later = said("later", "1714564801.5", "U2", thread_ts=TS)
    path = export([later, said("first", thread_ts=TS)])
    assert importer_for(path).name == "slack"
    first, second = read(path)
    assert (first.conversation, first.title, first.channel) == ("C1", "#general", "slack")
    assert (first.message["content"], first.message["name"]) == ("first", "Ann")
    assert (first.message["external_id"], first.message["metadata"]) == (TS, {})
    assert first.message["occurred_at"] == datetime(2024, 5, 1, 12, 0, 0, 100, tzinfo=UTC)
    assert (second.message["name"], second.message["metadata"]) == ("Bob Ray", {"thread": TS})
    assert first.where == "slack.zip, general/2024-05-01.json, message 2"


def test_days_come_in_their_order_and_channels_apart(export):
    path = export([said("2")], "general/2024-05-02.json")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("general/2024-05-01.json", json.dumps([said("1")]))
        archive.writestr("D1/2024-05-01.json", json.dumps([said("private")]))
    found = records(read(path))
    assert [(record.conversation, record.title, record.message["content"]) for record in found] == [
        ("D1", "Ann, Bob Ray", "private"),
        ("C1", "#general", "1"),
        ("C1", "#general", "2"),
    ]


def test_mine_are_without_a_name_and_a_bot_is_an_assistant(export):
    bot = said("built", "1714564802", user=None, subtype="bot_message", username="CI", bot_id="B1")
    for me in ("Ann", "U1"):
        found = read(export([said(), said(user="U2", ts="1714564801"), bot]), me=me)
        assert [record.message.get("name") for record in found] == [None, "Bob Ray", "CI"]
        assert [record.message["role"] for record in found] == ["user", "user", "assistant"]
    with pytest.raises(InvalidInput, match="nobody in it is called Zoe; --me takes one of: Ann, Bob Ray"):
        read(export([said()]), me="Zoe")
    talk = {"id": "G1", "name": "mpdm-ann--bob-1", "members": ["U1", "U2"]}
    (record,) = read(export([said()], "mpdm-ann--bob-1/2024-05-01.json", mpims=[talk]))
    assert (record.conversation, record.title) == ("G1", "Ann, Bob Ray")


def test_notices_are_counted_and_malformed_messages_named(export):
    joined = [said("x", subtype=kind) for kind in ("channel_join", "channel_topic")]
    found = read(export([*joined, said(" "), None, said(ts=None), said(ts="soon"), said()]))
    assert (texts(found), len(reasons(found))) == (["hello"], 3)
    assert ignored(found) == {"notices of channels": 2, "empty messages": 1}


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("hi <@U2>, <@U9> and <@U9|zed>", "hi @Bob Ray, @U9 and @zed"),
        ("in <#C1|general> or <#C1> or <#C9>", "in #general or #general or #C9"),
        ("<https://a.example|the map> <https://b.example>", "the map (https://a.example) https://b.example"),
        ("<mailto:a@b.example|a@b.example>", "a@b.example"),
        ("<!here> &lt;b&gt; &amp; c", "@here <b> & c"),
        ("<!subteam^S1|@team>", "@team"),
    ],
)
def test_a_text_is_as_a_reader_sees_it(export, text, seen):
    assert texts(read(export([said(text)]))) == [seen]


def test_files_and_attachments_are_named(export):
    found = read(
        export(
            [
                said("look", files=[{"name": "a.png", "title": "Plan"}, {"name": "b.png"}]),
                said("", "1714564801", attachments=[{"fallback": "Build <https://c.example|7> failed"}]),
            ]
        )
    )
    assert texts(found) == ["look\n\n[file: Plan]\n\n[file: b.png]", "Build 7 (https://c.example) failed"]


def test_all_that_a_bot_shows_is_its_text(export):
    attachment = {"pretext": "1 commit by Bob", "title": "Fix login", "text": "abc: <https://c.example|fix>"}
    attachment |= {"fields": [{"title": "State", "value": "open"}], "fallback": "x"}
    rich = {
        "type": "rich_text_section",
        "elements": [{"type": "text", "text": "by "}, {"type": "user", "user_id": "U2"}],
    }
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": "Deploy"}},
        {"type": "section", "text": {"type": "mrkdwn", "text": "of *shop*"}, "fields": [{"text": "ok"}]},
        {"type": "rich_text", "elements": [rich]},
    ]
    bot = {"user": None, "subtype": "bot_message", "bot_id": "B1"}
    found = read(
        export(
            [
                said("", "1714564801", attachments=[attachment], **bot),
                said("", "1714564802", blocks=blocks, **bot),
                said("", "1714564803", attachments=[{"blocks": blocks[:1], "fallback": "x"}], **bot),
                said("see:", "1714564804", attachments=[{"is_share": True, "author_name": "Bob", "text": "It moves."}]),
                said("look", "1714564805", attachments=[{"from_url": "https://c.example", "text": "a preview"}]),
            ]
        )
    )
    assert texts(found) == [
        "1 commit by Bob\nFix login\nabc: fix (https://c.example)\nState: open",
        "Deploy\nof *shop*\nok\nby @Bob Ray",
        "Deploy",
        "see:\n\nBob\nIt moves.",
        "look",
    ]


def test_who_posts_through_an_app_is_a_person_and_a_bot_with_an_account_is_none(export):
    jira = {"id": "U3", "name": "jira", "is_bot": True, "profile": {"real_name": "Jira"}}
    found = read(
        export(
            [
                said("a", "1714564801", bot_id="B9", bot_profile={"name": "Zapier"}),
                said("b", "1714564802", "U3"),
                said("c", "1714564803", "U8", user_profile={"display_name": "eve"}),
            ],
            users=[*USERS, jira],
        ),
        me="ann lee",
    )
    assert [(one.message["role"], one.message.get("name")) for one in found] == [
        ("user", None),
        ("assistant", "Jira"),
        ("user", "eve"),
    ]


def test_without_an_index_ids_are_names(export):
    path = export([said()], users=None, channels=None, dms=None)
    assert importer_for(path).name == "slack"
    (record,) = read(path)
    assert (record.conversation, record.title, record.message["name"]) == ("general", "#general", "U1")
    assert "name" not in read(path, me="U1")[0].message
    with pytest.raises(InvalidInput, match="--me takes one of: an id"):
        read(path, me="Ann")


def test_a_link_out_of_an_unpacked_export_is_not_followed(tmp_path):
    (tmp_path / "secret.json").write_text(json.dumps([said("secret")]))
    folder = tmp_path / "export"
    (folder / "general").mkdir(parents=True)
    (folder / "users.json").write_text(json.dumps(USERS))
    (folder / "general" / "2024-05-01.json").write_text(json.dumps([said("open")]))
    (folder / "general" / "2024-05-02.json").symlink_to(tmp_path / "secret.json")
    assert importer_for(folder).name == "slack"
    assert texts(read(folder)) == ["open"]
