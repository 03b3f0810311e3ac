"""The promises of a context, held by properties: the budget, tool pairs, order, determinism."""

import os
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from memstore import BudgetTooSmall
from memstore.context.items import BudgetSpec, Candidates, ContextItem
from memstore.context.layout import plan_context
from memstore.formats import OPENAI
from memstore.formats.parts import PromptContent
from memstore.models import Context, Hit, Message, Reason, Section, Tier
from memstore.providers import TokenCounter, load_counter
from memstore.providers.tiktoken import _encoding
from memstore.strategies.base import split_turns
from tests.helpers.fakes import WordCounter
from tests.helpers.tokenizers import LLAMA_3, byte_level, write
from tests.unit.strategies import compose, conversations, hits, materials, message, texts
from tests.unit.test_tiktoken import published

EXACT = load_counter("tiktoken:o200k_base")
quick = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
DOSE = int(os.environ.get("TEST_DOSE", "1"))  # how much longer than usual the slow tests may take
budgets = st.integers(1, 60) | st.integers(60, 600) | st.integers(600, 8000)


def composed(material: Candidates, budget: int, counter: TokenCounter = EXACT) -> Context | BudgetTooSmall:
    try:
        return compose(material, budget, counter)
    except BudgetTooSmall as error:
        return error


@st.composite
def questions(draw: st.DrawFn) -> dict[str, object]:
    return {
        "question": draw(st.none() | texts.map(lambda text: {"role": "user", "content": text})),
        "facts": draw(st.lists(hits(Tier.FACTS), max_size=6)),
        "hits": draw(st.lists(hits(Tier.MESSAGES), max_size=8)),
    }


@quick
@given(materials(), questions(), budgets, budgets)
def test_every_promise_holds(material: Candidates, other: dict[str, object], budget: int, more: int) -> None:
    check(material, budget, budget + more, EXACT)
    check_prefix(material, other, budget)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["words", "tiktoken:o200k_base", "tiktoken:cl100k_base", "tokenizer:"])
