"""Slack's export: the zip or its folder, with `channels.json`, `users.json` and a folder a channel, a file a day.

A channel is a conversation, known by its id and shown by its name; an answer in a thread stands where it was said, with
the thread in its metadata. People are users with their names; with `me`, a name or an id, that one's messages have no
name and are the user's own. A bot is an assistant. Mentions, channels and links become what a reader sees.
That somebody joined, left or renamed something is ignored and counted, and so are files, but for their names.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from memstore.errors import InvalidInput

from .base import (
    DEFAULTS,
    Found,
    Ignored,
    Importer,
    ImportOptions,
    Record,
    Skipped,
    is_id,
    make_storable,
    parse_time,
    printable,
)
from .external_sort import in_order
from .files import Part, check_file, list_names, read_parts
from .json_stream import numbered_elements

AGAIN = "ask Slack for the export again, and import the zip as it comes"
SAID = (None, "bot_message", "thread_broadcast", "me_message", "file_share", "file_comment", "reply_broadcast")

_USERS = re.compile(r"(?:[^/]+/)?users\.json")
_CHANNELS = re.compile(r"(?:[^/]+/)?(?:channels|groups|dms|mpims)\.json")
_DAY = re.compile(r"(?:.*/)?(?P<channel>[^/]+)/[0-9]{4}-[0-9]{2}-[0-9]{2}\.json")
_ID = re.compile(r"[UW][A-Z0-9]+")
_MARKED = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")


@dataclass(slots=True)
class _Workspace:
    """What its ids mean: people's names, and the id and title of each channel by the name of its folder."""

    people: dict[str, str] = field(default_factory=dict)
    channels: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    me: str | None = None

    def add_person(self, entry: dict[str, Any]) -> None:
        profile = entry["profile"] if isinstance(entry.get("profile"), dict) else {}
        names = (profile.get("display_name"), profile.get("real_name"), entry.get("real_name"), entry.get("name"))
        self.people[entry["id"]] = next((name for name in names if is_id(name)), entry["id"])

    def add_channel(self, entry: dict[str, Any]) -> None:
        key, name, members = entry["id"], entry.get("name"), entry.get("members")
        people = [self.people.get(one, one) for one in (members if isinstance(members, list) else []) if is_id(one)]
        if is_id(name) and not name.startswith("mpdm-"):
            title: str | None = f"#{make_storable(name)[0]}"
        else:  # a talk of several people has a name that is made of theirs: mpdm-ann--bob-1
            title = ", ".join(people) or None
        for folder in (key, name):
            if is_id(folder):
                self.channels[folder] = (key, title)

    def find_person(self, named: str) -> str:
        """Return the id of a name or an id; raise `InvalidInput` where nobody is called that."""
        for key, name in self.people.items():
            if named in (key, name):
                return key
        if not self.people and _ID.fullmatch(named):
            return named
        some = ", ".join(sorted(map(printable, self.people.values()))[:20])
        some = some or "an id, for its users.json cannot be read"
        raise InvalidInput(f"nobody in it is called {printable(named)}; --me takes one of: {some}")

    def plain(self, text: str) -> str:
        """Return Slack's marked text as a reader sees it."""
        return html.unescape(_MARKED.sub(self._visible, text))

    def _visible(self, mark: re.Match[str]) -> str:
        kind, target, label = mark[1], mark[2], mark[3]
        if kind == "@":
            return f"@{label or self.people.get(target, target)}"
        if kind == "#":
            return f"#{label}" if label else self.channels.get(target, ("", None))[1] or f"#{target}"
        if kind == "!":
            return label or f"@{target}"
        target = target.removeprefix("mailto:")
        return f"{label} ({target})" if label and label != target else target


def sniff(path: Path) -> float:
    """Return 0.9 for a zip or folder with channels' days and an index, 0.3 without one."""
    names = list_names(path)
    if not any(_DAY.fullmatch(name) for name in names):
        return 0.0
    return 0.9 if any(_USERS.fullmatch(name) or _CHANNELS.fullmatch(name) for name in names) else 0.3


