"""Spaces: a user's, and the members of each."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import Field

from memstore.client.space import AsyncSpaceScope
from memstore.models import Access, Grant
from memstore.server.http import dependencies
from memstore.server.http.dependencies import NamePart, StrictModel, UserDep
from memstore.server.http.errors import Problem

spaces = APIRouter(prefix=dependencies.USER, tags=["spaces"])


class NewSpace(StrictModel):
    """A space to be created."""

    name: str = Field(min_length=1)


class MemberAccess(StrictModel):
    """What a member may do."""

    access: Access = Access.WRITE


async def get_space(user: UserDep) -> AsyncSpaceScope:
    if not isinstance(user, AsyncSpaceScope):
        raise Problem(
            HTTPStatus.NOT_FOUND, "not-found", "A user has no members: name a space, as /spaces/otter/members."
        )
    return user


SpaceDep = Annotated[AsyncSpaceScope, Depends(get_space)]


@spaces.get("/spaces")
async def list_spaces(user: UserDep) -> list[Grant]:
    """Return the spaces that are shared with the user, and what the user may do there."""
    return await user.spaces()


@spaces.post("/spaces", status_code=HTTPStatus.CREATED)
async def create_space(user: UserDep, body: NewSpace) -> list[Grant]:
    """Create a space, whose admin the user is; return its members. There is one of each name."""
    return await (await user.create_space(body.name)).members()


@spaces.get("/members")
async def list_members(space: SpaceDep) -> list[Grant]:
    """Return the members of a space: GET /users/alice/spaces/otter/members."""
    return await space.members()


@spaces.put("/members/{member:name}")
async def grant(space: SpaceDep, member: NamePart, body: MemberAccess) -> list[Grant]:
    """Let a user into the space, or change what a member may do; return the members. An admin's."""
    await space.grant(member, body.access)
    return await space.members()


@spaces.delete("/members/{member:name}", status_code=HTTPStatus.NO_CONTENT)
async def revoke(space: SpaceDep, member: NamePart) -> None:
    """Take a member's grant away: an admin that of anybody, and each member their own."""
    await space.revoke(member)
