"""What may be stored: messages, names and values are checked before anything is written; ids of calls with a key."""

from __future__ import annotations

import json
from collections.abc import Container, Generator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    StrictStr,
    ValidationError,
    model_validator,
)

from memstore import ids
from memstore.errors import Conflict, InvalidInput
from memstore.models import Json, Message, Role
from memstore.text import INVALID_CHARS

# In metadata: where anything but TRUSTED stands there, no fact rests on the message alone; a slip of the pen is safe.
TRUST, TRUSTED, UNTRUSTED = "trust", "trusted", "untrusted"
LONGEST_NAME = 200  # characters; a speaker stands before every unit of what was said, and a tag beside it
MOST_TAGS = 100
ROLES = frozenset(Role)
LONGEST_KEY = 200  # characters of the idempotency key of a call
DEEPEST = 100  # levels of JSON: far above anything written on purpose, far below Python's own limit


def _check_role(value: object) -> object:
    if not isinstance(value, str) or value not in ROLES:
        raise ValueError(f"the role {value!r} is unknown; use one of {', '.join(Role)}")
    return value


def _check_content(value: object) -> object:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, dict) for part in value):
        return value
    if value is not None:
        raise ValueError(f'{value!r:.60} is neither a text nor a list of parts such as {{"type": "text", "text": "…"}}')
    return value


def _to_utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("it is outside of the years 1 to 9999 in UTC") from None


def _refuse_number(value: object) -> object:
    if isinstance(value, int | float):
        raise ValueError("a number of seconds or of milliseconds? give a datetime, or ISO 8601 with its zone")
    return value


def _check_call(call: Json) -> Json:
    if not isinstance(call.get("id", ""), str | None):
        raise ValueError("the id of a tool call is a text")
    return call


Name = Annotated[str, Strict(), Field(min_length=1, max_length=LONGEST_NAME)]
Moment = Annotated[AwareDatetime, BeforeValidator(_refuse_number), AfterValidator(_to_utc)]


