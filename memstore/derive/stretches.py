"""Where a conversation is cut into stretches to be summarized: at silences, at shifts of topic, and at a bound. Pure.

A stretch closes where a long silence follows or where no more tokens fit. A closed one is looked at once more: where
its topic shifts, only what stands before the shift is a stretch, and the rest goes on. So every cut follows from the
messages since the last cut and up to a silence or the bound, and the same history gives the same stretches however it
was cut into batches. The stretch that is still open waits.

Topics are told apart by words alone, as TextTiling does: stems before and after a place, and how far their likeness
falls below its peaks on both sides. Measured on 128 sessions of LoCoMo, put one after the other in a random order and
without their silences: 45 % of the cuts are within two messages of where a session begins, against 23 % by chance and
42 % with vectors, which would cost an embedding and differ in their last bits from batch to batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import accumulate
from math import sqrt

from memstore.models import Message, Role
from memstore.store.terms import terms

SPOKEN = frozenset({Role.USER, Role.ASSISTANT})  # whose words have a topic
LEAST = 0.25  # of the bound: no shift is looked for nearer than that to the last cut, or to the end
BLOCK = 0.125  # of the bound: what is compared before and after a place
RESULTS = 8  # times the bound: how long a call may be that is cut nowhere
SHIFT = 0.25  # how deep the likeness must fall, of at most 2


def stretches(found: Sequence[Message], gap: timedelta, tokens: int) -> Iterator[Sequence[Message]]:
    """Give the closed stretches, each of at most `tokens` tokens, or one message; the open rest waits.

    A call of tools and its results are one of these messages: only what is `RESULTS` times too long is cut.
    """
    start = 0
    while stop := _closed(found, start, gap, tokens):
        stop = start + shift(found[start:stop], tokens)
        yield found[start:stop]
        start = stop


def _closed(found: Sequence[Message], start: int, gap: timedelta, tokens: int) -> int:
    """Give the index after the messages that can belong to one stretch; 0 where more may come."""
    size = 0
    call = start  # the last message that is no tool's result
    for index in range(start, len(found)):
        over = size + _size(found[index]) > tokens
        if not _answers(found[index]):
            silent = index > start and abs(found[index].occurred_at - found[index - 1].occurred_at) > gap
            if silent or (index > start and over):
                return index
            call = index
        elif over and (call > start or size >= RESULTS * tokens):
            return call if call > start else index
        size += _size(found[index])
        called = found[index].tool_calls or _answers(found[index])  # more may come that belongs to it
        if size >= tokens and not (called and size < RESULTS * tokens):
            return index + 1
    return 0


def _answers(message: Message) -> bool:
    return message.role == Role.TOOL


def _size(message: Message) -> int:
    return max(1, message.tokens)  # messages without any text would be a stretch without an end


def shift(stretch: Sequence[Message], tokens: int) -> int:
    """Give how many messages stand before the deepest shift of topic; all of them where there is none.

    A shift is a place where the likeness of what is said before and after is lowest around, by `SHIFT` below the peaks
    that it falls from and rises to, and a quarter of `tokens` from both ends: so that one odd sentence cuts nothing.
    """
    sizes = [_size(message) for message in stretch]
    least, whole = LEAST * tokens, sum(sizes)
    if whole < 2 * least:
        return len(stretch)
    stems = [terms(message.text) if message.role in SPOKEN and message.text else Counter() for message in stretch]
    likeness = [_likeness(stems, sizes, place, BLOCK * tokens) for place in range(1, len(stretch))]
    depths = [
        (_depth(likeness, place - 1), place)
        for place, before in enumerate(accumulate(sizes[:-1]), 1)
        if least <= before <= whole - least and not _answers(stretch[place])
    ]
    deepest, place = max(depths, key=lambda found: found[0], default=(0.0, 0))
    return place if deepest >= SHIFT else len(stretch)


def _likeness(stems: Sequence[Counter[str]], sizes: Sequence[int], place: int, block: float) -> float:
    """Give the cosine of the stems in the blocks before and after a place."""
    before = _block(zip(reversed(stems[:place]), reversed(sizes[:place]), strict=True), block)
    after = _block(zip(stems[place:], sizes[place:], strict=True), block)
    norms = sqrt(sum(n * n for n in before.values()) * sum(n * n for n in after.values()))
    return sum(n * after[stem] for stem, n in before.items()) / norms if norms else 0.0


def _block(messages: Iterable[tuple[Counter[str], int]], block: float) -> Counter[str]:
    found: Counter[str] = Counter()
    for stems, size in messages:
        found.update(stems)
        block -= size
        if block <= 0:
            break
    return found


def _depth(likeness: Sequence[float], place: int) -> float:
    """Give how far the likeness falls to a place and rises after it; 0 where it goes on falling."""
    left = right = place
    while left > 0 and likeness[left - 1] >= likeness[left]:
        left -= 1
    while right < len(likeness) - 1 and likeness[right + 1] >= likeness[right]:
        right += 1
    if left == place or right == place:
        return 0.0
    return likeness[left] + likeness[right] - 2 * likeness[place]
