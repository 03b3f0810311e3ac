"""Selection: which items go in. Pure arithmetic over tokens; what is selected here is counted again as a whole.

    always                                   the minimums in tokens
    static, in the order of the context      pinned facts · the user's own · the window of recent turns · summaries
    for the question                         the user's own · facts · hits, each within its share
    what is left                             `SpareBudget`: what answers, older messages, a beginning, more turns

The static part is chosen first and without a look at the question, so that it stays the same between turns. What the
window leaves (it moves in steps) goes to what answers to the question, so that nothing is wasted.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from uuid import UUID

from memstore.context.dedupe import SaidIndex
from memstore.context.items import (
    FACTS,
    HITS,
    RECENT,
    SUMMARIES,
    WEIGHTS,
    Allowance,
    ContextItem,
    ItemFactory,
    SectionHeader,
)
from memstore.models import Hit, Reason

# Of the room, that pinned facts may have at most, their fence included: all of them, and the first one alone. These
# are allergies and the like, and no filler is worth one. Parts of the room alone, so that more room never drops one.
PINNED, FIRST = 1 / 3, 0.6
# By how much a window may be shorter than its room: turns, or a share of it, whichever is more (benchmarks/NOTES.md).
TURNS, SHARE, MOST = 12, 0.05, 0.25
UNUSED = 0.03  # of the room, at most, while anything fits into it
LOOKED_AT = 32  # hits that did not fit, for one whose beginning does

CandidateItems = Mapping[str, Sequence[ContextItem]]
Plan = Mapping[str, Allowance]


@dataclass(slots=True)
class Selection:
    """The items chosen, by section and in the order of choice, and the tokens that they are expected to take.

    `required` items are never taken out, unless the recent turns show what they are. `baseline` is the static part that
    any question would have got.
    """

    chosen: dict[str, list[ContextItem]] = field(default_factory=lambda: {section: [] for section in WEIGHTS})
    tokens: int = 0
    shown: set[UUID] = field(default_factory=set)
    oldest: float = math.inf
    required: Sequence[ContextItem] = ()
    baseline: dict[str, list[ContextItem]] | None = None
    _inside: set[ContextItem] = field(default_factory=set)
    _taken: Counter[str] = field(default_factory=Counter)
    # How many chosen items stand under each header: in all, and by section.
    _headers: Counter[SectionHeader] = field(default_factory=Counter)
    _headers_of: defaultdict[str, Counter[SectionHeader]] = field(default_factory=lambda: defaultdict(Counter))
    _said: SaidIndex = field(default_factory=SaidIndex)
    _duplicates: set[ContextItem] = field(default_factory=set)

    def __contains__(self, item: ContextItem) -> bool:
        """Whether an item is chosen."""
        return item in self._inside

    def add(self, item: ContextItem) -> None:
        """Choose an item."""
        self.tokens += self.cost(item)
        self._taken[item.section] += self._alone(item)
        self.chosen.setdefault(item.section, []).append(item)
        self._inside.add(item)
        self._headers.update(item.under)
        self._headers_of[item.section].update(item.under)
        self.shown |= item.shows
        if item.section == RECENT:
            self.oldest = min(self.oldest, item.first_seq)
        if item.fingerprint.text:
            self._said.add(item.fingerprint, item.sources)

    def remove(self, item: ContextItem) -> None:
        """Take a chosen item out again."""
        self.chosen[item.section].remove(item)
        self._inside.discard(item)
        self._headers.subtract(item.under)
        self._headers_of[item.section].subtract(item.under)
        self.tokens -= self.cost(item)
        self._taken[item.section] -= self._alone(item)
        self.shown -= item.shows
        if item.section == RECENT:
            self.oldest = min((one.first_seq for one in self.chosen[RECENT]), default=math.inf)
        if item.fingerprint.text:
            self._said.remove(item.fingerprint, item.sources)
            self._duplicates.clear()

    def cost(self, item: ContextItem) -> int:
        """Return what the item would add now: itself, and the headers that are not there yet."""
        return item.tokens + _missing(self._headers, item)

    def taken(self, section: str) -> int:
        """Return what a section's items take, with their headers; the fence around facts and hits is the facts'."""
        return self._taken[section] - self._shared(section)

    def would_take(self, item: ContextItem) -> int:
        """Return what the item's section would take with it."""
        return self._taken[item.section] + self._alone(item) - self._shared(item.section, item.under)

    def _alone(self, item: ContextItem) -> int:
        return item.tokens + _missing(self._headers_of[item.section], item)

    def _shared(self, section: str, under: Sequence[SectionHeader] = ()) -> int:
        if section != HITS:
            return 0
        hits, facts = self._headers_of[HITS], self._headers_of[FACTS]
        return sum(header.tokens for header in facts if facts[header] and (hits[header] or header in under))

    def is_static(self) -> bool:
        """Whether the static part is what any question would have got."""
        return self.baseline is not None and all(
            _static_items(self, section) == items for section, items in self.baseline.items()
        )

    def is_shown(self, item: ContextItem) -> bool:
        """Whether the recent turns show what the item is, or was made from."""
        if item.section == SUMMARIES:
            return item.first_seq >= self.oldest
        if item.section == FACTS:
            return not item.pinned and not self.shown.isdisjoint(item.sources)
        return item.section == HITS and item.id in self.shown

    def is_redundant(self, item: ContextItem) -> bool:
        """Whether the item would say nothing new."""
        if self.is_shown(item) or item in self._duplicates:
            return True
        if item.section != HITS or not self._said.says(item.fingerprint, item.id):
            return False
        if not item.fingerprint.rows:  # not for good: what it answers may be chosen yet
            return not self._answers(item)
        self._duplicates.add(item)
        return True

    def _answers(self, item: ContextItem) -> bool:
        """Whether a hit stands right behind one that is chosen: a "yes" may answer anything."""
        hit = item.content
        if not isinstance(hit, Hit) or hit.seq is None:
            return False
        before = hit.conversation_id, hit.seq - 1
        return any((one.content.conversation_id, one.content.seq) == before for one in self.chosen[HITS])

    def why_not(self, item: ContextItem, *, compare: bool = True) -> Reason:
        """Return the reason for which an item is not chosen, by what is chosen now.

        Without `compare` it is not looked for who says the same, unless that is known.
        """
        if self.is_shown(item):
            return Reason.ALREADY_IN_RECENT
        if item in self._duplicates or (compare and self.is_redundant(item)):
            return Reason.DUPLICATE
        return Reason.OVER_BUDGET

    def take(self, items: Iterable[ContextItem], section: str, most: int, room: int, *, gaps: bool = True) -> None:
        """Choose items of a section in their order while it has at most `most` tokens, and all sections at most `room`.

        Without gaps, up to the first that does not fit.
        """
        for item in items:
            if item in self._inside:
                continue
            if self.tokens + self.cost(item) > room or self.would_take(item) > most:
                if not gaps:
                    break
            elif not self.is_redundant(item):
                self.add(item)

    def keep_required(self) -> None:
        """Choose what is required, where the recent turns do not show it."""
        for item in self.required:
            if item not in self and not self.is_shown(item):
                self.add(item)

    def drop(self, section: str | None = None) -> bool:
        """Take the least needed item out: what came last, of the section or of that which can best spare it.

        Pinned facts go last of all. Return False where nothing is left that may go.
        """
        custom = [name for name in self.chosen if name not in WEIGHTS]
        order = (HITS, FACTS, *custom, SUMMARIES, RECENT) if section is None else (section,)
        for pinned in (False, True):
            for name in order:
                spare = [one for one in self.chosen.get(name, ()) if one.pinned == pinned and one not in self.required]
                if spare:
                    self.remove(spare[-1])
                    self.keep_required()
                    return True
        return False


