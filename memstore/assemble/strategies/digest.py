"""A stretch of a conversation in few tokens: stored summaries where they cover it, then its most telling lines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memstore.assemble.cover import cover
from memstore.assemble.strategies.calls import is_call, told
from memstore.assemble.strategies.outcome import Sought
from memstore.assemble.strategies.view import View
from memstore.assemble.turns import Turn
from memstore.ingest.sentences import sentences
from memstore.ingest.summaries.lines import NOTHING
from memstore.ingest.summaries.selection import MOST, choose, keeps, most_telling
from memstore.models import Message, Role

OUTCOME = 30  # tokens of an outcome in a line
SUMMARIES = 0.5  # of a block's tokens: the other half is for what no summary says, such as what tools gave
LONGEST_LINE = 400  # characters


def digest(view: View, turns: Sequence[Turn], limit: int) -> str:
    """Give the text of a stretch in at most `limit` tokens or little more; its lines are verbatim and in order."""
    seqs = turns[0].first_seq, turns[-1].messages[-1].seq
    inside = [one for one in view.summaries if seqs[0] <= one.from_seq and one.to_seq <= seqs[1]]
    above = sorted(cover(inside, seqs[1], int(SUMMARIES * limit)), key=lambda one: one.from_seq)
    written = [" ".join(summary.text.split()) for summary in above]
    room = limit - sum(view.counter.count(f"{text}\n") for text in written)
    said = "\n".join(written)
    lines = [line for line in lines_of(view, turns) if line.partition(": ")[2] not in said]
    return "\n".join([*written, *best(view, lines, room)]) or NOTHING


def lines_of(view: View, turns: Sequence[Turn]) -> list[str]:
    """Give a line for each sentence that was said and for each call of tools."""
    lines: list[str] = []
    asked: Message | None = None
    for turn in turns:
        first = turn.messages[0]
        asked = first if first.role == Role.USER else asked
        if is_call(turn):
            lines.append(f"Tool: {told(turn, None, Sought(), OUTCOME, view.counter.count)}")
        elif first.text:
            who = first.name or first.role.capitalize()
            spans = sentences(first.text)[:MOST]
            lines += [f"{who}: {' '.join(first.text[start:stop].split())[:LONGEST_LINE]}" for start, stop in spans]
    return lines


def best(view: View, lines: Sequence[str], limit: int) -> list[str]:
    """Give the lines that together say most within `limit` tokens, in order."""
    lines = [lines[place] for place in most_telling([line.partition(": ")[2] for line in lines])]
    if not lines or limit <= 0:
        return []
    costs = [view.counter.count(f"{line}\n") for line in lines]
    alike = np.ones((len(lines), 1), dtype=np.float32)  # no model: the words decide
    chosen = choose(lines, alike, costs, limit, [keeps(line.partition(": ")[2]) for line in lines])
    return [lines[place] for place in chosen]
