from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel

from memstore.errors import ConfigurationError, ModelAnswerInvalid, ModelUnavailable, PromptTooLong
from memstore.providers import Count, load_embedder
from memstore.testing import HashingEmbedder, ScriptedChatModel, WordCounter
from tests.helpers.conformance import check_chat_model, check_counter, check_embedder


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


def test_words_are_counted_by_the_chat_rule() -> None:
    check_counter(WordCounter())
    counter = WordCounter()
    assert counter.name == "words"
    assert counter.count(" one two\nthree ") == 3
    assert counter.count_messages([]) == 3
    assert counter.count_messages([{"role": "user", "name": "ada", "content": "one two"}]) == 3 + 3 + 1 + 4
    assert counter.count_message({"role": "user", "content": None}) == 4


class _Place(BaseModel):
    city: str


def _ask(model: ScriptedChatModel, text: str = "Where?") -> str:
    return model.complete([{"role": "user", "content": text}], _Place, max_tokens=10).answer.city


def test_a_scripted_model_answers_what_it_was_told_to() -> None:
    model = ScriptedChatModel(
        [
            '{"city": "Lisbon"}',
            {"city": "Porto"},
            _Place(city="Faro"),
            lambda messages: {"city": messages[0]["content"].upper()},
            ConfigurationError("no"),
            {"town": "Braga"},
        ]
    )
    assert [_ask(model), _ask(model), _ask(model), _ask(model, "tavira")] == ["Lisbon", "Porto", "Faro", "TAVIRA"]
    with pytest.raises(ConfigurationError):
        _ask(model)
    with pytest.raises(ModelAnswerInvalid) as raised:
        _ask(model)
    assert raised.value.payload == '{"town": "Braga"}'
    with pytest.raises(ModelUnavailable):
        _ask(model)
    assert model.calls[3] == [{"role": "user", "content": "tavira"}]
    assert len(model.calls) == 7


def test_a_scripted_model_has_a_window() -> None:
    check_chat_model(ScriptedChatModel([{"word": "ferry"}]))
    model = ScriptedChatModel([{"city": "Lisbon"}], context_tokens=20)
    with pytest.raises(PromptTooLong):
        _ask(model, "1234567")
    assert model.calls == []
    assert _ask(model, "123456") == "Lisbon"


def test_vectors_that_no_row_can_hold_are_refused_before_anything_is_stored() -> None:
    assert load_embedder("hashing:2000") is not None
    with pytest.raises(ConfigurationError, match="2,001 dimensions"):
        load_embedder("hashing:2001")
