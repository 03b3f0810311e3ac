"""What a question asks, part by part."""

from __future__ import annotations

import pytest

from memstore.search.query_analysis import split_question


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (
            "What am I allergic to, and when do we fly to Lisbon?",
            ("What am I allergic to", "when do we fly to Lisbon?"),
        ),
        ("Where do I work? And what is my sister's name?", ("Where do I work?", "And what is my sister's name?")),
        (
            "How many problems have I solved and what is my accuracy and is my exam in May?",
            ("How many problems have I solved", "what is my accuracy", "is my exam in May?"),
        ),
        (
            "Wogegen bin ich allergisch, und wann fliegen wir nach Lissabon?",
            ("Wogegen bin ich allergisch", "wann fliegen wir nach Lissabon?"),
        ),
    ],
)
def test_what_asks_several_things_is_taken_apart(question: str, parts: tuple[str, ...]) -> None:
    assert split_question(question) == parts


@pytest.mark.parametrize(
    "question",
    [
        "",
        "What am I allergic to?",
        "What did Ann and Bob paint?",
        "When did I meet people on a hike and have a bad time?",
        "What does Tim have that is old and is his favourite?",
        "How many days were there between when I began and when I finished the review?",
        "Where is she and why?",
        "List what I said, in order. Mention only three items.",
        "What is my name? Answer yes or no.",
        "What do I eat and what do I drink and what do I wear and what do I read?",
    ],
)
def test_what_asks_one_thing_or_too_many_is_left_whole(question: str) -> None:
    assert split_question(question) == ()


def test_a_pasted_page_takes_no_time() -> None:
    assert split_question("and what, " * 20_000 + "?") == ()
    assert split_question("what " + " " * 100_000 + "?") == ()
