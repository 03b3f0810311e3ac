"""The command line, thin over the blocking store. Data goes to stdout; progress, logs and errors go to stderr.

Exit codes: 0 done, 1 failed or partly done, 2 usage, 3 database unreachable, 4 budget too small.
"""

from __future__ import annotations

import os
import sys

import typer

from memstore.cli import db, history, questions, system
from memstore.errors import BudgetTooSmall, ConfigurationError, DatabaseUnreachable, EmbeddedError, MemstoreError

app = typer.Typer(
    name="memstore",
    help="Persistent, hierarchical memory for LLM assistants, in Postgres.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("demo")(system.demo)
app.command("import")(history.import_)
app.command("derive")(history.derive)
app.command("recall")(questions.recall)
app.command("context")(questions.context)
app.command("facts")(questions.facts)
app.command("stats")(system.stats)
app.command("doctor")(system.doctor)
app.add_typer(db.app, name="db")

EXIT_CODES = {
    BudgetTooSmall: 4,
    DatabaseUnreachable: 3,
    EmbeddedError: 3,
    ConfigurationError: 2,
    MemstoreError: 1,
}


def main() -> None:
    """Run the command line; errors of memstore's become a line on stderr and an exit code."""
    try:
        app()
    except MemstoreError as error:
        print(f"memstore: {error}", file=sys.stderr)
        sys.exit(next(code for kind, code in EXIT_CODES.items() if isinstance(error, kind)))
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
