"""`erase user|conversation|message|fact`, `erasures`, `verify-erasure` and `retain`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from memstore.cli.options import (
    DatabaseOption,
    JsonFlag,
    OnlyUserOption,
    UserOption,
    id_prefix,
    parse_id,
    parse_name,
)
from memstore.cli.output import echo, echo_hint, print_json, print_table
from memstore.cli.session import hint_if_unknown, open_store

if TYPE_CHECKING:
    from memstore import Certificate
    from memstore.models import Remains

app = typer.Typer(
    help="Erase, provably: with all that was derived, and so that it does not come back.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
YesFlag = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
DryRunFlag = Annotated[bool, typer.Option("--dry-run", help="Show what would be removed, and remove nothing.")]
MAX_SHOWN = 20  # ids of what was erased
EXPECTED = "give a file with what memstore erase --json or memstore erasures --json has printed."
REFUSED = "nothing was erased: say yes, or give --yes; --dry-run shows what would be removed"


@app.command("user")
def user_(
    user: Annotated[str, typer.Argument(parser=parse_name, metavar="NAME", help="Whose memory is erased, all of it.")],
    yes: YesFlag = False,
    dry_run: DryRunFlag = False,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Erase everything of a user.

    JSON: the certificate: {"id", "scope", "user_id", "erased": [ids], "counts": {table: integer}, "tombstones",
    "again", "scan": {"tables", "ids", "found"}, "recorded_at", "hints"}; "id" is null if nothing was removed.
    """
    with open_store(database) as store:
        _confirm(f"Erase everything of {user!r}?", is_confirmed=yes or dry_run)
        hint_if_unknown(store, user)
        _print(store.user(user).erase(dry_run=dry_run), as_json)


