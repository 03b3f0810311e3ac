"""The pages: links lead somewhere, and their programs run as they stand."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from memstore.store.embedded import server
from tests import documented
from tests.command_line import environment
from tests.model_server import ScriptedServer, says

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
ALL = {str(page.relative_to(ROOT)): documented.read(page) for page in (ROOT / "README.md", *PAGES)}
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.M | re.S)


def blocks(page: Path, language: str) -> list[str]:
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [re.sub(f"^{indent}", "", code, flags=re.M) for indent, name, code in found if name == language]


def anchors(page: Path) -> set[str]:
    """Give what can be pointed at in a page: its headings, as sites and repositories write them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    heads = re.findall(r"^#+ (.+)$", text, re.M)
    return {
        re.sub(r"[^\w\- ]", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", head)).strip().lower().replace(" ", "-")
        for head in heads
    }


@pytest.mark.parametrize("name", [*ALL, "AGENTS.md", "CONTRIBUTING.md", "llms.txt"])
def test_every_link_leads_somewhere(name: str) -> None:
    page = ROOT / name
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
        if link.startswith("https://"):
            continue
        place, _, anchor = link.partition("#")
        there = (page.parent / place).resolve() if place else page
        assert there.exists(), link
        assert not anchor or there.suffix != ".md" or anchor in anchors(there), link


def test_every_page_is_in_the_index_for_models() -> None:
    index = (ROOT / "llms.txt").read_text(encoding="utf-8")
    assert not [
        name for name in ALL if f"]({name})" not in index and name not in ("docs/index.md", "docs/compatibility.md")
    ]


def test_every_page_is_in_the_site_and_every_entry_is_a_page() -> None:
    def named(entries: list[object]) -> list[str]:
        values = [one for entry in entries for one in (entry.values() if isinstance(entry, dict) else [entry])]
        return [name for one in values for name in (named(one) if isinstance(one, list) else [str(one)])]

    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    assert sorted(named(site["nav"])) == [str(page.relative_to(ROOT / "docs")) for page in PAGES]


def test_memories_of_mem0_come_in_as_the_page_says(tmp_path: Path) -> None:
    (_, code) = blocks(ROOT / "docs" / "how-to" / "move-from-mem0.md", "python")
    (tmp_path / "alice.json").write_text(
        '[{"id": "1", "memory": "Is allergic to peanuts", "created_at": "2025-03-01T10:00:00+00:00"}]'
    )
    env = os.environ | {"XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path), "MEMSTORE_EMBEDDER": "hashing:64"}
    for _ in range(2):
        ran = subprocess.run([sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True)
        assert (ran.stderr, ran.stdout) == ("", "1 ['Is allergic to peanuts']\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, page in ALL.items() if page.runs])
def test_a_page_runs_from_its_first_block_to_its_last(name: str, url: str, tmp_path: Path) -> None:
    home = dict.fromkeys(("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), str(tmp_path))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = environment(MEMSTORE_DATABASE_URL=url, PATH=path, PYTHONPATH=str(ROOT), **home)
    command = [sys.executable, "-m", "tests.documented", str(ROOT / name)]
    ran = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    for data in tmp_path.glob("*/data"):
        server.stop(data.parent)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-4000:]
    assert "Traceback" not in ran.stderr


def test_a_block_that_fails_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for block in ("sh\nfalse | cat\ntrue", "python\nraise SystemExit"):
        page.write_text(f"```{block}\n```\n```python\nprint('the end')\n```\n")
        command = [sys.executable, "-m", "tests.documented", str(page)]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
        assert (ran.returncode != 0, "the end" in ran.stdout) == (True, False), block


def test_every_block_that_looks_like_a_program_is_read_as_one() -> None:
    """`bash`, `py` or a title after the language would else be a block that nobody runs."""
    known = {*documented.LANGUAGES, "", "ini", "json", "nginx", "sql", "text", "toml", "ts", "yaml"}
    for name in ALL:
        fences = re.findall(r"^ *(?:```|~~~)(.*)$", (ROOT / name).read_text(encoding="utf-8"), re.M)
        assert set(fences) <= known, name


# The examples


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
    with ScriptedServer([probed, says("Noted."), probed, says("You are allergic to peanuts.")]) as server:
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
