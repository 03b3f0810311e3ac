"""The whole story on a sample history (`demo`), how much is stored (`stats`), and whether all is well (`doctor`)."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from memstore.cli.show import DatabaseOption, JsonFlag, chat, err, meter, opened, out, print_json, progress, table
from memstore.errors import MemstoreError

USER, CONVERSATION = "alice", "lisbon"
QUESTION = "What should I avoid eating in Lisbon, and when do I fly?"
BUDGET = 1200
SYSTEM = "You are a travel assistant. Use what you remember of Alice."


def demo(
    question: Annotated[str, typer.Argument(help="What to ask the sample history.")] = QUESTION,
    budget: Annotated[int, typer.Option("--budget", "-b", min=1, help="Tokens for the context.")] = BUDGET,
    embedder: Annotated[str, typer.Option(help='As kind:model; "none" recalls by words alone.')] = "",
    as_json: JsonFlag = False,
) -> None:
    """Show the whole story on a sample history, in a store that is thrown away: import, derive, recall, context."""
    sample = files("memstore.cli").joinpath("sample.jsonl")
    settings = {"embedder": embedder} if embedder else {}
    say = err.print if as_json else out.print
    with (
        tempfile.TemporaryDirectory(prefix="memstore-demo-") as folder,
        as_file(sample) as path,
        opened(f"embedded:{Path(folder) / 'store'}", **settings) as store,
    ):
        done = store.import_file(path)
        say(f"[bold]1. History in[/]: {done.new} messages in {len(done.conversations)} conversations")
        with progress(as_json) as move:
            report = store.derive(progress=move)
        made = f"{report.units} units of recall, {report.summaries} summaries, {report.facts} facts"
        say(f"[bold]2. Derived[/], by rules and embeddings, without an LLM: {made}")
        alice = store.user(USER)
        say("\n[bold]3. What is known of Alice[/] (the latest of it)")
        for fact in alice.facts()[:6]:
            say(f"   {fact.type:<11} {fact.text}", markup=False)
        say(f"\n[bold]4. Recall[/]: {question}")
        for hit in alice.recall(question, limit=5):
            text = " ".join(hit.text.split())[:110]
            say(f"   {hit.score:.2f} {hit.tier:<9} {hit.occurred_at:%d %b %Y}  {text}", markup=False)
        context = alice.conversation(CONVERSATION).context(question, budget=budget, system=SYSTEM)
    if as_json:
        print_json({"messages": context.messages, "tokens": context.tokens, "receipt": context.receipt})
        return
    out.print("\n[bold]5. The context[/], ready for a model")
    chat(context)
    out.print()
    out.print(meter(context.receipt))
    out.print("\nYour own: memstore import FILE --user NAME · memstore derive · memstore context … ", markup=False)


def stats(
    user: Annotated[str | None, typer.Option("--user", "-u", help="Of this user only.")] = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Count what is stored."""
    with opened(database) as store:
        counts = store.stats(user=user)
    if as_json:
        print_json(counts)
    else:
        table("Stored", ("what", "how many"), [(name, f"{count:,}") for name, count in counts.items()])


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: fine, or what to do."""

    what: str
    ok: bool
    detail: str


def doctor(database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Look whether memstore can work here, and say what to do where it cannot."""
    found = list(findings(database))
    if as_json:
        print_json({"ok": all(one.ok for one in found), "checks": found})
    else:
        for one in found:
            out.print(("[green]ok  [/] " if one.ok else "[red]FAIL[/] ") + f"[bold]{one.what}[/]: ", end="")
            out.print(one.detail, markup=False)
    raise typer.Exit(0 if all(one.ok for one in found) else 1)


def findings(database: str | None) -> Iterator[Finding]:
    """Look at one thing after the other; a failure of one does not hide the others."""
    version = sys.version_info
    yield Finding("python", version >= (3, 11), f"{version.major}.{version.minor}.{version.micro} on {sys.platform}")
    yield _counter()
    yield _embedder()
    yield from _database(database)


def _counter() -> Finding:
    from memstore.providers import load_counter
    from memstore.settings import Settings

    name = Settings().counter
    try:
        tokens = load_counter(name).count("memstore")
    except MemstoreError as error:
        return Finding("token counter", False, str(error))
    return Finding("token counter", tokens > 0, f"{name}, vocabulary checked, no network")


def _embedder() -> Finding:
    from memstore.settings import Settings

    name = Settings().embedder
    missing = name.startswith("sentence-transformers") and find_spec("sentence_transformers") is None
    if missing:
        return Finding("embedder", False, f"{name} is not installed: pip install 'memstore[local]', or set embedder=none")
    return Finding("embedder", True, name)


def _database(database: str | None) -> Iterator[Finding]:
    from memstore.memory import database_url
    from memstore.store.database import capabilities, masked
    from memstore.store.migrations import status

    try:
        with opened(database) as store:
            able = capabilities(store.url)
            yield Finding("database", True, f"{database_url(database)} ({masked(store.url)})")
            version = f"PostgreSQL {able.server_version // 10000}, pgvector {able.pgvector}"
            yield Finding("server", True, version)
            yield Finding("schema", status(store.url).current, f"revision {status(store.url).revision}")
            confined = able.may_be_app or not able.ignores_policies
            yield Finding("isolation", confined, "row-level security holds" if confined else "this login ignores policies")
    except MemstoreError as error:
        yield Finding("database", False, str(error))
