"""The default embedder: the vectors of sentence-transformers, from a graph that is made anew, in threads and forks."""

import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from memstore.errors import EmbedderMismatch
from memstore.providers import MINILM, load_embedder, load_stored_embedder
from memstore.providers.minilm import MAX_BATCH_TEXTS, MiniLM, load
from memstore.settings import ONNX_MINILM
from tests.helpers.conformance import check_embedder

ROOT = Path(__file__).parents[2]
# English in sizes from nothing to ten thousand characters, other scripts, and what tokenizers stumble over.
TEXTS = [
    "",
    " ",
    "x",
    "I'm allergic to peanuts.",
    "Ich bin gegen Erdnüsse allergisch, außer in Schokolade.",
    "我对花生过敏，星期五坐火车去里斯本。",
    "😀👩‍👩‍👧‍👦 🇵🇹 peanuts 🥜!!!",
    "a \ud800 lone surrogate",
    "x" * 101,
    "The ferry leaves at nine. " * 400,
    "def f(x):\n\treturn {'a': [1, 2, 3][x]}\n",
    *(f"On {day} May we walked {day * 7} miles to town number {day}, {'and back ' * day}." for day in range(1, 30)),
]


@pytest.fixture(scope="module")
def embedder() -> MiniLM:
    return load("")


def test_it_conforms(embedder: MiniLM) -> None:
    check_embedder(embedder)
    assert embedder.name == "sentence-transformers:all-MiniLM-L6-v2"
    assert (embedder.dimensions, embedder.max_tokens) == (384, 254)


def test_it_is_the_default_and_serves_vectors_that_sentence_transformers_made() -> None:
    default = load_embedder(ONNX_MINILM)
    assert isinstance(default, MiniLM)
    assert load_stored_embedder(MINILM, 384) is default
    with pytest.raises(EmbedderMismatch):
        load_stored_embedder(MINILM, 385)


@pytest.mark.torch
def test_vectors_are_those_of_sentence_transformers(embedder: MiniLM) -> None:
    other = load_embedder(MINILM)
    assert other is not None
    assert type(other) is not MiniLM
    assert (other.name, other.dimensions, other.max_tokens) == (embedder.name, 384, 254)
    made, theirs = embedder.embed_documents(TEXTS), other.embed_documents(TEXTS)
    assert (made * theirs).sum(axis=1).min() >= 0.999999
    for text in TEXTS:
        assert embedder.count(text) == other.count(text)
        assert embedder.embed_query(text) @ other.embed_query(text) >= 0.999999


def test_the_graph_is_what_the_script_makes() -> None:
    check = [sys.executable, ROOT / "tools" / "minilm_graph.py", "--check"]
    ran = subprocess.run(check, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_word_embeddings_are_kept_in_half_precision_and_all_else_as_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("", ".builders", ".builders.hooks", ".builders.hooks.plugin", ".builders.hooks.plugin.interface"):
        monkeypatch.setitem(sys.modules, f"hatchling{name}", module := ModuleType(f"hatchling{name}"))
    monkeypatch.setattr(module, "BuildHookInterface", object, raising=False)
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import fetch_model

    words = np.linspace(-1, 1, 2 * fetch_model.COLUMNS, dtype=np.float32).reshape(2, -1)
    more = np.arange(6, dtype=np.float32)
    header = {
        "__metadata__": {"format": "pt"},
        "more": {"dtype": "F32", "shape": [6], "data_offsets": [words.nbytes, words.nbytes + more.nbytes]},
        fetch_model.HALF_PRECISION: {"dtype": "F32", "shape": [2, 384], "data_offsets": [0, words.nbytes]},
    }
    text = json.dumps(header).encode()
    made = fetch_model.to_half_precision(struct.pack("<Q", len(text)) + text + words.tobytes() + more.tobytes())
    (size,) = struct.unpack_from("<Q", made)
    kept, data = json.loads(made[8 : 8 + size]), made[8 + size :]
    assert size % 8 == 0
    assert [kept["__metadata__"], kept["more"]["dtype"]] == [{"format": "pt"}, "F32"]
    start, stop = kept["more"]["data_offsets"]
    assert np.array_equal(np.frombuffer(data[start:stop], np.float32), more)
    start, stop = kept[fetch_model.HALF_PRECISION]["data_offsets"]
    halves = np.frombuffer(data[start:stop], np.float16).reshape(2, -1)
    assert kept[fetch_model.HALF_PRECISION]["dtype"] == "F16"
    assert np.array_equal(halves, words.astype(np.float16))


def test_what_is_beyond_the_window_is_not_seen(embedder: MiniLM) -> None:
    seen = "word " * 254
    assert np.array_equal(embedder.embed_query(seen), embedder.embed_query(seen + "peanuts"))
    assert not np.array_equal(embedder.embed_query(seen), embedder.embed_query("word " * 253 + "peanuts"))


def test_the_number_of_threads_changes_no_bit() -> None:
    one, three = MiniLM(1).embed_documents(TEXTS), MiniLM(3).embed_documents(TEXTS)
    assert np.array_equal(one, three)


def test_a_question_waits_for_no_ingestion(embedder: MiniLM, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is computed while every thread that embeds texts is held up in a batch."""
    compute, held, go = embedder._embed, threading.Event(), threading.Event()

    def slow(tokens: list[list[int]]) -> object:
        if len(tokens) > 1:
            held.set()
            go.wait(20)
        return compute(tokens)

    monkeypatch.setattr(embedder, "_embed", slow)
    with ThreadPoolExecutor(1) as pool:
        batches = pool.submit(embedder.embed_documents, ["The ferry leaves."] * MAX_BATCH_TEXTS * 8)
        assert held.wait(20)
        assert embedder.embed_query("When does the ferry leave?").shape == (384,)
        assert not batches.done()
        go.set()
        assert batches.result().shape == (MAX_BATCH_TEXTS * 8, 384)


def await_exit(child: int, seconds: float = 30.0) -> int | None:
    """Return how a child ended; None where it did not, and is ended here."""
    last = time.monotonic() + seconds
    while time.monotonic() < last:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_was_forked_amid_a_batch_embeds(embedder: MiniLM) -> None:
    texts = ["The ferry to Ischia leaves at nine from the old harbour."] * MAX_BATCH_TEXTS * 10
    expected = embedder.embed_documents(texts[:MAX_BATCH_TEXTS])
    with ThreadPoolExecutor(1) as pool:
        batches = pool.submit(embedder.embed_documents, texts * 3)
        time.sleep(0.05)
        children = []
        for _ in range(3):
            if not (child := os.fork()):
                try:
                    found = embedder.embed_documents(texts[:MAX_BATCH_TEXTS])
                    os._exit(0 if np.array_equal(found, expected) else 1)
                finally:
                    os._exit(2)
            children.append(child)
        assert [await_exit(child) for child in children] == [0, 0, 0]
        batches.result()
