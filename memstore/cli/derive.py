"""`derive`, `worker`, `jobs` and `backfill`: make chunks, summaries and facts of messages, now or in the background."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

import typer

from memstore.cli import output
from memstore.cli.options import LimitOption, OnlyUserOption, command, common, flag, group, option
from memstore.cli.session import hint_why_little, open_store
from memstore.text import quantify

if TYPE_CHECKING:
    from memstore import DeriveReport
    from memstore.client.worker import WorkingStore
    from memstore.models import BackfillStatus

ConcurrencyOption = Annotated[
    int, typer.Option("--concurrency", "-c", min=1, max=256, metavar="N", help="Conversations at a time.")
]
backfill_app = group("Derive a long history under a plan.")

BackfillArgument = Annotated[UUID | None, typer.Argument(metavar="ID", help="Else the latest.")]
OnlyOption = Annotated[list[str] | None, option("chunks|summaries|facts", "These only; may be repeated.")]
TokensOption = Annotated[int | None, option("N", "Pause before chat models take more tokens.", min=1)]
DetachFlag = Annotated[bool, flag("--detach", "Leave it to workers that run elsewhere.")]


def derive(
    user: OnlyUserOption = None,
    redo: Annotated[
        Literal["facts", "summaries"] | None, typer.Option(help="Make anew what another recipe made.")
    ] = None,
) -> None:
    """Embed, summarize and extract facts from pending messages.

    If a conversation fails, the others go on, the exit code is 1, and the next run tries again; memstore --verbose
    derive shows the tracebacks. If a chat model is away, or the day's tokens are used up, its messages wait. That is no
    failure; stderr says so.
    """
    with open_store() as store:
        with output.show_progress("loading") as line:
            report = store.derive(user=user, redo=redo, progress=line.update, on_call=line.show_call)
        if user is not None and not report.messages:
            hint_why_little(store, user)
    output.print_result(report, _summary(report))
    for waiting in report.waiting:
        output.echo_hint(f"waiting: {waiting}")
    if report.invalid_responses:
        output.echo_hint(
            f"{report.invalid_responses} answers of a chat model cannot be used: memstore doctor; --redo asks again"
        )
    if report.refused:
        output.echo_hint(f"{report.refused} facts of a chat model were refused: memstore doctor says why")
    if report.failed:
        output.echo_hint(f"failed for {len(report.failed)}; memstore --verbose derive shows where")
    raise typer.Exit(1 if report.failed else 0)


def _summary(report: DeriveReport) -> str:
    if report == type(report)(waiting=report.waiting):
        return "nothing could be done now" if report.waiting else "nothing was pending"
    done = [f"{quantify(report.messages, 'message')} → {output.format_derived_counts(report)}"]
    if report.redone:
        done.append(f"{report.redone} conversations made anew")
    if report.quarantined:
        done.append(f"{quantify(report.quarantined, 'fact')} to review (memstore review)")
    costs = [f"{each.deriver} by {output.describe_usage(each)}" for each in report.usage]
    return "\n".join(["; ".join(done), *costs])


def worker(concurrency: ConcurrencyOption = 4) -> None:
    """Derive new messages as they come, until Ctrl-C or SIGTERM; running jobs are finished first.

    Start as many as you like, on any machines that reach the database: each conversation is one worker's at a time.
    """
    import asyncio

    from memstore.client.worker import work

    is_json = output.configure_service_log()
    output.echo_hint("working; Ctrl-C stops it")
    with output.show_progress("working", quiet=is_json) as line:
        made = asyncio.run(work(common.database, concurrency=concurrency, on_call=line.show_call))
    output.print_result(made, ", ".join(f"{count:,} {name}" for name, count in made.items()))


def jobs(
    failed: Annotated[bool, flag("--failed", "List failed jobs instead.")] = False,
    retry: Annotated[bool, flag("--retry", "Queue failed jobs again first.")] = False,
    limit: LimitOption = 1000,
) -> None:
    """List the jobs that wait or run, or failed ones.

    JSON: {"counts": {state: integer}, "jobs": [as rows]}.
    """
    with open_store() as store:
        if retry:
            store.retry_jobs()
        counts, rows = store.job_counts(), store.jobs(failed=failed, limit=limit)
    cells = [(job.id, job.status, job.attempts, job.conversation_id, job.error) for job in rows]
    output.print_rows(
        {"counts": counts, "jobs": rows}, ("job", "status", "attempts", "conversation", "went wrong"), cells
    )
    output.echo_hint(
        f"{counts.waiting} waiting, {counts.running} running, {counts.failed} failed; {counts.workers} workers"
    )


@command(backfill_app)
def plan(user: OnlyUserOption = None, only: OnlyOption = None) -> None:
    """Show what is pending, and about how many calls and tokens of chat models it takes.

    Nobody is asked and nothing is written. Before the first call of a model its tokens are assumed.

    JSON: {"derivers": {name: its plan}, "model_tokens"}.
    """
    with open_store() as store:
        plan = store.backfills.plan(user=user, only=only or ())
    output.print_rows(
        {"derivers": plan.derivers, "model_tokens": plan.model_tokens},
        ("deriver", "conversations", "messages", "tokens", "calls", "tokens in", "tokens out"),
        [
            (name, each.conversations, each.messages, each.tokens, each.calls, each.prompt_tokens, each.answer_tokens)
            for name, each in plan.derivers.items()
        ],
    )


@command(backfill_app)
def run(
    user: OnlyUserOption = None,
    only: OnlyOption = None,
    max_tokens: TokensOption = None,
    detach: DetachFlag = False,
    concurrency: ConcurrencyOption = 4,
) -> None:
    """Derive all pending messages, here and by running workers. Stopped or killed, it goes on with resume.

    The exit code is 1 where it did not come to its end, or something in it failed.
    """
    _work(lambda store: store.backfills.begin(user=user, only=only or (), max_tokens=max_tokens), detach, concurrency)


@command(backfill_app)
def resume(
    backfill: BackfillArgument = None,
    max_tokens: TokensOption = None,
    detach: DetachFlag = False,
    concurrency: ConcurrencyOption = 4,
) -> None:
    """Go on with a backfill that is paused, or that nobody works on, here and by the workers that there are."""

    async def resume(store: WorkingStore) -> UUID:
        state = await store.backfills.status(backfill)
        if state.backfill.state != "running":
            await store.backfills.resume(state.backfill.id, max_tokens=max_tokens)
        return state.backfill.id

    _work(resume, detach, concurrency)


@command(backfill_app)
def status(backfill: BackfillArgument = None) -> None:
    """Say how far a backfill is, how fast, and what went wrong."""
    with open_store() as store:
        _print_status(store.backfills.status(backfill))


@command(backfill_app)
def pause(backfill: BackfillArgument = None) -> None:
    """Let no step of a backfill begin; those under way are finished."""
    with open_store() as store:
        _print_status(store.backfills.pause(backfill))


@command(backfill_app)
def cancel(backfill: BackfillArgument = None) -> None:
    """End a backfill. Derived rows stay; workers leave the rest alone until another backfill asks for it."""
    with open_store() as store:
        _print_status(store.backfills.cancel(backfill))


@command(backfill_app)
def verify(user: OnlyUserOption = None) -> None:
    """Check that everything is derived, whole and rightly counted. The exit code is 1 where something is not."""
    with open_store() as store:
        wrong = store.backfills.verify(user=user)
    output.print_models(wrong, "user", "rows", "problem", empty="everything is derived, and whole")
    raise typer.Exit(1 if wrong else 0)


def _work(start: Callable[[WorkingStore], Awaitable[UUID]], detach: bool, concurrency: int) -> None:
    """Work on the backfill that `start` gives, or leave it to workers; print its status and exit."""
    import asyncio

    from memstore.client.worker import WorkingStore

    async def run() -> BackfillStatus:
        async with await WorkingStore.open(common.database) as store:
            backfill = await start(store)
            if detach:
                return await store.backfills.status(backfill)
            with output.show_progress("loading") as line:

                def show(status: BackfillStatus) -> None:
                    line.text = _progress(status)

                return await store.work_until_done(backfill, show, concurrency=concurrency, on_call=line.show_call)

    status = asyncio.run(run())
    _print_status(status)
    if detach:
        output.echo_hint("workers do it: memstore worker; memstore backfill status shows how far they are")
    elif status.backfill.state != "done":
        output.echo_hint("memstore backfill resume goes on with it")
    raise typer.Exit(0 if detach or (status.backfill.state == "done" and not status.left) else 1)


def _progress(status: BackfillStatus) -> str:
    left = f", {output.format_seconds(status.seconds_left)} left" if status.seconds_left else ""
    failing = f", failing in {quantify(status.failing, 'conversation')}" if status.failing else ""
    total = sum(status.backfill.messages.values())
    return f"{status.done:,} of {total:,}, {status.rate:,.1f} a second{left}{failing}"


def _print_status(status: BackfillStatus) -> None:
    from memstore.models import Usage

    row = status.backfill
    reason = f" ({row.reason})" if row.reason else ""
    lines = [f"{row.state}{reason}: {_progress(status)}; {row.id}"]
    lines += [f"  {deriver}: {quantify(messages, 'message')} left" for deriver, messages in status.left.items()]
    if row.calls:
        prompt_tokens = row.spent_tokens - row.answer_tokens
        usage = Usage("", "chat models", row.calls, prompt_tokens, row.answer_tokens, row.call_seconds)
        lines.append(f"  {output.describe_usage(usage)}")
    output.print_result(status, "\n".join(lines))
