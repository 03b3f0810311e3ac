"""Erasing and what keeps it honest: `erase user|conversation|message|fact`, `erasures`, `verify-erasure`, `retain`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from memstore.cli.options import (
    DatabaseOption,
    JsonFlag,
    OnlyUserOption,
    UserOption,
    beginning,
    identity,
    name,
)
from memstore.cli.show import hint, print_json, say, table
from memstore.cli.stores import hint_if_unknown, opened

if TYPE_CHECKING:
    from memstore import Certificate
    from memstore.models import Remains

app = typer.Typer(
    help="Erase, provably: with all that was derived, and so that it does not come back.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
YesFlag = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
RehearseFlag = Annotated[bool, typer.Option("--dry-run", help="Show what would be removed, and remove nothing.")]
SHOWN = 20  # ids of what was erased
LOG = "pg_wal"
GIVE = "give a file with what memstore erase --json or memstore erasures --json has printed."
REFUSED = "nothing was erased: say yes, or give --yes; --dry-run shows what would be removed"


@app.command("user")
def user_(
    user: Annotated[str, typer.Argument(parser=name, metavar="NAME", help="Whose memory is erased, all of it.")],
    yes: YesFlag = False,
    dry_run: RehearseFlag = False,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Erase everything of a user.

    JSON: the certificate: {"id", "scope", "user_id", "erased": [ids], "counts": {table: integer}, "tombstones",
    "again", "scan": {"tables", "ids", "words", "found"}, "recorded_at", "hints"}; "id" is null if nothing was removed.
    """
    with opened(database) as store:
        _make_sure(f"Erase everything of {user!r}?", told=yes or dry_run)
        hint_if_unknown(store, user)
        _show(store.user(user).erase(dry_run=dry_run), as_json)


