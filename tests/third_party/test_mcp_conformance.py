"""The scenarios of MCP's published conformance suite that are of any server: `make conformance`.

The others call tools of the suite's own names (`test_simple_text`…), which only a server written for them has.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rest import served

SUITE = "@modelcontextprotocol/conformance@0.1.13"
SCENARIOS = {
    "server-initialize": 1,
    "ping": 1,
    "tools-list": 1,
    "resources-list": 1,
    "prompts-list": 1,
    "server-sse-multiple-streams": 2,
    "dns-rebinding-protection": 2,
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("THIRD_PARTY" not in os.environ, reason="downloads the suite: make conformance"),
    pytest.mark.skipif(shutil.which("npx") is None, reason="needs Node"),
]


@pytest.fixture
def address(url: str, tmp_path: Path) -> Iterator[str]:
    """The address of a server on a database of its own, which ends in order."""
    with served(url, tmp_path) as (process, place):
        yield f"{place}/mcp/alice"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_every_generic_scenario_passes(address: str) -> None:
    for scenario, checks in SCENARIOS.items():
        command = ["npx", "--yes", SUITE, "server", "--url", address, "--scenario", scenario]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert f"Passed: {checks}/{checks}, 0 failed, 0 warnings" in ran.stdout, (scenario, ran.stdout, ran.stderr)