class NewMessage(BaseModel):
    """A message as the application gives it: the keys of memstore-jsonl, the documented pivot."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    role: Annotated[Role, BeforeValidator(_check_role)]
    content: Annotated[StrictStr | list[Json] | None, BeforeValidator(_check_content)] = None
    name: Name | None = None
    occurred_at: Moment = Field(default_factory=lambda: datetime.now(UTC))
    external_id: Annotated[str, Strict(), Field(min_length=1)] | None = None
    tool_calls: list[Annotated[Json, AfterValidator(_check_call)]] | None = None
    tool_call_id: StrictStr | None = None
    tags: list[Name] = Field(default_factory=list, max_length=MOST_TAGS)
    metadata: Json = Field(default_factory=dict)

    @model_validator(mode="after")
    def _says_something(self) -> NewMessage:
        if self.content is None and not self.tool_calls:
            raise ValueError("it has neither content nor tool_calls; give one of them")
        return self

    @property
    def text(self) -> str | None:
        """The plain text of the content: its text parts, joined; None where there is no content."""
        if self.content is None or isinstance(self.content, str):
            return self.content
        kinds = [(str(part.get("type")), part.get("text")) for part in self.content]
        return "\n".join(str(text or "") for kind, text in kinds if kind in TEXT_PARTS)


# Made once: `dumps` makes one for each value.
_ASCII, _JSON = (json.JSONEncoder(ensure_ascii=ascii, allow_nan=False) for ascii in (True, False))
WANTED = {"string_type": "text", "list_type": "list", "dict_type": "object of JSON"}
TEXT_PARTS = {"text", "input_text", "output_text"}
TEXTUAL = [name for name in NewMessage.model_fields if name not in ("role", "occurred_at")]


def validate_message(given: Mapping[str, Any] | Message | NewMessage, *, max_bytes: int) -> NewMessage:
    """Return the message, or raise `InvalidInput` that says what is wrong with it."""
    if not isinstance(given, Mapping | Message | NewMessage):
        raise InvalidInput(f"it is a {type(given).__name__}; give a dict with role and content, or a Message.")
    try:
        message = given if isinstance(given, NewMessage) else NewMessage.model_validate(_keys(given))
    except ValidationError as error:
        raise InvalidInput(f"{'; '.join(_reasons(error))}.") from None
    for problem in _problems(message, max_bytes):
        raise InvalidInput(problem)
    return message


def check_name(name: object, kind: str) -> None:
    """Raise `InvalidInput` for a name that is blank or cannot be stored; `kind` says of what, such as "user"."""
    check_text(name, f"the name of a {kind}")
    if not str(name).strip():
        raise InvalidInput(f"{name!r} is no name for a {kind}; give a text that is not blank.")


def check_text(text: object, what: str) -> None:
    """Raise `InvalidInput` for what is no text, or holds what neither Postgres nor UTF-8 can."""
    if not isinstance(text, str):
        raise InvalidInput(f"{what} is a text, not {text!r:.60}.")
    if INVALID_CHARS.search(text):
        raise InvalidInput(f"{what} holds a NUL character or half a surrogate pair: {text!r:.60}. Remove it.")


def check_json(value: object, what: str) -> None:
    """Raise `InvalidInput` for what is not JSON, or holds what Postgres cannot."""
    for problem in _json_problems(value, what):
        raise InvalidInput(problem)


def _keys(given: Mapping[str, Any] | Message) -> Mapping[str, Any]:
    if not isinstance(given, Message):
        if "user" in given or "conversation" in given:
            return {key: value for key, value in given.items() if key not in ("user", "conversation")}
        return given
    pivot = ("role", "content", "name", "occurred_at", "external_id", "tool_calls", "tool_call_id", "tags")
    return {key: getattr(given, key) for key in pivot} | {"metadata": given.meta}


def _reasons(error: ValidationError) -> Iterator[str]:
    for detail in error.errors(include_url=False):
        place = ".".join(str(part) for part in detail["loc"] if not str(part).startswith(("list[", "strict")))
        reason = detail["msg"].removeprefix("Value error, ")
        if detail["type"] == "extra_forbidden":
            reason = "memstore does not know this key; put what is yours under metadata"
        elif detail["type"] in ("timezone_aware", "datetime_from_date_parsing", "datetime_parsing"):
            reason = f"{reason}; give a time with its zone, such as 2026-01-31T18:00:00+01:00"
        elif detail["type"] in WANTED:
            reason = f"{detail['input']!r:.60} is no {WANTED[detail['type']]}"
        elif detail["type"] == "string_too_short":
            reason = "it is empty; leave it out, or give a text"
        elif detail["type"] == "string_too_long":
            reason = f"it has {len(detail['input'])} characters and may have {LONGEST_NAME}"
        yield f"{place}: {reason}" if place else reason


def _problems(message: NewMessage, max_bytes: int) -> Iterator[str]:
    values = vars(message)
    texts = [place for place in TEXTUAL if isinstance(values[place], str)]
    said = "".join([values[place] for place in texts])  # looked through once: nearly always there is nothing
    if not said.isascii() or "\0" in said:
        for place in texts:
            yield from _text_problems(values[place], place)
    size = _bytes(said)
    for place in TEXTUAL:
        if (value := values[place]) and not isinstance(value, str):
            size += yield from _json_problems(value, place)
    if size > max_bytes:
        yield (
            f"it holds {size:,} bytes and a message may have {max_bytes:,}. "
            "Split it, store a reference instead, or raise max_message_bytes (MEMSTORE_MAX_MESSAGE_BYTES)."
        )


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _text_problems(text: str, place: str) -> Iterator[str]:
    if found := INVALID_CHARS.search(text):
        kind = "a NUL character" if found[0] == "\0" else f"half a surrogate pair (U+{ord(found[0]):04X})"
        yield f"{place} holds {kind} at position {found.start()}, which Postgres cannot store; remove it."


def _json_problems(value: object, place: str) -> Generator[str, None, int]:
    """Yield what is wrong; return the bytes that the value has as JSON."""
    try:
        written = _ASCII.encode(value)
    except (TypeError, ValueError, RecursionError):
        written = ""
    if written and "\\" not in written and written.count("{") + written.count("[") <= DEEPEST:
        return len(written)  # all of it is plain and shallow, as nearly always
    for problem in _deep_problems(value, place):
        yield problem
        return 0
    try:
        return _bytes(_JSON.encode(value))
    except (TypeError, ValueError) as error:
        yield f"{place} must be JSON: {error}."
    return 0


def _deep_problems(value: object, place: str) -> Iterator[str]:
    # No recursion: the value may be nested as deep as a parser goes, and that is deeper than Python's own stack.
    pending = [(value, 0)]
    while pending:
        item, depth = pending.pop()
        if depth > DEEPEST:
            yield f"{place} is nested deeper than {DEEPEST} levels; make it flatter."
            return
        if isinstance(item, str):
            yield from _text_problems(item, place)
        elif isinstance(item, Mapping):
            pending += [(inner, depth + 1) for pair in item.items() for inner in pair]
        elif isinstance(item, list | tuple):
            pending += [(inner, depth + 1) for inner in item]


def check_choice(name: str, value: str | None, known: Sequence[str]) -> None:
    """Raise `InvalidInput` for what is neither None nor one of the known words."""
    if value is not None and value not in known:
        raise InvalidInput(f"{name}={value!r}: give one of {', '.join(known)}.")


KEPT_FOR = "message_retention_days"  # the setting of a user or of a conversation
LONGEST_KEPT = 100_000.0


def validate_days(value: object) -> float | None:
    """Return for how many days messages are kept, 0 for ever; raise `InvalidInput` for what is no such number."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LONGEST_KEPT:
        raise InvalidInput(
            f"{KEPT_FOR}={value!r:.60}: give a number of days, 0 for ever, or None for no rule of its own."
        )
    return float(value)


