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
    UNEXPECTED,
    Found,
    Ignored,
    Importer,
    ImportOptions,
    Record,
    Skipped,
    make_storable,
    parse_time,
    printable,
)
from .files import Part, list_names, read_parts
from .json_stream import convert_values, numbered_values

AGAIN = "ask Slack for the export again, and import the zip as it comes"
SAID = (None, "bot_message", "thread_broadcast", "me_message", "file_share", "file_comment", "reply_broadcast")

_USERS = re.compile(r"(?:[^/]+/)?users\.json")
_CHANNELS = re.compile(r"(?:[^/]+/)?(?:channels|groups|dms|mpims)\.json")
_DAY = re.compile(r"(?:.*/)?[^/]+/[0-9]{4}-[0-9]{2}-[0-9]{2}\.json")
_ID = re.compile(r"[UW][A-Z0-9]+")
_MARKED = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")


@dataclass(slots=True)
class _Workspace:
    """What its ids mean: people's names, and the id and title of each channel by the name of its folder."""

    people: dict[str, str] = field(default_factory=dict)
    channels: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    me: str | None = None

    def add_person(self, entry: dict[str, Any]) -> None:
        profile = entry.get("profile") or {}
        names = (profile.get("display_name"), profile.get("real_name"), entry.get("real_name"), entry.get("name"))
        self.people[entry["id"]] = next(filter(None, names), entry["id"])

    def add_channel(self, entry: dict[str, Any]) -> None:
        key, name = entry["id"], entry.get("name")
        if name and not name.startswith("mpdm-"):
            title: str | None = f"#{make_storable(name)[0]}"
        else:  # a talk of several people has a name that is made of theirs: mpdm-ann--bob-1
            title = ", ".join(self.people.get(one, one) for one in entry.get("members") or ()) or None
        self.channels |= dict.fromkeys(filter(None, (key, name)), (key, title))

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
    workspace = _Workspace()
    names, entries = list_names(path), partial(numbered_values, unit="entry", again=AGAIN)
    for wanted, add in ((_USERS, workspace.add_person), (_CHANNELS, workspace.add_channel)):
        if not any(wanted.fullmatch(name) for name in names):
            continue
        for one in read_parts(path, wanted, DEFAULTS, entries, AGAIN):
            if isinstance(one, Skipped):
                yield one
                continue
            try:
                add(one[1])
            except UNEXPECTED:
                yield Skipped(one[0], f"it is no person or channel with an id; {AGAIN}")
    workspace.me = None if options.me is None else workspace.find_person(options.me)
    yield from read_parts(path, _DAY, options, partial(_read_day, workspace=workspace), AGAIN)


def _read_day(part: Part, workspace: _Workspace) -> Iterator[Found]:
    folder = Path(part.name).parent.name or part.name
    channel, title = workspace.channels.get(folder, (folder, f"#{folder}"))
    records: list[Record] = []
    convert = partial(_convert, workspace=workspace, channel=channel, title=title)
    for one in convert_values(part, "message", AGAIN, convert):
        if isinstance(one, Record):
            records.append(one)
        else:
            yield one
    yield from sorted(records, key=lambda record: record.message["occurred_at"])


def _convert(
    given: dict[str, Any], where: str, workspace: _Workspace, channel: str, title: str | None
) -> Iterator[Found]:
    if given.get("subtype") not in SAID:
        yield Ignored("notices of channels")
        return
    text, metadata = make_storable("\n\n".join(one for one in _texts(given, workspace) if one.strip()))
    if not text.strip():
        yield Ignored("empty messages")
        return
    if given.get("thread_ts") not in (None, given["ts"]):
        metadata["thread"] = given["thread_ts"]
    author = given.get("user")
    is_bot = not author or given.get("subtype") == "bot_message" or "bot_id" in given
    names = (given.get("username"), (given.get("bot_profile") or {}).get("name"), given.get("bot_id"))
    name = workspace.people.get(author, author) if author else next(filter(None, names), None)
    message = {
        "role": "assistant" if is_bot else "user",
        "content": text,
        "external_id": str(given["ts"]),
        "occurred_at": parse_time(float(given["ts"])),
        "metadata": metadata,
    }
    if name and not (author and author == workspace.me):
        message["name"] = name
    yield Record(conversation=channel, message=message, title=title, channel="slack", where=where)


def _texts(given: dict[str, Any], workspace: _Workspace) -> Iterator[str]:
    """Yield what a message says, what its attachments say where it says nothing, and the names of its files."""
    if (given.get("text") or "").strip():
        yield workspace.plain(given["text"])
    else:
        for attachment in given.get("attachments") or ():
            yield workspace.plain(attachment.get("text") or attachment.get("fallback") or "")
    for file in given.get("files") or ():
        name = file.get("title") or file.get("name")
        yield f"[file: {name}]" if name else "[file]"


SLACK = Importer("slack", sniff, read)
