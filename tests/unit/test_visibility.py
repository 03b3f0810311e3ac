"""The grammar of mentions, and the rule made of it: message and viewer in, visible or not and why out."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstore.assemble.visibility import Rules, Verdict, Why, canonical, mentioned, rule_of, seen, visible
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
        ("Thanks.\n\n@bob look", ["bob"]),
        ("Thanks.\n@bob look", ["bob"]),
        ("@bob, look", ["bob"]),
        ("@bob: look", ["bob"]),
        ("@bob. Look", ["bob"]),
        ("@bob", ["bob"]),
        ("@Bob’s turn", ["bob"]),
        ("@bob.smith look", ["bob.smith"]),
        ("@gpt-4o: look", ["gpt-4o"]),
        ("@O'Brien look", ["o'brien"]),
        ("**@bob** look", ["bob"]),
        ("_@bob_, look", ["bob"]),
        ("__@bob__ and *@carol*: look", ["bob", "carol"]),
        ("- @bob: look\n- [ ] @carol: listen\n2. @dave: wait", ["bob", "carol", "dave"]),
        ("## @bob", ["bob"]),
        ("@bob @carol look", ["bob", "carol"]),
        ("@bob, @carol & @dave: look", ["bob", "carol", "dave"]),
        ("@bob und @carol, schaut", ["bob", "carol"]),
        ("@bob: @carol said so", ["bob"]),
        ("@bob and I look", ["bob"]),
        ("> @bob look\n\nI agree", []),
        ("```\n@bob\n```\n@carol look", ["carol"]),
        ("~~~py\n@bob\n```\n@carol\n~~~", []),
        ("Look:\n```\n@carol the code is walnut", ["carol"]),
        ("```@carol the code is walnut", ["carol"]),
        ("```\n@property\n```\n~~~\n@carol look", ["carol"]),
        ("> @carol look", ["carol"]),
        ("> @carol look\n```\nx\n```", []),
        ("(`@carol`) is a name", []),
        ("a.b@example.org wrote", []),
        ("1@example.org wrote", []),
        ("Well – @carol knows", []),
        ("Ok. @carol knows", []),
        ("@👩\u200d💻 look", ["👩💻"]),
        ("@[Anna\u200b Maria]: look", ["anna_maria"]),
        ("`@bob` is a name", []),
        ("bob@example.org wrote", []),
        ("@bob@example.org wrote", ["bob@example.org"]),
        ("@ bob", []),
        ("@", []),
        ("@José look", ["josé"]),
        ("@Jose\u0301 look", ["josé"]),
        ("＠bob look", ["bob"]),
        ("\u200b@bob look", ["bob"]),
        ("@小明，看", ["小明"]),
        ("@नमस्ते look", ["नमस्ते"]),
        ("@🤖 look", ["🤖"]),
        ("@STRASSE look", ["strasse"]),
        ('@"Anna Maria" look', ["anna_maria"]),
        ("@[Anna Maria] and @Anna_Maria look", ["anna_maria", "anna_maria"]),
        ("@[ ] look", []),
        ("@all look", ["all"]),
        (":wave: @carol look", ["carol"]),
        (":+1::skin-tone-2: @carol look", ["carol"]),
        ("<b>@carol</b> look", ["carol"]),
        ('<p class="x"><br/>@carol look', ["carol"]),
        ("<bob@example.org> @carol look", []),
        (": well, @carol knows", []),
        ("<b>I asked</b> @carol", []),
    ],
)
def test_the_grammar_of_mentions(text: str, names: list[str]) -> None:
    assert [canonical(name) for name in mentioned(text)] == names


INVISIBLE = "\u2066\u2067\u2068\u2069\u202a\u202e\u00ad\u034f\u180e\ufe0f\u200b\u200d\u3164\uffa0\x01\x08\x7f\U000e0041"
OPENERS = [
    "(",
    '"',
    "'",
    "“",
    "<",
    "[",
    "@",
    "@@",
    "¡",
    "–",
    "—",
    "◦",
    "•",
    "|",
    "*",
    "_",
    "->",
    "»",
    "🙂",
    "👍🏽",
    "…",
]
LISTS = ["a) ", "(b) ", "1. ", "1️⃣ ", "① ", "iv. ", "[x] ", "[10:30] ", "1）", "- [ ] ", "### "]


@pytest.mark.parametrize("hidden", INVISIBLE)
def test_what_is_not_shown_makes_no_mention_public(hidden: str) -> None:
    for text in (f"{hidden}@carol look", f"{hidden} {hidden}@carol", f"@{hidden}carol look", f"@car{hidden}ol: look"):
        assert [canonical(name) for name in mentioned(text)] == ["carol"]
    assert canonical(f"Car{hidden}ol") == "carol"


@pytest.mark.parametrize("opener", [*OPENERS, *LISTS])
def test_signs_and_markers_before_a_mention_make_it_no_less_one(opener: str) -> None:
    for text in (f"{opener}@carol look", f"{opener} @carol: look", f"Thanks.\n  {opener}@carol) look"):
        assert [canonical(name) for name in mentioned(text)] == ["carol"]
    assert "carol" not in mentioned(f"{opener} Hi @carol, look")


@given(st.text(alphabet=st.sampled_from("@bob*_ \n>`~-.,:'\"[]and1)＠é"), max_size=60))
def test_any_text_has_a_reading(text: str) -> None:
    for name in mentioned(text):
        assert canonical(name)


ME = "bob"


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        (message("user", "hi", "ann"), (True, Why.PUBLIC)),
        (message("user", "hi"), (True, Why.PUBLIC)),
        (message("user", "ask @carol", "ann"), (True, Why.PUBLIC)),
        (message("user", "@bob hi", "ann"), (True, Why.ADDRESSED)),
        (message("user", "@carol hi", "ann"), (False, Why.ANOTHERS)),
        (message("user", "Good morning.\n\n@carol hi"), (False, Why.ANOTHERS)),
        (message("user", "@everyone hi", "ann"), (True, Why.ADDRESSED)),
        (message("assistant", "done", "bob"), (True, Why.OWN)),
        (message("assistant", "@carol done", "Bob"), (True, Why.OWN)),
        (message("assistant", "@bob done", "carol"), (True, Why.ADDRESSED)),
        (message("assistant", "Well.\n@bob done", "carol"), (True, Why.ADDRESSED)),
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
