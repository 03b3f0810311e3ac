"""Who and what there is, and ids that people type: as they are shown, or so much of them as tells them apart."""

from __future__ import annotations

import re

import pytest

import memstore
from tests.command_line import EMBEDDER, Run

OF_LEA = ("-u", "lea")


@pytest.fixture
def lea(cli: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("MEMSTORE_DATABASE_URL", url)
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        for name, title in (("everyday", None), ("wor\x1bk", "At work")):
            talk = store.user("lea").conversation(name, title=title, channel="web" if title else None)
            talk.add("user", "I live in Leeds.")
            talk.add("user", "Where do I live?")
        store.user("bo").add_fact("Bo sings.", type="preference")
    return cli


def test_users_and_conversations_are_listed(lea: Run) -> None:
    assert (lea("users", "--json").json, lea("users").out) == (["bo", "lea"], "bo\nlea\n")
    found = lea("conversations", *OF_LEA, "--json").json
    assert [(one["name"], one["title"], one["channel"], one["messages"]) for one in found] == [
        ("wor\x1bk", "At work", "web", 2),
        ("everyday", None, None, 2),
    ]
    shown = lea("conversations", *OF_LEA, "--channel", "web").out
    assert re.fullmatch(r"2\t[\d-]{10}\t[\d-]{10}\tweb\twor\\x1bk: At work\n", shown)
    assert "no user 'le'" in lea("conversations", "-u", "le").err


def test_facts_are_shown_with_ids_that_commands_take(lea: Run) -> None:
    for text in ("Lea sings.", "Lea paints.", "Lea lives in Leeds."):
        assert lea("fact", "add", text, "--type", "preference", *OF_LEA).code == 0
    whole = {fact["text"]: fact["id"] for fact in lea("facts", *OF_LEA, "--json").json}
    shown = {cells[-1]: cells[0] for cells in (row.split("\t") for row in lea("facts", *OF_LEA).out.splitlines())}
    assert shown.keys() == whole.keys()
    assert all(re.fullmatch("[0-9a-f]{8}", id) and whole[text].startswith(id) for text, id in shown.items())
    assert lea("fact", "edit", shown["Lea sings."].upper(), "--confidence", "0.5", *OF_LEA).code == 0
    (_, edited) = lea("fact", "history", shown["Lea sings."], *OF_LEA, "--json").json
    assert lea("fact", "undo", edited["id"][:13], *OF_LEA, "--json").json["undoes"] == edited["id"]
    assert lea("fact", "retract", whole["Lea paints."], *OF_LEA).out.startswith(shown["Lea paints."])
    assert {fact["text"] for fact in lea("facts", *OF_LEA, "--json").json} == {"Lea sings.", "Lea lives in Leeds."}


def test_a_beginning_of_no_id_is_refused(lea: Run) -> None:
    told = lea("fact", "retract", "0000-0000", *OF_LEA)
    assert (told.code, "no fact whose id begins with '0000-0000'" in told.err) == (2, True)
    for wrong in ("abc", "xyz12345", "0" * 33, "----"):
        assert lea("fact", "history", wrong, *OF_LEA).code == 2, wrong


def test_the_beginning_of_several_ids_names_them(lea: Run) -> None:
    texts: dict[str, str] = {}
    user = memstore.ids.user_id("lea")
    for number in range(2000):  # some 300 facts until two begin with the same 4 digits
        text = f"Lea has {number} cats."
        twin = texts.setdefault(str(memstore.ids.fact_id(user, "The user", text))[:4], text)
        if twin != text:
            break
    with memstore.open(settings={"embedder": "none"}) as store:
        first, second = (store.user("lea").add_fact(each, type="preference") for each in (twin, text))
    told = lea("fact", "retract", str(first.id)[:4], *OF_LEA)
    assert (told.code, str(first.id) in told.err, str(second.id) in told.err) == (2, True, True)
    assert lea("fact", "retract", str(first.id)[:12], "-u", "bo").code == 2, "another user's"
