"""What the README shows works as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


def pasted() -> list[str]:
    """Give the programs of the README, which begin with their imports; what else it shows are lines of such."""
    found = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    return [code for code in found if code.startswith("import memstore\n")]


def test_there_are_programs() -> None:
    assert len(pasted()) == 2


@pytest.mark.slow
@pytest.mark.parametrize("code", pasted(), ids=["the start", "the proof"])
def test_the_python_of_the_readme_runs_when_pasted(code: str, tmp_path: Path) -> None:
    environment = os.environ | {"XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert "peanuts" in result.stdout
    assert result.stderr == ""


def test_every_link_of_the_readme_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert links
    for link in links:
        assert link.startswith("https://") or (README.parent / link).exists(), link
    for path in re.findall(r"`((?:tests|benchmarks)/[\w/.]*)`", README.read_text(encoding="utf-8")):
        assert (README.parent / path).exists(), path
