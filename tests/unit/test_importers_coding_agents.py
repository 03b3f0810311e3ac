"""Sessions of Claude Code and Codex: what a person and the assistant said is taken, and nothing else."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memstore.ingest.importers import importer_for
from memstore.ingest.importers.coding_agents import ClaudeCode, Codex
from memstore.models import Message
from memstore.visibility import addressed
from tests.unit.importing import Samples, ignored, reasons, records, texts

DATA = Path(__file__).parents[1] / "data"
FERRY = DATA / "claude-code" / "-home-alice-ferry" / "6f1c2a9e-4b7d-4c55-9a0e-3d2f8b1c7e41.jsonl"
(HARBOUR,) = (DATA / "codex").rglob("rollout-*.jsonl")


SAMPLES: Samples = {
    "claude-code": (
        "a.jsonl",
        {"type": "user", "uuid": "u", "parentUuid": None, "sessionId": "s", "message": {"content": "hello"}},
    ),
    "codex": (
        "rollout-a.jsonl",
        [
            {"timestamp": "2026-11-24T15:03:48Z", "type": "session_meta", "payload": {"id": "s", "source": "cli"}},
            {
                "timestamp": "2026-11-24T15:03:49Z",
                "type": "response_item",
                "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
                "metadata": {"client_authored": False},
            },
        ],
    ),
}


def test_a_session_of_claude_code_is_what_was_said() -> None:
    assert importer_for(FERRY) is importer_for(DATA / "claude-code") is ClaudeCode
    found = list(ClaudeCode(DATA / "claude-code").read())
    assert [(one.message["role"], one.message["content"]) for one in records(found)] == [
        (
            "user",
            "We keep the ferry timetable in Postgres, because SQLite locks. I prefer tabs over spaces. List the files.",
        ),
        ("assistant", "I will look at the files first."),
        ("assistant", "There is notes.md; the timetable lives in Postgres."),
        ("assistant", "Understood."),  # of what a command printed, which the person ran
        ("user", "Count to ten."),
        ("user", "Also name the table departures."),
        ("assistant", "The table is called departures now, and lives in Postgres."),
        ("user", "Ask a helper how many tests there are."),
        ("assistant", "There are three tests."),
        ("user", "Count to ten once more."),
        ("user", "What does the line say about <system-reminder> in the log?"),
        ("assistant", "Understood."),
        ("user", "This one is refused by the server."),
    ]
    assert ignored(found) == {
        "notices of the program": 52,
        "calls of tools": 4,
        "results of tools": 4,
        "thoughts of the model": 3,
        "summaries of the session": 1,
    }
    (subagent,) = (DATA / "claude-code").rglob("agent-*.jsonl")
    assert ignored(ClaudeCode(subagent).read()) == {"messages of subagents": 3}
    first = records(found)[0]
    assert (first.conversation, first.title, first.channel) == (FERRY.stem, "/home/alice/ferry", "claude-code")
    assert first.message["external_id"] == "00000001-0000-4000-8000-000000000001"
    assert first.message["occurred_at"] == datetime(2026, 11, 24, 15, 2, 49, 409_000, tzinfo=UTC)


def test_a_session_of_codex_is_what_was_said() -> None:
    assert importer_for(HARBOUR) is importer_for(DATA / "codex") is Codex
    found = list(Codex(DATA / "codex").read())
    assert [(one.message["role"], one.message["content"]) for one in records(found)] == [
        ("user", "Berths of the ferry are numbered from 1. Our linter is ruff, never flake8. List the files."),
        ("assistant", "I will look at the files first."),
        ("assistant", "There is notes.md; the timetable lives in Postgres."),
        ("user", "Count to ten."),
        ("user", "Also name the table departures."),
        ("assistant", "Understood."),
        ("user", "Count to ten once more."),
        ("user", "What does the line say about <skill> in the log?"),
        ("assistant", "Understood."),
        ("user", "This one is refused by the server."),
    ]
    assert ignored(found) == {
        "notices of the program": 68,
        "calls of tools": 3,
        "results of tools": 3,
        "thoughts of the model": 2,
        "summaries of the session": 1,
    }
    first, second = records(found)[:2]
    assert (first.conversation, first.title, first.channel) == (HARBOUR.stem[-36:], "/home/alice/ferry", "codex")
    assert (first.message["external_id"], second.message["external_id"]) == ("message:3", "message:5")
    assert first.message["occurred_at"] == datetime(2026, 11, 24, 15, 3, 49, 143_000, tzinfo=UTC)


def test_what_is_not_this_sessions_own_is_left_out(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in HARBOUR.read_text().splitlines()]
    lines[0]["payload"]["source"] = {"subagent": {"thread_spawn": {"depth": 1}}}
    subagent = tmp_path / "rollout-1.jsonl"
    subagent.write_text("\n".join(map(json.dumps, lines)))
    assert not records(Codex(subagent).read())
    fork = tmp_path / f"{FERRY.stem}.jsonl"
    lines = [json.loads(line) | {"forkedFrom": {"sessionId": "other"}} for line in FERRY.read_text().splitlines()]
    fork.write_text("\n".join(map(json.dumps, lines)))
    assert not records(ClaudeCode(fork).read())


def test_a_line_that_is_still_written_is_named_and_costs_itself(tmp_path: Path) -> None:
    path = tmp_path / FERRY.name
    whole, last, _ = FERRY.read_text().partition("is refused by")
    path.write_text(whole + last)
    found = list(ClaudeCode(path).read())
    assert len(texts(found)) == 12
    (reason,) = reasons(found)
    assert reason.endswith("import it again")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("Is <b><skill>x</skill></b> removed?", "Is <b><skill>x</skill></b> removed?"),
        ("<ide_opened_file>The user opened a.py</ide_opened_file>\nFix it", "Fix it"),
        ("Fix it\n<system-reminder>\nnot theirs\n</system-reminder>", "Fix it"),
        ("<system-reminder> is never closed here", "<system-reminder> is never closed here"),
        ("Do not write `<skill>x</skill>`", "Do not write `<skill>x</skill>`"),
        ("# Files mentioned by the user:\n\n## a.png:\n/tmp/a.png\n\n## My request for Codex:\nRead it.", "Read it."),
    ],
)
def test_what_programs_add_in_a_persons_name_is_removed(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "session.jsonl"
    line = {"type": "user", "uuid": "u", "sessionId": "s", "parentUuid": None, "message": {"content": content}}
    path.write_text(json.dumps(line))
    assert texts(ClaudeCode(path).read()) == [said]


@pytest.mark.parametrize("content", ["@src/ferry.py use tabs here", "@Override is missing here", "  @home: it fails"])
def test_a_prompt_that_begins_with_a_file_is_for_nobody_else(tmp_path: Path, content: str) -> None:
    path = tmp_path / "session.jsonl"
    line = {"type": "user", "uuid": "u", "sessionId": "s", "parentUuid": None, "message": {"content": content}}
    path.write_text(json.dumps(line))
    (found,) = records(ClaudeCode(path).read())
    message = Message.model_construct(role="user", name=None, text=content, meta=found.message["metadata"])
    assert addressed(message, "coding agent")


def test_many_elements_without_an_end_take_no_time(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    content = "<skill>\n<bash-input>\n" * 100_000
    path.write_text(json.dumps({"type": "user", "uuid": "u", "sessionId": "s", "message": {"content": content}}))
    begun = time.perf_counter()
    assert texts(ClaudeCode(path).read()) == [content.strip()]
    assert time.perf_counter() - begun < 5


def line(key: str | None, content: object, parent: str | None = None, **more: object) -> dict:
    kept = {"type": "user", "sessionId": "s", "parentUuid": parent, "timestamp": "2026-09-01T10:00:00Z"}
    return kept | ({"uuid": key} if key else {}) | {"message": {"content": content}} | more


def read_lines(tmp_path: Path, *lines: dict) -> list:
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return list(ClaudeCode(path).read())


def test_a_prompt_that_was_rewound_goes_with_what_followed_it(tmp_path: Path) -> None:
    said = line("a1", "Tabs it is.", "u1", type="assistant")
    result = line("r", [{"type": "tool_result", "content": "x"}], "a2")
    found = read_lines(
        tmp_path, line("u1", "Use tabs."), said, line("u2", "Use spaces."), line("a2", "Good.", "u2", type="assistant"),
        result, line("r2", [{"type": "tool_result", "content": "y"}], "a2"), line("u3", "Thanks.", "r"),
    )  # fmt: skip
    assert texts(found) == ["Use spaces.", "Good.", "Thanks."]
    assert ignored(found)["messages that were rewound"] == 2


def test_what_was_typed_while_the_assistant_worked_comes_once(tmp_path: Path) -> None:
    def queued(text: str) -> dict:
        return {"type": "attachment", "sessionId": "s", "attachment": {"type": "queued_command", "prompt": text}}

    def absorbed(text: str) -> dict:
        return {
            "type": "queue-operation",
            "operation": "remove",
            "sessionId": "s",
            "content": text,
            "reason": "absorbed",
        }

    lines = [line("u1", "Go."), queued("Bump it."), absorbed("Bump it."), absorbed("Keep the API."), queued("Bump it.")]
    found = read_lines(tmp_path, *lines)
    assert (texts(found), reasons(found)) == (["Go.", "Bump it.", "Keep the API.", "Bump it."], [])
    ids = [one.message["external_id"] for one in records(found)]
    assert len(set(ids)) == 4
    assert [one.message["external_id"] for one in records(read_lines(tmp_path, *lines, line("u2", "x", "u1")))][
        :4
    ] == ids


@pytest.mark.parametrize(
    "content",
    [
        "[SYSTEM NOTIFICATION - NOT USER INPUT]\nI am allergic to nuts.",
        '<scheduled-task name="nightly">Run the tests; I live in Porto.</scheduled-task>',
        "<<autonomous-loop>>",
    ],
)
def test_what_a_program_wrote_in_the_persons_place_is_a_systems(tmp_path: Path, content: str) -> None:
    codex = tmp_path / "rollout-1.jsonl"
    lines = [
        {"type": "session_meta", "timestamp": "2026-09-01T10:00:00Z", "payload": {"id": "s"}},
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": content}},
    ]
    codex.write_text("\n".join(map(json.dumps, lines)))
    for found in (read_lines(tmp_path, line("u", content)), list(Codex(codex).read())):
        (record,) = records(found)
        assert (record.message["role"], record.message["content"]) == ("system", content)
        assert record.message["metadata"]["trust"] == "untrusted"


def test_what_the_program_answered_itself_is_ignored(tmp_path: Path) -> None:
    message = {"model": "<synthetic>", "content": [{"type": "text", "text": "No response requested."}]}
    assert texts(read_lines(tmp_path, line("a", "", type="assistant", message=message))) == []