@app.command()
def conversation(
    conversation: Annotated[str, typer.Argument(parser=parse_name, metavar="NAME", help="The conversation.")],
    user: UserOption,
    yes: YesFlag = False,
    dry_run: DryRunFlag = False,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Erase a conversation, and the facts that nothing else says.

    JSON: the certificate, as of memstore erase user.
    """
    with open_store(database) as store:
        _confirm(f"Erase the conversation {conversation!r} of {user!r}?", is_confirmed=yes or dry_run)
        _print(store.user(user).conversation(conversation).erase(dry_run=dry_run), as_json)


@app.command()
def message(
    messages: Annotated[
        list[UUID], typer.Argument(parser=parse_id, metavar="ID...", help="Ids of messages, whole, as recall has them.")
    ],
    user: UserOption,
    yes: YesFlag = False,
    dry_run: DryRunFlag = False,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Erase messages, with what was derived of them; derive then makes again what rested on others too.

    JSON: the certificate, as of memstore erase user.
    """
    with open_store(database) as store:
        _confirm(f"Erase {len(messages)} messages of {user!r}?", is_confirmed=yes or dry_run)
        _print(store.user(user).erase_message(*messages, dry_run=dry_run), as_json)


@app.command()
def fact(
    facts: Annotated[
        list[str],
        typer.Argument(parser=id_prefix("memstore facts"), metavar="ID...", help="Ids of facts, or how they begin."),
    ],
    user: UserOption,
    yes: YesFlag = False,
    dry_run: DryRunFlag = False,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Erase facts; the messages that say them stay.

    JSON: the certificate, as of memstore erase user.
    """
    with open_store(database) as store:
        scope = store.user(user)
        found = [scope.find_id(prefix, of="fact") for prefix in facts]
        _confirm(f"Erase {len(found)} facts of {user!r}?", is_confirmed=yes or dry_run)
        _print(scope.erase_fact(*found, dry_run=dry_run), as_json)


def erasures(user: UserOption, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """List the certificates of what was erased of a user, the latest first; they are kept when the user is gone.

    On a pipe, a line an erasure, its cells parted by tabs: time, what, rows removed, tombstones, id.

    JSON: a list of certificates, as of memstore erase user.
    """
    with open_store(database) as store:
        found = store.user(user).erasures()
    if as_json:
        print_json([each.as_dict() for each in found])
    elif found:
        rows = [
            (
                each.recorded_at and f"{each.recorded_at:%Y-%m-%d %H:%M}",
                each.scope,
                _rows(each),
                each.tombstones,
                each.id,
            )
            for each in found
        ]
        print_table(("when", "what", "rows", "tombstones", "id"), rows)
    else:
        echo_hint(f"nothing was erased of {user!r}")


def verify_erasure(
    certificate: Annotated[
        Path | None,
        typer.Argument(metavar="CERTIFICATE", help="What erase --json or erasures --json has printed."),
    ] = None,
    text: Annotated[str | None, typer.Option(metavar="TEXT", help="Look for a text instead: a name, a word.")] = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Look through every table for what was erased; exit 1 where something of it is left.

    JSON: {"looked_for", "tables": integers, "found": {table: rows}, "hints"}; of a
    list of certificates a list of these, each with its "certificate": id.
    """
    if (certificate is None) == (text is None):
        raise typer.BadParameter("give a certificate, or --text.")
    content = None if certificate is None else _read(certificate)
    certificates, is_list = content if isinstance(content, list) else [content], isinstance(content, list)
    with open_store(database) as store:
        found = [(each, store.verify_erasure(each, text=text)) for each in certificates]
    if as_json:
        rows = [({"certificate": each.id} if each and is_list else {}) | remains.as_dict() for each, remains in found]
        print_json(rows if is_list else rows[0])
    else:
        for each, remains in found:
            _print_remains(each if is_list else None, remains)
    if not found:
        echo_hint("there is no certificate in this list: nothing was erased")
    if not all(remains.is_clean for _, remains in found):
        raise typer.Exit(1)


def retain(user: OnlyUserOption = None, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Erase messages that are older than they are kept: by messages_days of conversations, users and the settings.

    JSON: {"messages": integer}.
    """
    with open_store(database) as store:
        erased = store.retain(user=user)
    if as_json:
        print_json({"messages": erased})
    else:
        echo(f"{erased:,} messages were older than they are kept, and are erased")


def _confirm(question: str, *, is_confirmed: bool) -> None:
    """Ask at a terminal, unless confirmed by an option; exit with 1 if the answer is not yes."""
    import sys

    if not is_confirmed and not (sys.stdin.isatty() and typer.confirm(question, err=True)):
        echo_hint(REFUSED)
        raise typer.Exit(1)


def _read(path: Path) -> Certificate | list[Certificate]:
    """Read a certificate, or a list of them."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise typer.BadParameter(f"{str(path)!r} cannot be read ({error.strerror}): {EXPECTED}") from None
    except (ValueError, RecursionError):
        raise typer.BadParameter(f"{str(path)!r} is no JSON: {EXPECTED}") from None
    if isinstance(body, list):
        return [_certificate(entry, f"number {number} in {str(path)!r}") for number, entry in enumerate(body, 1)]
    return _certificate(body, repr(str(path)))


def _certificate(body: Any, name: str) -> Certificate:
    from memstore import Certificate

    try:
        return Certificate.from_dict(body)
    except ValueError as error:
        raise typer.BadParameter(f"{name} is no certificate, {error}: {EXPECTED}") from None


def _print_remains(certificate: Certificate | None, found: Remains) -> None:
    """Print what is left of an erasure, under its certificate if that is one of a list."""
    if certificate is not None:
        when = f"{certificate.recorded_at:%Y-%m-%d %H:%M}, " if certificate.recorded_at else ""
        echo(f"{certificate.scope} erased, {when}{certificate.id or 'a rehearsal'}:")
    result = "nothing is left in them" if found.is_clean else "something is left:"
    echo(f"looked through {found.tables} tables: {result}")
    for table_, rows in found.found.items():
        echo(f"  {table_}: {rows:,} rows")
    for hint in found.hints:
        echo_hint(hint)


def _print(certificate: Certificate, as_json: bool) -> None:
    """Print a certificate: as JSON, or one fact a line, each with its name before it."""
    if as_json:
        print_json(certificate.as_dict())
        return
    if certificate.is_empty:
        echo("there was nothing to erase")
        return
    for what, value in _facts(certificate):
        echo(f"{what}: {value}")
    if certificate.id is None:
        echo_hint("nothing was removed: this is what would be")
    for place, rows in certificate.scan.found.items():
        echo_hint(f"{rows:,} rows of {place} still name it: look at them")
    if certificate.again and certificate.id is not None:
        echo_hint("what rested on other messages too is made again by: memstore derive")
    for hint in certificate.hints:
        echo_hint(hint)


def _facts(certificate: Certificate) -> Iterator[tuple[str, object]]:
    """Return the lines of a certificate: what was erased, rows by table, tombstones, what was looked for."""
    for id in certificate.erased[:MAX_SHOWN]:
        yield certificate.scope, id
    if len(certificate.erased) > MAX_SHOWN:
        yield "further ones", f"{len(certificate.erased) - MAX_SHOWN:,}, named by --json"
    yield from ((place, f"{rows:,}") for place, rows in certificate.counts.items() if rows)
    yield from ((f"to be made again, {deriver}", f"{count:,}") for deriver, count in certificate.again.items() if count)
    if certificate.id is not None:
        yield "tombstones", f"{certificate.tombstones:,}"
        scan = certificate.scan
        yield "looked for afterwards", f"{scan.ids:,} ids in {scan.tables} tables"
        yield "rows found", f"{sum(scan.found.values()):,}"
        yield "certificate", certificate.id
        yield "recorded", f"{certificate.recorded_at:%Y-%m-%d %H:%M:%S %Z}" if certificate.recorded_at else "not"


def _rows(certificate: Certificate) -> int:
    return sum(certificate.counts.values())
