"""What the REST server says of itself: the page of it names every resource, and requests made from it find no fault."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import memstore
from memstore.server.http.app import create_app
from memstore.settings import Settings
from tests.acceptance.test_rest_server import served
from tests.rest import HASHING

ROOT = Path(__file__).parents[2]
DOSE = int(os.environ.get("TEST_DOSE", "1"))
# `positive_data_acceptance` is not among the checks: that a budget is too small, a
# conversation empty is no matter of a schema, and answered with 422.
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
    "response_schema_conformance,negative_data_rejection,missing_required_header,unsupported_method,ignored_auth"
)


def test_the_page_has_every_resource() -> None:
    page = (ROOT / "docs" / "reference" / "rest.md").read_text(encoding="utf-8")
    closed: Any = SimpleNamespace(settings=Settings(), tokens=None)
    for path in create_app(closed).openapi()["paths"]:
        assert path.removeprefix("/v1/users/{user}").removeprefix("/v1") in page, path


@pytest.mark.slow
def test_requests_made_from_the_description_find_no_fault(url: str, tmp_path: Path) -> None:
    pytest.importorskip("schemathesis")
    with memstore.open(url, settings=HASHING) as store:
        token = store.tokens.create().secret
    with served(url, tmp_path) as (_, address):
        command = [Path(sys.executable).parent / "schemathesis", "run", f"{address}/openapi.json", "--no-color"]
        options = ["-H", f"Authorization: Bearer {token}", "--checks", CHECKS]
        # The phase that goes through every boundary takes a minute and a half: with TEST_DOSE=2 and more.
        phases = "coverage,fuzzing" if DOSE > 1 else "fuzzing"
        dose = ["--max-examples", str(5 * DOSE), "--phases", phases, "--generation-database", "none"]
        ran = subprocess.run([*command, *options, *dose], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
    log = (tmp_path / "server.log").read_text()
    assert "Traceback" not in log and "unexpected" not in log
