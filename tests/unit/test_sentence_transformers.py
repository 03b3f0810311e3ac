from __future__ import annotations

import importlib
import socket
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from memstore.errors import ProviderMissing
from memstore.providers.sentence_transformers import SentenceTransformerEmbedder, load
from tests.helpers.conformance import check_embedder

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def embedder() -> Iterator[SentenceTransformerEmbedder]:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked for")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        patch.setattr(socket, "getaddrinfo", refuse)
        yield load("all-MiniLM-L6-v2")


def test_it_conforms(embedder: SentenceTransformerEmbedder) -> None:
    check_embedder(embedder)
    assert embedder.name == "sentence-transformers:all-MiniLM-L6-v2"
    assert (embedder.dimensions, embedder.max_tokens) == (384, 254)


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("hello world", 2), ("word " * 300, 300), ("x" * 101, 1)])
def test_count_knows_no_window(embedder: SentenceTransformerEmbedder, text: str, tokens: int) -> None:
    embedder.embed_query("a text that makes the tokenizer cut " * 50)
    assert embedder.count(text) == tokens


def test_a_lone_surrogate_is_the_replacement_character(embedder: SentenceTransformerEmbedder) -> None:
    assert np.array_equal(embedder.embed_query("a \ud800 b"), embedder.embed_query("a \ufffd b"))
    assert embedder.count("a \ud800 b") == embedder.count("a \ufffd b")


@pytest.mark.usefixtures("embedder")
@pytest.mark.parametrize("name", ["", "nobody/has-this-model", "./no-folder", "/no/such/folder", "a/b/c"])
def test_an_absent_model_is_asked_for(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ProviderMissing, match=r"hf download|no folder|Name the model"):
        load(name)
    assert "http" not in capfd.readouterr().err


def test_a_missing_extra_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    import_module = importlib.import_module

    def import_but(name: str) -> ModuleType:
        if name == "sentence_transformers":
            raise ModuleNotFoundError(name, name=name)
        return import_module(name)

    monkeypatch.setattr(importlib, "import_module", import_but)
    with pytest.raises(ProviderMissing, match=r"\.\[sentence-transformers\]"):
        load("all-MiniLM-L6-v2")


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


@pytest.mark.usefixtures("embedder")
def test_vectors_in_half_the_precision_have_unit_length() -> None:
    half = load("all-MiniLM-L6-v2")
    half._model.to(importlib.import_module("torch").bfloat16)
    made = half.embed_documents(["Ada is allergic to peanuts.", "The ferry leaves at nine."])
    assert made.dtype == np.float32
    assert np.allclose(np.linalg.norm(made, axis=1), 1, atol=1e-5)
