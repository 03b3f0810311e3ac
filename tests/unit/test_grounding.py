"""Numbers of what a chat model says: said by somebody, in whatever notation, and no other."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from memstore.derive.facts.grounding import find_doubt
from memstore.derive.facts.quotes import Span
from memstore.derive.llm import Passage


def doubt_about(text: str, said: str) -> str:
    passage = Passage(UUID(int=1), "Ada", "user", datetime(2026, 3, 2, tzinfo=UTC), said)
    spans = [Span(passage, 0, len(said))]
    found = find_doubt(text, "Ada", spans, [passage], "", ("user",), has_slot=False)
    return found.why if found else ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Ada takes 0.5 mg of lorazepam.", "I take 5 mg of lorazepam"),
        ("Ada takes 5 mg of lorazepam.", "I take 0.5 mg of lorazepam"),
        ("Ada takes 12.5 mg of lorazepam.", "I take 125 mg of lorazepam"),
        ("Ada nimmt 1,5 mg Lorazepam.", "Ich nehme 15 mg Lorazepam"),
        ("Ada pays 1,400 pounds of rent.", "My rent is 14 pounds a day"),
        ("Ada's train leaves at 9:30.", "My train leaves at 8:30"),
        ("Ada's train leaves at 9:30.", "My train leaves at nine"),
        ("Ada takes 18 mg of lorazepam.", "I take seventeen mg of lorazepam"),
    ],
)
def test_another_number_is_doubted(text: str, said: str) -> None:
    assert "nobody has said the number" in doubt_about(text, said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Ada takes 0.5 mg of lorazepam.", "I take 0,5 mg of lorazepam"),
        ("Ada takes 0.5 mg of lorazepam.", "I take 0.50 mg of lorazepam"),
        ("Ada pays 1400 pounds of rent.", "My rent is 1,400 pounds"),
        ("Ada zahlt 1.400,50 Euro Miete.", "Ich zahle 1400,5 Euro Miete"),
        ("Ada's train leaves at 17:30.", "My train leaves at 5:30 pm"),
        ("Ada's train leaves at 17:30.", "My train leaves at 5.30 pm"),
        ("Ada's train leaves at 9:30.", "My train leaves at half past nine"),
        ("Ada's train leaves at 20:00.", "My train leaves at 8"),
        ("Ada's train leaves at 8 pm.", "My train leaves at 20:00"),
        ("Ada takes 17 mg of lorazepam.", "I take seventeen mg of lorazepam"),
        ("Ada nimmt 19 mg Lorazepam.", "Ich nehme neunzehn mg Lorazepam"),
        ("Ada has 0 pounds left after rent.", "I have zero pounds left after rent"),
        ("Ada uses Python 3.11.2.", "I use Python 3.11.2"),
    ],
)
def test_a_number_may_be_written_otherwise(text: str, said: str) -> None:
    assert doubt_about(text, said) == ""


@pytest.mark.parametrize(
    ("text", "said", "ended"),
    [
        ("Ada no longer has a car.", "we {} the car", ("washed", "sold")),
        ("Ada no longer has the keys.", "I {} the keys", ("found", "handed back")),
        ("Ada hat kein Auto mehr.", "haben das Auto {}", ("gewaschen", "verkauft")),
        ("Ada n'a plus de voiture.", "on a {} la voiture", ("lavé", "vendu")),
    ],
)
def test_what_is_sold_or_given_back_is_had_no_longer(text: str, said: str, ended: tuple[str, str]) -> None:
    doubts = [doubt_about(text, said.format(verb)) for verb in ended]
    assert doubts == ["it denies what nobody has denied", ""]
