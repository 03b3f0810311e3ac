"""The benchmarks still run; what they measure is read by people."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memstore.providers import load_counter

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
    assert float(result) >= 99
    assert float(every) >= 98.5


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


@pytest.mark.slow
def test_budgets_says_why_a_peer_cannot_be_installed(tmp_path: Path) -> None:
    nowhere = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    done = budgets("--systems", "LangChain", "--cache", str(tmp_path), **nowhere)
    assert (done.returncode, done.stdout) == (0, "")
    assert "skipped: LangChain cannot be installed: ERROR: No matching distribution" in done.stderr


def test_budgets_are_measured_by_the_published_rule_and_every_broken_pair_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS / "peers")
    import conversations
    import environments
    import measure

    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(environments.vocabularies(tmp_path)))
    ours = load_counter("tiktoken:o200k_base")
    for kind in conversations.KINDS:
        messages = conversations.drawn(kind, 500, 1).messages
        assert measure.chat_tokens(messages) == ours.count_messages(messages)
    messages = conversations.drawn("tools, answer awaited", 500, 1).messages
    calling = next(n for n, one in enumerate(messages) if "tool_calls" in one)
    assert measure.broken_pairs(messages) == 0
    assert measure.broken_pairs(messages[:-1]) == 1
    assert measure.broken_pairs(messages[:calling] + messages[calling + 1 :]) == len(messages[calling]["tool_calls"])
    assert measure.broken_pairs(messages[: calling + 1]) == len(messages[calling]["tool_calls"])


def test_the_tables_of_budgets_in_the_docs_are_those_of_the_figures() -> None:
    reference = BENCHMARKS.parent / "docs" / "reference"
    done = budgets("--from", str(reference / "figures" / "budgets.json"))
    assert done.returncode == 0, done.stderr
    docs = (reference / "budgets.md").read_text(encoding="utf-8")
    assert [line for line in done.stdout.splitlines() if line not in docs] == []
