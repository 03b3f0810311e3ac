"""`demo`: the whole story on a sample history, in a store that is thrown away."""

from __future__ import annotations

import tempfile
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

import memstore
from memstore.cli.options import common, option
from memstore.cli.output import echo, echo_hint, list_derived, print_context, show_progress
from memstore.cli.recall import print_facts, print_hits
from memstore.text import quantify

USER, CONVERSATION = "alice", "lisbon"
DEMO_QUESTION = "What am I allergic to, and when do we fly to Lisbon?"
BUDGET = 1200
SYSTEM = "You are a travel assistant. Use what you remember of Alice."
FACTS_SHOWN, HITS_SHOWN = 9, 5


def demo(
    question: Annotated[str, typer.Argument(help="What to ask the sample history.")] = DEMO_QUESTION,
    budget: Annotated[int, option("N", "Tokens for the context.", "--budget", "-b", min=1)] = BUDGET,
) -> None:
    """Show the whole story on a sample history.

    Import, derive, facts, recall and context, in a store of its own that is thrown away.
    """
    sample = files("memstore.cli").joinpath("sample.jsonl")
    with (
        tempfile.TemporaryDirectory(prefix="memstore-demo-") as folder,
        as_file(sample) as path,
        memstore.open(f"embedded:{Path(folder) / 'store'}") as store,
    ):
        store.import_file(path)
        with show_progress("loading") as line:
            made = store.derive(progress=line.move, on_call=line.show_call)
        alice = store.user(USER)
        context = alice.conversation(CONVERSATION).context(question, budget=budget, system=SYSTEM)
        if not common.as_json:
            counts = store.stats()
            _print_step(
                1,
                "History in",
                f"{quantify(counts['messages'], 'message')} in {quantify(counts['conversations'], 'conversation')}",
            )
            derived = list_derived(made)
            _print_step(2, "Derived", f"{derived}; no LLM was asked")
            _print_step(3, "What is known of Alice", "what matters first")
            print_facts(alice.facts(limit=FACTS_SHOWN))
            _print_step(4, "Recalled", question)
            print_hits(alice.recall(question, limit=HITS_SHOWN))
            _print_step(5, "The context", "ready for a model\n")
            echo_hint("your own: memstore import FILE --user NAME, memstore derive, memstore context …")
        print_context(context)


def _print_step(number: int, what: str, detail: str) -> None:
    echo((f"\n{number}. {what}", "bold"), f": {detail}")
