"""Facts of French, Spanish and Chinese, in the words that were said."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstore.ingest.rules.drafts import FactDraft, Said
from memstore.ingest.rules.foreign import extract_foreign
from memstore.ingest.rules.languages import language_of
from memstore.ingest.rules.slots import statements_with_slots
from memstore.ingest.rules.slotted import slotted

MONDAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def facts(text: str, role: str = "user") -> list[FactDraft]:
    said, language = Said(text, role, "Alice", MONDAY), language_of(text)
    return extract_foreign(said, language, statements_with_slots(said, language))


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I live in Leeds with my cat and it is nice.", "en"), ("Ich wohne mit meiner Katze in Köln.", "de"),
        ("J’habite à Lyon avec mon chat.", "fr"), ("Vivo en Sevilla con mi gato y me gusta.", "es"),
        ("我住在北京。", "zh"), ("東京に住んでいます。", "und"), ("ok", "und"), ("", "und"),
    ],
)  # fmt: skip
def test_the_language_is_told_by_common_words(text, language):
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("said", "type", "fact", "subject"),
    [
        ("J'habite à Lyon et je suis infirmière.", "identity", 'Alice: "J\'habite à Lyon."', "Alice"),
        ("Je suis allergique aux noix !", "constraint", 'Alice: "Je suis allergique aux noix."', "Alice"),
        ("Ma sœur habite à Toulon.", "relationship", 'Alice: "Ma sœur habite à Toulon."', "Alice's sœur"),
        ("Bon, je veux apprendre le portugais.", "goal", 'Alice: "Je veux apprendre le portugais."', "Alice"),
        (
            "Hier, j'ai vu un concert à Nice.",
            "event",
            'Alice: "Hier (7 mai 2023), j\'ai vu un concert à Nice."',
            "Alice",
        ),
        ("Soy alérgica a los cacahuetes.", "constraint", 'Alice: "Soy alérgica a los cacahuetes."', "Alice"),
        ("Tengo dos hermanos en la ciudad.", "relationship", 'Alice: "Tengo dos hermanos en la ciudad."', "Alice"),
        ("我对花生过敏。", "constraint", 'Alice: "我对花生过敏。"', "Alice"),
        ("我住在北京，你呢？", "identity", 'Alice: "我住在北京。"', "Alice"),
        ("我妹妹住在东京。", "relationship", 'Alice: "我妹妹住在东京。"', "Alice's 妹妹"),
        ("我喜欢爬山。", "preference", 'Alice: "我喜欢爬山。"', "Alice"),
    ],
)
def test_a_lasting_statement_is_kept_in_its_words(said, type, fact, subject):
    found = facts(said)
    assert [(one.type, one.text, one.subject) for one in found[:1]] == ([(type, fact, subject)] if fact else [])
    for one in found:
        assert said[one.start : one.stop].strip(" .!")[:6] in said


@pytest.mark.parametrize(
    "said",
    [
        "Est-ce que j'habite à Lyon ?", "Si j'habitais à Lyon, je suis sûre que oui.", "Elle dit que j'habite à Lyon.",
        "«J'habite à Lyon», a-t-il dit.", "¿Vivo en Sevilla?", "Si viviera en Roma, tengo claro que sí.",
        "Quizás me mudo a Roma.", "如果我住在北京就好了。", "他说我住在北京。", "Je voudrais un café.",
        "¡Hola! ¿Qué tal?",
    ],
)  # fmt: skip
def test_what_was_not_asserted_is_no_fact(said):
    assert facts(said) == []


def test_only_people_state_facts():
    assert facts("J'habite à Lyon.", role="assistant") == []


@given(st.text(max_size=200))
def test_no_text_raises(text):
    language_of(text)
    for language in ("fr", "es", "zh"):
        said = Said(text, "user", None, MONDAY)
        extract_foreign(said, language, statements_with_slots(said, language))


@pytest.mark.parametrize("piece", ["我喜欢茶。", "J'aime le thé. ", "Me gusta el té. ", "Ich mag Tee. ", "I ski. "])
def test_of_a_paste_a_thousand_sentences_are_read(piece):
    begin = time.process_time()
    said = Said(
        f"{piece * 60_000}I live in Rome. Vivo en Roma. J'habite à Rome. Ich wohne in Rom.", "user", "A", MONDAY
    )
    assert all(one.draft.stop <= 1000 * len(piece) for one in slotted(said))
    # An honest run takes a second; each of 60,000 facts beside all others, a quarter of an hour.
    assert time.process_time() - begin < 20
