#!/usr/bin/env python3
"""What memstore recalls, how fast, and beside whom: every figure in the documentation comes from here.

    benchmarks/run.py locomo                  evidence recall on LoCoMo, rankings and contexts
    benchmarks/run.py beam [--sizes 100K 1M]  evidence recall on BEAM; `--sizes 10M` ingest, memory and answers
    benchmarks/run.py peers                   recall and latency beside other memories, each in its own environment
    benchmarks/run.py peers --sets sizes      latency beside them as one user's memory grows
    benchmarks/run.py speed                   recall against embedding the question and one bare statement
    benchmarks/run.py scale                   the same for one user with a thousand to a million units
    benchmarks/run.py locomo --reranker cross-encoder:FOLDER --rewriter ollama:NAME
                                              the same with models that recall asks beside the embedder
    benchmarks/run.py docs                    put the figures of benchmarks/figures into the documentation

`--json FILE` writes the figures with command, commit, machine and versions, `--plot FILE.svg` draws them. `--store`
keeps the store of a run for the next one, `--cache` keeps vectors and peers' environments. The data is not part of
memstore: benchmarks/data.py says what it is; without it a benchmark says so and ends.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path

from data import Missing
from platformdirs import user_cache_path
from plot import drawn
from report import FIGURES, ROOT, Table, filled, written

PARTS = ("locomo", "beam", "peers", "speed", "scale")
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
# What of the command line says what was measured.
SAID = {"beam": ["sizes"], "peers": ["sets", "systems", "units"], "speed": ["units"], "scale": ["units", "beside"]}


def main() -> int:
    """Run what was asked for."""
    options = parsed()
    if options.part == "docs":
        for page in PAGES:
            if (text := filled(before := page.read_text(encoding="utf-8"))) != before:
                page.write_text(text, encoding="utf-8")
        return 0
    try:
        found = shown(tables_of(options.part)(options))
    except Missing as reason:
        print(f"skipped: {reason}")
        return 0
    if options.json:
        written(options.json, command(options), found)
    if options.plot:
        options.plot.write_text(drawn(found), encoding="utf-8")
    return 0


def parsed() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=str(__doc__).partition("\n")[0], epilog=str(__doc__), formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("part", choices=(*PARTS, "docs"))
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="the folder of the data")
    parser.add_argument("--store", type=Path, help="keep stores in this folder for the next run")
    parser.add_argument("--cache", type=Path, default=user_cache_path("memstore") / "benchmarks")
    parser.add_argument("--json", type=Path, help=f"write the figures, to {FIGURES.relative_to(ROOT)}/PART.json")
    parser.add_argument("--plot", type=Path, help="draw them, as SVG")
    parser.add_argument(
        "--reranker", default="none", help="what reads the best hits once more, as the setting names it"
    )
    parser.add_argument(
        "--rewriter", default="none", help="a chat model that rewrites questions, as the setting names it"
    )
    parser.add_argument("--sizes", nargs="+", default=["100K", "500K", "1M"], help="of beam: 100K 500K 1M 10M")
    parser.add_argument("--derivers", nargs="+", default=["embed", "facts", "summarize"], help="of beam's 10M")
    parser.add_argument("--systems", nargs="+", help="of peers: some of them")
    parser.add_argument("--sets", nargs="+", default=["locomo", "beam"], help="of peers: locomo beam sizes")
    parser.add_argument("--units", type=int, nargs="+", help="of speed, scale and peers' sizes: how many a user has")
    parser.add_argument("--beside", type=int, default=0, help="of scale: so many users with 5,000 units each")
    return parser.parse_args()


def tables_of(part: str) -> Callable[[argparse.Namespace], Iterable[Table]]:
    """Give what measures a part; it is imported now, as each needs other things."""
    module = {"peers": "beside", "speed": "latency"}.get(part, part)
    return import_module(module).tables  # type: ignore[no-any-return]


def shown(tables: Iterable[Table]) -> list[Table]:
    """Print each table when it is there; give them all."""
    found = []
    for table in tables:
        print(f"\n{table.text()}", flush=True)
        found.append(table)
    return found


def command(options: argparse.Namespace) -> str:
    """Give the command as anybody can give it: without the folders of this machine."""
    more = []
    for name in SAID.get(options.part, []):
        if given := getattr(options, name):
            more.append(" ".join([f"--{name}", *map(str, given if isinstance(given, list) else [given])]))
    for name, model in (("--reranker", options.reranker), ("--rewriter", options.rewriter)):
        if model != "none":
            more.append(f"{name} {re.sub(r':[/~.].*/', ':FOLDER/', model)}")
    return " ".join(["benchmarks/run.py", options.part, *more])


if __name__ == "__main__":
    sys.exit(main())
