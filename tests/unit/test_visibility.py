"""Whom a message addresses, and the rule made of it."""

from typing import Any
from uuid import UUID

import pytest

from memstore.context.visibility import VisibilityFilter, addressed, addressees, rule_of
from memstore.errors import ConfigurationError, InvalidInput
from memstore.models import Message


def message(role: str, text: str | None, name: str | None = None, **more: Any) -> Message:
    given = {"name": name, "tool_calls": None, "tool_call_id": None, "meta": {}, "tokens": 1} | more
    return Message.model_construct(**({"id": UUID(int=abs(hash(text))), "role": role, "text": text} | given))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("  @bob look", {"bob"}),
        ("I asked @bob to look", set()),
        ("@bob: look", {"bob"}),
        ("@bob. Look", {"bob"}),
        ("@gpt-4o, look", {"gpt-4o"}),
        ("@bob, @carol @dave: look", {"bob", "carol", "dave"}),
        ("@bob: @carol said so", {"bob"}),
        ("> @bob look", set()),
        ("bob@example.org wrote", set()),
        ("@...", set()),
        ("@Jose\u0301 look", {"josé"}),
        ("@小明，看", {"小明"}),
        ("@STRASSE look", {"strasse"}),
        ("@Anna_Maria look", {"anna_maria"}),
    ],
)
def test_a_message_is_for_those_whom_it_begins_with(text: str, names: set[str]) -> None:
    assert addressees(message("user", text)) == names
    assert addressees(message("user", text, meta={"to": ["Anna  Maria"]})) == {"anna_maria"}


@pytest.mark.parametrize(
    ("said", "visible"),
    [
        (message("user", "hi"), True),
        (message("user", "ask @carol", "ann"), True),
        (message("user", "@bob hi", "ann"), True),
        (message("user", "@carol hi", "ann"), False),
        (message("user", "@everyone hi", "ann"), True),
        (message("assistant", "@carol done", "Bob"), True),
        (message("assistant", "@bob done", "carol"), True),
        (message("assistant", "@dave done", "carol"), False),
        (message("assistant", "as @bob said", "carol"), False),
        (message("assistant", "done"), False),
        (message("assistant", None, "bob"), True),
        (message("system", "Two turns left.", "bob"), True),
        (message("system", "@bob two turns left."), True),
        (message("system", "Two turns left.", "carol"), False),
        (message("system", "@carol two turns left.", "bob"), False),
        (message("system", "Two turns left."), False),
        (message("developer", "Be brief.", meta={"to": "Bob"}), True),
        (message("user", "a whisper", meta={"to": ["carol"]}), False),
        (message("user", "@carol aloud", meta={"to": []}), True),
        (message("user", "an odd one", meta={"to": {"a": 1}}), False),
    ],
)
def test_who_sees_what(said: Message, visible: bool) -> None:
    assert addressed(said, "bob") is visible


def test_a_rule_may_be_any_function() -> None:
    said = message("assistant", "done", "carol")
    assert VisibilityFilter("bob", lambda one, viewer: viewer == "bob").sees(said)
    assert rule_of("everything")(said, "bob")
    with pytest.raises(ConfigurationError, match="known are addressed, everything"):
        rule_of("nobody's")
    with pytest.raises(InvalidInput):
        rule_of(5)  # type: ignore[arg-type]


def test_a_result_follows_the_call_that_it_answers() -> None:
    said = [
        message("assistant", None, "bob", tool_calls=[{"id": "1"}]),
        message("assistant", None, "carol", tool_calls=[{"id": "2"}]),
        message("tool", "for bob", tool_call_id="1"),
        message("tool", "for carol", tool_call_id="2"),
        message("tool", "for nobody", tool_call_id="3"),
        message("tool", "after carol's"),
        message("assistant", None, "bob", tool_calls=[{"function": {"name": "f"}}]),
        message("tool", "after bob's"),
        message("user", "hi"),
        message("tool", "after no call"),
    ]
    assert VisibilityFilter("bob").filter_messages(said) == [said[place] for place in (0, 2, 6, 7, 8)]
