"""History in, and what is made of it: `import` and `derive`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from memstore.cli.options import DatabaseOption, JsonFlag, OnlyUserOption, name, one_of
from memstore.cli.show import err, hint, line, print_json, progress, say, table
from memstore.cli.stores import hint_if_unknown, opened
from memstore.errors import InvalidInput

if TYPE_CHECKING:
    from memstore import DeriveReport, MemoryStore
    from memstore.ingest.importers import Imported, Span
    from memstore.models import Json

MOST_SHOWN = 20  # skipped ones; `--json` has them all
TIERS_REDONE = ("facts", "summaries", "vectors")
FORMATS = (
    "auto", "memstore", "jsonl", "chatgpt", "claude", "gemini", "openai", "sharegpt", "langchain", "slack", "whatsapp",
)  # fmt: skip
EXPORTS = ("chatgpt", "claude", "gemini", "slack", "whatsapp")  # whose folder is read as one
OWN = "memstore"  # what `export` writes
STDIN = Path("-")
WHOSE = "Whose it is, where the file names nobody; of memstore's own, who alone comes in."
RESTORED = ("users", "conversations", "summaries", "facts", "documents")
DATE_ORDERS = ("dmy", "mdy", "ymd")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something was passed by: where it stands in which file."""

    file: str
    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of one file."""

    file: str
    done: Imported
    reasons: Sequence[Reason]
    dry_run: bool = False

    @property
    def counts(self) -> Json:
        """The file's line of the report; of a dry run with its conversations, the first 10,000 of them."""
        told: Json = {
            "file": self.file,
            "format": self.done.format,
            "new": self.done.new,
            "known": self.done.known,
            "skipped": self.done.passed_by,
            "left_out": dict(self.done.left_out),
            "masked": self.done.masked,
            "conversations": self.done.conversations,
        }
        if self.done.format == OWN:
            told["restored"] = {kind: self.done.restored[kind] for kind in RESTORED}
            told["quarantined"] = self.done.quarantined
        return told | {"preview": self.done.spans} if self.dry_run else told


def zone(value: str) -> str:
    """Read the name of a time zone."""
    try:
        return ZoneInfo(value).key
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise typer.BadParameter(f"{value!r} is no time zone; give one like Europe/Berlin or UTC.") from None


