"""Layout: candidates selected, rendered, counted as a whole, and trimmed until the count is within the budget. Pure.

The guarantee is here: a context leaves `compose` only when the counter has counted its finished messages, all of them,
at or under the budget. Estimates only decide what to try first. Its receipt says what was considered and what became of
it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, takewhile
from typing import Any

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
    allowances,
    merge_sections,
)
from memstore.context.replay import content_hash
from memstore.context.selection import Selection, fill, required_items, select_answers, select_static, total_tokens
from memstore.errors import BudgetTooSmall
from memstore.formats import OPENAI, as_openai, memory_messages, turn_messages
from memstore.formats.parts import CustomSection, Format, PartKind, PromptContent, RenderedPrompt
from memstore.models import MAX_PREVIEW_CHARS, Context, Decision, Hit, Json, Reason, Receipt, Section, Summary
from memstore.providers import Count, TokenCounter
from memstore.strategies.base import Block, Turn

# Sections of other parts are the user's own.
SECTION_OF_PART = {
    PartKind.SYSTEM: "system",
    PartKind.STANDING_FACTS: "facts",
    PartKind.SUMMARIES: "summaries",
    PartKind.RECORD: "recent",
    PartKind.MESSAGE: "recent",
    # With the facts for this question, which are taken off again.
    PartKind.MEMORY: "hits",
    PartKind.QUESTION: "question",
}
MAX_LISTED_PER_SECTION = 24
# Where several things are asked for: hits, then facts from other messages, which are the shortest quotations of them.
# In a small context they are worth more than most of the latest turns.
GATHERING = (Section(HITS, priority=1),)
SMALL_GATHERING = (Section(RECENT, weight=0.05), Section(FACTS, weight=0.25), Section(HITS, weight=0.55, priority=1))


def compose(
    candidates: Candidates,
    budget: int,
    counter: TokenCounter,
    reserve: int = 0,
    format: Format = OPENAI,
    tools: Sequence[Json] = (),
) -> Context:
    """Return the best context of these candidates within `budget` tokens less `reserve`, or raise `BudgetTooSmall`."""
    return Layout(candidates, BudgetSpec(budget, counter, reserve, format, tools)).compose()


def room_for_sections(system: str | None, target: BudgetSpec) -> int:
    """Return the budget less reserve and system prompt, which sections have shares of. No question changes it."""
    return target.most - count_prompt(target.format.render(PromptContent(system=system)), target.counter, target.tools)


class Layout:
    """Candidates laid out for one budget: required items, and the limits and candidates of each section.

    `summary_tokens` are those of the finest summaries, where they are not among the candidates yet. Raises
    `BudgetTooSmall` where what must be in does not fit.
    """

    def __init__(self, candidates: Candidates, target: BudgetSpec, summary_tokens: int = 0) -> None:
        self.candidates, self.target = candidates, target
        sections = candidates.sections
        self.section_room = room_for_sections(candidates.system, target)
        own_sections = [section for section in sections if section.text is not None]
        self.static = [section.name for section in own_sections if section.static]
        _, bare = self._written(self._content({}))
        self.item_room = target.most - bare
        self.is_small_list = candidates.asks_for_several and self.section_room < CAPPED_ROOM
        if candidates.asks_for_several:
            sections = merge_sections(SMALL_GATHERING if self.is_small_list else GATHERING, sections)
        self.sections = sections
        self.plan = allowances(self.sections, max(0, self.section_room))
        self.factory = factory = ItemFactory(target.counter)
        self.items = {section.name: factory.texts(section) for section in own_sections} | {
            SUMMARIES: factory.summaries(candidates.summaries),
            RECENT: factory.turns(candidates.turns),
            FACTS: factory.facts(candidates.standing, candidates.facts),
            HITS: factory.hits(candidates.hits, candidates.find_antecedent),
        }
        summary_tokens = summary_tokens or sum(item.tokens for item in self.items[SUMMARIES])
        self.summary_tokens = min(summary_tokens, self.plan[SUMMARIES].share)
        self.selection = self._select_static()

    def _select_static(self) -> Selection:
        items, plan, target = self.items, self.plan, self.target
        required = required_items(items, plan)
        _, least = self._written(self._content(required))
        if least > target.most:
            raise BudgetTooSmall(least + target.reserve, target.budget, self._largest(required))
        question = self.section_room - self.item_room
        selection = select_static(items, plan, self.static, self.section_room, question, self.summary_tokens)
        selection.is_static = selection.is_static and not self.is_small_list
        return selection

    @property
    def shown_from(self) -> int:
        """The number of the first message that the recent turns show; of the one to come, where they show none."""
        newest = max((turn.first_seq for turn in self.candidates.turns), default=0)
        return int(min(self.selection.oldest, newest + 1))

    def compose(self, summaries: Sequence[Summary] = ()) -> Context:
        plan = self.plan
        self.items[SUMMARIES] += self.factory.summaries(summaries)
        if plan[SUMMARIES].required:
            self.selection = self._select_static()
        selection = self.selection
        selection.take(self.items[SUMMARIES], SUMMARIES, plan[SUMMARIES].share, self.item_room)
        select_answers(selection, self.items, plan, self.static, self.item_room)
        fill(selection, self.items, plan, self.static, self.item_room)
        self._build()
        # Use what the estimates were too high by, or take out what they were too low by.
        for _ in range(3):
            room = self._room_left(self.tokens - (self.target.most - self.item_room))
            before = {section: [*chosen] for section, chosen in selection.chosen.items()}
            while selection.tokens > room and selection.drop():
                pass
            fill(selection, self.items, self.plan, self.static, room)
            # Not its tokens: one item may have taken the place of another as long.
            if selection.chosen == before:
                break
            self._build()
        while self.tokens > self.target.most and selection.drop():
            self._build()
        while (over := self._over_maximum()) and any(selection.drop(section) for section in over):
            self._build()
        turns = [turn for turn in self.content.turns if isinstance(turn, Turn)]
        kept = sum(len(turn.messages) for turn in turns) + (self.content.question_seq is not None)
        about = (self.prompt.messages, int(self.tokens), write_receipt(self), self.prompt.system, self.prompt.text)
        return Context(*about, messages_kept=kept)

    def _room_left(self, counted: int) -> int:
        """Return the room in estimated tokens, by what the chosen items have been counted at."""
        estimated = self.selection.tokens
        if self.tokens.kind != "server" or counted <= 0:
            return self.item_room - (counted - estimated)
        # Estimates of another tokenizer's are wrong by a factor.
        rate = estimated / counted
        self.plan = allowances(self.sections, max(0, int(self.section_room * rate)))
        return int(self.item_room * rate)

    def _build(self) -> None:
        self.content = self._content(self.selection.chosen)
        self.prompt, self.tokens = self._written(self.content)

    def _over_maximum(self) -> list[str]:
        limited = [section.name for section in self.candidates.sections if section.maximum is not None]
        sections = _section_tokens(self) if limited else {}
        return [name for name in limited if sections.get(name, 0) > self.plan[name].maximum]

    def _written(self, content: PromptContent) -> tuple[RenderedPrompt, Count]:
        """The one place where what was chosen is rendered, and where what was rendered is counted."""
        prompt = self.target.format.render(content)
        return prompt, count_prompt(prompt, self.target.counter, self.target.tools)

    def _largest(self, required: Mapping[str, Sequence[ContextItem]]) -> str:
        counter, candidates, tools = self.target.counter, self.candidates, self.target.tools
        count = counter.count_message
        sizes: dict[str, int] = {
            "the system prompt": counter.count(candidates.system or ""),
            "the question": count(candidates.question) if candidates.question else 0,
            "the definitions of tools": counter.count_messages([], tools) - counter.count_messages([]) if tools else 0,
            "the reserve": self.target.reserve,
            "the tool calls that wait for an answer": sum(map(count, turn_messages(candidates.ending))),
        }
        sizes |= {f"the minimum of {name}": total_tokens(items) for name, items in required.items()}
        return max(sizes, key=lambda name: sizes[name])

    def _content(self, chosen: Mapping[str, Sequence[ContextItem]]) -> PromptContent:
        candidates = self.candidates
        content = {section: [item.content for item in items] for section, items in chosen.items()}
        texts = [section for section in candidates.sections if section.text is not None]
        own_sections = [CustomSection(section.name, content.get(section.name, [])) for section in texts]
        facts = chosen.get(FACTS, ())
        return PromptContent(
            system=candidates.system,
            summaries=content.get(SUMMARIES, []),
            turns=[*content.get(RECENT, []), *candidates.ending],
            facts=[item.content for item in facts if not item.standing],
            hits=content.get(HITS, []),
            question=candidates.question,
            question_seq=candidates.question_seq,
            static_sections=[section for section in own_sections if section.name in self.static],
            standing_facts=[item.content for item in facts if item.standing],
            custom_sections=[section for section in own_sections if section.name not in self.static],
        )


def count_prompt(prompt: RenderedPrompt, counter: TokenCounter, tools: Sequence[Json] = ()) -> Count:
    """Return the tokens of a finished context: of its text, or of its chat with all that is around the messages.

    Definitions of `tools` are sent with either.
    """
    if prompt.text is None:
        return counter.count_messages(prompt.chat, tools)
    no_messages = counter.count_messages([])
    tool_tokens = counter.count_messages([], tools) - no_messages if tools else 0
    return Count(counter.count(prompt.text) + tool_tokens, no_messages.kind)


def write_receipt(layout: Layout) -> Receipt:
    candidates, target = layout.candidates, layout.target
    listed, unlisted = _left_out(layout)
    return Receipt(
        budget=target.budget,
        reserve=target.reserve,
        tokens=int(layout.tokens),
        counter=target.counter.name,
        count=layout.tokens.kind,
        sections=_section_tokens(layout),
        included=tuple(decision_of(item) for items in layout.selection.chosen.values() for item in items),
        left_out=tuple(listed),
        unlisted={str(reason): count for reason, count in sorted(unlisted.items())},
        static_tokens=_static_tokens(layout),
        compressed=tuple(candidates.compressed),
        content_hash=content_hash(layout.prompt.sent),
    )


def decision_of(item: ContextItem, reason: Reason | None = None) -> Decision:
    content = item.content
    values: dict[str, Any]
    if isinstance(content, Hit):
        values = {"parts": content.parts, "start": content.start, "preview": content.text[:MAX_PREVIEW_CHARS]}
        values |= {"note": content.later or item.note, "others": content.later_ids}
    elif isinstance(content, Summary):
        values = {"seqs": (content.from_seq, content.to_seq), "preview": content.text[:MAX_PREVIEW_CHARS]}
    elif isinstance(content, Block):
        reason = reason or Reason.COMPRESSED
        values = {"seqs": (content.first_seq, content.last_seq), "preview": content.text[:MAX_PREVIEW_CHARS]}
    elif isinstance(content, Turn):
        first, *rest = content.messages
        values = {
            "seqs": (first.seq, content.messages[-1].seq),
            "others": tuple(message.id for message in rest),
            "preview": f"{first.name or first.role}: {(first.text or '')[:MAX_PREVIEW_CHARS]}",
        }
    else:
        values = {"preview": str(content)[:MAX_PREVIEW_CHARS]}
    about = (item.section, item.kind, item.id, item.tokens, reason, item.score)
    return Decision(*about, standing=item.standing, **{"note": item.note, **values})


def _left_out(layout: Layout) -> tuple[list[Decision], Counter[Reason]]:
    """Return the first of each section that are left out, and how many others there are by reason."""
    listed, unlisted, seen = [], Counter[Reason](), Counter[str]()
    for decision in chain(layout.candidates.left_out, _turns_left_out(layout), _items_left_out(layout)):
        seen[decision.section] += 1
        if seen[decision.section] <= MAX_LISTED_PER_SECTION:
            listed.append(decision)
        elif decision.reason is not None:
            unlisted[decision.reason] += 1
    return listed, unlisted


def _items_left_out(layout: Layout) -> Iterator[Decision]:
    selection = layout.selection
    # A fact is offered as a standing one and for the question.
    facts = {item.id for item in selection.chosen[FACTS]}
    for section, items in layout.items.items():
        for item in items if section != RECENT else ():
            if item not in selection and not (section == FACTS and item.id in facts):
                if section == FACTS:
                    facts.add(item.id)
                yield decision_of(item, selection.why_not(item))


def _turns_left_out(layout: Layout) -> Iterator[Decision]:
    """Yield the turns that are not in, of which there may be thousands, together by reason."""
    first = min((summary.from_seq for summary in layout.content.summaries), default=0)
    # From `first` to there the summaries have no gap.
    last = max((summary.to_seq for summary in layout.content.summaries), default=-1)
    by_reason: dict[Reason, list[ContextItem]] = {}
    for item in layout.items[RECENT]:
        if item not in layout.selection:
            covered = first <= item.first_seq <= last
            by_reason.setdefault(Reason.COVERED if covered else Reason.OVER_BUDGET, []).append(item)
    for reason, items in sorted(by_reason.items()):
        items.sort(key=lambda item: -item.first_seq)
        newest = items[0].content
        seqs = (int(items[-1].first_seq), newest.messages[-1].seq if isinstance(newest, Turn) else newest.last_seq)
        note = f"{len(items)} older turns, messages {seqs[0]} to {seqs[1]}"
        tokens = sum(item.tokens for item in items)
        yield Decision("recent", "turns", items[0].id, tokens, reason, note=note, seqs=seqs)


def _section_tokens(layout: Layout) -> dict[str, int]:
    content, counter, ending = layout.content, layout.target.counter, layout.candidates.ending
    own_sections = (*content.static_sections, *content.custom_sections)
    names = [*(section.name for section in own_sections), "system", "summaries", "recent", "facts", "hits", "question"]
    sections = dict.fromkeys(names, 0)
    shown = iter([section.name for section in own_sections if section.texts])
    ends = {message.id for turn in ending for message in turn.messages}
    # Others may merge messages, or be one text.
    sent = layout.prompt.sent if layout.target.format == OPENAI else map(as_openai, content.parts)
    for part, message in zip(content.parts, sent, strict=True):
        name = SECTION_OF_PART.get(part.kind) or next(shown)
        name = "question" if part.stored and part.stored.id in ends else name
        sections[name] += counter.count_message(message)
    facts = sum(map(counter.count_message, memory_messages(content.facts, ())))
    sections["facts"] += facts
    sections["hits"] = max(0, sections["hits"] - facts)
    tools = int(layout.tokens - count_prompt(layout.prompt, counter)) if layout.target.tools else 0
    left = layout.tokens - tools - sum(sections.values())
    # What is around messages may be less in another format or a model's own template: the largest sections have that.
    beyond = max(0, -left)
    for name in sorted(sections, key=lambda name: -sections[name]):
        taken = min(beyond, sections[name])
        sections[name], beyond = sections[name] - taken, beyond - taken
    return sections | ({"tools": tools} if layout.target.tools else {}) | {"overhead": max(0, left)}


def _static_tokens(layout: Layout) -> int:
    """Return the tokens before the first message that another question about the same conversation might change."""
    content, target = layout.content, layout.target
    if not layout.candidates.static or not layout.selection.is_static:
        content = PromptContent(system=content.system)
    static = target.format.render(replace(content, custom_sections=(), facts=(), hits=(), question=None))
    if layout.prompt.text is None or static.text is None:
        same = takewhile(lambda pair: pair[0] == pair[1], zip(layout.prompt.sent, static.sent, strict=False))
        return min(int(layout.tokens), sum(target.counter.count_message(message) for message, _ in same))
    lines = zip(layout.prompt.text.splitlines(keepends=True), static.text.splitlines(keepends=True), strict=False)
    return target.counter.count("".join(line for line, _ in takewhile(lambda pair: pair[0] == pair[1], lines)))
