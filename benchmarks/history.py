#!/usr/bin/env python3
"""Which share of the evidence is in contexts of a new conversation, by kind of question: `histories/nadia.jsonl`.

    benchmarks/history.py [--budgets 500 1000 2000] [--store FOLDER]

Questions are for an assistant's own words in many verbs, for one event, and for what else was said on a day.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import mean

from data import objects

import memstore

FOLDER = Path(__file__).with_name("histories")


def main() -> None:
    """Import, derive, ask, and print percents."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--budgets", type=int, nargs="+", default=[500, 1000, 2000])
    parser.add_argument("--store", type=Path, help="keep the store in this folder for the next run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memstore-bench-") as folder:
        place = (options.store or Path(folder)).resolve()
        with memstore.open(f"embedded:{place}", settings={"receipt_retention_days": 0}) as store:
            store.import_file(FOLDER / "nadia.jsonl")
            store.derive()
            for kind, shares in sorted(measure(store, options.budgets).items()):
                print(
                    f"{kind:12}", *(f"{100 * mean(column):6.1f}" for column in zip(*shares, strict=True)), len(shares)
                )


def measure(store: memstore.MemoryStore, budgets: list[int]) -> dict[str, list[list[float]]]:
    """Return the share of each question's evidence of which a chunk is in a context of each budget, by kind."""
    user = store.user("nadia")
    names = {
        one.id: one.external_id for each in user.conversations() for one in user.conversation(each.name).messages()
    }
    shares: dict[str, list[list[float]]] = defaultdict(list)
    for asked in objects(FOLDER / "nadia-questions.jsonl"):
        evidence, found = {*asked["evidence"]}, []
        for budget in budgets:
            receipt = user.conversation("now").context(asked["question"], budget=budget).receipt
            shown = {names.get(id) for one in receipt.included for id in (one.id, *one.others) if id}
            found.append(len(shown & evidence) / len(evidence))
        for kind in (asked["kind"], "all"):
            shares[kind].append(found)
    return shares


if __name__ == "__main__":
    main()
