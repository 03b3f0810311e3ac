"""Where long texts are cut: into chunks, apart from pasted code, and between lines of what tools gave."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import example, given, strategies as st

from memstore.derive.chunking import split_code_blocks, split_lines, split_segments, split_text
from memstore.language.sentences import sentences
from memstore.models import Message
from tests.helpers.fakes import WordCounter
from tests.timing import assert_linear
from tests.unit.strategies import START, message

Count = Callable[[str], int]


def quarters(text: str) -> int:
    return (len(text) + 3) // 4


def unknown_words(text: str) -> int:
    """Neither additive nor monotone, as WordPiece: a long word is one token, a short one as many as its letters."""
    return sum(1 if len(word) > 12 else len(word) for word in text.split())


def square(text: str) -> int:
    return len(text) ** 2 // 50


COUNTS = [len, quarters, WordCounter().count, unknown_words, square, lambda text: len(set(text)), lambda text: 0]
PERSON, LETTER = "👩\u200d👩\u200d👧", "e\u0301"
WORDS = st.sampled_from(
    [
        "a",
        "to",
        "river.",
        "Ischia",
        "Well!",
        "去伊斯基亚的渡轮九点出发。",
        LETTER,
        PERSON,
        "x" * 90,
        "3.5",
        "Mr.",
        "Und?",
    ]
)
SPACES = st.sampled_from([" ", "  ", "\n", "\n\n", "\t", "\u3000"])
TEXTS = st.lists(st.tuples(WORDS, SPACES), max_size=60).map(lambda pairs: "".join(w + s for w, s in pairs)) | st.text()


@pytest.mark.parametrize("count", COUNTS)
@given(text=TEXTS, limit=st.integers(1, 60), overlap=st.integers(0, 20))
@example(text="x" * 1000, limit=7, overlap=3)
@example(text="One two. Three four. Five six. Seven.", limit=4, overlap=2)
def test_chunks_hold_everything_within_the_limit(count: Count, text: str, limit: int, overlap: int) -> None:
    spans = split_text(text, limit, count, overlap)
    for start, stop in spans:
        assert text[start:stop] == text[start:stop].strip() != ""
        assert count(text[start:stop]) <= limit or stop - start == 1
    covered = {place for start, stop in spans for place in range(start, stop)}
    assert {place for place, character in enumerate(text) if not character.isspace()} <= covered
    assert spans == sorted(spans)
    assert len({start for start, _ in spans}) == len(spans)
    assert len({stop for _, stop in spans}) == len(spans)
    for start, stop in sentences(text):
        if count(text[start:stop]) <= limit:
            assert any(a <= start and stop <= b for a, b in spans)


FOUR = "Ada went. Bob came. Cyd left. Dan ate."


@pytest.mark.parametrize(
    ("text", "limit", "overlap", "chunks"),
    [
        ("", 5, 0, []),
        ("\n\t \u3000", 5, 0, []),
        ("  Hi there. How are you?\n", 5, 0, ["Hi there. How are you?"]),
        (FOUR, 4, 2, ["Ada went. Bob came.", "Bob came. Cyd left.", "Cyd left. Dan ate."]),
        (FOUR, 4, 1, ["Ada went. Bob came.", "Cyd left. Dan ate."]),
        ("Ada went. Bob came. Then all of them danced.", 5, 5, ["Ada went. Bob came.", "Then all of them danced."]),
        (
            "one two three four five six seven. Eight.",
            3,
            0,
            ["one two", "three four", "five six seven.", "Eight."],
        ),
    ],
    ids=["nothing", "space", "short", "shared", "no overlap", "shared gives way to long", "long sentence"],
)
def test_chunks_by_words(text: str, limit: int, overlap: int, chunks: list[str]) -> None:
    assert [text[start:stop] for start, stop in split_text(text, limit, WordCounter().count, overlap)] == chunks


def test_a_long_word_is_cut_between_characters() -> None:
    assert split_text("去" * 10, 4, len) == [(0, 4), (4, 8), (8, 10)]


@pytest.mark.parametrize(
    "text",
    ["The ferry leaves at nine. " * 20_000, "word " * 100_000, "x" * 500_000, "é. " * 150_000, "去" * 400_000],
    ids=["prose", "words", "letters", "tiny", "cjk"],
)
@pytest.mark.parametrize("count", [len, quarters], ids=["len", "quarters"])
def test_what_is_counted_grows_with_the_text_only(text: str, count: Count) -> None:
    counted = 0

    def counting(piece: str) -> int:
        nonlocal counted
        counted += len(piece)
        return count(piece)

    split_text(text, 200, counting)
    assert counted <= 6 * len(text)


def test_chunks_are_well_filled() -> None:
    text = "The ferry leaves at nine, and nobody waits for those who are late. " * 500
    spans = split_text(text, 400, len, overlap=0)
    assert sum(b - a for a, b in spans) / (400 * len(spans)) > 0.8


# Results of tools

LOG = "\n".join(f"10:{n:02d} INFO step {n} is done. Layer {n}: pushed" for n in range(60))
PROSE = "The ferry leaves at nine, and nobody waits. It is late. " * 40


def test_results_of_tools_are_cut_between_lines_and_long_lines_between_sentences() -> None:
    text = f"{LOG}\n\n{PROSE}\n"
    pieces = [text[start:stop] for start, stop in split_text(text, 80, lambda one: len(one) // 4 + 1, 0, split_lines)]
    assert len(pieces) > 8
    lines = {line for piece in pieces for line in piece.split("\n") if line}
    assert all(line in PROSE and line[-1] == "." for line in lines - {*LOG.splitlines()})


# Pasted code

CODE = "```python\n" + "\n".join(f"values[{n}] = read({n})" for n in range(8)) + "\n```"


def split_prose(text: str) -> list[str]:
    spans = split_code_blocks(text)
    assert [stop for _, stop in spans[:-1]] == [start for start, _ in spans[1:]]
    assert "".join(text[start:stop] for start, stop in spans) == text
    return [text[start:stop].strip() for start, stop in spans]


INNER = f"~~~\n{CODE}\n~~~"
INDENTED = CODE.replace("\n", "\n   ")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (f"Why is this slow?\n{CODE}\nIt is old.", ["Why is this slow?", CODE, "It is old."]),
        (f"Before\n{INNER}\nAfter", ["Before", INNER, "After"]),
        (f"Before\n{CODE[:-4]}", ["Before", CODE[:-4]]),
        (f"1. It fails:\n   {INDENTED}\n2. Why?", ["1. It fails:", INDENTED, "2. Why?"]),
        ("", []),
        ("Run this:\n```\nmake test\n```\nthen.", ["Run this:\n```\nmake test\n```\nthen."]),
        ("~~ no fence", ["~~ no fence"]),
    ],
    ids=["apart", "closed by its own kind", "never closed", "in a list", "nothing", "short", "no fence"],
)
def test_long_code_stands_apart_from_prose(text: str, parts: list[str]) -> None:
    assert split_prose(text) == parts


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["```\n", "`" * 50 + "\n", " " * 1000, "~~~`\n", "```x\n\n"])
def test_the_time_of_many_fences_grows_with_their_length_only(unit: str) -> None:
    assert_linear(split_prose, unit)


# Sentences: where people would end them, and every character exactly once


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


# Segments of a conversation


GAP = timedelta(hours=4)


def talk(steps: list[tuple[int, int]]) -> list[Message]:
    """Messages from (hours since the one before, tokens)."""
    found, hours = [], 0
    for seq, (pause, tokens) in enumerate(steps, 1):
        hours += pause
        found.append(message(seq, "user", f"line {seq}", tokens=tokens, occurred_at=START + timedelta(hours=hours)))
    return found


def cuts(messages: list[Message], tokens: int = 100) -> list[tuple[int, int]]:
    return [(one[0].seq, one[-1].seq) for one in split_segments(messages, GAP, tokens)]


@pytest.mark.parametrize(
    ("steps", "segments"),
    [
        ([(0, 1), (1, 1), (5, 1), (1, 1)], [(1, 2)]),
        ([(0, 1), (4, 1), (4, 1)], []),
        ([(0, 60), (0, 40), (0, 10), (0, 95), (0, 1)], [(1, 2), (3, 3)]),
        ([(0, 500)], [(1, 1)]),
        ([(0, 10), (0, 500)], [(1, 1), (2, 2)]),
        ([(0, 0)] * 250, [(1, 100), (101, 200)]),
    ],
    ids=["silence", "the last one waits", "bound", "one long message", "a long one after", "no text"],
)
def test_a_silence_or_the_bound_ends_a_segment(steps: list[tuple[int, int]], segments: list[tuple[int, int]]) -> None:
    assert cuts(talk(steps)) == segments


def cuts_by_page(messages: list[Message], page: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for upto in range(page, len(messages) + page, page):
        found += cuts(messages[found[-1][1] if found else 0 : upto])
    return found


step = st.tuples(st.sampled_from([0, 1, 3, 5, 30]), st.integers(0, 120))


@given(st.lists(step, max_size=40), st.integers(1, 30))
def test_segments_do_not_depend_on_how_the_messages_arrive(steps: list[tuple[int, int]], page: int) -> None:
    messages = talk(steps)
    whole = cuts(messages)
    assert cuts_by_page(messages, page) == whole
    assert [begin for begin, _ in whole] == [1, *(end + 1 for _, end in whole[:-1])][: len(whole)]
    for begin, end in whole:
        assert begin == end or sum(max(1, one.tokens) for one in messages[begin - 1 : end]) <= 100


def worked(steps: list[tuple[str, int]]) -> list[Message]:
    """Messages from (role, tokens); "call" is an assistant's that calls a tool."""
    return [
        message(seq, "assistant", None, tool_calls=[{}], tokens=tokens)
        if role == "call"
        else message(seq, role, f"line {seq}", tokens=tokens)
        for seq, (role, tokens) in enumerate(steps, 1)
    ]


def test_results_of_tools_are_in_the_segment_of_their_call() -> None:
    said, after = [("user", 40), ("assistant", 40)], ("user", 30)
    assert cuts(worked([*said, ("call", 10), ("tool", 500), ("tool", 9), after])) == [(1, 2), (3, 5)]
    assert cuts(worked([("call", 110), ("tool", 9), after])) == [(1, 2)]
    assert cuts(worked([("call", 9)] + [("tool", 100)] * 20))[0] == (1, 9), "what never ends is cut somewhere"


part = st.tuples(st.sampled_from(["user", "call", "tool", "tool"]), st.integers(0, 120))


@given(st.lists(part, max_size=60), st.integers(1, 30))
def test_segments_of_calls_do_not_depend_on_how_the_messages_arrive(steps: list[tuple[str, int]], page: int) -> None:
    assert cuts_by_page(worked(steps), page) == cuts(worked(steps))
