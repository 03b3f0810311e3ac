"""What one message says at once: each lasting thing a fact of its own, once, with who is meant; requests are none."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstore.ingest.rules.drafts import Said
from memstore.ingest.rules.slotted import Slotted, slotted

AT = datetime(2024, 1, 24, 9, tzinfo=UTC)  # a Wednesday


def read(text: str, *before: str) -> list[Slotted]:
    return slotted(Said(text, "user", "Alice", AT), [Said(one, "user", "Alice", AT) for one in before])


def told(text: str) -> list[str]:
    return [one.draft.text for one in read(text)]


def slots(text: str) -> list[tuple[str, str, str]]:
    return [(one.draft.subject, one.slot.attribute, one.slot.value) for one in read(text) if one.slot]


@pytest.mark.parametrize(
    "asked",
    [
        "Please book me a table for two on Friday.", "Book a table without peanuts for me, please.",
        "Remind me to call my mother tomorrow.", "Please don't use peanuts in the recipe.", "List my allergies.",
        "Translate this into German: I'm vegan.", "Write an email to my boss saying I live in Rome now.",
        "Kannst du bitte einen Tisch reservieren?", "Bitte erinnere mich daran, dass ich morgen einen Arzttermin habe.",
        "Schreibe eine Mail an meine Chefin: ich bin Ärztin und wohne in Köln.", "Buch mir bitte einen Flug nach Rom.",
        "Réserve-moi une table pour deux.", "Écris à ma sœur que j'habite à Rome.", "Rappelle-moi d'appeler ma mère.",
        "Recuérdame llamar a mi madre mañana.", "Escribe a mi jefa que vivo en Roma.",
        "请帮我订一张去上海的票。", "提醒我明天给妈妈打电话。",
    ],
)  # fmt: skip
def test_what_is_asked_for_once_is_no_fact(asked):
    assert read(asked) == []


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("Please book a table, I'm vegan.", "Alice is vegan."),
        ("I don't eat pork, please suggest a recipe.", "Alice doesn't eat pork."),
        ("Please note that I'm allergic to nuts.", "Alice is allergic to nuts."),
        ("Bitte buche mir ein Zimmer, ich habe eine Nussallergie.", 'Alice: "Ich habe eine Nussallergie."'),
        ("Please always answer in German.", 'Alice: "Please always answer in German."'),
        ("From now on call me Max.", 'Alice: "From now on call me Max."'),
        ("Nenn mich bitte Max.", 'Alice: "Nenn mich bitte Max."'),
        ("请叫我小王。", 'Alice: "请叫我小王。"'),
    ],
)
def test_what_is_told_beside_a_request_or_asked_for_good_is_a_fact(said, fact):
    assert told(said) == [fact]


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("I live in Hamburg with my husband.", ["Alice lives in Hamburg.", "Alice lives with their husband."]),
        ("I live in Leeds and work as a nurse.", ["Alice lives in Leeds.", "Alice works as a nurse."]),
        ("My mother is German and lives in Hamburg.",
         ["Alice's mother is German.", "Alice's mother lives in Hamburg."]),
        ("I work at Siemens as an engineer.", ["Alice works at Siemens.", "Alice works as an engineer."]),
        ("I'm allergic to peanuts, shellfish and eggs.",
         [f"Alice is allergic to {food}." for food in ("peanuts", "shellfish", "eggs")]),
        ("I'm allergic to nuts and vegan.", ["Alice is allergic to nuts.", "Alice is vegan."]),
        ("I don't eat pork or beef.", ["Alice doesn't eat pork.", "Alice doesn't eat beef."]),
        ("Ich wohne mit meinem Mann in Hamburg.",
         ['Alice: "Ich wohne mit meinem Mann."', 'Alice: "Ich wohne in Hamburg."']),
        ("Ich bin Vegetarierin und allergisch gegen Nüsse.",
         ['Alice: "Ich bin Vegetarierin."', 'Alice: "Ich bin allergisch gegen Nüsse."']),
        ("Meine Schwester wohnt in Lyon und arbeitet bei Airbus.",
         ['Alice: "Meine Schwester wohnt in Lyon."', 'Alice: "Meine Schwester arbeitet bei Airbus."']),
        ("I'm from Trinidad and Tobago.", ["Alice is from Trinidad and Tobago."]),
        ("I live in Bosnia and Herzegovina.", ["Alice lives in Bosnia and Herzegovina."]),
        ("I work at Marks and Spencer.", ["Alice works at Marks and Spencer."]),
        ("I have two brothers, Jonas and Piet.", ["Alice has two brothers, Jonas and Piet."]),
        ("I'm allergic to peanuts, so no cake please.", ["Alice is allergic to peanuts."]),
    ],
)  # fmt: skip
def test_each_lasting_thing_is_a_fact_and_names_stay_whole(said, facts):
    assert told(said) == facts


def test_the_parts_of_a_sentence_fill_their_own_slots():
    assert slots("I live in Hamburg with my husband and work as a nurse at Ikea.") == [
        ("Alice", "residence", "hamburg"), ("Alice", "job", "nurse"), ("Alice", "employer", "ikea"),
    ]  # fmt: skip
    assert slots("Ich wohne mit meinem Mann in Trier und arbeite als Lehrerin.") == [
        ("Alice", "residence", "trier"), ("Alice", "job", "lehrerin"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "of_speaker", "of_other"),
    [
        ("I'm not vegan, my daughter Mia is.", ("former/diet", "vegan"), ("Alice's daughter", "diet", "vegan")),
        ("I'm not allergic to nuts, my son is.", ("allergy/nut", "no"), ("Alice's son", "allergy/nut", "yes")),
        ("My daughter is allergic to nuts, but I'm not.", ("allergy/nut", "no"),
         ("Alice's daughter", "allergy/nut", "yes")),
        ("I don't like coffee, my husband does.", ("likes/coffee", "no"), ("Alice's husband", "likes/coffee", "yes")),
        ("Ich bin nicht vegan, meine Tochter Mia ist es.", ("former/diet", "vegan"),
         ("Alice's Tochter", "diet", "vegan")),
    ],
)  # fmt: skip
def test_what_a_clause_leaves_out_stands_before_it_and_a_denial_is_only_the_speakers(said, of_speaker, of_other):
    assert set(slots(said)) == {("Alice", *of_speaker), of_other}


def test_what_nobody_is_fills_nothing():
    assert slots("I'm not married and not a nurse.") in ([], [("Alice", "former/marital_status", "married")])
    assert slots("I'm Max.") == []  # "I am dating Max" has a partner in it
    assert slots("I'm over the moon!") == []
    assert slots("Our trip got off to a bad start.") == []


def test_our_is_told_as_my_is():
    assert told("Our dog is called Rex.") == ["Alice's dog is called Rex."]
    assert slots("Our dog is called Rex.") == [("Alice", "petname/dog", "rex")]
    assert told("Our son Tom is allergic to nuts.") == ["Alice's son Tom is allergic to nuts."]
    assert slots("Unser Sohn ist allergisch gegen Nüsse.") == [("Alice's Sohn", "allergy/nüsse", "yes")]
    assert slots("Notre fille habite à Nice.") == [("Alice's fille", "residence", "nice")]
    assert slots("Nuestra hija vive en Madrid.") == [("Alice's hija", "residence", "madrid")]
    assert told("The flood in our street made me move to York.")[0].count("our") == 0


@pytest.mark.parametrize(
    "said", ["Our dog is called Rex.", "My cat is called Miso.", "Tom broke up with me.", "Tom and I broke up."]
)
def test_a_sentence_is_told_once(said):
    assert len(told(said)) == 1


def test_what_is_said_twice_in_a_message_ends_together():
    both = [one.slot for one in read("I moved to Porto last month. So now I live in Porto.")]
    assert both[0] is not None and both == [both[0]] * 2


def test_the_companion_of_we_is_named():
    assert told("Tom and I broke up.") == ["Tom and Alice broke up."]


@given(st.lists(st.sampled_from(
    ["I'm ", "I ", "my son ", "vegan", " and ", ", ", "allergic to ", "live in Rome", " with my dog", " as a nurse",
     "don't eat ", "pork", " or ", "is", "does", "not ", "ich bin ", "und ", "schon", "我", "住在", "请", "until May",
     ": ", "meine Tochter ", "ist es"]
), max_size=14).map("".join))  # fmt: skip
def test_no_mixture_raises_and_every_fact_stands_in_the_message(text):
    for one in read(text):
        assert 0 <= one.draft.start < one.draft.stop <= len(text)
    assert read(text) == read(text)
