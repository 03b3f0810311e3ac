"""Ids that a model can repeat: short, with the tier in front, and resolved within one user's memory.

fact:3f2a91c4       how the id begins, 4 digits or more; ids of facts and summaries are as good as random
summary:9ac01f22
message:lisbon#12   the conversation and the number in it: ids of messages begin with their time, and are long
"""

from __future__ import annotations

from uuid import UUID

from memstore.client.user import AsyncUserScope
from memstore.errors import InvalidInput
from memstore.models import Message

DIGITS = 8  # of 10,000 facts two share them in one memory of a hundred, and then both are named
FACT, MESSAGE, SUMMARY, RECEIPT = "fact", "message", "summary", "receipt"
HINT = "search_memories and list_memories give ids."


def shorten(kind: str, id: UUID) -> str:
    """Return the short id of a fact or a summary."""
    return f"{kind}:{id.hex[:DIGITS]}"


def message_id(conversation: str, seq: int) -> str:
    """Return the short id of a message."""
    return f"{MESSAGE}:{conversation}#{seq}"


def parse(id: str) -> tuple[str, str]:
    """Return the kind of an id and what follows it; without a kind it is a message where it has a #, else a fact."""
    kind, colon, rest = id.strip().partition(":")
    if colon and kind in (FACT, MESSAGE, SUMMARY):
        return kind, rest
    return (MESSAGE if "#" in id else FACT), id.strip()


async def find(user: AsyncUserScope, beginning: str, kind: str) -> UUID:
    """Return the whole id that begins so. Raises `InvalidInput` if none does, or several do."""
    try:
        return await user.resolve_id(beginning, kind=kind)
    except InvalidInput as error:
        raise InvalidInput(f"{error} {HINT}") from None


async def find_fact(user: AsyncUserScope, id: str) -> UUID:
    """Return the whole id of a fact. Raises `InvalidInput` if this user has no such fact."""
    kind, rest = parse(id)
    if kind != FACT:
        raise InvalidInput(
            f"{id!r} is a {kind}: only facts can be changed or deleted, and what was said stays as it was said. "
            "list_memories gives facts."
        )
    return await find(user, rest, FACT)


async def find_message(user: AsyncUserScope, id: str) -> tuple[str, Message]:
    """Return a message and the name of its conversation. Raises `InvalidInput` if this user has no such message."""
    kind, rest = parse(id)
    conversation, _, seq = rest.rpartition("#")
    if kind != MESSAGE or not (conversation and seq.isdecimal() and len(seq) <= 18):
        raise InvalidInput(f"{id!r} is no id of a message; give one like 'message:lisbon#12'. {HINT}")
    messages = await user.conversation(conversation).messages(from_seq=int(seq), to_seq=int(seq))
    if not messages:
        raise InvalidInput(f"This user has no message {int(seq)} in the conversation {conversation!r}. {HINT}")
    return conversation, messages[0]
