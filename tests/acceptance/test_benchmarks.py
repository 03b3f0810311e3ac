"""The benchmarks still run; what they measure is read by people."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
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
    assert [row.split()[0] for row in done.stdout.splitlines()[2:]] == ["messages", "200", "400"]


@pytest.mark.slow
def test_scale_compares_each_size_with_its_floor_and_says_how_it_was_asked(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    some = ["--units", "300", "600", "--beside", "2", "--json", str(figures)]
    environment = os.environ | {"MEMSTORE_EMBEDDER": "none"}
    command = [sys.executable, str(BENCHMARKS / "run.py"), "scale", *some]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    told = json.loads(figures.read_text(encoding="utf-8"))
    assert told["command"] == "benchmarks/run.py scale --units 300 600 --beside 2"
    (recall,) = [one for one in told["tables"] if one["name"] == "recall"]
    rows = [dict(zip(recall["columns"], row, strict=True)) for row in recall["rows"]]
    assert [(row["units"], row["recall@20 %"]) for row in rows] == [("300", 100.0), ("600", 100.0)]
    assert all(row["ratio"] == pytest.approx(row["recall ms"] / row["floor ms"], rel=0.05) for row in rows)


@pytest.mark.slow
def test_a_crowd_loses_nothing_when_its_server_is_killed() -> None:
    """With TEST_DOSE=120 for ten minutes and more."""
    minutes = str(0.08 * int(os.environ.get("TEST_DOSE", "1")))
    command = [sys.executable, str(BENCHMARKS / "crowd.py"), "--users", "25", "--minutes", minutes, "--pause", "1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| kills of the server | 1 |" in done.stdout
    assert "| lost | 0 |" in done.stdout


@pytest.mark.slow
def test_a_few_clients_at_once_see_no_error_and_the_memory_is_told(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    some = ["--clients", "4", "--users", "5", "--warm-up", "2", "--seconds", "10", "--json", str(figures)]
    command = [sys.executable, str(BENCHMARKS / "steady.py"), "--embedders", "hashing:64", *some]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    told = json.loads(figures.read_text(encoding="utf-8"))["tables"]
    assert [one["name"] for one in told] == ["summary", "hashing-curve"], done.stderr
    ((_, requests, failed, *_),) = told[0]["rows"]
    assert (requests > 20, failed) == (True, 0), done.stdout
    assert all(server > 50 and database > 10 for _, _, server, database, *_ in told[1]["rows"])


@pytest.mark.parametrize(
    "name", ["run.py locomo", "run.py beam", "run.py peers", "summaries.py", "workers.py", "years.py"]
)
def test_a_benchmark_says_when_its_data_is_not_there(name: str, tmp_path: Path) -> None:
    file, *part = name.split()
    command = [sys.executable, str(BENCHMARKS / file), *part, "--data", str(tmp_path)]
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
    few = ["--kinds", "emoji", "--budgets", "200", "--seeds", "1"]
    done = budgets("--systems", "LangChain", *few, "--cache", str(tmp_path), **nowhere)
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


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)


@pytest.mark.usefixtures("measure")
def test_evidence_counts_until_the_first_piece_that_does_not_fit() -> None:
    from evidence import Piece, share

    ranked = [Piece("a", 60), Piece("b", 40), Piece("c", 1), Piece("a", 1), Piece("d", 500)]
    assert share(ranked, frozenset("b"), [99, 100]) == [0, 1]
    assert share(ranked, frozenset("ac"), [100, 101]) == [0.5, 1]
    assert share(ranked, frozenset("ad"), [50, 600, 601]) == [0, 0.5, 1], "a second chunk of a message takes no room"
    assert share([Piece("d", 500), Piece("a", 1)], frozenset("a"), [100, 1000]) == [0, 1]
    assert share([], frozenset("a"), [100]) == [0]


@pytest.mark.usefixtures("measure")
def test_under_days_a_day_costs_once() -> None:
    from evidence import Piece, share, tokens

    day = tokens("[8 May 2023]")
    first, second = Piece.of("a", datetime(2023, 5, 8, tzinfo=UTC), "Ann: hi"), Piece("b", 99, "[8 May 2023]", 10)
    assert first.day == "[8 May 2023]"
    assert first.tokens == tokens("[8 May 2023] Ann: hi")
    cost = day + first.bare
    assert share([first, second], frozenset("b"), [cost + 9, cost + 10], by_day=True) == [0, 1]
    later = second._replace(day="[9 May 2023]")
    assert share([first, later], frozenset("b"), [cost + 10, cost + 10 + day], by_day=True) == [0, 1]


@pytest.mark.usefixtures("measure")
def test_a_tally_leaves_adversarial_questions_apart_and_counts_each_question_alike() -> None:
    from data import Question
    from evidence import Piece, Tally

    tally = Tally([10])
    for category, evidence in (("one", "a"), ("one", "bc"), ("adversarial", "z")):
        tally.add(
            "system", Question("u", "?", category, frozenset(evidence)), [Piece("a", 5), Piece("b", 5), Piece("c", 5)]
        )
    assert tally.table("t", "").rows == [["system", 75.0, 2]]
    assert tally.by_category("t", "", "system").rows == [["adversarial", 0.0, 1], ["one", 75.0, 2]]
    assert tally.of_category("t", "", "adversarial").rows == [["system", 0.0, 1]]


@pytest.mark.usefixtures("measure")
def test_shuffled_questions_are_others_of_the_same_user_each_once() -> None:
    from data import Question
    from evidence import others

    asked = [Question(user, str(n), "", frozenset()) for n, user in enumerate("aabababaa")]
    turned = others(asked)
    assert sorted(map(hash, turned)) == sorted(map(hash, asked))
    assert all(one.user == other.user and one != other for one, other in zip(asked, turned, strict=True))


@pytest.mark.usefixtures("measure")
def test_floors_and_baselines_rank_as_their_names_say() -> None:
    from baselines import Baselines
    from corpus import Corpus, Unit

    at = datetime(2023, 5, 8, tzinfo=UTC)
    said = [
        "user: I bought boats",
        "assistant: a boat, how nice",
        "user: the weather",
        "assistant: it rains on the cat",
    ]
    units = [Unit(f"m{n}", text.split(":")[0], at, text) for n, text in enumerate(said)]
    vectors = np.eye(4, dtype=np.float32)
    found = dict(
        Baselines(Corpus("u", units, vectors, {})).rankings("which boat", np.array([0, 0.1, 0.2, 1], np.float32))
    )
    ranked = {name: rows.tolist() for name, rows in found.items()}
    assert ranked["floor: newest first"] == [3, 2, 1, 0]
    assert ranked["floor: oldest user messages first"] == [0, 2]
    assert ranked["floor: dense, user messages only"] == [2, 0]
    assert ranked["dense"] == [3, 2, 1, 0]
    assert ranked["BM25"][0] == 1
    assert set(ranked["BM25, stems"][:2]) == {0, 1}
    assert ranked["hybrid RRF"].index(1) < ranked["hybrid RRF"].index(2)
    assert ranked["hybrid RRF, user messages only"] == [row for row in ranked["hybrid RRF"] if row in (0, 2)]


@pytest.mark.usefixtures("measure")
def test_figures_are_read_as_they_were_written_and_drawn_row_by_row(tmp_path: Path) -> None:
    from plot import drawn
    from report import Table, read, written

    table = Table(
        "recall", "Recall", ("system", "500", "1,000", "questions"), [["a < b", 54.1, 64.4, 760], ["c", None, 1.0, 1]]
    )
    written(tmp_path / "some.json", "benchmarks/run.py some", [table])
    head, tables = read(tmp_path / "some.json")
    assert (tables, head["command"]) == ([table], "benchmarks/run.py some")
    assert {"commit", "date", "machine", "versions"} <= head.keys()
    plotted = ElementTree.fromstring(drawn(tables))
    assert len(plotted.findall("{*}polyline")) == 2


@pytest.mark.usefixtures("measure")
def test_figures_in_the_documentation_are_those_of_the_files() -> None:
    from report import filled
    from run import PAGES

    pages = {page: text for page in PAGES if "<!-- figures: " in (text := page.read_text(encoding="utf-8"))}
    assert {"README.md", "benchmarks.md", "facts.md", "contexts.md", "scale.md"} <= {page.name for page in pages}
    for page, text in pages.items():
        assert filled(text) == text, f"{page.name} has other figures: benchmarks/run.py docs"


@pytest.mark.usefixtures("measure")
def test_the_command_in_a_file_of_figures_names_no_folder_of_the_machine() -> None:
    from report import command_line

    given = [
        "/here/benchmarks/some.py",
        "part",
        "--data",
        "/there",
        "--sizes",
        "1",
        "2",
        "--json",
        "a b.json",
        "--curve",
    ]
    assert command_line(given) == "benchmarks/some.py part --sizes 1 2 --curve"
    assert command_line(["some.py", "--json=x.json", "--name", "a b"]) == "benchmarks/some.py --name 'a b'"


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


def figures(file: str, table: str) -> dict[str, list[float]]:
    """Give the figures of a table by the first cell of their rows."""
    told = json.loads((BENCHMARKS / "figures" / f"{file}.json").read_text(encoding="utf-8"))["tables"]
    return {row[0]: row[1:] for one in told if one["name"] == table for row in one["rows"]}


@pytest.mark.usefixtures("measure")
@pytest.mark.parametrize(("file", "plot"), [("locomo", "locomo.svg"), ("peers", "peers.svg")])
def test_pictures_in_the_documentation_are_those_of_the_figures(file: str, plot: str) -> None:
    from plot import drawn
    from report import read

    _, tables = read(BENCHMARKS / "figures" / f"{file}.json")
    page = BENCHMARKS.parent / "docs" / "reference"
    assert drawn(tables) == (page / "figures" / plot).read_text(encoding="utf-8")
    assert f"](figures/{plot})" in (page / "benchmarks.md").read_text(encoding="utf-8")


def test_what_pages_say_in_words_is_what_the_figures_say() -> None:
    docs = BENCHMARKS.parent / "docs"
    page, beside = (
        " ".join((docs / name).read_text(encoding="utf-8").split())
        for name in ("reference/benchmarks.md", "explanation/comparison.md")
    )
    found = figures("peers", "recall-locomo")
    peers = [found[name] for name in figures("peers", "versions-locomo")]
    ours, hybrid = found["memstore"], found["hybrid RRF"]
    least, most = ([f"{limit(column):.0f}" for column in zip(*peers, strict=True)] for limit in (min, max))
    assert f"Within 500 tokens memstore has {ours[0]:.0f} % of the messages of LoCoMo" in page
    assert f"vectors has {hybrid[0]:.0f} %, the memories beside it have {least[0]} to {most[0]} %." in page
    assert f"At 4,000 tokens these are {ours[3]:.0f}, {hybrid[3]:.0f} and {least[3]} to {most[3]} %." in page
    row = f"| {ours[0]:.0f} % | {least[0]} to {most[0]} % without a model; plain hybrid search has {hybrid[0]:.0f} % |"
    assert row in beside
    beam = figures("beam", "recall-1M")
    shares = [beam[name][0] for name in ("memstore", "hybrid RRF", "hybrid RRF, user messages only")]
    long = "memstore has {:.0f} % within 1,000 tokens, hybrid search {:.0f} %, and {:.0f} % where it looks at user"
    assert long.format(*shares) in page
    behind = [
        mine - theirs
        for size in ("100K", "500K", "1M")
        for table in [figures("beam", f"recall-{size}")]
        for mine, theirs in zip(table["memstore"][:3], table["hybrid RRF, user messages only"][:3], strict=True)
    ]
    assert f"has only {min(behind):.0f} to {max(behind):.0f} points less" in page
    kinds = figures("beam", "categories-100K")
    assert f"{kinds['summarization'][0]:.0f} % and {kinds['event ordering'][0]:.0f} % within 1,000 tokens" in page
    longest = figures("beam-10M", "recall-10M")
    last = [longest[name][3] for name in ("hybrid RRF, user messages only", "memstore")]
    assert "has more within 8,000 tokens ({:.0f} beside {:.0f} %, of 11 questions)".format(*last) in page


def test_what_pages_say_of_time_is_what_the_figures_say() -> None:
    docs = BENCHMARKS.parent / "docs"
    page = " ".join((docs / "reference" / "benchmarks.md").read_text(encoding="utf-8").split())
    once, grown = figures("peers", "latency-locomo"), figures("sizes", "sizes")
    sooner = [name for name in ("LangGraph PostgresStore", "mem0 (infer off, pgvector)") if name in once]
    assert "LangGraph's store and mem0 over pgvector answered sooner at every size" in page
    assert all(peer < ours for name in sooner for peer, ours in zip(grown[name], grown["memstore"], strict=True))
    ratios = [once[name][0] / once["memstore"][0] for name in sooner]
    assert "in two thirds and three quarters of its time at 2,760 units" in page
    assert ratios == pytest.approx([2 / 3, 3 / 4], abs=0.04)
    assert "in a quarter of it at 100,000" in page
    assert [grown[name][2] / grown["memstore"][2] for name in sooner] == pytest.approx([1 / 4] * 2, abs=0.04)
    times = [f"{once[name][0]:.1f}" for name in (*sooner, "memstore")]
    comparison = " ".join((docs / "explanation" / "comparison.md").read_text(encoding="utf-8").split())
    assert f"in {times[0]} and {times[1]} ms beside memstore's {times[2]}" in comparison


@pytest.mark.usefixtures("measure")
def test_the_page_has_the_command_of_every_file_of_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from run import command, parsed

    monkeypatch.chdir(tmp_path)
    page = (BENCHMARKS.parent / "docs" / "reference" / "benchmarks.md").read_text(encoding="utf-8")
    lines = [shlex.split(line)[2:] for line in page.splitlines() if line.startswith("python benchmarks/run.py")]
    written = {options.json.name: shlex.split(command(options)) for options in map(parsed, lines) if options.json}
    files = {path.name: json.loads(path.read_text("utf-8")) for path in (BENCHMARKS / "figures").glob("*.json")}
    made = {name: shlex.split(told["command"]) for name, told in files.items() if "command" in told}
    of_run = {name: words for name, words in made.items() if words[0] == "benchmarks/run.py"}
    assert len(of_run) >= 6
    for name, words in of_run.items():
        assert " ".join(written[name]) == " ".join(words), name  # older files have names with blanks unquoted


@pytest.mark.usefixtures("measure")
def test_the_command_of_figures_can_be_given_again() -> None:
    from run import command, parsed

    given = ["peers", "--sets", "sizes", "--systems", "mem0 (infer off, pgvector)", "--units", "1000", "50000"]
    told = shlex.split(command(parsed(given)))
    assert (told[0], told[1:]) == ("benchmarks/run.py", given)
    with_models = command(parsed(["locomo", "--reranker", "cross-encoder:/home/me/small"]))
    assert with_models == "benchmarks/run.py locomo --reranker cross-encoder:FOLDER/small"


@pytest.mark.usefixtures("measure")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("peers --sets size", "invalid choice: 'size'"),
        ("peers --systems mem0", "--systems mem0: choose from 'LangChain PGVector' "),
        ("beam --sizes 200K", "invalid choice: '200K'"),
        ("beam --sizes 10M --derivers embedd", "invalid choice: 'embedd'"),
        ("speed --units 5000 0", "'0' is no number of 21 or more"),
        ("scale --units many", "'many' is no number of 21 or more"),
        ("locomo --units 5000", "--units is of peers, speed, scale, not of locomo"),
        ("speed --reranker cross-encoder:FOLDER", "--reranker is of locomo, beam, peers, not of speed"),
        ("scale --plot {}/scale.svg", "--plot is of locomo, beam, peers, not of scale"),
        ("locomo --json {}", "is a folder; name a file in it"),
        ("locomo --json {0}/file/locomo.json", "/file/locomo.json (File exists); name another file"),
    ],
)
def test_what_would_fail_after_hours_or_be_passed_over_is_refused_at_once(
    given: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from run import parsed

    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as ended:
        parsed(given.format(tmp_path).split())
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("measure")
def test_a_page_that_asks_for_a_table_that_is_not_there_is_told_which_there_are() -> None:
    from report import filled

    with pytest.raises(ValueError, match=r"peers\.json has no table 'recal'; name one of recall-locomo, "):
        filled("<!-- figures: peers.recal -->\n<!-- /figures -->")


@pytest.mark.usefixtures("measure")
def test_no_two_systems_of_a_picture_look_alike() -> None:
    from plot import COLOURS, drawn
    from report import Table

    rows = [[f"system {n}", 90.0 - n, 95.0 - n] for n in range(2 * len(COLOURS))]
    lines = ElementTree.fromstring(drawn([Table("t", "T", ("system", "500", "1,000"), rows)])).findall("{*}polyline")
    assert len({(line.get("stroke"), line.get("stroke-dasharray")) for line in lines}) == len(rows)
