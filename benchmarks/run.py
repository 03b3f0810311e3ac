#!/usr/bin/env python3
"""What memstore recalls, how fast, and beside whom: the figures of docs/reference/benchmarks.md and scale.md.

    benchmarks/run.py locomo                  evidence recall on LoCoMo, rankings and contexts
    benchmarks/run.py beam [--sizes 100K 1M]  evidence recall on BEAM; `--sizes 10M` ingest, memory and answers
    benchmarks/run.py peers                   recall and latency beside other memories, each in its own environment
    benchmarks/run.py peers --sets sizes      latency beside them as one user's memory grows
    benchmarks/run.py speed                   recall against embedding the question and one bare statement
    benchmarks/run.py scale                   the same for one user with a thousand to a million units
    benchmarks/run.py locomo --reranker cross-encoder:FOLDER
                                              the same with models that recall asks beside the embedder
    benchmarks/run.py docs                    put the figures of benchmarks/figures into the documentation

`--json FILE` writes the figures with command, commit, machine and versions, `--plot FILE.svg` draws them. `--store`
keeps the store of a run for the next one, `--cache` keeps vectors and peers' environments. The data is not part of
memstore: benchmarks/data.py says what it is; without it a benchmark says so and ends. The figures of other pages come
from other scripts of this folder, which those pages name.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path

from data import Missing
from platformdirs import user_cache_path
from plot import drawn
from report import FIGURES, ROOT, Table, filled, shown, written

PARTS = ("locomo", "beam", "peers", "speed", "scale")
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
SIZES = ("100K", "500K", "1M", "10M")
DERIVERS = ("embed", "facts", "summarize")
SETS = ("locomo", "beam", "sizes")
FEWEST = 21  # units of a user: 20 hits are asked for
# Options that not every part has: an option that is passed over in silence would stand in the figures' command.
OF_PARTS = {
    "plot": ("locomo", "beam", "peers"),
    "reranker": ("locomo", "beam", "peers"),
    "sizes": ("beam",),
    "derivers": ("beam",),
    "systems": ("peers",),
    "sets": ("peers",),
    "units": ("peers", "speed", "scale"),
    "beside": ("scale",),
}
# What of the command line says what was measured.
SAID = {
    "beam": ("sizes", "derivers"),
    "peers": ("sets", "systems", "units"),
    "speed": ("units",),
    "scale": ("units", "beside"),
}
DEFAULTS = {
    "reranker": "none",
    "sizes": ["100K", "500K", "1M"],
    "derivers": [*DERIVERS],
    "sets": ["locomo", "beam"],
    "beside": 0,
}


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


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; what would fail after hours of measuring fails here."""
    parser = _parser()
    options = parser.parse_args(arguments)
    for name, parts in OF_PARTS.items():
        if getattr(options, name) is None:
            setattr(options, name, DEFAULTS.get(name))
        elif options.part not in parts:
            parser.error(f"--{name} is of {', '.join(parts)}, not of {options.part}; leave it out")
    for name in ("json", "plot"):
        if path := getattr(options, name):
            _made_ready(parser, name, path)
    if options.systems:
        from rivals import PEERS  # brings Postgres along, which no other option needs

        if unknown := [one for one in options.systems if one not in PEERS]:
            parser.error(f"--systems {shlex.join(unknown)}: choose from {shlex.join(PEERS)}")
    return options


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
    parser.add_argument("--reranker", help="what reads the best hits once more, as the setting names it")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, help="of beam: 100K 500K 1M by default")
    parser.add_argument("--derivers", nargs="+", choices=DERIVERS, help="of beam's 10M: all by default")
    parser.add_argument("--systems", nargs="+", metavar="SYSTEM", help="of peers: some of them, by their names")
    parser.add_argument("--sets", nargs="+", choices=SETS, help="of peers: locomo beam by default")
    parser.add_argument(
        "--units", type=_enough, nargs="+", help="of speed, scale and peers' sizes: how many a user has"
    )
    parser.add_argument("--beside", type=int, help="of scale: so many users with 5,000 units each")
    return parser


def _enough(text: str) -> int:
    units = int(text) if text.isdecimal() else 0
    if units < FEWEST:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of {FEWEST} or more, of which 20 hits can be found")
    return units


def _made_ready(parser: argparse.ArgumentParser, name: str, path: Path) -> None:
    if path.is_dir():
        parser.error(f"--{name} {path} is a folder; name a file in it")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--{name}: no folder can be made for {path} ({error.strerror}); name another file")


def tables_of(part: str) -> Callable[[argparse.Namespace], Iterable[Table]]:
    """Give what measures a part; it is imported now, as each needs other things."""
    module = {"peers": "beside", "speed": "latency"}.get(part, part)
    return import_module(module).tables  # type: ignore[no-any-return]


def command(options: argparse.Namespace) -> str:
    """Give the command as anybody can give it: without the folders of this machine."""
    given = {name: getattr(options, name) for name in SAID.get(options.part, ())}
    if given.get("derivers") == DEFAULTS["derivers"]:
        del given["derivers"]
    listed = {name: values if isinstance(values, list) else [values] for name, values in given.items() if values}
    more = [f"--{name} {shlex.join(map(str, values))}" for name, values in listed.items()]
    if options.reranker != "none":
        more.append(f"--reranker {re.sub(r':[/~.].*/', ':FOLDER/', options.reranker)}")
    return " ".join(["benchmarks/run.py", options.part, *more])


if __name__ == "__main__":
    sys.exit(main())
