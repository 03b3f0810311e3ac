"""The JSON export of Telegram Desktop: a `result.json` of the whole account or of one chat, its folder, or a zip of it.

    {"personal_information": {"user_id": 7, …}, "chats": {"list": [CHAT, …]}, "left_chats": …}        or        CHAT

    CHAT = {"name": "Bob", "type": "personal_chat", "id": 8, "messages": [{"id": 1, "from_id": "user7", …}, …]}

All is one JSON object, which may have gigabytes, so its messages are read one by one. An account names its owner. One
chat does not: it is read twice, first for the people in it, and `me` is the name or the id of one. Who forwards a
message has not said it: it has the name of its author.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from memstore.errors import InvalidInput

from .base import IgnoredContent, Importer, ImportItem, Message, OptionMissing, Record, make_storable, time_or_none
from .files import (
    READ_ERRORS,
    ImportProblem,
    JsonPath,
    OpenFile,
    is_single,
    nested_values,
    open_files,
    printable,
    read_files,
    read_start,
)

_OF_TWO = ("personal_chat", "bot_chat", "saved_messages")
_GROUPS = ("private_supergroup", "public_supergroup", "private_channel", "public_channel")
_TYPES = (*_OF_TWO, *_GROUPS, "private_group", "replies", "verification_codes")
_LISTS = (("chats", "list"), ("left_chats", "list"))
# Kinds of messages that are no part of what was said, and what a report calls them.
_IGNORED = {"service": "notices of Telegram", "unsupported": "messages that Telegram does not export"}


@dataclass(slots=True)
class _Chat:
    """A chat while it is read: its fields before the messages, and the time of the message before."""

    fields: dict[Any, Any] = field(default_factory=dict)
    before: datetime | None = None
    is_begun: bool = False

    @property
    def name(self) -> str:
        """The name of the conversation: with the kind of chat, for people and groups have ids of their own."""
        kind, id = self.fields.get("type"), self.fields.get("id")
        if not isinstance(id, int | str) or isinstance(id, bool):
            raise InvalidInput("its id is not given before its messages")
        peer = "channel" if kind in _GROUPS else "chat" if kind == "private_group" else "user"
        return f"telegram {peer}{_clean(id)}"

    @property
    def title(self) -> str | None:
        unnamed = {"saved_messages": "Saved Messages", "replies": "Replies"}
        title = self.fields.get("name") or unnamed.get(str(self.fields.get("type")))
        return (_clean(title).strip() or None) if title else None


class Telegram(Importer):
    name = "telegram"
    option_names = ("me", "timezone")
    files = ("result.json",)
    unit = "message"
    advice = "export it from Telegram Desktop again, in the format JSON"

    @classmethod
    def sniff(cls, path: Path) -> bool:
        return any(map(_is_export, open_files(path, cls.files)))

    def read(self) -> Iterator[ImportItem]:
        self._is_begun = False
        # By the file's name. All are found before any message is stored: one may need an option.
        self._owners = {file.name: self._find_owner(file) for file in open_files(self.path, self.files)}
        yield from read_files(self.path, self.files, self.read_file, self.advice)

    def read_file(self, file: OpenFile) -> Iterator[ImportItem]:
        if not is_single(self.path) and not _is_export(file):
            yield ImportProblem(file.where, f"it is not of the format {self.name}, and was skipped")
            return
        owner = self._owners.get(file.name)
        if owner is None and self.options.me is not None:
            yield IgnoredContent(f"chats without a message of {printable(self.options.me)}")
        place: JsonPath = ()
        chat = _Chat()
        for entry in nested_values(file, _is_opened, self.advice):
            if isinstance(entry, ImportProblem):
                yield entry
                continue
            at, inner = _chat_and_rest(entry[0])
            if at != place:
                place, chat = at, _Chat()
            if inner[:1] == ("messages",):
                yield from self._read_message(inner, entry[1], chat, owner, file.where)
            elif len(inner) == 1 and inner[0] in ("name", "type", "id"):
                chat.fields[inner[0]] = entry[1]
            elif not inner:
                yield ImportProblem(file.where, f"a chat in it is none; {self.advice}")

    def _read_message(
        self, inner: JsonPath, value: Any, chat: _Chat, owner: str | None, where: str
    ) -> Iterator[ImportItem]:
        """Yield a message, or what is wrong with it; report once a chat that cannot be named."""
        try:
            name = chat.name
        except InvalidInput as error:
            if not chat.is_begun:
                yield ImportProblem(f"{where}, chat '{printable(chat.title or '')}'", f"{error}; {self.advice}")
            chat.is_begun = True
            return
        about = f"chat '{printable(chat.title or '')}' ({printable(name)})"
        if len(inner) == 1:
            yield ImportProblem(f"{where}, {about}", f"its messages are no list; {self.advice}")
            return
        id = value.get("id") if isinstance(value, dict) else None
        at = f"{where}, {about}, message {printable(str(inner[1] if id is None else id))}"
        for item in self.report_damage(self._convert_message(value, chat, owner, at), at):
            self._is_begun = self._is_begun or isinstance(item, Record)
            yield item

    def _convert_message(
        self, value: dict[str, Any], chat: _Chat, owner: str | None, where: str
    ) -> Iterator[ImportItem]:
        kind = value["type"]
        if kind in _IGNORED:
            yield IgnoredContent(_IGNORED[kind])
            return
        if kind != "message":
            raise InvalidInput(f"its type ({printable(str(kind))}) is not known; report it, if it should be")
        time = self._time(value)
        messages = _messages(value, owner, is_bots=chat.fields.get("type") == "bot_chat")
        about = {"title": chat.title, "channel": self.name}
        yield from self.records(messages, where, chat.name, time, chat.before, **about)
        chat.before = time or chat.before

    def _time(self, value: dict[str, Any]) -> datetime | None:
        with suppress(LookupError, TypeError, ValueError, OverflowError):
            if (time := time_or_none(int(value["date_unixtime"]))) is not None:
                return time
        try:
            shown = datetime.fromisoformat(value["date"])
        except (LookupError, TypeError, ValueError):
            return None
        zone = shown.tzinfo or self.options.timezone
        if zone is None and self._is_begun:
            raise InvalidInput("its time has no zone; give that of its computer, such as --timezone Europe/Berlin")
        if zone is None:
            raise OptionMissing(
                "this export has times without a zone; give that of its computer, such as --timezone Europe/Berlin"
            )
        with suppress(OverflowError):
            return shown.replace(tzinfo=zone).astimezone(UTC)
        return None

    def _find_owner(self, file: OpenFile) -> str | None:
        """Return the id of the person whose history a file is, or None for somebody who wrote nothing in it.

        Raises `OptionMissing` where `me` is needed, or is the name of nobody or of several.
        """
        if not is_single(self.path) and not _is_export(file):
            return None
        me = None if self.options.me is None else self.options.me.strip().removeprefix("@").casefold()
        people: dict[str, str] = {}
        # Types by the place of each chat.
        chats: dict[JsonPath, Any] = {}
        is_account = False
        with suppress(*READ_ERRORS):
            for entry in nested_values(file, _is_opened, self.advice):
                if isinstance(entry, ImportProblem):
                    continue
                path, value = entry
                if path == ("personal_information",) and _is_person(value):
                    owner, names = _owner_and_names(value)
                    if me is None or me in map(str.casefold, names):
                        return owner
                    is_account, people[owner] = True, names[0]
                place, inner = _chat_and_rest(path)
                if inner == ("type",):
                    chats[place] = value
                if inner[:1] == ("messages",) and isinstance(value, dict) and value.get("type") == "message":
                    people.setdefault(*_sender(value))
        found = [id for id, name in people.items() if me in (id.casefold(), id.removeprefix("user"), name.casefold())]
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(map(printable, found))
            raise OptionMissing(f"several in it are called {printable(str(self.options.me))}; --me takes one of: {ids}")
        if not is_account and all(id.startswith("channel") for id in people):
            # Nobody speaks in it.
            return None
        is_of_two = len(people) > 1 and not {*map(str, chats.values())}.isdisjoint(_OF_TWO)
        is_misspelt = me is not None and get_close_matches(me, map(str.casefold, people.values()), cutoff=0.7)
        if me is None or is_account or is_of_two or is_misspelt or len(chats) > 1:
            raise self.unknown_me(dict.fromkeys(people.values()))
        return None


def _is_export(file: OpenFile) -> bool:
    """Return whether an open file is of this format, and go back to its beginning."""
    fields: dict[Any, Any] = {}
    found = False
    with suppress(*READ_ERRORS):
        if read_start(file)[:1] == b"{":
            file.stream.seek(0)
            for entry in islice(nested_values(file, _is_opened, ""), 200):
                if isinstance(entry, ImportProblem):
                    break
                place, inner = _chat_and_rest(entry[0])
                fields = {} if place and inner[:1] == ("name",) else fields
                fields |= {inner[0]: entry[1]} if len(inner) == 1 else {}
                found = fields.get("type") in _TYPES and "id" in fields
                if found := found or (entry[0] == ("personal_information",) and _is_person(entry[1])):
                    break
        file.stream.seek(0)
    return found


def _is_opened(path: JsonPath) -> bool:
    """Return whether the values of an object or list are read one by one: those around messages are."""
    return path in (("chats",), ("left_chats",), *_LISTS) or _chat_and_rest(path)[1] in ((), ("messages",))


def _chat_and_rest(path: JsonPath) -> tuple[JsonPath, JsonPath]:
    """Return the place of a chat, which is () for a file of one, and the place in it."""
    return (path[:3], path[3:]) if path[:2] in _LISTS and len(path) > 2 else ((), path)


def _is_person(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("user_id"), int)


def _owner_and_names(person: dict[str, Any]) -> tuple[str, list[str]]:
    """Return the id of the account's owner, and all that he is called by, with the full name first."""
    id = f"user{person['user_id']}"
    full_name = " ".join(str(person[key]).strip() for key in ("first_name", "last_name") if person.get(key))
    username = str(person.get("username") or "").removeprefix("@")
    return id, [name for name in (full_name, username, id, id.removeprefix("user")) if name]