def read(path: Path, options: ImportOptions = DEFAULTS) -> Iterator[Found]:
    """Yield what was said in each channel, in the order of time."""
    check_file(path)
    workspace = _Workspace()
    names, entries = list_names(path), partial(numbered_elements, unit="entry", again=AGAIN)
    for wanted, add in ((_USERS, workspace.add_person), (_CHANNELS, workspace.add_channel)):
        if not any(wanted.fullmatch(name) for name in names):
            continue
        for one in read_parts(path, wanted, DEFAULTS, entries, AGAIN):
            if isinstance(one, Skipped):
                yield one
            elif isinstance(one[1], dict) and is_id(one[1].get("id")):
                add(one[1])
    workspace.me = None if options.me is None else workspace.find_person(options.me)
    yield from read_parts(path, _DAY, options, partial(_read_day, workspace=workspace), AGAIN)


def _read_day(part: Part, workspace: _Workspace) -> Iterator[Found]:
    found = _DAY.fullmatch(part.name)
    folder = found["channel"] if found else part.name
    channel, title = workspace.channels.get(folder, (folder, f"#{folder}"))
    for time, (where, message) in in_order(_rows(part, workspace)):
        if not time:
            yield Skipped(where, message) if where else Ignored(message)
            continue
        message["occurred_at"] = parse_time(float(time))
        yield Record(conversation=channel, message=message, title=title, channel="slack", where=where)


def _rows(part: Part, workspace: _Workspace) -> Iterator[tuple[str, Any]]:
    """Yield messages under their times; what is none of them under no time, so that it comes first."""
    for one in numbered_elements(part, "message", AGAIN):
        if isinstance(one, Skipped):
            yield "", (one.where, one.reason)
            continue
        where, given = one
        kind = given.get("subtype") if isinstance(given, dict) else None
        time = _sortable_time(given.get("ts")) if isinstance(given, dict) else None
        if kind is not None and kind not in SAID:
            yield "", ("", "notices of channels")
        elif time is None:
            yield "", (where, f"it is no message with a time (ts); {AGAIN}")
        else:
            message = _convert(given, workspace)
            yield (time, (where, message)) if message["content"].strip() else ("", ("", "empty messages"))


def _sortable_time(ts: object) -> str | None:
    """Return seconds as a text whose order is that of time, or None for what is no time."""
    try:
        seconds = float(ts) if isinstance(ts, str | int | float) else -1.0
        parse_time(seconds)
    except (ValueError, OverflowError, InvalidInput):
        return None
    return f"{seconds:018.6f}" if seconds >= 0 else None


def _convert(given: dict[str, Any], workspace: _Workspace) -> dict[str, Any]:
    text, metadata = make_storable("\n\n".join(one for one in _texts(given, workspace) if one.strip()))
    if is_id(given.get("thread_ts")) and given["thread_ts"] != given.get("ts"):
        metadata["thread"] = given["thread_ts"]
    message = {"role": "user", "content": text, "external_id": str(given["ts"]), "metadata": metadata}
    author = given.get("user")
    if isinstance(author, str):
        if given.get("subtype") == "bot_message" or "bot_id" in given:
            message["role"] = "assistant"
        name = workspace.people.get(author, author) if author != workspace.me else None
    else:
        message["role"] = "assistant"
        profile = given["bot_profile"] if isinstance(given.get("bot_profile"), dict) else {}
        names = (given.get("username"), profile.get("name"), given.get("bot_id"))
        name = next((name for name in names if is_id(name)), None)
    return message | ({"name": name} if is_id(name) else {})


def _texts(given: dict[str, Any], workspace: _Workspace) -> Iterator[str]:
    """Yield what a message says, what its attachments say where it says nothing, and the names of its files."""
    text = given.get("text")
    if isinstance(text, str) and text.strip():
        yield workspace.plain(text)
    else:
        for attachment in _objects(given.get("attachments")):
            said = attachment.get("text") or attachment.get("fallback")
            yield workspace.plain(said) if isinstance(said, str) else ""
    for file in _objects(given.get("files")):
        name = file.get("title") or file.get("name")
        yield f"[file: {name}]" if isinstance(name, str) else "[file]"


def _objects(given: object) -> list[dict[str, Any]]:
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []


SLACK = Importer("slack", sniff, read)
