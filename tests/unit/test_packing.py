"""The parts of packing: the window that moves in steps, what is said already, what is left."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, strategies as st

from memstore.context.candidates import AntecedentFinder
from memstore.context.items import Candidates, ContextItem, ItemFactory
from memstore.context.selection import Selection, recent_window
from memstore.formats import OPENAI
from memstore.formats.parts import PromptContent, RenderedPrompt
from memstore.models import Hit, Message, Reason, Section, Tier
from memstore.providers import Count
from memstore.search.outdated import Changes
from tests.helpers.fakes import WordCounter
from tests.unit.strategies import START, UUID, compose


def turn(start: int, tokens: int) -> ContextItem:
    return ContextItem("recent", "turn", None, tokens, None, "", first_seq=start)


@given(st.lists(st.integers(1, 90), min_size=1, max_size=60), st.integers(0, 900))
def test_a_window_fits_and_is_not_much_shorter_than_it_may_be(tokens: list[int], room: int) -> None:
    turns = [turn(start, size) for start, size in zip(range(len(tokens), 0, -1), tokens, strict=True)]
    count = recent_window(turns, room)
    most = sum(1 for so_far in accumulate(tokens) if so_far <= room)
    assert sum(tokens[:count]) <= room
    assert sum(tokens[:count]) >= sum(tokens[:most]) - 0.25 * room
    assert (count == len(tokens)) == (sum(tokens) <= room)


def test_a_window_begins_at_the_same_message_for_many_turns() -> None:
    begins = []
    for newest in range(200, 400, 2):
        turns = [turn(start, 35 + start % 7) for start in range(newest, 0, -1)]
        begins.append(turns[recent_window(turns, 6000) - 1].first_seq)
    assert begins == sorted(begins)
    assert len(set(begins)) <= 100 / 3


@pytest.mark.parametrize(
    ("first", "second", "is_duplicate"),
    [
        ("We fly to Lisbon on Friday, at nine. The hotel is booked.", "we fly to lisbon on friday at nine", True),
        ("We fly to Lisbon on Friday, at nine. The hotel is booked.", "We fly to Porto on Friday, at nine", False),
        ("„Wir fliegen am Freitag nach München“ – sagte Zoë…", "wir fliegen am freitag nach MÜNCHEN, sagte zoë", True),
        ("„Wir fliegen am Freitag nach München“ – sagte Zoë…", "wir fliegen am freitag nach Munchen", False),
        ("Great, thanks!", "great thanks", True),
        ("Great, thanks!", "Thanks!", False),
        ("Ann sails on the lake. ", "Ann sails on the lake. " * 100_000, False),  # too long to be looked at
    ],
)
def test_what_is_repeated_or_quoted_is_said_once(first: str, second: str, is_duplicate: bool) -> None:
    selection = Selection()
    one, other = ItemFactory(WordCounter()).hits([hit(1, first), hit(2, second)])
    selection.add(one)
    assert selection.is_duplicate(other) == is_duplicate
    assert selection.rejection_reason(other) == (Reason.DUPLICATE if is_duplicate else Reason.OVER_BUDGET)
    selection.remove(one)
    assert not selection.is_duplicate(other)
    assert (selection.tokens, selection.taken("hits")) == (0, 0)


def test_a_reason_is_true_of_what_is_in_at_last() -> None:
    """A format may take more than was expected: then hits are taken out again after others were refused."""
    twice = [hit(n, f"we spoke of the weather in town number {n // 2} and of {n // 2} trains") for n in range(10, 60)]
    given = Candidates(question={"role": "user", "content": "?"}, hits=twice)
    for budget in range(80, 300, 7):
        made = compose(given, budget, WordCounter(), format=Wordy())
        assert made.tokens <= budget
        for one in made.receipt.left_out:
            if one.reason == Reason.DUPLICATE:
                assert one.preview in str(made.messages)


class Wordy:
    """OpenAI's format with more words than are expected."""

    name = "wordy"

    def render(self, content: PromptContent) -> RenderedPrompt:
        more = {"role": "system", "content": "please " * 3 * len(content.hits)}
        return RenderedPrompt([*OPENAI.render(content).messages, *([more] if content.hits else [])])


