"""`derive`, `worker` and `jobs`: make chunks, summaries and facts of messages, now or in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from memstore.cli.options import DatabaseOption, JsonFlag, OnlyUserOption, choice
from memstore.cli.output import echo, echo_hint, log_records, print_json, print_table, progress_bars
from memstore.cli.session import hint_if_unknown, open_store

if TYPE_CHECKING:
    from memstore import DeriveReport

app = typer.Typer(help="See what waits for the workers.", no_args_is_help=True, rich_markup_mode=None)
TIERS_REDONE = ("facts", "summaries", "vectors")
ConcurrencyOption = Annotated[
    int, typer.Option("--concurrency", "-c", min=1, max=256, metavar="N", help="Conversations at a time.")
]


def derive(
    user: OnlyUserOption = None,
    redo: Annotated[
        str | None,
        typer.Option(
            parser=choice(*TIERS_REDONE),
            metavar=f"[{'|'.join(TIERS_REDONE)}]",
            help="Make anew what another recipe made, but for what was done by hand; or vectors that are missing.",
        ),
    ] = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Embed, summarize and extract facts from what is pending.

    Where that fails for a conversation, the others are done, the exit code is 1, and the next run tries it again;
    memstore --verbose derive shows the tracebacks. Where a chat model is away, or has used up its day's tokens, what is
    for it waits and is no failure; stderr says so.

    JSON: {"messages", "units", "summaries", "facts", "redone", "letters", "vectors",
    "quarantined": integers, "failed", "waiting": [texts]}.
    """
    with open_store(database) as store:
        with progress_bars("loading") as move:
            report = store.derive(user=user, redo=redo, progress=move)
        if user is not None and not report.messages:
            hint_if_unknown(store, user)
    if as_json:
        print_json(report)
    else:
        echo(_summary(report))
    for waiting in report.waiting:
        echo_hint(f"waiting: {waiting}")
    if report.letters:
        echo_hint(f"{report.letters} answers of a chat model could not be used, and rules stood in: memstore doctor")
    if report.failed:
        echo_hint(f"failed for {len(report.failed)}; memstore --verbose derive shows where")
    raise typer.Exit(1 if report.failed else 0)


def _summary(report: DeriveReport) -> str:
    if report == type(report)():
        return "nothing was pending"
    if report == type(report)(waiting=report.waiting):
        return "nothing could be done now"
    more = f"; {report.redone} conversations made anew" if report.redone else ""
    more += f"; {report.vectors} vectors for what had none" if report.vectors else ""
    more += f"; {report.quarantined} facts wait to be confirmed" if report.quarantined else ""
    made = f"{report.units} units, {report.summaries} summaries, {report.facts} facts"
    return f"{report.messages} messages → {made}{more}"


def worker(concurrency: ConcurrencyOption = 4, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Derive what is pending, as it comes, until Ctrl-C or SIGTERM; what runs then is finished first.

    Start as many as you like, on any machines that reach the database: each conversation is one worker's at a time.

    JSON, when it ends: {"messages", "units", "summaries", "facts", "failed": integers}.
    """
    import asyncio

    from memstore.client.worker import work

    log_records()
    echo_hint("working; Ctrl-C stops it")
    made = asyncio.run(work(database, concurrency=concurrency))
    if as_json:
        print_json(made)
    else:
        echo(", ".join(f"{count:,} {name}" for name, count in made.items()))


@app.command("list")
def jobs(
    failed: Annotated[bool, typer.Option("--failed", help="Those that were given up.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, metavar="N", help="At most so many.")] = 1000,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List the jobs that wait or run, or those that were given up.

    JSON: {"counts": {"waiting", "backfilling", "later", "running", "failed", "workers": integers}, "jobs": [{"id",
    "user_id", "conversation_id", "status", "priority", "attempts", "scheduled_at": time or null, "error": text or
    null}]}.
    """
    with open_store(database) as store:
        counts, rows = store.job_counts(), store.jobs(failed=failed, limit=limit)
    if as_json:
        print_json({"counts": counts, "jobs": rows})
        return
    print_table(
        ("job", "status", "attempts", "conversation", "went wrong"),
        [(job.id, job.status, job.attempts, job.conversation_id, job.error or "") for job in rows],
    )
    echo_hint(f"{counts.waiting} waiting, {counts.running} running, {counts.failed} failed; {counts.workers} workers")


@app.command()
def retry(
    ids: Annotated[
        list[int] | None, typer.Argument(metavar="JOB…", help="Numbers, as memstore jobs shows them.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All that were given up.")] = False,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Try jobs again that were given up.

    JSON: {"retried": integer}.
    """
    if bool(ids) == every:
        raise typer.BadParameter("name jobs, or give --all.")
    with open_store(database) as store:
        retried = store.retry_jobs(None if every else ids)
    if as_json:
        print_json({"retried": retried})
    else:
        echo(f"{retried} jobs wait again")
