"""The tools that look after the documentation: hard sentences are found, a recorded terminal is read as it looked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tools")


@pytest.mark.parametrize(
    ("text", "patterns"),
    [
        ("Whoever asks is told so.", ["whoever", "told"]),
        ("What is left out is noted.", ["what … is"]),
        ("It is kept; what was erased is gone.", ["what … is"]),
        ("It stands beside the message.", ["beside"]),
        ("Somebody, of whom nothing was heard.", ["of whom", "heard"]),
        (" ".join(["word"] * 31) + ".", ["over 30 words"]),
        ("What is left out?", []),
        ("`whoever` cannot be told apart from code.", []),
        ("```\nwhoever\n```", []),
        ("<!-- figures: x -->\nbeside\n<!-- /figures -->", []),
        ("| what is in | what is out |", []),
        ("Besides, it says what it does.", []),
    ],
)
def test_hard_sentences_of_a_page_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, patterns: list[str]
) -> None:
    import prose

    monkeypatch.setattr(prose, "ROOT", tmp_path)
    page = tmp_path / "README.md"
    page.write_text(f"# A title\n\n{text}\n")
    findings = [*prose.check_page(page)]
    assert [each.pattern for each in findings] == patterns
    assert {each.line for each in findings} <= {3}


def test_docstrings_errors_and_help_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import prose

    monkeypatch.setattr(prose, "ROOT", tmp_path)
    module = tmp_path / "module.py"
    module.write_text(
        'def f(x):\n    """Give the rest."""\n    y = "whoever"\n'
        '    raise ValueError(f"{x} was told")\noption("N", "Whoever asks.")\n'
    )
    found = sorted((each.line, each.pattern) for each in prose.check_module(module))
    assert found == [(2, "Give"), (4, "told"), (5, "whoever")]


def test_a_recorded_terminal_is_read_as_it_looks_at_the_end() -> None:
    import cast

    progress = "\x1b[32m⠋\x1b[0m loading\r\x1b[2K\x1b[32m⠙\x1b[0m done\r\n\x1b[?25h\r\x1b[1A\x1b[2K\r\n"
    lines = cast.read_lines(progress + "\x1b[1mHead\x1b[0m: text\r\n" + "x" * (cast.COLUMNS + 1) + "\r\n")
    assert lines[1:] == [
        [cast.Span(0, "B", "Head"), cast.Span(4, "", ": text")],
        [cast.Span(0, "", "x" * cast.COLUMNS)],
        [cast.Span(0, "", "x")],
    ]
    assert lines[0] == []
    picture = cast.draw(lines)
    assert "prefers-color-scheme:dark" in picture
    assert ">Head</tspan>" in picture


def test_the_picture_of_the_demo_is_small_and_says_what_the_demo_says() -> None:
    picture = (ROOT / "docs" / "pictures" / "demo.svg").read_text(encoding="utf-8")
    assert len(picture.encode()) < 60_000
    assert "5. The context" in picture


def test_the_reference_of_python_is_that_of_the_docstrings() -> None:
    checked = subprocess.run([sys.executable, ROOT / "tools" / "python_reference.py", "--check"], timeout=60)
    assert checked.returncode == 0, "python tools/python_reference.py writes it"
