#!/usr/bin/env python3
"""What memstore recalls and how fast, compared with others: the figures of docs/reference/benchmarks.md and scale.md.

    benchmarks/run.py locomo                  evidence recall on LoCoMo, rankings and contexts
    benchmarks/run.py beam [--sizes 100K 1M]  evidence recall on BEAM; `--sizes 10M` ingest, memory and answers
    benchmarks/run.py peers                   recall and latency of other memories, each in its own environment
    benchmarks/run.py peers --sets sizes      their latency as one user's memory grows
    benchmarks/run.py speed                   recall against embedding the question and one bare statement
    benchmarks/run.py scale                   the same for one user with a thousand to a million chunks
    benchmarks/run.py locomo --reranker cross-encoder:FOLDER
                                              the same with models that recall asks in addition to the embedder
    benchmarks/run.py docs                    put the figures of benchmarks/figures into the documentation

`--json FILE` writes the figures with command, commit, machine and versions, `--plot FILE.svg` draws them. `--store`
keeps the store of a run for the next one, `--cache` keeps vectors and peers' environments. The data is not part of
memstore: benchmarks/data.py says what it is; without it a benchmark says so and ends. The figures of other pages come
from other scripts of this folder, which those pages name.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from data import Missing
from platformdirs import user_cache_path
from plot import drawn
from report import FIGURES, ROOT, command_line, filled, shown, written

PARTS = {"locomo": "locomo", "beam": "beam", "peers": "beside", "speed": "latency", "scale": "scale"}  # their modules
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
DERIVERS = ("chunks", "facts", "summaries")


def main() -> int:
    """Run what was asked for."""
    options = _parser().parse_args()
    if options.part == "docs":
        for page in PAGES:
            if (text := filled(before := page.read_text(encoding="utf-8"))) != before:
                page.write_text(text, encoding="utf-8")
        return 0
    try:
        tables = shown(import_module(PARTS[options.part]).tables(options))
    except Missing as reason:
        print(f"skipped: {reason}")
        return 0
    if options.json:
        written(options.json, command_line(sys.argv), tables)
    if options.plot:
        options.plot.write_text(drawn(tables), encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=str(__doc__).partition("\n")[0], epilog=str(__doc__), formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("part", choices=(*PARTS, "docs"))
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="the folder of the data")
    parser.add_argument("--store", type=Path, help="keep stores in this folder for the next run")
    parser.add_argument("--cache", type=Path, default=user_cache_path("memstore") / "benchmarks")
    parser.add_argument("--json", type=Path, help=f"write the figures, to {FIGURES.relative_to(ROOT)}/PART.json")
    parser.add_argument("--plot", type=Path, help="draw them, as SVG; of locomo, beam and peers")
    parser.add_argument(
        "--reranker", default="none", help="what reads the best hits once more, as the setting names it"
    )
    parser.add_argument("--sizes", nargs="+", choices=("100K", "500K", "1M", "10M"), default=["100K", "500K", "1M"])
    parser.add_argument("--derivers", nargs="+", choices=DERIVERS, default=DERIVERS, help="of beam's 10M")
    parser.add_argument("--systems", nargs="+", metavar="SYSTEM", help="of peers: some of them, by their names")
    parser.add_argument("--sets", nargs="+", choices=("locomo", "beam", "sizes"), default=["locomo", "beam"])
    parser.add_argument("--chunks", type=int, nargs="+", help="of speed, scale and peers' sizes: how many a user has")
    parser.add_argument("--beside", type=int, default=0, help="of scale: so many users with 5,000 chunks each")
    return parser


if __name__ == "__main__":
    sys.exit(main())
