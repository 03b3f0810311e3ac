"""Slack's export: the zip or its folder, with `channels.json`, `users.json` and a folder a channel, a file a day.

A channel is a conversation, known by its id and shown by its name; an answer in a thread stands where it was said, with
the thread in its metadata. People are users with their names; with `me`, a name or an id, that one's messages have no
name and are the user's own. A bot is an assistant. Mentions, channels and links become what a reader sees.
That somebody joined, left or renamed something is left out and counted, and so are files, but for their names.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memstore.errors import InvalidInput

from .files import Part, check_file, names, read_parts
from .json_stream import numbered_elements
from .reading import PLAINLY, Reading
from .records import Found, LeftOut, Record, Skipped, is_id, moment, shown, storable
from .scratch import in_order

AGAIN = "ask Slack for the export again, and import the zip as it comes"
SAID = (None, "bot_message", "thread_broadcast", "me_message", "file_share", "file_comment", "reply_broadcast")

_USERS = re.compile(r"(?:[^/]+/)?users\.json")
_CHANNELS = re.compile(r"(?:[^/]+/)?(?:channels|groups|dms|mpims)\.json")
_DAY = re.compile(r"(?:.*/)?(?P<channel>[^/]+)/[0-9]{4}-[0-9]{2}-[0-9]{2}\.json")
_ID = re.compile(r"[UW][A-Z0-9]+")
_MARKED = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")


@dataclass(slots=True)
class _Workspace:
    """Who and what its ids mean: people's names, and the id and title of each channel by the name of its folder."""

    people: dict[str, str] = field(default_factory=dict)
    channels: dict[str, tuple[str, str | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Slack:
    """Reads Slack's export, channel by channel, day by day."""

    @property
    def name(self) -> str:
        """What `--format` calls it."""
        return "slack"

    def sniff(self, path: Path) -> float:
        """Give 0.9 for a zip or folder with channels' days and an index, 0.3 without one."""
        found = names(path)
        if not any(_DAY.fullmatch(name) for name in found):
            return 0.0
        return 0.9 if any(_USERS.fullmatch(name) or _CHANNELS.fullmatch(name) for name in found) else 0.3

    def read(self, path: Path, reading: Reading = PLAINLY) -> Iterator[Found]:
        """Give what was said in each channel, in the order of time."""
        check_file(path)
        workspace = _Workspace()
        yield from _read_index(path, workspace)
        me = _person(reading.me, workspace)

        def day(part: Part) -> Iterator[Found]:
            return _day(part, workspace, me)

        yield from read_parts(path, _DAY, reading, day, AGAIN)


def _read_index(path: Path, workspace: _Workspace) -> Iterator[Skipped]:
    """Learn what ids mean, and tell what of that cannot be read."""
    for wanted, learn in ((_USERS, _learn_person), (_CHANNELS, _learn_channel)):
        if not any(wanted.fullmatch(name) for name in names(path)):
            continue
        for one in read_parts(path, wanted, PLAINLY, lambda part: numbered_elements(part, "entry", AGAIN), AGAIN):
            if isinstance(one, Skipped):
                yield one
            elif isinstance(one[1], dict) and is_id(one[1].get("id")):
                learn(one[1], workspace)


def _learn_person(entry: dict[str, Any], workspace: _Workspace) -> None:
    profile = entry["profile"] if isinstance(entry.get("profile"), dict) else {}
    called = (profile.get("display_name"), profile.get("real_name"), entry.get("real_name"), entry.get("name"))
    workspace.people[entry["id"]] = next((one for one in called if is_id(one)), entry["id"])


def _learn_channel(entry: dict[str, Any], workspace: _Workspace) -> None:
    key, name, members = entry["id"], entry.get("name"), entry.get("members")
    people = [workspace.people.get(one, one) for one in (members if isinstance(members, list) else []) if is_id(one)]
    # A talk of several people has a name that is made of theirs: mpdm-ann--bob-1.
    title = f"#{storable(name)[0]}" if is_id(name) and not name.startswith("mpdm-") else ", ".join(people) or None
    for folder in (key, name):
        if is_id(folder):
            workspace.channels[folder] = (key, title)


def _person(me: str | None, workspace: _Workspace) -> str | None:
    """Give the id of whom `me` names; InvalidInput where nobody is called that."""
    found = [key for key, name in workspace.people.items() if me in (key, name)]
    if me is None or found:
        return found[0] if found else None
    if not workspace.people and _ID.fullmatch(me):
        return me
    some = ", ".join(sorted(map(shown, workspace.people.values()))[:20]) or "an id, for its users.json cannot be read"
    raise InvalidInput(f"nobody in it is called {shown(me)}; --me takes one of: {some}")


def _day(part: Part, workspace: _Workspace, me: str | None) -> Iterator[Found]:
    """Give what was said in a channel on a day, in the order of time."""
    found = _DAY.fullmatch(part.name)
    folder = found["channel"] if found else part.name
    channel, title = workspace.channels.get(folder, (folder, f"#{folder}"))
    for time, (where, message) in in_order(_rows(part, workspace, me)):
        if not time:
            yield Skipped(where, message) if where else LeftOut(message)
            continue
        message["occurred_at"] = moment(float(time))
        yield Record(user=None, conversation=channel, message=message, title=title, channel="slack", where=where)


def _rows(part: Part, workspace: _Workspace, me: str | None) -> Iterator[tuple[str, Any]]:
    """Give messages under their times, and under no time, so that it comes first, what is none of them."""
    for one in numbered_elements(part, "message", AGAIN):
        if isinstance(one, Skipped):
            yield "", (one.where, one.reason)
            continue
        where, given = one
        kind = given.get("subtype") if isinstance(given, dict) else None
        if kind is not None and kind not in SAID:
            yield "", ("", "notices of channels")
            continue
        time = _time(given.get("ts")) if isinstance(given, dict) else None
        if time is None:
            yield "", (where, f"it is no message with a time (ts); {AGAIN}")
            continue
        message = _message(given, workspace, me)
        yield (time, (where, message)) if message["content"].strip() else ("", ("", "empty messages"))


def _time(ts: object) -> str | None:
    """Give a time of Slack's so that texts are in the order of times, or None for what is none."""
    try:
        seconds = float(ts) if isinstance(ts, str | int | float) else -1.0
        moment(seconds)
    except (ValueError, OverflowError, InvalidInput):
        return None
    return f"{seconds:018.6f}" if seconds >= 0 else None


def _message(given: dict[str, Any], workspace: _Workspace, me: str | None) -> dict[str, Any]:
    text, metadata = storable("\n\n".join(one for one in _texts(given, workspace) if one.strip()))
    if is_id(given.get("thread_ts")) and given["thread_ts"] != given.get("ts"):
        metadata["thread"] = given["thread_ts"]
    message = {"content": text, "external_id": str(given["ts"]), "metadata": metadata}
    author = given.get("user")
    if not isinstance(author, str):
        profile = given["bot_profile"] if isinstance(given.get("bot_profile"), dict) else {}
        called = (given.get("username"), profile.get("name"), given.get("bot_id"))
        name = next((one for one in called if is_id(one)), None)
        return {"role": "assistant"} | message | ({"name": name} if name else {})
    name = workspace.people.get(author, author)
    is_bot = given.get("subtype") == "bot_message" or "bot_id" in given
    named = {} if author == me or not is_id(name) else {"name": name}
    return {"role": "assistant" if is_bot else "user"} | message | named


def _texts(given: dict[str, Any], workspace: _Workspace) -> Iterator[str]:
    """Give what a message says, what its attachments say where it says nothing, and the names of its files."""
    text = given.get("text")
    if isinstance(text, str) and text.strip():
        yield _plain(text, workspace)
    else:
        for attachment in _objects(given.get("attachments")):
            said = attachment.get("text") or attachment.get("fallback")
            yield _plain(said, workspace) if isinstance(said, str) else ""
    for file in _objects(given.get("files")):
        name = file.get("title") or file.get("name")
        yield f"[file: {name}]" if isinstance(name, str) else "[file]"


def _objects(given: object) -> list[dict[str, Any]]:
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []


def _plain(text: str, workspace: _Workspace) -> str:
    """Give Slack's marked text as a reader sees it."""

    def visible(mark: re.Match[str]) -> str:
        kind, target, label = mark[1], mark[2], mark[3]
        if kind == "@":
            return f"@{label or workspace.people.get(target, target)}"
        if kind == "#":
            return f"#{label}" if label else workspace.channels.get(target, ("", None))[1] or f"#{target}"
        if kind == "!":
            return label or f"@{target}"
        return (
            f"{label} ({target})"
            if label and label != target.removeprefix("mailto:")
            else target.removeprefix("mailto:")
        )

    return html.unescape(_MARKED.sub(visible, text))
