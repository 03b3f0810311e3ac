"""The store that a command is about, and help for who asks it and is answered little: why that may be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import memstore
from memstore.cli.show import hint

if TYPE_CHECKING:
    from memstore import MemoryStore

LOOKED_AT = 1000  # names, to find some that are like a wrong one
NAMED = 5


@contextmanager
def opened(database: str | None, **settings: Any) -> Iterator[MemoryStore]:
    """Open the store that the command is about."""
    with memstore.open(database, settings=settings) as store:
        yield store


@dataclass(frozen=True, slots=True)
class Asked:
    """Whom a question was about, and what it was narrowed by."""

    user: str
    conversation: str | None = None
    subject: str | None = None
    viewer: str | None = None
    as_of: datetime | None = None


def hint_why(store: MemoryStore, asked: Asked, *, empty: bool = True) -> bool:
    """Say on stderr why an answer is not what was expected, the first reason of them; give whether there is one.

    Of a name that nobody knows it is said always, of the others where the answer is `empty`.
    """
    reasons = (_unknown_place, *((_too_early, _not_derived, _unknown_subject, _not_visible) if empty else ()))
    told = next(filter(None, (reason(store, asked) for reason in reasons)), None)
    if told is not None:
        hint(told)
    return told is not None


def hint_if_unknown(store: MemoryStore, user: str) -> bool:
    """Say on stderr if nobody of this name is known; give whether that is so."""
    return hint_why(store, Asked(user), empty=False)


def hint_if_new(store: MemoryStore, user: str, conversation: str) -> bool:
    """Say on stderr if nothing was said yet in the conversation; give whether that is so."""
    return hint_why(store, Asked(user, conversation), empty=False)


def new_names(store: MemoryStore, user: str, conversation: str | None = None) -> str | None:
    """Give what to say, once that is done, of a command that makes a user or a conversation: it may be misspelt.

    None where both are known, or where there is nobody else, or nothing else, that could be meant.
    """
    if not _is_known(store, user):
        known = _users(store)
        return None if known == [] else _named(f"the user {user!r} is new", known, user)
    scope = store.user(user)
    if conversation is None or scope.conversation(conversation).info() is not None:
        return None
    names = [one.name for one in scope.conversations()]
    return _named(f"the conversation {conversation!r} is new", names, conversation) if names else None


def _unknown_place(store: MemoryStore, asked: Asked) -> str | None:
    scope, conversation = store.user(asked.user), asked.conversation
    if conversation is not None and scope.conversation(conversation).info() is not None:
        return None
    if not _is_known(store, asked.user):
        return _unknown("user", asked.user, _users(store))
    if conversation is None:
        return None
    return _unknown("conversation", conversation, [one.name for one in scope.conversations()])


def _too_early(store: MemoryStore, asked: Asked) -> str | None:
    """Of what is stored nothing is known before it was, whenever it was said: who looks into the past may mean that."""
    if asked.as_of is None:
        return None
    known = [one for one in store.user(asked.user).conversations() if asked.conversation in (None, one.name)]
    first = min((one.created_at for one in known), default=None)
    if first is None or asked.as_of >= first:
        return None
    began = f"{first.astimezone():%Y-%m-%d %H:%M}"
    return (
        f"nothing of {asked.conversation or asked.user!r} was known then: it came in from {began} on. "
        "--as-of goes by that; recall --since and --until go by when something was said"
    )


def _not_derived(store: MemoryStore, asked: Asked) -> str | None:
    pending = store.stats(user=asked.user)["pending"]
    return f"not everything of {asked.user!r} is derived yet: memstore derive" if pending else None


def _unknown_subject(store: MemoryStore, asked: Asked) -> str | None:
    if asked.subject is None:
        return None
    subjects = Counter(fact.subject for fact in store.user(asked.user).facts(state="all"))
    if not subjects or asked.subject.casefold() in {one.casefold() for one in subjects}:
        return None
    return _unknown("subject", asked.subject, [one for one, _ in subjects.most_common()])


def _not_visible(_: MemoryStore, asked: Asked) -> str | None:
    if asked.viewer is None:
        return None
    return f"only what {asked.viewer!r} may see was looked at: is that the viewer's name?"


def _is_known(store: MemoryStore, user: str) -> bool:
    # Facts by hand are of no conversation.
    return bool(store.user(user).conversations()) or store.stats(user=user)["units"] > 0


def _users(store: MemoryStore) -> list[str] | None:
    """Give users' names; None where this login may not see who there is."""
    try:
        return list(islice(store.users(), LOOKED_AT))
    except memstore.DatabaseError:
        return None


def _unknown(kind: str, name: str, known: Sequence[str] | None) -> str:
    return f"no {kind} {name!r}: nothing is stored yet" if known == [] else _named(f"no {kind} {name!r}", known, name)


def _named(what: str, known: Sequence[str] | None, name: str) -> str:
    """Give what is said of a name, with those names that are like it, or the first ones."""
    from difflib import get_close_matches

    if known is None:
        return f"{what}; none is known to this login"
    near = get_close_matches(name, known, n=NAMED) or known[:NAMED]
    more = f" and {len(known) - len(near)} more" if len(known) > len(near) else ""
    return f"{what}; known: {', '.join(near)}{more}"
