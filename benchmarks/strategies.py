#!/usr/bin/env python3
"""Fewer tokens at what loss: strategies on sessions of over 50,000 tokens with many tools, by evidence recall.

    benchmarks/strategies.py [--seeds 21 22 23] [--curve] [--json FILE]

A question's evidence is a string; it is recalled where it stands in the context, verbatim and as a whole word. No
retrieval takes part but in `semantic`, whose questions find turns by the words that they share. The first table has no
budget, so that only what a strategy does by itself counts; the second has contexts composed at equal budgets. With
`--curve` there is one table alone: what `tool_calls` saves and keeps, by its options. Seeds 1 and 2 and 31 to 36 were
used while the rules were written, 11 to 13 and 31 to 36 to choose the defaults; those asked now are none of them.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import log
from pathlib import Path
from statistics import mean
from time import perf_counter
from uuid import UUID

sys.path.insert(0, str(Path(__file__).parent))

from report import Cell, Table, reported
from toolsession import Asked, Chat, Session, drawn

from memstore.context.builder import compress_turns
from memstore.context.items import BudgetSpec, Candidates
from memstore.context.layout import compose, plan_context
from memstore.context.selection import select_static
from memstore.models import Hit, Message, Tier
from memstore.providers import load_counter
from memstore.store.tokenize import terms
from memstore.strategies import get_strategies
from memstore.strategies.base import Strategy, Turn, split_turns

COUNTER = load_counter("tiktoken:o200k_base")
START = datetime(2024, 1, 1, tzinfo=UTC)
UNLIMITED = 10**8
BUDGETS = (8_000, 16_000, 32_000)
SHARES, MOSTS = (0.25, 0.4, 0.6, 0.8), (100, 200, 300, 400, 500)
KINDS = ("user", "said", "argument", "result", "aside")
ALONE = (
    [], ["tool_calls"], [{"strategy": "tool_calls", "share": 0.25, "most": 80}],
    [{"strategy": "tool_calls", "share": 0.4, "most": 200}], ["goal_batch"],
    ["tool_calls", "goal_batch"], ["sliding_window"],
)  # fmt: skip
AT_BUDGETS = (
    [], ["tool_calls"], ["goal_batch"], ["summary_buffer"], ["threshold"], ["hierarchical"], ["sliding_window"],
    ["tool_calls", "summary_buffer"], ["tool_calls", "threshold"], ["tool_calls", "hierarchical"],
    ["goal_batch", "summary_buffer"],
)  # fmt: skip


def stored(chats: Sequence[Chat]) -> list[Turn]:
    """Return the turns of a session as the store gives them."""
    columns = {"user_id": UUID(int=1), "conversation_id": UUID(int=2), "name": None, "parts": None, "tags": []}
    messages = [
        Message.model_construct(
            **columns,
            seq=seq,
            id=UUID(int=seq),
            role=chat["role"],
            text=chat["content"],
            tool_calls=chat.get("tool_calls"),
            tool_call_id=chat.get("tool_call_id"),
            tokens=COUNTER.count_message(chat) - 4,
            counter=COUNTER.name,
            occurred_at=START + timedelta(minutes=seq),
        )
        for seq, chat in enumerate(chats, 1)
    ]
    return split_turns(messages)[0]


def context(
    every: Sequence[Turn], chosen: Sequence[Strategy], budget: int, hits: Sequence[Hit] = ()
) -> tuple[int, str]:
    """Return the tokens of a context of these turns and all of its text, arguments of calls unescaped."""
    material = Candidates(turns=every[::-1], hits=hits)
    if chosen:
        material = compress_turns(material, chosen, every, budget, COUNTER)
    plan = plan_context(replace(material, hits=()), BudgetSpec(budget, COUNTER))
    made = compose(plan, select_static(plan))
    parts = []
    for message in made.messages:
        parts.append(str(message["content"]))
        for call in message.get("tool_calls", []):
            parts.append(call["function"]["arguments"].replace('\\"', '"').replace("\\n", "\n"))
    return int(made.tokens), "\n".join(parts)


def recalled(text: str, asked: Sequence[Asked]) -> dict[str, float]:
    """Return the share of the evidence that stands in a text, by kind and in all."""
    found: dict[str, list[bool]] = defaultdict(list)
    for one in asked:
        there = re.search(rf"(?<!\w){re.escape(one.evidence)}(?!\w)", text) is not None
        found[one.where].append(there)
        found["all"].append(there)
    return {kind: mean(values) for kind, values in found.items()}


def answering(every: Sequence[Turn], question: str) -> list[Hit]:
    """Return the messages that share words with a question, rare words counting more, as hits."""
    bags = {message.id: terms(message.text or "").keys() for turn in every for message in turn.messages}
    weights = {word: log(len(bags) / (1 + sum(word in bag for bag in bags.values()))) for word in terms(question)}
    scores = {one: sum(weights[word] for word in weights if word in bag) for one, bag in bags.items()}
    best = sorted(scores, key=lambda one: -scores[one])[:80]
    return [Hit(Tier.MESSAGES, one, "", scores[one], {}, (one,), START) for one in best if scores[one] > 0]


def told(given: Sequence[object]) -> str:
    return (
        " + ".join(
            one if isinstance(one, str) else f"{one['strategy']} ({one['share']:.0%}, {one['most']})"  # type: ignore[index]
            for one in given
        )
        or "none"
    )


def percent(values: Sequence[Mapping[str, float]], kind: str) -> float:
    return round(100 * float(mean(value[kind] for value in values)), 1)


def without_budget(sessions: Sequence[tuple[Session, list[Turn]]]) -> Table:
    rows: list[list[Cell]] = []
    whole = 0.0
    for given in ALONE:
        begun = perf_counter()
        made = [context(every, get_strategies(given), UNLIMITED) for _, every in sessions]
        spent = (perf_counter() - begun) / len(sessions)
        tokens = mean(size for size, _ in made)
        whole = whole or tokens
        shares = [recalled(text, session.asked) for (session, _), (_, text) in zip(sessions, made, strict=True)]
        figures = [percent(shares, kind) for kind in (*KINDS, "all")]
        rows.append([told(given), round(tokens), round(100 * (1 - tokens / whole), 1), round(spent, 2), *figures])
    columns = ("", "tokens", "fewer %", "seconds", *KINDS, "all")
    return Table("whole", f"{counted(sessions)}, no budget", columns, rows)


def curve(sessions: Sequence[tuple[Session, list[Turn]]]) -> Table:
    rows: list[list[Cell]] = []
    whole = mean(context(every, (), UNLIMITED)[0] for _, every in sessions)
    for share in SHARES:
        for most in MOSTS:
            given = [{"strategy": "tool_calls", "share": share, "most": most}]
            made = [context(every, get_strategies(given), UNLIMITED) for _, every in sessions]
            shares = [recalled(text, session.asked) for (session, _), (_, text) in zip(sessions, made, strict=True)]
            figures = [percent(shares, kind) for kind in (*KINDS, "all")]
            rows.append([told(given), round(100 * (1 - mean(size for size, _ in made) / whole), 1), *figures])
    return Table("curve", f"{counted(sessions)}, no budget", ("", "fewer %", *KINDS, "all"), rows)


def at_budgets(sessions: Sequence[tuple[Session, list[Turn]]]) -> Table:
    rows: list[list[Cell]] = []
    for given in AT_BUDGETS:
        cells: list[Cell] = []
        for budget in BUDGETS:
            made = [context(every, get_strategies(given), budget) for _, every in sessions]
            shares = [recalled(text, session.asked) for (session, _), (_, text) in zip(sessions, made, strict=True)]
            cells += [percent(shares, "all"), round(mean(size for size, _ in made))]
        rows.append([told(given), *cells])
    session, every = sessions[0]
    for given in (["semantic"], ["tool_calls", "semantic"]):
        cells = []
        for budget in BUDGETS:
            asked = session.asked[::7]
            made = [context(every, get_strategies(given), budget, answering(every, one.question)) for one in asked]
            shares = [recalled(text, [one]) for one, (_, text) in zip(asked, made, strict=True)]
            cells += [percent(shares, "all"), round(mean(size for size, _ in made))]
        rows.append([told(given), *cells])
    columns = [name for budget in BUDGETS for name in (f"@{budget:,}", "tokens")]
    return Table("budgets", "Evidence recall in percent, and tokens used, at budgets", ("", *columns), rows)


def counted(sessions: Sequence[tuple[Session, list[Turn]]]) -> str:
    """Return how many sessions there are, and questions on them."""
    return f"{len(sessions)} sessions, {sum(len(session.asked) for session, _ in sessions)} questions"


def main() -> int:
    """Draw the sessions, compress, ask."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[21, 22, 23])
    parser.add_argument("--messages", type=int, default=250, help="the least of a session; 250 have 60,000 tokens")
    parser.add_argument("--curve", action="store_true", help="tool_calls alone, by its options")
    parser.add_argument("--json", type=Path, help="write the figures")
    options = parser.parse_args()
    sessions = [(session, stored(session.messages)) for session in (drawn(n, options.messages) for n in options.seeds)]
    parts = [curve] if options.curve else [without_budget, at_budgets]
    reported((part(sessions) for part in parts), options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
