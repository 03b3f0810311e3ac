"""The cover: which summaries stand for what is older than the recent turns."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from hypothesis import given, strategies as st

from memstore.models import Summary
from memstore.strategies.base import cover


def summary(level: int, from_seq: int, to_seq: int, tokens: int = 10) -> Summary:
    number = (level * 1000 + from_seq) * 1000 + to_seq
    return Summary.model_construct(id=UUID(int=number), level=level, from_seq=from_seq, to_seq=to_seq, tokens=tokens)


def ranges(found: Sequence[Summary]) -> list[tuple[int, int, int]]:
    return [(one.level, one.from_seq, one.to_seq) for one in found]


@st.composite
def nests(draw: st.DrawFn) -> list[Summary]:
    """Level 1 over stretches of one to four messages, and levels above over three each while there are as many."""
    found, level, begin = [], [], 1
    for length in draw(st.lists(st.integers(1, 4), max_size=30)):
        level.append(summary(1, begin, begin + length - 1, draw(st.integers(1, 30))))
        begin += length
    while level:
        found += level
        groups = [level[at : at + 3] for at in range(0, len(level) - 2, 3)]
        level = [summary(one[0].level + 1, one[0].from_seq, one[-1].to_seq, draw(st.integers(1, 60))) for one in groups]
    return draw(st.permutations(found))


def finer(nest: Sequence[Summary], one: Summary, upto: int) -> list[Summary]:
    """The summaries a level below that one of the nest stands for."""
    return [
        other
        for other in nest
        if other.level == one.level - 1 and one.from_seq <= other.from_seq <= min(one.to_seq, upto)
    ]


def messages(found: Sequence[Summary], upto: int) -> list[int]:
    return [seq for one in found for seq in range(one.from_seq, min(one.to_seq, upto) + 1)]


everything = st.tuples(nests(), st.integers(0, 130), st.integers(0, 700))


@given(everything, st.integers(0, 200), st.randoms())
def test_every_promise_of_a_cover(given_: tuple[list[Summary], int, int], more: int, random: object) -> None:
    nest, upto, tokens = given_
    found = cover(nest, upto, tokens)
    said, above = messages(found, upto), set(messages(nest, upto))
    assert len(said) == len(set(said)), "each message once"
    assert sorted(said) == sorted(above)[len(above) - len(said) :], "the oldest are left out, and no others"
    assert set(messages(cover(nest, upto, 10**6), upto)) == above, "and none where there is room"
    left = tokens - sum(one.tokens for one in found)
    assert left >= 0
    for one in found:
        under = finer(nest, one, upto)
        assert not under or sum(other.tokens for other in under) - one.tokens > left, "nothing could be finer"
    assert set(said) <= set(messages(cover(nest, upto, tokens + more), upto)), "more tokens cover no less"
    random.shuffle(nest)  # type: ignore[attr-defined]
    assert cover(nest, upto, tokens) == found
    assert ranges(found) == sorted(ranges(found), key=lambda one: -one[1])


NEST = [summary(1, 1 + 2 * n, 2 + 2 * n) for n in range(9)] + [summary(2, 1 + 6 * n, 6 + 6 * n, 15) for n in range(3)]


def test_old_is_coarse_and_near_is_fine() -> None:
    assert ranges(cover(NEST, 18, 61)) == [(1, 17, 18), (1, 15, 16), (1, 13, 14), (2, 7, 12), (2, 1, 6)]
    assert ranges(cover(NEST, 18, 44)) == [(2, 13, 18), (2, 7, 12)]


def test_what_an_older_refinement_saves_goes_to_the_newest() -> None:
    nest = [summary(1, 1, 1, 1), summary(1, 2, 2, 1), summary(2, 1, 2, 10)]
    nest += [summary(1, 3, 3, 9), summary(1, 4, 4, 9), summary(2, 3, 4, 10)]
    assert ranges(cover(nest, 4, 20)) == [(1, 4, 4), (1, 3, 3), (1, 2, 2), (1, 1, 1)]


def test_what_the_recent_turns_show_is_not_covered() -> None:
    assert ranges(cover(NEST, 14, 10**6))[0] == (1, 13, 14)
    assert ranges(cover(NEST, 13, 10**6))[0] == (1, 13, 14), "nothing ends nearer"
    assert ranges(cover(NEST, 14, 49)) == [(1, 13, 14), (2, 7, 12), (2, 1, 6)], "one finer costs less than the coarse"
    assert cover(NEST, 0, 10**6) == []


def test_those_made_on_demand_take_no_part() -> None:
    assert cover([summary(0, 1, 18), summary(1, 1, 2)], 18, 100) == [summary(1, 1, 2)]


def test_a_summary_stays_where_the_finer_ones_leave_out_messages() -> None:
    torn = [one for one in NEST if ranges([one]) != [(1, 3, 4)]]
    assert (2, 1, 6) in ranges(cover(torn, 18, 10**6))
    assert (1, 9, 10) in ranges(cover(torn, 18, 10**6))
