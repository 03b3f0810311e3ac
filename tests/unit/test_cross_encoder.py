"""Cross-encoders that are on this machine: a small one with random weights, as nothing is downloaded."""

from __future__ import annotations

import importlib
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from memstore.errors import ProviderError
from memstore.providers.minilm import FOLDER
from memstore.providers.sentence_transformers import CrossEncoderReranker, load_reranker
from tests.helpers.conformance import check_reranker

pytestmark = pytest.mark.torch

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
    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked for")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        patch.setattr(socket, "getaddrinfo", refuse)
        return load_reranker(str(folder))


def test_it_conforms(reranker: CrossEncoderReranker, folder: Path) -> None:
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


def test_threads_take_turns(reranker: CrossEncoderReranker) -> None:
    expected = reranker.scores(QUESTION, TEXTS)
    with ThreadPoolExecutor(4) as pool:
        for scores in pool.map(lambda _: reranker.scores(QUESTION, TEXTS), range(6)):
            assert np.array_equal(scores, expected)


def test_a_model_with_several_scores_is_no_reranker(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="gives 3 scores for a pair"):
        load_reranker(str(made(tmp_path, 3)))
