"""Layout: candidates selected, rendered, counted as a whole, and trimmed until the count is within the budget. Pure.

The guarantee is here: a context leaves `compose` only when the counter has counted its finished messages, all of them,
at or under the budget. Estimates only decide what to try first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

from memstore.context import formats
from memstore.context.formats import OPENAI, CustomSection, Format, PromptContent, RenderedPrompt
from memstore.context.items import BudgetSpec, Candidates, ContextItem, ItemFactory
from memstore.context.receipt import BuiltContext, write_receipt
from memstore.context.sections import FACTS, HITS, RECENT, SUMMARIES, Allowance, allowances, merge_sections
from memstore.context.selection import Selection, required_items, select_items, select_static, total_tokens
from memstore.context.spare_budget import SpareBudget
from memstore.context.strategies.base import ConversationView, Strategy, Turn, compress, view_of
from memstore.errors import BudgetTooSmall
from memstore.models import Context, Decision, Fact, Json, Reason, Section, Summary
from memstore.providers import Count, TokenCounter

LONG = 0.25  # of the most that the recent turns may have: a message that is longer is cut, where that is asked for
ATTEMPTS = 3  # to use what the estimates were too high by, or to take out what they were too low by
# With strategies the conversation as they leave it comes first: their trigger is a share of the room, and what they
# have told of the oldest turns would be the first to go.
COMPRESSED_WEIGHTS = (
    Section("recent", weight=0.8),
    Section("hits", weight=0.1),
    Section("facts", weight=0.05),
    Section("summaries", weight=0.05),
)


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


@dataclass(frozen=True)
class Layout:
    """Candidates laid out for one budget: what must be in, what each section may take, and what is offered to it."""

    candidates: Candidates
    target: BudgetSpec

    @cached_property
    def base(self) -> int:
        """The tokens for everything but the system prompt: what shares are shares of. No question changes it."""
        _, system = self._written(PromptContent(system=self.candidates.system))
        return self.target.most - system

    @cached_property
    def question_tokens(self) -> int:
        """The tokens of the question and of what comes after it."""
        _, bare = self._written(self._content({}))
        return bare - (self.target.most - self.base)

    @cached_property
    def plan(self) -> dict[str, Allowance]:
        """What each section may take."""
        return allowances(self.candidates.sections, max(0, self.base))

    @cached_property
    def static(self) -> list[str]:
        """The user's own sections that stand at the start."""
        return [section.name for section in self.candidates.sections if section.steady and section.text is not None]

    @cached_property
    def factory(self) -> ItemFactory:
        """What makes items."""
        return ItemFactory(self.target.counter)

    @cached_property
    def items(self) -> dict[str, list[ContextItem]]:
        """The items of each section, in the order of preference."""
        candidates, factory, recent = self.candidates, self.factory, self.plan[RECENT]
        longest = recent.longest or int(LONG * min(recent.maximum, max(0, self.base)))
        own = [section for section in candidates.sections if section.text is not None]
        return {section.name: factory.texts(section, self.plan[section.name]) for section in own} | {
            SUMMARIES: factory.summaries(candidates.summaries),
            RECENT: factory.turns(candidates.turns, longest if recent.cut else None),
            FACTS: factory.facts(candidates.pinned, candidates.facts),
            HITS: [factory.hit(hit) for hit in candidates.hits],
        }

    def room_for_summaries(self, most: int) -> tuple[int, int, bool]:
        """Return the last message that the recent turns will not show, and how many tokens summaries may have.

        `most` are the tokens of all summaries there are, in their finest form. The last value is whether any question
        would have got the same.
        """
        tokens = min(most, self.plan[SUMMARIES].share)
        items = self.items | {SUMMARIES: [ContextItem(SUMMARIES, "room", None, tokens, None)]}
        selection = select_static(items, self.plan, self.static, self.base, self.question_tokens)
        newest = max((turn.first_seq for turn in self.candidates.turns), default=0)
        return int(min(selection.oldest - 1, newest)), tokens, selection.is_static()

    def with_summaries(self, summaries: Sequence[Summary], static: bool) -> Layout:
        """Return the layout with these summaries; what is counted stays counted."""
        candidates = replace(self.candidates, summaries=summaries, static=self.candidates.static and static)
        other = replace(self, candidates=candidates)
        kept = {name: value for name, value in vars(self).items() if name not in ("candidates", "items")}
        vars(other).update(kept | {"items": self.items | {SUMMARIES: self.factory.summaries(summaries)}})
        return other

    def compose(self) -> Context:
        """Return the context, or raise `BudgetTooSmall`."""
        self._check(required_items(self.items, self.plan))
        selection = select_items(self.items, self.plan, self.static, self.base, self.question_tokens)
        built = self._filled(selection)
        while built.tokens > self.target.most and selection.drop():
            built = self._built(selection)
        while (over := self._over_maximum(built)) and any(selection.drop(section) for section in over):
            built = self._built(selection)
        prompt = built.prompt
        return Context(prompt.messages, int(built.tokens), write_receipt(built), prompt.system, prompt.text)

    def _filled(self, selection: Selection) -> BuiltContext:
        """Use what is left, and write it down; then use what the estimates were too high by, and the like."""
        spare = SpareBudget(selection, dict(self.items), self.plan, self.static, self.factory)
        room = self.base - self.question_tokens
        spare.fill(room)
        built = self._built(selection)
        for _ in range(ATTEMPTS):
            error = built.tokens - (self.target.most - room) - selection.tokens
            if not error:
                break
            before = {section: [*chosen] for section, chosen in selection.chosen.items()}
            while selection.tokens > room - error and selection.drop():
                pass
            spare.fill(room - error)
            if selection.chosen == before:  # not its tokens: one item may have taken the place of another as long
                break
            built = self._built(selection)
        return built

    def _over_maximum(self, built: BuiltContext) -> list[str]:
        limited = [section.name for section in self.candidates.sections if section.maximum is not None]
        return [name for name in limited if built.sections.get(name, 0) > self.plan[name].maximum]

    def _written(self, content: PromptContent) -> tuple[RenderedPrompt, Count]:
        """The one place where what was chosen is rendered, and where what was rendered is counted."""
        prompt = self.target.format.render(content)
        return prompt, formats.count_prompt(prompt, self.target.counter, self.target.tools)

    def _check(self, required: Mapping[str, Sequence[ContextItem]]) -> None:
        """Raise `BudgetTooSmall` where what must be in does not fit."""
        _, least = self._written(self._content(required))
        if least > self.target.most:
            raise BudgetTooSmall(least + self.target.reserve, self.target.budget, self._largest(required))

    def _largest(self, required: Mapping[str, Sequence[ContextItem]]) -> str:
        """Name the largest part of what must be in or kept free."""
        counter, candidates, tools = self.target.counter, self.candidates, self.target.tools
        count = counter.count_message
        sizes: dict[str, int] = {
            "the system prompt": counter.count(candidates.system or ""),
            "the question": count(candidates.question) if candidates.question else 0,
            "the definitions of tools": counter.count_messages([], tools) - counter.count_messages([]) if tools else 0,
            "the reserve": self.target.reserve,
            "the tool calls that wait for an answer": sum(map(count, formats.turn_messages(candidates.ending))),
        }
        sizes |= {f"the minimum of {name}": total_tokens(items) for name, items in required.items()}
        return max(sizes, key=lambda name: sizes[name])

    def _content(self, chosen: Mapping[str, Sequence[ContextItem]]) -> PromptContent:
        candidates = self.candidates
        content = {section: [item.content for item in items] for section, items in chosen.items()}
        own = [
            CustomSection(section.name, content.get(section.name, []))
            for section in candidates.sections
            if section.text is not None
        ]
        facts = chosen.get(FACTS, ())
        return PromptContent(
            system=candidates.system,
            summaries=content.get(SUMMARIES, []),
            turns=[*content.get(RECENT, []), *candidates.ending],
            facts=[item.content for item in facts if not item.pinned],
            hits=content.get(HITS, []),
            question=candidates.question,
            question_seq=candidates.question_seq,
            static_sections=[section for section in own if section.name in self.static],
            pinned_facts=[item.content for item in facts if item.pinned],
            custom_sections=[section for section in own if section.name not in self.static],
        )

    def _built(self, selection: Selection) -> BuiltContext:
        content = self._content(selection.chosen)
        prompt, tokens = self._written(content)
        return BuiltContext(self.candidates, self.target, self.items, selection, content, prompt, tokens)


