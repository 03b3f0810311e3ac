"""What a question asks for."""

from __future__ import annotations

import pytest

from memstore.search.query_analysis import asks_for_assistant_words, asks_for_overview


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("Can you summarize what I learned?", True),
        ("Give me an OVERVIEW of the project", True),
        ("A quick recap, please", True),
        ("Fass bitte unsere Gespräche zusammen", True),
        ("Gib mir einen Überblick", True),
        ("Which summer did we go?", False),
        ("Wie fasst man das an? Wir waren zusammen dort.", False),
    ],
)
def test_an_overview_is_asked_for_in_english_or_german(question: str, wanted: bool) -> None:
    assert asks_for_overview(question) is wanted


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("Which hotel did you recommend?", True),
        ("What did you once say about iron tablets?", True),
        ("What was the cake you suggested?", True),
        ("Which documents do I need, you told me once?", True),
        ("What have you already come up with for the party?", True),
        ("Welches Hotel hast du mir für Lissabon empfohlen?", True),
        ("Was haben Sie mir dazu gesagt?", True),
        ("Quel hôtel m'as-tu recommandé ?", True),
        ("¿Qué hotel me recomendaste?", True),
        ("¿Qué me has dicho de la tarta?", True),
        ("你上次推荐的酒店叫什么？", True),
        ("Which hotel did I book?", False),
        ("What did Ann recommend to me?", False),
        ("I told you my address, what is it?", False),
        ("Can you tell me where I live?", False),
        ("Was haben sie in der Schule gesagt?", False),
        ("Did you know that I moved?", False),
    ],
)
def test_the_words_of_an_assistant_are_asked_for(question: str, wanted: bool) -> None:
    assert asks_for_assistant_words(question) is wanted
