"""Grants: who may read or write the memory of a space. The policies of all tables read them.

A space is an owner of rows as a user is. Its transactions are for the space itself, or on behalf of a member
(`Database.on_behalf_of`). Grants are changed for the space itself alone.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from memstore.errors import Conflict, Forbidden
from memstore.models import Access, Grant
from memstore.store.database import ACCESS, Transaction
from memstore.store.sql import statements

SQL = statements("grants")


class HeldGrant(NamedTuple):
    member_id: UUID
    access: str
    holds: bool


async def of_space(tx: Transaction) -> list[Grant]:
    return await tx.all(SQL["of_space"], Grant)


async def access(tx: Transaction) -> Access:
    """Return what the member may do on whose behalf the transaction is; it has begun, so there is a grant."""
    return Access(str(await tx.get(ACCESS)))


async def check_admin(tx: Transaction, member_id: UUID) -> None:
    """Raise `Forbidden` unless the member is an admin of the transaction's space."""
    if await tx.value(SQL["access_of"], str, member_id=member_id) != Access.ADMIN:
        raise Forbidden("A member erases their own messages in a space; what others said only an admin erases.")


async def of_member(tx: Transaction) -> list[Grant]:
    return await tx.all(SQL["of_member"], Grant)


async def spaces_of(tx: Transaction) -> list[tuple[UUID, str]]:
    """Return the id and the name of every space that the user was ever a member of."""
    return await tx.tuples(SQL["spaces_of"])


async def change(
    tx: Transaction, space_name: str, member_id: UUID, member_name: str, access: Access | None, *, by: UUID | None
) -> None:
    """Grant a member access to the transaction's space, or take it away with None.

    `by` is the member who does so, None for the application: an admin, or the member who leaves. Raises `Forbidden`
    for others, and `Conflict` where no admin would be left.
    """
    held = {grant.member_id: grant for grant in await tx.all(SQL["lock"], HeldGrant) if grant.holds}
    admins = {id for id, grant in held.items() if grant.access == Access.ADMIN}
    leaves = access is None and by == member_id in held
    if by is not None and by not in admins and not leaves:
        raise Forbidden(f"Only an admin of the space {space_name!r} changes who may use it.")
    if access != Access.ADMIN and admins == {member_id}:
        raise Conflict(
            f"{member_name!r} is the last admin of the space {space_name!r}: make another member its admin first, or "
            "erase the space."
        )
    if access is None:
        await end(tx, member_id)
        return
    values = {"member_id": member_id, "member_name": member_name, "space_name": space_name, "access": str(access)}
    await tx.run(SQL["grant"], **values)


async def end(tx: Transaction, member_id: UUID) -> None:
    await tx.run(SQL["end"], member_id=member_id)


async def remove_space(tx: Transaction) -> None:
    await tx.run(SQL["remove_space"])


async def forget_member(tx: Transaction, member_id: UUID) -> None:
    await tx.run(SQL["forget_member"], member_id=member_id)
