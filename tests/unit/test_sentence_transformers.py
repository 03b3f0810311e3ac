"""Models of sentence-transformers that are on this machine: nothing is downloaded."""

import importlib
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from memstore.errors import ProviderError, ProviderMissing
from memstore.providers.minilm import FOLDER
from memstore.providers.sentence_transformers import (
    CrossEncoderReranker,
    SentenceTransformerEmbedder,
    load,
    load_reranker,
)
from tests.helpers.conformance import check_embedder, check_reranker

pytestmark = pytest.mark.torch


@contextmanager
def without_network() -> Iterator[None]:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked for")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        patch.setattr(socket, "getaddrinfo", refuse)
        yield


@pytest.fixture(scope="module")
def embedder() -> Iterator[SentenceTransformerEmbedder]:
    with without_network():
        yield load("all-MiniLM-L6-v2")


def test_it_conforms(embedder: SentenceTransformerEmbedder) -> None:
    check_embedder(embedder)
    assert embedder.name == "sentence-transformers:all-MiniLM-L6-v2"
    assert (embedder.dimensions, embedder.max_tokens) == (384, 254)


@pytest.mark.usefixtures("embedder")
@pytest.mark.parametrize("name", ["", "nobody/has-this-model", "./no-folder", "/no/such/folder", "a/b/c"])
def test_an_absent_model_is_asked_for(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ProviderMissing, match=r"hf download|no folder|Name the model"):
        load(name)
    assert "http" not in capfd.readouterr().err


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


# Cross-encoders: a small one with random weights, as nothing is downloaded


QUESTION = "When does the ferry leave?"
TEXTS = [f"The {number} ferries " * (1 + number % 40) + "leave at nine." for number in range(70)]


def made(folder: Path, outputs: int) -> Path:
    """Give the folder of a model with so many scores for a pair of texts."""
    transformers, torch = importlib.import_module("transformers"), importlib.import_module("torch")
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(FOLDER), local_files_only=True)
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    config = transformers.BertConfig(vocab_size=tokenizer.vocab_size, num_labels=outputs, **sizes)
    model = transformers.BertForSequenceClassification(config)
    model.classifier.weight.data *= 20_000  # scores far apart, as trained ones are
    model.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("cross-encoder"), 1)


@pytest.fixture(scope="module")
def reranker(folder: Path) -> CrossEncoderReranker:
    with without_network():
        return load_reranker(str(folder))


def test_a_reranker_conforms(reranker: CrossEncoderReranker, folder: Path) -> None:
    check_reranker(reranker)
    assert reranker.name == f"cross-encoder:{folder}"


def test_scores_are_the_library_s_own_before_they_are_squeezed(reranker: CrossEncoderReranker, folder: Path) -> None:
    library, torch = importlib.import_module("sentence_transformers"), importlib.import_module("torch")
    model = library.CrossEncoder(str(folder), local_files_only=True)
    pairs = [(QUESTION, text) for text in TEXTS]
    expected = model.predict(pairs, activation_fn=torch.nn.Identity(), show_progress_bar=False)
    scores = reranker.scores(QUESTION, TEXTS)
    assert np.allclose(scores, expected, rtol=1e-3)
    assert np.ptp(scores) > 1.5  # a sigmoid's are within 1
    assert not np.allclose(scores, reranker.scores("Who paints?", TEXTS), rtol=1e-2)


def test_a_model_with_several_scores_is_no_reranker(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="gives 3 scores for a pair"):
        load_reranker(str(made(tmp_path, 3)))
