"""How many tokens a chat or a text has, and whether it fits: `count`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstore.cli.exits import TOO_LARGE
from memstore.cli.options import JsonFlag, ModelOption, ToolsOption
from memstore.cli.show import complain, print_json, say
from memstore.errors import InvalidInput

if TYPE_CHECKING:
    from memstore.models import Json
    from memstore.providers import Count, TokenCounter


def count(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Messages as JSON, or a text; - is stdin.")],
    model: ModelOption = None,
    maximum: Annotated[
        int | None, typer.Option("--max", min=0, metavar="N", help="Exit with 4 where there are more tokens.")
    ] = None,
    tools: ToolsOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Count the tokens of a chat or of a text, with no store.

    A JSON list of messages is counted as the finished chat, and so is an object with "messages", such as memstore
    context --json gives; anything else is a text, counted alone.

    JSON: {"tokens": integer, "count": exact, server, modelled or bound, "counter": name, "fits": true or false}, the
    last with --max.
    """
    counter = _counter(model)
    tokens = _counted(_read(file), counter, tools or ())
    fits = maximum is None or tokens <= maximum
    if as_json:
        found = {"tokens": int(tokens), "count": tokens.kind, "counter": counter.name}
        print_json(found | ({} if maximum is None else {"fits": fits}))
    else:
        say(f"{tokens:,} tokens ({counter.name}, {tokens.kind})")
    if not fits:
        complain(f"{tokens - (maximum or 0):,} tokens more than {maximum:,}")
        raise typer.Exit(TOO_LARGE)


def _counter(model: str | None) -> TokenCounter:
    from memstore.providers import load_counter
    from memstore.providers.naming import counter_for
    from memstore.settings import load

    settings = load({})
    return load_counter(settings.counter if model is None else counter_for(model), settings)


def _read(file: str) -> str:
    try:
        return (sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()).decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not UTF-8: {error}") from None
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}") from None


def _counted(given: str, counter: TokenCounter, tools: list[Json] | tuple[()]) -> Count:
    from memstore.assemble.render import Rendered, counted

    try:
        found = json.loads(given)
    except (ValueError, RecursionError):
        found = None
    if _are_messages(found):
        return counter.count_messages(found, tools)
    if isinstance(found, dict) and _are_messages(found.get("messages")):
        return counted(Rendered(found["messages"], found.get("system"), found.get("text")), counter, tools)
    return counted(Rendered(text=given), counter, tools)


def _are_messages(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(one, dict) and "role" in one for one in found)
