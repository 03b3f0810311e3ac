"""Layout: plan what a context may have, select from it, and render until the count is within the budget. Pure.

    plan      `plan_context`    the items, how much each section may have of the room, and whether what must be in fits
    select    `select_static`   what no question changes; it tells which summaries to read of what is older
              `select_rest`     summaries, what answers to the question, and what is left of the room
    fit       `fit`             renders, counts, and corrects the selection

Estimates decide what to try first, and `fit` what goes out: it counts the finished messages, all of them, at or under
the budget. The receipt is written from the results of the three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from memstore.context.items import (
    CAPPED_ROOM,
    FACTS,
    HITS,
    RECENT,
    SUMMARIES,
    BudgetSpec,
    Candidates,
    ContextItem,
    ItemFactory,
    Rendering,
    allowances,
    merge_sections,
)
from memstore.context.receipt import count_sections, write_receipt
from memstore.context.selection import ContextPlan, Selection, fill, select_rest, select_static, total_tokens
from memstore.errors import BudgetTooSmall
from memstore.formats import turn_messages
from memstore.models import Context, Section, Summary
from memstore.strategies.base import Turn

# Where several things are asked for: hits, then facts from other messages, which are the shortest quotations of them.
# In a small context they are worth more than most of the latest turns.
SMALL_GATHERING = (Section(RECENT, weight=0.05), Section(FACTS, weight=0.25), Section(HITS, weight=0.55, priority=1))


def plan_context(candidates: Candidates, target: BudgetSpec, summary_tokens: int = 0) -> ContextPlan:
    """Return the plan of a context; `summary_tokens` are those of the finest summaries, before any is read.

    Raises `BudgetTooSmall` where what must be in does not fit.
    """
    section_room = target.room_for_sections(candidates.system)
    sections = candidates.sections
    if candidates.asks_for_several:
        is_small = section_room < CAPPED_ROOM
        sections = merge_sections(SMALL_GATHERING if is_small else [Section(HITS, priority=1)], sections)
    limits = allowances(sections, max(0, section_room))
    factory = ItemFactory(target.counter)
    items = {section.name: factory.texts(section) for section in candidates.custom_sections} | {
        SUMMARIES: factory.summaries(candidates.summaries),
        RECENT: factory.turns(candidates.turns),
        FACTS: factory.facts(candidates.standing, candidates.facts),
        HITS: factory.hits(candidates.hits, candidates.find_antecedent),
    }
    room = target.limit - target.render(candidates.content({})).tokens
    summary_tokens = summary_tokens or sum(item.tokens for item in items[SUMMARIES])
    summary_tokens = min(summary_tokens, limits[SUMMARIES].share)
    plan = ContextPlan(candidates, target, sections, limits, items, section_room, room, summary_tokens)
    _check_required(plan)
    return plan


def _check_required(plan: ContextPlan) -> None:
    target, required = plan.target, plan.required_items()
    least = target.render(plan.candidates.content(required)).tokens
    if least > target.limit:
        raise BudgetTooSmall(least + target.reserve, target.budget, _largest_part(plan, required))


def _largest_part(plan: ContextPlan, required: Mapping[str, Sequence[ContextItem]]) -> str:
    candidates, counter, tools = plan.candidates, plan.target.counter, plan.target.tools
    count = counter.count_message
    sizes: dict[str, int] = {
        "the system prompt": counter.count(candidates.system or ""),
        "the question": count(candidates.question) if candidates.question else 0,
        "the definitions of tools": counter.count_messages([], tools) - counter.count_messages([]) if tools else 0,
        "the reserve": plan.target.reserve,
        "the tool calls that wait for an answer": sum(map(count, turn_messages(candidates.ending))),
    }
    sizes |= {f"the minimum of {name}": total_tokens(items) for name, items in required.items()}
    return max(sizes, key=lambda name: sizes[name])


def compose(plan: ContextPlan, selection: Selection, summaries: Sequence[Summary] = ()) -> Context:
    """Return the context of a plan, from its static selection and the summaries of what is older than that shows."""
    if summaries:
        read = ItemFactory(plan.target.counter).summaries(summaries)
        plan = replace(plan, items={**plan.items, SUMMARIES: [*plan.items[SUMMARIES], *read]})
        if plan.allowances[SUMMARIES].required:
            _check_required(plan)
            selection = select_static(plan)
    select_rest(selection, plan)
    rendering = fit(selection, plan)
    content, prompt = rendering.content, rendering.prompt
    turns = [turn for turn in content.turns if isinstance(turn, Turn)]
    return Context(
        prompt.messages,
        int(rendering.tokens),
        write_receipt(plan, selection, rendering),
        prompt.system,
        prompt.text,
        messages_kept=sum(len(turn.messages) for turn in turns) + (content.question_seq is not None),
    )


def fit(selection: Selection, plan: ContextPlan) -> Rendering:
    """Render and count what is selected, and correct the selection until the context is within all its limits."""

    def render() -> Rendering:
        return plan.target.render(plan.candidates.content(selection.chosen))

    rendering, corrected = render(), plan
    # Use what the estimates were too high by, or take out what they were too low by.
    for _ in range(3):
        corrected = plan.correct(selection.tokens, rendering.tokens)
        before = {section: [*chosen] for section, chosen in selection.chosen.items()}
        while selection.tokens > corrected.room and selection.drop():
            pass
        fill(selection, corrected)
        # Not its tokens: one item may have taken the place of another as long.
        if selection.chosen == before:
            break
        rendering = render()
    while rendering.tokens > plan.target.limit and selection.drop():
        rendering = render()
    while (over := _over_maximum(corrected, rendering)) and any(selection.drop(section) for section in over):
        rendering = render()
    return rendering


def _over_maximum(plan: ContextPlan, rendering: Rendering) -> list[str]:
    limited = [section.name for section in plan.candidates.sections if section.maximum is not None]
    tokens = count_sections(plan, rendering) if limited else {}
    return [name for name in limited if tokens.get(name, 0) > plan.allowances[name].maximum]
