"""JSON is refused by its depth, which is counted: how deep Python itself can go differs by version. Calls hold JSON."""

from typing import Any

import pytest

from memstore.errors import InvalidInput
from memstore.ingest.validation import check_json
from memstore.providers.tiktoken import as_json
from memstore.text import MAX_JSON_DEPTH, MAX_JSON_DEPTH_READ, is_deep, read_json
from memstore.tool_calls import arguments_of, arguments_text, name_of, raw_arguments


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize("levels", [1, MAX_JSON_DEPTH, MAX_JSON_DEPTH + 2, 5_000, 100_000])
def test_the_same_depth_is_refused_in_every_python(levels: int) -> None:
    value, text = nested(levels), "[" * levels + "]" * levels
    assert is_deep(value) == (levels > MAX_JSON_DEPTH + 1)
    if levels <= MAX_JSON_DEPTH:
        assert check_json(value, "it") == len(text)
        assert as_json(value) == text
        assert read_json(text) == value
        return
    for check in (lambda: check_json(value, "it"), lambda: as_json(value)):
        with pytest.raises(InvalidInput, match="deeper than 100 levels"):
            check()
    if levels > MAX_JSON_DEPTH_READ:
        with pytest.raises(ValueError, match="nested deeper"):
            read_json(text)
        call = {"function": {"name": "find", "arguments": text}}
        assert raw_arguments(call) == text, "no JSON that is read, and kept"


def test_brackets_in_texts_are_no_levels_and_nothing_recurses_without_end() -> None:
    assert read_json('["' + "[{" * 500 + '\\"[", 1]')[1] == 1
    with pytest.raises(ValueError):
        read_json('["' + '[{\\"' * 50_000)
    ring: list[Any] = []
    ring += [ring, ring, {"a": ring}]
    assert is_deep(ring)


# Calls of tools, in whatever shape a client stored them


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
