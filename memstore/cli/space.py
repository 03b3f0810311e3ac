"""`space`: memory that users share, and who may use it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from memstore.cli import options
from memstore.cli.options import command, name_option
from memstore.cli.output import print_models, print_result
from memstore.cli.session import open_store

if TYPE_CHECKING:
    from memstore import MemoryStore, SpaceScope

app = typer.Typer(help="Memory that users share.", no_args_is_help=True, rich_markup_mode=None)
SpaceArgument = Annotated[str, typer.Argument(metavar="SPACE", help="The name of the space.")]
MemberArgument = Annotated[str, typer.Argument(metavar="MEMBER", help="A user, by name.")]
ForOption = Annotated[
    str | None, name_option("On behalf of this member; by default as the application.", "--user", "-u")
]
COLUMNS = ("space", "member", "access", "granted_at")


def _space(store: MemoryStore, name: str, user: str | None) -> SpaceScope:
    return store.space(name) if user is None else store.user(user).space(name)


@command(app)
def create(space: SpaceArgument, user: options.UserOption) -> None:
    """Create a space, whose admin the user is."""
    with open_store() as store:
        members = store.user(user).create_space(space).members()
    print_models(members, *COLUMNS)


@command(app, "list")
def list_(user: Annotated[str | None, name_option("Those of this user.", "--user", "-u")] = None) -> None:
    """List the spaces of a user with what the user may do there, or the names of all spaces."""
    with open_store() as store:
        if user is None:
            names = list(store.spaces())
            print_result(names, "\n".join(names))
            return
        grants = store.user(user).spaces()
    print_models(grants, *COLUMNS, empty=f"no space is shared with {user!r}")


@command(app)
def members(space: SpaceArgument, user: ForOption = None) -> None:
    """List the members of a space."""
    with open_store() as store:
        grants = _space(store, space, user).members()
    print_models(grants, *COLUMNS, empty=f"the space {space!r} has no members")


@command(app)
def grant(
    space: SpaceArgument,
    member: MemberArgument,
    access: Annotated[Literal["read", "write", "admin"], typer.Option(help="What the member may do.")] = "write",
    user: ForOption = None,
) -> None:
    """Let a user into a space, or change what a member may do there."""
    with open_store() as store:
        _space(store, space, user).grant(member, access)
    print_result({"space": space, "member": member, "access": access}, f"{member} may {access} in {space}")


@command(app)
def revoke(space: SpaceArgument, member: MemberArgument, user: ForOption = None) -> None:
    """Take a member's grant away. Messages of the member stay until they are erased."""
    with open_store() as store:
        _space(store, space, user).revoke(member)
    print_result({"space": space, "member": member}, f"{member} is no member of {space} any more")
