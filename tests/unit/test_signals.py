"""Each signal by itself: known values, by hand and by brute force."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest

from memstore.models import Role, Tier
from memstore.search import signals
from memstore.search.signals import Corpus
from memstore.store.tokenize import hash_term
from tests.unit.user_indexes import NOW, Given, arrays

USER = UUID(int=1)


def every(chunks: list[Given]) -> np.ndarray:
    return np.arange(len(chunks))


def test_bm25_agrees_with_its_formula_by_hand() -> None:
    # Two terms; the first is in both chunks, the second in one. Ten chunks in all, mean length 5.
    chunks = [Given(1, {1: 1, 2: 2, 9: 1}), Given(2, {1: 3, 9: 5}, role=Role.ASSISTANT)]
    common, rare = math.log(1 + 8.5 / 2.5), math.log(1 + 9.5 / 1.5)

    def part(weight: float, count: int, length: int) -> float:
        return weight * count * 2.2 / (count + 1.2 * (0.6 + 0.4 * length / 5))

    one = part(common, 1, 4) + part(rare, 2, 4)
    other = part(common, 3, 8)
    own, around = signals.lexical(arrays(chunks), {"a": 1, "b": 2}, Corpus(10, 50), every(chunks))
    assert own.tolist() == [1, pytest.approx(other / one)]
    assert around.argmax() == 0, "they have no neighbours, being of two roles"


def test_a_neighbourhood_is_one_text() -> None:
    chunks = [Given(n, {n: 1, 50 + n: 1}) for n in range(9)] + [Given(40, {2: 1, 4: 1}, conversation=UUID(int=9))]
    own, around = signals.lexical(arrays(chunks), {"two": 2, "four": 4}, Corpus(10, 20), every(chunks))
    assert own.argmax() == 9
    assert own[3] == 0
    assert around[3] > around[1] > 0, "what stands between the two words has both beside it"
    assert around[8] == 0


def test_names_of_speakers_are_found_in_what_was_said_and_not_around_it() -> None:
    word = hash_term("alic", USER)
    chunks = [Given(n, {word: 1, 10 + n: 1}) for n in range(3)]
    own, around = signals.lexical(arrays(chunks), {"alic": word}, Corpus(3, 6), every(chunks))
    assert own.all()
    assert not around.any()


def test_a_short_chunk_stands_less_for_itself() -> None:
    share = signals.neighbour_weight(
        arrays([Given(1, characters=0), Given(2, characters=240), Given(3, characters=4000)])
    )
    assert share.tolist() == [1, 0.5, pytest.approx(0.0566, abs=1e-4)]


@pytest.mark.parametrize(
    ("query", "speaker"),
    [
        ("What did Alice say?", "Alice"),
        ("what did ALICE and nobody else say?", "Alice"),
        ("What did Alice tell Bob?", None),
        ("What did Malice say?", None),
        ("What does the user say?", None),
        ("", None),
    ],
)
def test_a_speaker_counts_when_only_one_is_named(query: str, speaker: str | None) -> None:
    names = ["Alice", "Bob", "user", None]
    found = signals.speaker(arrays([Given(n, speaker=name) for n, name in enumerate(names)]), query)
    assert found.tolist() == [float(name is not None and name == speaker) for name in names]


def test_a_question_counts_less_where_a_person_answers_it_at_once() -> None:
    asks = {7: 1}
    said = [
        Given(1, asks),
        Given(2),
        Given(3, asks, role=Role.ASSISTANT),
        Given(4, asks),
        Given(5, role=Role.ASSISTANT),
    ]
    said += [Given(6, asks, characters=2400), Given(7)]
    scores = signals.question(arrays(said), 7)
    assert scores.tolist() == [-0.5, 0, 0, 0, 0, pytest.approx(-1 / 11), 0]
    assert not signals.question(arrays(said), 8).any()


def test_an_answer_has_the_score_of_the_best_chunk_of_what_was_last_asked() -> None:
    said = [
        Given(0, role=Role.ASSISTANT),
        Given(1),
        Given(1, chunk_index=1),
        Given(2, role=Role.TOOL),
        Given(3, role=Role.ASSISTANT),
        Given(3, chunk_index=1, role=Role.ASSISTANT),
        Given(5),
        Given(6, role=Role.ASSISTANT, conversation=UUID(int=8)),
        Given(9, tier=Tier.FACTS, role=None, seq=-1),
        Given(7, conversation=UUID(int=8)),
        Given(10, role=Role.ASSISTANT),  # of what stood between nothing is there
    ]
    scores = np.array([9.0, 2, 5, 9, 9, 9, 1, 9, 9, 3, 9])
    for order in (list(range(11)), [8, 5, 2, 9, 10, 7, 1, 0, 4, 6, 3]):
        some = arrays([said[n] for n in order])
        found = signals.answers(some, scores[order], slice(None))
        assert {n: score for n, score in zip(order, found, strict=True) if score} == {4: 5.0, 5: 5.0}
        assert sorted(order[row] for row in signals.answered_rows(some, np.arange(11))) == [1, 2]


def test_a_day_that_is_named_counts_twice() -> None:
    days = [
        datetime(2023, 5, 8, 23, tzinfo=UTC),
        datetime(2023, 5, 9, tzinfo=UTC),
        datetime(2022, 5, 8, tzinfo=UTC),
        NOW,
    ]
    some = arrays([Given(n, at=day) for n, day in enumerate(days)])
    assert signals.date(some, "What happened on 8 May 2023?").tolist() == [2, 1, 0, 0]
    assert signals.date(some, "What happened on the 8th of May?").tolist() == [2, 1, 2, 0]
    assert signals.date(some, "What happened in 2022 or in June?").tolist() == [0, 0, 1, 1]
    assert not signals.date(some, "What happened?").any()
    before = arrays([Given(1, at=datetime(1969, 12, 31, tzinfo=UTC) + timedelta(hours=1))])
    assert signals.date(before, "on 31 December 1969").tolist() == [2]