def check_key(key: str) -> None:
    """Raise `InvalidInput` for what is no key of a call."""
    if not isinstance(key, str) or not 0 < len(key) <= LONGEST_KEY or not key.isprintable() or not key.isascii():
        raise InvalidInput(f"key: give 1 to {LONGEST_KEY} printable ASCII characters, such as a UUID.")


def assign_ids(rows: Sequence[Message], key: str) -> None:
    """Set external ids, which follow from the key of a call and from their place, where there are none."""
    check_key(key)
    for number, row in enumerate(rows, 1):
        if row.external_id is None:
            external_id = _keyed_id(key, number)
            vars(row).update(external_id=external_id, id=ids.message_id(row.conversation_id, external_id))


def sentinel_id(rows: Sequence[Message], key: str) -> UUID:
    """Return the id that one message more would have: a stored one tells that the list was longer."""
    return ids.message_id(rows[0].conversation_id, _keyed_id(key, len(rows) + 1))


def check_same_request(rows: Sequence[Message], key: str, known: Container[UUID]) -> None:
    """Raise `Conflict` for a list that is longer or shorter than the one that is stored under its key.

    One that lacks only messages at its end with an `external_id` of their own is not told from the whole.
    """
    own = [row.id for number, row in enumerate(rows, 1) if row.external_id == _keyed_id(key, number)]
    some_known, all_known = any(id in known for id in own), all(row.id in known for row in rows)
    if sentinel_id(rows, key) in known or (some_known and not all_known):
        raise Conflict(
            f"What is stored under the key {key!r} were more or fewer messages, or some of them are erased. Give a new "
            "key; nothing of this call was stored."
        )


def _keyed_id(key: str, number: int) -> str:
    return f"key:{key}:{number}"
