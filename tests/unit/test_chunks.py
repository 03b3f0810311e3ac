from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memstore.derive.chunks import chunks
from memstore.derive.sentences import sentences
from memstore.testing import WordCounter

Count = Callable[[str], int]


def quarters(text: str) -> int:
    return (len(text) + 3) // 4


def unknown_words(text: str) -> int:
    """Neither additive nor monotone, as WordPiece: a long word is one token, a short one as many as its letters."""
    return sum(1 if len(word) > 12 else len(word) for word in text.split())


def square(text: str) -> int:
    return len(text) ** 2 // 50


COUNTS = [len, quarters, WordCounter().count, unknown_words, square, lambda text: len(set(text)), lambda text: 0]
WORDS = st.sampled_from(
    [
        "a",
        "to",
        "river.",
        "Ischia",
        "Well!",
        "去伊斯基亚的渡轮九点出发。",
        "e\u0301",
        "👩‍👩‍👧",
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
    spans = chunks(text, limit, count, overlap)
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


@given(text=TEXTS, limit=st.integers(1, 30))
def test_words_within_the_limit_stay_whole(text: str, limit: int) -> None:
    spans = chunks(text, limit, len)
    place = 0
    for word in text.split():
        start = text.index(word, place)
        place = start + len(word)
        if len(word) <= limit and any(a <= start and place <= b for a, b in sentences(text)):
            assert any(a <= start and place <= b for a, b in spans)


@pytest.mark.parametrize("text", ["", " ", "\n\t \u3000"])
def test_nothing_gives_no_chunks(text: str) -> None:
    assert chunks(text, 5, len) == []


def test_a_short_text_is_one_chunk_without_its_margins() -> None:
    assert chunks("  Hi there. How are you?\n", 22, len) == [(2, 24)]


def test_neighbours_share_a_sentence() -> None:
    text = "Ada went. Bob came. Cyd left. Dan ate."
    assert [text[a:b] for a, b in chunks(text, 4, WordCounter().count, overlap=2)] == [
        "Ada went. Bob came.",
        "Bob came. Cyd left.",
        "Cyd left. Dan ate.",
    ]
    assert [text[a:b] for a, b in chunks(text, 4, WordCounter().count, overlap=1)] == [
        "Ada went. Bob came.",
        "Cyd left. Dan ate.",
    ]


def test_a_shared_sentence_gives_way_to_a_long_one() -> None:
    text = "Ada went. Bob came. Then all of them danced."
    assert [text[a:b] for a, b in chunks(text, 5, WordCounter().count, overlap=5)] == [
        "Ada went. Bob came.",
        "Then all of them danced.",
    ]


def test_a_long_sentence_is_cut_between_words_and_its_rest_goes_on() -> None:
    text = "one two three four five six seven. Eight."
    assert [text[a:b] for a, b in chunks(text, 3, WordCounter().count, overlap=0)] == [
        "one two three",
        "four five six",
        "seven. Eight.",
    ]


def test_a_long_word_is_cut_between_characters_but_not_within_them() -> None:
    assert chunks("去" * 10, 4, len) == [(0, 4), (4, 8), (8, 10)]
    text = "e\u0301" * 6
    assert all(text[start] == "e" for start, _ in chunks(text, 5, len))
    text = "👩\u200d👧" * 4
    for limit in (3, 4, 5):
        assert all(text[start] == "👩" for start, _ in chunks(text, limit, len))


def test_a_character_over_the_limit_stands_alone() -> None:
    assert chunks("abc", 1, lambda text: 3 * len(text)) == [(0, 1), (1, 2), (2, 3)]


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        chunks("a", 0, len)


@pytest.mark.parametrize(
    "text",
    ["The ferry leaves at nine. " * 20_000, "word " * 100_000, "x" * 500_000, "é. " * 150_000, "去" * 400_000],
    ids=["prose", "words", "letters", "tiny", "cjk"],
)
@pytest.mark.parametrize("count", [len, quarters], ids=["len", "quarters"])
def test_what_is_counted_grows_with_the_text_only(text: str, count: Count) -> None:
    counted = calls = 0

    def counting(piece: str) -> int:
        nonlocal counted, calls
        calls += 1
        counted += len(piece)
        return count(piece)

    spans = chunks(text, 200, counting)
    assert calls <= 6 * len(spans) + 10
    assert counted <= 6 * len(text)


def test_chunks_are_well_filled() -> None:
    text = "The ferry leaves at nine, and nobody waits for those who are late. " * 500
    spans = chunks(text, 400, len, overlap=0)
    assert sum(b - a for a, b in spans) / (400 * len(spans)) > 0.8
