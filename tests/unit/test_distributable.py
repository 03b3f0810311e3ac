"""What a Citus refuses, or answers wrongly, that a Postgres does: no named statement has it."""

import re
from pathlib import Path

import pytest

import memstore.store
from memstore.store.sql import statements
from tests.integration.conftest import OUTLIVING, TABLES

FAMILIES = sorted({path.stem for path in (Path(memstore.store.__file__).parent / "sql").glob("*.sql")} - {"fragments"})
OF_USER = " ".join(sorted(TABLES | OUTLIVING))
OF_COORDINATOR = "backfills api_tokens webhooks webhook_events memstore_schema procrastinate_jobs procrastinate_workers"
DISTRIBUTED, LOCAL = (
    rf"\b(?:FROM|JOIN|INTO|UPDATE|USING) (?:{'|'.join(names.upper().split())})\b" for names in (OF_USER, OF_COORDINATOR)
)
CLOCK = r"\b(?:CLOCK_TIMESTAMP|STATEMENT_TIMESTAMP|NOW|RANDOM|GEN_RANDOM_UUID) ?\("
JOINED = {("watermarks", "behind")}  # a plain join of the two, which Citus makes by reading the local table first


def refused(text: str, key: tuple[str, str] = ("", "")) -> list[str]:
    """Return why a Citus would not run a statement as Postgres does."""
    words = " ".join(re.sub(r"--.*|'[^']*'", " ", text).upper().split())
    is_distributed, is_local = re.search(DISTRIBUTED, words), re.search(LOCAL, words)
    set_list = re.search(r"\bUPDATE \w+(?: \w+)? SET (.*?)(?: WHERE | FROM |$)", words)
    reasons = {
        "a clock in RETURNING": re.search(rf"\bRETURNING\b[^;)]*{CLOCK}", words),
        "a clock in DO UPDATE": re.search(rf"\bDO UPDATE SET .*{CLOCK}", words),
        "more than now() alone in SET": is_distributed
        and not is_local
        and set_list
        and re.search(CLOCK, re.sub(r"= NOW ?\(\)(?=,|$)", "", set_list[1])),
        "what counts transactions is a node's": is_distributed
        and re.search(r"\bPG_(?:CURRENT_)?(?:SNAPSHOT|XACT)", words),
        "tables of the coordinator and of the nodes": is_distributed and is_local and key not in JOINED,
        "a sub-select without columns over all users": is_distributed
        and "%(USER_ID)S" not in words
        and re.search(r"\( ?SELECT FROM\b", words),
        "a lock over all users": is_distributed
        and "%(USER_ID)S" not in words
        and re.search(r"\bFOR (?:NO KEY |KEY )?(?:UPDATE|SHARE)\b", words),
        "a value compared by CASE in rows": re.search(r"\bINSERT INTO .*\bCASE %\(", words),
        "rows inserted from a query": re.search(r"\bINSERT INTO .*\) SELECT\b", words),
        "a side that a value empties, tied to nothing": re.search(r"(?<!\)S )\bAND %\(\w+\)S ?\)", words)
        and not re.search(r"\b\w\.USER_ID = \w\.USER_ID\b", words),
    }
    return [reason for reason, found in reasons.items() if found]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_statement_is_one_that_a_citus_runs(family: str) -> None:
    found = {name: refused(text, (family, name)) for name, text in statements(family).items()}
    assert {name: reasons for name, reasons in found.items() if reasons} == {}


@pytest.mark.parametrize(
    ("family", "name", "now", "before", "reason"),
    [
        ("messages", "take_numbers", "RETURNING c.last_seq", "RETURNING clock_timestamp(), c.last_seq", "RETURNING"),
        ("documents", "put", "updated_at = excluded.updated_at", "updated_at = clock_timestamp()", "DO UPDATE"),
        ("llm_usage", "add_invalid_response", "recorded_at = excluded.recorded_at", "recorded_at = now()", "DO UPDATE"),
        ("embedding_models", "change", "created_at = excluded.created_at", "created_at = now()", "DO UPDATE"),
        ("documents", "refresh", "SET expires_at = shown.until", "SET expires_at = now() + ttl", "in SET"),
        ("erasure", "count_erasure", "erasures + 1", "coalesce(erasures, now())", "in SET"),
        ("watermarks", "backlog", "FROM derivations", "FROM (SELECT FROM derivations) AS d", "without columns"),
        ("archive", "messages", "t.user_id = i.user_id AND", "", "tied to nothing"),
        ("receipts", "events", "%(oldest)s", "pg_snapshot_xmin(pg_current_snapshot())::text::bigint", "transactions"),
        ("queue", "jobs", "j.scheduled_at", "j.scheduled_at, (SELECT max(last_error) FROM derivations)", "coordinator"),
        ("watermarks", "pending", "ORDER BY", "FOR UPDATE --", "a lock"),
        ("facts", "add_source", "VALUES (", "SELECT (", "from a query"),
        ("archive", "add_derivation", "CASE WHEN %(deriver)s = ", "CASE %(deriver)s WHEN ", "by CASE"),
    ],
)
def test_each_of_these_is_refused(family: str, name: str, now: str, before: str, reason: str) -> None:
    text = statements(family)[name]
    assert now in text
    assert any(reason in found for found in refused(text.replace(now, before), (family, name)))
