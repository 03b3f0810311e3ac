"""Erasing of a user's memory, with the certificates."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any
from uuid import UUID

from memstore.client.runtime import Runtime
from memstore.errors import InvalidInput, NotFound
from memstore.ingest.validation import check_number, to_uuid
from memstore.models import Certificate, ErasureScope, Fact, Message
from memstore.store import erasure
from memstore.store.database import Database


class AsyncUserErasure:
    """The calls of a user's scope that erase."""

    id: UUID
    name: str
    _runtime: Runtime
    _database: Database

    async def erase(self, *, dry_run: bool = False) -> Certificate:
        """Erase everything of this user in one transaction; return the certificate of what was removed.

        Messages of the user in spaces are erased before, with a certificate of each space in this one, and the grants.

        Tombstones, which are keyed hashes, keep it from coming back with an export or an import. The user may go on as
        a new one. With `dry_run` nothing is erased, and the certificate says what would be.
        """
        from memstore.derive.erasure import erase_user

        admin = await self._find_admin(ErasureScope.USER, ())
        return await erase_user(self._runtime.database, self.id, self.name, admin=admin, dry_run=dry_run)

    async def erase_message(
        self, *messages: Message | UUID | Sequence[Message | UUID], dry_run: bool = False
    ) -> Certificate:
        """Erase messages, or lists of them, with all that was derived from them, quotes them or names them.

        Summaries and facts that rest on other messages too are made again without these by the next `derive`. Raises
        `InvalidInput` for a message that this user never had.
        """
        return await self._erase(ErasureScope.MESSAGE, messages, dry_run)

    async def erase_fact(self, *facts: Fact | UUID | Sequence[Fact | UUID], dry_run: bool = False) -> Certificate:
        """Erase facts, or lists of them, with what they were before edits; facts they had superseded are active again.

        No derivation makes the same statement again. The messages that say it stay; erase those too if the words
        themselves are to go.
        """
        return await self._erase(ErasureScope.FACT, facts, dry_run)

    async def _erase(
        self, scope: ErasureScope, items: Sequence[Any], dry_run: bool, *, conversation_id: UUID | None = None
    ) -> Certificate:
        from memstore.derive.erasure import ErasureTarget, erase

        lists = [item if isinstance(item, list | tuple | set | frozenset) else [item] for item in items]
        item_ids = tuple(dict.fromkeys(to_uuid(item) for item in chain.from_iterable(lists)))
        if conversation_id is None and not item_ids:
            raise InvalidInput(f"Which {scope}? Give at least one.")
        admin = await self._find_admin(scope, item_ids)
        target = ErasureTarget(scope, self.id, conversation_id, item_ids, admin=admin)
        return await erase(self._database, target, dry_run=dry_run)

    async def _find_admin(self, scope: ErasureScope, item_ids: Sequence[UUID]) -> UUID | None:
        """Return the member of a space who erases what only an admin may; raise `Forbidden` where this one may not."""
        return None

    async def erasures(self, *, limit: int = 1000) -> list[Certificate]:
        """Return the certificates of this user, the latest first; they are kept when the user is gone."""
        check_number(limit, "limit")
        async with self._database.user_transaction(self.id) as tx:
            return await erasure.certificates(tx, limit=limit)

    async def erasure(self, id: UUID) -> Certificate:
        """Return one certificate. Raises `NotFound` if this user has none of this id."""
        async with self._database.user_transaction(self.id) as tx:
            certificates = await erasure.certificates(tx, id=to_uuid(id), limit=1)
        if not certificates:
            raise NotFound(f"There is no certificate {id}; erasures() gives them.")
        return certificates[0]
