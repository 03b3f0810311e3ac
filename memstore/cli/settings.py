"""`settings list`, `get`, `set` and `unset`: what the system is set to, and what conversations are."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstore.cli.options import ConversationOption, DatabaseOption, JsonFlag, UserOption, parse_name
from memstore.cli.output import echo, echo_hint, print_json, print_table
from memstore.cli.session import hint_if_unknown, open_store

if TYPE_CHECKING:
    from memstore import MemoryStore
    from memstore.settings import Setting

app = typer.Typer(
    help="See settings, and change those of a conversation.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The name of the setting, such as context_budget.")]
OfUserOption = Annotated[
    str | None, typer.Option("--user", "-u", parser=parse_name, metavar="NAME", help="Whose conversation.")
]
OfConversationOption = Annotated[
    str | None,
    typer.Option(
        "--conversation", "-c", parser=parse_name, metavar="NAME", help="Of this conversation, not the system."
    ),
]
LISTS = ("strategies",)


@app.command("list")
def list_(
    user: OfUserOption = None,
    conversation: OfConversationOption = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List every setting with its value and where that comes from.

    On a pipe, a line a setting, its cells parted by tabs: parse_name, source, value.

    JSON: [{"name", "value", "source": "default", "conversation", a variable or a file}].
    """
    found = _list(user, conversation, database)
    if as_json:
        print_json(found)
    else:
        print_table(("name", "from", "value"), [(each.name, each.source, _text(each.value)) for each in found])


@app.command()
def get(
    setting: NameArgument,
    user: OfUserOption = None,
    conversation: OfConversationOption = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Print what a setting is set to, and on stderr where that comes from.

    JSON: {"name", "value", "source"}.
    """
    found = _find(setting, user, conversation, database)
    _print(found, as_json)
    if not as_json:
        echo_hint(f"from: {found.source}")


@app.command("set")
def set_(
    setting: NameArgument,
    value: Annotated[
        str, typer.Argument(metavar="VALUE", help="A number, a text, or a list with commas; strategies also as JSON.")
    ],
    user: UserOption,
    conversation: ConversationOption,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Set a setting of a conversation.

    JSON: {"name", "value", "source"}; what it is now.
    """
    with open_store(database) as store:
        _describe(store, user, conversation, setting, _parse_value(setting, value))
    _print(_find(setting, user, conversation, database), as_json)


@app.command()
def unset(
    setting: NameArgument,
    user: UserOption,
    conversation: ConversationOption,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Take a setting of a conversation away: the system's holds again.

    JSON: {"name", "value", "source"}; what it is now.
    """
    with open_store(database) as store:
        if hint_if_unknown(store, user, conversation):
            return
        _describe(store, user, conversation, setting, None)
    _print(_find(setting, user, conversation, database), as_json)


def _describe(store: MemoryStore, user: str, conversation: str, setting: str, value: Any) -> None:
    from memstore.context.defaults import NAMES
    from memstore.errors import InvalidInput

    if setting not in NAMES:
        raise InvalidInput(f"A conversation has no setting {setting!r}. {_suggest(setting, list(NAMES))}")
    store.user(user).conversation(conversation).describe(settings={setting: value})


def _list(user: str | None, conversation: str | None, database: str | None) -> list[Setting]:
    """Return the settings of the system, or those that hold for a conversation."""
    from memstore.settings import Setting, listed
    from memstore.store.faults import without_password

    if (user is None) != (conversation is None):
        raise typer.BadParameter("a conversation is named by --user and --conversation together.")
    system = {each.name: each for each in listed()}
    url = system["database_url"]
    system["database_url"] = replace(url, value=without_password(url.value))
    if user is None or conversation is None:
        return list(system.values())
    with open_store(database) as store:
        hint_if_unknown(store, user, conversation)
        scope = store.user(user).conversation(conversation)
        values, info = scope.settings(), scope.info()
    own = {name for name, value in (info.settings if info else {}).items() if value is not None}
    default = Setting("", None, "default")
    return [
        Setting(name, value, "conversation" if name in own else system.get(name, default).source)
        for name, value in values.items()
    ]


def _find(setting: str, user: str | None, conversation: str | None, database: str | None) -> Setting:
    from memstore.errors import InvalidInput

    settings = {each.name: each for each in _list(user, conversation, database)}
    if setting not in settings:
        raise InvalidInput(f"There is no setting {setting!r}. {_suggest(setting, list(settings))}")
    return settings[setting]


def _parse_value(setting: str, value: str) -> Any:
    """Return a value as JSON has it: anything else is a text, and a list may be written with commas alone."""
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        parsed = value
    if setting in LISTS and isinstance(parsed, str):
        return [part.strip() for part in parsed.split(",") if part.strip()]
    return parsed if setting in LISTS or isinstance(parsed, int) else value


def _print(setting: Setting, as_json: bool) -> None:
    if as_json:
        print_json(setting)
    else:
        echo(_text(setting.value))


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _suggest(setting: str, known: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(setting, known, n=1)
    return f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
