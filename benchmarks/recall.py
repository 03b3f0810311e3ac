#!/usr/bin/env python3
"""Evidence recall at a token budget, on LoCoMo's conversations and questions. No model judges anything.

    benchmarks/recall.py [--data FOLDER] [--store FOLDER]

A question's evidence are the messages that answer it. Hits are rendered as "[8 May 2023] Alice: …" and packed in
order until the budget is full; the figure is the share of the evidence that is in, mean over questions, adversarial
ones apart. `--store` keeps the embedded store for the next run. Beside ours stands the floor "the newest messages".

The data is not part of memstore: LoCoMo (ACL 2024, CC BY-NC 4.0) as memstore-jsonl, `locomo-dev.jsonl`, and its
questions, `locomo-dev-questions.jsonl`, one object a line with user, question, category and evidence (external ids).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import mean

import memstore
from memstore import MemoryStore, ids
from memstore.providers import TokenCounter

BUDGETS = (500, 1000, 2000, 4000)
DEPTH = 400


def share(ranked: Iterable[tuple[str, str]], evidence: set[str], counter: TokenCounter) -> list[float]:
    """Give the share of the evidence within each budget; `ranked` are pairs of external id and rendered line."""
    found: set[str] = set()
    shares: list[float] = []
    used = 0
    for external_id, line in ranked:
        used += counter.count(f"{line}\n")
        while len(shares) < len(BUDGETS) and used > BUDGETS[len(shares)]:
            shares.append(len(found & evidence) / len(evidence))
        found.add(external_id)
    return shares + [len(found & evidence) / len(evidence)] * (len(BUDGETS) - len(shares))


def measure(store: MemoryStore, questions: list[dict[str, object]]) -> dict[str, dict[str, list[list[float]]]]:
    """Give the shares of every question, by system and category."""
    result: dict[str, dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    lines: dict[str, dict[str, tuple[str, str]]] = {}
    for question in questions:
        user = str(question["user"])
        scope = store.user(user)
        if user not in lines:
            found = scope.conversation(user).messages()
            lines[user] = {
                str(one.id): (str(one.external_id), f"[{one.occurred_at:%d %B %Y}] {one.name}: {one.text}")
                for one in found
            }
        evidence = set(map(str, question["evidence"]))  # type: ignore[call-overload]
        hits = scope.recall(str(question["question"]), limit=DEPTH, tiers=["messages"])
        category = str(question["category"])
        ours = (lines[user][str(hit.id)] for hit in hits)
        result["memstore"][category].append(share(ours, evidence, store.counter))
        result["newest first"][category].append(share(reversed(lines[user].values()), evidence, store.counter))
    return result


def show(result: dict[str, dict[str, list[list[float]]]]) -> None:
    """Print a row for each system and category."""
    print(f"{'evidence recall, %':<36}" + "".join(f"{f'@{budget}':>8}" for budget in BUDGETS) + f"{'questions':>11}")
    for system, by_category in result.items():
        asked = [row for category, rows in by_category.items() if category != "adversarial" for row in rows]
        rows = {"all but adversarial": asked, **dict(sorted(by_category.items()))}
        for category, shares in rows.items():
            figures = "".join(f"{100 * mean(row[n] for row in shares):8.1f}" for n in range(len(BUDGETS)))
            print(f"{system + ', ' + category:<36}{figures}{len(shares):>11}")


def main() -> int:
    """Import, derive, ask."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--store", type=Path)
    options = parser.parse_args()
    history, asked = options.data / "locomo-dev.jsonl", options.data / "locomo-dev-questions.jsonl"
    if not history.is_file() or not asked.is_file():
        print(f"skipped: {options.data} has no {history.name} and {asked.name}; name their folder with --data")
        return 0
    with tempfile.TemporaryDirectory(prefix="memstore-bench-") as folder:
        place = options.store or Path(folder) / "store"
        with memstore.open(f"embedded:{place}") as store:
            store.import_file(history)
            report = store.derive()
            assert not report.failed, report.failed
            every = [json.loads(line) for line in asked.read_text(encoding="utf-8").splitlines()]
            show(measure(store, [one for one in every if one["evidence"] and ids.user_id(one["user"])]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
