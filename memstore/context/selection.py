"""Selection: which items go in. Pure arithmetic over tokens; the selection is counted again as a whole.

The static part is chosen first and without a look at what answers, so that it stays the same between turns. What the
window of recent turns leaves (it moves in steps) goes to what answers to the question, so that nothing is wasted.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from uuid import UUID

from memstore.context.items import (
    CAPPED_ROOM,
    FACTS,
    FOR_THE_QUESTION,
    FULL_SHARE_ROOM,
    HITS,
    RECENT,
    SECTION_WEIGHTS,
    SUMMARIES,
    Allowance,
    BudgetSpec,
    Candidates,
    ContextItem,
    SectionHeader,
    allowances,
)
from memstore.models import ALWAYS, Reason, Section
from memstore.providers import Count

# The most of the room that standing facts may have together, with their fence, and that the first one may have. These
# are allergies and the like, and no filler is worth one. Parts of the room alone, so that more room never drops one.
STANDING_SHARE, FIRST_STANDING_SHARE = 1 / 3, 0.6
# By how much a window may be shorter than its room: turns, or a share of the room, whichever is more.
STEP_TURNS, STEP_SHARE = 12, 0.05


@dataclass(frozen=True, slots=True)
class ContextPlan:
    """The items that a context is selected from, and the limits of its sections.

    `allowances` are of `section_room`, which no question changes; all items together have `room`, which is less by the
    question and what else is always in. `summary_tokens` are kept free for summaries of what is older than the turns.
    """

    candidates: Candidates
    target: BudgetSpec
    sections: Sequence[Section]
    allowances: Mapping[str, Allowance]
    items: Mapping[str, Sequence[ContextItem]]
    section_room: int
    room: int
    summary_tokens: int

    @property
    def static(self) -> list[str]:
        """The user's own sections that stand at the start."""
        return [section.name for section in self.candidates.custom_sections if section.static]

    @property
    def is_small_list(self) -> bool:
        """Whether several things are asked for in so small a context that few recent turns are in it."""
        return self.candidates.asks_for_several and self.section_room < CAPPED_ROOM

    @property
    def answering(self) -> list[str]:
        """The sections that the question decides about."""
        return [name for name in self.allowances if name not in (*self.static, SUMMARIES, RECENT)]

    @property
    def ranks_together(self) -> bool:
        """Whether facts and hits are chosen by their scores alone, without shares: what answers best comes first.

        Of LoCoMo's evidence contexts of 2,000 tokens have 90.4 % so, with shares 90.1 %; of 1,000 tokens 86.5 and 86.4.
        """
        limits = [section for section in self.sections if section.name in FOR_THE_QUESTION]
        is_weighted = any(section.weight is not None for section in limits)
        has_order = self.allowances[FACTS].priority != self.allowances[HITS].priority
        return self.room < FULL_SHARE_ROOM and not has_order and not is_weighted

    def answers(self, section: str) -> list[ContextItem]:
        """Return what answers to the question. What is standing has had its room, which no question moves."""
        return [item for item in self.items.get(section, ()) if not item.standing]

    def required_items(self) -> dict[str, list[ContextItem]]:
        """Return the items that must be in: of sections with a minimum in tokens the first ones that fit into it."""
        required: dict[str, list[ContextItem]] = {}
        for section, allowance in self.allowances.items():
            if allowance.required:
                alone, limit = Selection(), allowance.minimum
                alone.take(self.items.get(section, ()), section, limit, limit, gaps=False)
                required[section] = alone.chosen.get(section, [])
        return required

    def correct(self, estimated: int, tokens: Count) -> ContextPlan:
        """Return the plan in estimated tokens, where items of so many have made a context of `tokens`."""
        counted = tokens - (self.target.limit - self.room)
        if tokens.kind != "server" or counted <= 0:
            return replace(self, room=self.room - (counted - estimated))
        # Estimates of another tokenizer's are wrong by a factor.
        rate = estimated / counted
        limits = allowances(self.sections, max(0, int(self.section_room * rate)))
        return replace(self, room=int(self.room * rate), allowances=limits)


