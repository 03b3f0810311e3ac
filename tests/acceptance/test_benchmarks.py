"""The benchmarks still run; what they measure is read by people."""

import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def budgets(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / "budgets.py"), *arguments]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_budgets_are_kept_by_the_count_of_an_independent_measure(tmp_path: Path) -> None:
    some = ["--kinds", "emoji", "tools", "a long question", "system prompt and facts", "--budgets", "200", "1000"]
    figures = tmp_path / "figures.json"
    done = budgets("--systems", "memstore", "--seeds", "1", *some, "--cache", str(tmp_path), "--json", str(figures))
    assert done.returncode == 0, done.stderr
    told = json.loads(figures.read_text(encoding="utf-8"))["summary"]["memstore"]
    wanted = {"cases": 8, "over": 0, "broken_pairs": 0, "without_question": 0, "refused": 2, "crashed": 0}
    assert {name: told[name] for name in wanted} == wanted
    assert told["refused_though_it_fits"] == 0


def test_the_recorded_answers_give_the_table_of_the_docs() -> None:
    reference = BENCHMARKS.parent / "docs" / "reference"
    command = [sys.executable, str(BENCHMARKS / "answers.py"), "--recorded", str(reference / "figures/answers.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    page = (reference / "measurements.md").read_text(encoding="utf-8")
    rows = [line.rsplit(None, 6) for line in done.stdout.splitlines() if line.startswith(("memstore", "hybrid RRF"))]
    assert [row[0] for row in rows] == ["hybrid RRF", "memstore"]
    for row in rows:
        assert f"| {' | '.join(row)} |" in page


def test_the_tables_of_budgets_in_the_docs_are_those_of_the_figures() -> None:
    reference = BENCHMARKS.parent / "docs" / "reference"
    done = budgets("--from", str(reference / "figures" / "budgets.json"))
    assert done.returncode == 0, done.stderr
    docs = (reference / "budgets.md").read_text(encoding="utf-8")
    assert [line for line in done.stdout.splitlines() if line not in docs] == []


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)


@pytest.mark.usefixtures("measure")
def test_figures_in_the_documentation_are_those_of_the_files() -> None:
    from report import filled
    from run import PAGES

    pages = {page: text for page in PAGES if "<!-- figures: " in (text := page.read_text(encoding="utf-8"))}
    assert {"README.md", "benchmarks.md", "measurements.md", "scale.md"} <= {page.name for page in pages}
    for page, text in pages.items():
        assert filled(text) == text, f"{page.name} has other figures: benchmarks/run.py docs"


@pytest.mark.usefixtures("measure")
def test_machines_in_the_documentation_are_those_of_the_model_and_its_figures() -> None:
    from capacity import ASSUMED, Model

    page = (BENCHMARKS.parent / "docs" / "how-to" / "many-machines.md").read_text(encoding="utf-8")
    models = json.loads((BENCHMARKS / "figures" / "capacity.json").read_text(encoding="utf-8"))["models"]
    assert set(ASSUMED) == {one.name for one in fields(Model)} - {"users", "messages", "bytes_a_message"}
    for told in models:
        one = Model(**{field.name: told[field.name] for field in fields(Model)})
        assert (one.nodes, one.shards, one.disk) == (told["nodes"], told["shards"], told["disk"])
        row = next(line for line in page.splitlines() if line.startswith(f"| {one.users:,.0f} |"))
        assert row.endswith(f"| {one.nodes:,} | {one.nodes * one.copies:,.0f} | {one.shards:,} |")
    assert len(models) == 3
    assert Model(1e6, 3000, 14_057, hot=0.5, node_memory=2**36).nodes > Model(1e6, 3000, 14_057, hot=0.02).nodes
