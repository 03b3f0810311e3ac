"""Slack's export: the zip or its folder, with `channels.json`, `users.json` and a folder a channel, a file a day.

A channel is a conversation, known by its id and shown by its name. People are users with their names, also where they
post through an app; with `me`, any name or an id, that one's messages have no name and are the user's own.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from .base import IgnoredContent, Importer, ImportItem, Record, make_storable, parse_time
from .files import OpenFile, has_name, list_names, read_files


class Slack(Importer):
    name = "slack"
    option_names = ("me",)
    files = ("*/[12]???-??-??.json",)
    advice = "ask Slack for the export again, and import the zip as it comes"
    unit = "message"

    @classmethod
    def sniff(cls, path: Path) -> bool:
        return any(has_name(name, cls.files) for name in list_names(path))

    def read(self) -> Iterator[ImportItem]:
        # Names by id.
        self._people: dict[str, str] = {}
        # All that each is called by, and the id, in lower case.
        self._names: dict[str, set[str]] = {}
        self._bots: set[str] = set()
        # Ids and titles by id, and by name of the folder.
        self._channels: dict[str, tuple[str, str | None]] = {}
        names = list_names(self.path)
        channels = ("channels.json", "groups.json", "dms.json", "mpims.json")
        for files, convert in ((("users.json",), self._add_person), (channels, self._add_channel)):
            if any(has_name(name, files) for name in names):
                read = partial(self.read_values, convert=convert)
                yield from read_files(self.path, files, read, self.advice)
        self._me = None if self.options.me is None else self._find_person(self.options.me)
        yield from read_files(self.path, self.files, self.read_file, self.advice)

    def _add_person(self, value: dict[str, Any], where: str) -> Iterator[ImportItem]:
        profile = value.get("profile") or {}
        names = (profile.get("display_name"), profile.get("real_name"), value.get("real_name"), value.get("name"))
        self._people[value["id"]] = next(filter(None, names), value["id"])
        self._names[value["id"]] = {name.casefold() for name in (value["id"], *filter(None, names))}
        if value.get("is_bot"):
            self._bots.add(value["id"])
        yield from ()

    def _add_channel(self, value: dict[str, Any], where: str) -> Iterator[ImportItem]:
        key, name = value["id"], value.get("name")
        if name and not name.startswith("mpdm-"):
            title: str | None = f"#{make_storable(name)[0]}"
        else:
            # A talk of several people has a name that is made of theirs: mpdm-ann--bob-1.
            title = ", ".join(self._people.get(member, member) for member in value.get("members") or ()) or None
        self._channels |= dict.fromkeys(filter(None, (key, name)), (key, title))
        yield from ()

    def read_file(self, file: OpenFile) -> Iterator[ImportItem]:
        folder = Path(file.name).parent.name or file.name
        conversation, title = self._channels.get(folder, (folder, f"#{folder}"))
        records: list[Record] = []
        for item in self.read_values(file, partial(self._convert, conversation=conversation, title=title)):
            if isinstance(item, Record):
                records.append(item)
            else:
                yield item
        yield from sorted(records, key=lambda record: record.message["occurred_at"])

    def _convert(self, value: dict[str, Any], where: str, conversation: str, title: str | None) -> Iterator[ImportItem]:
        subtype = value.get("subtype")
        shared = ("thread_broadcast", "reply_broadcast", "file_share", "file_comment")
        if subtype not in (None, "bot_message", "me_message", *shared):
            yield IgnoredContent("notices of channels")
            return
        author = value.get("user")
        # With a bot's id and a person's, the person posts through an app.
        is_bot = subtype == "bot_message" or not author or author in self._bots
        is_bot = is_bot or ("bot_id" in value and author not in self._people)
        text, metadata = make_storable("\n\n".join(part for part in self._texts(value, is_bot) if part.strip()))
        if not text.strip():
            yield IgnoredContent("empty messages")
            return
        if value.get("thread_ts") not in (None, value["ts"]):
            metadata["thread"] = value["thread_ts"]
        names = (value.get("username"), (value.get("bot_profile") or {}).get("name"), value.get("bot_id"))
        # Somebody from another company is not in users.json.
        profile = value.get("user_profile") or {}
        shown = profile.get("display_name") or profile.get("real_name") or author
        name = self._people.get(author, shown) if author else next(filter(None, names), None)
        message = {
            "role": "assistant" if is_bot else "user",
            "content": text,
            "external_id": str(value["ts"]),
            "occurred_at": parse_time(float(value["ts"])),
            "metadata": metadata,
        }
        if name and not (author and author == self._me):
            message["name"] = name
        yield Record(conversation=conversation, message=message, title=title, channel=self.name, where=where)

    def _find_person(self, named: str) -> str:
        for key, names in self._names.items():
            if named.casefold() in names:
                return key
        if not self._people and named.startswith(("U", "W")) and named.isalnum() and named.isupper():
            return named
        raise self.unknown_me(sorted(self._people.values()) or ["an id, for its users.json cannot be read"])

    def _visible(self, mark: re.Match[str]) -> str:
        kind, target, label = mark[1], mark[2], mark[3]
        if kind == "@":
            return f"@{label or self._people.get(target, target)}"
        if kind == "#":
            return f"#{label}" if label else self._channels.get(target, ("", None))[1] or f"#{target}"
        if kind == "!":
            return label or f"@{target}"
        target = target.removeprefix("mailto:")
        return f"{label} ({target})" if label and label != target else target

    def _texts(self, value: dict[str, Any], is_bot: bool) -> Iterator[str]:
        text, attachments = value.get("text") or "", value.get("attachments") or ()
        if not text.strip() and not attachments:
            text = _block_text(value.get("blocks") or [])
        # Else an attachment is the preview of a link.
        shown = [part for part in attachments if is_bot or part.get("is_share") or not text.strip()]
        for plain in (text, *map(_attachment_text, shown)):
            yield html.unescape(re.sub(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>", self._visible, plain))
        for file in value.get("files") or ():
            name = file.get("title") or file.get("name")
            yield f"[file: {name}]" if name else "[file]"


def _attachment_text(attachment: dict[str, Any]) -> str:
    """Return what a reader sees of an attachment: of a bot's message, or of a message that somebody shares."""
    fields = [f"{field.get('title') or ''}: {field.get('value') or ''}" for field in attachment.get("fields") or ()]
    texts = [attachment.get("pretext"), attachment.get("title"), attachment.get("text"), *fields]
    texts = texts if any(texts) else [_block_text(attachment.get("blocks") or []) or attachment.get("fallback")]
    return "\n".join(filter(None, (attachment.get("author_name"), *texts)))


def _block_text(block: Any) -> str:
    """Return the text of Slack's blocks: one under the other, what stands in a line together."""
    if isinstance(block, list):
        return "\n".join(filter(None, map(_block_text, block)))
    if not isinstance(block, dict):
        return block if isinstance(block, str) else ""
    inner = block.get("elements")
    if block.get("type") == "rich_text_section" and isinstance(inner, list):
        return "".join(map(_block_text, inner))
    if block.get("user_id"):
        return f"<@{block['user_id']}>"
    text = _block_text(block.get("text")) or str(block.get("url") or "")
    return "\n".join(filter(None, (text, _block_text(block.get("fields")), _block_text(inner))))
