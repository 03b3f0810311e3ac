"""The parts of packing: the window that moves in steps, what is said already, what is left."""

from __future__ import annotations

from hypothesis import given, strategies as st

from memstore.context.dedupe import SaidIndex, TextFingerprint
from memstore.context.formats import OPENAI
from memstore.context.formats.parts import PromptContent, RenderedPrompt
from memstore.context.items import Candidates, truncate
from memstore.context.layout import compose
from memstore.context.selection import MOST, recent_window
from memstore.context.strategies.base import split_turns
from memstore.models import Hit, Reason, Section, Tier
from memstore.testing import WordCounter
from tests.unit.strategies import START, UUID, message


@given(st.lists(st.integers(1, 90), min_size=1, max_size=60), st.integers(0, 900))
def test_a_window_fits_and_is_not_much_shorter_than_it_may_be(tokens: list[int], room: int) -> None:
    starts = list(range(len(tokens), 0, -1))
    count, most = recent_window(starts, tokens, room), recent_window(starts, tokens, room, steps=False)
    assert sum(tokens[:count]) <= room
    assert sum(tokens[:count]) >= sum(tokens[:most]) - MOST * room
    assert (count == len(tokens)) == (sum(tokens) <= room)


def test_a_window_begins_at_the_same_message_for_many_turns() -> None:
    begins = []
    for newest in range(200, 400, 2):
        starts = list(range(newest, 0, -1))
        count = recent_window(starts, [35 + start % 7 for start in starts], 6000)
        begins.append(starts[count - 1])
    assert begins == sorted(begins)
    assert len(set(begins)) <= 100 / 3


def test_what_is_repeated_quoted_or_taken_over_is_said_already() -> None:
    said = SaidIndex()
    said.add(TextFingerprint("We fly to Lisbon on Friday, at nine. The hotel is booked for three nights."))
    assert said.says(TextFingerprint("we fly to lisbon on friday at nine"))
    assert said.says(TextFingerprint("The hotel is booked, for three nights!"))
    assert not said.says(TextFingerprint("We fly to Porto on Friday, at nine in the evening"))
    assert not said.says(TextFingerprint("We fly to"))  # too short to tell
    said.add(TextFingerprint("Ann is allergic to peanuts"), [UUID(int=1)])
    assert said.says(TextFingerprint("I'm allergic to peanuts."), UUID(int=1))
    assert not said.says(TextFingerprint("I'm allergic to peanuts."), UUID(int=2))
    assert not said.says(TextFingerprint("I'm allergic to peanuts, and my flight leaves on Friday."), UUID(int=1))


def test_case_and_marks_of_any_script_are_no_difference() -> None:
    said = SaidIndex()
    said.add(TextFingerprint("„Wir fliegen am Freitag nach München“ – sagte Zoë…"))
    assert said.says(TextFingerprint("wir fliegen am freitag nach MÜNCHEN, sagte zoë"))
    assert not said.says(TextFingerprint("wir fliegen am freitag nach Munchen, sagte zoë"))


def test_what_a_summary_tells_line_by_line_is_said_by_the_messages_and_the_other_way_round() -> None:
    told = (
        "7 May 2023:\nAnn: We fly to Lisbon on Friday, at nine.\n  The hotel is booked (9 May 2023) for three nights.\n"
        "Bob: I shall bring the maps along."
    )
    messages = [
        "We fly to Lisbon on Friday, at nine. The hotel is booked for three nights.",
        "I shall bring the maps along.",
    ]
    said = SaidIndex()
    said.add(TextFingerprint(messages[0]))
    assert not said.says(TextFingerprint(told)), "what Bob says is nowhere else"
    said.add(TextFingerprint(messages[1]))
    assert said.says(TextFingerprint(told))
    summary = SaidIndex()
    summary.add(
        TextFingerprint(
            told.replace(" (9 May 2023)", "").replace("\n  The", "\nBob: Lovely that we go there.\nAnn: The")
        )
    )
    assert all(summary.says(TextFingerprint(one)) for one in messages)
    assert not summary.says(TextFingerprint("We fly to Lisbon on Friday, at nine. No, not by ship."))


def test_a_summary_and_the_messages_under_it_are_not_both_among_the_hits() -> None:
    said = [hit(n, f"We went to town number {n} by train, and it took {n * n} hours.") for n in range(11, 15)]
    lines = "\n".join(f"Ann: {one.text}" for one in said)
    told = Hit(Tier.SUMMARIES, UUID(int=99), f"1 January 2024:\n{lines}", 0.5, {}, (), START, UUID(int=2))
    for hits, wanted in (([told, *said], [told]), ([*said, told], said)):
        receipt = compose(Candidates(question={"role": "user", "content": "?"}, hits=hits), 400, WordCounter()).receipt
        assert [one.id for one in receipt.included] == [one.id for one in wanted]
        assert {one.reason for one in receipt.left_out} == {Reason.DUPLICATE}


def test_a_short_text_is_said_once_but_where_it_may_be_an_answer() -> None:
    talk = ["Shall I book the ferry?", "Great, thanks!", "Corfu was hot.", "Great, thanks.", "great thanks", "Thanks!"]
    hits = [hit(2 * n, text) for n, text in enumerate(talk, 1)]
    answer = hit(13, "great, thanks")  # right behind the last of them
    made = compose(Candidates(question={"role": "user", "content": "?"}, hits=[*hits, answer]), 400, WordCounter())
    assert [one.id.int for one in made.receipt.included if one.id] == [2, 4, 6, 12, 13]
    assert {one.id.int: one.reason for one in made.receipt.left_out if one.id} == dict.fromkeys(
        (8, 10), Reason.DUPLICATE
    )


