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


@pytest.mark.slow
def test_old_calls_told_take_less_than_six_tenths_of_the_tokens_and_keep_what_was_asked_for() -> None:
    command = [sys.executable, str(BENCHMARKS / "strategies.py"), "--seeds", "7"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    row = next(line for line in done.stdout.splitlines() if line.startswith("tool_calls "))
    _, _, fewer, _, user, said, argument, result, _, every = row.split()
    assert 40 <= float(fewer) <= 65
    assert (user, said, argument) == ("100.0", "100.0", "100.0")
    assert float(result) >= 98
    assert float(every) >= 95
