"""Checks of what callers give, before anything is read or written: each error says what to give instead."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time
from enum import StrEnum
from numbers import Real
from string import hexdigits
from types import NoneType
from typing import Annotated, Any, get_args
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
    TypeAdapter,
    ValidationError,
    model_validator,
)

from memstore import ids
from memstore.errors import InvalidInput
from memstore.models import FACT_TYPES, Context, Fact, FactChange, Json, Message, Receipt, Role, Scope
from memstore.text import INVALID_CHARS, MAX_JSON_DEPTH, TEXT_PARTS, is_deep

MAX_LIMIT = 1_000_000
MAX_OFFSET = 2**31 - 1


def _check_content(value: object) -> object:
    is_parts = isinstance(value, list) and all(isinstance(part, dict) for part in value)
    if value is not None and not isinstance(value, str) and not is_parts:
        raise ValueError(f'{value!r:.60} is neither a text nor a list of parts such as {{"type": "text", "text": "…"}}')
    return value


def _to_utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("it is outside of the years 1 to 9999 in UTC") from None


def _refuse_number(value: object) -> object:
    if isinstance(value, int | float) or (isinstance(value, str) and re.fullmatch(r"\s*[-+]?[\d.]+\s*", value)):
        raise ValueError("a number of seconds or of milliseconds? give a datetime, or ISO 8601 with its zone")
    return value


def _check_call(call: Json) -> Json:
    if not isinstance(call.get("id", ""), str | None):
        raise ValueError("the id of a tool call is a text")
    return call


# A speaker stands before each of their chunks, and tags are stored with it.
Name = Annotated[str, Strict(), Field(min_length=1, max_length=200)]
UtcTime = Annotated[AwareDatetime, AfterValidator(_to_utc)]


def drop_nulls(model: type[BaseModel], data: object) -> object:
    """Return an object without the fields that are null and optional: their defaults hold, as if they were left out."""
    if not isinstance(data, Mapping):
        return data
    optional = {
        name
        for name, field in model.model_fields.items()
        if not field.is_required() and NoneType not in get_args(field.annotation)
    }
    return {name: value for name, value in data.items() if value is not None or name not in optional}


class NewMessage(BaseModel):
    """A message of an application: the keys of memstore-jsonl."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    role: Role
    content: Annotated[StrictStr | list[Json] | None, BeforeValidator(_check_content)] = None
    name: Name | None = None
    occurred_at: Annotated[UtcTime, BeforeValidator(_refuse_number)] = Field(default_factory=lambda: datetime.now(UTC))
    external_id: Annotated[str, Strict(), Field(min_length=1)] | None = None
    tool_calls: list[Annotated[Json, AfterValidator(_check_call)]] | None = None
    tool_call_id: StrictStr | None = None
    tags: list[Name] = Field(default_factory=list, max_length=100)
    metadata: Json = Field(default_factory=dict)

    @model_validator(mode="after")
    def _says_something(self) -> NewMessage:
        if self.content is None and not self.tool_calls:
            raise ValueError("it has neither content nor tool_calls; give one of them")
        return self

    @property
    def text(self) -> str | None:
        if self.content is None or isinstance(self.content, str):
            return self.content
        return text_of(self.content)


def text_of(parts: Sequence[Json]) -> str:
    return "\n".join(str(part.get("text") or "") for part in parts if str(part.get("type")) in TEXT_PARTS)


def drop_empty_keys(data: object) -> object:
    """Return a message without keys that say nothing: libraries give every key of their format, most of them empty."""
    if isinstance(data, Mapping):
        known = NewMessage.model_fields
        data = {key: value for key, value in data.items() if key in known or value not in (None, [], {}, "")}
    return drop_nulls(NewMessage, data)


