"""Ranking: the sum of the parts, one order, whatever way the chunks are held."""

import math
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from memstore.errors import ProviderError
from memstore.models import ChunkKey, Hit, Role, Tier
from memstore.search import signals
from memstore.search.ranking import NEWEST, OVERVIEW_WEIGHTS, WEIGHTS, QueryFeatures, Ranking, rank
from memstore.search.recall import RERANKED, RERANKER_PART, rerank
from memstore.search.signals import Corpus
from memstore.store.user_index import UserIndex
from tests.helpers.fakes import ScriptedReranker
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
    return [(one.chunk.key, dict(one.parts)) for one in ranking.of_tiers(*(tiers or Tier))]


def corpus(some: UserIndex) -> Corpus:
    return Corpus(len(some), int(some.lengths.sum()))


def test_every_hit_says_what_each_signal_adds() -> None:
    some = arrays(TALK)
    found = list(rank(some, QUESTION, corpus(some), 99).of_tiers(*Tier))
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
    some = arrays([replace(chunks[0], characters=2_000, role=Role.ASSISTANT, terms={5: 1}), *chunks[1:5], *chunks[6:]])
    assert told(rank(some, QueryFeatures("five", None, {"five": 5}), corpus(some), 99))[0][0].item_id.int == 0
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


@pytest.mark.parametrize(
    "asked", [QueryFeatures("x", None, {"x": 5}), QueryFeatures("x", np.ones(1, "f"), {"x": 5}, {}, False)]
)
def test_a_neighbour_without_the_word_does_not_come_before_what_has_it(asked: QueryFeatures) -> None:
    said = [Given(n, {n: 1}, [1.0], characters=20) for n in (1, 2, 3, 4, 6)]
    found = told(rank(arrays([*said, Given(5, {5: 1}, [0.5], characters=400)]), asked, Corpus(6, 6), 9))
    assert found[0][0].item_id.int == 5


def test_what_was_said_near_the_best_hit_has_a_lead() -> None:
    said = [Given(n, {}, [[0.0, 1.0], [1.0, 0.0]][n == 9], characters=40) for n in range(20)]
    other = Given(99, {}, [0.0, 1.0], characters=40, conversation=UUID(int=9))
    asked = QueryFeatures("Where?", np.array([1, 0], "f"), {})
    parts = {
        key.item_id.int: own["same_session"]
        for key, own in told(rank(arrays([*said, other]), asked, Corpus(21, 9), 30))
    }
    assert {number for number, part in parts.items() if part > 0} == {*range(1, 18)} - {9}


def test_for_an_overview_an_answer_has_a_share_of_the_score_of_what_it_answers() -> None:
    some = arrays(TALK)
    plain, parts = (dict(told(rank(some, one, corpus(some), 99))) for one in (QUESTION, OVERVIEW))
    for key, own in parts.items():
        if key.item_id.int % 2 and key.item_id.int < len(TALK) - 8:  # said by the assistant, to the one before
            asked = parts[ChunkKey(UUID(int=key.item_id.int - 1), 0)]
            expected = OVERVIEW_WEIGHTS["answered_message"] * (sum(asked.values()) - asked["role"])
            assert own["answered_message"] == pytest.approx(max(expected, 0), abs=1e-5)
        else:
            assert own["answered_message"] == 0, "a person, and a fact, answers nothing"
        for name, part in plain[key].items():  # to any other question an answer is what it says itself
            if name == "same_session":
                continue
            weight = 0 if name == "answered_message" else WEIGHTS[name]
            assert part == pytest.approx(own[name] * weight / OVERVIEW_WEIGHTS[name], abs=1e-5)
    assert sum(own["answered_message"] > 0 for own in parts.values()) > 20
    spoken = np.flatnonzero((some.tiers == 1) & (some.by_person == 0))
    shown = dict(told(rank(some, OVERVIEW, corpus(some), 99, spoken)))
    assert {key: own["answered_message"] for key, own in shown.items()} == {
        key: parts[key]["answered_message"] for key in parts if not parts[key]["role"]
    }, "what it answers counts, and is not shown with it"


