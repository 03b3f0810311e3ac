"""What a user's scope offers for erasing: everything, messages, facts; the certificates; how long messages are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from memstore.client.arguments import check_limit, id_of
from memstore.client.opened import Opened
from memstore.errors import InvalidInput, NotFound
from memstore.ingest.check import KEPT_FOR, checked_days
from memstore.models import Certificate, ErasureScope, Fact, Message
from memstore.store import erasures, messages, retention


class AsyncErasable:
    """What can be erased of a user."""

    id: UUID
    name: str
    _opened: Opened

    async def erase(self, *, dry_run: bool = False) -> Certificate:
        """Erase everything of this user, in one transaction; give the certificate of what was removed.

        What was erased does not come back with the same export or import: tombstones, which are keyed hashes, keep it
        out. The user may go on as a new one. With `dry_run` nothing is done and the same is told.
        """
        return await self._erased(ErasureScope.USER, (), dry_run)

    async def erase_message(
        self, *messages: Message | UUID | Sequence[Message | UUID], dry_run: bool = False
    ) -> Certificate:
        """Erase messages, or lists of them, with all that was derived of them, quotes them or names them.

        Summaries and facts that rest on others too are made again without them by the next `derive`, or by workers.
        Raises `InvalidInput` for a message that this user does not have and never had.
        """
        return await self._erased(ErasureScope.MESSAGE, tuple(map(_id, _each(messages))), dry_run)

    async def erase_fact(self, *facts: Fact | UUID | Sequence[Fact | UUID], dry_run: bool = False) -> Certificate:
        """Erase facts, or lists of them, with what they were before edits; what they had superseded holds again.

        No derivation makes the same statement again. The messages that say it stay: erase those too, where the words
        themselves are to go.
        """
        return await self._erased(ErasureScope.FACT, tuple(map(id_of, _each(facts))), dry_run)

    async def erasures(self, *, limit: int = 1000) -> list[Certificate]:
        """Give the certificates of this user, the latest first; they are kept when the user is gone."""
        check_limit(limit)
        async with self._opened.database.scope(self.id) as scope:
            return await erasures.certificates(scope, limit=limit)

    async def erasure(self, id: UUID) -> Certificate:
        """Give one certificate. Raises `NotFound` where this user has none of this id."""
        async with self._opened.database.scope(self.id) as scope:
            found = await erasures.certificates(scope, id=id_of(id), limit=1)
        if not found:
            raise NotFound(f"There is no certificate {id}; erasures() gives them.")
        return found[0]

    async def describe(self, *, settings: Mapping[str, Any]) -> None:
        """Set settings of the user's own; what is not given stays, and None takes one away.

        `messages_days` is for how long messages are kept, for all conversations that do not say otherwise.
        """
        unknown = set(settings) - {KEPT_FOR}
        if unknown:
            raise InvalidInput(f"A user has no setting {sorted(map(str, unknown))[0]!r}; there is {KEPT_FOR!r}.")
        self._opened.taking(user=self.name)
        kept = {name: checked_days(value) for name, value in settings.items()}
        async with self._opened.database.scope(self.id) as scope:
            await messages.make_user(scope, self.name)
            await retention.keep_settings(scope, kept)

    async def _erased(self, scope: ErasureScope, ids: tuple[UUID, ...], dry_run: bool) -> Certificate:
        from memstore.derive.erasure.erase import Target, erase

        if scope != ErasureScope.USER and not ids:
            raise InvalidInput(f"Which {scope}? Give at least one.")
        return await erase(
            self._opened.database, Target(scope, self.id, ids=tuple(dict.fromkeys(ids))), dry_run=dry_run
        )


def _each(given: Iterable[Any]) -> Iterator[Any]:
    """Give what is given one by one, and the members of what is a list."""
    for one in given:
        if isinstance(one, list | tuple | set | frozenset):
            yield from one
        else:
            yield one


def _id(message: Message | UUID) -> UUID:
    found = message.id if isinstance(message, Message) else message
    if not isinstance(found, UUID):
        raise InvalidInput(f"{message!r:.60} is no message: give one, or its id.")
    return found
