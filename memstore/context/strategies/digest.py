"""A stretch of a conversation in few tokens: stored summaries where they cover it, then its most telling lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memstore.context.strategies.telling import Telling, is_call
from memstore.context.strategies.view import View
from memstore.context.summary_cover import cover
from memstore.context.turns import Turn
from memstore.derive.sentences import sentences
from memstore.derive.summaries.extractive import MAX_SENTENCES, choose_sentences, score_sentence, top_sentences
from memstore.derive.summaries.hierarchy import EMPTY_SUMMARY

OUTCOME, LONGEST_OUTCOME = 30, 120  # tokens, at least and at most, of an outcome in a line
CALLS = 0.5  # of a digest's tokens: what calls have in all, where each outcome is as long as the room allows
SUMMARIES = 0.5  # of a block's tokens: the other half is for what no summary says, such as what tools gave
LONGEST_LINE = 400  # characters
UNTOLD = "…"  # a block of which nothing could be told


def digest(telling: Telling, turns: Sequence[Turn], limit: int, upto: int) -> str:
    """Give the text of a stretch in at most `limit` tokens or little more; its lines are verbatim and in order.

    Calls are told by what was named up to the turn at index `upto`, as `tool_calls` tells them. "" where nothing fits.
    """
    view = telling.view
    seqs = turns[0].first_seq, turns[-1].messages[-1].seq
    inside = [one for one in view.summaries if seqs[0] <= one.from_seq and one.to_seq <= seqs[1]]
    above = sorted(cover(inside, seqs[1], int(SUMMARIES * limit)), key=lambda one: one.from_seq)
    written = [" ".join(summary.text.split()) for summary in above if summary.text != EMPTY_SUMMARY]
    room = limit - sum(view.counter.count(f"{text}\n") for text in written)
    said = "\n".join(written)
    calls = sum(map(is_call, turns))
    outcome = max(OUTCOME, min(LONGEST_OUTCOME, int(CALLS * room / max(1, calls))))
    lines = [line for line in _lines(telling, turns, outcome, upto) if line.partition(": ")[2] not in said]
    return "\n".join([*written, *best(view, lines, room)])


def _lines(telling: Telling, turns: Sequence[Turn], outcome: int, upto: int) -> Iterator[str]:
    for turn in turns:
        if is_call(turn):
            yield f"Tool: {telling.told(telling.places[turn.first_seq], upto, outcome)}"
        else:
            yield from lines_of([turn])


def lines_of(turns: Sequence[Turn]) -> list[str]:
    """Give a line for each sentence that was said."""
    lines: list[str] = []
    for first in (turn.messages[0] for turn in turns):
        if first.text:
            who = first.name or first.role.capitalize()
            spans = sentences(first.text)[:MAX_SENTENCES]
            lines += [f"{who}: {' '.join(first.text[start:stop].split())[:LONGEST_LINE]}" for start, stop in spans]
    return lines


def best(view: View, lines: Sequence[str], limit: int) -> list[str]:
    """Give the lines that together say most within `limit` tokens, in order."""
    lines = [lines[place] for place in top_sentences([line.partition(": ")[2] for line in lines])]
    if not lines or limit <= 0:
        return []
    costs = [view.counter.count(f"{line}\n") for line in lines]
    chosen = choose_sentences(lines, costs, limit, [score_sentence(line.partition(": ")[2]) for line in lines])
    return [lines[place] for place in chosen]