def _missing(headers: Counter[SectionHeader], item: ContextItem) -> int:
    tokens = 0
    for header in item.under:
        if not headers.get(header):
            tokens += header.tokens
    return tokens


def required_items(items: CandidateItems, plan: Plan) -> dict[str, list[ContextItem]]:
    """Return the items that must be in: of each section with a minimum in tokens the first ones that fit into it."""
    required: dict[str, list[ContextItem]] = {}
    for section, allowance in plan.items():
        if allowance.required:
            alone = Selection()
            alone.take(items.get(section, ()), section, allowance.minimum, allowance.minimum, gaps=False)
            required[section] = alone.chosen.get(section, [])
    return required


def total_tokens(items: Iterable[ContextItem]) -> int:
    """Return what items take with the headers over them."""
    alone = Selection()
    for item in items:
        alone.add(item)
    return alone.tokens


def select_items(items: CandidateItems, plan: Plan, static: Sequence[str], base: int, question: int) -> Selection:
    """Choose items that are expected to take at most `base` tokens, with the `question` ones of the question.

    `static` are the user's own sections that stand at the start.
    """
    selection = select_static(items, plan, static, base, question)
    answering = _answering(plan, static)
    for section in sorted(answering, key=lambda name: (name in WEIGHTS, -plan[name].priority)):
        selection.take(query_dependent(items, section), section, _share(items, plan, section), base - question)
    return selection