# Made once: `dumps` makes one for each value.
_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def validate_message(data: Mapping[str, Any] | Message | NewMessage, *, max_bytes: int) -> NewMessage:
    if not isinstance(data, Mapping | Message | NewMessage):
        raise InvalidInput(f"it is a {type(data).__name__}; give a dict with role and content, or a Message.")
    try:
        message = data if isinstance(data, NewMessage) else NewMessage.model_validate(drop_empty_keys(_keys(data)))
    except ValidationError as error:
        hint = "memstore does not know this key; put what is yours under metadata"
        raise InvalidInput(f"{'; '.join(describe_errors(error, hint))}.") from None
    size = 0
    for name in NewMessage.model_fields:
        value = None if name in ("role", "occurred_at") else getattr(message, name)
        if isinstance(value, str):
            check_text(value, name)
            size += len(value.encode())
        elif value:
            size += check_json(value, name)
    if size > max_bytes:
        raise InvalidInput(
            f"it holds {size:,} bytes and a message may have {max_bytes:,}. "
            "Split it, store a reference instead, or raise max_message_bytes (MEMSTORE_MAX_MESSAGE_BYTES)."
        )
    return message


def check_name(name: object, kind: str) -> None:
    check_text(name, f"the name of a {kind}")
    if not str(name).strip():
        raise InvalidInput(f"{name!r} is no name for a {kind}; give a text that is not blank.")


def check_text(text: object, what: str) -> None:
    """Raise `InvalidInput` for anything but a text, and for characters that Postgres or UTF-8 cannot hold."""
    if not isinstance(text, str):
        raise InvalidInput(f"{what} is a text, not {text!r:.60}.")
    if (not text.isascii() or "\0" in text) and (match := INVALID_CHARS.search(text)):
        kind = "a NUL character" if match[0] == "\0" else f"half a surrogate pair (U+{ord(match[0]):04X})"
        raise InvalidInput(f"{what} holds {kind} at position {match.start()}, which Postgres cannot store; remove it.")


def check_json(value: object, what: str) -> int:
    """Return the bytes of JSON; raise `InvalidInput` for anything else, or characters that Postgres cannot store."""
    if is_deep(value):
        raise InvalidInput(f"{what} is nested deeper than {MAX_JSON_DEPTH} levels; make it flatter.")
    try:
        written = _JSON.encode(value)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{what} must be JSON: {error}.") from None
    if INVALID_CHARS.search(written) or "\\u0000" in written.replace("\\\\", ""):
        raise InvalidInput(f"{what} holds a NUL or half a surrogate pair, which Postgres cannot store; remove it.")
    return len(written.encode())


def _keys(data: Mapping[str, Any] | Message) -> Mapping[str, Any]:
    if not isinstance(data, Message):
        return {key: value for key, value in data.items() if key not in ("user", "conversation")}
    keys = ("role", "content", "name", "occurred_at", "external_id", "tool_calls", "tool_call_id", "tags")
    return {key: getattr(data, key) for key in keys} | {"metadata": data.meta}


def describe_errors(error: ValidationError, unknown_key: str = "memstore does not know this key") -> Iterator[str]:
    """Yield each reason behind its place."""
    for detail in error.errors(include_url=False, include_input=False):
        place = ".".join(str(part) for part in detail["loc"] if not str(part).startswith(("list[", "strict", "[key")))
        reason = detail["msg"].removeprefix("Value error, ")
        if detail["type"] == "extra_forbidden":
            reason = unknown_key
        elif detail["type"] in ("timezone_aware", "datetime_from_date_parsing", "datetime_parsing"):
            reason = f"{reason}; give a time with its zone, such as 2026-01-31T18:00:00+01:00"
        yield f"{place}: {reason}" if place else reason


def check_choice(name: str, value: str | None, choices: Sequence[str], *, optional: bool = True) -> None:
    if value not in choices and not (optional and value is None):
        raise InvalidInput(f"{name}={value!r}: give one of {', '.join(choices)}.")


def check_names(**names: str | None) -> None:
    for kind, name in names.items():
        if name is not None:
            check_name(name, kind)


