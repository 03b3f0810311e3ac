"""Stretches and the text of summaries."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from memstore.ingest.summarize import Line, Summarize, lines_of, lines_of_summaries, stretches, written
from memstore.ingest.tools import Tools
from memstore.models import Message, Summary
from memstore.settings import Settings
from memstore.testing import HashingEmbedder, WordCounter
from tests.unit.strategies import START, message

GAP = timedelta(hours=4)


def talk(steps: list[tuple[int, int]]) -> list[Message]:
    """Messages from (hours since the one before, tokens)."""
    found, hours = [], 0
    for seq, (pause, tokens) in enumerate(steps, 1):
        hours += pause
        found.append(message(seq, "user", f"line {seq}", tokens=tokens, occurred_at=START + timedelta(hours=hours)))
    return found


def cuts(messages: list[Message], tokens: int = 100) -> list[tuple[int, int]]:
    return [(one[0].seq, one[-1].seq) for one in stretches(messages, GAP, tokens)]


def test_a_long_silence_ends_a_stretch_and_the_last_one_waits() -> None:
    assert cuts(talk([(0, 1), (1, 1), (5, 1), (1, 1)])) == [(1, 2)]
    assert cuts(talk([(0, 1), (4, 1), (4, 1)])) == []


def test_enough_tokens_end_a_stretch() -> None:
    assert cuts(talk([(0, 60), (0, 60), (0, 10), (0, 90), (0, 1)])) == [(1, 2), (3, 4)]
    assert cuts(talk([(0, 500)])) == [(1, 1)]


@given(st.lists(st.tuples(st.sampled_from([0, 1, 3, 5, 30]), st.integers(0, 120)), max_size=30), st.integers(1, 30))
def test_stretches_do_not_depend_on_how_the_messages_arrive(steps: list[tuple[int, int]], page: int) -> None:
    messages = talk(steps)
    whole = cuts(messages)
    found: list[tuple[int, int]] = []
    for upto in range(page, len(messages) + page, page):
        begin = found[-1][1] if found else 0
        found += cuts(messages[begin:upto])
    assert found == whole
    assert [begin for begin, _ in whole] == [1, *(end + 1 for _, end in whole[:-1])][: len(whole)]


def test_lines_are_what_people_spoke() -> None:
    found = lines_of(
        [
            message(1, "user", "I moved to Porto. It is sunny!", "Alice"),
            message(2, "tool", '{"temperature": 31}', tool_call_id="x"),
            message(3, "system", "Be brief."),
            message(4, "assistant", None, tool_calls=[{}]),
            message(5, "assistant", "How nice."),
        ]
    )
    assert [str(line) for line in found] == ["Alice: I moved to Porto.", "Alice: It is sunny!", "Assistant: How nice."]


def test_a_summary_can_be_read_back_for_the_next_level() -> None:
    lines = [
        Line("1 May 2024", "Alice", "One: two."),
        Line("1 May 2024", "Bob", "Three."),
        Line("2 May 2024", "Bob", "4."),
    ]
    text = written(lines)
    assert text == "1 May 2024:\nAlice: One: two.\nBob: Three.\n2 May 2024:\nBob: 4."
    assert lines_of_summaries([Summary.model_construct(text=text, occurred_at=START)]) == lines


def test_a_summary_is_within_its_tokens_and_never_empty() -> None:
    tools = Tools(WordCounter(), HashingEmbedder(64), Settings())
    summarize = Summarize(tools)
    lines = [Line(f"{n} May 2024", "Alice", f"We walked {n} miles to town number {n}.") for n in range(1, 30)]
    for limit in (1, 8, 20, 50, 200):
        text = next(iter(summarize._best([lines], limit)))
        assert text
        assert text.startswith("(Nothing") or tools.counter.count(text) <= limit
    assert next(iter(summarize._best([[]], 50))).startswith("(Nothing")
    assert "May 2024:" in next(iter(summarize._best([lines], 50)))
