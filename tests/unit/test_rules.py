"""Facts by rule: what a person would call a fact, in the third person, and nothing else."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstore.ingest.rules.extraction import OPERATING_POINT, FactDraft, Said, extract

MONDAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def facts(
    text: str, *, speaker: str | None = "Alice", at: datetime = MONDAY, role: str = "user", worth: float = 0.0
) -> list[FactDraft]:
    return extract(Said(text, role, speaker, at), worth=worth)


def texts(text: str, **more) -> list[str]:
    return [fact.text for fact in facts(text, **more)]


@pytest.mark.parametrize(
    ("said", "kind", "fact"),
    [
        ("I'm allergic to peanuts.", "constraint", "Alice is allergic to peanuts."),
        ("i’m allergic to peanuts", "constraint", "Alice is allergic to peanuts."),
        ("I don't eat pork.", "constraint", "Alice doesn't eat pork."),
        ("I eat fish now.", "constraint", "Alice eats fish now."),
        ("I no longer eat meat.", "constraint", "Alice no longer eats meat."),
        ("I was diagnosed with asthma.", "constraint", "Alice was diagnosed with asthma."),
        ("My name is Alice Weber.", "identity", "Alice's name is Alice Weber."),
        ("I'm 34 years old.", "identity", "Alice is 34 years old."),
        ("I've moved to Porto.", "identity", "Alice has moved to Porto."),
        ("I'm a freelance illustrator.", "identity", "Alice is a freelance illustrator."),
        ("I teach and I study", "identity", "Alice teaches and Alice studies."),
        ("I got promoted at work!", "identity", "Alice got promoted at work."),
        ("I love long train journeys 😍", "preference", "Alice loves long train journeys."),
        ("I can't stand horror films.", "preference", "Alice can't stand horror films."),
        ("My favourite book is Middlemarch.", "preference", "Alice's favourite book is Middlemarch."),
        ("My cat is called Miso.", "relationship", "Alice's cat is called Miso."),
        ("I have two brothers, Jonas and Piet.", "relationship", "Alice has two brothers, Jonas and Piet."),
        ("Priya is my best friend.", "relationship", "Priya is Alice's best friend."),
        ("I have a red bike.", "identity", "Alice has a red bike."),
        ("I speak German with my mother.", "strength", "Alice speaks German with their mother."),
        ("I'm learning Portuguese.", "strength", "Alice is learning Portuguese."),
        ("I run every morning.", "interest", "Alice runs every morning."),
        ("I used to smoke.", "interest", "Alice used to smoke."),
        ("I'd like to learn Dutch.", "goal", "Alice would like to learn Dutch."),
        ("I wanna run a marathon", "goal", "Alice wants to run a marathon."),
        ("I won the chess tournament.", "event", "Alice won the chess tournament."),
        ("Yeah, well, I went to a concert with my sister.", "event", "Alice went to a concert with their sister."),
        ("Tom hates mushrooms though.", "preference", "Tom hates mushrooms."),
        ("Please always answer in metric units.", "procedure", 'Alice: "Please always answer in metric units."'),
    ],
)
def test_what_is_said_becomes_a_fact_in_the_third_person(said, kind, fact):
    found = facts(said)
    assert [draft.text for draft in found] == ([fact] if fact else [])
    assert not fact or found[0].type == kind


@pytest.mark.parametrize(
    "said",
    [
        "I'm so glad you asked!", "I hope you have a great day.", "I like your idea.",
        "I wish I lived in Rome.", "If I lived in Rome, I would have a dog.",
        "Maybe I'll move to Spain.", "I might adopt a cat.", "I would live in Rome.", "I could work at a bakery.",
        "Do I live in Rome?", "I live in Rome?", "Do you think I have two dogs?", "Can you help me with my essay?",
        "I need a function that sorts a list.", "I'm trying to fix this bug in my code.", "Write me a poem on my cat.",
        "I have a question.", "I have an error in line 3.", "I want to make sure I understand it.",
        'She said "I live in Rome. I have two dogs."', "He wrote: “I am allergic to peanuts.”",
        "> I live in Rome", "`I live in Rome`", "```\nI live in Rome.\n```",
        "```python\n# I have a dog\nI live in Rome.",
        "[shares: I live in Rome]", "Never give up!", "If I get the job, I live in Rome.",
        'I live in Rome, "and I love you", he wrote.',
        "Je suis allergique aux arachides.", "Vivo en Roma.",
        "Ich bin müde.", "Wohnst du in Berlin?", "Wenn ich reich wäre, würde ich in Rom wohnen.", "Ich liebe das!",
        "", "   ", "...", "\x00", "I", "my",
    ],
)  # fmt: skip
def test_what_does_not_last_or_was_not_asserted_gives_nothing(said):
    assert facts(said) == []


@pytest.mark.parametrize(
    "said",
    [
        "I'm tired.",
        "I'm sorry.",
        "I'm good, thanks.",
        "I think so.",
        "I love that!",
        "I did it!",
        "I'm excited about this.",
    ],
)
def test_small_talk_is_worth_too_little(said):
    assert facts(said) and facts(said, worth=OPERATING_POINT) == []


@pytest.mark.parametrize("role", ["assistant", "system", "tool", "developer"])
def test_only_users_are_believed(role):
    assert facts("I'm allergic to peanuts.", role=role) == []


def test_without_a_name_the_speaker_is_the_user():
    assert texts("I love my sister, and my sister Anna lives in Berlin.", speaker=None) == [
        "The user loves their sister.",
        "The user's sister Anna lives in Berlin.",
    ]
    assert texts("When I was ten, I broke my arm.", speaker=None) == [
        "When the user was ten, the user broke their arm."
    ]


def test_the_subject_is_whom_the_fact_is_about():
    found = facts("I hate coriander. My brother's birthday is in June. Tom is allergic to shellfish.")
    assert [fact.subject for fact in found] == ["Alice", "Alice's brother", "Tom"]


def test_each_clause_of_a_sentence_stands_for_itself():
    assert texts(
        "One thing before I forget: I'm allergic to peanuts, and I fly to Lisbon on Friday, so what can I eat?"
    ) == [
        "Alice is allergic to peanuts.",
        "Alice flies to Lisbon on Friday (12 May 2023).",
    ]
    assert texts("I live in Leeds but I grew up in Hamburg because my mother is German.") == [
        "Alice lives in Leeds.",
        "Alice grew up in Hamburg.",
        "Alice's mother is German.",
    ]


def test_the_assertion_before_a_question_counts_and_the_question_does_not():
    assert texts("I have a dog, can you suggest a park?") == ["Alice has a dog."]
    assert texts("I have a dog, should I get my dog a friend?") == ["Alice has a dog."]


def test_we_are_the_speaker_and_others():
    assert texts("We adopted a dog yesterday.") == ["Alice and others adopted a dog yesterday (7 May 2023)."]
    assert texts("I love our garden.") == ["Alice loves their garden."]


def test_two_people_take_the_plural():
    assert texts("My husband and I are getting married in June.") == [
        "Alice's husband and Alice are getting married in June (June 2023)."
    ]


def test_two_clauses_are_not_two_people():
    assert texts("My laptop broke and I bought a new one last week.") == [
        "Alice's laptop broke and Alice bought a new one last week (week of 1 May 2023).",
    ]


def test_a_subject_left_out_is_the_speaker_but_less_certain():
    (fact,) = facts("Just moved to Porto!")
    (said,) = facts("I just moved to Porto!")
    assert fact.text == said.text == "Alice just moved to Porto."
    assert fact.confidence < said.confidence


def test_the_same_fact_is_given_once():
    assert texts("I love tea. I love tea! And I LOVE TEA.") == ["Alice loves tea."]


def test_what_the_speaker_calls_by_name_stays():
    assert texts('I read "War and Peace" last year.') == ['Alice read "War and Peace" last year (2022).']


@pytest.mark.parametrize(
    ("said", "resolved"),
    [
        ("I visited Rome yesterday.", "yesterday (7 May 2023)"),
        ("I visited Rome last Friday.", "last Friday (5 May 2023)"),
        ("I visited Rome last Monday.", "last Monday (1 May 2023)"),
        ("I signed up for a race on 20 September.", "on 20 September (20 September 2023)"),
        ("I visited Rome on Friday.", "on Friday (5 May 2023)"),
        ("I fly to Rome on Friday.", "on Friday (12 May 2023)"),
        ("I fly to Rome on Monday.", "on Monday (15 May 2023)"),
        ("I fly to Rome next Friday.", "next Friday (19 May 2023)"),
        ("I visited Rome last week.", "last week (week of 1 May 2023)"),
        ("I visited Rome last weekend.", "last weekend (6–7 May 2023)"),
        ("I visited Rome last month.", "last month (April 2023)"),
        ("I'm moving to Rome next year.", "next year (2024)"),
        ("I visited Rome two weeks ago.", "two weeks ago (week of 24 April 2023)"),
        ("I visited Rome 6 months ago.", "6 months ago (November 2022)"),
        ("I visited Rome in June.", "in June (June 2022)"),
        ("I'm moving to Rome in June.", "in June (June 2023)"),
        ("I'm moving to Rome on 3 June.", "on 3 June (3 June 2023)"),
        ("I'm moving to Rome on June 3rd.", "on June 3rd (3 June 2023)"),
        ("I'm moving to Rome on 31 June.", "on 31 June."),
        ("I began to pack, it must be done by June 3.", "by June 3 (3 June 2023)"),
        ("I booked a tour on September 10-12.", "on September 10-12"),
        ("I visited Rome on May 1, 2020.", "on May 1, 2020."),
        ("I fly to Rome on Saturday 13 May.", "on Saturday 13 May (13 May 2023)"),
        ("I play tennis on Fridays.", "on Fridays."),
        ("I play tennis every Friday.", "every Friday."),
    ],
)
def test_relative_dates_are_anchored_at_the_message(said, resolved):
    (fact,) = texts(said)
    assert resolved in fact


def test_dates_follow_the_speakers_own_midnight():
    late = datetime(2023, 5, 8, 23, 30, tzinfo=timezone(timedelta(hours=-7)))
    (fact,) = facts("I visited Rome yesterday.", at=late)
    assert "(7 May 2023)" in fact.text
    assert fact.valid_from == datetime(2023, 5, 7, tzinfo=late.tzinfo)


def test_a_fact_begins_when_it_is_said_to_and_a_plan_when_it_is_told():
    assert facts("I moved to Porto last month.")[0].valid_from == datetime(2023, 4, 1, tzinfo=UTC)
    assert facts("I've lived in Porto since 2019.")[0].valid_from == datetime(2019, 1, 1, tzinfo=UTC)
    assert facts("I live in Porto.")[0].valid_from is None
    assert facts("I fly to Porto on Friday.")[0].valid_from is None
    assert facts("I live in Porto until June.")[0].valid_from is None


def test_the_edges_of_the_calendar_raise_nothing():
    for year in (1, 9999):
        for said in ("I moved to Rome 300 years ago.", "I fly to Rome next month.", "I fly to Rome tomorrow."):
            assert facts(said, at=datetime(year, 12 if year > 1 else 1, 28, tzinfo=UTC)) is not None


@pytest.mark.parametrize(
    ("said", "kind", "fact"),
    [
        ("Ich bin allergisch gegen Erdnüsse.", "constraint", "Ich bin allergisch gegen Erdnüsse."),
        ("Übrigens, ich heiße Alice.", "identity", "Ich heiße Alice."),
        ("Ich wohne in Leeds, kannst du mir helfen?", "identity", "Ich wohne in Leeds."),
        ("Meine Schwester Lena wohnt in Hamburg.", "relationship", "Meine Schwester Lena wohnt in Hamburg."),
        ("Ich mag keinen Koriander.", "preference", "Ich mag keinen Koriander."),
        ("Ich arbeite als Ärztin.", "identity", "Ich arbeite als Ärztin."),
        ("Nächste Woche fliege ich nach Rom.", "plan", "Nächste Woche (Woche vom 15. Mai 2023) fliege ich nach Rom."),
        ("Am Freitag fahre ich nach Rom.", "plan", "Am Freitag (12. Mai 2023) fahre ich nach Rom."),
        ("Ich war gestern bei Oma.", "event", "Ich war gestern (7. Mai 2023) bei Oma."),
    ],
)
def test_german_is_kept_as_it_was_said(said, kind, fact):
    (found,) = facts(said)
    assert (found.text, found.type) == (f'Alice: "{fact}"', kind)


@given(st.text(max_size=300), st.sampled_from(["Alice", None, "Ö'Neil", "\\1 {x}"]))
def test_no_text_raises_and_the_same_text_gives_the_same_facts(text, speaker):
    assert facts(f"I have {text}", speaker=speaker) == facts(f"I have {text}", speaker=speaker)


@pytest.mark.parametrize(
    "text",
    [
        "I am " * 20_000, "my " * 33_000, '"a' * 50_000, "[a" * 50_000, "`" * 100_000, "\n> " * 33_000, "a" * 100_000,
        "hey " * 25_000, "ich bin " * 12_500, ("I went to " + "the a b " * 70 + ". ") * 170,
        ("I will " + "a b c " * 90 + ". ") * 180, ("my " + "x y z " * 90 + ". ") * 180,
        ("Ich bin " + "in der " * 80 + ". ") * 170, ("Last " + "a b c " * 90 + ", I ") * 180, "I'm allergic, " * 7_000,
    ],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_hostile_texts_take_well_under_a_second(text):
    begin = time.process_time()
    facts(text)
    # An honest run takes a tenth; a pattern that backtracks without end takes minutes.
    assert time.process_time() - begin < 5