def check_query(query: str, min_score: object) -> None:
    check_text(query, "the query")
    if not query.strip():
        raise InvalidInput(f"query={query!r:.60} is empty; give a question, or some words of a message.")
    if min_score is not None and (not isinstance(min_score, Real) or math.isnan(min_score)):
        raise InvalidInput(f"min_score={min_score!r:.60}: give a number, or None for any score.")


def check_number(value: int, name: str, least: int = 1, most: int = MAX_LIMIT) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(f"{name}={value!r:.60}: give a whole number from {least} to {most:,}.")


def check_object(value: Json | None, name: str) -> None:
    if value is not None and not isinstance(value, dict):
        raise InvalidInput(f"{name}={value!r:.60}: give a dict.")
    check_json(value, name)


def to_list(values: Sequence[str] | None, name: str, choices: type[StrEnum] | None = None) -> list[str] | None:
    if values is None:
        return None
    if not isinstance(values, list | tuple | set | frozenset):
        raise InvalidInput(f"{name}={values!r}: give a list.")
    for value in values:
        check_text(value, f"one of {name}")
    if choices is not None and set(values) - set(choices):
        raise InvalidInput(f"{name}={values!r}: give some of {', '.join(choices)}.")
    return [str(value) for value in values]


# Of a scope and what has none, of exactly these (None: what has none), or of everything.
Scopes = str | Sequence[str | None] | None


def to_scope(scope: Scopes) -> Scope | None:
    """Return where something is asked; None for everywhere."""
    if scope is None:
        return None
    if isinstance(scope, str):
        check_name(scope, "scope")
        return Scope((scope,), unscoped=True)
    if not isinstance(scope, list | tuple) or not scope:
        raise InvalidInput(f'scope={scope!r:.60}: give a scope, such as "otter", or a list of scopes.')
    names = [name for name in scope if name is not None]
    for name in names:
        check_name(name, "scope")
    return Scope(tuple(names), unscoped=None in scope)


def to_spaces(spaces: Sequence[str]) -> dict[str, UUID]:
    """Return the ids of spaces by their names."""
    if isinstance(spaces, str) or not isinstance(spaces, Sequence):
        raise InvalidInput(f'spaces={spaces!r:.60}: give a list of names, such as ["otter"].')
    for name in spaces:
        check_name(name, "space")
    return {name: ids.user_id(ids.SPACE_PREFIX + name) for name in spaces}


# With its time zone, a day, or ISO 8601.
When = datetime | date | str


def to_utc(moment: When | None, name: str) -> datetime | None:
    """Return the moment in UTC; it must have a time zone, but for a day, which begins in UTC. None stays None."""
    if moment is None:
        return None
    if isinstance(moment, str):
        with suppress(ValueError):
            moment = datetime.fromisoformat(moment) if ":" in moment else date.fromisoformat(moment)
    if isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime.combine(moment, time.min, UTC)
    if not isinstance(moment, datetime):
        raise InvalidInput(
            f"{name}={moment!r:.60} is no time; give a datetime with its time zone, a date, or ISO 8601 text."
        )
    if moment.tzinfo is None:
        raise InvalidInput(f"{name}={moment} has no time zone; give one, such as {moment}+00:00.")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(f"{name}={moment} is outside of the years 1 to 9999 in UTC.") from None


def to_uuid(item: Fact | FactChange | Message | Context | Receipt | UUID | str) -> UUID:
    item = item.receipt if isinstance(item, Context) else item
    value = item.id if isinstance(item, Fact | FactChange | Message | Receipt) else item
    if value is None:
        raise InvalidInput(
            "This receipt was not kept: no message yet, or receipt_retention_days is 0."
            if isinstance(item, Receipt)
            else "What was only added or said again cannot be undone; retract the fact instead."
        )
    try:
        return value if isinstance(value, UUID) else UUID(value)
    except (ValueError, TypeError, AttributeError):
        raise InvalidInput(f"{value!r:.60} is no id; give a UUID, as memstore gave it.") from None