def compress_turns(
    candidates: Candidates,
    strategies: Sequence[Strategy],
    turns: Sequence[Turn],
    room: int,
    counter: TokenCounter,
    summaries: Sequence[Summary] = (),
    facts: Sequence[Fact] = (),
) -> Candidates:
    """Return the candidates with their turns compressed for `room` tokens.

    Strategies read every turn in order, the question's too, and the conversation's summaries and facts.
    """
    must = {turn.first_seq for turn in candidates.ending} | {candidates.question_seq}
    view = view_of(
        turns,
        max(1, room),
        counter,
        keep=frozenset(seq for seq in must if seq is not None),
        summaries=summaries,
        facts=facts,
        relevance={hit.id: hit.score for hit in candidates.hits},
    )
    view = compress(view, strategies)
    return replace(
        candidates,
        turns=[entry for entry in reversed(view.entries) if entry.first_seq not in must],
        left_out=[*candidates.left_out, *_dropped_turns(view)],
        compressed=view.steps,
        sections=merge_sections(COMPRESSED_WEIGHTS, candidates.sections),
        static=not any(getattr(strategy, "by_question", False) for strategy in strategies),
    )


def _dropped_turns(view: ConversationView) -> Iterable[Decision]:
    """Yield a decision for the turns that each strategy left out; there may be thousands of them."""
    for (strategy, reason), group in groupby(view.dropped, key=lambda one: (one.strategy, one.reason)):
        turns = [one.turn for one in group]
        seqs = sorted(turn.first_seq for turn in turns)
        tokens = sum(view.sizes[seq] for seq in seqs)
        note = f"{strategy}: {len(turns)} turns between the messages {seqs[0]} and {seqs[-1]}: {reason}"
        first = turns[0].messages[0]
        yield Decision("recent", "turns", first.id, tokens, Reason.COMPRESSED, note=note, seqs=(seqs[0], seqs[-1]))
