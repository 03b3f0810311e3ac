"""Messages of a call that has a key: each that has no external id gets one of it, and the key stands for them all."""

from __future__ import annotations

from collections.abc import Container, Sequence
from uuid import UUID

from memstore import ids
from memstore.errors import Conflict, InvalidInput
from memstore.models import Message

LONGEST_KEY = 200  # characters


def check_key(key: str) -> None:
    """Refuse what is no key with `InvalidInput`."""
    if not isinstance(key, str) or not 0 < len(key) <= LONGEST_KEY or not key.isprintable() or not key.isascii():
        raise InvalidInput(f"key: give 1 to {LONGEST_KEY} printable ASCII characters, such as a UUID.")


def name(drafts: Sequence[Message], key: str) -> None:
    """Give those of a call's messages that have no external id one that follows from its key, and their place."""
    for number, draft in enumerate(drafts, 1):
        if draft.external_id is None:
            external_id = _of(key, number)
            vars(draft).update(external_id=external_id, id=ids.message_id(draft.conversation_id, external_id))


def beyond(drafts: Sequence[Message], key: str) -> UUID:
    """Give the id that one message more would have."""
    return ids.message_id(drafts[0].conversation_id, _of(key, len(drafts) + 1))


def check_whole(drafts: Sequence[Message], key: str, known: Container[UUID]) -> None:
    """Raise `Conflict` for a list that is longer or shorter than the one that is stored under its key.

    One that lacks only messages at its end with an `external_id` of their own is not told from the whole.
    """
    own = [draft.id for number, draft in enumerate(drafts, 1) if draft.external_id == _of(key, number)]
    some_known, all_known = any(id in known for id in own), all(draft.id in known for draft in drafts)
    if beyond(drafts, key) in known or (some_known and not all_known):
        raise Conflict(
            f"What is stored under the key {key!r} were more or fewer messages, or some of them are erased. Give a new "
            "key; nothing of this call was stored."
        )


def _of(key: str, number: int) -> str:
    return f"key:{key}:{number}"
