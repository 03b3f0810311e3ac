"""Options that several commands share, and parsers of option values."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from memstore.ids import MIN_PREFIX_LENGTH, is_id_prefix

SECTION_EXAMPLE = """give one like calendar="Friday: Porto.", or '{"name": "facts", "maximum": 0.1}'"""


def choice_option(choices: Sequence[str], *flags: str, help: str) -> Any:
    """Return an option of one of these words, for lists of them: typer's own, Literal, is none for lists."""

    def parse(value: str) -> str:
        if value not in choices:
            raise typer.BadParameter(f"{value!r} is none of {', '.join(choices)}.")
        return value

    return typer.Option(*flags, parser=parse, metavar=f"[{'|'.join(choices)}]", help=help)


def name_option(help: str, *flags: str) -> Any:
    """Return an option that takes the name of somebody or something."""
    return typer.Option(*flags, parser=parse_name, metavar="NAME", help=help)


def time_option(help: str, *flags: str) -> Any:
    """Return an option that takes a moment."""
    return typer.Option(*flags, parser=parse_time, metavar="TIME", help=help)


def parse_name(value: str) -> str:
    """Parse the name of a user or of a conversation."""
    if not value.strip():
        raise typer.BadParameter("a name is not empty.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise typer.BadParameter("the name is not UTF-8.") from None
    return value


def parse_section(value: str) -> Any:
    """Parse a section: NAME=TEXT, or a JSON object as `update(sections=…)` takes it."""
    if not value.lstrip().startswith("{"):
        name, sign, text = value.partition("=")
        if sign:
            return {"name": name.strip(), "text": text}
        raise typer.BadParameter(f"{value!r} is no section; {SECTION_EXAMPLE}.")
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{value!r} is no JSON ({error}); {SECTION_EXAMPLE}.") from None


def parse_tools(value: str) -> Any:
    """Read definitions of tools from a file: a list of JSON objects."""
    try:
        tools = json.loads(Path(value).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{value!r} holds no definitions of tools: {error}.") from None
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise typer.BadParameter(f"{value!r} holds no definitions of tools: give a list of JSON objects.")
    return tools


def parse_time(value: str) -> datetime:
    """Parse ISO 8601; a date alone means its beginning, and a time without a zone is local time."""
    try:
        return datetime.fromisoformat(value).astimezone()
    except (ValueError, OverflowError):
        example = "2024-05-01, 2024-05-01T09:30 or 2024-05-01T09:30:00+02:00"
        raise typer.BadParameter(f"{value!r} is no time; give one like {example}.") from None


def parse_id(value: str) -> UUID:
    """Parse a whole id."""
    try:
        return UUID(value)
    except ValueError:
        raise typer.BadParameter(f"{value!r} is no id, whole as --json has it.") from None


def id_prefix(where: str) -> Callable[[str], str]:
    """Return a parser of an id or its first digits; `where` is the command that shows them."""

    def read(value: str) -> str:
        if not is_id_prefix(value):
            why = f"nor how one begins: {MIN_PREFIX_LENGTH} hexadecimal digits or more"
            raise typer.BadParameter(f"{value!r} is no id, {why}. {where} shows them.")
        return value

    read.__name__ = "id"
    return read


JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document to stdout.")]
DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--database",
        "-d",
        metavar="URL",
        help="embedded, embedded:FOLDER or postgresql://…; else MEMSTORE_DATABASE_URL, else embedded.",
    ),
]
UserOption = Annotated[str, name_option("Whose memory.", "--user", "-u")]
OnlyUserOption = Annotated[str | None, name_option("Of this user only.", "--user", "-u")]
ConversationOption = Annotated[str, name_option("The conversation.", "--conversation", "-c")]
ViewerOption = Annotated[str | None, name_option("Show what this one sees; else the settings' context_viewer.")]
AsOfOption = Annotated[datetime | None, time_option("What was known then, in ISO 8601.", "--as-of")]
LimitOption = Annotated[int, typer.Option("--limit", "-n", min=1, metavar="N", help="At most so many.")]
