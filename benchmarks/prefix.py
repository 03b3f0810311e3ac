#!/usr/bin/env python3
"""How much of a context stays the same from turn to turn, and what that costs in evidence. No model judges anything.

    benchmarks/prefix.py [--data FOLDER] [--set locomo|beam-100K] [--budget 8000 …] [--conversations 5] [--curve]
                         [--json FILE]

A conversation is replayed: every second message is added and asked about, the next one answers it. `stable` is the part
of each context, in tokens, that is a prefix of messages shared with the context before it: what a model's prompt cache
saves. At the end the questions of the data set are asked; `evidence` is the share of the messages that answer them
which are in the context (as recent turns or hits; `facts too`: or as a fact that was made from them), adversarial
questions apart. `used` is the part of the budget that is used, of the contexts of those questions.

Compared with the defaults are the same packing with a window that begins anew at every turn ("no steps"), and one in
which the answers to the question keep their full weight at every budget ("full weight, no steps"), to bound the loss.
`--curve` adds the points in between.

The data is not part of memstore: see benchmarks/data.py; BEAM (ICLR 2026, CC BY-SA 4.0) as `beam-100K-dev.jsonl.gz`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median

import data
from report import Cell, Table, reported

import memstore
from memstore import ConversationScope, MemoryStore
from memstore.context import items, selection
from memstore.models import Json
from memstore.providers import TokenCounter

SYSTEM = "You are a helpful assistant with a long memory."
ANEW = 0.3  # of a context: where less is stable, the window has moved
Setting = tuple[int, float]  # turns of a step, tokens of the full weight
DEFAULT: Setting = (selection.STEP_TURNS, items.FULL_SHARE_ROOM)
FULL = 1e9
BESIDE: dict[str, Setting] = {"no steps": (0, DEFAULT[1]), "full weight, no steps": (0, FULL)}
CURVE: dict[str, Setting] = {
    **{f"steps of {turns} turns": (turns, DEFAULT[1]) for turns in (6, 24, 48)},
    **{f"full weight up to {tokens}": (DEFAULT[0], tokens) for tokens in (800, 1600, 4000)},
}


@dataclass
class Figures:
    """What was measured of one setting: shares from 0 to 1."""

    stable: list[float] = field(default_factory=list)
    evidence: list[float] = field(default_factory=list)
    facts_too: list[float] = field(default_factory=list)
    used: list[float] = field(default_factory=list)


@contextmanager
def setting(of: Setting) -> Iterator[None]:
    """Let contexts be packed with these constants."""
    kept = selection.STEP_TURNS, selection.STEP_SHARE, items.FULL_SHARE_ROOM
    selection.STEP_TURNS, items.FULL_SHARE_ROOM = of  # type: ignore[assignment]
    selection.STEP_SHARE = selection.STEP_SHARE if of[0] else 0.0
    try:
        yield
    finally:
        selection.STEP_TURNS, selection.STEP_SHARE, items.FULL_SHARE_ROOM = kept


def common_prefix(before: Sequence[Json], after: Sequence[Json], counter: TokenCounter) -> int:
    """Return the tokens of the messages with which both begin."""
    tokens = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        tokens += counter.count_message(other)
    return tokens


def replay(
    store: MemoryStore,
    conversation: ConversationScope,
    history: Sequence[Json],
    settings: dict[str, Setting],
    budget: int,
) -> dict[str, list[float]]:
    """Add the messages by twos, ask at each first one under every setting; give the stable shares."""
    found: dict[str, list[float]] = defaultdict(list)
    before: dict[str, list[Json]] = {}
    for place, message in enumerate(history):
        kept = ("role", "content", "name", "occurred_at", "external_id")
        conversation.add_many([{key: message[key] for key in kept if key in message}])
        if place % 2:
            store.derive(user=conversation.user.name)
            continue
        for name, of in settings.items():
            with setting(of):
                context = conversation.context(budget=budget, system=SYSTEM)
            if name in before:
                same = common_prefix(before[name], context.messages, store.counter)
                found[name].append(same / context.tokens)
            before[name] = context.messages
    return found


def ask(conversation: ConversationScope, asked: Sequence[Json], figures: Figures, budget: int) -> None:
    """Ask the questions of a data set, and measure what their contexts hold."""
    names = {one.id: str(one.external_id) for one in conversation.messages()}
    made_from = {fact.id: {names[source] for source in fact.sources} for fact in conversation.user.facts(state=None)}
    for question in asked:
        context = conversation.context(str(question["question"]), budget=budget, system=SYSTEM)
        inside = {names[one.id] for one in context.receipt.included if one.id in names}
        told = set().union(*(made_from.get(one.id, ()) for one in context.receipt.included if one.id is not None))
        wanted = set(map(str, question["evidence"]))
        figures.evidence.append(len(inside & wanted) / len(wanted))
        figures.facts_too.append(len((inside | told) & wanted) / len(wanted))
        figures.used.append(context.tokens / budget)


def table(results: dict[str, Figures], budget: int) -> Table:
    """Return a row for each setting, in percent."""
    columns = ("", "stable: median", "mean", "anew", "evidence", "facts too", "used: median", "least")
    rows: list[list[Cell]] = []
    for name, one in results.items():
        stable = [median(one.stable), mean(one.stable), mean(share < ANEW for share in one.stable)]
        shares = [*stable, mean(one.evidence), mean(one.facts_too), median(one.used), min(one.used)]
        rows.append([name, *(round(100 * share, 1) for share in shares)])
    any_one = next(iter(results.values()))
    title = f"Budget {budget:,}, {len(any_one.stable):,} turns, {len(any_one.evidence)} questions, in percent"
    return Table(f"prefix-{budget}", title, columns, rows)


def main() -> int:
    """Replay, ask; print the tables, write them."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--set", default="locomo")
    parser.add_argument("--budget", type=int, nargs="+", default=[8000])
    parser.add_argument("--conversations", type=int, default=5)
    parser.add_argument("--curve", action="store_true")
    parser.add_argument("--json", type=Path, help="write the figures")
    options = parser.parse_args()
    try:
        history, asked = (
            list(data.objects(data.file(options.data, f"{options.set}-dev{part}"))) for part in ("", "-questions")
        )
    except data.Missing as missing:
        print(f"skipped: {missing}")
        return 0
    settings = {"memstore": DEFAULT, **BESIDE, **(CURVE if options.curve else {})}
    users = list(dict.fromkeys(one["user"] for one in history))[: options.conversations]
    reported(tables(options, settings, users, history, asked), options.json)
    return 0


