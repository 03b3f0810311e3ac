"""What somebody has, or cannot have, is a constraint: told by the form of the word, in five languages."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memstore.ingest.rules.drafts import Said
from memstore.ingest.rules.slotted import slotted

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)


def read(said: str) -> list[tuple[str, str]]:
    return [(one.draft.type, one.draft.text) for one in slotted(Said(said, "user", "Alice", MONDAY))]


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("I'm dyslexic.", "Alice is dyslexic."),
        ("I have dyslexia", "Alice has dyslexia."),
        ("I'm dyslexic, so please don't give me long word problems.", "Alice is dyslexic."),
        ("I'm diabetic", "Alice is diabetic."),
        ("I'm epileptic, by the way.", "Alice is epileptic."),
        ("I have ADHD.", "Alice has ADHD."),
        ("I've got tonsillitis.", "Alice has got tonsillitis."),
        ("I have type 1 diabetes.", "Alice has type 1 diabetes."),
        ("I have mild dyscalculia", "Alice has mild dyscalculia."),
        ("I'm hard of hearing.", "Alice is hard of hearing."),
        ("I'm not autistic.", "Alice is not autistic."),
        ("My son is dyspraxic.", "Alice's son is dyspraxic."),
        ("My granddad has Parkinson's.", "Alice's granddad has Parkinson's."),
        ("Mia has epilepsy.", "Mia has epilepsy."),
        ("I have MS.", "Alice has MS."),
        ("I have rheumatoid arthritis.", "Alice has rheumatoid arthritis."),
        ("My dad has prostate cancer.", "Alice's dad has prostate cancer."),
        ("I have seasonal allergies.", "Alice has seasonal allergies."),
        ("I have a weak heart.", "Alice has a weak heart."),
        ("I'm a blind man.", "Alice is a blind man."),
        ("I don't have asthma.", "Alice doesn't have asthma."),
        ("J'ai une arthrite.", 'Alice: "J\'ai une arthrite."'),
        ("Ich bin Legasthenikerin.", 'Alice: "Ich bin Legasthenikerin."'),
        ("Mein Sohn hat Asthma.", 'Alice: "Mein Sohn hat Asthma."'),
        ("Je suis dyslexique.", 'Alice: "Je suis dyslexique."'),
        ("Soy asmático.", 'Alice: "Soy asmático."'),
        ("我有糖尿病。", 'Alice: "我有糖尿病。"'),
    ],
)
def test_a_condition_is_a_constraint(said, fact):
    assert read(said) == [("constraint", fact)]


@pytest.mark.parametrize(
    "said",
    [
        "I have an idea.", "I have a media exam.", "I'm artistic.", "I have a friend with asthma.",
        "I read a book about people who have cancer.", "I have no idea.", "I'm so romantic.",
        "I have an academic year off.",
        "Do I have asthma?", "Maybe I'm dyslexic.", "I had a migraine yesterday.", "I have a diploma.",
        "I have nostalgia for the nineties.", "I have pots in the garden.", "I have MS Office.",
        "I have a heart drawn on my arm.", "I have impostor syndrome.", "I have back issues of the magazine.",
        "I have a cancer patient in my ward.", "I have a diabetes test tomorrow.", "I have beaten cancer.",
        "My job is helping a blind man.", "My school is for deaf children.",
        "J'ai une petite sœur.", "J'ai une visite demain.",
        "Ich habe eine Idee.", "Ich habe viel Nostalgie.", "Ich habe Ads geschaltet.",
        "我有朋友有哮喘。", "我有糖尿病的朋友。",
    ],
)  # fmt: skip
def test_what_only_sounds_like_one_is_none(said):
    assert not [text for kind, text in read(said) if kind == "constraint"]


@pytest.mark.parametrize(
    ("said", "type"),
    [
        ("I had the allergy test today.", "event"),
        ("My allergy test is on 3 May.", "plan"),
        ("Ich habe am 3. Mai einen Allergietest.", "plan"),
        ("I have a nut allergy.", "constraint"),
    ],
)
def test_a_test_for_allergies_is_none(said, type):
    assert [found for found, _ in read(said)] == [type]
