#!/usr/bin/env python3
"""Who keeps a budget: the same conversations through LlamaIndex, LangChain and memstore, measured by one counter.

    benchmarks/budgets.py                                  everything, as in docs/reference/budgets.md
    benchmarks/budgets.py --systems memstore --seeds 1     some of it
    benchmarks/budgets.py --from docs/reference/figures/budgets.json      the tables of an earlier run

Peers are installed at pinned versions into environments of their own under --cache, and each system runs in a process
of its own (benchmarks/peers). A peer that cannot be installed is skipped, with the reason. Every result is
counted here, by OpenAI's published chat rule over o200k_base (benchmarks/peers/measure.py).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any

from platformdirs import user_cache_path

sys.path.insert(0, str(Path(__file__).parent / "peers"))

from conversations import BUDGETS, KINDS, Case, cases
from environments import PINS, System, Unavailable, python_of, vocabularies
from measure import broken_pairs, chat_tokens, text_tokens

SYSTEMS = (
    ("LlamaIndex", "default"), ("LlamaIndex", "o200k"), ("LlamaIndex", "tuned"),
    ("LangChain", "approximate"), ("LangChain", "tiktoken"), ("LangChain", "exact"), ("memstore", ""),
)  # fmt: skip
REFUSED = "BudgetTooSmall"


@dataclass(frozen=True)
class Outcome:
    """What a system made of a case: tokens by the rule, and of texts alone; 0 where it gave nothing."""

    system: str
    kind: str
    budget: int
    least: int
    is_plenty: bool
    tokens: int = 0
    text_tokens: int = 0
    broken_pairs: int = 0
    question_kept: bool = False
    error: str = ""

    @property
    def is_over(self) -> bool:
        return self.tokens > self.budget

    @property
    def excess(self) -> float:
        """By how many percent of the budget it is over."""
        return 100 * (self.tokens / self.budget - 1)


def outcome(system: str, case: Case, reply: dict[str, Any]) -> Outcome:
    """Measure an answer."""
    known = (system, case.kind, case.budget, case.least, case.is_plenty)
    if "error" in reply:
        return Outcome(*known, error=reply["error"])
    messages = reply["messages"]
    asked = any(one["role"] == "user" and case.question in (one["content"] or "") for one in messages)
    return Outcome(*known, chat_tokens(messages), text_tokens(messages), broken_pairs(messages), asked)


def run(options: argparse.Namespace) -> tuple[list[Outcome], dict[str, dict[str, str]]]:
    """Put every case to every system that can be had."""
    folder = vocabularies(options.cache)
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    drawn = list(cases(options.kinds, options.budgets, options.seeds))
    outcomes: list[Outcome] = []
    versions: dict[str, dict[str, str]] = {}
    pythons = dict(installed(options.systems, options.cache))
    for peer, variant in SYSTEMS:
        if peer not in pythons:
            continue
        begun = perf_counter()
        with System(peer, variant, pythons[peer], {"TIKTOKEN_CACHE_DIR": str(folder)}) as system:
            versions[peer] = system.versions
            outcomes += [outcome(system.name, case, system.answer(case.as_json())) for case in drawn]
        seconds = perf_counter() - begun
        print(f"{system.name}: {len(drawn)} cases, {seconds:.0f} s", file=sys.stderr, flush=True)
    return outcomes, versions


def installed(peers: Iterable[str], cache: Path) -> Iterator[tuple[str, Path]]:
    """Return the interpreters of the peers that can be had; tell why the others cannot."""
    for peer in peers:
        try:
            yield peer, python_of(peer, cache)
        except Unavailable as reason:
            print(f"skipped: {peer} cannot be installed: {reason}", file=sys.stderr, flush=True)


def percent(value: float) -> str:
    return f"{value:,.1f} %"


def used(outcomes: Sequence[Outcome]) -> list[float]:
    """Return the shares of the budget, in percent, of what held it where there was plenty to fill it."""
    return [100 * one.tokens / one.budget for one in outcomes if one.is_plenty and not one.is_over and not one.error]


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the figures of one system."""
    over = [one for one in outcomes if one.is_over]
    shares = used(outcomes)
    refused = [one for one in outcomes if one.error == REFUSED]
    given = [one for one in outcomes if not one.error]
    return {
        "cases": len(outcomes),
        "over": len(over),
        "largest_excess": max((one.excess for one in over), default=0.0),
        "median_excess": median([one.excess for one in over]) if over else 0.0,
        "over_by_text_alone": sum(one.text_tokens > one.budget for one in outcomes),
        "broken_pairs": sum(one.broken_pairs > 0 for one in outcomes),
        "without_question": sum(not one.question_kept for one in given),
        "without_question_though_it_fits": sum(not one.question_kept and one.least <= one.budget for one in given),
        "refused": len(refused),
        "refused_though_it_fits": sum(one.least <= one.budget for one in refused),
        "crashed": len(outcomes) - len(given) - len(refused),
        "plenty_and_held": len(shares),
        "plenty": sum(one.is_plenty for one in outcomes),
        "utilisation": median(shares) if shares else None,
        "utilisation_lowest_tenth": quantiles(shares, n=10)[0] if len(shares) > 1 else None,
    }


