"""The store that a command is about, and help for who asks it about somebody it does not know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

import memstore
from memstore.cli.encoder import RESIDENT
from memstore.cli.show import hint

if TYPE_CHECKING:
    from memstore import MemoryStore

LOOKED_AT = 1000  # names, to find some that are like a wrong one
NAMED = 5


@contextmanager
def opened(database: str | None, **settings: Any) -> Iterator[MemoryStore]:
    """Open the store that the command is about; its embedder is the one that stays, where one may."""
    from memstore.residence import is_worth_it
    from memstore.settings import load

    told = load(settings)
    if is_worth_it(told.embedder, told.resident_minutes):
        settings["embedder"] = f"{RESIDENT}{told.embedder}"
    with memstore.open(database, settings=settings) as store:
        yield store


def hint_if_unknown(store: MemoryStore, user: str) -> bool:
    """Say on stderr if nobody of this name is known; give whether that is so."""
    if store.user(user).conversations() or store.stats(user=user)["units"]:  # facts by hand are of no conversation
        return False
    hint(_unknown("user", user, _users(store)))
    return True


def _users(store: MemoryStore) -> list[str] | None:
    """Give users' names; None where this login may not see who there is."""
    try:
        return list(islice(store.users(), LOOKED_AT))
    except memstore.DatabaseError:
        return None


def hint_why_empty(store: MemoryStore, user: str, conversation: str | None = None) -> None:
    """Say on stderr why nothing was found, where it is not that there is nothing."""
    if conversation is not None and hint_if_new(store, user, conversation):
        return
    if not hint_if_unknown(store, user) and store.stats(user=user)["pending"]:
        hint(f"not everything of {user!r} is derived yet: memstore derive")


def hint_if_nobody(store: MemoryStore, user: str, subject: str | None) -> None:
    """Say on stderr if nothing is known about somebody, and about whom there is something."""
    told = store.user(user).facts(state="all") if subject is not None else []
    subjects = Counter(fact.subject for fact in told)
    if subject is not None and subjects and subject.casefold() not in {one.casefold() for one in subjects}:
        hint(_unknown("subject", subject, [one for one, _ in subjects.most_common()]))


def hint_if_new(store: MemoryStore, user: str, conversation: str) -> bool:
    """Say on stderr if nothing was said yet in the conversation; give whether that is so."""
    scope = store.user(user)
    if scope.conversation(conversation).info() is not None:
        return False
    if not hint_if_unknown(store, user):
        hint(_unknown("conversation", conversation, [one.name for one in scope.conversations()]))
    return True


def _unknown(kind: str, name: str, known: Sequence[str] | None) -> str:
    from difflib import get_close_matches

    if known is None:
        return f"no {kind} {name!r}; none is known to this login"
    if not known:
        return f"no {kind} {name!r}: nothing is stored yet"
    near = get_close_matches(name, known, n=NAMED) or known[:NAMED]
    more = f" and {len(known) - len(near)} more" if len(known) > len(near) else ""
    return f"no {kind} {name!r}; known: {', '.join(near)}{more}"
