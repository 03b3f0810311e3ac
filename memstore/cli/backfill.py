"""`backfill plan`, `run`, `status`, `pause`, `resume`, `cancel` and `verify`: derive a long history under a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from memstore.cli.derive import ConcurrencyOption
from memstore.cli.options import DatabaseOption, JsonFlag, OnlyUserOption, choice, parse_id
from memstore.cli.output import echo, echo_hint, err, print_json, print_table
from memstore.errors import ModelUnavailable

if TYPE_CHECKING:
    from memstore.client.worker import WorkingStore
    from memstore.models import BackfillPlan, BackfillStatus

app = typer.Typer(help="Derive a long history under a plan.", no_args_is_help=True, rich_markup_mode=None)
TIERS = ("embed", "summaries", "facts")

BackfillArgument = Annotated[UUID | None, typer.Argument(parser=parse_id, metavar="ID", help="Else the latest.")]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option(parser=choice(*TIERS), metavar=f"[{'|'.join(TIERS)}]", help="These only; may be repeated."),
]
TokensOption = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Pause before calls of chat models take more tokens than this.")
]
SecondsOption = Annotated[float | None, typer.Option(min=1, metavar="N", help="Pause after so many seconds of work.")]


@app.command()
def plan(
    user: OnlyUserOption = None,
    only: OnlyOption = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Say what is pending, and about what it costs in calls and tokens of chat models, and in time.

    Nobody is asked and nothing is written. Rates are those that this store has measured: of calls so far, else assumed;
    of time by its earlier backfills, else unknown. While a backfill runs, it shows its rate and the time left.

    JSON: {"derivers": {name: {"conversations", "messages", "tokens", "calls", "prompt_tokens", "answer_tokens":
    integers, "answers": "assumed", "known" or null, "call_seconds": number or null}}, "seconds": number or null,
    "model_tokens": integer, "model_seconds": number or null}.
    """
    from memstore.cli.session import open_store

    with open_store(database) as store:
        _print_plan(store.backfills.plan(user=user, only=only or ()), as_json)


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
            echo_hint(f"not planned: {error}")
        backfill = await store.backfills.begin(
            user=user, only=only or (), max_tokens=max_tokens, max_seconds=max_seconds, plan=found
        )
        return await _work(store, backfill, detach, concurrency)

    _finish(_with_store(database, ran), as_json, detach)


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
        return await _work(store, found.backfill.id, detach, concurrency)

    _finish(_with_store(database, resumed), as_json, detach)


@app.command()
def status(backfill: BackfillArgument = None, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Say how far a backfill is, how fast, and what went wrong.

    JSON: {"backfill": {"id", "state", "reason", "messages", "max_tokens", "max_seconds", "spent_tokens", …}, "left":
    {deriver: messages}, "failing": conversations, "done": messages, "seconds", "rate": messages a second,
    "seconds_left": number or null}.
    """
    from memstore.cli.session import open_store

    with open_store(database) as store:
        _print_status(store.backfills.status(backfill), as_json)


@app.command()
def pause(backfill: BackfillArgument = None, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Let no step of a backfill begin; those under way are finished.

    JSON: as of memstore backfill status.
    """
    from memstore.cli.session import open_store

    with open_store(database) as store:
        _print_status(store.backfills.pause(backfill), as_json)


@app.command()
def cancel(backfill: BackfillArgument = None, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """End a backfill. What it has derived stays; the rest workers leave alone until it is asked for.

    JSON: as of memstore backfill status.
    """
    from memstore.cli.session import open_store

    with open_store(database) as store:
        _print_status(store.backfills.cancel(backfill), as_json)


@app.command()
def verify(user: OnlyUserOption = None, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Check that everything is derived, whole and rightly counted. The exit code is 1 where something is not.

    JSON: [{"user": name or null, "problem": text, "rows": integer}].
    """
    from memstore.cli.session import open_store

    with open_store(database) as store:
        wrong = store.backfills.verify(user=user)
    if as_json:
        print_json(wrong)
    elif wrong:
        print_table(("user", "rows", "problem"), [(each.user or "", f"{each.rows:,}", each.problem) for each in wrong])
    else:
        echo("everything is derived, and whole")
    raise typer.Exit(1 if wrong else 0)


def _with_store(database: str | None, use: Any) -> Any:
    """Return the result of a coroutine with an open store, in an event loop of its own."""
    import asyncio

    from memstore.client.worker import WorkingStore

    async def run() -> Any:
        async with await WorkingStore.open(database) as store:
            return await use(store)

    return asyncio.run(run())


async def _work(store: WorkingStore, backfill: UUID, detach: bool, concurrency: int) -> BackfillStatus:
    if detach:
        return await store.backfills.status(backfill)
    with err.status("loading") as shown:
        return await store.work_until_done(
            backfill, lambda found: shown.update(_progress(found)), concurrency=concurrency
        )


def _progress(status: BackfillStatus) -> str:
    left = "" if status.seconds_left is None else f", {_time(status.seconds_left)} left"
    failing = f", failing in {status.failing} conversations" if status.failing else ""
    spent = f", {status.backfill.spent_tokens:,} tokens of chat models" if status.backfill.spent_tokens else ""
    return f"{status.done:,} of {status.backfill.messages:,}, {status.rate:.0f} a second{left}{spent}{failing}"


def _time(seconds: float) -> str:
    hours, minutes = divmod(round(seconds / 60), 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if seconds >= 90 else f"{seconds:.0f} s"


def _print_status(found: BackfillStatus, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    reason = f" ({found.backfill.reason})" if found.backfill.reason else ""
    echo((f"{found.backfill.state}{reason}", "bold"), f": {_progress(found)}; {found.backfill.id}")
    for deriver, messages in found.left.items():
        echo(f"  {deriver}: {messages:,} messages left")


def _finish(found: BackfillStatus, as_json: bool, detached: bool) -> None:
    _print_status(found, as_json)
    if detached:
        echo_hint("workers do it: memstore worker; memstore backfill status tells how far they are")
    elif found.backfill.state != "done":
        echo_hint("memstore backfill resume goes on with it")
    raise typer.Exit(0 if detached or (found.backfill.state == "done" and not found.left) else 1)


def _print_plan(plan: BackfillPlan, as_json: bool) -> None:
    if as_json:
        totals = {"model_tokens": plan.model_tokens, "model_seconds": plan.model_seconds}
        print_json({"derivers": plan.derivers, "seconds": plan.seconds} | totals)
        return
    rows = [
        (name, *(f"{number:,}" for number in (each.conversations, each.messages, each.tokens, each.calls)),
         f"{each.prompt_tokens + each.answer_tokens:,}")
        for name, each in plan.derivers.items()
    ]  # fmt: skip
    print_table(("deriver", "conversations", "messages", "tokens", "calls", "tokens of calls"), rows)
    if plan.seconds is None:
        echo_hint("how long it takes is known after a first backfill; while one runs, it shows the time left")
    else:
        echo(f"{_time(plan.seconds)} at the rate of this store's earlier backfills")
    if plan.model_tokens:
        time = "" if plan.model_seconds is None else f"; one call after the other takes {_time(plan.model_seconds)}"
        echo(f"{plan.model_tokens:,} tokens of chat models{time}")
    if any(each.answers == "assumed" for each in plan.derivers.values()):
        echo_hint("the tokens of calls are assumed: no call of this model was measured yet")
