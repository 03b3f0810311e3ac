"""The command line, thin over the blocking store. Data goes to stdout; progress, logs and errors go to stderr.

Exit codes: 0 done, 1 failed or partly done, 2 usage, 3 database unreachable, 4 budget too small or too many tokens,
130 interrupted.
A command imports what it needs when it runs, so that `--help` is there at once.
"""

from __future__ import annotations

import gc
import sys
from typing import Annotated

import typer

from memstore.cli import (
    backfill,
    chat,
    count,
    db,
    demo,
    embeddings,
    erase,
    export,
    fact,
    history,
    mcp,
    names,
    questions,
    receipts,
    serve,
    settings,
    summaries,
    system,
    token,
    worker,
)
from memstore.cli.exits import ended, leave_in_order
from memstore.cli.show import never_fail_to_print, show_warnings

app = typer.Typer(
    name="memstore",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
    epilog="Exit codes: 0 done, 1 failed or partly done, 2 usage or settings, 3 database unreachable, "
    "4 budget too small or too many tokens, 130 interrupted.",
)
app.command("demo")(demo.demo)
app.command("import")(history.import_)
app.command("export")(export.export)
app.command("derive")(history.derive)
app.command("worker")(worker.worker)
app.command("serve")(serve.serve)
app.command("recall")(questions.recall)
app.command("context")(questions.context)
app.command("chat")(chat.chat)
app.command("facts")(questions.facts)
app.command("summaries")(summaries.summaries)
app.command("receipts")(receipts.receipts)
app.command("receipt")(receipts.receipt)
app.command("replay")(receipts.replay)
app.command("mcp")(mcp.mcp)
app.command("users")(names.users)
app.command("conversations")(names.conversations)
app.command("count")(count.count)
app.command("erasures")(erase.erasures)
app.command("verify-erasure")(erase.verify_erasure)
app.command("retain")(erase.retain)
app.command("letters")(system.letters)
app.command("stats")(system.stats)
app.command("doctor")(system.doctor)
app.add_typer(backfill.app, name="backfill")
app.add_typer(worker.app, name="jobs")
app.add_typer(embeddings.app, name="embeddings")
app.add_typer(fact.app, name="fact")
app.add_typer(token.app, name="token")
app.add_typer(erase.app, name="erase")
app.add_typer(settings.app, name="settings")
app.add_typer(db.app, name="db")


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"memstore {version('memstore')}")
        raise typer.Exit


@app.callback()
def options(
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show what memstore logs, and the tracebacks of warnings.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Persistent, hierarchical memory for LLM assistants, in Postgres."""
    show_warnings(verbose=verbose)


def main() -> None:
    """Run the command line; an error of memstore's becomes a line on stderr and an exit code."""
    gc.set_threshold(100_000)  # imports make many objects and no garbage
    never_fail_to_print()
    leave_in_order()
    code = ended(app)
    gc.freeze()  # Python need not look through them at its end
    sys.exit(code)
