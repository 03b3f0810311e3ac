"""What pages at /ui are made with: bars, excerpts, segments."""

from __future__ import annotations

from uuid import UUID

from memstore.models import Decision, FactSpan, Message, Receipt, Summary
from memstore.server.ui import contexts
from memstore.server.ui.pages import excerpt, segments


def receipt(**sections: int) -> Receipt:
    inside = Decision("mine", "text", None, 5)
    return Receipt(100, sum(sections.values()), "bytes", sections, (inside,), (), reserve=20)


def test_the_bars_of_a_budget_fill_it() -> None:
    bars = contexts.budget_bars(receipt(system=10, mine=30, facts=0, other=20))
    assert [(one.label, one.colour, one.value) for one in bars] == [
        ("system", "system", 10),
        ("mine", "own", 30),
        ("other", "own", 20),
        ("kept free", "reserve", 20),
        ("unused", "free", 20),
    ]
    assert [round(one.x) for one in bars] == [0, 100, 400, 600, 800]
    assert all(one.x + one.width <= contexts.WIDTH for one in bars)
    assert [one.label for one in contexts.budget_bars(receipt(system=120))] == ["system"]


def test_the_words_of_a_fact_are_found_in_their_message() -> None:
    text = "x" * 1000 + "I like tea." + "y" * 1000
    before, words, after = excerpt(text, FactSpan(UUID(int=0), 1000, 1011, 2))
    assert words == "I like tea."
    assert (len(before), len(after)) == (241, 241)


def test_messages_stand_under_the_summary_of_their_stretch() -> None:
    said = [Message.model_construct(seq=seq) for seq in range(1, 7)]
    over = [
        Summary.model_construct(level=level, from_seq=first, to_seq=last)
        for level, first, last in ((0, 1, 6), (1, 1, 2), (1, 4, 5), (2, 1, 5))
    ]
    made = segments(said, over)
    assert [(one.summary, [message.seq for message in one.messages]) for one in made] == [
        (over[1], [1, 2]),
        (None, [3]),
        (over[2], [4, 5]),
        (None, [6]),
    ]
