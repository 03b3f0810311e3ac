"""A long history derived under a plan: `backfill plan`, `run`, `status`, `pause`, `resume`, `cancel` and `verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from memstore.cli.options import DatabaseOption, JsonFlag, OnlyUserOption, identity, one_of
from memstore.cli.show import err, hint, print_json, say, table
from memstore.cli.worker import ConcurrencyOption
from memstore.errors import ModelUnavailable

if TYPE_CHECKING:
    from memstore.memory.worker import WorkingStore
    from memstore.models import BackfillPlan, BackfillStatus

app = typer.Typer(help="Derive a long history under a plan.", no_args_is_help=True, rich_markup_mode=None)
TIERS = ("embed", "summaries", "facts")

BackfillArgument = Annotated[UUID | None, typer.Argument(parser=identity, metavar="ID", help="Else the latest.")]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option(parser=one_of(*TIERS), metavar=f"[{'|'.join(TIERS)}]", help="These only; may be repeated."),
]
TokensOption = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Pause before calls of chat models take more tokens than this.")
]
SecondsOption = Annotated[float | None, typer.Option(min=1, metavar="N", help="Pause after so many seconds of work.")]


@app.command()
def plan(
    user: OnlyUserOption = None,
    only: OnlyOption = None,
    ask: Annotated[
        int, typer.Option(min=0, metavar="N", help="Ask chat models about N stretches of it, which costs their tokens.")
    ] = 0,
    concurrency: ConcurrencyOption = 4,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Say what is pending, what it would cost in tokens of chat models, and how long it takes here.

    The time is measured on some of what is pending, for some seconds; nothing is written. What chat models take is not
    in it. Their prompts are counted; how long their answers are is assumed, or known from earlier ones, or with --ask
    measured, on stretches drawn by chance.

    JSON: {"derivers": {name: {"conversations", "messages", "tokens", "calls", "prompt_tokens", "answer_tokens":
    integers, "answers": "assumed", "known", "asked" or null, "call_seconds": number or null}}, "seconds": number,
    "seconds_between": [least, most], "model_tokens": integer, "model_seconds": number or null}.
    """

    async def planned(store: WorkingStore) -> BackfillPlan:
        found = await store.backfills.plan(user=user, only=only or (), ask=ask)
        return await store.calibrated(found, user=user, concurrency=concurrency)

    _tell_plan(_with_store(database, planned), as_json)


