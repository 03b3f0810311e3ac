"""Options that several commands share, those that every command takes, and parsers of option values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import Annotated, Any, get_args

import typer
from typer.models import OptionInfo

Function = Callable[..., None]
DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--database",
        "-d",
        metavar="URL",
        help="embedded, embedded:FOLDER or postgresql://…; else MEMSTORE_DATABASE_URL, else embedded.",
    ),
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document to stdout.")]


@dataclass(slots=True)
class CommonOptions:
    """What --database and --json say, and the names of other options: a process runs one command at a time."""

    database: str | None = None
    as_json: bool = False
    names: Collection[str] = ()


common = CommonOptions()


def command(
    app: typer.Typer, name: str | None = None, *, takes_database: bool = True
) -> Callable[[Function], Function]:
    """Register a command, which takes --json, and --database where it uses a store: `common` has them."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    more = [inspect.Parameter("as_json", keyword, default=False, annotation=JsonFlag)]
    if takes_database:
        more.insert(0, inspect.Parameter("database", keyword, default=None, annotation=DatabaseOption))

    def register(function: Function) -> Function:
        @wraps(function)
        def run(as_json: bool, database: str | None = None, **arguments: Any) -> None:
            common.database, common.as_json, common.names = database, as_json, names
            function(**arguments)

        signature = inspect.signature(function, eval_str=True)
        names = {
            name
            for name, parameter in signature.parameters.items()
            if any(isinstance(each, OptionInfo) for each in get_args(parameter.annotation))
        }
        # typer reads both; mypy knows no signature of functions
        run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *more])  # type: ignore[attr-defined]
        run.__annotations__ = function.__annotations__ | {each.name: each.annotation for each in more}
        app.command(name)(run)
        return function

    return register


def with_options(error: str) -> str:
    """Return an error with the command's options as they are typed: "--budget 9" for Python's "budget=9"."""
    words = []
    for word in error.split(" "):
        name, _, value = word.partition("=")
        if value and name.lstrip("(") in common.names:
            option = name.lstrip("(").replace("_", "-")
            word = f"{'(' * name.startswith('(')}--{option} {value}"
        words.append(word)
    return " ".join(words)


def group(help: str) -> typer.Typer:
    return typer.Typer(help=help, no_args_is_help=True, rich_markup_mode=None)


def option(metavar: str, help: str, *flags: str, **limits: Any) -> Any:
    return typer.Option(*flags, metavar=metavar, help=help, **limits)


def flag(name: str, help: str, *short: str) -> Any:
    return typer.Option(name, *short, help=help)


def name_option(help: str, *flags: str) -> Any:
    return option("NAME", help, *flags)


def time_option(help: str, *flags: str) -> Any:
    return typer.Option(*flags, parser=parse_time, metavar="TIME", help=help)


def parse_time(value: str) -> datetime:
    """Parse ISO 8601; a date alone means its beginning, and a time without a zone is local time."""
    try:
        return datetime.fromisoformat(value).astimezone()
    except (ValueError, OverflowError):
        example = "2024-05-01, 2024-05-01T09:30 or 2024-05-01T09:30:00+02:00"
        raise typer.BadParameter(f"{value!r} is no time; give one like {example}.") from None


UserOption = Annotated[str, name_option("Whose memory.", "--user", "-u")]
OnlyUserOption = Annotated[str | None, name_option("Of this user only.", "--user", "-u")]
ConversationOption = Annotated[str, name_option("The conversation.", "--conversation", "-c")]
AsOfOption = Annotated[datetime | None, time_option("What was known then, in ISO 8601.", "--as-of")]
ViewerOption = Annotated[str | None, name_option("Only what this one may see; else MEMSTORE_CONTEXT_VIEWER.")]
ScopeOption = Annotated[
    str | None, name_option("Without what was said in another scope, such as another project.", "--scope")
]
SpacesOption = Annotated[
    list[str] | None, option("NAME", "What is shared in this space, too; may be repeated.", "--space")
]
LimitOption = Annotated[int, typer.Option("--limit", "-n", min=1, metavar="N", help="At most so many.")]


def id_argument(what: str) -> Any:
    """Return an argument that takes an id, or how it begins: `resolve_id` finds the whole one."""
    return typer.Argument(metavar="ID", help=f"The id of the {what}, or how it begins.")
