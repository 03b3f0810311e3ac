"""Strategies that shorten turns: calls of tools, goals that are done, and the older part of a conversation. Pure.

A boundary that moved with every turn would spoil a model's cached prefix every time; one that is kept in a row would
make a context depend on when it was asked for. So the growth of the conversation is played again, turn by turn: when
the tokens pass the trigger, the boundary moves until they are down to the target, and there it stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from memstore.derive.summaries.choice import MAX_SENTENCES, choose_sentences, top_sentences
from memstore.derive.summaries.cues import score_sentence
from memstore.derive.summaries.extractive import EMPTY_SUMMARY
from memstore.derive.tool_results import Focus, call_inputs, describe_turn, find_names
from memstore.language import has_word
from memstore.language.sentences import sentences
from memstore.models import Message, Role
from memstore.store.tokenize import terms
from memstore.strategies.base import PROTECTED_TURNS, Block, ConversationView, Entry, Strategy, Turn, cover

MAX_SHORTENED_CHARS = 200


@dataclass(frozen=True, slots=True)
class Compaction:
    """Above `trigger` of the room the oldest turns become blocks of text, until `target` is reached.

    All tokens are shares of the room. The newest `middle` of these turns become a summary in `summary` of it. The facts
    from all of them have `facts`; where there are none, the oldest turns have it for their coarsest summaries or best
    lines. Without `facts` one summary stands for all of these turns.
    """

    trigger: float
    target: float
    summary: float
    facts: float = 0.0
    middle: int = 0

    def run(self, view: ConversationView, strategy: Strategy) -> ConversationView:
        """Return the view with its older part compacted, in the name of a strategy."""
        end, since = self._find_boundary(view)
        if not end:
            return view
        begin = max(0, end - self.middle) if self.facts else 0
        older, newer = view.runs(0, begin), view.runs(begin, end)
        shares = (self.facts, self.summary) if older else (0, self.summary + self.facts)
        parts = [*_share(view, older, shares[0]), *_share(view, newer, shares[1])]
        known = _facts(view, [turn for entry in view.entries[:end] for turn in entry.turns]) if self.facts else []
        calls, blocks = ToolSummaries(view), []
        upto = max((place for seq, place in calls.places.items() if seq <= since), default=0)
        for run, room in parts:
            lines: list[str] = []
            for line in known:
                tokens = view.counter.count(f"{line}\n")
                if tokens > room:
                    break
                lines.append(line)
                room -= tokens
            known = []
            if room > 0:
                lines.append(digest(calls, [turn for entry in run for turn in entry.turns], room, upto))
            blocks.append(view.block(strategy, run, "\n".join(filter(None, lines)) or "…", since))
        return view.with_blocks(blocks)

    def _find_boundary(self, view: ConversationView) -> tuple[int, int]:
        """Return the index of the first entry that stays, and the number of the message with which it became that.

        What the compacted part may take counts in full. Entries that became blocks counted whole before they did.
        Linear in the entries.
        """
        trigger, target = self.trigger * view.room, self.target * view.room
        allotted = (self.summary + self.facts) * view.room
        blocks = [(entry.since, place) for place, entry in enumerate(view.entries) if isinstance(entry, Block)]
        blocks.sort(reverse=True)
        sizes = [view.whole(entry) for entry in view.entries]
        end = since = live = 0
        for place, entry in enumerate(view.entries):
            live += sizes[place]
            while blocks and blocks[-1][0] <= entry.last_seq:
                _, shrunk = blocks.pop()
                size = view.size(view.entries[shrunk])
                if end <= shrunk <= place:
                    live -= sizes[shrunk] - size
                sizes[shrunk] = size
            if live + (allotted if end else 0) <= trigger:
                continue
            while end <= place - PROTECTED_TURNS and live + allotted > target:
                live -= 0 if view.is_protected(view.entries[end]) else sizes[end]
                end, since = end + 1, entry.last_seq
        return end, since


@dataclass(frozen=True, slots=True)
class SummaryBuffer(Strategy):
    """Above `trigger` of the room the oldest turns become one summary in `summary` of it, until `target` is reached."""

    trigger: float = 0.8
    target: float = 0.6
    summary: float = 0.2
    name: ClassVar[str] = "summary_buffer"

    def run(self, view: ConversationView) -> ConversationView:
        """Return the view with its older part summarized."""
        return Compaction(self.trigger, self.target, self.summary).run(view, self)


@dataclass(frozen=True, slots=True)
class Threshold(SummaryBuffer):
    """The same with other defaults, less often: the older half of the turns becomes one longer summary."""

    target: float = 0.5
    summary: float = 0.25
    name: ClassVar[str] = "threshold"


@dataclass(frozen=True, slots=True)
class Hierarchical(Strategy):
    """The recent whole, the middle summarized, and of all of it the facts.

    Recent turns have `recent` of the room, with a fifth more before the boundary moves.
    """

    recent: float = 0.5
    middle: int = 100
    summary: float = 0.2
    facts: float = 0.1
    name: ClassVar[str] = "hierarchical"
    by_facts: ClassVar[bool] = True

    def run(self, view: ConversationView) -> ConversationView:
        """Return the view in its three parts."""
        told = self.summary + self.facts
        trigger, target = 1.2 * self.recent + told, self.recent + told
        return Compaction(trigger, target, self.summary, self.facts, self.middle).run(view, self)


def _share(view: ConversationView, runs: Sequence[Sequence[Entry]], share: float) -> list[tuple[Sequence[Entry], int]]:
    """Return runs of entries, each with its part of a share of the room, by size."""
    sizes = [sum(map(view.whole, run)) for run in runs]
    limit = int(share * view.room)
    return [(run, limit * size // max(1, sum(sizes))) for run, size in zip(runs, sizes, strict=True)]


def _facts(view: ConversationView, turns: Sequence[Turn]) -> list[str]:
    """Return the facts that these turns are the sources of, what always holds first, then the latest."""
    ids = {message.id for turn in turns for message in turn.messages}
    facts = [fact for fact in view.facts if ids & set(fact.sources)]
    facts.sort(key=lambda fact: (fact.type == "constraint", fact.occurred_at, fact.text), reverse=True)
    return [f"- {fact.text}" for fact in facts]


def digest(calls: ToolSummaries, turns: Sequence[Turn], limit: int, upto: int) -> str:
    """Return a part of a conversation in at most `limit` tokens or little more; its lines are verbatim and in order.

    Stored summaries come first, where they cover the part. Snippets of tool calls are chosen by the names said up to
    the turn at index `upto`. Return "" where nothing fits.
    """
    view = calls.view
    first, last = turns[0].first_seq, turns[-1].last_seq
    inside = [summary for summary in view.summaries if first <= summary.from_seq and summary.to_seq <= last]
    # The other half is for what no summary says, such as what tools gave.
    above = sorted(cover(inside, last, limit // 2), key=lambda summary: summary.from_seq)
    written = [" ".join(summary.text.split()) for summary in above if summary.text != EMPTY_SUMMARY]
    room = limit - sum(view.counter.count(f"{text}\n") for text in written)
    said = "\n".join(written)
    outcome = max(30, min(120, int(0.5 * room / max(1, sum(map(is_call, turns))))))
    lines: list[str] = []
    for turn in turns:
        lines += [f"Tool: {calls.summarize(turn, upto, outcome)}"] if is_call(turn) else sentence_lines([turn])
    lines = [line for line in lines if not has_word(said, line.partition(": ")[2], ignore_case=False)]
    return "\n".join([*written, *best_lines(view, lines, room)])


def sentence_lines(turns: Sequence[Turn]) -> list[str]:
    """Return a line for each sentence that was said."""
    lines: list[str] = []
    for first in (turn.messages[0] for turn in turns):
        if first.text:
            who = first.name or first.role.capitalize()
            spans = sentences(first.text)[:MAX_SENTENCES]
            lines += [f"{who}: {' '.join(first.text[start:stop].split())[:400]}" for start, stop in spans]
    return lines


def best_lines(view: ConversationView, lines: Sequence[str], limit: int) -> list[str]:
    """Return the lines that together say most within `limit` tokens, in order."""
    # Without the speaker: the word that begins a sentence is no name.
    texts = [line.partition(": ")[2] for line in lines]
    places = top_sentences(texts)
    if not places or limit <= 0:
        return []
    lines, texts = [lines[place] for place in places], [texts[place] for place in places]
    costs = [view.counter.count(f"{line}\n") for line in lines]
    return [lines[place] for place in choose_sentences(texts, costs, limit, list(map(score_sentence, texts)))]


# Work in goals: a request that is done becomes an episode of a few lines.


@dataclass(frozen=True, slots=True)
class GoalBatch(Strategy):
    """A goal is what a user asked for, up to the final answer with no call of a tool open.

    Those that at least `older_than` goals came after become a block each: the goal, what was done, the outcome. Blocks
    side by side stand together in the context. A block has `share` of the tokens of its turns, at most 400.
    """

    older_than: int = 3
    share: float = 0.4
    name: ClassVar[str] = "goal_batch"

    def run(self, view: ConversationView) -> ConversationView:
        """Return the view with old completed goals as episodes."""
        goals = _split_goals(view)
        calls = ToolSummaries(view)
        blocks = []
        for place, goal in enumerate(goals[: max(0, len(goals) - self.older_than)]):
            turns = [turn for entry in goal for turn in entry.turns]
            if len(turns) < 2 or not _is_completed(turns) or any(view.is_protected(entry) for entry in goal):
                continue
            present = goals[place + self.older_than][0].turns[0] if self.older_than else turns[-1]
            limit = min(400, int(self.share * sum(view.whole(entry) for entry in goal)))
            text = _episode(calls, turns, calls.places[present.first_seq], limit)
            blocks.append(view.block(self, goal, text, present.last_seq))
        return view.with_blocks(blocks)


def _episode(calls: ToolSummaries, turns: Sequence[Turn], upto: int, limit: int) -> str:
    """Return the episode: a quarter of its tokens for the goal, a quarter for the outcome, the rest for the calls."""
    view = calls.view
    asked = [turn for turn in turns if turn.messages[0].role == Role.USER]
    done = [turn for turn in turns if is_call(turn)]
    said = [turn for turn in turns if turn not in asked and turn not in done]
    goal = _join(best_lines(view, sentence_lines(asked), limit // 4))
    answer = _join(best_lines(view, sentence_lines(said), limit // 4))
    room = limit - view.counter.count(goal) - view.counter.count(answer)
    lines = [f"Goal: {goal or _join(sentence_lines(asked[:1]))[:MAX_SHORTENED_CHARS]}"]
    lines += [f"Done: {calls.summarize(turn, upto, room // len(done))}" for turn in done]
    lines.append(f"Outcome: {answer or _join(sentence_lines(said[-1:]))[:MAX_SHORTENED_CHARS]}")
    return "\n".join(lines)


def _split_goals(view: ConversationView) -> list[list[Entry]]:
    """Cut the entries where a user speaks after somebody else did; those before the first are no goal."""
    goals: list[list[Entry]] = []
    previous = None
    for entry in view.entries:
        role = entry.turns[0].messages[0].role
        if role == Role.USER and previous != Role.USER:
            goals.append([])
        if goals:
            goals[-1].append(entry)
        previous = entry.turns[-1].messages[0].role
    return goals


def _is_completed(turns: Sequence[Turn]) -> bool:
    last = turns[-1].messages[-1]
    return last.role == Role.ASSISTANT and not last.tool_calls


def _join(lines: Sequence[str]) -> str:
    return " ".join(line.partition(": ")[2] for line in lines)


# Calls of tools, each in two or three sentences.


@dataclass(frozen=True, slots=True)
class ToolCalls(Strategy):
    """Each call older than `older_than` turns becomes a sentence each for tool, reason and outcome.

    An outcome has a `share` of the tokens of its result, at least `least` and at most `most`. What it keeps follows
    from the turns up to the one with which the call became old, so that it is never written again. The defaults keep
    nearly all that was asked for at less than half the tokens; 0.4 and 200 save more and lose more
    (docs/reference/measurements.md).
    """

    older_than: int = 10
    share: float = 0.6
    least: int = 40
    most: int = 300
    name: ClassVar[str] = "tool_calls"

    def run(self, view: ConversationView) -> ConversationView:
        """Return the view with old calls summarized."""
        calls = ToolSummaries(view)
        free = {entry.first_seq for entry in view.entries if isinstance(entry, Turn)} - view.protected
        blocks = []
        for place, turn in enumerate(calls.turns[: max(0, len(calls.turns) - self.older_than)]):
            if turn.first_seq in free and is_call(turn):
                old = place + self.older_than
                size = view.sizes[turn.first_seq] // max(1, len(turn.messages) - 1)
                limit = max(self.least, min(self.most, int(self.share * size)))
                text = calls.summarize(turn, old, limit)
                blocks.append(view.block(self, [turn], text, calls.turns[old].first_seq))
        return view.with_blocks(blocks)


def is_call(turn: Turn) -> bool:
    """Return whether the turn is a call of tools with its results."""
    return bool(turn.messages[0].tool_calls) and turn.messages[-1].role == Role.TOOL


class ToolSummaries:
    """Summaries of a view's tool calls, by what is sought in the results of each."""

    def __init__(self, view: ConversationView) -> None:
        self.view = view
        self.turns = [turn for entry in view.entries for turn in entry.turns]
        self.places = {turn.first_seq: place for place, turn in enumerate(self.turns)}

    @cached_property
    def _names(self) -> list[frozenset[str]]:
        return [find_names(_spoken(turn)) for turn in self.turns]

    @cached_property
    def _questions(self) -> list[Message | None]:
        questions: list[Message | None] = []
        newest: Message | None = None
        for turn in self.turns:
            questions.append(newest)
            newest = turn.messages[0] if turn.messages[0].role == Role.USER else newest
        return questions

    def summarize(self, turn: Turn, upto: int, limit: int) -> str:
        """Return the calls of a turn in words, by what was named up to the turn at `upto`, which is the present.

        `limit` are the tokens of each outcome.
        """
        place = self.places[turn.first_seq]
        question = self._questions[place]
        around = self._names[max(0, place - 6) : upto + 1]
        request = f"{question.text if question else ''} {_spoken(turn)}"
        sought = Focus(frozenset(terms(request)), frozenset().union(*around))
        return describe_turn(turn.messages[0], turn.messages[1:], sought, limit, self.view.counter.count)


def _spoken(turn: Turn) -> str:
    first = turn.messages[0]
    return f"{(first.text or '') if first.role != Role.TOOL else ''} {call_inputs(first)}"
