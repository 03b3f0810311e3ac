"""`erase`, `erasures` and `verify-erasure`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from memstore.cli.options import UserOption, common, flag, name_option
from memstore.cli.output import echo, echo_hint, print_json, print_rows
from memstore.cli.session import hint_why_little, open_store
from memstore.text import quantify, read_json

if TYPE_CHECKING:
    from memstore import Certificate


def erase(
    what: Annotated[Literal["user", "conversation", "message", "fact"], typer.Argument(help="What is erased.")],
    names: Annotated[list[str], typer.Argument(metavar="NAME|ID...", help="A name, or ids of messages or facts.")],
    user: Annotated[str | None, name_option("The owner; required unless a user is erased.", "--user", "-u")] = None,
    yes: Annotated[bool, flag("--yes", "Do it without asking.", "-y")] = False,
    dry_run: Annotated[bool, flag("--dry-run", "Show what would be removed, and remove nothing.")] = False,
) -> None:
    """Erase, with everything that was derived; print a certificate. It does not come back.

    A user: everything. A conversation: its messages, and the facts that nothing else says. A message: it, and what was
    derived from it; derive makes again what rests on other messages too. A fact: its messages stay.
    """
    from memstore.ingest.validation import to_uuid

    if what in ("user", "conversation") and len(names) > 1:
        raise typer.BadParameter(f"give one {what}.")
    if (user is None) != (what == "user"):
        raise typer.BadParameter("name a user by NAME; anything else needs --user.")
    owner = names[0] if user is None else user
    with open_store() as store:
        scope = store.user(owner)
        target = f"everything of {owner!r}" if what == "user" else f"{what} {', '.join(names)} of {owner!r}"
        if not (yes or dry_run) and not (sys.stdin.isatty() and typer.confirm(f"Erase {target}?", err=True)):
            echo_hint("nothing was erased: say yes, or give --yes; --dry-run shows what would be removed")
            raise typer.Exit(1)
        if what == "user":
            certificate = scope.erase(dry_run=dry_run)
            if certificate.is_empty:
                hint_why_little(store, owner)
        elif what == "conversation":
            certificate = scope.conversation(names[0]).erase(dry_run=dry_run)
        elif what == "message":
            certificate = scope.erase_message(*map(to_uuid, names), dry_run=dry_run)
        else:
            certificate = scope.erase_fact(*(scope.resolve_id(id, kind="fact") for id in names), dry_run=dry_run)
    _print(certificate)


def erasures(user: UserOption) -> None:
    """List the certificates of what was erased of a user, the latest first; they are kept when the user is gone."""
    with open_store() as store:
        certificates = store.user(user).erasures()
    rows = [(_when(each), each.scope, sum(each.counts.values()), each.tombstones, each.id) for each in certificates]
    print_rows(certificates, ("when", "what", "rows", "tombstones", "id"), rows, f"nothing was erased of {user!r}")


def verify_erasure(
    certificate: Annotated[Path, typer.Argument(help="What erase or erasures --json printed.")],
) -> None:
    """Look through every table for what was erased; exit 1 where something of it is left."""
    from memstore import Certificate

    try:
        body = read_json(certificate.read_text(encoding="utf-8"))
        certificates = [Certificate.from_dict(each) for each in (body if isinstance(body, list) else [body])]
    except (OSError, ValueError) as error:
        expected = "give a file with what memstore erase --json or memstore erasures --json has printed."
        raise typer.BadParameter(f"{str(certificate)!r} holds no certificate, {error}: {expected}") from None
    if any(each.id is None and not each.is_empty for each in certificates):
        raise typer.BadParameter(f"{str(certificate)!r} is of a dry run: nothing was erased that can be verified.")
    with open_store() as store:
        results = [(each, store.verify_erasure(each)) for each in certificates]
    if common.as_json:
        print_json([{"certificate": each.id} | asdict(remains) for each, remains in results])
    for each, remains in results if not common.as_json else ():
        left = ", ".join(f"{quantify(rows, 'row')} of {table}" for table, rows in remains.found.items())
        result = "not searched, the conversation goes on"
        if left or each.scope != "retention":
            rest = f"something is left: {left}" if left else "nothing is left in them"
            result = f"looked through {remains.tables} tables: {rest}"
        echo(f"{each.scope}, {_when(each)}: {result}")
    if not all(remains.is_clean for _, remains in results):
        raise typer.Exit(1)


def _print(certificate: Certificate) -> None:
    scan, is_empty = certificate.scan, certificate.is_empty
    rows: list[tuple[object, object]] = [(certificate.scope, id) for id in certificate.erased[:20]]
    rows += [(place, count) for place, count in certificate.counts.items() if count]
    for space, of_space in certificate.spaces.items():
        rows += [(f"{place} in the space {space}", count) for place, count in of_space.counts.items() if count]
    rows += [(f"to be made again by memstore derive, {deriver}", count) for deriver, count in certificate.again.items()]
    if certificate.id is not None:
        rows += [("tombstones", certificate.tombstones), ("looked for in", f"{scan.tables} tables")]
        rows += [("rows found", sum(scan.found.values())), ("certificate", certificate.id)]
    print_rows(certificate, ("what", "how many"), [] if is_empty else rows, "there was nothing to erase")
    if certificate.id is None and not is_empty:
        echo_hint("nothing was removed: this shows what would be")
    for hint in certificate.hints:
        echo_hint(hint)


def _when(certificate: Certificate) -> str:
    return f"{certificate.recorded_at:%Y-%m-%d %H:%M:%S}" if certificate.recorded_at else "there was nothing to erase"
