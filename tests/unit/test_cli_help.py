"""Every command and option has a help text, and the reference pages say what the code says."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from memstore.cli import app, recall
from memstore.cli.session import EXIT_CODES
from memstore.errors import MemstoreError
from memstore.models import FACT_STATES

ROOT = Path(__file__).parents[2]


def commands(group: Any, path: str = "memstore") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def test_commands_and_their_options_have_help_and_take_json() -> None:
    for name, command in commands(get_command(app)):
        assert command.help, name
        assert [each for each in command.params if not each.help] == [], name
        assert any("--json" in each.opts for each in command.params), name


def test_every_command_fits_a_line_of_80_columns() -> None:
    groups = [["memstore"], *(["memstore", name] for name in ("backfill", "db", "embeddings", "fact", "token"))]
    for words in groups:
        shown = CliRunner().invoke(app, [*words[1:], "--help"], terminal_width=80).output
        lines = shown.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
        assert lines
        assert [line for line in lines if not re.fullmatch(r"  \S+ +\S.*[^.]\.", line) or len(line) > 80] == []


@pytest.mark.parametrize("tool", ["cli_reference.py", "mcp_reference.py", "python_reference.py"])
def test_a_reference_page_is_what_the_code_says(tool: str) -> None:
    if tool == "mcp_reference.py":
        pytest.importorskip("mcp")
    checked = subprocess.run([sys.executable, ROOT / "tools" / tool, "--check"], timeout=60)
    assert checked.returncode == 0, f"python tools/{tool} writes it"


def test_every_error_has_an_exit_code_that_the_page_explains() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    table = page.partition("## Exit codes")[2].partition("\n## ")[0]
    explained = {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}
    assert explained == {0, 130, *EXIT_CODES.values()}
    assert list(EXIT_CODES)[-1] is MemstoreError  # the first that fits counts


def test_the_words_that_options_take_are_those_of_the_models() -> None:
    assert set(get_args(get_type_hints(recall.facts)["state"])) == {*FACT_STATES, "all"}