@app.command()
def run(
    user: OnlyUserOption = None,
    only: OnlyOption = None,
    max_tokens: TokensOption = None,
    max_seconds: SecondsOption = None,
    detach: Annotated[bool, typer.Option("--detach", help="Leave it to workers that run elsewhere.")] = False,
    concurrency: ConcurrencyOption = 4,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Derive all that is pending, here and by the workers that there are. Stopped or killed, it goes on with resume.

    The exit code is 1 where it did not come to its end, or something in it failed.

    JSON: as of memstore backfill status.
    """

    async def ran(store: WorkingStore) -> BackfillStatus:
        found = None
        try:
            found = await store.backfills.plan(user=user, only=only or ())
        except ModelUnavailable as error:  # what is for it waits; the rest is done
            hint(f"not planned: {error}")
        backfill = await store.backfills.begin(
            user=user, only=only or (), max_tokens=max_tokens, max_seconds=max_seconds, plan=found
        )
        return await _worked(store, backfill, detach, concurrency)

    _ended(_with_store(database, ran), as_json, detach)


@app.command()
def resume(
    backfill: BackfillArgument = None,
    max_tokens: TokensOption = None,
    max_seconds: SecondsOption = None,
    detach: Annotated[bool, typer.Option("--detach", help="Leave it to workers that run elsewhere.")] = False,
    concurrency: ConcurrencyOption = 4,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Go on with a backfill that is paused, or that nobody works on, here and by the workers that there are.

    JSON: as of memstore backfill status.
    """

    async def resumed(store: WorkingStore) -> BackfillStatus:
        found = await store.backfills.status(backfill)
        if found.backfill.state != "running":
            found = await store.backfills.resume(backfill, max_tokens=max_tokens, max_seconds=max_seconds)
        return await _worked(store, found.backfill.id, detach, concurrency)

    _ended(_with_store(database, resumed), as_json, detach)


@app.command()
def status(backfill: BackfillArgument = None, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Say how far a backfill is, how fast, and what went wrong.

    JSON: {"backfill": {"id", "state", "reason", "messages", "max_tokens", "max_seconds", "spent_tokens", …}, "left":
    {deriver: messages}, "failing": conversations, "done": messages, "seconds", "rate": messages a second,
    "seconds_left": number or null}.
    """
    from memstore.cli.stores import opened

    with opened(database) as store:
        _tell(store.backfills.status(backfill), as_json)


@app.command()
def pause(backfill: BackfillArgument = None, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Let no step of a backfill begin; those under way are finished.

    JSON: as of memstore backfill status.
    """
    from memstore.cli.stores import opened

    with opened(database) as store:
        _tell(store.backfills.pause(backfill), as_json)


@app.command()
def cancel(backfill: BackfillArgument = None, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """End a backfill. What it has derived stays; the rest workers leave alone until it is asked for.

    JSON: as of memstore backfill status.
    """
    from memstore.cli.stores import opened

    with opened(database) as store:
        _tell(store.backfills.cancel(backfill), as_json)


@app.command()
def verify(user: OnlyUserOption = None, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Check that everything is derived, whole and rightly counted. The exit code is 1 where something is not.

    JSON: [{"user": name or null, "problem": text, "rows": integer}].
    """
    from memstore.cli.stores import opened

    with opened(database) as store:
        wrong = store.backfills.verify(user=user)
    if as_json:
        print_json(wrong)
    elif wrong:
        table(("user", "rows", "problem"), [(one.user or "", f"{one.rows:,}", one.problem) for one in wrong])
    else:
        say("everything is derived, and whole")
    raise typer.Exit(1 if wrong else 0)


def _with_store(database: str | None, use: Any) -> Any:
    """Give what is made with an open store, in an event loop of its own."""
    import asyncio

    from memstore.memory.worker import WorkingStore

    async def used() -> Any:
        async with await WorkingStore.open(database) as store:
            return await use(store)

    return asyncio.run(used())


async def _worked(store: WorkingStore, backfill: UUID, detach: bool, concurrency: int) -> BackfillStatus:
    if detach:
        return await store.backfills.status(backfill)
    with err.status("loading") as shown:
        return await store.work_until_done(backfill, lambda found: shown.update(_line(found)), concurrency=concurrency)


def _line(found: BackfillStatus) -> str:
    left = "" if found.seconds_left is None else f", {_time(found.seconds_left)} left"
    failing = f", failing in {found.failing} conversations" if found.failing else ""
    spent = f", {found.backfill.spent_tokens:,} tokens of chat models" if found.backfill.spent_tokens else ""
    return f"{found.done:,} of {found.backfill.messages:,}, {found.rate:.0f} a second{left}{spent}{failing}"


def _time(seconds: float) -> str:
    hours, minutes = divmod(round(seconds / 60), 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if seconds >= 90 else f"{seconds:.0f} s"


def _tell(found: BackfillStatus, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    reason = f" ({found.backfill.reason})" if found.backfill.reason else ""
    say((f"{found.backfill.state}{reason}", "bold"), f": {_line(found)}; {found.backfill.id}")
    for deriver, messages in found.left.items():
        say(f"  {deriver}: {messages:,} messages left")


def _ended(found: BackfillStatus, as_json: bool, detached: bool) -> None:
    _tell(found, as_json)
    if detached:
        hint("workers do it: memstore worker; memstore backfill status tells how far they are")
    elif found.backfill.state != "done":
        hint("memstore backfill resume goes on with it")
    raise typer.Exit(0 if detached or (found.backfill.state == "done" and not found.left) else 1)


def _tell_plan(found: BackfillPlan, as_json: bool) -> None:
    if as_json:
        totals = {"model_tokens": found.model_tokens, "model_seconds": found.model_seconds}
        times = {"seconds": found.seconds, "seconds_between": found.seconds_between}
        print_json({"derivers": found.derivers} | times | totals)
        return
    table(
        ("deriver", "conversations", "messages", "tokens", "calls", "tokens of calls"),
        [
            (name, f"{one.conversations:,}", f"{one.messages:,}", f"{one.tokens:,}", f"{one.calls:,}",
             f"{one.prompt_tokens + one.answer_tokens:,}")
            for name, one in found.derivers.items()
        ],
    )  # fmt: skip
    calls = "" if found.model_seconds is None else f"; one call after the other they take {_time(found.model_seconds)}"
    least, most = map(_time, found.seconds_between or (0.0, 0.0))
    spread = "" if least == most else f" ({least} to {most})"
    say(f"{_time(found.seconds or 0)}{spread} on this machine, without what chat models take; "
        f"{found.model_tokens:,} tokens of theirs{calls}")  # fmt: skip
    if any(one.answers == "assumed" for one in found.derivers.values()):
        hint("answers are assumed, prompts taken for as long as they may be; --ask 20 measures both")
