"""The examples run as they stand, where what they need is installed; the model behind them is scripted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.ollama_server import ScriptedOllama, says

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(code: str | Path, folder: Path, *args: str, **variables: str) -> str:
    """Run a program in an empty home; give what it printed."""
    given = ["-c", code] if isinstance(code, str) else [str(code)]
    env = os.environ | {"XDG_DATA_HOME": str(folder), "HOME": str(folder), "MPLBACKEND": "agg"} | variables
    command = [sys.executable, *given, *args]
    ran = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_assistant_remembers_from_one_run_to_the_next(tmp_path: Path) -> None:
    pytest.importorskip("ollama")
    example, hashing = EXAMPLES / "ollama_assistant.py", {"MEMSTORE_EMBEDDER": "hashing:64", "USER": "alice"}
    probed = says("")  # whoever counts asks first whether the server renders prompts
    with ScriptedOllama([probed, says("Noted."), probed, says("You are allergic to peanuts.")]) as server:
        where = {"OLLAMA_HOST": server.url, "MEMSTORE_OLLAMA_URL": server.url}
        assert run(example, tmp_path, "I'm allergic to peanuts.", **where, **hashing) == "Noted.\n"
        assert run(example, tmp_path, **where, **hashing) == "You are allergic to peanuts.\n"
        (_, second) = [body for path, body, _ in server.requests if path == "/api/chat" and body["messages"]]
    assert "allergic to peanuts" in json.dumps(second["messages"])
    assert second["messages"][-1]["content"] == "What do you know about me?"


@pytest.mark.parametrize(
    ("name", "needs", "told"),
    [
        ("langgraph_agent", "langgraph.graph", "allergic to peanuts"),
        ("openai_agents", "agents", "allergic to peanuts"),
    ],
)
@pytest.mark.slow
def test_a_framework_s_example_runs(tmp_path: Path, name: str, needs: str, told: str) -> None:
    if find_spec(needs.partition(".")[0]) is None:
        pytest.skip(f"needs {needs}: examples/README.md")
    assert told in run(EXAMPLES / f"{name}.py", tmp_path)


@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom(tmp_path: Path) -> None:
    if find_spec("matplotlib") is None:
        pytest.skip("needs matplotlib")
    cells = json.loads((EXAMPLES / "recall_and_budgets.ipynb").read_text())["cells"]
    assert all(cell["outputs"] == [] for cell in cells if cell["cell_type"] == "code")
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert "DeriveReport(messages=96" in run(code, tmp_path)
