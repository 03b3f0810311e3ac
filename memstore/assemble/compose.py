"""Composing: packed, rendered, counted as a whole, and trimmed until the count is within the budget. Pure.

The guarantee is here: a context leaves `compose` only when the counter has counted its finished messages, all of them,
at or under the budget. Estimates only decide what to try first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memstore import fences
from memstore.assemble import render
from memstore.assemble.pack import MEMORY, SHARES, Packing, Piece, pack
from memstore.assemble.receipt import Composed, receipt_of
from memstore.assemble.render import Chosen
from memstore.assemble.strategies.view import FENCE, Block, Entry
from memstore.assemble.turns import Turn
from memstore.errors import BudgetTooSmall
from memstore.models import Compression, Context, Decision, Hit, Json, Reason, Summary
from memstore.providers import TokenCounter

ATTEMPTS = 4  # rounds of correcting the estimates: fences cost more, days that are shared cost less


@dataclass(frozen=True, slots=True)
class Material:
    """What a context may be made of, each in the order of preference; recent turns the newest first.

    Turns may be blocks that strategies made of them, and `compressed` is what those did; `shares` are packing's.
    Turns are `steady` where another question would have made the same of them.
    `question` is the message to be answered, with its number where it is one of the conversation's; `ending` are the
    turns after it that must be there too: results of tools that the model waits for. `left_out` are decisions taken,
    `unlisted` how many candidates were looked at and are not offered, by reason.
    """

    system: str | None = None
    question: Json | None = None
    question_seq: int | None = None
    ending: Sequence[Turn] = ()
    turns: Sequence[Entry] = ()
    summaries: Sequence[Summary] = ()
    facts: Sequence[Hit] = ()
    hits: Sequence[Hit] = ()
    left_out: Sequence[Decision] = ()
    compressed: Sequence[Compression] = ()
    shares: Mapping[str, float] = field(default_factory=lambda: SHARES)
    steady: bool = True
    unlisted: Mapping[Reason, int] = field(default_factory=dict)


def compose(material: Material, budget: int, counter: TokenCounter, reserve: int = 0) -> Context:
    """Give the best context of this material within `budget` tokens less `reserve`, or raise `BudgetTooSmall`."""
    whole, budget = budget, budget - reserve
    least = counter.count_messages(render.render(_chosen(material, Packing())))
    if least > budget:
        raise BudgetTooSmall(least + reserve, whole, _largest(material, counter))
    offers = _offers(material, counter, budget)
    base = budget - counter.count_messages(render.before_question(Chosen(system=material.system)))
    packing, messages, tokens = _filled(material, offers, budget, least, base, counter)
    while tokens > budget:
        packing.drop()
        messages = render.render(_chosen(material, packing))
        tokens = counter.count_messages(messages)
    made = Composed(
        chosen=_chosen(material, packing),
        messages=messages,
        tokens=tokens,
        offers=offers,
        packing=packing,
        budget=whole,
        reserve=reserve,
        ending=material.ending,
        left_out=material.left_out,
        compressed=material.compressed,
        steady=material.steady,
        unlisted=material.unlisted,
    )
    return Context(messages, tokens, receipt_of(made, counter))


def _filled(
    material: Material, offers: Mapping[str, Sequence[Piece]], budget: int, least: int, base: int, counter: TokenCounter
) -> tuple[Packing, list[Json], int]:
    """Pack, and pack again with what the count shows of the estimates; the fullest that fits, else the first."""
    room, fences = budget - least, _fences(counter)
    best: tuple[Packing, list[Json], int] | None = None
    for _ in range(ATTEMPTS):
        packing = pack(offers, fences, room, base, material.shares)
        messages = render.render(_chosen(material, packing))
        tokens = counter.count_messages(messages)
        if best is None or best[2] > budget or best[2] < tokens <= budget:
            best = packing, messages, tokens
        error = tokens - least - packing.tokens
        if room == budget - least - error:
            break
        room = budget - least - error
    assert best is not None
    return best


def _chosen(material: Material, packing: Packing) -> Chosen:
    content = {section: [piece.content for piece in pieces] for section, pieces in packing.chosen.items()}
    return Chosen(
        system=material.system,
        summaries=content["summaries"],
        turns=[*content["recent"], *material.ending],
        facts=content["facts"],
        hits=content["hits"],
        question=material.question,
        question_seq=material.question_seq,
    )


def _offers(material: Material, counter: TokenCounter, budget: int) -> dict[str, list[Piece]]:
    """Give the pieces with what each is expected to add."""
    summaries = [
        Piece("summaries", "summary", one.id, _line(render.summary_lines(one), counter), one, first_seq=one.from_seq)
        for one in material.summaries
    ]
    turns = _turns(material.turns, counter, budget)
    facts = [
        Piece("facts", "fact", one.id, _line(render.fact_line(one), counter), one, one.score) for one in material.facts
    ]
    hits = [Piece("hits", one.tier, one.id, _hit_tokens(one, counter), one, one.score) for one in material.hits]
    return {"summaries": summaries, "recent": turns, "facts": facts, "hits": hits}


def _fences(counter: TokenCounter) -> dict[str, int]:
    """Give what stands around the pieces of the sections that are blocks of text."""
    summaries = {"role": "system", "content": f"{fences.SUMMARIES_HEAD}\n{fences.SUMMARIES_FOOT}"}
    memory = {"role": "system", "content": f"{fences.MEMORY_HEAD}\n{fences.MEMORY_FOOT}"}
    return {
        "summaries": counter.count_message(summaries),
        MEMORY: counter.count_message(memory),
        "facts": _line(render.FACTS_HEAD, counter),
        "hits": _line(render.HITS_HEAD, counter),
    }


def _turns(turns: Sequence[Entry], counter: TokenCounter, budget: int) -> list[Piece]:
    """Give recent turns as pieces. Those that cannot fit any more are not counted again: what is stored will do."""
    pieces: list[Piece] = []
    used = 0
    for turn in turns:
        if isinstance(turn, Block):
            tokens = FENCE + _line(render.record_lines(turn), counter)
            used += tokens
            pieces.append(
                Piece("recent", "block", turn.messages[0].id, tokens, turn, note=_took(turn), first_seq=turn.first_seq)
            )
            continue
        stored = sum(message.tokens for message in turn.messages)
        known = all(message.counter == counter.name for message in turn.messages)
        if known and (used > budget or stored > budget):
            tokens = stored
        else:
            tokens = sum(counter.count_message(message.as_chat()) for message in turn.messages)
        used += tokens
        shows = frozenset(message.id for message in turn.messages)
        pieces.append(Piece("recent", "turn", turn.messages[0].id, tokens, turn, shows=shows, first_seq=turn.first_seq))
    return pieces


def _took(block: Block) -> str:
    return f"{block.strategy}: messages {block.first_seq} to {block.last_seq}"


def _hit_tokens(hit: Hit, counter: TokenCounter) -> int:
    return sum(_line(line, counter) for line in render.hit_lines([hit]))


def _line(line: str, counter: TokenCounter) -> int:
    return counter.count(f"{line}\n")


def _largest(material: Material, counter: TokenCounter) -> str:
    sizes = {
        "the system prompt": counter.count(material.system or ""),
        "the question": counter.count_message(material.question) if material.question else 0,
        "the tool calls that wait for an answer": sum(map(counter.count_message, render.spoken(material.ending))),
    }
    return max(sizes, key=lambda name: sizes[name])