def test_where_an_assistant_s_words_are_asked_for_people_s_have_no_lead() -> None:
    some = arrays(TALK)
    asked = replace(QUESTION, text="What did you recommend?")
    plain, parts = (dict(told(rank(some, one, corpus(some), 99))) for one in (QUESTION, asked))
    assert {own["role"] for own in plain.values()} == {0, WEIGHTS["role"]}
    assert {own["role"] for own in parts.values()} == {0}
    assert sum(own["answered_message"] > 0 for own in parts.values()) > 20


# How a reranker's scores join ours


SAID = datetime(2026, 5, 1, tzinfo=UTC)


def hits(*scores: float) -> list[Hit]:
    """Give hits with these scores, whose texts are their numbers."""
    return [
        Hit(Tier.MESSAGES, UUID(int=number + 1), str(number), score, {"semantic": score}, (), SAID)
        for number, score in enumerate(scores)
    ]


def by_numbers(*scores: float) -> ScriptedReranker:
    return ScriptedReranker(lambda _, text: scores[int(text)])


def order(found: list[Hit]) -> list[str]:
    return [hit.text for hit in found]


def test_both_count_the_same_whatever_the_scale() -> None:
    ours = hits(0.9, 0.8, 0.7, 0.5)
    for scale in (1.0, 1000.0, 1e-3):
        found = rerank(by_numbers(*(scale * one for one in (0.0, 0.5, 2.0, 1.0))), "?", ours)
        assert order(found) == ["2", "0", "1", "3"]
        assert [hit.parts[RERANKER_PART] for hit in found] == [0.4, 0.0, 0.1, 0.2]
        assert all(hit.score == pytest.approx(sum(hit.parts.values())) for hit in found)


def test_equal_scores_of_it_leave_our_order_and_equal_scores_of_ours_leave_it_its_own() -> None:
    assert order(rerank(by_numbers(7, 7, 7), "?", hits(0.9, 0.8, 0.7))) == ["0", "1", "2"]
    assert order(rerank(by_numbers(1, 3, 2), "?", hits(0.5, 0.5, 0.5))) == ["1", "2", "0"]


@pytest.mark.parametrize(
    "given", [[1.0], [[1.0], [2.0]], [1.0, float("nan")], [1.0, float("inf")], [1.0, None], ["1", "2"]]
)
def test_other_than_a_number_for_each_is_refused(given: list[object]) -> None:
    class Broken(ScriptedReranker):
        def scores(self, query: str, texts: object) -> object:  # type: ignore[override]
            return np.array(given)

    with pytest.raises(ProviderError, match="'scripted' must return finite numbers of the shape"):
        rerank(Broken(lambda *_: 0.0), "?", hits(0.9, 0.8))


@given(st.lists(st.floats(0, 3), min_size=1, max_size=RERANKED + 20), st.randoms(use_true_random=False))
def test_nothing_is_lost_and_what_was_not_read_stays_behind_as_it_was(scores: list[float], random: object) -> None:
    ours = hits(*sorted((round(one, 6) for one in scores), reverse=True))
    found = rerank(by_numbers(*(random.uniform(-9, 9) for _ in ours)), "?", ours)  # type: ignore[attr-defined]
    assert sorted(order(found)) == sorted(order(ours))
    assert found[RERANKED:] == ours[RERANKED:]
    assert all(before.score >= after.score for before, after in pairwise(found))


# Each signal by itself


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
    own, around, _ = signals.lexical(arrays(chunks), {"a": 1, "b": 2}, Corpus(10, 50), every(chunks))
    assert own.tolist() == [1, pytest.approx(other / one)]
    assert around.argmax() == 0, "they have no neighbours, being of two roles"


def test_a_question_counts_less_where_a_person_answers_it_at_once_and_by_its_length() -> None:
    asks = {7: 1}
    said = [Given(1, asks), Given(2), Given(3, asks, role=Role.ASSISTANT), Given(4, asks)]
    said += [Given(5, role=Role.ASSISTANT), Given(6, asks, characters=2400), Given(7)]
    assert signals.is_question(arrays(said), 7).tolist() == [-0.5, 0, 0, 0, 0, pytest.approx(-1 / 11), 0]
    assert not signals.is_question(arrays(said), 8).any()


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


def test_the_page_has_every_signal_with_its_weight() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "recall.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", page, re.MULTILINE)
    assert {name: float(weight) for name, weight in rows} == WEIGHTS
