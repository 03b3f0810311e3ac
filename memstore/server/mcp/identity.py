"""Ids that a model can say: short, with the tier in front, and resolved within one user's memory.

fact:3f2a91c4       how the id begins, 4 digits or more; ids of facts and summaries are as good as random
summary:9ac01f22
message:lisbon#12   the conversation and the number in it: ids of messages begin with their time, and are long
"""

from __future__ import annotations

from uuid import UUID

from memstore.errors import InvalidInput
from memstore.memory.user import AsyncUserScope
from memstore.models import Message

SHORT = 8  # digits: of 10,000 facts two share them in one memory of a hundred, and then both are named
FACT, MESSAGE, SUMMARY, RECEIPT = "fact", "message", "summary", "receipt"
WHERE = "search_memories and list_memories give ids."


def short(kind: str, id: UUID) -> str:
    """Give the id of a fact or a summary as a model is told it."""
    return f"{kind}:{id.hex[:SHORT]}"


def of_message(conversation: str, seq: int) -> str:
    """Give the id of a message as a model is told it."""
    return f"{MESSAGE}:{conversation}#{seq}"


def kind_of(given: str) -> tuple[str, str]:
    """Give what an id is of, and the rest of it; what says nothing of its kind is a fact's."""
    kind, colon, rest = given.strip().partition(":")
    return (kind, rest) if colon and kind in (FACT, MESSAGE, SUMMARY) else (FACT, given.strip())


async def fact_id(user: AsyncUserScope, given: str) -> UUID:
    """Give the id of a fact. Raises `InvalidInput` for what is none of this user's."""
    kind, rest = kind_of(given)
    if kind != FACT:
        raise InvalidInput(
            f"{given!r} is a {kind}: only facts can be changed or deleted, and what was said stays as it was said. "
            "list_memories gives facts."
        )
    return await found(user, rest, FACT)


async def found(user: AsyncUserScope, beginning: str, kind: str) -> UUID:
    """Give the id that begins like this. Raises `InvalidInput` where none does, or several do."""
    try:
        return await user.find_id(beginning, of=kind)
    except InvalidInput as error:
        raise InvalidInput(f"{error} {WHERE}") from None


def place_of(given: str) -> tuple[str, int]:
    """Give the conversation and the number of a message's id, without its kind."""
    conversation, sign, seq = given.rpartition("#")
    if not (sign and conversation and seq.isdecimal() and len(seq) <= 18):
        raise InvalidInput(f"'message:{given}' is no id of a message; give one like 'message:lisbon#12'. {WHERE}")
    return conversation, int(seq)


async def message(user: AsyncUserScope, given: str) -> Message:
    """Give the message of an id such as 'message:lisbon#12', or 'lisbon#12'."""
    kind, rest = kind_of(given)
    if kind == SUMMARY or (kind == FACT and "#" not in rest):
        raise InvalidInput(f"{given!r} is no message; give the id of one, like 'message:lisbon#12'. {WHERE}")
    conversation, seq = place_of(rest)
    said = await user.conversation(conversation).messages(from_seq=seq, to_seq=seq)
    if not said:
        raise InvalidInput(f"This user has no message {seq} in the conversation {conversation!r}. {WHERE}")
    return said[0]
