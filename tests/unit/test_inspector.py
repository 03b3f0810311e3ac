"""What pages of the inspector are made with: addresses, clipped texts, bars, cookies."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstore.models import Decision, Message, Receipt, Span, Summary, Tier, Timeline
from memstore.server.http.sessions import SECONDS, Sessions
from memstore.server.http.streams import Bell
from memstore.server.inspector import links, live, pictures
from memstore.server.inspector.conversations import stretches
from memstore.server.inspector.drawing import bytes_of, clipped
from memstore.server.inspector.facts import around


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_name_is_one_part_of_a_path_whatever_it_is(name: str) -> None:
    part = links.part(name)
    assert "/" not in part
    assert part.isascii()
    assert part not in (".", "..")
    assert part.strip(".")
    assert links.Part().convert(part) == name


@given(st.text("a\"'<&ü😀", max_size=200), st.integers(1, 60))
def test_a_clipped_text_has_at_most_so_many_bytes_of_html(text: str, most: int) -> None:
    shown = clipped(text, most)
    assert bytes_of(shown.removesuffix("…")) <= most
    assert shown == text or (shown.endswith("…") and text.startswith(shown[:-1].rstrip()))


def receipt(**sections: int) -> Receipt:
    inside = Decision("mine", "text", None, 5)
    return Receipt(100, sum(sections.values()), "bytes", sections, (inside,), (), 0, reserve=20)


def test_the_bars_of_a_budget_fill_it() -> None:
    bars = pictures.budget(receipt(system=10, mine=30, facts=0, other=20))
    assert [(one.label, one.colour, one.value) for one in bars] == [
        ("system", "system", 10),
        ("mine", "own0", 30),
        ("other", "own1", 20),
        ("kept free", "reserve", 20),
        ("unused", "free", 20),
    ]
    assert [round(one.x) for one in bars] == [0, 100, 400, 600, 800]
    assert all(one.x + one.width <= pictures.WIDTH for one in bars)
    assert [one.label for one in pictures.budget(receipt(system=120))] == ["system"]


def test_the_parts_of_a_score_stand_in_their_order_and_what_takes_away_is_apart() -> None:
    bars = pictures.score({"role": 0.5, "semantic": 0.25, "mystery": 0.25, "date": 0.0, "brevity": -0.1}, 2.0)
    assert [one.label for one in bars] == ["semantic", "role", "brevity", "mystery"]
    assert [round(one.x) for one in bars] == [0, 125, 375, 375]
    assert pictures.score({"role": 0.0}, 0.0) == ()
    assert pictures.highest([{"a": 1.0, "b": -5.0}, {"a": 0.5}]) == 1.0
    assert pictures.highest([]) == 0.0


def test_a_timeline_is_three_lanes_of_the_same_time() -> None:
    since = datetime(2025, 1, 1, tzinfo=UTC)
    empty = tuple([0] * pictures.PARTS)
    items = {Tier.MESSAGES: (9, *empty[2:], 1), Tier.SUMMARIES: empty, Tier.FACTS: (1, *empty[1:])}
    made = pictures.lanes(Timeline(since, since + timedelta(days=100), items))
    assert [(one.tier, one.total, len(one.bars)) for one in made.lanes] == [
        ("facts", 1, 1),
        ("summaries", 0, 0),
        ("messages", 10, 2),
    ]
    first, last = made.lanes[2].bars
    assert (first.height, round(last.height)) == (pictures.LANE, 10)
    assert made.ticks[-1] == (1.0, since + timedelta(days=100))


@pytest.mark.parametrize(
    ("days", "told"),
    [
        (24, ["20 Dec 2024", "20 Dec 2024", "20 Dec – 21 Dec 2024", "21 Dec 2024"]),
        (900, ["20 Dec 2024 – 01 Jan 2025", "01 Jan – 14 Jan 2025"]),
    ],
)
def test_a_bar_tells_every_day_that_it_is_of(days: int, told: list[str]) -> None:
    since = datetime(2024, 12, 20, 0, 30, tzinfo=UTC)
    items = dict.fromkeys((Tier.MESSAGES, Tier.SUMMARIES, Tier.FACTS), tuple([1] * pictures.PARTS))
    made = pictures.lanes(Timeline(since, since + timedelta(days=days), items))
    assert [one.label for one in made.lanes[2].bars[: len(told)]] == told


def test_the_words_of_a_fact_are_found_in_their_message() -> None:
    text = "x" * 1000 + "I like tea." + "y" * 1000
    before, words, after = around(text, Span(UUID(int=0), 1000, 1011, 2))
    assert words == "I like tea."
    assert (len(before), len(after)) == (241, 241)


def test_messages_stand_under_the_summary_of_their_stretch() -> None:
    said = [Message.model_construct(seq=seq) for seq in range(1, 7)]
    over = [
        Summary.model_construct(level=level, from_seq=first, to_seq=last)
        for level, first, last in ((0, 1, 6), (1, 1, 2), (1, 4, 5), (2, 1, 5))
    ]
    made = stretches(said, over)
    assert [(one.summary, [message.seq for message in one.messages]) for one in made] == [
        (over[1], [1, 2]),
        (None, [3]),
        (over[2], [4, 5]),
        (None, [6]),
    ]


def test_a_cookie_stands_for_a_token_for_a_day_and_no_longer() -> None:
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    cookie = sessions.begin(b"hash")
    assert sessions.token(cookie) == b"hash"
    assert not any(cookie.encode() in key for key in sessions._tokens)
    assert sessions.token(f"{cookie}x") is None
    assert sessions.token(None) is None
    assert sessions.proves(cookie, sessions.proof(cookie))
    assert not sessions.proves(cookie, sessions.proof("another"))
    assert not sessions.proves(None, sessions.proof(""))
    assert not sessions.proves(cookie, "ü")
    assert not sessions.proves(cookie, Sessions().proof(cookie))  # of another process
    now[0] = SECONDS
    assert sessions.token(cookie) is None
    sessions.end(cookie)


async def test_a_stream_looks_once_however_often_the_bell_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    bell, looks, pause = Bell(), [0], asyncio.Event()

    async def sleep(seconds: float) -> None:
        assert seconds == live.SECONDS_BETWEEN
        await pause.wait()

    async def look(_: Any) -> dict[str, Any]:
        looks[0] += 1
        return {"looks": looks[0]}

    async def holds() -> bool:
        return True

    monkeypatch.setattr(live, "drawn", lambda template, told: f"{template} {told['looks']}")
    visit: Any = SimpleNamespace(
        behind=SimpleNamespace(bell=bell), request=SimpleNamespace(state=SimpleNamespace(holds=holds)), writes=False
    )
    told = live._changes(visit, "page", look, 3600.0)
    assert await anext(told) == "event: changed\ndata: page 1\n\n"
    turn = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", sleep)
    following = asyncio.ensure_future(anext(told))
    for _ in range(20):
        bell.ring()
        await turn(0)
    assert looks == [1]
    pause.set()
    assert await following == "event: changed\ndata: page 2\n\n"
    await told.aclose()
