import copy
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, strategies as st

from memstore.errors import ConfigurationError
from memstore.providers import Count, load_embedder
from memstore.testing import HashingEmbedder
from tests.helpers.conformance import check_embedder


def test_a_count_is_a_number_that_keeps_its_kind() -> None:
    tokens = Count(7, "upper_bound")
    assert (tokens, tokens.kind, str(tokens), json.dumps([tokens])) == (7, "upper_bound", "7", "[7]")
    for other in (copy.copy(tokens), copy.deepcopy(tokens), pickle.loads(pickle.dumps(tokens))):
        assert (other, other.kind) == (7, "upper_bound")
    assert type(tokens + 1) is int


@given(st.text(), st.integers(1, 64))
def test_every_text_has_a_unit_vector(text: str, dimensions: int) -> None:
    vector = HashingEmbedder(dimensions).embed_query(text)
    assert vector.dtype == np.float32
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_texts_that_share_words_are_near() -> None:
    check_embedder(HashingEmbedder(17))
    embedder = HashingEmbedder()
    query = embedder.embed_query("When does the ferry leave?")
    near, rooted, far = embedder.embed_documents(
        ["The ferry does leave at nine.", "Ferries leaving often.", "My sister grows tomatoes."]
    )
    assert query @ near > 0.5
    assert query @ near > query @ rooted > query @ far


def test_vectors_are_the_same_in_every_process() -> None:
    code = "from memstore.testing import *; print(HashingEmbedder(8).embed_query('ferry to Ischia').round(4).tolist())"
    results = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(results) == 1


def test_vectors_that_no_row_can_hold_are_refused_before_anything_is_stored() -> None:
    assert load_embedder("hashing:2000") is not None
    with pytest.raises(ConfigurationError, match="2,001 dimensions"):
        load_embedder("hashing:2001")
