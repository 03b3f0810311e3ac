"""The suites that others wrote for what the adapters are: `make conformance`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.third_party.running import EVERY, Suite, prepare, run

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
