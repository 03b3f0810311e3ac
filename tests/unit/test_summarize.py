"""The lines of summaries, and the text that is made of them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstore.derive.summaries.abridge import abridged
from memstore.derive.summaries.lines import NOTHING, Line, lines_of, lines_of_summaries, written
from memstore.models import Message, Summary
from memstore.testing import WordCounter
from tests.unit.strategies import START, message

COUNTER = WordCounter()


def summary(text: str, recipe: str = "extractive/3") -> Summary:
    return Summary.model_construct(text=text, recipe=recipe, occurred_at=START)


def test_lines_are_what_people_spoke_and_what_tools_did() -> None:
    asked = {"id": "x", "function": {"name": "weather", "arguments": '{"city": "Porto"}'}}
    found = lines_of(
        [
            message(1, "user", "I moved to Porto. It is sunny!", "Alice"),
            message(2, "assistant", None, tool_calls=[asked]),
            message(3, "tool", '{"temperature": 31}', tool_call_id="x"),
            message(4, "system", "Be brief."),
            message(5, "assistant", "How nice."),
        ]
    )
    assert [str(line) for line in found] == [
        "Alice: I moved to Porto.",
        "Alice: It is sunny!",
        'Tool: weather(city=Porto) gave: {"temperature": 31}.',
        "Assistant: How nice.",
    ]


def work(calls: int, lines: int = 60) -> list[Message]:
    """Calls of a tool with long results, and nobody who speaks."""
    found = []
    for n in range(calls):
        asked = {"id": f"c{n}", "function": {"name": "run_tests", "arguments": json.dumps({"path": f"tests/unit_{n}"})}}
        log = [*(f"step {one} of module is fine" for one in range(lines)), f"ValueError: total is {n}7, expected 99"]
        found.append(message(2 * n + 1, "assistant", None, tool_calls=[asked]))
        found.append(message(2 * n + 2, "tool", "\n".join(log), tool_call_id=f"c{n}"))
    return found


@pytest.mark.parametrize("calls", [1, 3])
def test_a_stretch_of_calls_alone_is_told_by_tool_inputs_and_outcome(calls: int) -> None:
    text = abridged(lines_of(work(calls)), 160, COUNTER)
    assert text.count("run_tests(path=tests/unit_") == calls
    assert all(f"ValueError: total is {n}7, expected 99" in text for n in range(calls))
    assert lines_of_summaries([summary(text)]) == [line for line in lines_of(work(calls)) if line.text in text]


def test_what_tools_did_comes_after_all_that_was_said() -> None:
    said = [message(90 + n, "user", f"Module {n} of the harbour is {n} years old.", "Ann") for n in range(9)]
    text = abridged(lines_of([*work(3), *said]), 110, COUNTER)
    assert all(f"Module {n} of the harbour" in text for n in range(9))


def test_results_whose_call_is_elsewhere_and_calls_without_results_are_told() -> None:
    _, result = work(1)
    asked, _ = work(1)
    assert str(lines_of([result])[0]).startswith("Tool: failed: step 0")
    assert [str(line) for line in lines_of([asked])] == ["Tool: run_tests(path=tests/unit_0)."]
    assert lines_of([message(1, "tool", None), message(2, "user", None)]) == []


def test_no_date_is_written_into_anybodys_words() -> None:
    said = "I met her yesterday, the wedding is on 11 September."
    [line] = lines_of([message(1, "user", said, "Alice", occurred_at=START)])
    assert line.text == said
    [again] = lines_of_summaries([summary(written([line]))])
    assert again == line


def test_a_day_and_a_speaker_stand_once() -> None:
    lines = [
        Line("1 May 2024", "Alice", "One: two."),
        Line("1 May 2024", "Alice", "Two."),
        Line("1 May 2024", "Bob", "Three."),
        Line("2 May 2024", "Bob", "4."),
    ]
    assert written(lines) == "1 May 2024:\nAlice: One: two.\n  Two.\nBob: Three.\n2 May 2024:\nBob: 4."


def test_what_a_model_wrote_goes_on_into_the_next_level() -> None:
    text = "Alice moved to Porto. She asked: where is the\nsea?"
    assert lines_of_summaries([summary(text, "llm-summary/1")]) == [
        Line("1 January 2024", "Summary", "Alice moved to Porto."),
        Line("1 January 2024", "Summary", "She asked: where is the sea?"),
    ]


word = st.sampled_from(["One: two.", "Three", "Four:", "5.", "- six"])


@given(st.lists(st.builds(Line, st.sampled_from(["1 May 2024", "2 May 2024"]), st.sampled_from(["Al", "B o"]), word)))
def test_a_summary_can_be_read_back_for_the_next_level(lines: list[Line]) -> None:
    assert lines_of_summaries([summary(written(lines))]) == lines


def test_a_summary_is_within_its_tokens_and_never_empty() -> None:
    lines = [Line(f"{n} May 2024", "Alice", f"We walked {n} miles to town number {n}.") for n in range(1, 30)]
    for limit in (1, 8, 20, 50, 200):
        text = abridged(lines, limit, COUNTER)
        assert text == NOTHING or COUNTER.count(text) <= limit
    assert abridged([], 50, COUNTER) == NOTHING
    assert abridged(lines[:1], 50, COUNTER) == written(lines[:1])


def test_a_summary_fills_its_tokens_where_speakers_and_days_stand_once() -> None:
    lines = [Line("1 May 2024", "Alice Margaret Miller", f"I saw {n} {n} {n} {n} birds.") for n in range(100, 160)]
    text = abridged(lines, 100, COUNTER)
    assert 100 - len(lines[0].text.split()) < COUNTER.count(text) <= 100


def test_lines_are_counted_once_and_not_in_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []

    class Counting(WordCounter):
        def count(self, text: str) -> int:
            counted.append(text)
            return super().count(text)

    lines = [Line(f"{n} May 2024", "Alice", f"We walked {n} miles to town number {n}.") for n in range(1, 30)]
    abridged(lines, 60, Counting())
    assert [text for text in counted if "\n" in text.strip() or not text.endswith("\n")] != []
    assert sum(text.endswith("\n") for text in counted) == len(lines)


def test_who_is_spoken_to_is_no_news() -> None:
    lines = [
        Line("1 May 2024", "Bob", "Well, I agree with that, Ali, and so would most."),
        Line("1 May 2024", "Bob", "Well, I agree with that of Zoe, and so would most."),
        Line("1 May 2024", "Alice", "Nothing else came up there."),
    ]
    text = abridged(lines, 17, WordCounter())
    assert "Zoe" in text
    assert "Ali," not in text