def tables(
    options: argparse.Namespace,
    settings: dict[str, Setting],
    users: Sequence[str],
    history: Sequence[Json],
    asked: Sequence[Json],
) -> Iterator[Table]:
    """Return the figures of each budget, each in a store of its own."""
    for budget in options.budget:
        results = {name: Figures() for name in settings}
        with (
            tempfile.TemporaryDirectory(prefix="memstore-bench-") as folder,
            memstore.open(f"embedded:{Path(folder) / 'store'}") as store,
        ):
            for user in users:
                measure(store, user, history, asked, settings, results, budget)
        yield table(results, budget)


def measure(
    store: MemoryStore,
    user: str,
    history: Sequence[Json],
    asked: Sequence[Json],
    settings: dict[str, Setting],
    results: dict[str, Figures],
    budget: int,
) -> None:
    """Replay one conversation and ask its questions."""
    conversation = store.user(user).conversation(user)
    told = [one for one in history if one["user"] == user]
    for name, shares in replay(store, conversation, told, settings, budget).items():
        results[name].stable += shares
    store.derive(user=user)
    known = [one for one in asked if one["user"] == user and one["evidence"] and one["category"] != "adversarial"]
    for name, of in settings.items():
        with setting(of):
            ask(conversation, known, results[name], budget)
    print(f"{user}: {len(told)} messages, {len(known)} questions", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
