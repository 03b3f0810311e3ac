"""What people say of their lives fills the slot that it is about: sentences for rows that no dialogue here reads."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memstore.ingest.rules.drafts import Said
from memstore.ingest.rules.slots import statements_with_slots


@pytest.mark.parametrize(
    ("sentence", "attribute", "value"),
    [
        ("I'm no longer dating Leo.", "former/partner", "leo"),
        ("My husband dumped me last year.", "former/partner", ""),
        ("I'm not a nurse any more.", "former/job", "nurse"),
        ("I gave up rowing.", "former/habit/rowing", ""),
        ("I moved away from Leeds.", "former/residence", "leeds"),
        ("I was laid off by Siemens.", "former/employer", "siemens"),
        ("I no longer work as a nurse.", "former/job", "nurse"),
        ("I quit my job as a nurse.", "former/job", "nurse"),
        ("I lost my job.", "former/employer", ""),
        ("I was made redundant.", "former/employer", ""),
        ("I dropped out of law.", "former/studies", "law"),
        ("I stopped being vegan.", "former/diet", "vegan"),
        ("My girlfriend left me.", "former/partner", ""),
        ("I broke up with Leo at the station.", "former/partner", "leo"),
        ("We had to put down our dog.", "former/pet/dog", ""),
        ("I sold my car.", "former/car", ""),
        ("The exam is cancelled.", "former/plan/exam", ""),
        ("We called off the trip.", "former/plan/trip", ""),
        ("I left Seefeld School.", "former/school", "seefeld school"),
        ("I'm a pupil at Seefeld.", "school", "seefeld"),
        ("I settled down in Leeds.", "residence", "leeds"),
        ("My new home is Leeds.", "residence", "leeds"),
        ("I'm visiting Leeds.", "temporary/residence", "leeds"),
        ("My hometown is Leeds.", "hometown", "leeds"),
        ("I got a job as a nurse.", "job", "nurse"),
        ("I'm retired.", "job", "retired"),
        ("I joined Siemens.", "employer", "siemens"),
        ("I got a job at Siemens.", "employer", "siemens"),
        ("My employer is Siemens.", "employer", "siemens"),
        ("I study law.", "studies", "law"),
        ("I switched my major to law.", "studies", "law"),
        ("I can eat eggs again.", "eats/egg", "yes"),
        ("I changed my name to Ada Keller.", "name", "ada keller"),
        ("I go by Max.", "nickname", "max"),
        ("My wife is Anna.", "partner", "anna"),
        ("I live at 12 Elm Road.", "address", "12 elm road"),
        ("Keep your answers short.", "answers/length", "short"),
        ("I prefer short answers.", "answers/length", "short"),
        ("I outgrew my peanut allergy.", "allergy/peanut", "no"),
        ("I take bisolvon 20 mg.", "medication/bisolvon", "yes"),
        ("I've gone off coffee.", "likes/coffee", "no"),
        ("I quit smoking.", "smoking", "no"),
        ("I'm a non-smoker.", "smoking", "no"),
        ("I'm a smoker.", "smoking", "yes"),
        ("I no longer drink alcohol.", "drinking", "no"),
        ("I'm sober.", "drinking", "no"),
        ("My new car is a Golf.", "car", "golf"),
        ("I sold my bike.", "owns/bike", "no"),
        ("The deadline for the report was moved to Friday.", "deadline/report", "friday"),
        ("The deadline for the report is Friday.", "deadline/report", "friday"),
        ("The report is due on Friday.", "deadline/report", "friday"),
        ("The new date for the exam is 5 May.", "plan/exam", "5 may"),
    ],
)
def test_a_sentence_fills_its_slot(sentence: str, attribute: str, value: str) -> None:
    (found,) = statements_with_slots(Said(sentence, "user", "Alice", datetime(2023, 5, 8, tzinfo=UTC)), "en")
    assert (found.slot.attribute, found.slot.value) == (attribute, value)
