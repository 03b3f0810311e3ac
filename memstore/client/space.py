"""A space: memory that users share by grants."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from memstore import ids
from memstore.client.runtime import Runtime
from memstore.client.user import AsyncUserScope
from memstore.errors import Conflict, Forbidden, InvalidInput
from memstore.ingest.validation import RETENTION_SETTING, check_choice, check_name
from memstore.models import Access, Certificate, ErasureScope, Grant
from memstore.store import grants, messages


class AsyncSpaceScope(AsyncUserScope):
    """The memory of a space, for the application (`store.space(name)`) or on behalf of a member (`user.space(name)`).

    It has what a user's memory has: conversations, facts, documents, recall, contexts, erasure, export. A member needs
    a grant for each call, which the database checks: to "read", to "write", or as an "admin", who grants and erases.

    >>> alice.create_space("otter").grant("bob")
    >>> bob.space("otter").conversation("standup").add("user", "We ship on Friday.")
    """

    def __init__(self, runtime: Runtime, name: str, member: AsyncUserScope | None = None) -> None:
        check_name(name, "space")
        super().__init__(runtime, ids.SPACE_PREFIX + name)
        self.space_name = name
        self.member = member
        if member is not None:
            self._database = runtime.database.on_behalf_of(member.id)
            self._speaker = member.name

    async def members(self) -> list[Grant]:
        """Return the grants of the space, by the names of its members."""
        await self.access()
        async with self._runtime.database.user_transaction(self.id) as tx:
            return await grants.of_space(tx)

    async def grant(self, member: str, access: str = "write") -> None:
        """Let a user into the space: to "read", to "write", or as an "admin". Of members only an admin grants."""
        check_choice("access", access, list(Access))
        await self._change(member, Access(access))

    async def revoke(self, member: str) -> None:
        """Take a member's grant away: an admin that of anybody, and each member their own.

        Messages of the member stay until they are erased. Raises `Conflict` for the last admin.
        """
        await self._change(member, None)

    def space(self, name: str) -> AsyncSpaceScope:
        """Raise `InvalidInput`: only users have spaces."""
        raise InvalidInput(f"The space {self.space_name!r} is no member of {name!r}: only users have and share spaces.")

    async def _create(self) -> None:
        assert self.member is not None
        self._runtime.redactor.reject_secret_names(user=self.member.name, space=self.space_name)
        async with self._runtime.database.user_transaction(self.id) as tx:
            if not await messages.add_user(tx, self.name):
                raise Conflict(f"There is a space {self.space_name!r}: choose another name, or ask to be let in.")
            await grants.change(tx, self.space_name, self.member.id, self.member.name, Access.ADMIN, by=None)

    async def _change(self, member: str, access: Access | None) -> None:
        user = AsyncUserScope(self._runtime, member)
        self._runtime.redactor.reject_secret_names(user=member, space=self.space_name)
        by = None if self.member is None else self.member.id
        await self.access()
        # For the space itself: a member's transaction changes no grants.
        async with self._runtime.database.user_transaction(self.id) as tx:
            await messages.make_user(tx, self.name)
            await grants.change(tx, self.space_name, user.id, member, access, by=by)

    async def access(self) -> Access:
        """Return what the member may do; the application may do everything. Raises `NotFound` without a grant."""
        if self.member is None:
            return Access.ADMIN
        async with self._database.user_transaction(self.id) as tx:
            return await grants.access(tx)

    async def erase(self, *, dry_run: bool = False) -> Certificate:
        """Erase the space with everything in it, as the application or an admin; see `user.erase`."""
        return await super().erase(dry_run=dry_run)

    async def _find_admin(self, scope: ErasureScope, item_ids: Sequence[UUID]) -> UUID | None:
        """Return the member, if it is more than their own messages; raise `Forbidden` then unless they are an admin."""
        if self.member is None:
            return None
        held = await self.access()
        said = await self.messages(item_ids) if scope == ErasureScope.MESSAGE else []
        if item_ids and len({message.id for message in said if message.name == self.member.name}) == len(item_ids):
            return None
        if held != Access.ADMIN:
            raise Forbidden("A member erases their own messages in a space; what others said only an admin erases.")
        return self.member.id

    async def _check_rules(self, settings: Collection[str]) -> None:
        if RETENTION_SETTING in settings and await self.access() != Access.ADMIN:
            raise Forbidden("A rule erases what others said, too: only an admin sets how long a space keeps messages.")
