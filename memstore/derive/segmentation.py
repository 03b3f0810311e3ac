"""Where a conversation is cut into segments: at silences, at shifts of topic, and at a bound of tokens. Pure.

A segment closes where a long silence follows or where no more tokens fit. A closed one is looked at once more: where
its topic shifts, only what stands before the shift is a segment, and the rest goes on. So every cut follows from the
messages since the last cut and up to a silence or the bound, and the same history gives the same segments however it
was cut into batches. The segment that is still open waits.

Topics are told apart by words alone, as TextTiling does: stems before and after a place, and how far their similarity
falls below its peaks on both sides. Vectors find hardly more (docs/reference/summaries.md), would cost
an embedding, and differ in their last bits from batch to batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import accumulate
from math import sqrt

from memstore.models import Message, Role
from memstore.store.tokenize import terms

SPEAKERS = frozenset({Role.USER, Role.ASSISTANT})  # whose words have a topic
MIN_SHARE = 0.25  # of the bound: no shift is looked for nearer than that to the last cut, or to the end
BLOCK = 0.125  # of the bound: what is compared before and after a place
MAX_CALL = 8  # times the bound: how long a call may be that is cut nowhere
MIN_DEPTH = 0.25  # how deep the similarity must fall, of at most 2


def split_segments(messages: Sequence[Message], gap: timedelta, tokens: int) -> Iterator[Sequence[Message]]:
    """Yield the closed segments, each of at most `tokens` tokens, or one message; the open rest waits.

    A call of tools and its results stay together, up to `MAX_CALL` times the tokens.
    """
    start = 0
    while stop := _find_close(messages, start, gap, tokens):
        stop = start + find_topic_shift(messages[start:stop], tokens)
        yield messages[start:stop]
        start = stop


def _find_close(messages: Sequence[Message], start: int, gap: timedelta, tokens: int) -> int:
    """Return the index after the messages that can belong to one segment; 0 where more may come."""
    size = 0
    call = start  # the last message that is no tool's result
    for index in range(start, len(messages)):
        message = messages[index]
        is_over = size + _size(message) > tokens
        is_result = message.role == Role.TOOL
        if not is_result:
            is_silent = index > start and abs(message.occurred_at - messages[index - 1].occurred_at) > gap
            if is_silent or (index > start and is_over):
                return index
            call = index
        elif is_over and (call > start or size >= MAX_CALL * tokens):
            return call if call > start else index
        size += _size(message)
        has_call = message.tool_calls or is_result  # more may come that belongs to it
        if size >= tokens and not (has_call and size < MAX_CALL * tokens):
            return index + 1
    return 0


def _size(message: Message) -> int:
    return max(1, message.tokens)  # messages without any text would be a segment without an end


def find_topic_shift(segment: Sequence[Message], tokens: int) -> int:
    """Return how many messages stand before the deepest shift of topic; all of them without one.

    A shift is a place where what is said before and after is least similar, by `MIN_DEPTH` below the peaks around, and
    a quarter of `tokens` from both ends: so that one odd sentence cuts nothing.
    """
    sizes = [_size(message) for message in segment]
    least, whole = MIN_SHARE * tokens, sum(sizes)
    if whole < 2 * least:
        return len(segment)
    stems = [terms(message.text) if message.role in SPEAKERS and message.text else Counter() for message in segment]
    similarity = [_similarity(stems, sizes, place, BLOCK * tokens) for place in range(1, len(segment))]
    depths = [
        (_depth(similarity, place - 1), place)
        for place, before in enumerate(accumulate(sizes[:-1]), 1)
        if least <= before <= whole - least and segment[place].role != Role.TOOL
    ]
    depth, place = max(depths, key=lambda pair: pair[0], default=(0.0, 0))
    return place if depth >= MIN_DEPTH else len(segment)


def _similarity(stems: Sequence[Counter[str]], sizes: Sequence[int], place: int, block: float) -> float:
    """Return the cosine of the stems in the blocks before and after a place."""
    before = _count_block(zip(reversed(stems[:place]), reversed(sizes[:place]), strict=True), block)
    after = _count_block(zip(stems[place:], sizes[place:], strict=True), block)
    norms = sqrt(sum(n * n for n in before.values()) * sum(n * n for n in after.values()))
    return sum(n * after[stem] for stem, n in before.items()) / norms if norms else 0.0


def _count_block(messages: Iterable[tuple[Counter[str], int]], block: float) -> Counter[str]:
    total: Counter[str] = Counter()
    for stems, size in messages:
        total.update(stems)
        block -= size
        if block <= 0:
            break
    return total


def _depth(similarity: Sequence[float], place: int) -> float:
    """Return how far the similarity falls to a place and rises after it; 0 where it goes on falling."""
    left = right = place
    while left > 0 and similarity[left - 1] >= similarity[left]:
        left -= 1
    while right < len(similarity) - 1 and similarity[right + 1] >= similarity[right]:
        right += 1
    if left == place or right == place:
        return 0.0
    return similarity[left] + similarity[right] - 2 * similarity[place]
