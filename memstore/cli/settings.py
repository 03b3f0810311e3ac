"""`settings list` and `settings set`: what the system is set to, and what conversations are."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstore.cli.options import ConversationOption, DatabaseOption, JsonFlag, OnlyUserOption, UserOption, name_option
from memstore.cli.output import print_json, print_result, print_table
from memstore.cli.session import hint_if_unknown, open_store

if TYPE_CHECKING:
    from memstore.settings import SettingInfo

app = typer.Typer(
    help="See settings, and change those of a conversation.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
OfConversationOption = Annotated[
    str | None, name_option("Of this conversation, not the system.", "--conversation", "-c")
]
LISTS = ("strategies",)


@app.command("list")
def list_(
    user: OnlyUserOption = None,
    conversation: OfConversationOption = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List every setting with its value and where that comes from.

    On a pipe, a line a setting, its cells parted by tabs: name, source, value.

    JSON: [{"name", "value", "source": "default", "conversation", a variable or a file}].
    """
    settings = _list(user, conversation, database)
    if as_json:
        print_json(settings)
    else:
        print_table(("name", "from", "value"), [(each.name, each.source, _text(each.value)) for each in settings])


@app.command("set")
def set_(
    setting: Annotated[str, typer.Argument(metavar="NAME", help="The name of the setting, such as context_budget.")],
    value: Annotated[
        str,
        typer.Argument(
            metavar="VALUE", help="A number, a text or JSON; strategies with commas; null: the system's holds again."
        ),
    ],
    user: UserOption,
    conversation: ConversationOption,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Set a setting of a conversation.

    JSON: {"name", "value", "source"}; what it is now.
    """
    from memstore.context.request import NAMES
    from memstore.errors import InvalidInput

    if setting not in NAMES:
        raise InvalidInput(f"A conversation has no setting {setting!r}. There are {', '.join(NAMES)}.")
    with open_store(database) as store:
        settings = {setting: _parse_value(setting, value)}
        store.user(user).conversation(conversation).update(settings=settings)
    (current,) = (each for each in _list(user, conversation, database) if each.name == setting)
    print_result(current, _text(current.value), as_json=as_json)


def _list(user: str | None, conversation: str | None, database: str | None) -> list[SettingInfo]:
    from memstore.settings import SettingInfo, describe
    from memstore.store.errors import redact_url

    if (user is None) != (conversation is None):
        raise typer.BadParameter("a conversation is named by --user and --conversation together.")
    system = {each.name: each for each in describe()}
    url = system["database_url"]
    system["database_url"] = replace(url, value=redact_url(url.value))
    if user is None or conversation is None:
        return list(system.values())
    with open_store(database) as store:
        hint_if_unknown(store, user, conversation)
        scope = store.user(user).conversation(conversation)
        values, info = scope.settings(), scope.info()
    own = {name for name, value in (info.settings if info else {}).items() if value is not None}
    default = SettingInfo("", None, "default")
    return [
        SettingInfo(name, value, "conversation" if name in own else system.get(name, default).source)
        for name, value in values.items()
    ]


def _parse_value(setting: str, value: str) -> Any:
    """Return a value as JSON has it: anything else is a text, and a list may be written with commas alone."""
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        parsed = value
    if setting in LISTS and isinstance(parsed, str):
        return [part.strip() for part in parsed.split(",") if part.strip()]
    return parsed if setting in LISTS or parsed is None or isinstance(parsed, int) else value


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