HEADS = (
    "system", "over", "largest", "median", "over by text alone", "broken pairs", "question lost", "refused", "crashed",
    "utilisation", "lowest tenth",
)  # fmt: skip


def overview(outcomes: Sequence[Outcome]) -> list[list[str]]:
    rows = []
    for system in systems_of(outcomes):
        told = summary([one for one in outcomes if one.system == system])
        excess = [percent(told[name]) if told["over"] else "–" for name in ("largest_excess", "median_excess")]
        shares = [told[name] for name in ("utilisation", "utilisation_lowest_tenth")]
        counts = ("over_by_text_alone", "broken_pairs", "without_question", "refused", "crashed")
        filled = ["–" if share is None else percent(share) for share in shares]
        filled[0] += f" ({told['plenty_and_held']} of {told['plenty']})"
        rows.append(
            [system, f"{told['over']} of {told['cases']}", *excess, *(str(told[name]) for name in counts), *filled]
        )
    return rows


def systems_of(outcomes: Iterable[Outcome]) -> list[str]:
    return list(dict.fromkeys(one.system for one in outcomes))


def spread(outcomes: Sequence[Outcome], group: Callable[[Outcome], str], cell: Callable[[list[Outcome]], str]) -> str:
    """Return a table with a row for each group and a column for each system."""
    systems = systems_of(outcomes)
    rows = [
        [name, *(cell([one for one in outcomes if one.system == system and group(one) == name]) for system in systems)]
        for name in dict.fromkeys(map(group, outcomes))
    ]
    return table(["", *systems], rows)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---", *["--:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def over_of(outcomes: list[Outcome]) -> str:
    over = [one.excess for one in outcomes if one.is_over]
    return f"{len(over)} of {len(outcomes)}, {percent(max(over))}" if over else "0"


def filled_of(outcomes: list[Outcome]) -> str:
    shares = used(outcomes)
    return percent(median(shares)) if shares else "–"


def tables(outcomes: Sequence[Outcome]) -> str:
    """Return all tables as Markdown."""
    parts = [
        table(HEADS, overview(outcomes)),
        "Over the limit, and by how much at most, by kind of text:",
        spread(outcomes, lambda one: one.kind, over_of),
        "By budget:",
        spread(outcomes, lambda one: f"{one.budget:,}", over_of),
        "Utilisation (median) by budget, where the limit was held and there was plenty to fill it:",
        spread(outcomes, lambda one: f"{one.budget:,}", filled_of),
        "Utilisation by kind:",
        spread(outcomes, lambda one: one.kind, filled_of),
    ]
    return "\n\n".join(parts)


def written(outcomes: Sequence[Outcome], versions: dict[str, dict[str, str]]) -> str:
    """Return the figures as JSON: a summary for each system, and every outcome as a list in the order of `columns`."""
    columns = list(asdict(outcomes[0]))
    head = {
        "versions": versions,
        "summary": {name: summary([one for one in outcomes if one.system == name]) for name in systems_of(outcomes)},
        "columns": columns,
    }
    rows = ",\n".join(json.dumps(list(asdict(one).values()), ensure_ascii=False) for one in outcomes)
    return json.dumps(head, indent=1, ensure_ascii=False)[:-2] + f',\n "outcomes": [\n{rows}\n ]\n}}\n'


def read(file: Path) -> list[Outcome]:
    figures = json.loads(file.read_text(encoding="utf-8"))
    return [Outcome(**dict(zip(figures["columns"], row, strict=True))) for row in figures["outcomes"]]


def main() -> int:
    """Run what was asked for, and print the tables."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--systems", nargs="+", choices=PINS, default=list(PINS))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND")
    parser.add_argument("--budgets", type=int, nargs="+", default=list(BUDGETS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--cache", type=Path, default=user_cache_path("memstore") / "benchmark-peers")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--from", type=Path, dest="earlier", help="read the figures of this file, and run nothing")
    options = parser.parse_args()
    if options.earlier:
        outcomes = read(options.earlier)
    else:
        outcomes, versions = run(options)
        if outcomes and options.json:
            options.json.write_text(written(outcomes, versions), encoding="utf-8")
    if outcomes:
        print(tables(outcomes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
