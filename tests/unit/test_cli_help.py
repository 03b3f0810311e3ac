"""Every command and option has a help text, and stands in docs/reference/cli.md in its own section."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from memstore.cli import app
from memstore.cli.errors import EXIT_CODES
from memstore.cli.facts import STATES
from memstore.cli.options import KINDS
from memstore.cli.recall import ROLES, TIERS
from memstore.errors import MemstoreError
from memstore.models import FACT_KINDS, FACT_STATES, Role, Tier

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
COMMAND = r"^### `(memstore [a-z -]*[a-z])"
SECTIONS = dict(re.findall(COMMAND + r"[^\n]*\n(.*?)(?=^### |\Z)", PAGE, re.MULTILINE | re.DOTALL))
MARKED = {name for name, mark in re.findall(COMMAND + r"[^`\n]*`( ᵈ)?$", PAGE, re.MULTILINE) if mark}


def commands(group: Any, path: str = "memstore") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


ROOT = get_command(app)
COMMANDS = dict(commands(ROOT))


def test_the_page_has_the_commands_and_no_others() -> None:
    assert set(SECTIONS) == set(COMMANDS)
    assert {"memstore demo", "memstore import", "memstore db stop"} <= set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_help_and_its_options_stand_in_its_section(name: str) -> None:
    command, section = COMMANDS[name], SECTIONS[name]
    assert command.help
    takes_json = False
    for parameter in command.params:
        assert parameter.help, parameter.name
        takes_json |= "--json" in parameter.opts
        if "--database" in parameter.opts:
            continue
        for flag in parameter.opts if parameter.param_type_name == "option" else ():
            assert f"`{flag}`" in section, flag
        for choice in (parameter.metavar or "").strip("[]").split("|")[1:]:
            assert choice in section, choice
    assert takes_json
    documented = set(re.findall(r"^\| `(--[a-z]+)`", section, re.MULTILINE))
    assert documented <= {flag for parameter in command.params for flag in parameter.opts}


def test_the_page_says_which_commands_take_a_database() -> None:
    taking = {name for name, one in COMMANDS.items() if any("--database" in given.opts for given in one.params)}
    assert taking == MARKED


def test_the_page_has_the_options_of_memstore_itself() -> None:
    own = PAGE.partition("## Options of")[2].partition("\n## ")[0]
    for parameter in ROOT.params:
        assert getattr(parameter, "help", None)
        for flag in parameter.opts:
            assert f"`{flag}`" in own, flag


def test_every_error_has_an_exit_code_that_the_page_explains() -> None:
    table = PAGE.partition("## Exit codes")[2].partition("\n## ")[0]
    explained = {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}
    assert explained == {0, 130, *EXIT_CODES.values()}
    assert list(EXIT_CODES)[-1] is MemstoreError  # the first that fits counts


def test_json_shapes_of_the_help_stand_in_the_page() -> None:
    for name, command in COMMANDS.items():
        shape = command.help.partition("JSON:")[2]
        for key in re.findall(r'"(\w+)"', shape):
            assert re.search(rf'["`]{key}["`]', SECTIONS[name]) or name == "memstore demo", (name, key)


def test_the_words_that_options_take_are_those_of_the_models() -> None:
    assert set(KINDS) == set(FACT_KINDS)
    assert set(STATES) == {*FACT_STATES, "all"}
    assert set(TIERS) == set(Tier)
    assert set(ROLES) == set(Role)
