"""Numbers of what a chat model says: said by somebody, in whatever notation, and no other."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from memstore.derive.facts.answers import AnsweredFact, type_of
from memstore.derive.facts.drafts import ExtractedBatch, draft_fact, without_secrets
from memstore.derive.facts.grounding import find_doubt
from memstore.derive.facts.quotes import Span
from memstore.derive.llm import Passage
from memstore.models import FactSpan, Message


def doubt_about(text: str, said: str) -> str:
    passage = Passage(UUID(int=1), "Ada", "user", datetime(2026, 3, 2, tzinfo=UTC), said)
    found = find_doubt(text, "Ada", [Span(passage, 0, len(said))], [passage], "", ("user",), has_slot=False)
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
        ("Ada takes 5 mg of lorazepam.", "I take .5 mg of lorazepam"),
        ("Ada takes 1.4 mg of metformin.", "I take 1,400 mg of metformin"),
        ("Ada takes 0.50 mg of methotrexate.", "I'm at 12.50 mg of methotrexate"),
        ("Ada's flight leaves at 17:30.", "My flight leaves at 5:30 am"),
        ("Ada's flight leaves at 5:30.", "My flight leaves at 5:45 pm"),
        ("Ada's flight leaves at 0:30.", "My flight leaves at 12:30 pm"),
        ("Ada takes 14.50 mg of methotrexate.", "I take methotrexate at 2:50 pm"),
        ("Ada takes 2.5 mg of lorazepam.", "I take two tablets of lorazepam half an hour before bed"),
        ("Adas Miete stieg um 2.50 Euro.", "Miete stieg um 14.50 Euro"),
        ("Ada uses Python 3.1.", "I use Python 3.10"),
    ],
)
def test_another_number_is_doubted(text: str, said: str) -> None:
    assert "nobody has said the number" in doubt_about(text, said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Ada takes 0.5 mg of lorazepam.", "I take 0,5 mg of lorazepam"),
        ("Ada takes 0.5 mg of lorazepam.", "I take 0.50 mg of lorazepam"),
        ("Ada takes 0.5 mg of lorazepam.", "I take .5 mg of lorazepam"),
        ("Ada takes 1.5 mg of lorazepam.", "I take one and a half mg of lorazepam"),
        ("Ada earns 150000 rupees.", "I earn 1,50,000 rupees"),
        ("Ada works from 9:00 to 17:30.", "I work 9.00-17.30"),
        ("Ada's train leaves at 9:30.", "My train leaves at 0930"),
        ("Ada's train leaves at 17:30.", "My train leaves at 1730"),
        ("Ada pays 0.99 dollars for it.", "I pay $.99 for it"),
        ("Ada pays 1400 pounds of rent.", "My rent is 1,400 pounds"),
        ("Ada zahlt 1.400,50 Euro Miete.", "Ich zahle 1400,50 Euro Miete"),
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
    "said",
    [
        "I started my own shop not so long ago",
        "I really should start my own shop, shouldn't I",
    ],
)
def test_an_idle_not_denies_nothing(said: str) -> None:
    assert doubt_about("Ada has her own shop.", said) == ""
    for denial in ("I don't have my own shop", "an own shop isn't it"):
        assert doubt_about("Ada has her own shop.", denial) == "its quote denies what it says"


@pytest.mark.parametrize(
    ("quote", "expected"),
    [
        ("always run make lint before you commit", "procedure"),
        ("antworte mir auf Deutsch", "procedure"),
        ("I am writing all my plans down", "statement"),
        ("I like breaking up my studying into smaller parts", "statement"),
    ],
)
def test_a_habit_is_no_instruction(quote: str, expected: str) -> None:
    fact = AnsweredFact(sources=[], text="Ada does so.", type="procedure", subject="Ada")
    assert type_of(fact, "Ada", None, [quote]) == expected
    assert type_of(fact, "Ada", "answer_style", [quote]) == "procedure"


def test_words_of_another_speaker_are_doubted_however_short_the_name_is() -> None:
    moment = datetime(2026, 3, 2, tzinfo=UTC)
    said = "I am allergic to peanuts and wanted it known."
    of_ed, of_ada = (Passage(UUID(int=1 + n), name, "user", moment, said) for n, name in enumerate(("Ed", "Ada")))
    text = "Ada is allergic to peanuts and wanted it known."
    doubt = find_doubt(text, "Ada", [Span(of_ed, 0, len(said))], [of_ed, of_ada], "", ("user",), has_slot=False)
    assert doubt is not None


def test_a_fact_whose_value_is_a_secret_is_no_fact() -> None:
    text = "my wifi password is hunt" + "er2"
    message = Message.model_construct(id=UUID(int=5), text=text)
    draft = draft_fact("Ada changed the wifi password.", "statement", "Ada", 1.0, "en", value="hunt" + "er2")
    draft = replace(draft, spans=(FactSpan(message.id, 0, len(text), 2),))
    assert not without_secrets(ExtractedBatch(1, facts=[draft]), [message]).facts
