"""Every command and option has a help text, and the reference pages say what the code says."""

import inspect
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args, get_type_hints
from uuid import UUID

import pytest
from hypothesis import given, strategies as st
from rich.console import Console
from typer.main import get_command

from memstore import errors
from memstore.cli import app, output, recall
from memstore.cli.output import escape, one_line, print_json
from memstore.models import FACT_STATES, Tier

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


@pytest.mark.parametrize("tool", ["cli_reference.py", "mcp_reference.py", "python_reference.py", "tables_reference.py"])
def test_a_reference_page_is_what_the_code_says(tool: str) -> None:
    if tool == "mcp_reference.py":
        pytest.importorskip("mcp")
    checked = subprocess.run([sys.executable, ROOT / "tools" / tool, "--check"], timeout=60)
    assert checked.returncode == 0, f"python tools/{tool} writes it"


def test_every_error_has_an_exit_code_that_the_page_explains() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    table = page.partition("## Exit codes")[2].partition("\n## ")[0]
    explained = {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}
    classes = [error for error in vars(errors).values() if inspect.isclass(error)]
    assert explained == {0, 130, *(error.exit_code for error in classes)}


def test_the_words_that_options_take_are_those_of_the_models() -> None:
    assert set(get_args(get_type_hints(recall.facts)["state"])) == {*FACT_STATES, "all"}


# What is shown


@given(st.text())
def test_what_is_shown_holds_nothing_that_a_terminal_obeys(text: str) -> None:
    shown = escape(text)
    assert all(char in "\n\t" or char >= " " for char in shown)
    assert not any("\x7f" <= char <= "\x9f" for char in shown)
    assert "\n" not in one_line(text)
    assert "\t" not in one_line(text)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_row_is_whole_on_a_terminal_of_any_width(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    terminal = Console(file=shown, force_terminal=True, width=width, soft_wrap=True, no_color=True)
    monkeypatch.setattr(output, "out", terminal)
    row = ("3f2a91c4", "constraint", "quarantined, pinned", "2026-05-01", "[bold]Alice[/bold] is allergic to peanuts.")
    output.print_rows([], ("id", "type", "state", "said", "fact"), [row])
    words = re.sub(r"\x1b\[[0-9;]*m", "", shown.getvalue()).split()
    assert all(word in words for cell in row for word in cell.split())
    assert ("fact" in words) == (width == 120)
    assert all(len(line) <= width for line in re.sub(r"\x1b\[[0-9;]*m", "", shown.getvalue()).splitlines())


@dataclass(frozen=True, slots=True)
class Shape:
    tier: Tier
    parts: object


def test_json_is_json_whatever_it_holds(capsys: pytest.CaptureFixture[str]) -> None:
    said = 'é👩‍👧 "quoted" \x1b \x9b \u202e \udcff'
    when = datetime(2024, 5, 1, tzinfo=UTC)
    print_json([Shape(Tier.FACTS, MappingProxyType({"said": said, "at": when})), {UUID(int=1)}, None, 1, True])
    text = capsys.readouterr().out
    assert json.loads(text) == [
        {"tier": "facts", "parts": {"said": said, "at": "2024-05-01T00:00:00+00:00"}},
        ["00000000-0000-0000-0000-000000000001"],
        None,
        1,
        True,
    ]
    assert "é👩‍👧" in text
    assert not set(text) & set("\x1b\x9b\u202e")


def test_json_is_json_in_every_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="latin-1"))
    output.escape_unencodable()
    print_json("é👩‍👧")
    print("é→")
    output.sys.stdout.flush()
    first, second = raw.getvalue().decode("latin-1").splitlines()
    assert (json.loads(first), second) == ("é👩‍👧", "é\\u2192")
