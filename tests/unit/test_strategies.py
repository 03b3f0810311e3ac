"""The promises of compression, held by properties over drawn conversations and any list of strategies in any order."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from memstore import InvalidInput
from memstore.context.builder import compress_turns
from memstore.context.items import Candidates
from memstore.models import Fact, Hit, Message, Summary, Tier
from memstore.strategies import STRATEGY_KINDS, Semantic, SlidingWindow, as_json, get_strategies
from memstore.strategies.base import (
    PROTECTED_TURNS,
    Block,
    ConversationView,
    Strategy,
    Turn,
    compress,
    cover,
    split_turns,
    view_of,
)
from memstore.strategies.buffers import (
    GoalBatch,
    Hierarchical,
    SummaryBuffer,
    Threshold,
    ToolCalls,
    ToolSummaries,
    best_lines,
    digest,
)
from tests.helpers.fakes import WordCounter as StoredCounter
from tests.unit.strategies import START, call, compose, conversations, message, summaries
from tests.unit.test_compose import check_pairs

quick = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
counts, shares = st.integers(0, 12), st.sampled_from([0.1, 0.3, 0.6])
one_strategy = st.one_of(
    st.builds(SlidingWindow, counts),
    st.builds(Semantic, counts, shares),
    st.builds(ToolCalls, counts),
    st.builds(GoalBatch, st.integers(0, 3)),
    st.builds(SummaryBuffer, st.sampled_from([0.8, 0.7]), st.sampled_from([0.6, 0.4])),
    st.builds(Threshold),
    st.builds(Hierarchical, shares, counts),
)
lists = st.lists(one_strategy, max_size=5)


class WordCounter(StoredCounter):
    """Another counter than the one of the drawn messages, so that they are counted and not taken to be a token long."""

    name = "other words"


@st.composite
def views(draw: st.DrawFn) -> ConversationView:
    """A view of a drawn conversation, with summaries, facts, answers to a question, and a question that must stay."""
    found, _ = split_turns(draw(conversations(30)))
    said = [one for turn in found for one in turn.messages]
    sources = draw(st.lists(st.sampled_from(said), max_size=5)) if said else []
    facts = [
        Fact.model_construct(type="statement", id=one.id, text=f"fact {one.seq}", sources=[one.id], occurred_at=START)
        for one in sources
    ]
    asked = [turn.first_seq for turn in found if turn.messages[0].role == "user"][-1:]
    return view_of(
        found,
        draw(st.integers(1, 400)),
        WordCounter(),
        keep=frozenset(asked),
        summaries=[one.model_copy(update={"tokens": 9}) for one in draw(st.lists(summaries(), max_size=4))],
        facts=facts,
        relevance={one.id: 1.0 / one.seq for one in sources},
    )


@quick
@given(views(), lists, lists)
def test_every_promise_holds(view: ConversationView, chosen: list[Strategy], then: list[Strategy]) -> None:
    after = compress(view, chosen)
    assert compress(view, [*chosen, *chosen]) == compress(replace(view), chosen) == after, "each runs once"
    check_places(view, after)
    check_floor(view, after)
    assert after.tokens <= view.tokens, "nothing grows"
    assert view.tokens - after.tokens == sum(step.saved for step in after.steps)
    assert all(step.saved > 0 and step.turns for step in after.steps)
    places = {one.first_seq: id(entry) for entry in compress(after, then).entries for one in entry.turns}
    for entry in after.entries:
        if isinstance(entry, Block):
            assert len({places[turn.first_seq] for turn in entry.turns}) == 1, "kept, or taken whole"


def check_places(view: ConversationView, after: ConversationView) -> None:
    """Every message is in one place and in order, a call of tools with its results."""
    shown = [one.seq for entry in after.entries for turn in entry.turns for one in turn.messages]
    left = [one.seq for gone in after.dropped for turn in gone.turns for one in turn.messages]
    assert shown == sorted(shown)
    assert sorted(shown + left) == [one.seq for turn in view.entries for one in turn.messages]  # type: ignore[union-attr]
    assert all(gone.reason and gone.strategy in ("sliding_window", "semantic") for gone in after.dropped)
    whole = {id(entry) for entry in view.entries}
    assert all(id(turn) in whole for entry in after.entries for turn in entry.turns)


def check_floor(view: ConversationView, after: ConversationView) -> None:
    kept = [entry for entry in after.entries if isinstance(entry, Turn)]
    newest = list(view.entries[-PROTECTED_TURNS:])
    assert kept[len(kept) - len(newest) :] == newest
    must = [
        entry
        for entry in view.entries
        if isinstance(entry, Turn) and (entry.messages[0].role == "system" or entry.first_seq in view.protected)
    ]
    assert [entry for entry in kept if entry in must] == must


def talk(count: int, words: int = 10) -> list[Message]:
    """Give a conversation with a call of a tool in every third place."""
    found: list[Message] = []
    while len(found) < count:
        seq = len(found) + 1
        if seq % 3 == 0:
            found.append(message(seq, "assistant", None, tool_calls=[call(seq)]))
            found.append(message(seq + 1, "tool", f"line {seq} " * 40, tool_call_id=f"call_{seq}"))
        else:
            found.append(message(seq, "user" if seq % 2 else "assistant", f"word{seq} " * words))
    return found


@pytest.mark.parametrize("strategy", [SummaryBuffer(), Threshold(), Hierarchical(recent=0.5)])
@pytest.mark.parametrize("first", [[], [ToolCalls(older_than=5)]])
def test_a_boundary_stays_between_triggers(strategy: Strategy, first: list[Strategy]) -> None:
    every, _ = split_turns(talk(90))
    prefixes = []
    for end in range(20, len(every)):
        after = compress(view_of(every[:end], 1000, WordCounter()), [*first, strategy])
        prefixes.append(
            tuple(
                entry.last_seq
                for entry in after.entries
                if isinstance(entry, Block) and entry.strategy == strategy.name
            )
        )
    moves = sum(one != other for one, other in pairwise(prefixes))
    assert 2 <= moves <= len(prefixes) / 4


def test_between_trigger_and_target() -> None:
    every, _ = split_turns(talk(150))
    for end in range(20, len(every)):
        after = compress(view_of(every[:end], 1000, WordCounter()), [SummaryBuffer()])
        assert after.tokens <= 0.8 * 1000 + 60


def asked_and_done() -> list[Message]:
    """Give a goal of a user with one call, and a long talk after it."""
    rows = [{"offer_id": f"off_{n}", "flight": f"LX{n}1", "price": 300 + n} for n in range(40)]
    made = {"id": "c1", "function": {"name": "search_flights", "arguments": json.dumps({"to": "Porto", "adults": 2})}}
    found = [
        message(1, "user", "Find me a flight to Porto. I never fly before nine."),
        message(2, "assistant", None, tool_calls=[made]),
        message(3, "tool", json.dumps({"offers": rows, "currency": "EUR"}), tool_call_id="c1"),
        message(4, "assistant", "I would take off_23."),
    ]
    return found + [message(n, "user" if n % 2 else "assistant", f"And then number {n}.") for n in range(5, 20)]


def test_an_old_call_is_told_with_tool_inputs_and_outcome() -> None:
    found, _ = split_turns(asked_and_done())
    after = compress(view_of(found, 10_000, WordCounter()), [ToolCalls()])
    (block,) = [entry for entry in after.entries if isinstance(entry, Block)]
    assert block.text.startswith("search_flights(to=Porto, adults=2) gave: ")
    assert "offers: 40 entries of offer_id, flight, price; " in block.text
    assert "; off_23, LX231, 323" in block.text  # it was named three turns later
    assert after.steps[0].turns == 1
    assert after.steps[0].saved > 50


@pytest.mark.parametrize("strategy", [SummaryBuffer(0.2, 0.15, 0.1), Threshold(0.6, 0.4, 0.3), Hierarchical(0.1)])
@pytest.mark.parametrize("first", [[], [ToolCalls()], [GoalBatch()]])
def test_what_is_told_of_many_turns_tells_calls_by_what_was_named_after_them(
    strategy: Strategy, first: list[Strategy]
) -> None:
    found = [*asked_and_done(), *(message(n, "user", f"Number {n} of all of them.") for n in range(20, 90))]
    view = compress(view_of(split_turns(found)[0], 900, WordCounter()), [*first, strategy])
    told = "\n".join(entry.text for entry in view.entries if isinstance(entry, Block))
    assert "search_flights(to=Porto, adults=2)" in told
    assert "off_23, LX231, 323" in told


def test_a_sentence_is_left_out_where_a_summary_says_all_its_words() -> None:
    texts = ("I have a cat", "I have a dog", *(f"Number {n} of them." for n in range(20)))
    found, _ = split_turns([message(seq, "user", text, "Ann") for seq, text in enumerate(texts, 1)])
    summary = "I have a catfish. I have a dog."
    said = Summary.model_construct(level=1, from_seq=1, to_seq=2, id=UUID(int=7), tokens=9, text=summary)
    calls = ToolSummaries(view_of(found, 1000, WordCounter(), summaries=[said]))
    assert digest(calls, found[:2], 60, 1) == f"{summary}\nAnn: I have a cat"


def test_the_word_that_begins_what_somebody_says_is_no_name() -> None:
    lines = ["Ann: Anyway it rains.", "Ann: Trams leave late there."]
    assert best_lines(view_of((), 1000, WordCounter()), lines, 5) == lines[1:]


def test_a_record_of_a_call_is_never_written_again() -> None:
    found = asked_and_done() + [message(n, "user", f"Let us speak of off_{n} and LX{n}1.") for n in range(20, 40)]
    every, _ = split_turns(found)
    texts = set()
    for end in range(12, len(every)):
        view = compress(view_of(every[:end], 10_000, WordCounter()), [ToolCalls()])
        texts.update(entry.text for entry in view.entries if isinstance(entry, Block))
    assert len(texts) == 1


def test_a_goal_that_is_done_becomes_an_episode_and_an_open_one_does_not() -> None:
    found, _ = split_turns(asked_and_done())
    after = compress(view_of(found, 10_000, WordCounter()), [GoalBatch()])
    block = after.entries[0]
    assert isinstance(block, Block)
    lines = block.text.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["Goal", "Done", "Outcome"]
    assert "never fly before nine" in lines[0]
    assert "search_flights" in lines[1]
    assert "off_23" in lines[2]
    waiting = [one for one in asked_and_done() if one.seq != 4]
    after = compress(view_of(split_turns(waiting)[0], 10_000, WordCounter()), [GoalBatch()])
    assert isinstance(after.entries[0], Turn)


def test_what_the_question_asks_for_stands_instead_of_what_is_recent() -> None:
    every, _ = split_turns(talk(60))
    view = view_of(every, 10_000, WordCounter(), relevance={every[3].messages[0].id: 0.9})
    after = compress(view, [Semantic(recent=5)])
    assert list(after.entries) == [every[3], *every[-5:]]
    assert compress(replace(view, relevance={}), [Semantic(recent=5)]).entries == view.entries


def test_a_strategy_that_takes_the_floor_is_refused() -> None:
    every, _ = split_turns(talk(20))
    view = view_of(every, 10_000, WordCounter())
    with pytest.raises(ValueError, match="not to be taken"):
        view.with_blocks([view.block(ToolCalls(), every[-2:], "x", 1)])
    blocked = view.with_blocks([view.block(ToolCalls(), every[1:4], "x", 1)])
    with pytest.raises(ValueError, match="not to be taken"):
        blocked.with_blocks([view.block(ToolCalls(), every[:3], "x", 1)])


def test_lists_of_strategies_as_json_and_back() -> None:
    given = [{"strategy": "tool_calls", "older_than": 10}, "summary_buffer", Threshold(target=0.4)]
    kept = as_json(given)
    assert json.loads(json.dumps(kept)) == kept
    assert get_strategies(kept) == get_strategies(given) == (ToolCalls(), SummaryBuffer(), Threshold(target=0.4))
    assert {one.name for one in get_strategies(list(STRATEGY_KINDS))} == set(STRATEGY_KINDS)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("zip", "known are goal_batch, hierarchical, semantic"),
        ({"strategy": "tool_calls", "age": 3}, "has no option age; it has older_than"),
        ({"strategy": "tool_calls", "older_than": -1}, "older_than=-1: give a whole number from 0"),
        ({"strategy": "sliding_window", "turns": True}, "turns=True: give a whole number"),
        ({"strategy": "hierarchical", "recent": 0.8}, "more than the whole room"),
        ({"strategy": "summary_buffer", "target": 0.9}, "each option must be above the next"),
        ({"strategy": "semantic", "share": 1.5}, "give a share"),
        (7, "is no strategy"),
        (ToolCalls, "is no strategy"),
    ],
)
def test_what_is_no_strategy_is_refused_with_what_there_is(given: object, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        get_strategies(given)  # type: ignore[arg-type]


@quick
@given(conversations(30), lists, st.integers(20, 600))
def test_the_budget_holds_and_the_receipt_says_which_strategy_took_what(
    messages: list[Message], chosen: list[Strategy], budget: int
) -> None:
    every, _ = split_turns(messages)
    material = Candidates(question={"role": "user", "content": "And now?"}, turns=every[::-1])
    squeezed = compress_turns(material, chosen, every, budget, WordCounter())
    context = compose(squeezed, budget, WordCounter())
    assert context.tokens == WordCounter().count_messages(context.messages) <= budget
    assert context.receipt.compressed == squeezed.compressed
    blocks = [one for one in context.receipt.included if one.kind == "block"]
    names = {one.name for one in chosen}
    assert all(one.note.partition(":")[0] in names for one in blocks)
    assert bool(blocks) == any(str(one["content"]).startswith("<record>") for one in context.messages)
    check_pairs(context)


def test_what_a_question_has_chosen_is_no_part_of_the_stable_prefix() -> None:
    every, _ = split_turns(talk(60))
    hit = Hit(Tier.MESSAGES, every[3].messages[0].id, "x", 0.9, {}, (), START)
    material = Candidates(system="Be brief.", question={"role": "user", "content": "?"}, turns=every[::-1], hits=[hit])
    stable = [
        compose(compress_turns(material, chosen, every, 5000, WordCounter()), 5000, WordCounter()).receipt.static_tokens
        for chosen in ([Semantic()], [SlidingWindow()])
    ]
    assert stable[0] == WordCounter().count_message({"role": "system", "content": "Be brief."}) < stable[1]


# The cover: which summaries stand for what is older than the recent turns


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
