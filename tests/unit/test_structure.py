"""Where what a tool gave is cut, so that a part of it reads as something."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstore.derive.chunks import chunks
from memstore.derive.sentences import sentences
from memstore.derive.structure import parts
from tests.unit.strategies import HARD

ROWS = [{"id": f"off_{n}", "text": "It was late. Nobody came, again.", "price": n / 2} for n in range(60)]
LOG = "\n".join(f"10:{n:02d} INFO step {n} is done. Layer {n}: pushed" for n in range(60))
PROSE = "The ferry leaves at nine, and nobody waits. It is late. " * 40
WRAPPED = "\n".join(
    ["The ferry leaves at nine. Nobody waits for those who", "come late, says the captain, and he is right. It is"] * 20
)
scalars = (
    st.none() | st.booleans() | st.integers() | st.text(max_size=30) | st.sampled_from(['"a", {', "}]", "\\", "é. Ü"])
)
values = st.recursive(
    scalars, lambda one: st.lists(one, max_size=5) | st.dictionaries(st.text(max_size=5), one, max_size=5)
)
written = st.builds(json.dumps, values, indent=st.sampled_from([None, 2]), ensure_ascii=st.booleans())


def cut(text: str, limit: int = 80) -> list[str]:
    return [text[start:stop] for start, stop in chunks(text, limit, lambda piece: len(piece) // 4 + 1, 0, parts)]


@given(written | st.text() | st.lists(st.sampled_from(HARD)).map("\n".join), st.integers(1, 60))
def test_every_character_is_in_one_part(text: str, longest: int) -> None:
    spans = parts(text, longest)
    places = [place for start, stop in spans for place in range(start, stop)]
    assert places == sorted(set(places))
    assert {place for place, one in enumerate(text) if not one.isspace()} <= set(places)
    assert all(text[start:stop] == text[start:stop].strip() != "" for start, stop in spans)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("value", [ROWS, {"total": 60, "found": {"rows": ROWS}, "took": 3}])
def test_json_is_cut_between_its_elements(value: object, indent: int | None) -> None:
    pieces = cut(json.dumps(value, indent=indent))
    assert len(pieces) > 10
    for piece in pieces[1:]:
        assert piece.startswith('{"id": "off_' if indent is None else "{\n")
    for piece in pieces[1:-1]:
        assert len(json.loads(f"[{piece.rstrip(',')}]")) >= 1, "whole elements"


def test_an_element_that_is_too_long_is_cut_between_its_own_and_a_long_text_between_its_sentences() -> None:
    value = {"first": {"name": "x" * 200, "size": 7, "more": "y" * 150}, "page": PROSE}
    pieces = cut(json.dumps(value))
    assert '"size": 7' in pieces[1] or '"size": 7' in pieces[0]
    assert {piece[:4] for piece in pieces} <= {'{"fi', '"siz', '"mor', '"pag', "The ", "It i"}
    assert len(pieces) > 8


def test_lines_stay_whole_where_they_are_no_prose() -> None:
    for text in (LOG, "\n".join(f"| Porto-{n:02d} | {n * 731} | {n} |" for n in range(60))):
        lines = set(text.splitlines())
        assert len(cut(text)) > 3
        assert all(set(piece.splitlines()) <= lines for piece in cut(text))


@pytest.mark.parametrize("text", [PROSE, WRAPPED, f"{PROSE}\n\n{PROSE}", f"# Page\n{PROSE}\n{PROSE}", '{"a": ' + PROSE])
def test_prose_is_cut_between_sentences(text: str) -> None:
    assert parts(text, 100) == sentences(text)
