"""The lines of summaries, the choice among them, and the text that is made of them."""

import json
from collections import Counter

import pytest
from hypothesis import given, strategies as st

from memstore.derive.summaries.choice import Material, choose, choose_sentences
from memstore.derive.summaries.cues import Clause, score_sentence, split_clauses
from memstore.derive.summaries.extractive import (
    EMPTY_SUMMARY,
    Line,
    abridge,
    extract_lines,
    format_lines,
    parse_lines,
)
from memstore.models import Message, Summary
from memstore.providers.tiktoken import load as load_counter
from tests.helpers.fakes import WordCounter
from tests.unit.strategies import START, message

COUNTER = WordCounter()


def summary(text: str, recipe: str = "extractive/3") -> Summary:
    return Summary.model_construct(text=text, recipe=recipe, occurred_at=START)


def test_lines_are_what_people_spoke_and_what_tools_did() -> None:
    asked = {"id": "x", "function": {"name": "weather", "arguments": '{"city": "Porto"}'}}
    found = extract_lines(
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
    text = abridge(extract_lines(work(calls)), 180, COUNTER)
    assert text.count("run_tests(path=tests/unit_") == text.count(") failed: ") == calls
    assert all(f"ValueError: total is {n}7, expected 99" in text for n in range(calls))
    assert parse_lines([summary(text)]) == [line for line in extract_lines(work(calls)) if line.text in text]


def test_what_tools_did_comes_after_all_that_was_said() -> None:
    said = [message(90 + n, "user", f"Module {n} of the harbour is {n} years old.", "Ann") for n in range(9)]
    text = abridge(extract_lines([*work(3), *said]), 110, COUNTER)
    assert all(f"Module {n} of the harbour" in text for n in range(9))


def test_results_without_ids_are_those_of_the_calls_in_their_order() -> None:
    calls = [{"function": {"name": name, "arguments": {"x": name}}} for name in ("first", "second")]
    said = [message(1, "assistant", None, tool_calls=calls), message(2, "tool", "alpha"), message(3, "tool", "beta")]
    found = [str(line) for line in extract_lines(said)]
    assert found == ["Tool: first(x=first) gave: alpha.", "Tool: second(x=second) gave: beta."]


def test_what_a_model_wrote_goes_on_into_the_next_level() -> None:
    text = "Alice moved to Porto. She asked: where is the\nsea?"
    assert parse_lines([summary(text, "llm-summary/1")]) == [
        Line("1 January 2024", "Summary", "Alice moved to Porto."),
        Line("1 January 2024", "Summary", "She asked: where is the sea?"),
    ]


word = st.sampled_from(["One: two.", "Three", "Four:", "5.", "- six"])


@given(st.lists(st.builds(Line, st.sampled_from(["1 May 2024", "2 May 2024"]), st.sampled_from(["Al", "B o"]), word)))
def test_a_summary_can_be_read_back_for_the_next_level(lines: list[Line]) -> None:
    assert parse_lines([summary(format_lines(lines))]) == lines


def test_a_summary_is_within_its_tokens_and_never_empty() -> None:
    lines = [Line(f"{n} May 2024", "Alice", f"We walked {n} miles to town number {n}.") for n in range(1, 30)]
    for limit in (1, 8, 20, 50, 200):
        text = abridge(lines, limit, COUNTER)
        assert text == EMPTY_SUMMARY or COUNTER.count(text) <= limit
    assert abridge([], 50, COUNTER) == EMPTY_SUMMARY
    assert abridge(lines[:1], 50, COUNTER) == format_lines(lines[:1])


# Which sentences are chosen

TALK = [
    "Hey, good to see you!",
    "We decided to take the ferry to Ischia on Friday.",
    "Oh, really?",
    "Yes, the ferry to Ischia leaves on Friday.",
    "My sister is allergic to peanuts.",
    "Thanks, take care!",
]


def chosen(
    sentences: list[str], limit: int, scores: list[float] | None = None, costs: list[int] | None = None
) -> list[int]:
    costs = [len(sentence.split()) for sentence in sentences] if costs is None else costs
    return choose_sentences(sentences, costs, limit, scores or [score_sentence(sentence) for sentence in sentences])


def test_a_diary_of_many_days_fills_its_tokens() -> None:
    """Each day costs a line of its own."""
    counter, limit = load_counter("o200k_base"), 120
    things = ["kettle", "ladder", "violin", "orchard", "tram", "harbour", "cellar", "rope", "passport", "oven"]
    said = [f"I have sold the old {things[n % 10]} of my {things[(n * 3 + 1) % 10]} neighbour {n}." for n in range(40)]
    lines = [Line(f"{n % 28 + 1} May {2024 + n // 28}", "Ada", text) for n, text in enumerate(said)]
    text = abridge(lines, limit, counter)
    line_tokens = max(counter.count(format_lines([line])) for line in lines)
    assert limit - line_tokens < counter.count(text) <= limit


def test_what_matters_is_chosen_once() -> None:
    assert chosen(TALK, 17) == [1, 4]


@given(
    st.lists(st.sampled_from(TALK) | st.text(max_size=20), max_size=12),
    st.lists(st.integers(0, 9), min_size=12, max_size=12),
    st.integers(0, 30),
)
def test_the_limit_holds(sentences: list[str], costs: list[int], limit: int) -> None:
    costs = costs[: len(sentences)]
    places = chosen(sentences, limit, costs=costs)
    assert places == sorted(set(places)) == chosen(sentences, limit, costs=costs)
    assert sum(costs[place] for place in places) <= limit
    if any(cost <= limit for cost, sentence in zip(costs, sentences, strict=True) if sentence in TALK):
        assert places


def test_a_clause_is_worth_more_once_all_that_it_needs_is_chosen() -> None:
    """The fourth needs the third, which needs the first, which comes with the second: then it beats the last."""
    needs = [None, 0, 0, 2, None]
    clauses = [Clause(place, "Ann", "", Counter(["x"]), need, set()) for place, need in enumerate(needs)]
    words = [{"a": 0.1}, {"b": 10.0}, {"c": 1.0}, {"d": 2.0}, {"e": 1.2}]
    assert choose(Material(words, [10, 1, 2, 1, 2], [0.5] * 5, clauses), 14) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        (
            "Granite is 1,900 extra and cold, and every glass dies.",
            ["Granite is 1,900 extra and cold,", "and every glass dies."],
        ),
        ("We take the blue one, but not the lamp.", None),
        ("We would take it, if it was cheaper.", None),
        ("We take the blue one because it is light.", ["We take the blue one", "because it is light."]),
        ("We don't take it because it is cheap.", None),
        ("The fair is on 3 May and I cannot wait to go.", None),
        ("The fair is on 3 May and we leave at noon.", ["The fair is on 3 May", "and we leave at noon."]),
        ("They offered us the house, we said no.", None),
        ("Shall we take the boat, and then the bus?", None),
    ],
)
def test_a_sentence_is_cut_only_where_the_parts_say_the_same(sentence: str, parts: list[str] | None) -> None:
    assert [text for text, _ in split_clauses(sentence)] == (parts or [sentence])