@app.command()
def conversation(
    conversation: Annotated[str, typer.Argument(parser=name, metavar="NAME", help="The conversation.")],
    user: UserOption,
    yes: YesFlag = False,
    dry_run: RehearseFlag = False,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Erase a conversation, and the facts that nothing else says.

    JSON: the certificate, as of memstore erase user.
    """
    with opened(database) as store:
        _make_sure(f"Erase the conversation {conversation!r} of {user!r}?", told=yes or dry_run)
        _show(store.user(user).conversation(conversation).erase(dry_run=dry_run), as_json)


@app.command()
def message(
    messages: Annotated[
        list[UUID], typer.Argument(parser=identity, metavar="ID...", help="Ids of messages, whole, as recall has them.")
    ],
    user: UserOption,
    yes: YesFlag = False,
    dry_run: RehearseFlag = False,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Erase messages, with what was derived of them; derive then makes again what rested on others too.

    JSON: the certificate, as of memstore erase user.
    """
    with opened(database) as store:
        _make_sure(f"Erase {len(messages)} messages of {user!r}?", told=yes or dry_run)
        _show(store.user(user).erase_message(*messages, dry_run=dry_run), as_json)


@app.command()
def fact(
    facts: Annotated[
        list[str],
        typer.Argument(parser=beginning("memstore facts"), metavar="ID...", help="Ids of facts, or how they begin."),
    ],
    user: UserOption,
    yes: YesFlag = False,
    dry_run: RehearseFlag = False,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Erase facts; the messages that say them stay.

    JSON: the certificate, as of memstore erase user.
    """
    with opened(database) as store:
        whose = store.user(user)
        found = [whose.find_id(one, of="fact") for one in facts]
        _make_sure(f"Erase {len(found)} facts of {user!r}?", told=yes or dry_run)
        _show(whose.erase_fact(*found, dry_run=dry_run), as_json)


def erasures(user: UserOption, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """List the certificates of what was erased of a user, the latest first; they are kept when the user is gone.

    On a pipe, a line an erasure, its cells parted by tabs: time, what, rows removed, tombstones, id.

    JSON: a list of certificates, as of memstore erase user.
    """
    with opened(database) as store:
        found = store.user(user).erasures()
    if as_json:
        print_json([one.as_dict() for one in found])
    elif found:
        rows = [
            (one.recorded_at and f"{one.recorded_at:%Y-%m-%d %H:%M}", one.scope, _rows(one), one.tombstones, one.id)
            for one in found
        ]
        table(("when", "what", "rows", "tombstones", "id"), rows)
    else:
        hint(f"nothing was erased of {user!r}")


def verify_erasure(
    certificate: Annotated[
        Path | None,
        typer.Argument(metavar="CERTIFICATE", help="What erase --json or erasures --json has printed."),
    ] = None,
    text: Annotated[str | None, typer.Option(metavar="TEXT", help="Look for a text instead: a name, a word.")] = None,
    files: Annotated[
        bool, typer.Option("--files", help="Look into the server's files and its log too, as its superuser.")
    ] = False,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Look through every table for what was erased; exit 1 where something of it is left.

    JSON: {"looked_for", "tables": integers, "found": {table: rows}, "pages": {file: parts of 16 MiB}, "hints"}; of a
    list of certificates a list of these, each with its "certificate": id.
    """
    if (certificate is None) == (text is None):
        raise typer.BadParameter("give a certificate, or --text.")
    given = None if certificate is None else _read(certificate)
    each, several = given if isinstance(given, list) else [given], isinstance(given, list)
    with opened(database) as store:
        found = [(one, store.verify_erasure(one, text=text, files=files)) for one in each]
    if as_json:
        told = [({"certificate": one.id} if one and several else {}) | remains.as_dict() for one, remains in found]
        print_json(told if several else told[0])
    else:
        for one, remains in found:
            _tell(one if several else None, remains)
    if not found:
        hint("there is no certificate in this list: nothing was erased")
    if not all(remains.is_clean for _, remains in found):
        raise typer.Exit(1)


def retain(user: OnlyUserOption = None, database: DatabaseOption = None, as_json: JsonFlag = False) -> None:
    """Erase messages that are older than they are kept: by messages_days of conversations, users and the settings.

    JSON: {"messages": integer}.
    """
    with opened(database) as store:
        erased = store.retain(user=user)
    if as_json:
        print_json({"messages": erased})
    else:
        say(f"{erased:,} messages were older than they are kept, and are erased")


def _make_sure(question: str, *, told: bool) -> None:
    """Ask at a terminal, unless it was told on the command line; end with 1 where nobody says yes."""
    import sys

    if not told and not (sys.stdin.isatty() and typer.confirm(question, err=True)):
        hint(REFUSED)
        raise typer.Exit(1)


def _read(path: Path) -> Certificate | list[Certificate]:
    """Read a certificate, or a list of them."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise typer.BadParameter(f"{str(path)!r} cannot be read ({error.strerror}): {GIVE}") from None
    except (ValueError, RecursionError):
        raise typer.BadParameter(f"{str(path)!r} is no JSON: {GIVE}") from None
    if isinstance(body, list):
        return [_certificate(one, f"number {number} in {str(path)!r}") for number, one in enumerate(body, 1)]
    return _certificate(body, repr(str(path)))


def _certificate(body: Any, named: str) -> Certificate:
    from memstore import Certificate

    try:
        return Certificate.from_dict(body)
    except ValueError as error:
        raise typer.BadParameter(f"{named} is no certificate, {error}: {GIVE}") from None


def _tell(certificate: Certificate | None, found: Remains) -> None:
    """Print what was found of an erasure, of a certificate that is one of several under its name."""
    if certificate is not None:
        when = f"{certificate.recorded_at:%Y-%m-%d %H:%M}, " if certificate.recorded_at else ""
        say(f"{certificate.scope} erased, {when}{certificate.id or 'a rehearsal'}:")
    said = "nothing is left in them" if found.is_clean else "something is left:"
    say(f"looked through {found.tables} tables: {said}")
    for table_, rows in found.found.items():
        say(f"  {table_}: {rows:,} rows")
    if found.pages is not None:
        say(_on_disk(found.pages, gone=found.is_clean))
    for one in found.hints:
        hint(one)


def _on_disk(pages: Mapping[str, int], *, gone: bool) -> str:
    """Say what the server's files still hold, of rows that are `gone` for every query; --json names each file."""
    if not pages:
        return "nothing is left in the server's files"
    places = len(pages.keys() - {LOG})
    where = [f"{places:,} tables and indexes"] * bool(places) + ["the server's log"] * (LOG in pages)
    parts = f"{sum(pages.values()):,} parts of files (16 MiB each), of {' and '.join(where)}"
    why = ": rows that no query finds any more, until other rows take their place" if gone else ""
    return f"on disk the bytes still stand in {parts}{why}"


def _show(certificate: Certificate, as_json: bool) -> None:
    """Print a certificate: as JSON, or one fact a line, each with its name before it."""
    if as_json:
        print_json(certificate.as_dict())
        return
    if certificate.is_empty:
        say("there was nothing to erase")
        return
    for what, value in _facts(certificate):
        say(f"{what}: {value}")
    if certificate.id is None:
        hint("nothing was removed: this is what would be")
    for place, rows in certificate.scan.found.items():
        hint(f"{rows:,} rows of {place} still have words of it: look at them")
    if certificate.again and certificate.id is not None:
        hint("what rested on other messages too is made again by: memstore derive")
    for one in certificate.hints:
        hint(one)


def _facts(certificate: Certificate) -> Iterator[tuple[str, object]]:
    """Give what a certificate says, by name: what was erased, rows by table, what keeps it out, what was looked for."""
    for one in certificate.erased[:SHOWN]:
        yield certificate.scope, one
    if len(certificate.erased) > SHOWN:
        yield "further ones", f"{len(certificate.erased) - SHOWN:,}, named by --json"
    yield from ((place, f"{rows:,}") for place, rows in certificate.counts.items() if rows)
    yield from ((f"to be made again, {deriver}", f"{count:,}") for deriver, count in certificate.again.items() if count)
    if certificate.id is not None:
        yield "tombstones", f"{certificate.tombstones:,}"
        scan = certificate.scan
        yield "looked for afterwards", f"{scan.ids:,} ids and {scan.words:,} words in {scan.tables} tables"
        yield "rows found", f"{sum(scan.found.values()):,}"
        yield "certificate", certificate.id
        yield "recorded", f"{certificate.recorded_at:%Y-%m-%d %H:%M:%S %Z}" if certificate.recorded_at else "not"


def _rows(certificate: Certificate) -> int:
    return sum(certificate.counts.values())
