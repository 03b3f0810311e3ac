"""`import` and `export`: history from other programs, and memstore's own exports, in and out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memstore.cli.options import common, flag, name_option, option
from memstore.cli.output import echo, echo_hint, one_line, print_json, print_result, show_progress, to_json
from memstore.cli.session import open_store
from memstore.errors import InvalidInput
from memstore.text import quantify

if TYPE_CHECKING:
    from memstore import MemoryStore
    from memstore.ingest.importers import ImportReport
    from memstore.models import Json


def import_(
    files: Annotated[list[Path], typer.Argument(help="Files, zips or folders; - is memstore's own on stdin.")],
    user: Annotated[str | None, name_option("The user, where the file names none.", "--user", "-u")] = None,
    format: Annotated[str, option("NAME", "Format of the files; a wrong name lists all.")] = "auto",
    me: Annotated[str | None, name_option("Your name in the chat, where the format needs it.")] = None,
    timezone: Annotated[str | None, option("ZONE", "Of times without one, such as Europe/Berlin.")] = None,
    date_order: Annotated[
        Literal["dmy", "mdy", "ymd"] | None, typer.Option(help="Order of day, month and year in the files.")
    ] = None,
    untrusted: Annotated[bool, flag("--untrusted", "Quarantine facts that come only from these files.")] = False,
) -> None:
    """Take history in: memstore-jsonl, an export of ChatGPT, Claude, Slack …, or sessions of Claude Code and Codex.

    A file of memstore export is restored as it was, with summaries and facts, for the users that it names.

    Known messages are not stored twice. Unreadable parts, or whole files, are skipped and named; the rest is stored,
    and the exit code is 1; it is 2 where a file needs an option, such as --user.

    JSON: {"new", "known", "skipped", "files": [one for each], "problems": [{"file", "where",
    "reason"} of what was skipped]}.
    """
    from memstore.ingest.importers import IMPORTERS, ImportProblem, ImportReport, OptionMissing, parse_options
    from memstore.ingest.validation import check_names

    formats = ("auto", "memstore", *(importer.name for importer in IMPORTERS))
    if format not in formats:
        raise typer.BadParameter(f"{format!r} is none of {', '.join(map(repr, formats))}", param_hint="--format")
    how: Json = {"me": me, "timezone": timezone, "date_order": date_order}
    parse_options(**how)
    check_names(user=user)
    how |= {"user": user, "format": format, "untrusted": untrusted}
    code = 0
    counts: list[Json] = []
    problems: list[Json] = []
    with open_store() as store:
        for file in files:
            try:
                done = _import_file(store, file, **how)
            except InvalidInput as error:
                done = ImportReport(skipped=1, problems=[ImportProblem(str(file), str(error))])
                code = max(code, 2 if isinstance(error, OptionMissing) else 1)
            code = max(code, 1 if done.problems else 0)
            names = ("format", "new", "known", "skipped", "ignored", "masked")
            counts.append({"file": str(file)} | {name: getattr(done, name) for name in names})
            if done.format == "memstore":
                counts[-1]["restored"] = done.restored
            problems += [{"file": str(file)} | to_json(problem) for problem in done.problems]
            if not common.as_json:
                _print_file(file, done)
    if common.as_json:
        totals = {name: sum(each[name] for each in counts) for name in ("new", "known", "skipped")}
        print_json(totals | {"files": counts, "problems": problems})
    elif any(each["new"] and each["format"] != "memstore" for each in counts):
        echo_hint("next: memstore derive makes them findable")
    raise typer.Exit(code)


def _import_file(store: MemoryStore, file: Path, **how: Any) -> ImportReport:
    source = sys.stdin.buffer if file == Path("-") else file
    with show_progress(file.name) as line:
        return store.import_file(source, **how, progress=lambda done: line.update(file.name, done, None))


def _print_file(file: Path, done: ImportReport) -> None:
    result = f"{done.new} new, {done.known} known, {done.skipped} skipped"
    echo((one_line(file), "bold"), f": {result}")
    if any(done.restored.values()):
        new = ", ".join(f"{done.restored[kind]:,} {kind}" for kind in done.restored)
        echo(f"  with what was derived from them: new {new}")
    if done.masked:
        echo_hint(f"secrets masked in {quantify(done.masked, 'message')}")
    for what, count in done.ignored.most_common():
        echo_hint(f"ignored: {count:,} {what}")
    places: dict[str, list[str]] = {}
    for problem in done.problems:
        places.setdefault(problem.reason, []).append(problem.where)
    for reason, where in islice(places.items(), 20):
        more = f" and {len(where) - 1:,} more" if len(where) > 1 else ""
        echo_hint(f"skipped {where[0]}{more}: {reason}", "yellow")
    if len(places) > 20 or done.skipped > len(done.problems):
        echo_hint("… and more; --json names them")


def export(
    path: Annotated[
        str, typer.Argument(metavar="[PATH|-]", help="A file, gzipped where it ends in .gz; - is stdout.")
    ] = "-",
    user: Annotated[list[str] | None, name_option("Of this user; may be repeated.", "--user", "-u")] = None,
    no_derived: Annotated[bool, flag("--no-derived", "Without derived rows: the importing store makes them.")] = False,
    format: Annotated[
        Literal["memstore", "memories"], typer.Option(help="memories: one user's facts as a dated list, for people.")
    ] = "memstore",
) -> None:
    """Write memory to a file: messages, summaries, facts with their history, documents, settings; a JSON object a line.

    memstore import takes it in again, elsewhere, with the same ids and the same recall. The file appears once it is
    whole, for its owner alone.
    """
    if path == "-" and common.as_json:
        raise typer.BadParameter("stdout has the export; give a file to have the counts there.")
    if format == "memories":
        _export_memories(path, user or [])
        return
    options: Json = {"users": user or None, "derived": not no_derived}
    with open_store() as store:
        # On a terminal a bar would stand between the lines.
        if path == "-":
            done = store.export(sys.stdout.buffer, **options)
        else:
            with show_progress("exporting") as line:
                done = store.export(path, **options, progress=line.update)
    counts: Json = to_json(done)
    summary = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    if path == "-":
        echo_hint(summary)
    else:
        print_result({"file": path} | counts, f"{one_line(path)}: {summary}")


def _export_memories(path: str, users: Sequence[str]) -> None:
    if len(users) != 1:
        raise typer.BadParameter("a list of memories is one user's: give --user once.")
    with open_store() as store:
        listed = store.user(users[0]).memory_list()
    if path == "-":
        sys.stdout.write(listed)
        return
    file = Path(path)
    file.touch(mode=0o600)
    file.write_text(listed, encoding="utf-8")
    count = sum(line.startswith("[") for line in listed.splitlines())
    print_result({"file": path, "facts": count}, f"{one_line(path)}: {count:,} facts")
