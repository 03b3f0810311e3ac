"""What the command line shows: safe texts, JSON."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from memstore.cli import output
from memstore.cli.output import escape, one_line, print_json
from memstore.models import Tier


@given(st.text())
def test_what_is_shown_holds_nothing_that_a_terminal_obeys(text: str) -> None:
    shown = escape(text)
    assert all(char in "\n\t" or char >= " " for char in shown)
    assert not any("\x7f" <= char <= "\x9f" for char in shown)
    assert "\n" not in one_line(text)
    assert "\t" not in one_line(text)


@dataclass(frozen=True, slots=True)
class Shape:
    tier: Tier
    parts: object


def test_json_is_json_whatever_it_holds(capsys: pytest.CaptureFixture[str]) -> None:
    said = 'é👩‍👧 "quoted" \x1b \x9b \u202e \udcff'
    when = datetime(2024, 5, 1, tzinfo=UTC)
    print_json([Shape(Tier.FACTS, MappingProxyType({"said": said, "at": when})), {UUID(int=1)}, None, 1, True])
    text = capsys.readouterr().out
    assert json.loads(text) == [
        {"tier": "facts", "parts": {"said": said, "at": "2024-05-01T00:00:00+00:00"}},
        ["00000000-0000-0000-0000-000000000001"],
        None,
        1,
        True,
    ]
    assert "é👩‍👧" in text
    assert not set(text) & set("\x1b\x9b\u202e")


def test_json_is_json_in_every_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="latin-1"))
    output.escape_unencodable()
    print_json("é👩‍👧")
    print("é→")
    output.sys.stdout.flush()
    first, second = raw.getvalue().decode("latin-1").splitlines()
    assert (json.loads(first), second) == ("é👩‍👧", "é\\u2192")
