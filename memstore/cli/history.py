"""History in, and what is made of it: `import` and `derive`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memstore.cli.options import DatabaseOption, JsonFlag, OnlyUserOption, name, one_of
from memstore.cli.show import err, hint, line, print_json, progress, say
from memstore.cli.stores import hint_if_unknown, opened
from memstore.errors import InvalidInput

if TYPE_CHECKING:
    from memstore import DeriveReport, MemoryStore
    from memstore.models import Json

MOST_SHOWN = 20  # skipped ones; `--json` has them all
TIERS_REDONE = ("facts", "summaries", "vectors")
FORMATS = ("auto", "jsonl", "chatgpt")


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
    new: int
    known: int
    conversations: int
    reasons: Sequence[Reason]

    @property
    def counts(self) -> Json:
        """The file's line of the report."""
        return {
            "file": self.file,
            "new": self.new,
            "known": self.known,
            "skipped": len(self.reasons),
            "conversations": self.conversations,
        }


def import_(
    files: Annotated[list[Path], typer.Argument(help="memstore's own JSON lines, or an export.")],
    user: Annotated[
        str | None,
        typer.Option("--user", "-u", parser=name, metavar="NAME", help="Whose it is, where the file names nobody."),
    ] = None,
    format: Annotated[
        str, typer.Option(parser=one_of(*FORMATS), metavar=f"[{'|'.join(FORMATS)}]", help="What the files are.")
    ] = "auto",
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Take history in; what is known is not taken twice.

    What cannot be read is skipped and named, a file that cannot be read at all as one; the rest is stored, and the
    exit code is 1.

    JSON: {"new", "known", "skipped": integers, "files": [{"file", "new", "known", "skipped", "conversations"}],
    "reasons": [{"file", "where", "reason"}]}, with a reason for each one skipped.
    """
    taken = []
    with opened(database) as store:
        for file in files:
            taken.append(_taken(store, file, user, format))
            if not as_json:
                _tell(taken[-1])
    if as_json:
        print_json(_report(taken))
    elif any(one.new for one in taken):
        hint("next: memstore derive makes them findable")
    raise typer.Exit(1 if any(one.reasons for one in taken) else 0)


def _taken(store: MemoryStore, file: Path, user: str | None, format: str) -> Taken:
    """Take a file in; where it cannot be read at all, that is the one reason."""
    try:
        with progress(file.name) as move:
            done = store.import_file(file, user=user, format=format, progress=lambda seen: move(file.name, seen, None))
    except InvalidInput as error:
        return Taken(str(file), 0, 0, 0, [Reason(str(file), str(file), str(error))])
    reasons = [Reason(str(file), skip.where, skip.reason) for skip in done.skipped]
    return Taken(str(file), done.new, done.known, len(done.conversations), reasons)


def _report(taken: Sequence[Taken]) -> Json:
    return {
        "new": sum(one.new for one in taken),
        "known": sum(one.known for one in taken),
        "skipped": sum(len(one.reasons) for one in taken),
        "files": [one.counts for one in taken],
        "reasons": [reason for one in taken for reason in one.reasons],
    }


def _tell(one: Taken) -> None:
    place = f"{one.conversations} conversation{'' if one.conversations == 1 else 's'}"
    say((line(one.file), "bold"), f": {one.new} new, {one.known} known, {len(one.reasons)} skipped, in {place}")
    for reason in one.reasons[:MOST_SHOWN]:
        err.print(line(f"skipped {reason.where}: {reason.reason}"), style="yellow")
    if len(one.reasons) > MOST_SHOWN:
        err.print(f"… and {len(one.reasons) - MOST_SHOWN} more; --json names them all", style="yellow")


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

    JSON: {"messages", "units", "summaries", "facts", "redone", "letters", "vectors": integers, "failed",
    "waiting": [texts]}.
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
    made = f"{report.units} units, {report.summaries} summaries, {report.facts} facts"
    return f"{report.messages} messages → {made}{anew}"
