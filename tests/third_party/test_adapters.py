"""The suites that others wrote for what the adapters are, and what their pages show: `make conformance`."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.third_party.running import EVERY, PYTHON, ROOT, Suite, prepare, run

PAGES = [path for path in sorted((ROOT / "docs" / "how-to").glob("*.md")) if "memstore.adapters" in path.read_text()]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("THIRD_PARTY" not in os.environ, reason="downloads the suites: make conformance"),
]


@pytest.mark.parametrize("suite", EVERY, ids=lambda suite: suite.module)
def test_a_suite_of_others_passes(suite: Suite, tmp_path: Path) -> None:
    prepare()
    found = run(suite, tmp_path / "report.xml")
    assert found.ran
    assert found.failed == ()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_example_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    prepare()
    [code] = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    mine = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "MEMSTORE_EMBEDDER": "hashing:256"}
    ran = subprocess.run([PYTHON, "-c", code], env=os.environ | mine, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip()
