"""Questions about speakers, as those would put them."""

from __future__ import annotations

import pytest

from memstore.search.query_analysis import to_first_person


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("What is Ann's job?", "What is my job?"),
        ("What did Ann paint for James' birthday?", "What did I paint for my birthday?"),
        ("What did Mary Ann do?", "What did I do?"),
        ("What does Anna do, and Joanna?", "What does Anna do, and Joanna?"),
        ("What did Carl say?", "What did Carl say?"),
        ("Was hat Ann gesagt?", "Was hat Ann gesagt?"),
        ("Qu'a dit Ann ?", "Qu'a dit Ann ?"),
        ("", ""),
    ],
)
def test_speakers_are_spoken_for_in_english(question: str, told: str) -> None:
    assert to_first_person(question, {"Ann", "James", "Mary Ann"}) == told
    assert to_first_person(question, ()) == question