class Selection:
    """The items chosen, by section and in the order of choice, and the tokens that they are expected to take.

    `required` items are never taken out, unless the recent turns show what they are. `is_static` says whether another
    question would have found the same static part.
    """

    def __init__(self, required: Sequence[ContextItem] = ()) -> None:
        self.required, self.is_static = required, True
        self._choose(())

    def __contains__(self, item: ContextItem) -> bool:
        return item in self._inside

    def _choose(self, items: Iterable[ContextItem]) -> None:
        self.chosen: dict[str, list[ContextItem]] = {section: [] for section in SECTION_WEIGHTS}
        self.tokens = 0
        self.shown: set[UUID] = set()
        # By message: what is in of it, and the antecedents of hits that are in.
        self._hits: dict[UUID | None, str] = {}
        self._antecedents: dict[UUID | None, ContextItem] = {}
        self._facts: set[UUID | None] = set()
        self.oldest = math.inf
        self._inside: set[ContextItem] = set()
        self._taken = Counter[str]()
        # Of each section; "" has them all.
        self._headers = defaultdict[str, set[SectionHeader]](set)
        self._shingles: set[str] = set()
        # Whose shingles are not among those yet: most selections compare nothing.
        self._unread: list[ContextItem] = []
        # Recent turns show the antecedents of hits.
        for item in sorted(items, key=lambda item: item.section != RECENT):
            self.add(item)

    def add(self, item: ContextItem, costs: tuple[int, int] | None = None) -> None:
        """Choose an item, and its antecedent before it; `costs` are by `_costs`, where they are known."""
        total, section_total = costs or self._costs(item)
        self.tokens += total
        self._taken[item.section] += section_total
        if antecedent := self._missing_antecedent(item):
            self._antecedents[antecedent.id] = antecedent
            self._put(antecedent)
        self._put(item)
        if item.section == HITS:
            self._hits[item.id] = item.text
            if self._is_antecedent(item):
                self.chosen[HITS].remove(self._antecedents.pop(item.id))

    def _put(self, item: ContextItem) -> None:
        self.chosen.setdefault(item.section, []).append(item)
        self._inside.add(item)
        for section in ("", item.section):
            self._headers[section].update(item.headers)
        self.shown |= item.shows
        if item.section == RECENT:
            self.oldest = min(self.oldest, item.first_seq)
        elif item.section == FACTS:
            self._facts.add(item.id)
        self._unread.append(item)

    def remove(self, *items: ContextItem) -> None:
        self._choose([item for item in self._chosen() if item not in items])

    def _chosen(self, *sections: str) -> Iterator[ContextItem]:
        """Yield what is chosen, of all or of some sections, but for antecedents: these come and go with their hits."""
        for section in sections or self.chosen:
            yield from (item for item in self.chosen.get(section, ()) if self._antecedents.get(item.id) is not item)

    def _costs(self, item: ContextItem) -> tuple[int, int]:
        """Return what the item would add now, to all and to its section: itself, and the headers that are not there."""
        antecedent = self._missing_antecedent(item)
        tokens, headers = item.tokens, {*item.headers}
        if antecedent is not None:
            tokens += antecedent.tokens
            headers.update(antecedent.headers)
        if self._is_antecedent(item):
            tokens -= self._antecedents[item.id].tokens
        total, section_total = (
            tokens + sum([header.tokens for header in headers - self._headers[section]])
            for section in ("", item.section)
        )
        return total, section_total

    def _missing_antecedent(self, item: ContextItem) -> ContextItem | None:
        antecedent = item.antecedent
        if antecedent is None or antecedent.id in self.shown or antecedent.id in self._antecedents:
            return None
        return None if antecedent.text in self._hits.get(antecedent.id, "") else antecedent

    def _is_antecedent(self, item: ContextItem) -> bool:
        """Whether a sentence of the item is in already, as the antecedent of a hit."""
        antecedent = self._antecedents.get(item.id) if item.section == HITS else None
        return antecedent is not None and antecedent is not item and antecedent.text in item.text

    def taken(self, section: str) -> int:
        return self._taken[section]

    def is_shown(self, item: ContextItem) -> bool:
        """Whether the recent turns show what the item is, or was made from."""
        if item.section == SUMMARIES:
            return item.first_seq >= self.oldest
        if item.section == FACTS:
            return not item.standing and not self.shown.isdisjoint(item.sources)
        return item.section == HITS and item.id in self.shown

    def is_duplicate(self, item: ContextItem) -> bool:
        """Whether what is chosen has the same fact, as a standing one, the message that it quotes, or a hit's words."""
        if item.section == FACTS:
            if item.id in self._facts:
                return True
            return not item.standing and bool(item.sources) and self._hits.keys() >= {*item.sources}
        if item.section != HITS:
            return False
        for chosen_item in self._unread:
            self._shingles.update(chosen_item.shingles)
        self._unread.clear()
        shared = sum(map(self._shingles.__contains__, item.shingles))
        return bool(item.shingles) and shared >= 0.9 * len(item.shingles)

    def rejection_reason(self, item: ContextItem) -> Reason:
        if self.is_shown(item):
            return Reason.ALREADY_IN_RECENT
        return Reason.DUPLICATE if self.is_duplicate(item) else Reason.OVER_BUDGET

    def take(self, items: Iterable[ContextItem], section: str, limit: int, room: int, *, gaps: bool = True) -> None:
        """Choose items of a section in order while it has at most `limit` tokens, and all sections at most `room`.

        Without gaps, up to the first that does not fit.
        """
        for item in items:
            if item in self._inside:
                continue
            fits = self.tokens + item.tokens <= room and self._taken[section] + item.tokens <= limit
            if not fits and self._antecedents.get(item.id) is None:  # most end here
                if not gaps:
                    break
                continue
            costs = self._costs(item)
            if self.tokens + costs[0] > room or self._taken[section] + costs[1] > limit:
                if not gaps:
                    break
            elif not self.is_shown(item) and not self.is_duplicate(item):
                self.add(item, costs)

    def drop(self, section: str | None = None) -> bool:
        """Take the least needed item out: what came last, of the section or of that which can best spare it.

        Standing facts go last of all. Return False where nothing is left that may go.
        """
        custom = [name for name in self.chosen if name not in SECTION_WEIGHTS]
        order = (HITS, FACTS, *custom, SUMMARIES, RECENT) if section is None else (section,)
        for standing in (False, True):
            for name in order:
                spare = [item for item in self._chosen(name) if item.standing == standing and item not in self.required]
                if spare:
                    self.remove(spare[-1])
                    self.keep_required()
                    self.is_static = self.is_static and name in (HITS, FACTS) and not standing
                    return True
        return False

    def keep_required(self) -> None:
        for item in self.required:
            if item not in self and not self.is_shown(item):
                self.add(item)