def select_static(items: CandidateItems, plan: Plan, static: Sequence[str], base: int, question: int) -> Selection:
    """Choose the part of a context that does not depend on the question, and what is required.

    Most questions get the baseline, as any other would. Something else is chosen only where everything fits, where
    nothing answers, where the question takes more than half of what is left for it and its answers, or where the best
    hit takes more than all hits may count on.
    """
    answering = _answering(plan, static)
    required = required_items(items, plan)
    ahead = [item for name, some in required.items() for item in some if name not in answering or item.pinned]
    behind = [item for name in answering for item in required.get(name, ()) if not item.pinned]
    counted = sum(plan[name].share for name in answering if name in (FACTS, HITS) or items.get(name))
    promised = sum(plan[name].minimum for name in answering if plan[name].required)
    half = counted // 2
    baseline = _begin(ahead, items, plan, static, base, base - half - promised, base - promised)
    _take_window(baseline, items, plan, base - half - promised, max(0, counted - half - promised))

    expected = {name: _static_items(baseline, name) for name in (*static, FACTS, SUMMARIES, RECENT)}
    must = total_tokens([*ahead, *behind]) - total_tokens(ahead)
    room = base - question - must
    needs = sum(_share(items, plan, name) for name in answering if any(True for _ in query_dependent(items, name)))
    selection = _begin(ahead, items, plan, static, base, room, room)
    if _all_fit(selection, items, plan, answering, room):
        _take_window(selection, items, plan, room, 0, every=True)
    elif needs and needs <= counted and question <= half and _static_items(selection, FACTS) == expected[FACTS]:
        selection = baseline
    else:
        _take_window(selection, items, plan, room, max(0, max(needs - question, needs // 2) - must))
    selection.baseline = expected
    selection.required = (*ahead, *behind)
    selection.keep_required()
    return selection


def query_dependent(items: CandidateItems, section: str) -> Iterable[ContextItem]:
    """Return the items that answer to the question. Those that are pinned have had their room, which no other moves."""
    return (item for item in items.get(section, ()) if not item.pinned)


def _answering(plan: Plan, static: Sequence[str]) -> list[str]:
    return [name for name in plan if name not in (*static, SUMMARIES, RECENT)]


def _static_items(selection: Selection, section: str) -> list[ContextItem]:
    return [item for item in selection.chosen.get(section, ()) if section != FACTS or item.pinned]


def _begin(
    required: Sequence[ContextItem],
    items: CandidateItems,
    plan: Plan,
    static: Sequence[str],
    base: int,
    room: int,
    always: int,
) -> Selection:
    """Choose pinned facts, and before all else what is required, so that no section of another can push them out.

    Pinned facts may go up to `always` tokens in all, what else is static up to `room`.
    """
    selection = Selection()
    for item in required:
        selection.add(item)
    pinned = [item for item in items.get(FACTS, ()) if item.pinned]
    for some, part in ((pinned[:1], FIRST), (pinned, PINNED)):
        most = min(max(plan[FACTS].share, int(part * base)), plan[FACTS].maximum)
        selection.take(some, FACTS, most, always, gaps=False)
    for section in static:
        selection.take(items.get(section, ()), section, plan[section].share, room)
    return selection


def _take_window(
    selection: Selection, items: CandidateItems, plan: Plan, room: int, needs: int, *, every: bool = False
) -> None:
    """Choose the window of recent turns, which has all but what others need, and summaries of what is older."""
    turns = items.get(RECENT, ())
    tokens = [item.tokens for item in turns]
    left = room - selection.tokens + selection.taken(RECENT) + selection.taken(SUMMARIES)
    for_summaries = min(plan[SUMMARIES].share, sum(item.tokens for item in items.get(SUMMARIES, ())))
    most = min(plan[RECENT].maximum, max(left - for_summaries - needs, min(left, plan[RECENT].share)))
    count = len(turns)
    if not every:
        starts = [int(item.first_seq) for item in turns]
        steps = all(item.kind != "block" for item in turns)  # strategies move what they made in steps of their own
        count = recent_window(starts, tokens, most, steps=steps)
    least = sum(1 for so_far in accumulate(tokens) if so_far <= plan[RECENT].minimum)
    selection.take(turns[: max(count, least)], RECENT, room, room, gaps=False)
    selection.take(items.get(SUMMARIES, ()), SUMMARIES, plan[SUMMARIES].share, room)


def _all_fit(selection: Selection, items: CandidateItems, plan: Plan, answering: Sequence[str], room: int) -> bool:
    """Whether all recent turns fit, beside what answers and is not among them, within its share."""
    turns = items.get(RECENT, ())
    tokens, left = sum(item.tokens for item in turns), room - selection.tokens + selection.taken(RECENT)
    if tokens > min(plan[RECENT].maximum, left):  # of a long conversation: nobody needs to look at what answers
        return False
    shown = frozenset[UUID]().union(*(item.shows for item in turns))
    others = 0
    for name in answering:
        outside = (one for one in query_dependent(items, name) if not shown.intersection((one.id, *one.sources)))
        share = max(0, _share(items, plan, name) - selection.taken(name))
        others += min(share, sum(one.tokens for one in outside))
    return tokens <= left - others


def _share(items: CandidateItems, plan: Plan, section: str) -> int:
    """Return a section's share; the best hit is worth more than it."""
    if section == HITS and items.get(HITS):
        return min(plan[HITS].maximum, max(plan[HITS].share, total_tokens(items[HITS][:1])))
    return plan[section].share


def recent_window(starts: Sequence[int], tokens: Sequence[int], room: int, *, steps: bool = True) -> int:
    """Return how many of the newest turns a window of at most `room` tokens has.

    `starts` are the numbers of the first messages of turns, the newest first, `tokens` what the turns take. Where all
    of them fit, all are in; without `steps`, as many as fit.
    """
    # A window that begins one turn later at every turn has a new start each time, and a model that keeps the prompt's
    # start in a cache computes all of it anew. So it begins, of the turns with which it may begin, at the roundest
    # number of a message: that stays for a while, follows from the numbers alone, and a room that is a little larger or
    # smaller hardly ever moves it.
    sums = list(accumulate(tokens))
    most = sum(1 for so_far in sums if so_far <= room)
    if most in (0, len(sums)) or not steps:
        return most
    slack = min(MOST * room, max(SHARE * room, sums[most - 1] - (sums[most - 1 - TURNS] if most > TURNS else 0)))
    first = next(count for count in range(1, most + 1) if sums[count - 1] >= sums[most - 1] - slack)
    # How round the roundest number from the turn before up to a turn's own is: the exponent of two that divides it.
    return max(range(first, most + 1), key=lambda count: (starts[count] ^ starts[count - 1]).bit_length())


@dataclass
class SpareBudget:
    """What has not been selected yet, and may go into what is left of the room: first what answers to the question,
    then older messages as lines of what was said, the beginning of a hit, and an earlier window."""

    selection: Selection
    items: dict[str, list[ContextItem]]
    plan: Plan
    static: Sequence[str]
    factory: ItemFactory

    def fill(self, room: int) -> None:
        """Fill the selection up to so many tokens."""
        selection = self.selection
        self._take_rest(room)
        if selection.tokens < room:
            self.items[HITS] = [*self.items[HITS], *self._older_lines(room - selection.tokens)]
            self._take_rest(room)
        if room - selection.tokens > UNUSED * room:
            self._take_beginning(room)
        # What an earlier window shows itself makes room for a still earlier one.
        while room - selection.tokens > UNUSED * room and self._extend_window(room):
            pass

    def _take_rest(self, room: int) -> None:
        """Fill what is left, by priority."""
        order = [HITS, FACTS, *(name for name in self.plan if name not in WEIGHTS and name not in self.static)]
        for section in sorted(order, key=lambda name: -self.plan[name].priority):
            self.selection.take(query_dependent(self.items, section), section, self.plan[section].maximum, room)

    def _older_lines(self, room: int) -> Iterator[ContextItem]:
        """Yield messages older than the window as lines, as many as could fill a room: those beside a hit first."""
        turns = self.items[RECENT][len(self.selection.chosen[RECENT]) :]
        by_seq: dict[float, ContextItem] = {turn.first_seq: turn for turn in turns}
        here = {message.conversation_id for turn in turns[:1] for message in turn.content.messages}
        hits = [item.content for item in self.selection.chosen[HITS] if isinstance(item.content, Hit)]
        seqs = (
            hit.seq + step for hit in hits if hit.seq is not None and hit.conversation_id in here for step in (1, -1)
        )
        near = dict.fromkeys(by_seq[seq] for seq in seqs if seq in by_seq)
        known = {item.id for item in self.items[HITS]}
        for item in self.factory.hits_of_turns([*near, *(turn for turn in turns if turn not in near)]):
            if item.id not in known and not self.selection.is_redundant(item):
                yield item
                room -= item.tokens
                if room <= 0:
                    break

    def _take_beginning(self, room: int) -> None:
        """Take the beginning of the best hit that did not fit, and of which there is none yet."""
        selection, most = self.selection, self.plan[HITS].maximum
        begun = {item.id for item in selection.chosen[HITS]}
        outside = (item for item in self.items[HITS] if item.id not in begun and not selection.is_redundant(item))
        for item in islice(outside, LOOKED_AT):
            over = selection.would_take(item) - item.tokens
            fits = min(room - selection.tokens - selection.cost(item) + item.tokens, most - over)
            if item.tokens > fits and (shorter := self.factory.beginning(item, fits)):
                selection.add(shorter)
                return

    def _extend_window(self, room: int) -> bool:
        """Let the static part grow where nothing else can use the room: better that it begins anew than room unused.

        Return whether the window begins earlier now.
        """
        selection, plan, before = self.selection, self.plan, self.selection.oldest
        for section in self.static:
            selection.take(self.items[section], section, plan[section].maximum, room)
        selection.take(self.items[RECENT], RECENT, plan[RECENT].maximum, room, gaps=False)
        if selection.oldest < before:
            for section in (HITS, FACTS, SUMMARIES):
                for item in [one for one in selection.chosen[section] if selection.is_shown(one)]:
                    selection.remove(item)
            self._take_rest(room)
        return selection.oldest < before
