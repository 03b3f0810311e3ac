"""Calls of tools are read in whatever shape a client stored them."""

from __future__ import annotations

from typing import Any

import pytest

from memstore.tool_calls import arguments_of, arguments_text, name_of, raw_arguments


@pytest.mark.parametrize(
    "call",
    [
        {"id": "1", "type": "function", "function": {"name": "find", "arguments": '{"what": "ferry"}'}},
        {"function": {"name": "find", "arguments": {"what": "ferry"}}},
        {"id": "1", "name": "find", "arguments": '{"what": "ferry"}'},
        {"type": "tool_use", "id": "1", "name": "find", "input": {"what": "ferry"}},
    ],
)
def test_a_call_of_any_shape_has_its_name_and_arguments(call: dict[str, Any]) -> None:
    assert name_of(call) == "find"
    assert arguments_of(call) == raw_arguments(call) == {"what": "ferry"}
    assert arguments_text(call) == '{"what": "ferry"}'


@pytest.mark.parametrize(
    ("stored", "read"),
    [("not json", {"arguments": "not json"}), ("[1]", {"arguments": [1]}), ("[" * 10**5, None), (" ", {}), (None, {})],
)
def test_arguments_that_are_no_object_fail_nothing(stored: object, read: dict[str, Any] | None) -> None:
    call = {"function": {"name": "find", "arguments": stored}}
    assert arguments_of(call) == ({"arguments": stored} if read is None else read)