def total_tokens(items: Iterable[ContextItem]) -> int:
    """Return what items take with the headers over them."""
    alone = Selection()
    for item in items:
        alone.add(item)
    return alone.tokens


def select_static(plan: ContextPlan) -> Selection:
    """Choose the part of a context that does not depend on the question, and what is required.

    Facts and hits have their share set aside first, of which a question and required items may take up to half: so most
    questions leave the same.
    """
    items, limits, room = plan.items, plan.allowances, plan.section_room
    required = plan.required_items()
    ahead = [item for name, group in required.items() for item in group if name not in plan.answering or item.standing]
    behind = [item for name in plan.answering for item in required.get(name, ()) if not item.standing]
    selection = Selection((*ahead, *behind))
    for item in ahead:
        selection.add(item)
    # The question, and what is required beside it.
    must = room - plan.room + total_tokens([*ahead, *behind]) - selection.tokens
    shares = sum(limits[name].share for name in plan.answering if name in FOR_THE_QUESTION or items.get(name))
    half = shares // 2
    selection.is_static = must <= half and must <= (1 - FIRST_STANDING_SHARE) * room
    standing = [item for item in items.get(FACTS, ()) if item.standing]
    always = [item for item in standing if item.content.importance == ALWAYS]
    for group, part in ((always, 1.0), (standing[:1], FIRST_STANDING_SHARE), (standing, STANDING_SHARE)):
        limit = min(max(limits[FACTS].share, int(part * room)), limits[FACTS].maximum)
        selection.take(group, FACTS, limit, room - must, gaps=False)
    static_room = room - (shares if selection.is_static else must + half)
    for section in plan.static:
        selection.take(items.get(section, ()), section, limits[section].share, static_room)
    turns = items.get(RECENT, ())
    free = static_room - selection.tokens + selection.taken(RECENT)
    window_room = max(free - plan.summary_tokens, min(free + half, limits[RECENT].share))
    window = recent_window(turns, min(limits[RECENT].maximum, window_room))
    if _all_turns_fit(selection, plan, room - must):
        selection.is_static = selection.is_static and window == len(turns)
        window = len(turns)
    selection.take(turns[:window], RECENT, room, room - must, gaps=False)
    selection.keep_required()
    selection.is_static = selection.is_static and not plan.is_small_list
    return selection