def import_(
    files: Annotated[
        list[Path],
        typer.Argument(help="Files, zips or folders of exports; see --format. - is memstore's own on stdin."),
    ],
    user: Annotated[
        str | None,
        typer.Option("--user", "-u", parser=name, metavar="NAME", help=WHOSE),
    ] = None,
    format: Annotated[
        str, typer.Option(parser=one_of(*FORMATS), metavar=f"[{'|'.join(FORMATS)}]", help="What the files are.")
    ] = "auto",
    me: Annotated[
        str | None,
        typer.Option(
            parser=name, metavar="NAME", help="Who of a chat between people you are: whatsapp, slack."
        ),
    ] = None,
    timezone: Annotated[
        str | None,
        typer.Option(
            parser=zone, metavar="ZONE", help="Of times that have none, such as Europe/Berlin: whatsapp."
        ),
    ] = None,
    date_order: Annotated[
        str | None,
        typer.Option(
            parser=one_of(*DATE_ORDERS),
            metavar=f"[{'|'.join(DATE_ORDERS)}]",
            help="How days are written, where the file leaves it open: whatsapp.",
        ),
    ] = None,
    all_branches: Annotated[
        bool, typer.Option("--all-branches", help="Also what was edited or tried again: chatgpt, claude.")
    ] = False,
    untrusted: Annotated[
        bool, typer.Option("--untrusted", help="Facts that only this history says wait until they are confirmed.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Store nothing; show what would come in, and what would be skipped.")
    ] = False,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Take history in: memstore-jsonl, or an export of ChatGPT, Claude, Gemini, OpenAI, LangChain, Slack, WhatsApp…

    What memstore export wrote comes in as it was, with what was made of it, for the users that it names.

    What is known is not taken twice. What cannot be read is skipped and named, a file that cannot be read at all as
    one; the rest is stored, and the exit code is 1. Of a folder that is no export, each file is taken.

    JSON: {"new", "known", "skipped": integers, "files": [{"file", "format", "new", "known", "skipped", "left_out",
    "masked", "conversations"}], "reasons": [{"file", "where", "reason"}]}, with a reason for each one skipped, 10,000 a
    file at most. With --dry-run each file has a "preview" of its conversations, too; an export of memstore's has
    "restored": {"users", "conversations", "summaries", "facts", "documents": integers} that are new, and "quarantined".
    """
    how = {"me": me, "timezone": timezone, "date_order": date_order, "all_branches": all_branches, "dry_run": dry_run}
    how["untrusted"] = untrusted
    taken = []
    with opened(database) as store:
        for file in _each(files, format):
            taken.append(_taken(store, file, user=user, format=format, **how))
            if not as_json:
                _tell(taken[-1])
    if as_json:
        print_json(_report(taken))
    elif not dry_run and any(one.done.new and one.done.format != OWN for one in taken):
        hint("next: memstore derive makes them findable")
    raise typer.Exit(1 if any(one.reasons for one in taken) else 0)


def _each(paths: Sequence[Path], format: str) -> Iterator[Path]:
    """Give the paths, and of a folder that is no export the files in it."""
    from memstore.ingest.importers import importer_for

    for path in paths:
        if not path.is_dir() or format in EXPORTS:
            yield path
            continue
        try:
            importer_for(path)
            yield path
        except InvalidInput:
            inside = (one for one in sorted(path.rglob("*")) if one.is_file() and not one.is_symlink())
            yield from (one for one in inside if not one.name.startswith("."))


def _taken(store: MemoryStore, file: Path, **how: Any) -> Taken:
    """Take a file in; where it cannot be read at all, that is the one reason."""
    from memstore.ingest.importers import Imported

    try:
        with progress(file.name, of_bytes=True) as move:
            given = sys.stdin.buffer if file == STDIN else file
            done = store.import_file(given, **how, progress=lambda read, size: move(file.name, read, size))
    except InvalidInput as error:
        return Taken(str(file), Imported(passed_by=1), [Reason(str(file), str(file), str(error))])
    reasons = [Reason(str(file), skip.where, skip.reason) for skip in done.skipped]
    return Taken(str(file), done, reasons, how["dry_run"])


def _report(taken: Sequence[Taken]) -> Json:
    return {
        "new": sum(one.done.new for one in taken),
        "known": sum(one.done.known for one in taken),
        "skipped": sum(one.done.passed_by for one in taken),
        "files": [one.counts for one in taken],
        "reasons": [reason for one in taken for reason in one.reasons],
    }


def _tell(one: Taken) -> None:
    done = one.done
    place = f"{done.conversations} conversation{'' if done.conversations == 1 else 's'}"
    would = " would be" if one.dry_run else ""
    say((line(one.file), "bold"), f":{would} {done.new} new, {done.known} known, {done.passed_by} skipped, in {place}")
    if any(done.restored.values()):
        new = ", ".join(f"{done.restored[kind]:,} {kind}" for kind in RESTORED)
        say(f"  with what was made of them:{would} new {new}")
    if one.dry_run:
        _preview(done)
    if done.quarantined:
        hint(f"{done.quarantined:,} facts rest on nobody who is believed, and wait: memstore facts --state quarantined")
    if done.masked:
        hint(f"secrets masked in {done.masked} messages")
    for what, count in done.left_out.most_common():
        hint(f"left out: {_left_out(what, count, done.format)}")
    for reason in one.reasons[:MOST_SHOWN]:
        err.print(line(f"skipped {reason.where}: {reason.reason}"), style="yellow")
    if done.passed_by > MOST_SHOWN:
        named = "them all" if done.passed_by == len(one.reasons) else f"the first {len(one.reasons):,}"
        err.print(f"… and {done.passed_by - MOST_SHOWN} more; --json names {named}", style="yellow")


def _left_out(what: str, count: int, format: str) -> str:
    from memstore.ingest.importers.records import ERASED

    if what != ERASED:
        return f"{count:,} {what}"
    which = "messages, summaries, facts or documents, erased here or resting on what was"
    return f"{count:,} of the {which if format == OWN else 'messages, erased here'}: that does not come back"


def _preview(done: Imported) -> None:
    """Show the first conversations that would come in."""
    rows = [
        (
            span.user,
            span.messages,
            *(f"{when:%Y-%m-%d}" if when else "" for when in (span.first, span.last)),
            _title(span),
        )
        for span in done.spans[:MOST_SHOWN]
    ]
    table(("user", "messages", "from", "to", "conversation"), rows)
    if done.conversations > MOST_SHOWN:
        hint(f"… and {done.conversations - MOST_SHOWN} more conversations; --json names them")


def _title(span: Span) -> str:
    return f"{span.conversation}: {span.title}" if span.title else span.conversation


def derive(
    user: OnlyUserOption = None,
    redo: Annotated[
        str | None,
        typer.Option(
            parser=one_of(*TIERS_REDONE),
            metavar=f"[{'|'.join(TIERS_REDONE)}]",
            help="Make anew what another recipe made, but for what was done by hand; or vectors that are missing.",
        ),
    ] = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Embed, summarize and extract facts from what is pending.

    Where that fails for a conversation, the others are done, the exit code is 1, and the next run tries it again;
    memstore --verbose derive shows the tracebacks. Where a chat model is away, or has used up its day's tokens, what is
    for it waits and is no failure; stderr says so.

    JSON: {"messages", "units", "summaries", "facts", "redone", "letters", "vectors", "quarantined",
    "masked": integers, "failed", "waiting": [texts]}.
    """
    with opened(database) as store:
        with progress("loading") as move:
            report = store.derive(user=user, redo=redo, progress=move)
        if user is not None and not report.messages:
            hint_if_unknown(store, user)
    if as_json:
        print_json(report)
    else:
        say(_derived(report))
    for waiting in report.waiting:
        hint(f"waiting: {waiting}")
    if report.letters:
        hint(f"{report.letters} answers of a chat model could not be used, and rules stood in: memstore letters")
    if report.failed:
        hint(f"failed for {len(report.failed)}; memstore --verbose derive shows where")
    raise typer.Exit(1 if report.failed else 0)


def _derived(report: DeriveReport) -> str:
    if report == type(report)():
        return "nothing was pending"
    if report == type(report)(waiting=report.waiting):
        return "nothing could be done now"
    anew = f"; {report.redone} conversations made anew" if report.redone else ""
    anew += f"; {report.vectors} vectors for what had none" if report.vectors else ""
    anew += f"; {report.quarantined} facts wait to be confirmed" if report.quarantined else ""
    anew += f"; secrets masked in {report.masked} messages" if report.masked else ""
    made = f"{report.units} units, {report.summaries} summaries, {report.facts} facts"
    return f"{report.messages} messages → {made}{anew}"