@settings(max_examples=DOSE * 250, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(material=materials(), budget=budgets, more=budgets)
def test_every_promise_holds_with_every_counter_that_is_exact(
    name: str, trained: Path, material: Candidates, budget: int, more: int
) -> None:
    """In all 20,000 random stores and requests with TEST_DOSE=20."""
    counter = WordCounter() if name == "words" else load_counter(name if name[-1] != ":" else f"{name}{trained}")
    check(material, budget, budget + more, counter)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model's tokenizer with its template, small."""
    return write(tmp_path_factory.mktemp("tokenizer"), byte_level(), LLAMA_3)


def check(material: Candidates, budget: int, larger: int, counter: TokenCounter) -> None:
    context = composed(material, budget, counter)
    assert str(context) == str(composed(material, budget, counter)), "the same material gives the same bytes"
    if isinstance(context, BudgetTooSmall):
        assert context.needed > budget
        budget, larger = context.needed, context.needed + larger
        context = compose(material, budget, counter)
        assert context.tokens == budget
    check_budget(material, budget, context, counter)
    check_pairs(context)
    check_pinned(material, budget, context, composed(material, larger, counter), counter)
    check_question(material, context)
    check_recent(material, context)
    check_receipt(material, context)


def check_budget(material: Candidates, budget: int, context: Context, counter: TokenCounter) -> None:
    """A context is never over its budget, and its sections add up."""
    counted = (
        published(context.messages, _encoding("o200k_base"))
        if counter is EXACT
        else counter.count_messages(context.messages)
    )
    assert context.tokens == counted <= budget
    assert context.receipt.tokens == sum(context.receipt.sections.values()) == context.tokens
    assert all(tokens >= 0 for tokens in context.receipt.sections.values())
    check_maximums(material, budget, context, counter)
    assert 0 <= context.receipt.static_tokens <= context.tokens


def check_maximums(material: Candidates, budget: int, context: Context, counter: TokenCounter) -> None:
    """No section takes more than its maximum, fences and headings included; what is promised stays."""
    plan = plan_context(material, BudgetSpec(budget, counter))
    musts = plan.required_items()
    for section in material.sections:
        if section.maximum is not None and not musts.get(section.name):
            assert context.receipt.sections.get(section.name, 0) <= plan.allowances[section.name].maximum


def check_pairs(context: Context) -> None:
    """Calls of tools are never parted from their results."""
    expected: list[str] = []
    for one in context.messages:
        if one["role"] == "tool":
            assert one["tool_call_id"] in expected
            expected.remove(one["tool_call_id"])
        else:
            assert expected == []
            expected = [made["id"] for made in one.get("tool_calls", [])]
    assert expected == []


def check_pinned(
    material: Candidates, budget: int, small: Context, large: Context | BudgetTooSmall, counter: TokenCounter
) -> None:
    """Standing facts, and what fits into a minimum in tokens, stay when there is more room; so does the system."""
    assert not isinstance(large, BudgetTooSmall)
    pinned = pinned_in(small)
    assert pinned <= pinned_in(large)
    musts = plan_context(material, BudgetSpec(budget, counter)).required_items()
    wanted = [piece for pieces in musts.values() for piece in pieces]
    for context in (small, large):
        inside = Counter((one.section, one.id) for one in context.receipt.included)
        assert Counter((one.section, one.id) for one in wanted if not is_shown(one, context)) <= inside
        assert material.system is None or context.messages[0] == {"role": "system", "content": material.system}


def is_shown(piece: ContextItem, context: Context) -> bool:
    """Whether the recent turns of a context show what a promised piece is, or was made from."""
    recent = [one for one in context.receipt.included if one.section == "recent"]
    shown = {id for one in recent for id in (one.id, *one.others)}
    if piece.section == "summaries":
        return any(one.seqs is not None and one.seqs[0] <= piece.first_seq for one in recent)
    if piece.section == "facts":
        return not shown.isdisjoint(piece.sources)
    return piece.section == "hits" and piece.id in shown


def pinned_in(context: Context) -> set[UUID | None]:
    return {one.id for one in context.receipt.included if one.standing}


def check_question(material: Candidates, context: Context) -> None:
    """The question is in, and nothing is said twice."""
    if material.question is not None:
        assert [one for one in context.messages if one["role"] == "user"][-1:] or material.question["role"] != "user"
        assert OPENAI.render(PromptContent(question=material.question)).messages[0] in context.messages
    recent = [decision for decision in context.receipt.included if decision.section == "recent"]
    shown = {
        one.id for turn in material.turns for one in turn.messages if turn.messages[0].id in {d.id for d in recent}
    }
    hits = {decision.id for decision in context.receipt.included if decision.section == "hits"}
    assert not shown & hits


def check_recent(material: Candidates, context: Context) -> None:
    """Recent turns are the newest, without gaps and in order."""
    taken = [decision.id for decision in context.receipt.included if decision.section == "recent"]
    assert taken == [turn.messages[0].id for turn in material.turns[: len(taken)]]


def check_receipt(material: Candidates, context: Context) -> None:
    """Every piece is in or left out with a reason."""
    receipt = context.receipt
    own = sum(len(section.texts) for section in material.sections)
    facts = {fact.id for fact in (*material.standing, *material.facts)}
    others = sum(map(len, (material.summaries, facts, material.hits))) + own
    known = [*receipt.included, *receipt.left_out]
    assert sum(one.section != "recent" for one in known) == others
    taken = sum(one.section == "recent" for one in receipt.included)
    older = [one for one in receipt.left_out if one.section == "recent"]
    assert {one.reason for one in older} <= {Reason.OVER_BUDGET, Reason.COVERED}
    assert sum(int(one.note.split()[0]) for one in older) == len(material.turns) - taken
    assert all(decision.reason for decision in receipt.left_out)


def check_prefix(material: Candidates, other: dict[str, object], budget: int) -> None:
    """Another question leaves the stable prefix as it is."""
    alone = replace(material, question_seq=None, ending=())
    both = (alone, replace(alone, **other))
    found = [composed(one, budget) for one in both]
    enough = max([budget, *(one.needed for one in found if isinstance(one, BudgetTooSmall))])
    contexts = [compose(one, enough, EXACT) for one in both]
    least = min(context.receipt.static_tokens for context in contexts)
    prefixes = [cut(context.messages, least) for context in contexts]
    assert prefixes[0] == prefixes[1]


def cut(messages: list[dict[str, object]], tokens: int) -> list[dict[str, object]]:
    """Return the first messages, as many as have so many tokens."""
    found: list[dict[str, object]] = []
    while tokens > 0:
        found.append(messages[len(found)])
        tokens -= EXACT.count_message(found[-1])
    assert tokens == 0
    return found


@pytest.mark.parametrize("budget", [200, 500, 1000, 4000, 16_000, 64_000, 128_000])
def test_the_budget_is_used_while_there_is_material_that_fits(budget: int) -> None:
    """Candidates is what would fit: messages of 10 to 60 tokens, more of them than the largest budget holds."""
    said = [
        message(n, "user" if n % 2 else "assistant", " ".join(f"w{n * k % 7919}" for k in range(n * 7 % 50 + 8)))
        for n in range(1, 5000)
    ]
    found, _ = split_turns(said)
    far = [hit_on(one, 1.0 / one.seq) for one in said[:400]]
    calendar = Section("calendar", text=[f"At {n} o'clock: meeting number {n * n}." for n in range(24)])
    material = Candidates(
        system="Be brief.", question={"role": "user", "content": "?"}, turns=found[::-1], hits=far, sections=[calendar]
    )
    context = compose(material, budget, WordCounter())
    assert 0.97 * budget <= context.tokens <= budget


def hit_on(one: Message, score: float) -> Hit:
    return Hit(Tier.MESSAGES, one.id, one.text or "", score, {}, (one.id,), one.occurred_at, seq=one.seq, speaker="Ann")


@quick
@given(conversations())
def test_turns_lose_nothing_that_an_api_would_take(messages: list[object]) -> None:
    found, refused = split_turns(messages)  # type: ignore[arg-type]
    kept = [one for turn in found for one in turn.messages]
    assert sorted(one.seq for one in [*kept, *refused]) == [one.seq for one in messages]  # type: ignore[attr-defined]
    assert all(one.role == "tool" or one.tool_calls for one in refused)
    assert all(a.first_seq < b.first_seq for a, b in pairwise(found))


def test_a_budget_that_is_too_small_says_what_is_needed_and_by_what() -> None:
    material = Candidates(system="short", question={"role": "user", "content": "word " * 200})
    with pytest.raises(BudgetTooSmall, match="largest part of that is the question") as caught:
        compose(material, 100, WordCounter())
    assert caught.value.needed > 200
    assert compose(material, caught.value.needed, WordCounter()).tokens == caught.value.needed
    assert compose(material, caught.value.needed, WordCounter()).receipt.included == ()


@pytest.mark.parametrize(
    ("given", "reserve", "tools", "named"),
    [
        (
            {},
            0,
            [{"type": "function", "function": {"name": "f", "description": "word " * 90}}],
            "the definitions of tools",
        ),
        ({}, 95, [], "the reserve"),
        ({"system": "word " * 90}, 0, [], "the system prompt"),
        ({"sections": [Section("calendar", text="word " * 98, minimum=110)]}, 0, [], "the minimum of calendar"),
    ],
)
def test_a_budget_that_is_too_small_names_what_takes_most_of_it(
    given: dict[str, object], reserve: int, tools: list[dict[str, object]], named: str
) -> None:
    material = Candidates(question={"role": "user", "content": "Where shall we eat tonight?"}, **given)  # type: ignore[arg-type]
    with pytest.raises(BudgetTooSmall) as caught:
        compose(material, 100, EXACT if tools else WordCounter(), reserve, tools=tools)
    assert caught.value.section == named
