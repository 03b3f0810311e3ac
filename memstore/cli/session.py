"""Opens the store of a command, and hints on stderr at names that nobody knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

import memstore
from memstore.cli.output import echo_hint

if TYPE_CHECKING:
    from memstore import MemoryStore

MAX_NAMES = 1000  # that are searched for some like a wrong one
SHOWN_NAMES = 5


@contextmanager
def open_store(database: str | None, **settings: Any) -> Iterator[MemoryStore]:
    """Open the store of a command, and close it in the end."""
    with memstore.open(database, settings=settings) as store:
        yield store


def hint_why_empty(store: MemoryStore, user: str, conversation: str | None = None) -> None:
    """Hint at an unknown name, else at what is not derived yet."""
    if not hint_if_unknown(store, user, conversation) and store.stats(user=user)["pending"]:
        echo_hint(f"not everything of {user!r} is derived yet: memstore derive")


def hint_if_unknown(store: MemoryStore, user: str, conversation: str | None = None) -> bool:
    """Hint if there is no such user, or no such conversation; return whether that is so."""
    scope = store.user(user)
    if conversation is not None and scope.conversation(conversation).info() is not None:
        return False
    conversations = scope.conversations()
    if not conversations and not store.stats(user=user)["units"]:  # facts by hand are of no conversation
        echo_hint(_describe("user", user, _user_names(store)))
        return True
    if conversation is None:
        return False
    echo_hint(_describe("conversation", conversation, [each.name for each in conversations]))
    return True


def _user_names(store: MemoryStore) -> list[str] | None:
    """Return the names of users; None if this login may not see them."""
    try:
        return list(islice(store.users(), MAX_NAMES))
    except memstore.DatabaseError:
        return None


def _describe(kind: str, name: str, known: Sequence[str] | None) -> str:
    """Return what to say of an unknown name, with names that are like it, or with the first ones."""
    from difflib import get_close_matches

    if known is None:
        return f"no {kind} {name!r}; none is known to this login"
    if not known:
        return f"no {kind} {name!r}: nothing is stored yet"
    near = get_close_matches(name, known, n=SHOWN_NAMES) or known[:SHOWN_NAMES]
    more = f" and {len(known) - len(near)} more" if len(known) > len(near) else ""
    return f"no {kind} {name!r}; known: {', '.join(near)}{more}"