def test_what_was_taken_out_again_is_not_said() -> None:
    said = SaidIndex()
    said.add(TextFingerprint("We fly to Lisbon on Friday, at nine."))
    said.add(TextFingerprint("Ann is allergic to peanuts"), [UUID(int=1)])
    assert said.says(TextFingerprint("we fly to lisbon on friday"))
    said.remove(TextFingerprint("We fly to Lisbon on Friday, at nine."))
    said.remove(TextFingerprint("Ann is allergic to peanuts"), [UUID(int=1)])
    assert not said.says(TextFingerprint("we fly to lisbon on friday"))
    assert not said.says(TextFingerprint("I'm allergic to peanuts."), UUID(int=1))
    said.add(TextFingerprint("Thanks!"))
    assert said.says(TextFingerprint("thanks"))
    said.remove(TextFingerprint("Thanks!"))
    assert not said.says(TextFingerprint("thanks"))


def test_a_reason_is_true_of_what_is_in_at_last() -> None:
    """A format may take more than was expected: then hits are taken out again after others were refused."""
    twice = [hit(n, f"we spoke of the weather in town number {n // 2} and of {n // 2} trains") for n in range(10, 60)]
    given = Candidates(question={"role": "user", "content": "?"}, hits=twice)
    for budget in range(80, 300, 7):
        made = compose(given, budget, WordCounter(), format=Wordy())
        for one in made.receipt.left_out:
            if one.reason == Reason.DUPLICATE:
                assert one.preview in str(made.messages)


class Wordy:
    """OpenAI's format with more words than are expected."""

    name = "wordy"

    def render(self, content: PromptContent) -> RenderedPrompt:
        more = {"role": "system", "content": "please " * 3 * len(content.hits)}
        return RenderedPrompt([*OPENAI.render(content).messages, *([more] if content.hits else [])])


def hit(number: int, text: str) -> Hit:
    return Hit(Tier.MESSAGES, UUID(int=number), text, 1.0 / number, {}, (), START, UUID(int=2), number, speaker="Ann")


def test_what_stands_beside_a_hit_comes_before_what_is_merely_newer() -> None:
    said = [message(n, "user", f"line {n} tells of {n * n} things and of {n * 7}") for n in range(1, 60)]
    found, _ = split_turns(said)
    far = Hit(Tier.MESSAGES, said[9].id, said[9].text or "", 1.0, {}, (), START, UUID(int=2), 10, speaker="Ann")
    given = Candidates(
        question={"role": "user", "content": "?"},
        turns=found[::-1],
        hits=[far],
        sections=[Section("recent", maximum=0.3)],
    )
    lines = [one.id for one in compose(given, 300, WordCounter()).receipt.included if one.section == "hits"]
    assert lines[:3] == [said[9].id, said[10].id, said[8].id]
    assert lines[3:], "the newest after them"


def fact(number: int, text: str) -> Hit:
    return Hit(Tier.FACTS, UUID(int=number), text, 1.0, {}, (), START)


ALWAYS = [fact(1, "Ann is allergic to shellfish."), fact(2, "Ann eats no meat."), fact(3, "Ann wants short answers.")]
TALK = [hit(n, f"we spoke of the weather in town number {n} and of {n * n} trains") for n in range(10, 60)]


def test_no_filler_is_worth_a_standing_fact() -> None:
    """The fence of standing facts has as many tokens as three of them, and the parts of a small room are small."""
    calendar = Section("calendar", text=["At eight: Bob, about the trains.", "At nine: the dentist, with the car."])
    given = Candidates(question={"role": "user", "content": "?"}, pinned=ALWAYS, hits=TALK, sections=[calendar])
    inside: set[UUID | None] = set()
    for budget in range(60, 240, 5):
        receipt = compose(given, budget, WordCounter()).receipt
        assert inside <= {one.id for one in receipt.included}, "and more room never drops one"
        inside = {one.id for one in receipt.included if one.pinned}
        assert inside or receipt.sections["hits"] == 0
    assert inside == {one.id for one in ALWAYS}


def test_a_beginning_ends_with_a_sentence_or_else_with_a_word() -> None:
    text = "Ann sails. She has a boat that is old and blue, and she likes it."
    assert truncate(text, 6, WordCounter()) == "Ann sails. She has a […]"
    assert truncate(text, 3, WordCounter()) == "Ann sails. […]"
    assert truncate("日本語", 0, WordCounter()) is None


class Reading(WordCounter):
    """Notes the longest text that it was given."""

    longest = 0

    def count(self, text: str) -> int:
        self.longest = max(self.longest, len(text))
        return super().count(text)


def test_of_a_very_long_text_only_the_beginning_is_read() -> None:
    counter = Reading()
    found = truncate("Ann sails on the lake. " * 100_000, 40, counter)
    assert found is not None
    assert found.startswith("Ann sails on the lake. Ann")
    assert 28 <= WordCounter().count(found) <= 40
    assert counter.longest < 2_000
    said = SaidIndex()
    said.add(TextFingerprint("Ann sails on the lake."))
    long = TextFingerprint("Ann sails on the lake. " * 100_000)
    assert not said.says(long)
    assert "words" not in vars(long)
    assert said.says(TextFingerprint("Ann sails on the lake. " * 10))
