"""History in, and what is made of it: `import` and `derive`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memstore.cli.show import DatabaseOption, JsonFlag, err, opened, out, print_json, progress

MOST_SHOWN = 20  # skipped lines; `--json` has them all


def import_(
    files: Annotated[list[Path], typer.Argument(help="Histories: memstore-jsonl, or a ChatGPT export.")],
    user: Annotated[str | None, typer.Option(help="Whose it is, where the file names nobody.")] = None,
    format: Annotated[str, typer.Option(help="auto, jsonl or chatgpt.")] = "auto",
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Take history in. What is known is not taken twice; what cannot be read is named, and the rest is kept."""
    reports = []
    with opened(database) as store, progress(as_json) as move:
        for file in files:
            done = store.import_file(file, user=user, format=format, progress=lambda n, file=file: move(file.name, n, None))
            reports.append((file, done))
    skipped = sum(len(done.skipped) for _, done in reports)
    if as_json:
        print_json(
            [
                {
                    "file": str(file),
                    "new": done.new,
                    "known": done.known,
                    "conversations": len(done.conversations),
                    "skipped": done.skipped,
                }
                for file, done in reports
            ]
        )
    else:
        for file, done in reports:
            size = f"{done.new} new messages, {done.known} known, {len(done.skipped)} skipped"
            out.print(f"{file}: {size}, in {len(done.conversations)} conversations", markup=False)
    shown = [skip for _, done in reports for skip in done.skipped][:MOST_SHOWN]
    for skip in () if as_json else shown:
        err.print(f"skipped {skip.where}: {skip.reason}", markup=False)
    if skipped > len(shown) and not as_json:
        err.print(f"… and {skipped - len(shown)} more; --json names them all")
    raise typer.Exit(1 if skipped else 0)


def derive(
    user: Annotated[str | None, typer.Option(help="Of this user only.")] = None,
    database: DatabaseOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Embed, summarize and extract facts from what is pending."""
    with opened(database) as store, progress(as_json) as move:
        report = store.derive(user=user, progress=move)
    if as_json:
        print_json(report)
    else:
        made = f"{report.units} units, {report.summaries} summaries and {report.facts} facts"
        out.print(f"{report.messages} messages → {made}", markup=False)
    for failure in report.failed:
        err.print(f"failed: {failure}", markup=False)
    raise typer.Exit(1 if report.failed else 0)
