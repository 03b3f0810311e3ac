"""Composing: packed, rendered, counted as a whole, and trimmed until the count is within the budget. Pure.

The guarantee is here: a context leaves `compose` only when the counter has counted its finished messages, all of them,
at or under the budget. Estimates only decide what to try first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from memstore.context import formats as render
from memstore.context.formats import OPENAI, CustomSection, Format, PromptContent, RenderedPrompt
from memstore.context.material import Material, Target
from memstore.context.offers import Offering
from memstore.context.pack import Packing, Piece, minimums, pack, steady_part, together
from memstore.context.receipt import Composed, receipt_of
from memstore.context.sections import FACTS, HITS, RECENT, SUMMARIES, Allowance, allowances
from memstore.context.spare_budget import SpareBudget, uncovered_first
from memstore.errors import BudgetTooSmall
from memstore.models import Context, Json, Summary
from memstore.providers import Count, TokenCounter

LONG = 0.25  # of the most that the recent turns may have: a message that is longer is cut, where that is asked for
ATTEMPTS = 3  # to use what the estimates were too high by, or to take out what they were too low by


def compose(
    material: Material,
    budget: int,
    counter: TokenCounter,
    reserve: int = 0,
    format: Format = OPENAI,
    tools: Sequence[Json] = (),
) -> Context:
    """Give the best context of this material within `budget` tokens less `reserve`, or raise `BudgetTooSmall`."""
    return Layout(material, Target(budget, counter, reserve, format, tools)).compose()


@dataclass(frozen=True)
class Layout:
    """A material laid out for one budget: what must be in, what each section may take, and what is offered to it."""

    material: Material
    target: Target

    @cached_property
    def base(self) -> int:
        """The tokens for everything but the system prompt: what shares are shares of. No question changes it."""
        _, system = self._written(PromptContent(system=self.material.system))
        return self.target.most - system

    @cached_property
    def asked(self) -> int:
        """The tokens of the question and of what comes after it."""
        _, bare = self._written(self._chosen({}))
        return bare - (self.target.most - self.base)

    @cached_property
    def plan(self) -> dict[str, Allowance]:
        """What each section may take."""
        return allowances(self.material.sections, max(0, self.base))

    @cached_property
    def steady(self) -> list[str]:
        """The user's own sections that stand at the start."""
        return [section.name for section in self.material.sections if section.steady and section.text is not None]

    @cached_property
    def offering(self) -> Offering:
        """What makes pieces."""
        return Offering(self.target.counter)

    @cached_property
    def offers(self) -> dict[str, list[Piece]]:
        """The pieces of each section, in the order of preference."""
        given, offering = self.material, self.offering
        recent = self.plan[RECENT]
        longest = recent.longest or int(LONG * min(recent.maximum, max(0, self.base)))
        own = {one.name: offering.texts(one, self.plan[one.name]) for one in given.sections if one.text is not None}
        return own | {
            SUMMARIES: offering.summaries(given.summaries),
            RECENT: offering.turns(given.turns, longest if recent.cut else None),
            FACTS: [*offering.standing(given.standing), *offering.facts(given.facts)],
            HITS: offering.hits(given.hits),
        }

    def older_than_recent(self, most: int) -> tuple[int, int, bool]:
        """Give the last message that the recent turns will not show, and how many tokens summaries may have.

        `most` are the tokens of all summaries there are, in their finest form. The last is whether any question would
        have found the same.
        """
        tokens = min(most, self.plan[SUMMARIES].share)
        offers = self.offers | {SUMMARIES: [Piece(SUMMARIES, "room", None, tokens, None)]}
        packing = steady_part(offers, self.plan, self.steady, self.base, self.asked)
        newest = max((turn.first_seq for turn in self.material.turns), default=0)
        return int(min(packing.oldest - 1, newest)), tokens, packing.is_settled()

    def with_summaries(self, summaries: Sequence[Summary], settled: bool) -> Layout:
        """Give the same with these summaries; what is counted stays counted."""
        steady = self.material.steady and settled
        other = replace(self, material=replace(self.material, summaries=summaries, steady=steady))
        kept = {name: value for name, value in vars(self).items() if name not in ("material", "offers")}
        vars(other).update(kept | {"offers": self.offers | {SUMMARIES: self.offering.summaries(summaries)}})
        return other

    def compose(self) -> Context:
        """Give the context, or raise `BudgetTooSmall`."""
        self._check(minimums(self.offers, self.plan))
        packing = pack(self.offers, self.plan, self.steady, self.base, self.asked)
        made = self._filled(packing)
        while made.tokens > self.target.most and packing.drop():
            made = self._composed(packing)
        while (over := self._over_maximum(made)) and any(packing.drop(section) for section in over):
            made = self._composed(packing)
        rendered = made.rendered
        return Context(rendered.messages, int(made.tokens), receipt_of(made), rendered.system, rendered.text)

    def _filled(self, packing: Packing) -> Composed:
        """Use what is left, and write it down; then use what the estimates were too high by, and the like."""
        offers = {**self.offers, HITS: uncovered_first(packing, self.offers[HITS], self._question)}
        left = SpareBudget(packing, offers, self.plan, self.steady, self.offering.older, self.offering.beginning)
        room = self.base - self.asked
        left.fill(room)
        made = self._composed(packing)
        for _ in range(ATTEMPTS):
            error = made.tokens - (self.target.most - room) - packing.tokens
            if not error:
                break
            before = {section: [*pieces] for section, pieces in packing.chosen.items()}
            while packing.tokens > room - error and packing.drop():
                pass
            left.fill(room - error)
            if packing.chosen == before:  # not its tokens: one piece may have taken the place of another as long
                break
            made = self._composed(packing)
        return made

    def _over_maximum(self, made: Composed) -> list[str]:
        """Give the sections that take more than the most that they may have, as counted."""
        given = [one.name for one in self.material.sections if one.maximum is not None]
        return [name for name in given if made.sections.get(name, 0) > self.plan[name].maximum]

    @cached_property
    def _question(self) -> str:
        content = (self.material.question or {}).get("content")
        parts = content if isinstance(content, list) else [{"text": content}]
        return " ".join(str(part["text"]) for part in parts if isinstance(part, dict) and part.get("text"))

    def _written(self, content: PromptContent) -> tuple[RenderedPrompt, Count]:
        """The one place where what was chosen is rendered, and where what was rendered is counted."""
        rendered = self.target.format.render(content)
        return rendered, render.count_prompt(rendered, self.target.counter, self.target.tools)

    def _check(self, musts: Mapping[str, Sequence[Piece]]) -> None:
        """Raise `BudgetTooSmall` where what must be in does not fit."""
        _, least = self._written(self._chosen(musts))
        if least > self.target.most:
            raise BudgetTooSmall(least + self.target.reserve, self.target.budget, self._largest(musts))

    def _largest(self, musts: Mapping[str, Sequence[Piece]]) -> str:
        """Name the largest part of what must be in or kept free."""
        count = self.target.counter.count_message
        sizes = {
            "the system prompt": self.target.counter.count(self.material.system or ""),
            "the question": count(self.material.question) if self.material.question else 0,
            "the definitions of tools": self._tools,
            "the reserve": self.target.reserve,
            "the tool calls that wait for an answer": sum(map(count, render.turn_messages(self.material.ending))),
        }
        sizes |= {f"the minimum of {name}": together(pieces) for name, pieces in musts.items()}
        return max(sizes, key=lambda name: sizes[name])

    @property
    def _tools(self) -> int:
        counter, tools = self.target.counter, self.target.tools
        return counter.count_messages([], tools) - counter.count_messages([]) if tools else 0

    def _chosen(self, chosen: Mapping[str, Sequence[Piece]]) -> PromptContent:
        given = self.material
        content = {section: [piece.content for piece in pieces] for section, pieces in chosen.items()}
        own = [CustomSection(one.name, content.get(one.name, [])) for one in given.sections if one.text is not None]
        facts = chosen.get(FACTS, ())
        return PromptContent(
            system=given.system,
            summaries=content.get(SUMMARIES, []),
            turns=[*content.get(RECENT, []), *given.ending],
            facts=[piece.content for piece in facts if not piece.pinned],
            hits=content.get(HITS, []),
            question=given.question,
            question_seq=given.question_seq,
            static_sections=[one for one in own if one.name in self.steady],
            pinned_facts=[piece.content for piece in facts if piece.pinned],
            custom_sections=[one for one in own if one.name not in self.steady],
        )

    def _composed(self, packing: Packing) -> Composed:
        """Write down what is chosen now."""
        chosen = self._chosen(packing.chosen)
        rendered, tokens = self._written(chosen)
        return Composed(self.material, self.target, self.offers, packing, chosen, rendered, tokens)
