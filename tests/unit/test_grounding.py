"""Numbers of what a chat model says: said by somebody, in whatever notation, and no other."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from memstore.derive.facts.grounding import find_doubt
from memstore.derive.facts.quotes import Span
from memstore.derive.llm import Passage


def doubt_about(text: str, said: str, before: str = "", *, is_planned: bool = False) -> str:
    day = datetime(2026, 3, 2, tzinfo=UTC)
    shown = [Passage(UUID(int=1), "the assistant", "assistant", day, before)] if before else []
    shown.append(Passage(UUID(int=2), "Ada", "user", day, said))
    spans = [Span(shown[-1], 0, len(said))]
    found = find_doubt(text, "Ada", spans, shown, "", ("user",), has_slot=False, is_planned=is_planned)
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


@pytest.mark.parametrize(
    "said",
    [
        "I started my own shop not so long ago",
        "it's a bond I haven't felt since my time at my own shop",
        "I really should start my own shop, shouldn't I",
    ],
)
def test_an_idle_not_denies_nothing(said: str) -> None:
    assert doubt_about("Ada has her own shop.", said) == ""
    assert doubt_about("Ada has her own shop.", "I don't have my own shop") == "its quote denies what it says"


@pytest.mark.parametrize(
    "said",
    ["I'll definitely add it to my list", "I'm gonna give it a shot", "count me in", "I'm totally in!", "die mach ich"],
)
def test_a_plan_may_be_what_was_proposed_just_before(said: str) -> None:
    text, before = "Ada wants to try the crow pose.", "You could try the crow pose."
    assert doubt_about(text, said, before, is_planned=True) == ""
    assert doubt_about(text, said, before) == "it shares no word with its quote"
    assert doubt_about(text, said, "You could paint a fence.", is_planned=True) == "it shares no word with its quote"
    assert doubt_about(text, "I won't do it", before, is_planned=True) == "it shares no word with its quote"