def to_page_position(before: tuple[When, UUID | str] | None) -> tuple[datetime, UUID] | None:
    """Return the time and the id of the item after which a page begins; None stays None."""
    if before is None:
        return None
    is_pair = isinstance(before, tuple | list) and len(before) == 2
    moment = to_utc(before[0], "before") if is_pair else None
    if moment is None:
        raise InvalidInput(f"before={before!r:.60}: give the time and the id of the last one of the page before.")
    return moment, to_uuid(before[1])


def to_uuids(items: Sequence[Fact | Message | UUID], name: str) -> list[UUID]:
    if not isinstance(items, list | tuple | set | frozenset):
        raise InvalidInput(f"{name}={items!r}: give a list.")
    return [to_uuid(item) for item in items]


def parse_id_prefix(prefix: str) -> tuple[UUID, UUID]:
    """Return the least and the greatest id that begin with these hexadecimal digits; dashes do not count."""
    digits = prefix.replace("-", "") if isinstance(prefix, str) else ""
    if not 4 <= len(digits) <= 32 or not set(digits) <= set(hexdigits):
        raise InvalidInput(f"{prefix!r:.60} is not how an id begins; give 4 hexadecimal digits or more.")
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))


RETENTION_SETTING = "message_retention_days"


def validate_days(value: object) -> float | None:
    """Return for how many days messages are kept, 0 for ever; raise `InvalidInput` for anything else."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100_000:
        raise InvalidInput(
            f"{RETENTION_SETTING}={value!r:.60}: give a number of days, 0 for ever, or None for no rule of its own."
        )
    return float(value)


def _check_line(text: str) -> str:
    if not text.strip() or len(text.splitlines()) > 1:
        raise ValueError("it is one line that is not blank")
    return text


def _check_type_name(name: str) -> str:
    if re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name) is None:
        raise ValueError("it cannot name a type: give at most 40 small letters, digits and _")
    return name


def _check_own_type(name: str) -> str:
    if name in FACT_TYPES:
        raise ValueError(f"give none of memstore's types ({', '.join(FACT_TYPES)}) to one of your own")
    return name


FactTypeName = Annotated[str, AfterValidator(_check_type_name)]


class OwnFactType(BaseModel):
    """A fact type of one's own: its description for a chat model, and the words by which a note has it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    description: Annotated[str, Strict(), Field(min_length=1, max_length=200), AfterValidator(_check_line)]
    words: list[Annotated[str, Strict(), Field(min_length=1, max_length=40), AfterValidator(_check_line)]] = Field(
        default_factory=list, max_length=20
    )

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, value: object) -> object:
        return {"description": value} if isinstance(value, str) else value


_OWN_TYPES = TypeAdapter(
    Annotated[dict[Annotated[FactTypeName, AfterValidator(_check_own_type)], OwnFactType], Field(max_length=20)]
)


def validate_fact_types(value: object) -> Json | None:
    if value is None:
        return None
    check_json(value, "fact_types")
    try:
        types = _OWN_TYPES.validate_python(value)
    except ValidationError as error:
        raise InvalidInput(f"fact_types: {'; '.join(describe_errors(error))}.") from None
    return {name: fact_type.model_dump(exclude_defaults=True) for name, fact_type in types.items()}


def validate_fact_instructions(value: object) -> str | None:
    if value is None:
        return None
    check_text(value, "fact_instructions")
    if len(text := str(value).strip()) > 2000:
        raise InvalidInput(
            f"fact_instructions have {len(text):,} characters, and may have 2,000: a model reads them with every "
            "segment. Make them shorter."
        )
    return text


def validate_review(value: object) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise InvalidInput(f"review_facts={value!r:.60}: give True or False, or None for the store's setting.")
    return value


# Settings that a user and a conversation may have of their own; those of contexts are in `memstore.context.request`.
OWN_SETTINGS: Mapping[str, Callable[[object], Any]] = {
    RETENTION_SETTING: validate_days,
    "fact_instructions": validate_fact_instructions,
    "fact_types": validate_fact_types,
    "review_facts": validate_review,
}
