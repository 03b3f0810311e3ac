"""`demo`: the whole story on a sample history, in a store that is thrown away."""

from __future__ import annotations

import tempfile
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

import memstore
from memstore.cli.options import common, option
from memstore.cli.output import echo, echo_hint, format_derived_counts, print_context, show_progress
from memstore.cli.recall import print_facts, print_hits
from memstore.text import quantify


def demo(
    question: Annotated[
        str, typer.Argument(help="What to ask the sample history.")
    ] = "What am I allergic to, and when do we fly to Lisbon?",
    budget: Annotated[int, option("N", "Tokens for the context.", "--budget", "-b", min=1)] = 1200,
) -> None:
    """Show the whole story on a sample history.

    Import, derive, facts, recall and context, in a store of its own that is thrown away.
    """
    with (
        tempfile.TemporaryDirectory(prefix="memstore-demo-") as folder,
        as_file(files("memstore.cli") / "sample.jsonl") as path,
        memstore.open(f"embedded:{Path(folder) / 'store'}") as store,
    ):
        store.import_file(path)
        with show_progress("loading") as line:
            made = store.derive(progress=line.update, on_call=line.show_call)
        alice = store.user("alice")
        system = "You are a travel assistant. Use what you remember of Alice."
        context = alice.conversation("lisbon").context(question, budget=budget, system=system)
        if not common.as_json:
            counts = store.stats()
            said, where = quantify(counts["messages"], "message"), quantify(counts["conversations"], "conversation")
            _print_step(1, "History in", f"{said} in {where}")
            _print_step(2, "Derived", f"{format_derived_counts(made)}; no LLM was asked")
            _print_step(3, "What is known of Alice", "what matters first")
            print_facts(alice.facts(limit=9))
            _print_step(4, "Recalled", question)
            print_hits(alice.recall(question, limit=5))
            _print_step(5, "The context", "ready for a model\n")
            echo_hint("your own: memstore import FILE --user NAME, memstore derive, memstore context …")
        print_context(context)


def _print_step(number: int, what: str, detail: str) -> None:
    echo((f"\n{number}. {what}", "bold"), f": {detail}")
