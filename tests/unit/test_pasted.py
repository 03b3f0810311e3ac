"""What is pasted into a message stands apart from what is said; the test reads spans as text."""

import pytest

from memstore.derive.pasted import apart
from tests.timing import assert_linear

CODE = "```python\n" + "\n".join(f"values[{n}] = read({n})" for n in range(8)) + "\n```"


def texts(text: str) -> list[str]:
    spans = apart(text)
    assert [stop for _, stop in spans[:-1]] == [start for start, _ in spans[1:]]
    assert "".join(text[start:stop] for start, stop in spans) == text
    return [text[start:stop].strip() for start, stop in spans]


def test_code_stands_apart_from_what_is_said_before_and_after() -> None:
    said = f"Why is this slow?\n{CODE}\nI run it on my old laptop."
    assert texts(said) == ["Why is this slow?", CODE, "I run it on my old laptop."]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No code at all.",
        "Run this:\n```\nmake test\n```\nthen tell me.",
        "`a` and ``b`` " * 50,
        "~~ no fence\n" * 50,
    ],
)
def test_what_has_no_long_block_stays_whole(text: str) -> None:
    assert len(apart(text)) == bool(text)


def test_a_fence_closes_with_its_own_kind_and_one_never_closed_goes_to_the_end() -> None:
    inner = f"~~~\n{CODE}\n~~~"
    assert texts(f"Before\n{inner}\nAfter") == ["Before", inner, "After"]
    assert texts(f"Before\n{CODE[:-4]}") == ["Before", CODE[:-4]]


def test_indented_fences_of_a_list_are_fences() -> None:
    indented = CODE.replace("\n", "\n   ")
    assert texts(f"1. It fails:\n   {indented}\n2. Why?") == ["1. It fails:", indented, "2. Why?"]


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["```\n", "`" * 50 + "\n", " " * 1000, "~~~`\n", "```x\n\n"])
def test_the_time_of_many_fences_grows_with_their_length_only(unit: str) -> None:
    assert_linear(texts, unit)
