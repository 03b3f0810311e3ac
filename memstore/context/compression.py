"""Between material and strategies: turns become entries of a view, and what is left out becomes decisions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from memstore.context.material import Material
from memstore.context.sections import merged
from memstore.context.strategies.view import LeftOut, Strategy, View, compress, view_of
from memstore.context.turns import Turn
from memstore.models import Decision, Fact, Reason, Section, Summary
from memstore.providers import TokenCounter

# With strategies the conversation as they leave it comes first: their trigger is a share of the room, and what they
# have told of the oldest turns would be the first to go.
WEIGHTS = (
    Section("recent", weight=0.8),
    Section("hits", weight=0.1),
    Section("facts", weight=0.05),
    Section("summaries", weight=0.05),
)


@dataclass(frozen=True, slots=True)
class Stored:
    """What strategies read: every turn in order, the question's too, and the conversation's summaries and facts."""

    turns: Sequence[Turn]
    summaries: Sequence[Summary] = ()
    facts: Sequence[Fact] = ()


def compressed(
    material: Material, stored: Stored, strategies: Sequence[Strategy], room: int, counter: TokenCounter
) -> Material:
    """Give the material with its turns compressed for `room` tokens: what system prompt and tools leave of a budget."""
    must = {turn.first_seq for turn in material.ending} | {material.question_seq}
    view = view_of(
        stored.turns,
        max(1, room),
        counter,
        keep=frozenset(seq for seq in must if seq is not None),
        summaries=stored.summaries,
        facts=stored.facts,
        relevance={hit.id: hit.score for hit in material.hits},
    )
    view = compress(view, strategies)
    return replace(
        material,
        turns=[entry for entry in reversed(view.entries) if entry.first_seq not in must],
        left_out=[*material.left_out, *_decisions(view)],
        compressed=view.steps,
        sections=merged(WEIGHTS, material.sections),
        steady=not any(getattr(one, "by_question", False) for one in strategies),
    )


def _decisions(view: View) -> Iterable[Decision]:
    """Give a decision for the turns that each strategy left out; there may be thousands of them."""
    for (strategy, reason), group in groupby(view.left_out, key=lambda one: (one.strategy, one.reason)):
        gone: list[LeftOut] = list(group)
        seqs = sorted(one.turn.first_seq for one in gone)
        tokens = sum(view.sizes[seq] for seq in seqs)
        told = f"{strategy}: {len(gone)} turns between the messages {seqs[0]} and {seqs[-1]}: {reason}"
        first, last = gone[0].turn.messages[0], seqs[-1]
        yield Decision("recent", "turns", first.id, tokens, Reason.COMPRESSED, note=told, seqs=(seqs[0], last))
