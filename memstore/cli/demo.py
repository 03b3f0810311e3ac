"""`demo`: the whole story on a sample history, in a store that is thrown away."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memstore.cli.options import JsonFlag
from memstore.cli.output import (
    echo,
    echo_hint,
    one_line,
    out,
    print_json,
    print_messages,
    progress_bars,
    token_meter,
)
from memstore.cli.session import open_store

if TYPE_CHECKING:
    from memstore import Context, Fact, Hit, MemoryStore

USER, CONVERSATION = "alice", "lisbon"
QUESTION = "What am I allergic to, and when do we fly to Lisbon?"
BUDGET = 1200
SYSTEM = "You are a travel assistant. Use what you remember of Alice."
FACTS, HITS = 6, 5  # shown


def demo(
    question: Annotated[str | None, typer.Argument(help="What to ask the sample history.")] = None,
    budget: Annotated[int, typer.Option("--budget", "-b", min=1, metavar="N", help="Tokens for the context.")] = BUDGET,
    embedder: Annotated[
        str | None, typer.Option(metavar="KIND:MODEL", help='Else MEMSTORE_EMBEDDER; "none" recalls by words alone.')
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show the whole story on a sample history.

    Import, derive, facts, recall and context, in a store of its own that is thrown away.

    JSON: {"messages", "tokens", "receipt"} of the context.
    """
    query = QUESTION if question is None else question
    with _sample_store(embedder) as store:
        if as_json:
            _derive(store)
        else:
            _print_story(store, query)
        context = store.user(USER).conversation(CONVERSATION).context(query, budget=budget, system=SYSTEM)
    if as_json:
        print_json(context.as_dict())
    else:
        _print_context(context)


@contextmanager
def _sample_store(embedder: str | None) -> Iterator[MemoryStore]:
    """Open a store with the sample history, and throw it away at the end."""
    sample = files("memstore.cli").joinpath("sample.jsonl")
    with (
        tempfile.TemporaryDirectory(prefix="memstore-demo-") as folder,
        as_file(sample) as path,
        open_store(f"embedded:{Path(folder) / 'store'}", **({"embedder": embedder} if embedder else {})) as store,
    ):
        store.import_file(path)
        yield store


def _derive(store: MemoryStore) -> str:
    """Derive everything; give what was made, in words."""
    with progress_bars("loading") as move:
        made = store.derive(progress=move)
    return f"{made.units} units of recall, {made.summaries} summaries, {made.facts} facts"


def _print_story(store: MemoryStore, question: str) -> None:
    counts = store.stats()
    _print_step(1, "History in", f"{counts['messages']} messages in {counts['conversations']} conversations")
    _print_step(2, "Derived", f"{_derive(store)}; no LLM was asked")
    alice = store.user(USER)
    _print_step(3, "What is known of Alice", "the latest of it")
    for fact in alice.facts()[:FACTS]:
        _print_fact(fact)
    _print_step(4, "Recalled", question)
    for hit in alice.recall(question, limit=HITS):
        _print_hit(hit)


def _print_step(number: int, what: str, detail: str) -> None:
    echo((f"\n{number}. {what}", "bold"), f": {detail}")


def _print_fact(fact: Fact) -> None:
    echo("   ", (f"{fact.type:<12}", "green"), one_line(fact.text))


def _print_hit(hit: Hit) -> None:
    day = f"{hit.occurred_at:%d %b %Y}"
    echo("   ", (f"{hit.score:.2f} {hit.tier:<10}{day}  ", "cyan"), one_line(hit.text)[:100])


def _print_context(context: Context) -> None:
    _print_step(5, "The context", "ready for a model\n")
    print_messages(context)
    echo()
    out.print(token_meter(context.receipt))
    echo_hint("your own: memstore import FILE --user NAME, memstore derive, memstore context …")
