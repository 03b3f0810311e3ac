"""The command line, thin over the blocking store. Data goes to stdout; progress, logs and errors go to stderr.

`options`, `output` and `session` (the store, hints, exit codes) are shared; every other module has the commands that
belong together. A command imports what it needs when it runs, so that `--help` is there at once.
"""

from __future__ import annotations

import gc
import sys
from typing import Annotated

import typer

from memstore._version import __version__
from memstore.cli import chat, db, demo, derive, doctor, erase, import_export, recall, server, space
from memstore.cli.options import command
from memstore.cli.output import configure_warning_log, escape_unencodable
from memstore.cli.session import exit_on_signals, run_command

app = typer.Typer(
    name="memstore",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
    epilog="Exit codes: 0 done, 1 failed or partly done, 2 usage or settings, 3 database unreachable, "
    "4 budget too small, 130 interrupted.",
)
command(app, takes_database=False)(demo.demo)
# In the order of --help.
for function in (
    import_export.import_, import_export.export, derive.derive, derive.worker, derive.jobs, server.serve,
    recall.recall, recall.context, chat.chat, recall.facts, recall.review, recall.tidy, recall.profile, server.mcp,
    server.hook, recall.users, recall.conversations, erase.erase, erase.erasures, erase.verify_erasure, doctor.stats,
    doctor.doctor,
):  # fmt: skip
    command(app, function.__name__.strip("_").replace("_", "-"))(function)
app.add_typer(derive.backfill_app, name="backfill")
app.add_typer(db.embeddings_app, name="embeddings")
app.add_typer(recall.fact_app, name="fact")
app.add_typer(space.app, name="space")
app.add_typer(server.token_app, name="token")
app.add_typer(server.webhook_app, name="webhooks")
app.add_typer(db.app, name="db")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"memstore {__version__}")
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
    configure_warning_log(verbose=verbose)


def main() -> None:
    # Imports make many objects and no garbage.
    gc.set_threshold(100_000)
    escape_unencodable()
    exit_on_signals()
    code = run_command(app)
    # Python need not look through all objects at its end.
    gc.freeze()
    sys.exit(code)
