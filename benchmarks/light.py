#!/usr/bin/env python3
"""How light the default embedder is, compared with the same model by sentence-transformers.

    benchmarks/light.py --torch PYTHON [--data FOLDER] [--rounds 5] [--parts PART …] [--json FILE]

Run it in an environment that has memstore alone; PYTHON is that of another one, which has memstore with its extra
sentence-transformers. A measurement is a process of its own. The two take turns, `--rounds` times (store and locomo
once); medians are shown, and of the ratios the median of each turn's.

disk      megabytes of an environment; torch is the build that it has
vector    from the start of Python to the first vector
recall    `memstore recall` as a new process; Postgres runs
snippet   the first program of the README, from an empty home to its last line; Postgres is made and started
question  a question's vector, p50 of 300
batches   1,500 messages of LoCoMo encoded, texts a second
store     recall() of a user with 5,000 chunks, p50 of 200, the question's embedding included
locomo    all three tiers of LoCoMo derived by rules, as times the encoding of its chunks alone
beam      the same of BEAM 100K, by memstore's embedder alone
cosine    vectors of 1,000 messages of LoCoMo and of other scripts and lengths: the smallest cosine of a pair
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from report import ROOT, Cell, Table, reported

import memstore
from memstore.derive.chunks import Chunker
from memstore.derive.dependencies import Dependencies
from memstore.providers import MINILM, Embedder, load_counter, load_embedder
from memstore.settings import ONNX_MINILM, Settings

QUESTION = "What did Caroline say about the support group in May?"
OTHERS = [
    "",
    "Ich bin gegen Erdnüsse allergisch, außer in Schokolade.",
    "我对花生过敏，星期五坐火车去里斯本。",
    "😀👩‍👩‍👧‍👦 🇵🇹 peanuts 🥜!!!",
    "The ferry leaves at nine. " * 400,  # 10,400 characters
]
BATCH = 512  # texts, as the derivers have them


def embedder(name: str) -> Embedder:
    """Return a loaded embedder."""
    found = load_embedder(name)
    assert found is not None
    return found


def p50(call: Callable[[], object], times: int) -> float:
    """Return the median of a call in milliseconds."""
    taken = []
    for number in range(times + 10):
        begun = perf_counter()
        call()
        if number >= 10:
            taken.append(1000 * (perf_counter() - begun))
    return median(taken)


# What runs in a process of its own ------------------------------------------------------------------------------------
def question(name: str, _: Path) -> float:
    own = embedder(name)
    return p50(lambda: own.embed_query(QUESTION), 300)


def batches(name: str, data: Path) -> float:
    own, texts = embedder(name), [line["content"] for line in islice(lines(data, "locomo-dev.jsonl"), 1500)]
    own.embed_documents(texts[:64])
    begun = perf_counter()
    for start in range(0, len(texts), BATCH):
        own.embed_documents(texts[start : start + BATCH])
    return len(texts) / (perf_counter() - begun)


def store(name: str, data: Path) -> float:
    with opened(name) as made:
        talk = made.user("alice").conversation("all")
        said = [{"role": "user", "content": line["content"]} for line in islice(lines(data, "locomo-dev.jsonl"), 2500)]
        talk.add_many(said)
        made.user("alice").conversation("again").add_many(said)
        made.derive()
        assert made.stats()["chunks"] >= 5000
        return p50(lambda: made.user("alice").recall(QUESTION), 200)


def locomo(name: str, data: Path) -> float:
    return derived(name, list(lines(data, "locomo-dev.jsonl")))


def beam(name: str, data: Path) -> float:
    return derived(name, list(lines(data, "beam-100K-dev.jsonl.gz")))


def derived(name: str, history: Sequence[Any]) -> float:
    """Return the seconds of deriving, as times those of encoding the same chunks."""
    own = embedder(name)
    with tempfile.TemporaryDirectory() as folder, opened(name) as made:
        file = Path(folder) / "history.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in history), encoding="utf-8")
        made.import_file(file)
        cutter = Chunker(Dependencies(load_counter(Settings().counter), own, Settings()))
        users = [made.user(user) for user in made.users()]
        talks = [user.conversation(one.name) for user in users for one in user.conversations()]
        texts = [text for talk in talks for message in talk.messages() for _, text in cutter.chunks(message)]
        assert made.embedder is not None
        begun = perf_counter()
        for start in range(0, len(texts), BATCH):
            made.embedder.embed_documents(texts[start : start + BATCH])
        encoded = perf_counter()
        assert not made.derive().failed
        return (perf_counter() - encoded) / (encoded - begun)


def vectors(name: str, data: Path) -> list[list[float]]:
    texts = [line["content"] for line in islice(lines(data, "locomo-dev.jsonl"), 1000)]
    made: list[list[float]] = embedder(name).embed_documents([*texts, *OTHERS]).tolist()
    return made


def lines(data: Path, name: str) -> list[Any]:
    path = data / name
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in raw.splitlines()]


def opened(name: str) -> memstore.MemoryStore:
    folder = tempfile.mkdtemp(prefix="memstore-bench-")
    return memstore.open(f"embedded:{folder}/store", settings={"embedder": name})


INSIDE = {part.__name__: part for part in (question, batches, store, locomo, beam, vectors)}


# What is seen from outside --------------------------------------------------------------------------------------------
class Side:
    """An environment and the embedder that is measured in it."""

    def __init__(self, python: str, name: str, data: Path) -> None:
        self.python, self.name, self._data = python, name, data

    def inside(self, part: str) -> Any:
        """Return what a part gives in a process of this environment."""
        return json.loads(self.ran([str(Path(__file__)), "--inside", part, self.name, "--data", str(self._data)]))

    def ran(self, words: Sequence[str], **more: str) -> str:
        """Return what this environment's Python prints, with settings."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("MEMSTORE_")}
        settings = {"MEMSTORE_CONFIG": "", "MEMSTORE_EMBEDDER": self.name, "HF_HUB_OFFLINE": "1"}
        done = subprocess.run([self.python, *words], env=own | settings | more, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def seconds(self, words: Sequence[str], **more: str) -> float:
        """Return how long a process takes."""
        begun = perf_counter()
        self.ran(words, **more)
        return perf_counter() - begun

    def disk(self) -> float:
        """Return the megabytes of the environment, the model of memstore's own checkout or wheel included."""
        size = "import sys; from memstore.providers.minilm import FOLDER; print(sys.prefix, FOLDER)"
        prefix, model = map(Path, self.ran(["-c", size]).split())
        places = {prefix} if model.is_relative_to(prefix) else {prefix, model}
        files = [file for place in places for file in place.rglob("*") if file.is_file() and not file.is_symlink()]
        return sum(file.stat().st_size for file in files) / 1e6

    def vector(self) -> float:
        code = f"from memstore.providers import load_embedder; load_embedder({self.name!r}).embed_query('ferry')"
        return self.seconds(["-c", code])

    def recall(self, url: str) -> float:
        return self.seconds(["-m", "memstore", "recall", "What must Alice not eat?", "--user", "alice", "-d", url])

    def snippet(self) -> float:
        code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
        assert code is not None
        with tempfile.TemporaryDirectory() as home:
            return self.seconds(["-c", code[1]], HOME=home, XDG_DATA_HOME=home, XDG_CACHE_HOME=home)


def tables(options: argparse.Namespace) -> Table:
    """Return the one table."""
    ours, theirs = Side(sys.executable, ONNX_MINILM, options.data), Side(options.torch, MINILM, options.data)
    rows: list[list[Cell]] = []

    def row(what: str, measure: Callable[[Side], float], goal: str, *, rounds: int = options.rounds) -> None:
        pairs = [(measure(ours), measure(theirs)) for _ in range(rounds)]
        mine, other = (median(side) for side in zip(*pairs, strict=True))
        ratio = median(one / two for one, two in pairs)
        rows.append([what, *(float(f"{figure:.3g}") for figure in (mine, other)), round(ratio, 2), goal])
        print(rows[-1], file=sys.stderr, flush=True)

    with opened(ONNX_MINILM) as made:
        made.import_file(ROOT / "memstore" / "cli" / "sample.jsonl")
        made.derive()
        parts: dict[str, Callable[[], None]] = {
            "disk": lambda: row("environment, MB", Side.disk, "≤ 500", rounds=1),
            "vector": lambda: row("start of Python to the first vector, s", Side.vector, "≤ 0.8 s"),
            "recall": lambda: row("`memstore recall`, s", lambda side: side.recall(made.url), "≤ 1.0 s"),
            "snippet": lambda: row("the README's first program, s", Side.snippet, "≤ 4 s"),
            "question": lambda: row("a question's vector, ms", lambda side: side.inside("question"), "≤ 0.6 ×"),
            "batches": lambda: row("texts encoded a second", lambda side: side.inside("batches"), "≥ 0.95 ×"),
            "store": lambda: row("recall of 5,000 chunks, ms", lambda side: side.inside("store"), "≤ 0.6 ×", rounds=1),
            "locomo": lambda: row(
                "LoCoMo derived, × its encoding", lambda side: side.inside("locomo"), "≤ 1.25", rounds=1
            ),
            "beam": lambda: rows.append(
                ["BEAM 100K derived, × its encoding", round(ours.inside("beam"), 2), None, None, "≤ 1.25"]
            ),
        }
        for part in options.parts or parts:
            if part in parts:
                parts[part]()
    if not options.parts or "cosine" in options.parts:
        made, other = (np.array(side.inside("vectors")) for side in (ours, theirs))
        rows.append(
            ["smallest cosine of 1,005 pairs", f"{(made * other).sum(axis=1).min():.7f}", None, None, "≥ 0.999999"]
        )
    columns = ("", ONNX_MINILM, "sentence-transformers", "ratio", "goal")
    return Table("light", "The same model by ONNX Runtime and by sentence-transformers", columns, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", metavar="PYTHON")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--parts", nargs="+")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--inside", nargs=2, metavar=("PART", "EMBEDDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        part, name = options.inside
        print(json.dumps(INSIDE[part](name, options.data.resolve())))
    elif not options.torch:
        parser.error("--torch: the Python of an environment with the extra sentence-transformers")
    else:
        reported([tables(options)], options.json)


if __name__ == "__main__":
    main()