def _sender(message: dict[str, Any]) -> tuple[str, str]:
    """Return the id and the name of who sent a message: an account that was deleted has an id alone."""
    id, name = message.get("from_id"), message.get("from")
    name = _clean(name).strip() if isinstance(name, str) else ""
    # Exports of before 2021 have numbers.
    key = f"user{id}" if isinstance(id, int) else _clean(id) if isinstance(id, str) else ""
    return key or name or "?", name or key or "?"


def _messages(value: dict[str, Any], owner: str | None, *, is_bots: bool) -> Iterator[Message | IgnoredContent]:
    if not isinstance(id := value["id"], int) or isinstance(id, bool):
        raise InvalidInput(f"its id ({printable(str(id))}) is no number")
    said = _text(value.get("text") or value.get("text_entities"))
    text, metadata = make_storable("\n\n".join(part for part in (said, *_attached(value)) if part.strip()))
    if not text.strip():
        yield IgnoredContent("empty messages")
        return
    sender, name = _sender(value)
    for key, kept in (("reply_to_message_id", "reply_to"), ("author", "author"), ("via_bot", "via_bot")):
        if value.get(key):
            metadata[kept] = _clean(value[key])
    metadata |= {"edited": True} if value.get("edited") or value.get("edited_unixtime") else {}
    speaker: str | None = sender
    if is_forwarded := "forwarded_from" in value:
        author = value["forwarded_from"]
        # Older exports have no id of the author.
        speaker = value.get("forwarded_from_id") or (sender if author == value.get("from") else None)
        if speaker != sender:
            metadata["forwarded_by"] = name
            name = _clean(author or speaker or "?").strip() or "?"
    is_mine = owner is not None and speaker == owner
    role = "assistant" if is_bots and not is_mine and not is_forwarded else "user"
    message = {"role": role, "content": text, "external_id": str(id), "metadata": metadata}
    yield message if is_mine else message | {"name": name}


