"""Whose memory a path names: a user's, or on the user's behalf that of a space."""

from __future__ import annotations

from memstore.client.store import AsyncMemoryStore
from memstore.client.user import AsyncUserScope

# Between the names of a user and of a space. No name has it.
SEPARATOR = "\0"


def owner_named(store: AsyncMemoryStore, name: str) -> AsyncUserScope:
    """Return the user of this name, or the space behind the user's name."""
    user, is_space, space = name.partition(SEPARATOR)
    return store.user(user).space(space) if is_space else store.user(user)
