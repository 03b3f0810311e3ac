"""Sentences: where people would end them, and every character exactly once."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from memstore.derive.chunking import sentences
from tests.timing import assert_linear

PIECES = st.sampled_from([*'.!?…。\n \t"”aIBé今', "\n\n", "- ", "1. ", "Mr", "e.g", "z. B"])


def cut(text: str) -> list[str]:
    return [text[start:stop] for start, stop in sentences(text)]


@given(st.one_of(st.text(), st.lists(PIECES).map("".join)))
def test_every_visible_character_is_in_exactly_one_span_and_no_span_begins_or_ends_white(text):
    spans = sentences(text)
    covered = [position for start, stop in spans for position in range(start, stop)]
    assert covered == sorted(set(covered))
    assert {position for position, sign in enumerate(text) if not sign.isspace()} <= set(covered)
    for piece in cut(text):
        assert piece and piece == piece.strip()


@pytest.mark.parametrize(
    "text",
    [
        "Mr. Smith met Dr. Jones at St. Mary's.",
        "The train leaves at 5 p.m. on Friday.",
        "Bring fruit, e.g. apples, i.e. something sweet.",
        "Version 3.11.4 costs 2.50 and lives at https://a.example/b?c=1.2 now.",
        "George W. Bush and J. R. R. Tolkien never met.",
        "Well... it was fine, and then … it was not.",
        'She shouted "Stop!" and ran.',
        "Das ist z. B. die Nr. 5 bzw. der 3. Versuch.",
        "Am 24. Dezember kommt Dr. Weber.",
        "This line is wrapped\nby an editor and goes on.",
        "See No. 7 and Fig. 3 first.",
    ],
)
def test_these_are_one_sentence(text):
    assert cut(text) == [text]


@pytest.mark.parametrize(
    "pieces",
    [
        ["I like it.", "You?", "No!", "Well…", "Then not."],
        ["He said “no.”", "(She said yes.)", "They left."],
        ["We woke at 5 a.m.", "The bus came at six."],
        ["I am 30.", "I live in the U.S.", "It is big."],
        ["no capitals here.", "still two sentences."],
        ["Is it 3?", "No.", "It is 4."],
        ["Er kam am Montag.", "Ich nicht."],
        ["„Wirklich?“", "Ja."],
    ],
)
def test_these_are_several_sentences(pieces):
    assert cut(" ".join(pieces)) == pieces


def test_chinese_and_japanese_need_no_space():
    assert cut("今日は。元気？「はい。」そう！") == ["今日は。", "元気？", "「はい。」", "そう！"]


def test_lists_headings_quotes_and_blank_lines_are_cut_at_the_line():
    text = "# Plan\nFirst this:\n- milk\n- eggs\n  and flour\n2. nothing\n> quoted\nafter\n\nEnd"
    assert cut(text) == [
        "# Plan",
        "First this:",
        "- milk",
        "- eggs\n  and flour",
        "2. nothing",
        "> quoted",
        "after",
        "End",
    ]


def test_windows_line_ends():
    assert cut("one line\r\nsame sentence\r\n\r\nnext") == ["one line\r\nsame sentence", "next"]


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["a ", ".", '."', "\n", "a\n", " \n", "z. ", "!x", "- a\n", "...a "])
def test_the_time_grows_with_the_length_only(unit):
    assert_linear(sentences, unit)
