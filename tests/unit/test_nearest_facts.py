"""Which stored facts may be nearest to new ones: whatever is nearest is among the candidates, and little else."""

from uuid import UUID

import numpy as np

from memstore.providers import Vectors
from memstore.store.nearest_facts import MOST_CANDIDATES, NEAREST, RECORD, NearestFacts, NewVector


def compare(nearest: NearestFacts, stored: dict[UUID, tuple[str, Vectors | None]]) -> None:
    """Send stored facts as the statement `vector_page` does."""
    rows = [
        (id.bytes, nearest.subjects.index(subject) + 1, vector is not None) for id, (subject, vector) in stored.items()
    ]
    vectors = [np.append(0, vector).astype(">f4").tobytes() for _, vector in stored.values() if vector is not None]
    nearest.compare(np.array(rows, RECORD), b"".join(vectors))


def find_nearest(new: NewVector, stored: dict[UUID, tuple[str, Vectors | None]]) -> list[UUID]:
    names = {new.subject, new.alias}
    assert new.vector is not None
    found = []
    for id, (subject, vector) in stored.items():
        if subject in names and vector is not None:
            lengths = float(np.linalg.norm(vector) * np.linalg.norm(new.vector))
            found.append((-float(vector @ new.vector) / lengths if lengths else 2.0, id))
    return [id for _, id in sorted(found)[:NEAREST]]


def test_the_nearest_ones_are_among_the_candidates_over_pages_and_of_those_stored_meanwhile() -> None:
    random = np.random.default_rng(1)
    subjects = ["Ana", "Ana's cat", "Ben"]
    new = [
        NewVector(UUID(int=1000 + n), subjects[n % 3], "Ana" if n % 5 == 2 else "", random.normal(size=16))
        for n in range(40)
    ]
    nearest = NearestFacts(new)
    stored: dict[UUID, tuple[str, Vectors | None]] = {}
    for page in range(4):
        numbers = range(page * 50, page * 50 + 50)
        vectors = [random.normal(size=16).astype(np.float32) * (n % 17 > 0) for n in numbers]
        some = {
            UUID(int=n): (subjects[n % 3], vector if n % 11 else None)  # some wait, and have no vector
            for n, vector in zip(numbers, vectors, strict=True)
        }
        compare(nearest, some)
        stored |= some
    for place, one in enumerate(new):
        candidates = nearest.candidates(place)
        assert set(find_nearest(one, stored)) <= set(candidates)
        assert len(candidates) <= NEAREST + 1
        if place % 4:  # others were known in other words, and are not stored
            nearest.add(place)
            stored[one.id] = one.subject, one.vector


def test_a_fact_that_was_stored_before_is_a_candidate_once() -> None:
    same = np.eye(4)[0]
    nearest = NearestFacts([NewVector(UUID(int=n), "Ana", "", same) for n in (1, 2)])
    compare(nearest, {UUID(int=n): ("Ana", same) for n in range(1, 2)})
    nearest.add(0)
    assert nearest.candidates(1) == [UUID(int=1)]


def test_of_many_facts_that_are_equally_near_some_are_measured() -> None:
    nearest = NearestFacts([NewVector(UUID(int=0), "Ana", "", np.eye(4)[0])])
    compare(nearest, {UUID(int=n): ("Ana", np.eye(4)[1]) for n in range(1, 500)})
    assert nearest.candidates(0) == [UUID(int=n) for n in range(1, MOST_CANDIDATES + 1)]


def test_nothing_is_near_without_vectors() -> None:
    nearest = NearestFacts([NewVector(UUID(int=1), "Ana", "", None)])
    assert nearest.subjects == []
    nearest.add(0)
    assert nearest.candidates(0) == []