def _text(text: Any) -> str:
    """Return a text that is written as one, or as a list of texts and of objects with their kind and text."""
    if text is None or isinstance(text, str):
        return text or ""
    if not isinstance(text, list):
        raise InvalidInput(f"its text is neither a text nor a list but {printable(str(text))}")
    return "".join(part if isinstance(part, str) else _part_text(part) for part in text)


def _part_text(part: dict[str, Any]) -> str:
    text, link = part["text"], part.get("href")
    return f"{text} ({link})" if link and link != text else str(text)


def _attached(message: dict[str, Any]) -> Iterator[str]:
    """Yield what stands for what was sent besides text. Votes are left out: in the next export they are others."""
    if message.get("photo"):
        yield "[image]"
    kind = message.get("media_type")
    if kind == "audio_file":
        yield _named("audio", message.get("performer"), message.get("title") or _file_name(message))
    elif kind:
        emoji = f" {message['sticker_emoji']}" if message.get("sticker_emoji") else ""
        yield f"[{'video' if kind == 'video_file' else str(kind).replace('_', ' ')}{emoji}]"
    elif message.get("file"):
        yield _named("file", _file_name(message))
    if contact := message.get("contact_information"):
        name = " ".join(filter(None, (contact.get("first_name"), contact.get("last_name"))))
        yield _named("contact", name, contact.get("phone_number"))
    if "location_information" in message or message.get("place_name"):
        point = message.get("location_information") or {}
        place = (message.get("place_name"), message.get("address"), point.get("latitude"), point.get("longitude"))
        yield _named("location", *place)
    for asked in filter(None, (message.get("poll"), message.get("todo_list"))):
        entries = [f"- {_text(entry['text'])}" for entry in asked.get("answers") or ()]
        yield "\n".join((_text(asked.get("question") or asked.get("title")), *entries))
    if game := message.get("game_title"):
        yield _named("game", game)
    if invoice := message.get("invoice_information"):
        yield _named("invoice", invoice.get("title") if isinstance(invoice, dict) else None)
    known = ("contact_information", "location_information", "invoice_information")
    for key in message:
        if key.endswith("_information") and key not in known:
            yield f"[{key.removesuffix('_information').replace('_', ' ')}]"


def _named(kind: str, *names: object) -> str:
    named = ", ".join(str(name) for name in names if name not in (None, ""))
    return f"[{kind}: {named}]" if named else f"[{kind}]"


def _file_name(message: dict[str, Any]) -> str:
    """Return a file's name, or "" where a note in brackets says in its place why it was not exported."""
    path = str(message.get("file_name") or message.get("file") or "")
    return "" if path.startswith("(") else PurePosixPath(path.partition(" (File ")[0]).name


def _clean(value: object) -> str:
    return make_storable(str(value))[0]
