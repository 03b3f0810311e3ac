"""The suites of others for the adapters: which there are, how one is run, and what comes of it.

    python -m tests.third_party.running         every suite; writes docs/compatibility.md

They are downloaded as their authors publish them and run in an environment of their own (.venv-third), unchanged but
for the class under test; what is left out is left out by name, with a reason.
"""

import json
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from xml.etree import ElementTree

from tests.third_party.test_mcp_conformance import SCENARIOS, SUITE

ROOT = Path(__file__).parents[2]
SUITES = Path(__file__).parent / "suites"
HOME = ROOT / ".venv-third"
PYTHON = HOME / "bin" / "python"
PAGE = ROOT / "docs" / "compatibility.md"
BEGIN, END = "<!-- suites -->", "<!-- end of suites -->"
NEEDED = (
    "langgraph==1.2.22",
    "langgraph-checkpoint-postgres==3.2.0",
    "langchain-core==1.7.2",
    "langchain-tests==1.1.9",
    "openai-agents==0.24.0",
    "anthropic==2.11.0",
    "llama-index-core==0.14.25",
    "pydantic-ai-slim==2.68.0",
    "aiosqlite",
    "pytest>=9,<10",
    "pytest-asyncio>=1.5,<2",
)
INSIDES = "looks into the tables, locks or connections of the session that it was written for"
DAMAGED = "damages rows behind the session's back; columns of Postgres hold no broken JSON"


@dataclass(frozen=True)
class Suite:
    """Tests of others: for which adapter, of which package, run by which module of `suites/`; what is left out."""

    adapter: str
    package: str
    version: str
    module: str
    what: str
    in_sdist: bool = True
    skips: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.package} {self.version}, {self.what}"


@dataclass(frozen=True)
class Outcome:
    """How many tests ran, the names of those that failed, and how many were left out."""

    ran: int
    failed: tuple[str, ...]
    left_out: int


OURS = "tests a function of the package's own store, and no store"
LINKS = "is about links in a folder: documents have none"
REACHED = "makes the file in a folder of the disk, behind the tool's back"
EVERY = (
    Suite(
        "`memstore.adapters.langgraph.MemstoreStore`",
        "langgraph-checkpoint-postgres",
        "3.2.0",
        "langgraph_store",
        "tests/test_store.py",
        skips={
            "test_escape_like_literal": OURS,
            "test_namespace_match_pattern": OURS,
            "test_nonnull_migrations": OURS,
        },
    ),
    Suite(
        "`memstore.adapters.langgraph.AsyncMemstoreStore`",
        "langgraph-checkpoint-postgres",
        "3.2.0",
        "langgraph_store_async",
        "tests/test_async_store.py",
        skips={"test_abatch_uses_single_pool_checkout": "counts connections that the package's own store takes"},
    ),
    Suite(
        "`memstore.adapters.langchain.MemstoreRetriever`",
        "langchain-tests",
        "1.1.9",
        "langchain_retriever",
        "RetrieversIntegrationTests",
        in_sdist=False,
    ),
    Suite(
        "`memstore.adapters.openai_agents.MemstoreSession`",
        "openai-agents",
        "0.24.0",
        "openai_agents_session",
        "tests/memory/test_session.py and test_session_limit.py",
        skips={
            "test_await_mutation_cancellation_hides_later_failure_without_loop_error": "tests a function of the SDK's",
            "test_sqlite_session_close_*": INSIDES,
            "test_sqlite_session_closes_*": INSIDES,
            "test_sqlite_session_closed_rejects_empty_add_items": "a session closes nothing: the store is not its own",
            "test_sqlite_session_reaps_connections_from_exited_worker_threads": INSIDES,
            "test_sqlite_session_keeps_connections_of_live_worker_threads": INSIDES,
            "test_sqlite_session_file_lock_is_shared_across_instances": INSIDES,
            "test_sqlite_session_failed_*": INSIDES,
            "test_sqlite_session_rollback_failure_evicts_connection": INSIDES,
            "test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome": INSIDES,
            "test_sqlite_session_*corrupt*": DAMAGED,
        },
    ),
    Suite(
        "`memstore.adapters.openai_agents.MemstoreSession`",
        "openai-agents",
        "0.24.0",
        "openai_agents_sqlalchemy",
        "tests/extensions/memory/test_sqlalchemy_session.py",
        skips={
            "test_sqlalchemy_session_defaults_to_escaped_non_ascii_storage": INSIDES,
            "test_sqlalchemy_session_can_store_non_ascii_without_escaping": INSIDES,
            "test_sqlite_*": "is about SQLite under SQLAlchemy",
            "test_pop_item_supports_unknown_delete_rowcount": INSIDES,
            "test_pop_item_retries_returning_claim_lost_to_concurrent_delete": INSIDES,
            "test_mutation_cancellation_waits_for_transaction_exit": INSIDES,
            "test_add_items_waits_for_transient_sqlite_write_lock": INSIDES,
            "test_add_items_cancelled_waiter_does_not_strand_table_init_lock": INSIDES,
            "test_create_tables_false_does_not_allocate_shared_init_lock": INSIDES,
            "test_get_items_same_timestamp_consistent_order": INSIDES,
            "test_pop_item_same_timestamp_returns_latest": INSIDES,
            "test_get_items_orders_by_id_for_ties": INSIDES,
            "test_engine_property_*": INSIDES,
            "test_*corrupt*": DAMAGED,
        },
    ),
    Suite(
        "`memstore.adapters.anthropic.MemstoreMemoryTool`, `AsyncMemstoreMemoryTool`",
        "anthropic",
        "2.11.0",
        "anthropic_memory_tool",
        "tests/lib/tools/memory_tools/test_filesystem.py",
        skips={
            "test_mkdir_parents_not_world_writable_under_permissive_umask": "is about folders of the disk",
            "test_validate_path_returns_resolved_path_not_symlink_target": LINKS,
            "test_read_rejects_*": LINKS,
            "test_view_rejects_directory_symlink_created_after_validation": LINKS,
            "test_symlink_validation_*": LINKS,
            "test_view_lists_symlinks_only_when_they_stay_inside_memories": LINKS,
            "TestBetaAsyncLocalFilesystemMemoryTool.test_*crlf*": REACHED,
        },
    ),
)