def select_rest(selection: Selection, plan: ContextPlan) -> None:
    """Add summaries and what answers to the question, as far as each section may count on it, and use what is left."""
    limits = plan.allowances
    selection.take(plan.items[SUMMARIES], SUMMARIES, limits[SUMMARIES].share, plan.room)
    for section in sorted(plan.answering, key=lambda name: (name in SECTION_WEIGHTS, -limits[name].priority)):
        if section not in FOR_THE_QUESTION or not plan.ranks_together:
            selection.take(plan.answers(section), section, limits[section].share, plan.room)
    fill(selection, plan)


def fill(selection: Selection, plan: ContextPlan) -> None:
    """Use what is left of the room: by priority for what answers to the question, then for more of the static part.

    Better that a model's cached prefix begins anew than room unused. Hits and facts that the longer window shows itself
    are taken out, which leaves room for more turns.
    """
    items, limits, room = plan.items, plan.allowances, plan.room
    ranked: list[ContextItem] = []
    if plan.ranks_together:
        ranked = sorted((*plan.answers(FACTS), *items[HITS]), key=lambda item: -(item.score or 0))
    while True:
        for section in sorted(plan.answering, key=lambda name: (-limits[name].priority, name != HITS)):
            if section in FOR_THE_QUESTION:
                for name, group in groupby(ranked, key=lambda item: item.section):
                    selection.take(group, name, limits[name].maximum, room)
            selection.take(plan.answers(section), section, limits[section].maximum, room)
        if room - selection.tokens <= 0.03 * room:
            return
        before = selection.tokens, selection.oldest
        for section in plan.static:
            selection.take(items[section], section, limits[section].maximum, room)
        selection.take(items[RECENT], RECENT, limits[RECENT].maximum, room, gaps=False)
        if before == (selection.tokens, selection.oldest):
            return
        selection.is_static = False
        chosen = [item for name in (HITS, FACTS, SUMMARIES) for item in selection.chosen[name]]
        selection.remove(*filter(selection.is_shown, chosen))


def _all_turns_fit(selection: Selection, plan: ContextPlan, room: int) -> bool:
    """Whether all recent turns fit, together with answers that are not among them and keep to their share."""
    turns = plan.items.get(RECENT, ())
    tokens, left = sum(item.tokens for item in turns), room - selection.tokens + selection.taken(RECENT)
    # Of a long conversation nobody needs to look at what answers.
    if tokens > min(plan.allowances[RECENT].maximum, left):
        return False
    shown = frozenset[UUID]().union(*(item.shows for item in turns))
    for name in plan.answering:
        answers = (item for item in plan.answers(name) if not shown & {item.id, *item.sources})
        left -= min(plan.allowances[name].share, sum(item.tokens for item in answers))
    return tokens <= left


def recent_window(turns: Sequence[ContextItem], room: int) -> int:
    """Return how many of the newest turns a window of at most `room` tokens has.

    `turns` are the newest first. Where all of them fit, all are in; where strategies, which have steps of their own,
    made some of them, as many as fit.
    """
    # A window that begins one turn later at every turn has a new start each time, and a model that keeps the prompt's
    # start in a cache computes all of it anew. So it begins, of the turns with which it may begin, at the roundest
    # number of a message: that stays for a while, follows from the numbers alone, and a room that is a little larger or
    # smaller hardly ever moves it.
    sums = list(accumulate(turn.tokens for turn in turns))
    most = sum(1 for so_far in sums if so_far <= room)
    if most in (0, len(sums)) or any(turn.kind == "block" for turn in turns):
        return most
    oldest_turns = sums[most - 1] - (sums[most - 1 - STEP_TURNS] if most > STEP_TURNS else 0)
    # A quarter at most (benchmarks/NOTES.md).
    slack = min(0.25 * room, max(STEP_SHARE * room, oldest_turns))
    first = next(count for count in range(1, most + 1) if sums[count - 1] >= sums[most - 1] - slack)
    # A window begins at the turn whose number, or one since the turn before, is divisible by the highest power of two.
    starts = [int(turn.first_seq) for turn in turns]
    return max(range(first, most + 1), key=lambda count: (starts[count] ^ starts[count - 1]).bit_length())
