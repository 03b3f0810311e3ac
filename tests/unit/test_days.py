"""The last day that a plan names, by the day on which it was said."""

from datetime import UTC, datetime, timedelta

import pytest

from memstore.derive.facts.days import end_of_period, end_of_plan

TUESDAY = datetime(2026, 10, 6, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("words", "last"),
    [
        ("dentist on Friday at 8", "2026-10-09"),
        ("Zahnarzt am Freitag um 8", "2026-10-09"),
        ("seeing mum tomorrow", "2026-10-07"),
        ("wir ziehen morgen um", "2026-10-07"),
        ("übermorgen zur Prüfung", "2026-10-08"),
        ("flying on 12 November", "2026-11-12"),
        ("the wedding is on November 12th, 2026", "2026-11-12"),
        ("the exam is on the 12th of November", "2026-11-12"),
        ("Friday the 13th of November", "2026-11-13"),
        ("Umzug am 3.11.", "2026-11-03"),
        ("Umzug am 3. November", "2026-11-03"),
        ("boiler service, Tuesday 13 October between 8 and 12", "2026-10-13"),
        ("must be in by Friday", "2026-10-09"),
        ("exam on 5 January", "2027-01-05"),
        ("exam on 2026-12-01", "2026-12-01"),
        ("the wedding is on 12 June 2028", "2028-06-12"),
        ("boiler service, Monday 13 October", None),
        ("in Porto from the 20th to the 24th", None),
        ("in Porto 20 October to 24 October", None),
        ("the exam is on 9999-12-31", None),
        ("the exam is on 0000-00-00", None),
        ("meeting next Friday", None),
        ("next week on Friday", None),
        ("übernächsten Freitag", None),
        ("Tuesday at 10", None),
        ("swimming every Friday", None),
        ("freitags Chor", None),
        ("Fridays are for choir", None),
        ("wöchentlicher Chor am Freitag", None),
        ("my job starts on Monday", None),
        ("ich fange am Montag an", None),
        ("ab Montag in der neuen Stelle", None),
        ("since 12 November", None),
        ("flying to Rome on 12 November for two weeks", None),
        ("I called the dentist today, the appointment is on Friday", None),
        ("not tomorrow, the dentist is on Friday", None),
        ("signed the lease this morning", None),
        ("Zahnarzt am Freitag Morgen um 8", "2026-10-09"),
        ("heute Morgen Zahnarzt gebucht", None),
        ("on Monday the landlord said we must move", None),
        ("on 12 August I go to Rome", None),
        ("on 31 February", None),
        ("moving to the 3rd floor", None),
        ("the exam I sat in June", None),
        ("the other 2 may come", None),
        ("one day we may go to Japan", None),
        ("guten Morgen", None),
        ("a march of 12 miles", None),
    ],
)
def test_the_last_day_of_a_plan(words: str, last: str | None) -> None:
    end = end_of_plan(words, TUESDAY)
    assert (None if end is None else (end - timedelta(days=1)).date().isoformat()) == last


@pytest.mark.parametrize(
    ("words", "over"),
    [
        ("camping next month", "2026-12-01"),
        ("a conference this month", "2026-11-01"),
        ("Umzug diesen Monat", "2026-11-01"),
        ("a meeting next week", "2026-10-19"),
        ("hiking this weekend", "2026-10-12"),
        ("am nächsten Wochenende zelten", "2026-10-19"),
        ("we go to Porto next year", "2028-01-01"),
        ("dieses Jahr nach Porto", "2027-01-01"),
        ("lunch next Friday", "2026-10-17"),
        ("lunch this Friday", "2026-10-10"),
        ("paella tonight", "2026-10-07"),
        ("the exam is in two weeks", "2026-10-27"),
        ("die Prüfung ist in drei Wochen", "2026-11-03"),
        ("die Prüfung ist in ein paar Tagen", "2026-10-12"),
        ("more advertisements in the next few months", "2027-04-10"),
        ("an interview in a couple of days", "2026-10-10"),
        ("this week or next month", "2026-12-01"),
        ("in the next two Friday", "2026-10-27"),
        ("a new job starting next month", None),
        ("from next week on", None),
        ("Urlaub nach dieser Woche", None),
        ("choir every week this year", None),
        ("in week 42", None),
        ("soon", None),
        ("last month", None),
        ("next time", None),
    ],
)
def test_a_period_is_over_however_it_was_meant(words: str, over: str | None) -> None:
    end = end_of_period(words, TUESDAY)
    assert end == (None if over is None else datetime.fromisoformat(f"{over}T00:00Z"))


def test_a_week_that_is_named_on_a_sunday_may_be_the_one_that_begins() -> None:
    sunday, december = datetime(2026, 10, 11, tzinfo=UTC), datetime(2026, 12, 31, tzinfo=UTC)
    assert end_of_period("this week", sunday) == datetime(2026, 10, 19, tzinfo=UTC)
    assert end_of_period("this month", december) == datetime(2027, 1, 1, tzinfo=UTC)
    assert end_of_period("next month", december) == datetime(2027, 2, 1, tzinfo=UTC)
