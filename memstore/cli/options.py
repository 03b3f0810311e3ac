"""Options that several commands share, and parsers of option values."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from memstore.ids import SHORTEST, is_beginning

KINDS = ("episodic", "semantic", "procedural")
FORMATS = ("openai", "ollama", "anthropic", "text")
STRATEGIES = (
    "none", "goal_batch", "hierarchical", "semantic", "sliding_window", "summary_buffer", "threshold", "tool_calls",
)  # fmt: skip
SECTION_EXAMPLE = """give one like calendar="Friday: Porto.", or '{"name": "facts", "maximum": 0.1}'"""


def choice(*choices: str) -> Callable[[str], str]:
    """Return a parser of one of these words. Typer's own choices are enums, and importing memstore's models is slow."""

    def read(value: str) -> str:
        if value not in choices:
            raise typer.BadParameter(f"{value!r} is none of {', '.join(choices)}.")
        return value

    read.__name__ = "|".join(choices)
    return read


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
    """Parse a section: NAME=TEXT, or a JSON object as `describe(sections=…)` takes it."""
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
        found = json.loads(Path(value).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{value!r} holds no definitions of tools: {error}.") from None
    if not isinstance(found, list) or not all(isinstance(tool, dict) for tool in found):
        raise typer.BadParameter(f"{value!r} holds no definitions of tools: give a list of JSON objects.")
    return found


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
        if not is_beginning(value):
            why = f"nor how one begins: {SHORTEST} hexadecimal digits or more"
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
UserOption = Annotated[str, typer.Option("--user", "-u", parser=parse_name, metavar="NAME", help="Whose memory.")]
ViewerOption = Annotated[
    str | None,
    typer.Option(parser=parse_name, metavar="NAME", help="Show what this one sees; else the settings' context_viewer."),
]
OnlyUserOption = Annotated[
    str | None, typer.Option("--user", "-u", parser=parse_name, metavar="NAME", help="Of this user only.")
]
AsOfOption = Annotated[
    datetime | None,
    typer.Option("--as-of", parser=parse_time, metavar="TIME", help="What was known then, in ISO 8601."),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Count as this model does: gpt-4o, ollama:llama3.2, tokenizer:FOLDER…; else the settings."
    ),
]
ToolsOption = Annotated[
    Any,
    typer.Option(parser=parse_tools, metavar="FILE", help="Definitions of tools, a list of JSON: counted too."),
]

# Of `context` and of `chat`, whose budget is that of a prompt and its answer.

ConversationOption = Annotated[
    str, typer.Option("--conversation", "-c", parser=parse_name, metavar="NAME", help="The conversation that goes on.")
]


def _budget(of: str, otherwise: str) -> Any:
    said = f"The most tokens {of}; else the settings' {otherwise}."
    return typer.Option("--budget", "-b", min=1, metavar="N", help=said)


BudgetOption = Annotated[int | None, _budget("that it may have", "context_budget")]
WindowOption = Annotated[int | None, _budget("of prompt and answer", "ollama_num_ctx")]
ReserveOption = Annotated[
    int | None,
    typer.Option(min=0, metavar="N", help="Tokens of the budget to keep free; else the settings' context_reserve."),
]
AnswerOption = Annotated[
    int | None,
    typer.Option("--reserve", min=1, metavar="N", help="The most tokens of an answer; else a quarter of the window."),
]

# Of `context`

StrategyOption = Annotated[
    list[str] | None,
    typer.Option(
        parser=choice(*STRATEGIES),
        metavar="NAME",
        help="Compress the conversation by it: none, tool_calls, summary_buffer… May be repeated; in this order.",
    ),
]
SectionOption = Annotated[
    list[Any] | None,
    typer.Option(
        parser=parse_section,
        metavar="NAME=TEXT|JSON",
        help="A section of your own, or limits of one; may be repeated. It takes the place of the conversation's.",
    ),
]
FormatOption = Annotated[
    str,
    typer.Option(
        parser=choice(*FORMATS),
        metavar="NAME",
        help=f"How it is written: {', '.join(FORMATS)}.",
    ),
]
