"""The encoder that stays for the next command: asked by `recall`, and `encoder start`, `stop` and `status`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstore import errors
from memstore.cli.options import JsonFlag
from memstore.cli.show import hint, print_json, say, table
from memstore.plain import plain

if TYPE_CHECKING:
    from memstore.models import Json
    from memstore.store.folders import Place

SECONDS_TO_ANSWER = 300.0
RESIDENT = "resident:"
# An embedded server that has died is started again by who opens it.
STARTED_HERE = (errors.DatabaseUnreachable, errors.EmbeddedError)
COLUMNS = ("process", "minutes up", "ends after", "stores", "state", "embedder", "installation")

app = typer.Typer(
    help="The encoder that stays in the background, so that a command need not load one.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def recalled(database: str | None, user: str, asked: Mapping[str, Any]) -> list[Json] | None:
    """Have the resident encoder recall, started where there is none; None where this process must do it itself.

    Without importing what recalling takes: that alone would be longer than the answer takes.
    """
    from memstore import residence, settings_file
    from memstore.local_socket import Unanswered

    options = settings_file.unchecked()
    target, folder = _address(database or str(options.get("database_url", "embedded")))
    embedder, minutes = str(options.get("embedder", residence.EMBEDDER)), _minutes(options, residence.MINUTES)
    options["embedder"] = embedder = embedder.removeprefix(RESIDENT)
    if target is None or not residence.is_worth_it(embedder, minutes):
        return None
    about = {"options": options, "database": target, "folder": folder, "user": user}
    message = {"ask": "recall", **about, "asked": plain(asked)}
    try:
        with residence.reached(embedder, minutes) as line:
            answer, _ = line.ask(message, seconds=SECONDS_TO_ANSWER)
    except (Unanswered, TypeError):  # a file of settings may hold what JSON has not
        return None
    return _hits(answer, again=STARTED_HERE if target.startswith("embedded:") else ())


def _hits(answer: Json, *, again: tuple[type[Exception], ...]) -> list[Json] | None:
    """Give the hits, or raise the error that the store raised; None for those after which this process tries `again`.

    What is wrong with settings is told better from here.
    """
    if "error" not in answer:
        hits: list[Json] = answer["hits"]
        return hits
    kind = getattr(errors, str(answer["kind"]), errors.ConfigurationError)
    if issubclass(kind, (errors.ConfigurationError, errors.ProviderMissing, *again)):
        return None
    raise kind(answer["error"])


def _minutes(options: Mapping[str, Any], default: float) -> float:
    try:
        return float(options.get("resident_minutes", default))
    except (TypeError, ValueError):
        return 0.0


def _address(database: str) -> tuple[str | None, Place]:
    """Give the database as another process finds it, and for an embedded one which folder that is.

    No address where this process' environment says how to get there.
    """
    from memstore.store.folders import default_folder, place_of

    kind, _, named = database.partition(":")
    if kind == "embedded":
        folder = (Path(named).expanduser() if named else default_folder()).absolute()
        return f"{kind}:{folder}", place_of(folder)
    return None if any(name.startswith("PG") for name in os.environ) else database, None


@app.command()
def start(as_json: JsonFlag = False) -> None:
    """Start the encoder of the settings, where it does not run, and wait until it answers.

    JSON: as of status.
    """
    from memstore import residence
    from memstore.local_socket import Unanswered
    from memstore.settings import load

    settings = load({})
    embedder = settings.embedder.removeprefix(RESIDENT)
    if not residence.is_worth_it(embedder, settings.resident_minutes):
        raise errors.InvalidInput(
            f"No encoder stays for embedder={embedder} with resident_minutes={settings.resident_minutes:g}: only "
            f"{residence.KIND} takes long to load."
        )
    try:
        with residence.reached(embedder, settings.resident_minutes) as line:
            answer, _ = line.ask({"ask": "model", "embedder": embedder}, seconds=SECONDS_TO_ANSWER)
    except Unanswered as error:
        raise errors.ProviderError(f"The encoder does not answer ({error}). memstore encoder stop ends it.") from None
    if "error" in answer:
        raise errors.ProviderError(str(answer["error"]))
    _show(as_json)


@app.command()
def status(as_json: JsonFlag = False) -> None:
    """List the encoders that run: of other settings and installations too.

    On a pipe, a line an encoder, its cells parted by tabs: process, minutes up, ends after, stores, state, embedder,
    installation: the folder of the memstore whose it is.

    One that is silent listens and does not answer: it is stopped, or short of memory. Commands do without it.

    JSON: [{"process", "seconds": since it began, "minutes": after which it ends when nobody asks, "stores": open ones,
    "ready": whether its model is loaded, "state": ready, loading or silent, "embedder", "installation", "socket"}];
    null for what one that does not answer leaves unknown.
    """
    _show(as_json)


@app.command()
def stop(
    every: Annotated[
        bool, typer.Option("--all", help="Those of other installations and containers of this account too.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """End the encoders of this installation, by a signal where one is silent; a command that needs one starts another.

    Each is named, and those of other installations that go on. What killed ones have left is removed.

    JSON: {"stopped": integer, "encoders": [those, as of status], "others": [those that go on, as of status]}.
    """
    from memstore import residence, socket_place

    found = list(residence.states())
    own = [one for one in found if every or socket_place.is_of_this_installation(Path(one["socket"]))]
    stopped = [one for one in own if residence.stop(Path(one["socket"]))]
    others = [one for one in found if one not in stopped]
    socket_place.clean()
    if as_json:
        print_json({"stopped": len(stopped), "encoders": stopped, "others": others})
    else:
        say(f"{len(stopped)} stopped" if own else "none was running")
        for one in stopped:
            say(f"  {_name(one)}")
    for one in others:
        stays = "does not end, or runs in another container" if one in own else "goes on; --all ends it too"
        hint(f"{_name(one)} {stays}")


def _name(one: Json) -> str:
    whose = one["installation"] or f"an installation that does not say where it is ({one['socket']})"
    return f"process {one['process'] or 'unknown'}, {one['embedder'] or 'unknown embedder'}, of {whose}"


def _show(as_json: bool) -> None:
    from memstore.residence import states

    found = list(states())
    if as_json:
        print_json(found)
        return
    table(COLUMNS, [_row(one) for one in found])


def _row(one: Json) -> tuple[object, ...]:
    named = one["embedder"] or "", one["installation"] or ""
    if one["seconds"] is None:
        return one["process"] or "", "", "", "", one["state"], *named
    return (
        one["process"],
        one["seconds"] // 60,
        f"{one['minutes']:g} idle",
        one["stores"],
        one["state"],
        *named,
    )