@pytest.mark.parametrize("factor", [0.5, 3])
def test_a_server_that_counts_otherwise_than_is_expected_has_its_budget_used(factor: float) -> None:
    class ServerCounter(WordCounter):
        def count_messages(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Any] = ()) -> Count:
            return Count(int(factor * super().count_messages(messages, tools)), "server")

    hits = [hit(n, f"In town {n} we spoke of {n} trains and {n + 1} ferries, on platform {n}.") for n in range(10, 200)]
    context = compose(Candidates(question={"role": "user", "content": "?"}, hits=hits), 900, ServerCounter())
    assert 720 <= context.tokens <= 900


def hit(number: int, text: str) -> Hit:
    return Hit(Tier.MESSAGES, UUID(int=number), text, 1.0 / number, {}, (), START, UUID(int=2), number, speaker="Ann")


def fact(number: int, text: str) -> Hit:
    return Hit(Tier.FACTS, UUID(int=number), text, 1.0, {}, (), START)


ALWAYS = [fact(1, "Ann is allergic to shellfish."), fact(2, "Ann eats no meat."), fact(3, "Ann wants short answers.")]
TALK = [hit(n, f"we spoke of the weather in town number {n} and of {n * n} trains") for n in range(10, 60)]


def test_no_filler_is_worth_a_standing_fact() -> None:
    """The fence of standing facts has as many tokens as three of them, and the parts of a small room are small."""
    calendar = Section("calendar", text=["At eight: Bob, about the trains.", "At nine: the dentist, with the car."])
    given = Candidates(question={"role": "user", "content": "?"}, standing=ALWAYS, hits=TALK, sections=[calendar])
    inside: set[UUID | None] = set()
    for budget in range(60, 240, 5):
        receipt = compose(given, budget, WordCounter()).receipt
        assert inside <= {one.id for one in receipt.included}, "and more room never drops one"
        inside = {one.id for one in receipt.included if one.standing}
        assert inside or receipt.sections["hits"] == 0
    assert inside == {one.id for one in ALWAYS}


def test_facts_stand_in_place_of_messages_that_do_not_fit_where_several_things_are_asked_for() -> None:
    hits, facts = [], []
    for number in range(1, 9):
        said = f"Took up hobby{number}. {'Then we talked until the lights went out. ' * 4}"
        hits.append(Hit(Tier.MESSAGES, UUID(int=number), said, 1 - number / 100, {}, (UUID(int=number),), START))
        quoted = f'Evan: "Took up hobby{number}."'
        facts.append(
            Hit(Tier.FACTS, UUID(int=number + 20), quoted, 0.5, {}, (UUID(int=number),), START, speaker="Evan")
        )
    context = compose(Candidates(hits=hits, facts=facts, asks_for_several=True), 200, WordCounter())
    included = context.receipt.included
    whole = {one.id for one in included if one.kind == "messages"}
    told = {UUID(int=one.id.int - 20) for one in included if one.kind == "fact" and one.id}
    assert whole
    assert told
    assert not whole & told  # a fact says nothing beside its message
    assert whole | told == {hit.id for hit in hits}


def test_a_summary_answers_nothing_though_it_ends_with_an_answer() -> None:
    asked = Message.model_construct(id=UUID(int=1), role="user", name=None, text="Is it far?", seq=1, occurred_at=START)
    answer = Hit(Tier.MESSAGES, UUID(int=2), "No, two miles.", 0.5, {}, (), START, UUID(int=9), 2)
    finder = AntecedentFinder({(UUID(int=9), 2): asked}, (), Changes({}, []))
    found = finder.find(answer)
    assert found is not None
    assert found.text == "Is it far?"
    assert finder.find(replace(answer, tier=Tier.SUMMARIES, id=UUID(int=3))) is None


def test_what_a_hit_leans_on_comes_and_goes_with_it() -> None:
    question = "Shall we insulate the attic?"
    asked, answered = (
        Hit(Tier.MESSAGES, UUID(int=number), text, 0.5, {}, (UUID(int=number),), START)
        for number, text in ((1, f"Hello Ben! {question}"), (2, "No, this is not necessary."))
    )
    factory = ItemFactory(WordCounter())
    answer, whole = factory.hits(
        [answered, asked], lambda hit: replace(asked, text=question, start=11) if hit.id == answered.id else None
    )
    selection = Selection()
    selection.add(answer)
    assert [item.text for item in selection.chosen["hits"]] == [question, answered.text]
    selection.add(whole)  # has it
    assert [item.text for item in selection.chosen["hits"]] == [answered.text, asked.text]
    selection.remove(whole)
    assert [item.text for item in selection.chosen["hits"]] == [question, answered.text]
    assert selection.drop()
    assert (selection.chosen["hits"], selection.tokens) == ([], 0)
