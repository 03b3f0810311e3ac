"""Whom a message addresses, and the rule made of it: message and viewer in, visible or not and why out."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from memstore.context.visibility import Rules, Verdict, Why, canonical, mentioned, rule_of, seen, visible
from memstore.errors import ConfigurationError, InvalidInput
from memstore.models import Message


def message(role: str, text: str | None, name: str | None = None, **more: Any) -> Message:
    given = {"name": name, "tool_calls": None, "tool_call_id": None, "meta": {}} | more
    return Message.model_construct(id=UUID(int=0), role=role, text=text, **given)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("hi", []),
        ("@bob look", ["bob"]),
        ("  @bob look", ["bob"]),
        ("I asked @bob to look", []),
        ("Hi @bob, look", []),
        ("Thanks.\n@bob look", []),
        ("@bob, look", ["bob"]),
        ("@bob: look", ["bob"]),
        ("@bob. Look", ["bob"]),
        ("@bob", ["bob"]),
        ("@Bob’s turn", ["bob"]),
        ("@bob.smith look", ["bob.smith"]),
        ("@gpt-4o: look", ["gpt-4o"]),
        ("@O'Brien look", ["o'brien"]),
        ("@bob @carol look", ["bob", "carol"]),
        ("@bob, @carol & @dave: look", ["bob", "carol", "dave"]),
        ("@bob and @carol, look", ["bob", "carol"]),
        ("@bob and I look", ["bob"]),
        ("@bob: @carol said so", ["bob"]),
        ("> @bob look", []),
        ("`@bob` is a name", []),
        ("bob@example.org wrote", []),
        ("@bob@example.org wrote", ["bob@example.org"]),
        ("@ bob", []),
        ("@", []),
        ("@...", []),
        ("@Jose\u0301 look", ["josé"]),
        ("＠bob look", ["bob"]),
        ("@小明，看", ["小明"]),
        ("@नमस्ते look", ["नमस्ते"]),
        ("@🤖 look", ["🤖"]),
        ("@STRASSE look", ["strasse"]),
        ("@Anna_Maria look", ["anna_maria"]),
        ("@all look", ["all"]),
    ],
)
def test_a_message_is_for_those_whom_it_begins_with(text: str, names: list[str]) -> None:
    assert [canonical(name) for name in mentioned(text)] == names
    assert canonical("Anna  Maria") == "anna_maria"


ME = "bob"


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        (message("user", "hi", "ann"), (True, Why.PUBLIC)),
        (message("user", "hi"), (True, Why.PUBLIC)),
        (message("user", "ask @carol", "ann"), (True, Why.PUBLIC)),
        (message("user", "@bob hi", "ann"), (True, Why.ADDRESSED)),
        (message("user", "@carol hi", "ann"), (False, Why.ANOTHERS)),
        (message("user", "@carol good morning."), (False, Why.ANOTHERS)),
        (message("user", "@everyone hi", "ann"), (True, Why.ADDRESSED)),
        (message("assistant", "done", "bob"), (True, Why.OWN)),
        (message("assistant", "@carol done", "Bob"), (True, Why.OWN)),
        (message("assistant", "@bob done", "carol"), (True, Why.ADDRESSED)),
        (message("assistant", " @bob done", "carol"), (True, Why.ADDRESSED)),
        (message("assistant", "@dave done", "carol"), (False, Why.ANOTHERS)),
        (message("assistant", "as @bob said", "carol"), (False, Why.UNADDRESSED)),
        (message("assistant", "done"), (False, Why.UNADDRESSED)),
        (message("assistant", None, "bob"), (True, Why.OWN)),
        (message("system", "Two turns left.", "bob"), (True, Why.OWN)),
        (message("system", "@bob two turns left."), (True, Why.ADDRESSED)),
        (message("system", "Two turns left.", "carol"), (False, Why.NOTICE)),
        (message("system", "@carol two turns left.", "bob"), (False, Why.ANOTHERS)),
        (message("system", "Two turns left."), (False, Why.NOTICE)),
        (message("developer", "Be brief.", meta={"to": "Bob"}), (True, Why.ADDRESSED)),
        (message("user", "a whisper", meta={"to": ["carol"]}), (False, Why.ANOTHERS)),
        (message("user", "@carol aloud", meta={"to": []}), (True, Why.PUBLIC)),
        (message("user", "an odd one", meta={"to": {"a": 1}}), (False, Why.ANOTHERS)),
        (message("tool", "@bob 42", "bob"), (False, Why.RESULT)),
    ],
)
def test_who_sees_what_and_why(said: Message, verdict: tuple[bool, str]) -> None:
    assert visible(said, ME) == verdict


def test_with_names_only_those_are_mentioned() -> None:
    known = Rules(names=frozenset({"Bob", "carol"}))
    assert visible(message("user", "@types/node is broken"), ME).visible is False
    assert visible(message("user", "@types/node is broken"), ME, known) == (True, Why.PUBLIC)
    assert visible(message("user", "@carol look"), ME, known).visible is False
    assert visible(message("user", "@all look"), ME, known) == (True, Why.ADDRESSED)


def test_a_rule_may_be_any_function() -> None:
    said = message("assistant", "done", "carol")
    assert visible(said, ME, lambda one, viewer: True) == (True, Why.RULE)
    assert visible(said, ME, lambda one, viewer: Verdict(False, "because")) == (False, "because")
    assert visible(said, ME, rule_of("everything")).visible
    with pytest.raises(ConfigurationError, match="known are addressed, everything"):
        rule_of("nobody's")
    with pytest.raises(InvalidInput):
        rule_of(5)  # type: ignore[arg-type]


def test_a_result_follows_the_call_that_it_answers() -> None:
    calls = [
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
    assert seen(calls, ME, Rules()) == [True, False, True, False, False, False, True, True, True, False]
