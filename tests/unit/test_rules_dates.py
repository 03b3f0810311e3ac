"""Dates in five languages: the absolute one beside the relative one, and nothing where none was said."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstore.ingest.rules.dates import anchor

MONDAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)

PAST = [
    ("en", "yesterday", "yesterday (7 May 2023)"),
    ("en", "I passed the exam yesterday.", "I passed the exam yesterday (7 May 2023)."),
    ("en", "since Friday", "since Friday (5 May 2023)"),
    ("en", "a couple of days ago", "a couple of days ago (6 May 2023)"),
    ("de", "letzten Freitag", "letzten Freitag (5. Mai 2023)"),
    ("de", "vor zwei Wochen", "vor zwei Wochen (Woche vom 24. April 2023)"),
    ("fr", "Je suis allé à Rome hier.", "Je suis allé à Rome hier (7 mai 2023)."),
    ("fr", "avant-hier", "avant-hier (6 mai 2023)"),
    ("fr", "vendredi dernier", "vendredi dernier (5 mai 2023)"),
    ("fr", "la semaine dernière", "la semaine dernière (semaine du 1 mai 2023)"),
    ("fr", "il y a deux semaines", "il y a deux semaines (semaine du 24 avril 2023)"),
    ("fr", "l'an dernier", "l'an dernier (2022)"),
    ("fr", "en juin", "en juin (juin 2022)"),
    ("fr", "le 3 juin", "le 3 juin (3 juin 2022)"),
    ("es", "Fui ayer.", "Fui ayer (7 de mayo de 2023)."),
    ("es", "anoche", "anoche (7 de mayo de 2023)"),
    ("es", "el viernes pasado", "el viernes pasado (5 de mayo de 2023)"),
    ("es", "la semana pasada", "la semana pasada (semana del 1 de mayo de 2023)"),
    ("es", "hace dos semanas", "hace dos semanas (semana del 24 de abril de 2023)"),
    ("es", "hace un año", "hace un año (2022)"),
    ("es", "en junio", "en junio (junio de 2022)"),
    ("zh", "我昨天去了罗马", "我昨天（2023年5月7日）去了罗马"),
    ("zh", "上周五", "上周五（2023年5月5日）"),
    ("zh", "两周前", "两周前（2023年4月24日那一周）"),
    ("zh", "十二年前", "十二年前（2011年）"),
    ("zh", "上个月", "上个月（2023年4月）"),
    ("zh", "去年", "去年（2022年）"),
    ("zh", "6月3日", "6月3日（2022年6月3日）"),
]
AHEAD = [
    ("en", "From Friday on I'm off.", "From Friday (12 May 2023) on I'm off."),
    ("en", "From June on I work.", "From June (June 2023) on I work."),
    ("en", "in two weeks", "in two weeks (week of 22 May 2023)"),
    ("fr", "demain", "demain (9 mai 2023)"),
    ("fr", "dans trois mois", "dans trois mois (août 2023)"),
    ("fr", "l'année prochaine", "l'année prochaine (2024)"),
    ("es", "pasado mañana", "pasado mañana (10 de mayo de 2023)"),
    ("es", "la semana que viene", "la semana que viene (semana del 15 de mayo de 2023)"),
    ("es", "dentro de tres días", "dentro de tres días (11 de mayo de 2023)"),
    ("zh", "下周五", "下周五（2023年5月19日）"),
    ("zh", "明年", "明年（2024年）"),
    ("zh", "两个月后", "两个月后（2023年7月）"),
]


@pytest.mark.parametrize(("language", "said", "anchored"), PAST)
def test_what_is_past_lies_before_the_message(language, said, anchored):
    text, begins = anchor(said, MONDAY, past=True, language=language)
    assert text == anchored
    assert begins is not None and begins < MONDAY and begins.tzinfo is UTC


@pytest.mark.parametrize(("language", "said", "anchored"), AHEAD)
def test_what_is_ahead_lies_after_it(language, said, anchored):
    text, begins = anchor(said, MONDAY, past=False, language=language)
    assert text == anchored
    assert begins is not None and begins > MONDAY


SECOND_OF_SEPTEMBER = datetime(2026, 9, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("Your flight is confirmed for 9 October.", "9 October 2026"),
        ("I booked a hotel from 10 to 19 October.", "19 October 2026"),
        ("The train departs 11 November.", "11 November 2026"),
        ("The pool is closing since October.", "October 2025"),
        ("We got invited for 9 January.", "9 January 2027"),
        ("Ich bin am 8. Oktober eingeladen.", "8. Oktober 2026"),
        ("It was moved to 9 January.", "9 January 2027"),
        ("I met her on 1 September, and the exam is on 3 May.", "3 May 2027"),
        ("We split up in August.", "August 2026"),
        ("I got married on 9 October.", "9 October 2025"),
        ("I started on 3 September.", "3 September 2025"),
        ("I lived there until 8 October.", "8 October 2025"),
        ("Notes of 30 August", "30 August 2026"),
        ("Sabine arbeitet bis zum 8. Oktober.", "8. Oktober 2026"),
        ("Der Flug ist für den 9. Januar gebucht.", "9. Januar 2027"),
        ("Ich habe am 8. Oktober geheiratet.", "8. Oktober 2025"),
        ("Ich ziehe am 8. Oktober um.", "8. Oktober 2026"),
        ("Your flight is confirmed, on Friday.", "4 September 2026"),
        ("We moved the christening to 19 June.", "19 June 2027"),
        ("I pushed the exam back to 3 March.", "3 March 2027"),
        ("They changed the date of the fair from Sunday to the 4th of April.", "4 April 2027"),
        ("I moved to Leeds on 19 June.", "19 June 2026"),
        ("I moved to Leeds, and I was ill from 3 to 19 June.", "19 June 2026"),
        ("Wir haben die Taufe auf den 19. Juni gelegt.", "19. Juni 2027"),
        ("Ich habe am 2. März einen Termin.", "2. März 2027"),
        ("Ich hatte am 2. März einen Termin.", "2. März 2026"),
    ],
)
@pytest.mark.parametrize("past", [True, False])
def test_the_words_beside_a_date_say_its_year(said: str, day: str, past: bool) -> None:
    assert f"({day})" in anchor(said, SECOND_OF_SEPTEMBER, past=past)[0]


@pytest.mark.parametrize(
    ("language", "said", "day"),
    [
        ("fr", "Le vol est confirmé pour le 3 juin.", "3 juin 2023"),
        ("es", "El hotel está reservado para el 3 de junio.", "3 de junio de 2023"),
        ("zh", "酒店已预订6月3日", "2023年6月3日"),
    ],
)
def test_what_is_booked_lies_ahead_in_other_languages(language: str, said: str, day: str) -> None:
    assert day in anchor(said, MONDAY, past=True, language=language)[0]


def test_without_a_hint_the_nearest_is_meant() -> None:
    for said, day in [("Hotel from 10 to 19 October.", "19 October 2026"), ("Notes of 30 August", "30 August 2026")]:
        assert f"({day})" in anchor(said, SECOND_OF_SEPTEMBER, past=False)[0]


@pytest.mark.parametrize(
    ("said", "anchored"),
    [
        ("We read Dune in March.", "We read Dune in March (March 2023)."),
        ("In March we read Dune and Emma.", "In March (March 2023) we read Dune and Emma."),
        ("Our book club reads Dune in March.", "Our book club reads Dune in March (March 2024)."),
        ("We will read Dune in March.", "We will read Dune in March (March 2024)."),
    ],
)
def test_a_verb_whose_present_is_written_as_its_past_tells_nothing(said: str, anchored: str) -> None:
    assert anchor(said, MONDAY, past=False)[0] == anchored


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "I may sit in the sun."),
        ("es", "por la mañana"),
        ("es", "esta es mi casa"),
        ("fr", "le lundi"),
        ("fr", "le 3 juin 2020"),
        ("es", "el 3 de junio de 2020"),
        ("zh", "2020年6月3日"),
        ("zh", "三天两头"),
    ],
)
def test_no_date_is_found_where_none_is_relative(language, said):
    assert anchor(said, MONDAY, past=True, language=language)[0] == said


@given(
    st.text(max_size=80) | st.lists(st.sampled_from([one[1] for one in PAST + AHEAD] + ["31", " ", "十"])).map("".join),
    st.sampled_from(["en", "de", "fr", "es", "zh", "xx"]),
    st.sampled_from([1, 2023, 9999]),
)
def test_no_text_raises_and_the_text_stays(text, language, year):
    at = datetime(year, 12 if year > 1 else 1, 28, tzinfo=UTC)
    for past in (True, False):
        anchored, _ = anchor(text, at, past=past, language=language)
        assert len(anchored) >= len(text)
