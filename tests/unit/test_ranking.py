"""Ranking: the sum of the parts, one order, whatever way the chunks are held."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from memstore.models import ChunkKey, Role, Tier
from memstore.search.ranking import COURSE_WEIGHTS, NEWEST, WEIGHTS, QueryFeatures, Ranking, best_of_each, rank
from memstore.search.signals import Corpus
from memstore.store.user_index import UserIndex
from tests.unit.user_indexes import NOW, Given, arrays

DRAW = np.random.default_rng(8)
VECTORS = (lambda some: some / np.linalg.norm(some, axis=1, keepdims=True))(DRAW.normal(size=(60, 12)))
TALK = [
    Given(
        n,
        {n % 7: 1, 10 + n % 3: 2},
        VECTORS[n % 40].tolist() if n % 13 else None,
        at=NOW + timedelta(hours=n * 5 // 4),
        role=(Role.USER, Role.ASSISTANT)[n % 2],
        speaker=("Alice", "Bob")[n % 2],
        characters=40 * (n % 9),
    )
    for n in range(50)
] + [Given(100 + n, {n: 1}, VECTORS[50 + n].tolist(), tier=Tier.FACTS, role=None, seq=-1) for n in range(8)]
QUESTION = QueryFeatures("What did Alice say in June?", VECTORS[3].astype(np.float32), {"a": 3, "b": 11, "c": 999})

OVERVIEW = replace(QUESTION, text="Give me a summary of what Alice said in June.")


def told(ranking: Ranking, *tiers: Tier) -> list[tuple[ChunkKey, dict[str, float]]]:
    return [(one.chunk.key, dict(one.parts)) for one in ranking.of(*(tiers or Tier))]


def corpus(some: UserIndex) -> Corpus:
    return Corpus(len(some), int(some.lengths.sum()))


def test_every_hit_says_what_each_signal_adds() -> None:
    some = arrays(TALK)
    found = list(rank(some, QUESTION, corpus(some), 99).of(*Tier))
    assert len(found) == len(TALK)
    for one in found:
        assert set(one.parts) == set(WEIGHTS)
        assert one.score == pytest.approx(sum(one.parts.values()), abs=1e-9)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert max(one.parts["semantic"] + one.parts["semantic_neighbours"] for one in found) <= 1
    assert {one.parts["speaker"] for one in found} == {0, WEIGHTS["speaker"]}


@given(st.permutations(range(len(TALK))), st.integers(0, len(TALK)))
@settings(deadline=None, max_examples=25)
def test_the_order_in_which_chunks_came_and_were_read_decides_nothing(order: list[int], cut: int) -> None:
    whole, mixed = arrays(TALK), [TALK[n] for n in order]
    parted = arrays(mixed[:cut]).extend(arrays(mixed[cut:])) if 0 < cut < len(TALK) else arrays(mixed)
    for asked in (QUESTION, OVERVIEW):
        for depth in (5, 99):
            expected = told(rank(whole, asked, corpus(whole), depth))
            assert told(rank(parted, asked, corpus(parted), depth)) == expected


def test_as_many_of_each_tier_as_are_asked_for_are_the_best() -> None:
    some = arrays(TALK)
    for asked in (QUESTION, OVERVIEW):
        for tier in (Tier.MESSAGES, Tier.FACTS):
            every = told(rank(some, asked, corpus(some), 99), tier)
            assert told(rank(some, asked, corpus(some), 4), tier) == every[:4]


def test_only_what_is_visible_is_found() -> None:
    some = arrays(TALK)
    found = rank(some, QUESTION, corpus(some), 3, np.flatnonzero(some.tiers == 1)[10:20])
    numbers = {one.chunk.item_id.int for one in found.of(*Tier)}
    assert len(numbers) == 3
    assert numbers <= set(range(10, 20))
    assert told(rank(some, QUESTION, corpus(some), 3, np.empty(0, dtype=np.intp))) == []
    assert told(rank(arrays([]), QUESTION, Corpus(0, 0), 3)) == []


def test_candidates_with_their_neighbours_have_the_scores_that_they_have_among_all() -> None:
    some = arrays(TALK)
    whole = rank(some, QUESTION, corpus(some), 99)
    best = [one.chunk.key for one in whole.of(Tier.MESSAGES)][:6]
    rows = [row for row, chunk in enumerate(some.chunks(np.arange(len(some)))) if chunk.key in best]
    beside = np.zeros(len(some), dtype=np.bool_)
    beside[some.neighbours[:, rows][some.neighbours[:, rows] < len(some)]] = True
    few = some.select(beside)
    shown = np.array([row for row, chunk in enumerate(few.chunks(np.arange(len(few)))) if chunk.key in best])
    holding = {term: len(some.rows_with_term(term)[0]) for term in QUESTION.terms.values()}
    counted = Corpus(len(some), int(some.lengths.sum()), holding)
    assert len(few) < len(some) - 10
    found = rank(few, QUESTION, counted, 99, shown)
    for (key, parts), (other, expected) in zip(told(found), told(whole, Tier.MESSAGES), strict=False):
        assert key == other
        alike = {name for name in parts if not name.startswith("lexical")}  # of its best, which may be another
        assert {name: parts[name] for name in alike} == {name: expected[name] for name in alike}


def test_of_equal_chunks_the_latest_comes_first_and_then_the_lesser_name() -> None:
    chunks = [
        Given(n, {1: 1}, VECTORS[0].tolist(), at=NOW + timedelta(days=n % 3), conversation=UUID(int=n))
        for n in range(9)
    ]
    some = arrays(chunks)
    asked = QueryFeatures("x", VECTORS[0].astype(np.float32), {"a": 1})
    found = [key.item_id.int for key, _ in told(rank(some, asked, corpus(some), 99))]
    assert found == [2, 5, 8, 1, 4, 7, 0, 3, 6]
    assert [key.item_id.int for key, _ in told(rank(some, asked, corpus(some), 4))] == found[:4]


def test_by_words_alone_what_matches_is_found_and_what_was_said_last() -> None:
    chunks = [Given(n, {n: 1}, at=NOW + timedelta(days=n), conversation=UUID(int=n)) for n in range(3 * NEWEST)]
    some = arrays(chunks)
    found = [key.item_id.int for key, _ in told(rank(some, QueryFeatures("five", None, {"five": 5}), corpus(some), 99))]
    assert found == [5, *range(3 * NEWEST - 1, 2 * NEWEST - 1, -1)]
    nothing = told(rank(some, QueryFeatures("", None, {}), corpus(some), 99))
    assert [key.item_id.int for key, _ in nothing] == found[1:]


def test_a_short_answer_is_found_by_the_question_before_it() -> None:
    east, north = [1.0, 0.0], [0.0, 1.0]
    asked = Given(1, {5: 1}, east, characters=60)
    answer, other = Given(2, {6: 1}, north, characters=20), Given(9, {6: 1}, north, conversation=UUID(int=9))
    found = told(
        rank(
            arrays([asked, answer, other]),
            QueryFeatures("q", np.array(east, dtype=np.float32), {"a": 5}),
            Corpus(3, 3),
            9,
        )
    )
    assert [key.item_id.int for key, _ in found] == [1, 2, 9]
    assert found[1][1]["semantic_neighbours"] > found[1][1]["semantic"] == 0
    assert found[1][1]["lexical_neighbours"] > 0


def test_for_an_overview_an_answer_has_a_share_of_the_score_of_what_it_answers() -> None:
    some = arrays(TALK)
    plain, parts = (dict(told(rank(some, one, corpus(some), 99))) for one in (QUESTION, OVERVIEW))
    for key, own in parts.items():
        if key.item_id.int % 2 and key.item_id.int < len(TALK) - 8:  # said by the assistant, to the one before
            asked = parts[ChunkKey(UUID(int=key.item_id.int - 1), 0)]
            expected = COURSE_WEIGHTS["answers"] * (sum(asked.values()) - asked["role"])
            assert own["answers"] == pytest.approx(max(expected, 0), abs=1e-5)
        else:
            assert own["answers"] == 0, "a person, and a fact, answers nothing"
        for name, part in plain[key].items():  # to any other question an answer is what it says itself
            assert part == (
                0 if name == "answers" else pytest.approx(own[name] * WEIGHTS[name] / COURSE_WEIGHTS[name], abs=1e-5)
            )
    assert sum(own["answers"] > 0 for own in parts.values()) > 20
    spoken = np.flatnonzero((some.tiers == 1) & (some.by_person == 0))
    shown = dict(told(rank(some, OVERVIEW, corpus(some), 99, spoken)))
    assert {key: own["answers"] for key, own in shown.items()} == {
        key: parts[key]["answers"] for key in parts if not parts[key]["role"]
    }, "what it answers counts, and is not shown with it"


def test_where_an_assistant_s_words_are_asked_for_people_s_have_no_lead() -> None:
    some = arrays(TALK)
    asked = replace(QUESTION, text="What did you recommend?")
    plain, parts = (dict(told(rank(some, one, corpus(some), 99))) for one in (QUESTION, asked))
    assert {own["role"] for own in plain.values()} == {0, WEIGHTS["role"]}
    assert {own["role"] for own in parts.values()} == {0}
    assert sum(own["answers"] > 0 for own in parts.values()) > 20


def test_an_item_is_given_once_by_its_best_chunk() -> None:
    chunks = [Given(1, {1: 1}), Given(1, {1: 2}, chunk_index=1), Given(2, {1: 1})]
    found = best_of_each(rank(arrays(chunks), QueryFeatures("x", None, {"a": 1}), Corpus(3, 4), 9).of(*Tier))
    assert [one.chunk.key for one in found] == [(UUID(int=1), 1), (UUID(int=2), 0)]
