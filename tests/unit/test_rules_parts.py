"""What one message says at once: each lasting thing a fact of its own, once, with who is meant; requests are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.by_rules import read, slots, told


@pytest.mark.parametrize(
    "asked",
    [
        "Plan a hike in the Alps in June.", "Organise our farewell party in June.", "Think of a name for my boat.",
        "Need an outline for my talk on Friday.", "Book a train and plan a day in Ghent.",
        "Plane uns bitte eine Wanderung im Juni.",
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
        ("Plan to hike the Alps in June.", "Alice plans to hike the Alps in June (June 2024)."),
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
        ("I'm allergic to pollen and to horses.", ["Alice is allergic to pollen.", "Alice is allergic to horses."]),
        ("Ich bin allergisch gegen Pollen und gegen Pferde.",
         ['Alice: "Ich bin allergisch gegen Pollen."', 'Alice: "Ich bin allergisch gegen Pferde."']),
        ("I eat eggs again, but still no dairy.", ["Alice eats eggs again.", "Alice still eats no dairy."]),
        ("Ich esse wieder Eier, aber weiterhin keine Nüsse.",
         ['Alice: "Ich esse wieder Eier."', 'Alice: "Ich esse weiterhin keine Nüsse."']),
        ("I eat eggs again, but no idea why.", ["Alice eats eggs again."]),
        ("I teach maths and prepare all evening.", ["Alice teaches maths and prepares all evening."]),
        ("Ich wohne in Trier und male gern.", ['Alice: "Ich wohne in Trier."', 'Alice: "Ich male gern."']),
        ("I'm a midwife at Guy's Hospital.", ["Alice is a midwife.", "Alice works at Guy's Hospital."]),
        ("I'm a student at Leeds.", ["Alice is a student at Leeds."]),
        ("I work as a waiter at the weekend.", ["Alice works as a waiter at the weekend."]),
        ("Ich bin Hebamme bei Helios.", ['Alice: "Ich bin Hebamme."', 'Alice: "Ich arbeite bei Helios."']),
        ("Our new address is 4 Lime Street, 50667 Cologne.",
         ["Alice's new address is 4 Lime Street, 50667 Cologne."]),
        ("Our garden budget is 1,500 pounds.", ["Alice's garden budget is 1,500 pounds."]),
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


@pytest.mark.parametrize(
    ("said", "filled"),
    [
        ("I work as a nurse at the Charing Cross clinic.", [("job", "nurse"), ("employer", "charing cross clinic")]),
        ("I now work as a ward sister at the children's hospital Ulm.",
         [("job", "ward sister"), ("employer", "children's hospital ulm")]),
        ("I work at the hospital.", []),
        ("I'm head of sales at Zeiss.", [("job", "head of sales"), ("employer", "zeiss")]),
        ("Ab März arbeite ich in der Kanzlei Dr. Horn.", [("employer", "kanzlei dr. horn")]),
        ("My last name is Abel now.", [("surname", "abel")]),
        ("My maiden name is Abel.", []),
        ("Budget is 2,400 francs.", [("amount/budget", "2,400 francs")]),
        ("Rent is 90.", [("amount/rent", "90")]),
        ("We raised the travel budget to 3,000 dollars.", [("amount/travel budget", "3,000 dollars")]),
        ("Mein Gehalt ist jetzt 2.950,50 Euro.", [("amount/gehalt", "2.950,50 euro")]),
        ("Meine Schuhgröße ist 42.", [("amount/schuhgrösse", "42")]),
        ("The score is 21.", []),
        ("I'm 87.5% done.", []),
        ("Ich bin 1,80 groß.", []),
        ("I'm getting married in June.", []),
    ],
)  # fmt: skip
def test_what_is_earned_is_no_age_and_who_employs_is_beside_the_job(said, filled):
    assert slots(said) == [("Alice", *one) for one in filled]


@pytest.mark.parametrize(
    ("said", "subject"),
    [
        ("Jonas' father is allergic to bees.", "Jonas' father"),
        ("Carla's mother is allergic to bees.", "Carla's mother"),
        ("My brother's wife is allergic to bees.", "Alice's brother's wife"),
        ("Jonas' Vater ist allergisch gegen Bienen.", "Jonas' Vater"),
        ("Carlas Mutter ist allergisch gegen Bienen.", "Carlas Mutter"),
        ("Mein Vater ist allergisch gegen Bienen.", "Alice's Vater"),
    ],
)
def test_the_kin_of_somebody_named_are_told_apart_from_them(said, subject):
    ((draft, slot),) = read(said)
    assert (draft.type, draft.subject) == ("constraint", subject)
    assert slot is not None and slot.value == "yes"


@pytest.mark.parametrize(
    "said",
    [
        "The mother of Jonas is allergic to bees.", "Die Mutter von Jonas ist allergisch gegen Bienen.",
        "Is Jonas' father allergic to bees?", "Jonas' doctor thinks his father is allergic to bees.",
    ],
)  # fmt: skip
def test_what_the_mother_of_somebody_has_is_not_theirs(said):
    assert not any(one.draft.subject == "Jonas" or one.slot for one in read(said))


@pytest.mark.parametrize(
    ("said", "type"),
    [
        ("Ich habe am 2. Dezember um 8:15 einen Termin bei Dr. Horn.", "plan"),
        ("Der Termin wurde verschoben auf den 9. Dezember um 14 Uhr.", "plan"),
        ("The suit fitting is on 5 May at 3 pm.", "plan"),
        ("Seit Mai arbeite ich in der Praxis Dr. Horn.", "identity"),
        ("Unsere neue Adresse ist Birkenweg 7, 50667 Köln.", "identity"),
        ("Mein Nachname ist jetzt Abel.", "identity"),
        ("Ich nehme jetzt dreimal täglich Metformin 500.", "constraint"),
        ("I take metformin 500 twice a day.", "constraint"),
        ("Ich gehe zweimal die Woche schwimmen.", "interest"),
        ("Jeden Morgen nehme ich den Bus.", "interest"),
        ("My shoe size is 42.", "identity"),
        ("Rex died.", "event"),
    ],
)
def test_what_lasts_and_what_is_planned_is_read_in_the_order_it_is_said(said, type):
    ((draft, _),) = read(said)
    assert draft.type == type
    assert draft.text.count("(") == said.count(" Dezember") + said.count(" May") + said.count(" Mai ")


@pytest.mark.parametrize(
    "said",
    ["Heute nehme ich den Bus.", "Ich nehme das Angebot an.", "Dann arbeite ich weiter.", "Was nehme ich täglich?",
     "Who feeds the cat while we're away?", "Nobody died."],
)  # fmt: skip
def test_what_is_of_today_or_asked_is_none(said):
    assert read(said) == []


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
    assert told("Great news: Tom and I are getting married!") == ["Tom and Alice are getting married."]
    assert told("She lands at 21:50, Tom and I pick my mother up.") == [
        "She lands at 21:50, Tom and Alice pick their mother up."
    ]
    assert told("My aunt was happy that Tom and I are moving to York.") == [
        "Alice's aunt was happy that Tom and Alice are moving to York."
    ]


@given(st.lists(st.sampled_from(
    ["I'm ", "I ", "my son ", "vegan", " and ", ", ", "allergic to ", "live in Rome", " with my dog", " as a nurse",
     "don't eat ", "pork", " or ", "is", "does", "not ", "ich bin ", "und ", "schon", "我", "住在", "请", "until May",
     ": ", "meine Tochter ", "ist es"]
), max_size=14).map("".join))  # fmt: skip
def test_no_mixture_raises_and_every_fact_stands_in_the_message(text):
    for one in read(text):
        assert 0 <= one.draft.start < one.draft.stop <= len(text)
    assert read(text) == read(text)
