"""What memstore and its conversations are set to: `settings list`, `get`, `set` and `unset`."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstore.cli.options import DatabaseOption, JsonFlag, name
from memstore.cli.show import hint, print_json, say, table
from memstore.cli.stores import hint_if_new, new_names, opened

if TYPE_CHECKING:
    from memstore.settings import Setting

app = typer.Typer(
    help="See and change settings: the system's, in its TOML file, or a conversation's own.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The name of the setting, such as context_budget.")]
UserOption = Annotated[
    str | None, typer.Option("--user", "-u", parser=name, metavar="NAME", help="Whose conversation.")
]
ConversationOption = Annotated[
    str | None,
    typer.Option("--conversation", "-c", parser=name, metavar="NAME", help="Of this conversation, not of the system."),
]
LISTS = ("strategies", "participants")


@app.command("list")
def list_(
    user: UserOption = None,
    conversation: ConversationOption = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List every setting with its value and where that comes from.

    On a pipe, a line a setting, its cells parted by tabs: name, source, value.

    JSON: [{"name", "value", "source": "default", "conversation", a variable or a file}].
    """
    found = _found(user, conversation, database)
    if as_json:
        print_json(found)
    else:
        table(("name", "from", "value"), [(one.name, one.source, _shown(one.value)) for one in found])


@app.command()
def get(
    setting: NameArgument,
    user: UserOption = None,
    conversation: ConversationOption = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Print what a setting is set to, and on stderr where that comes from.

    JSON: {"name", "value", "source"}.
    """
    from memstore.errors import InvalidInput

    found = {one.name: one for one in _found(user, conversation, database)}
    if setting not in found:
        raise InvalidInput(f"There is no setting {setting!r}. {_near(setting, list(found))}")
    _print(found[setting], as_json)
    if not as_json:
        hint(f"from: {found[setting].source}")


@app.command("set")
def set_(
    setting: NameArgument,
    value: Annotated[
        str, typer.Argument(metavar="VALUE", help="A number, a text, or a list with commas; strategies also as JSON.")
    ],
    user: UserOption = None,
    conversation: ConversationOption = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Set a setting: in the system's file, whose comments stay, or with a conversation.

    JSON: {"name", "value", "source"}; what it is now.
    """
    _change(setting, value, user, conversation, database, as_json)


@app.command()
def unset(
    setting: NameArgument,
    user: UserOption = None,
    conversation: ConversationOption = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Take a setting away: a conversation's own gives way to the system's, that to the default.

    JSON: {"name", "value", "source"}; what it is now.
    """
    _change(setting, None, user, conversation, database, as_json)


def _change(
    setting: str, value: str | None, user: str | None, conversation: str | None, database: str | None, as_json: bool
) -> None:
    from memstore.assemble.defaults import NAMES
    from memstore.errors import InvalidInput
    from memstore.settings import change

    whose = _whose(user, conversation)
    if whose is None:
        _check(setting, value)
        change({setting: value})
    elif setting not in NAMES:
        raise InvalidInput(f"A conversation has no setting {setting!r}. {_near(setting, list(NAMES))}")
    else:
        with opened(database) as store:
            if value is None and hint_if_new(store, *whose):
                return
            new = new_names(store, *whose)
            store.user(whose[0]).conversation(whose[1]).describe(settings={setting: _read(setting, value)})
            if new is not None:
                hint(f"{new}; its settings are kept")
    now = {one.name: one for one in _found(user, conversation, database)}.get(setting)
    if now is None:  # a name of no option, which was taken out of the file
        return
    _print(now, as_json)
    if now.source.startswith("MEMSTORE_"):
        hint(f"{now.source} is set in the environment, which wins over the file")


def _check(setting: str, value: str | None) -> None:
    """Refuse a value that no store could be opened with: a provider, a strategy or a rule that nobody knows."""
    from memstore.errors import InvalidInput, MemstoreError
    from memstore.memory.opened import check_option
    from memstore.settings import value_of

    if value is None:
        return
    try:
        check_option(setting, value_of(setting, value))
    except MemstoreError as error:
        why = str(error)
        raise InvalidInput(why if why.startswith(setting) else f"{setting}={value!r:.60}: {why}") from None


def _found(user: str | None, conversation: str | None, database: str | None) -> list[Setting]:
    """Give the settings of the system, or those that hold for a conversation."""
    from memstore.settings import Setting, listed
    from memstore.store.faults import without_password

    system = {one.name: one for one in listed()}
    url = system["database_url"]
    system["database_url"] = replace(url, value=without_password(url.value))
    whose = _whose(user, conversation)
    if whose is None:
        return list(system.values())
    with opened(database) as store:
        hint_if_new(store, *whose)
        scope = store.user(whose[0]).conversation(whose[1])
        whole, info = scope.settings(), scope.info()
    own = {key for key, value in (info.settings if info else {}).items() if value is not None}
    default = Setting("", None, "default")
    return [
        Setting(key, value, "conversation" if key in own else system.get(key, default).source)
        for key, value in whole.items()
    ]


def _whose(user: str | None, conversation: str | None) -> tuple[str, str] | None:
    """Give the user and the conversation that are meant; None where the system is."""
    if (user is None) != (conversation is None):
        raise typer.BadParameter("a conversation is named by --user and --conversation together.")
    return None if user is None or conversation is None else (user, conversation)


def _read(setting: str, value: str | None) -> Any:
    """Give a value as JSON has it: what is no JSON is a text, and a list may have commas alone."""
    if value is None:
        return None
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        read = value
    if setting in LISTS and isinstance(read, str):
        return [part.strip() for part in read.split(",") if part.strip()]
    return read if setting in LISTS or isinstance(read, int) else value


def _print(setting: Setting, as_json: bool) -> None:
    if as_json:
        print_json(setting)
    else:
        say(_shown(setting.value))


def _shown(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _near(setting: str, known: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(setting, known, n=1)
    return f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
