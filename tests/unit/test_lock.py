"""The lock file is of this project, whole, and names no place from which packages come."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "tools" / "lock.txt").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ENTRIES = re.split(r"^(?=[a-z0-9])", LOCK, flags=re.M | re.I)[1:]
LOCKED = {canonicalize_name(Requirement(one.split(" \\")[0]).name): one for one in ENTRIES}
APART = {"langgraph", "langchain", "openai-agents", "llamaindex", "pydantic-ai"}  # `make compatibility` installs them
EXTRAS = {name: asked for name, asked in PROJECT["optional-dependencies"].items() if name not in APART}
ASKED = [*PROJECT["dependencies"], *(one for asked in EXTRAS.values() for one in asked)]


@pytest.mark.parametrize("asked", sorted(set(ASKED)))
def test_what_the_project_asks_for_is_locked_at_a_version_that_will_do(asked: str) -> None:
    """Run `make lock` where it is not."""
    wanted = Requirement(asked)
    entry = LOCKED.get(canonicalize_name(wanted.name))
    assert entry is not None
    (locked,) = Requirement(entry.split(" \\")[0]).specifier
    assert locked.operator == "=="
    assert wanted.specifier.contains(locked.version, prereleases=True)


def test_every_entry_has_hashes_and_no_place() -> None:
    assert len(LOCKED) > 50
    assert [name for name, entry in LOCKED.items() if not re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry)] == []
    assert not re.search(r"://|file:| @ ", LOCK)
    assert set(re.findall(r"--[a-z-]+", LOCK)) == {"--hash"}, "an option would say where packages come from"
    assert "torch" not in LOCKED, "which build of it there is depends on the machine (tools/constraints.txt)"
