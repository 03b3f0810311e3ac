"""What is left of a budget once every section has its share, and what goes into it. Pure.

more of what answers      by priority: hits, those first that say what the question asks and nothing chosen says;
                          facts; sections of the user's own
older messages            as lines of what was said, those first that stand beside a hit, then the newest
the exact fill            the last hits exchanged for others that leave less unused
the beginning of a hit    where nothing else uses the room
an earlier window         where not even that does
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

from memstore.assemble.fill import fullest
from memstore.assemble.pack import Offers, Packing, Piece, Plan, unpinned
from memstore.assemble.sections import FACTS, HITS, RECENT, SUMMARIES, WEIGHTS
from memstore.models import Hit
from memstore.store.terms import terms

# The exact fill: from how much unused it is worth it, how many chosen pieces it may exchange, for how many others.
WORTH_FILLING, EXCHANGED, OTHERS = 0.01, 4, 32
UNUSED = 0.03  # of the room, at most, while anything fits into it
LOOKED_AT = 200  # hits, for what they say of the question
Cut = Callable[[Piece, int], "Piece | None"]


def rest(packing: Packing, offers: Offers, plan: Plan, steady: Sequence[str], room: int) -> None:
    """Fill what is left, by priority; where nothing fits any more, exchange the last pieces for fuller ones."""
    order = [HITS, FACTS, *(name for name in plan if name not in WEIGHTS and name not in steady)]
    for section in sorted(order, key=lambda name: -plan[name].priority):
        packing.take(unpinned(offers, section), section, plan[section].maximum, room)
    if room - packing.tokens > WORTH_FILLING * room:
        _fill(packing, offers.get(HITS, ()), min(room, packing.tokens + plan[HITS].maximum - packing.taken(HITS)))


def lengthen(packing: Packing, offers: Offers, plan: Plan, steady: Sequence[str], room: int) -> None:
    """Let what is steady grow where nothing else can use the room: better that it begins anew than room unused."""
    if room - packing.tokens <= UNUSED * room:
        return
    before = packing.oldest
    for section in steady:
        packing.take(offers.get(section, ()), section, plan[section].maximum, room)
    packing.take(offers.get(RECENT, ()), RECENT, plan[RECENT].maximum, room, gaps=False)
    if packing.oldest < before:
        for section in (HITS, FACTS, SUMMARIES):
            for piece in [one for one in packing.chosen[section] if packing.is_shown(one)]:
                packing.remove(piece)
        rest(packing, offers, plan, steady, room)


def shorten(packing: Packing, offers: Offers, plan: Plan, room: int, cut: Cut) -> None:
    """Take the beginning of the best hit that did not fit, where much would stay unused."""
    left = room - packing.tokens
    if left <= UNUSED * room:
        return
    outside = (one for one in offers.get(HITS, ()) if one not in packing and not packing.is_redundant(one))
    for piece in islice(outside, OTHERS):
        over = packing.would_take(piece) - piece.tokens
        most = min(left - packing.cost(piece) + piece.tokens, plan[HITS].maximum - over)
        if piece.tokens > most and (shorter := cut(piece, most)):
            packing.add(shorter)
            return


def uncovered_first(packing: Packing, pieces: Sequence[Piece], question: str) -> list[Piece]:
    """Put those first that say what the question asks and nothing chosen for it says, most of it first."""
    wanted = set(terms(question))
    for piece in chain(packing.chosen[FACTS], packing.chosen[HITS]):
        wanted -= terms(piece.wording.text).keys()
        if not wanted:
            break
    if not wanted:
        return list(pieces)
    said = {one: wanted & terms(one.wording.text).keys() for one in pieces[:LOOKED_AT] if one not in packing}
    first: list[Piece] = []
    while wanted and said:
        best = max(said, key=lambda one: len(said[one] & wanted))
        if not said[best] & wanted:
            break
        wanted -= said.pop(best)
        if not packing.is_redundant(best):
            first.append(best)
    return [*first, *(one for one in pieces if one not in first)]


def beside(packing: Packing, turns: Sequence[Piece]) -> list[Piece]:
    """Put those turns first that stand right after or before a chosen hit, the best hit's first."""
    places: Mapping[float, Piece] = {turn.first_seq: turn for turn in turns}
    near = dict.fromkeys(places[seq] for seq in _near(packing, turns) if seq in places)
    return [*near, *(turn for turn in turns if turn not in near)]


def unsaid(packing: Packing, pieces: Iterable[Piece], room: int) -> Iterator[Piece]:
    """Give those hits that would say something new, as many as could fill a room."""
    chosen = {(piece.id, piece.wording.text) for piece in packing.chosen[HITS]}
    for piece in pieces:
        if (piece.id, piece.wording.text) not in chosen and not packing.is_redundant(piece):
            yield piece
            room -= piece.tokens
            if room <= 0:
                break


def _near(packing: Packing, turns: Sequence[Piece]) -> Iterator[int]:
    here = {message.conversation_id for turn in turns[:1] for message in turn.content.messages}
    for piece in packing.chosen[HITS]:
        hit = piece.content
        if isinstance(hit, Hit) and hit.seq is not None and hit.conversation_id in here:
            yield from (hit.seq + 1, hit.seq - 1)


def _fill(packing: Packing, offered: Sequence[Piece], room: int) -> None:
    """Exchange the last hits for others that fill the room better."""
    last = [one for one in packing.chosen[HITS][1:][-EXCHANGED:] if one not in packing.musts]
    before, gap = packing.tokens, room - packing.tokens
    most = gap + sum(piece.tokens for piece in last)
    small = (
        one for one in offered if one not in packing and packing.cost(one) <= most and not packing.is_redundant(one)
    )
    others = list(islice(small, OTHERS))
    if not others:
        return
    for piece in last:
        packing.remove(piece)
    pool = [*last, *others]
    chosen = fullest([packing.cost(piece) for piece in pool], room - packing.tokens)
    if sum(packing.cost(pool[place]) for place in chosen) + packing.tokens <= before:
        chosen = list(range(len(last)))
    for place in chosen:
        if not packing.is_redundant(pool[place]):  # two of them may say the same
            packing.add(pool[place])
