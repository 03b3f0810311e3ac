"""The benchmarks still run; what they measure is read by people."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.slow
def test_speed_prints_its_ratios_side_by_side() -> None:
    command = [sys.executable, str(BENCHMARKS / "speed.py"), "adds", "--rounds", "1"]
    environment = os.environ | {"MEMSTORE_EMBEDDER": "none"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if ">= 0.7" in line]
    assert [row.split("  ")[0] for row in rows] == ["single adds", "adds in batches of 2,000"]


@pytest.mark.slow
def test_linear_prints_a_row_for_each_size() -> None:
    command = [sys.executable, str(BENCHMARKS / "linear.py"), "--sizes", "200,400"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert [row.split()[0] for row in done.stdout.splitlines()] == ["messages", "200", "400"]


@pytest.mark.parametrize("name", ["recall.py", "summaries.py"])
def test_a_benchmark_says_when_its_data_is_not_there(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / name), "--data", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.startswith("skipped: ")) == (0, True)