def prepare() -> None:
    """Make the environment, where it is not there with what is needed."""
    stamp, wanted = HOME / ".made", sha256("\n".join(NEEDED).encode()).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    subprocess.run([sys.executable, "-m", "venv", HOME], check=True)
    install = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-e", ROOT, *NEEDED]
    subprocess.run(install, check=True)
    stamp.write_text(wanted)


def published(suite: Suite) -> Path:
    """Give the folder of the package as it is published, with its tests."""
    folder = HOME / "published" / f"{suite.package.replace('-', '_')}-{suite.version}"
    if not folder.is_dir():
        wanted = ["--no-deps", "--no-binary", ":all:", "--dest", folder.parent, f"{suite.package}=={suite.version}"]
        subprocess.run([PYTHON, "-m", "pip", "download", "--quiet", *wanted], check=True)
        with tarfile.open(f"{folder}.tar.gz") as packed:
            packed.extractall(folder.parent, filter="data")
    return folder


def run(suite: Suite, report: Path) -> Outcome:
    """Run a suite; `report` is a file that it may write."""
    folder = published(suite) if suite.in_sdist else SUITES
    apart = {key: value for key, value in os.environ.items() if not key.startswith(("MEMSTORE_", "PYTEST_", "PYTHON"))}
    paths = os.pathsep.join(map(str, (folder, SUITES)))
    environment = apart | {"PYTHONPATH": paths, "SUITE_SKIPS": json.dumps([*suite.skips]), "MEMSTORE_CONFIG": ""}
    options = f"-c {os.devnull} --noconftest -p memstore_skips -p no:cacheprovider --junitxml={report}".split()
    loops = ["-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function"]
    command = [PYTHON, "-m", "pytest", "-q", *options, *loops, SUITES / f"{suite.module}.py"]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=1800)
    if ran.returncode not in (0, 1):
        raise RuntimeError(f"{suite.name} could not be run:\n{ran.stdout}\n{ran.stderr}")
    cases = ElementTree.parse(report).getroot().findall(".//testcase")
    failed = [
        case.get("name", "") for case in cases if case.find("failure") is not None or case.find("error") is not None
    ]
    told = next(line for line in reversed(ran.stdout.splitlines()) if " in " in line)
    left_out = next((int(part.split()[0]) for part in told.split(", ") if "deselected" in part), 0)
    return Outcome(len(cases), tuple(failed), left_out)


def mcp() -> str:
    """Run the scenarios of MCP's conformance suite; give what the page says of them."""
    test = [sys.executable, "-m", "pytest", "-q", "-rs", "tests/third_party/test_mcp_conformance.py"]
    ran = subprocess.run(test, cwd=ROOT, env=os.environ | {"THIRD_PARTY": "1"}, capture_output=True, text=True)
    checks = sum(SCENARIOS.values())
    passed = f"{checks} of {checks} checks" if "1 passed" in ran.stdout else "**not passed**"
    passed = "not run: needs Node" if "1 skipped" in ran.stdout else passed
    left_out = "scenarios that call tools of its own"
    return f"| `memstore serve`, MCP | {SUITE}: {len(SCENARIOS)} scenarios of any server | {passed} | {left_out} |"


def lines(outcomes: dict[str, Outcome]) -> list[str]:
    """Give what the page says of the suites, as a table and the lists of what is left out."""
    table = ["| adapter | suite | passed | left out |", "|---|---|---|---|"]
    why: list[str] = []
    for suite in EVERY:
        found = outcomes[suite.module]
        passed = f"{found.ran - len(found.failed)} of {found.ran}"
        table.append(
            f"| {suite.adapter} | {suite.package} {suite.version}: {suite.what} | {passed} | {found.left_out} |"
        )
        if suite.skips:
            why += ["", f"Left out of {suite.package}'s {suite.what}:", ""]
            why += [f"- `{name}`: {reason}" for name, reason in suite.skips.items()]
        why += [f"- **failed**: `{name}`" for name in found.failed]
    return [*table, mcp(), *why]


def write(outcomes: dict[str, Outcome]) -> None:
    """Put the table into the page, in the place of the old one."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text("\n".join([before + BEGIN, *lines(outcomes), END + after]), encoding="utf-8")


def main() -> int:
    prepare()
    outcomes = {}
    for suite in EVERY:
        outcomes[suite.module] = found = run(suite, HOME / f"{suite.module}.xml")
        print(f"{suite.name}: passed {found.ran - len(found.failed)} of {found.ran}, {found.left_out} left out")
    write(outcomes)
    return any(one.failed for one in outcomes.values())


if __name__ == "__main__":
    sys.exit(main())
