"""Workers and what waits for them: `worker`, `jobs list` and `jobs retry`."""

from __future__ import annotations

from typing import Annotated

import typer

from memstore.cli.options import DatabaseOption, JsonFlag
from memstore.cli.show import hint, print_json, say, show_records, table

app = typer.Typer(help="See what waits for the workers.", no_args_is_help=True, rich_markup_mode=None)
ConcurrencyOption = Annotated[
    int, typer.Option("--concurrency", "-c", min=1, max=256, metavar="N", help="Conversations at a time.")
]


def worker(concurrency: ConcurrencyOption = 4, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Derive what is pending, as it comes, until Ctrl-C or SIGTERM; what runs then is finished first.

    Start as many as you like, on any machines that reach the database: each conversation is one worker's at a time.

    JSON, when it ends: {"messages", "units", "summaries", "facts", "failed": integers}.
    """
    import asyncio

    from memstore.memory.worker import work

    show_records()
    hint("working; Ctrl-C stops it")
    made = asyncio.run(work(database, concurrency=concurrency))
    if as_json:
        print_json(made)
    else:
        say(", ".join(f"{count:,} {name}" for name, count in made.items()))


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
    from memstore.cli.stores import opened

    with opened(database) as store:
        counts, found = store.job_counts(), store.jobs(failed=failed, limit=limit)
    if as_json:
        print_json({"counts": counts, "jobs": found})
        return
    table(
        ("job", "status", "attempts", "conversation", "went wrong"),
        [(one.id, one.status, one.attempts, one.conversation_id, one.error or "") for one in found],
    )
    hint(f"{counts.waiting} waiting, {counts.running} running, {counts.failed} failed; {counts.workers} workers")


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
    from memstore.cli.stores import opened

    if bool(ids) == every:
        raise typer.BadParameter("name jobs, or give --all.")
    with opened(database) as store:
        retried = store.retry_jobs(None if every else ids)
    if as_json:
        print_json({"retried": retried})
    else:
        say(f"{retried} jobs wait again")