@pytest.mark.parametrize(
    ("limit", "chosen", "other", "talk"),
    [
        (
            16, "We'll take the red one, then.", "could",
            [
                ("Ann", "The red boat costs 900 euros."), ("Assistant", "You could also rent one."),
                ("Ann", "My aunt had a yellow boat once."), ("Ann", "We'll take the red one, then."),
            ],
        ),
        (
            16, "Dann nehmen wir den Bus am 3. Mai.", "könnte",
            [
                ("Ann", "Der Zug am Freitag ist voll."), ("Assistant", "Man könnte auch fliegen."),
                ("Ann", "Meine Tante fliegt so gern."), ("Ann", "Dann nehmen wir den Bus am 3. Mai."),
            ],
        ),
        (
            18, "you take the ferry on Friday", "quieter",
            [
                ("Ann", "The ferry or the night train?"),
                ("Assistant", "The night train is usually quieter in autumn and has beds."),
                ("Ann", "My aunt gets sick on trains."), ("Bob", "Mine on ships, so what."),
                ("Assistant", "For the minutes: you take the ferry on Friday at noon."),
            ],
        ),
        (
            17, "The cousin then.", "buffet",
            [
                ("Ann", "The inn offers a buffet and the cousin a dinner with dumplings."),
                ("Bob", "The funeral of my uncle Marek was at that inn last winter."), ("Ann", "The cousin then."),
                ("Bob", "My neighbours have a swimming pool with yellow tiles."),
            ],
        ),
    ],
)  # fmt: skip
def test_what_was_settled_comes_before_advice_and_chat(
    limit: int, chosen: str, other: str, talk: list[tuple[str, str]]
) -> None:
    text = abridge([Line("1 May 2024", *said) for said in talk], limit, COUNTER)
    assert chosen in text
    assert other not in text


@pytest.mark.parametrize(
    ("offer", "answer"),
    [
        ("You could rent the yellow boat of the harbour for a week.", "Yes! Let's do that."),
        ("Shall we rent the yellow boat of the harbour for a week?", "Agreed, that works for me."),
        ("Ihr könntet das gelbe Boot vom Hafen für eine Woche mieten.", "Genau, so machen wir das."),
    ],
)
def test_an_agreement_comes_with_what_it_agrees_to(offer: str, answer: str) -> None:
    talk = [("Ann", "My aunt had a friendly dog with brown ears."), ("Assistant", offer), ("Ann", answer)]
    text = abridge([Line("1 May 2024", *said) for said in talk], 24, COUNTER)
    assert text == f"1 May 2024:\nAssistant: {offer}\nAnn: {answer}"


def test_what_only_fills_is_left_out() -> None:
    talk = [("Ann", "Oh well!"), ("Ann", "Ok, fine, the red boat costs 900 euros."), ("Bob", "Right, yes!")]
    assert abridge([Line("1 May 2024", *said) for said in talk], 60, COUNTER) == (
        "1 May 2024:\nAnn: Ok, fine, the red boat costs 900 euros."
    )


@pytest.mark.parametrize("answer", ["Yes " + "👍" * 200 + " see you there", "Yes " + "that's it " * 200 + "banana"])
def test_an_agreement_without_an_end_is_read_at_once(answer: str) -> None:
    talk = [("Bob", "Shall we meet in the red boat on Friday?"), ("Ann", answer)]
    assert "red boat" in abridge([Line("1 May 2024", *said) for said in talk], 30, COUNTER)
