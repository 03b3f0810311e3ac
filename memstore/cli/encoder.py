"""The encoder that stays for the next command: asked by `recall`, and `encoder start`, `stop` and `status`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from memstore import errors
from memstore.cli.options import JsonFlag
from memstore.cli.show import print_json, say, table
from memstore.plain import plain

if TYPE_CHECKING:
    from memstore.models import Json

SECONDS_TO_ANSWER = 300.0
RESIDENT = "resident:"
COLUMNS = ("process", "minutes up", "ends after", "stores", "state", "embedder")

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
    target = _address(database or str(options.get("database_url", "embedded")))
    embedder, minutes = str(options.get("embedder", residence.EMBEDDER)), _minutes(options, residence.MINUTES)
    options["embedder"] = embedder = embedder.removeprefix(RESIDENT)
    if target is None or not residence.is_worth_it(embedder, minutes):
        return None
    message = {"ask": "recall", "options": options, "database": target, "user": user, "asked": plain(asked)}
    try:
        with residence.reached(embedder, minutes) as line:
            answer, _ = line.ask(message, seconds=SECONDS_TO_ANSWER)
    except (Unanswered, TypeError):  # a file of settings may hold what JSON has not
        return None
    return _hits(answer)


def _hits(answer: Json) -> list[Json] | None:
    """Give the hits, or raise the error that the store raised; what is wrong with settings is told better from here."""
    if "error" not in answer:
        hits: list[Json] = answer["hits"]
        return hits
    kind = getattr(errors, str(answer["kind"]), errors.ConfigurationError)
    if issubclass(kind, errors.ConfigurationError | errors.ProviderMissing):
        return None
    raise kind(answer["error"])


def _minutes(options: Mapping[str, Any], default: float) -> float:
    try:
        return float(options.get("resident_minutes", default))
    except (TypeError, ValueError):
        return 0.0


def _address(database: str) -> str | None:
    """Give the database as another process finds it; None where this one's environment says how to get there."""
    kind, sign, folder = database.partition(":")
    if kind == "embedded":
        return f"{kind}:{Path(folder).expanduser().absolute()}" if sign and folder else kind
    return None if any(name.startswith("PG") for name in os.environ) else database


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
        raise errors.ProviderError(f"The encoder does not answer: {error}.") from None
    if "error" in answer:
        raise errors.ProviderError(str(answer["error"]))
    _show(as_json)


@app.command()
def status(as_json: JsonFlag = False) -> None:
    """List the encoders that run: of other settings and installations too.

    On a pipe, a line an encoder, its cells parted by tabs: process, minutes up, ends after, stores, state, embedder.

    JSON: [{"process", "seconds": since it began, "minutes": after which it ends when nobody asks, "stores": open ones,
    "ready": whether its model is loaded, "embedder", "socket"}].
    """
    _show(as_json)


@app.command()
def stop(as_json: JsonFlag = False) -> None:
    """End every encoder that runs; a command that needs one starts another.

    JSON: {"stopped": integer}.
    """
    from memstore import local_socket, residence

    stopped = [path for path in local_socket.running() if residence.stop(path)]
    if as_json:
        print_json({"stopped": len(stopped)})
    else:
        say(f"{len(stopped)} stopped" if stopped else "none was running")


def _show(as_json: bool) -> None:
    found = list(running())
    if as_json:
        print_json(found)
        return
    table(COLUMNS, [_row(one) for one in found])


def _row(one: Json) -> tuple[object, ...]:
    state = "ready" if one["ready"] else "loading"
    return one["process"], one["seconds"] // 60, f"{one['minutes']:g} idle", one["stores"], state, one["embedder"]


def running() -> Iterable[Json]:
    """Give the state of each encoder that runs and answers."""
    from memstore import local_socket, residence

    for path in local_socket.running():
        state = residence.asked(path, {"ask": "status"})
        if state is not None:
            yield state | {"socket": str(path)}
