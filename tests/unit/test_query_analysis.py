"""What a question's words tell about where its answer is."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest

from memstore.models import Hit, Tier
from memstore.search.dates import NamedDate, Period, Time, asked_time, named_dates
from memstore.search.outdated import lead_newest
from memstore.search.questions import (
    asks_for_assistant_words,
    asks_for_list,
    asks_for_overview,
    asks_for_overview_or_order,
    without_request,
)
from memstore.search.recall import to_first_person


@pytest.mark.parametrize(
    ("asks", "question", "wanted"),
    [
        (asks_for_assistant_words, "Which hotel did you recommend?", True),
        (asks_for_assistant_words, "What did you once say about iron tablets?", True),
        (asks_for_assistant_words, "What have you already come up with for the party?", True),
        (asks_for_assistant_words, "Welches Hotel hast du mir für Lissabon empfohlen?", True),
        (asks_for_assistant_words, "Quel hôtel m'as-tu recommandé ?", True),
        (asks_for_assistant_words, "¿Qué hotel me recomendaste?", True),
        (asks_for_assistant_words, "你上次推荐的酒店叫什么？", True),
        (asks_for_assistant_words, "What did you offer me?", True),
        (asks_for_assistant_words, "Which risk had you emphasized?", True),
        (asks_for_assistant_words, "What recommendations did you make?", True),
        (asks_for_assistant_words, "the exercises you walked me through", True),
        (asks_for_assistant_words, "What was your take on the second offer?", True),
        (asks_for_assistant_words, "What was suggested by you?", True),
        (asks_for_assistant_words, "Welche Punkte haben Sie hervorgehoben?", True),
        (asks_for_assistant_words, "Was sagtest du zu den Steuern?", True),
        (asks_for_assistant_words, "Was war dein Rat?", True),
        (asks_for_assistant_words, "Quel était ton avis ?", True),
        (asks_for_assistant_words, "¿Qué destacaste?", True),
        (asks_for_assistant_words, "你强调过什么", True),
        (asks_for_assistant_words, "What did I propose to you?", False),
        (asks_for_assistant_words, "Which budget did I give you?", False),
        (asks_for_assistant_words, "What have I told you so far?", False),
        (asks_for_assistant_words, "Did you know that I moved?", False),
        (asks_for_assistant_words, "Can you give me a summary of my plans?", False),
        (asks_for_assistant_words, "What do you recommend for dinner?", False),
        (asks_for_assistant_words, "Was habe ich dir vorgeschlagen?", False),
        (asks_for_assistant_words, "Hast du meine Adresse gesehen?", False),
        (asks_for_assistant_words, "¿Existe un tren?", False),
        (asks_for_assistant_words, "我跟你说过什么", False),
        (asks_for_assistant_words, "Which hotel did I book?", False),
        (asks_for_assistant_words, "I told you my address, what is it?", False),
        (asks_for_assistant_words, "Was haben sie in der Schule gesagt?", False),
        (asks_for_overview, "Can you summarize what I learned?", True),
        (asks_for_overview, "Give me an OVERVIEW of the project", True),
        (asks_for_overview, "Fass bitte unsere Gespräche zusammen", True),
        (asks_for_overview, "Summarize all my meetings with Tom", True),
        (asks_for_overview, "Summarize our conversation of 13 October", True),
        (asks_for_overview, "Write me a summary of how the interview preparation went", True),
        (asks_for_overview, "Which summer did we go?", False),
        (asks_for_overview, "Wie fasst man das an? Wir waren zusammen dort.", False),
        (asks_for_list, "What hobbies does Evan have?", True),
        (asks_for_list, "Which cities have both visited?", True),
        (asks_for_list, "how many car shows did I go to?", True),
        (asks_for_list, "What are my daughters' favourite animals?", True),
        (asks_for_list, "Where has she lived so far?", True),
        (asks_for_list, "Name all of the people we invited.", True),
        (asks_for_list, "Welche Städte haben beide besucht?", True),
        (asks_for_list, "Wie oft war ich beim Zahnarzt?", True),
        (asks_for_list, "Was haben wir bisher beschlossen?", True),
        (asks_for_list, "Zähle die Bücher auf, die ich gelesen habe.", True),
        (asks_for_list, "What is my dentist's name?", False),
        (asks_for_list, "Which bus was late?", False),
        (asks_for_list, "When was the last meeting?", False),
        (asks_for_list, "What does this cost?", False),
        (asks_for_list, "Welche Zeitung lese ich?", False),
        (asks_for_list, "Wo wohnt Eva?", False),
    ],
)
def test_what_is_asked_for_shows_in_the_form_of_the_question(
    asks: Callable[[str], bool], question: str, wanted: bool
) -> None:
    assert asks(question) is wanted


@pytest.mark.parametrize(
    ("question", "matter"),
    [
        ("Please recap what we decided about the kitchen.", "we decided about the kitchen"),
        ("Give me a short overview of my job hunt so far.", "my job hunt so far"),
        ("In which order did I visit the three flats?", "did I visit the three flats"),
        ("Write me a timeline of the house sale.", "the house sale"),
        (
            "Put the trips we talked about in chronological order.",
            "Put the trips we talked about in chronological order",
        ),
        ("How did my opinion of Eva change over time?", "How did my opinion of Eva change over time"),
        ("Tell me, from first to last, which doctors I saw.", "Tell me, from first to last, which doctors I saw"),
        ("Fass bitte zusammen, was wir zur Küche beschlossen haben.", "wir zur Küche beschlossen haben"),
        ("Gib mir einen Überblick über meine Jobsuche.", "meine Jobsuche"),
        ("In welcher Reihenfolge habe ich sie besichtigt?", "habe ich sie besichtigt"),
        ("Wie hat sich mein Training seit Mai entwickelt?", "Wie hat sich mein Training seit Mai entwickelt"),
        ("Erzähl der Reihe nach, wo ich war!", "Erzähl der Reihe nach, wo ich war"),
    ],
)
def test_the_course_of_a_matter_is_looked_for_without_the_words_of_the_request(question: str, matter: str) -> None:
    assert asks_for_overview_or_order(question)
    assert without_request(question) == matter


@pytest.mark.parametrize(
    "question",
    [
        "What did I order from the bookshop?",
        "Is the coffee machine out of order again?",
        "What time is the session on Monday?",
        "How do I change a tyre?",
        "How much did the course in pottery cost?",
        "Wann kommt meine Bestellung?",
        "Wie hat dir der Film gefallen?",
        "Läuft heute Abend etwas im Kino?",
        "Wie heißt der Verlag meiner Zeitung?",
        # Of no matter: the latest turns answer these.
        "Can you sum up what we just discussed?",
        "Summarize our conversation so far.",
        "What did we discuss, in chronological order?",
        "Fass unser Gespräch bitte zusammen.",
        "Gib mir einen Überblick.",
    ],
)
def test_no_course_is_asked_for(question: str) -> None:
    assert not asks_for_overview_or_order(question)
    assert without_request(question) == question


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("What is Ann's job?", "What is my job?"),
        ("What did Ann paint for James' birthday?", "What did I paint for my birthday?"),
        ("What did Mary Ann do?", "What did I do?"),
        ("What does Anna do, and Joanna?", "What does Anna do, and Joanna?"),
        ("Was hat Ann gesagt?", "Was hat Ann gesagt?"),
        ("", ""),
    ],
)
def test_speakers_are_spoken_for_in_english(question: str, told: str) -> None:
    assert to_first_person(question, {"Ann", "James", "Mary Ann"}) == told
    assert to_first_person(question, ()) == question


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("in March 2023", [(2023, 3, None)]),
        ("on 9 October, 2022?", [(2022, 10, 9)]),
        ("June 16th and July 1, 2021", [(None, 6, 16), (2021, 7, 1)]),
        ("What may I eat in May?", [(None, 5, None)]),
        ("the march of the penguins", []),
        ("am 8. Mai 2023, im März", [(2023, 5, 8), (None, 3, None)]),
        ("8.5.2023 or 2023-05-08 or 2023-06", [(2023, 5, 8), (2023, 5, 8), (2023, 6, None)]),
        ("2023年5月8日", [(2023, 5, 8)]),
        ("le 1er mai 2023", [(2023, 5, 1)]),
        ("el 8 de mayo de 2023", [(2023, 5, 8)]),
        ("since 2019; Sept 9; Dez. 2020", [(2019, None, None), (None, 9, 9), (2020, 12, None)]),
        ("the number 20235, room 1234, on 2023-13-01", [(None, None, None)][:0]),
    ],
)
def test_dates_are_read_in_the_languages_that_facts_are(text: str, found: list[NamedDate]) -> None:
    assert named_dates(text) == found


YEARS = np.array([f"{year}-06-15" for year in range(2019, 2027)], "M8[D]")


@pytest.mark.parametrize(
    ("time", "years"),
    [
        *(
            (time, "25 26")
            for time in ("after 2024", "nach 2024", "après 2024", "después de 2024", "2024年之后吃了什么")
        ),
        *(
            (time, "19 20 21 22 23")
            for time in ("before 2024", "until 2024", "prior to 2024", "vor 2024", "avant 2024")
        ),
        *((time, "19 20 21 22 23") for time in ("bis 2024", "hasta 2024", "antes del año 2024", "2024年之前")),
        *(
            (time, "19 20 21 22 23 25 26")
            for time in ("not in 2024", "except 2024", "außer 2024", "sauf en 2024", "除了2024年")
        ),
        *(
            (time, "21 22 23")
            for time in ("between 2021 and 2023", "from 2021 to 2023", "2021–2023", "von 2021 bis 2023")
        ),
        *((time, "21 22 23") for time in ("entre 2021 et 2023", "从2021年到2023年", "between May 2021 and June 2023")),
        *(
            (time, "24 25 26")
            for time in ("since 2024", "seit 2024", "not before 2024", "2024 onwards", "not until 2024")
        ),
        *((time, "19 20 21") for time in ("through 2021", "no later than 2021", "until the end of 2021")),
        ("not between 2021 and 2023", "19 20 24 25 26"),
        ("not in 2023 or 2024", "19 20 21 22 25 26"),
        ("in 2023, not in 2024", "23"),
        ("in 2021 and 2023", "21 23"),
        ("after the 2024 election", "24"),
        ("after May 2023", "23 24 25 26"),
        ("before June 2024", "19 20 21 22 23"),
        ("the week before 16 June 2024", "24"),
        ("before May", ""),
        *(
            (time, "21 22")
            for time in (
                "after 2020 and before 2023",
                "after 2020, but before 2023",
                "before 2023 and after 2020",
                "nach 2020 und vor 2023",
                "après 2020 et avant 2023",
                "después de 2020 y antes de 2023",
                "2020年之后2023年之前",
            )
        ),
        ("not before 2020 and not after 2022", "20 21 22"),
        ("after 2020 and before 2023 or in 2025", "21 22 25"),
        ("before 2020 and after 2023", "19 24 25 26"),
        ("after 2023 or before 2020", "19 24 25 26"),
        ("2020 and before", "19 20"),
        ("2024 and later", "24 25 26"),
    ],
)
def test_the_time_that_is_asked_about_is_an_interval(time: str, years: str) -> None:
    scores = asked_time(f"What did we eat {time}?").scores(YEARS)
    assert [str(day)[2:4] for day in YEARS[scores > 0]] == years.split()


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("What did we do between 2023 and June?", [Period(date(2023, 1, 1), date(2024, 7, 1))]),
        ("von 2023 bis Oktober", [Period(date(2023, 1, 1), date(2024, 11, 1))]),
        ("2022 - December", [Period(date(2022, 1, 1), date(2023, 1, 1))]),
        ("from November 2022 to February", [Period(date(2022, 11, 1), date(2023, 3, 1))]),
        ("after May 2023 but before August", [Period(date(2023, 6, 1), date(2023, 8, 1))]),
        ("after June and before 2023", [Period(date(2022, 7, 1), date(2023, 1, 1))]),
        ("since 2020 and before June", [Period(date(2020, 1, 1), date(2021, 6, 1))]),
        ("after March and before June", [NamedDate(month=4), NamedDate(month=5)]),
        ("from 2023 to 2021", []),
    ],
)
def test_a_range_takes_the_year_of_its_other_end(text: str, inside: list[Time]) -> None:
    assert asked_time(text).inside == inside


def test_of_hits_that_answer_about_as_well_the_newest_leads() -> None:
    def hit(number: int, score: float, day: int, text: str = "") -> Hit:
        at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day)
        return Hit(Tier.MESSAGES, UUID(int=number), text or f"said {number}", score, {}, (UUID(int=number),), at)

    hits = [hit(1, 1.0, 0), hit(2, 0.95, 100), hit(3, 0.9, 300), hit(4, 0.7, 900)]
    led = lead_newest(hits, "Where do I live?")
    assert [(one.id.int, one.score, one.parts.get("recency")) for one in led] == [
        (3, 1.1, 0.2),
        (2, 1.05, 0.1),
        (1, 1.0, None),
        (4, 0.7, None),
    ]
    asked = hit(9, 1.5, 50, "where do  I live?")
    assert lead_newest([asked, *hits], "Where do I live?")[1:] == led, "the question, asked before, is no answer"
    many = [hit(number, 1.0 - number / 1000, number) for number in range(15)]
    assert [one.id.int for one in lead_newest(many, "Where?") if "recency" in one.parts] == [9, 8, 7, 6, 5, 4, 3, 2, 1]
    assert lead_newest([], "Where?") == []
