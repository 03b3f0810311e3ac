"""People who change their minds: short dialogues in four languages, read, reconciled, and what is active at the end.

Those held out were written before the rules, which were tuned on the others.
"""

import json
from collections import Counter
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from uuid import UUID, uuid5

import pytest

from memstore.derive.facts.reconcile import reconcile
from memstore.derive.facts.rule_extractor import ExtractedFact, Utterance, extract
from memstore.ids import MEMSTORE
from memstore.models import KnownFact
from tests.helpers import fact_rows

SUITE = Path(__file__).parent.parent / "changing_minds"


def dialogues(name: str) -> list[dict]:
    return [json.loads(line) for line in (SUITE / f"{name}.jsonl").read_text().splitlines()]


def incoming_facts(dialogue: dict) -> list[ExtractedFact]:
    found, before = [], []
    for message in dialogue["messages"]:
        at = datetime.fromisoformat(message["occurred_at"])
        said = Utterance(message["content"], message["role"], message["name"], at)
        for draft in extract(said, before):
            slot = draft.slot
            found.append(fact_rows.extracted(draft.text, slot, at, type=draft.type, subject=draft.subject))
        before.append(said)
    return found


def fold(facts: list[ExtractedFact]) -> dict[UUID, KnownFact]:
    """Do what the store does with decisions, in memory."""
    known: dict[UUID, KnownFact] = {}
    for new in facts:
        decision, fact = reconcile(new, list(known.values())), new.fact
        if decision.twin is not None:
            twin = decision.twin
            known[twin.fact.id] = replace(twin, last_said=max(twin.last_said, fact.occurred_at))
            continue
        for one in decision.ended:
            one.fact.state = "superseded"
        id, state = uuid5(MEMSTORE, f"{fact.subject}{fact.text}{fact.occurred_at}"), "active"
        if decision.successor is not None:
            state = "superseded"
        more = {"type": fact.type, "subject": fact.subject, "state": state}
        known[id] = fact_rows.known(id, fact.text, fact.attribute, fact.value, fact.occurred_at, **more)
    return known


def values(known: dict[UUID, KnownFact], state: str) -> set[tuple[str, str | None, str | None]]:
    return {(one.fact.subject, one.fact.attribute, one.fact.value) for one in known.values() if one.fact.state == state}


def listed(dialogue: dict, *keys: str) -> set[tuple[str, str, str]]:
    return {
        (subject, attribute, value)
        for key in keys
        for subject, slots in dialogue[key].items()
        for attribute, held in slots.items()
        for value in held
    }


def judge(dialogue: dict, counts: Counter[str], notes: list[str]) -> None:
    known = fold(incoming_facts(dialogue))
    gone, held = values(known, "superseded"), values(known, "active")
    due, kept = listed(dialogue, "superseded"), listed(dialogue, "active", "untouched")
    wrong, missed = gone - due, due - gone
    counts.update(due=len(due), kept=len(kept), wrong=len(wrong), missed=len(missed), unread=len(kept - held - gone))
    # A value that nobody holds, active beside the right one, misleads as much as an invalidation.
    spurious = {one for one in held - kept - due if one[:2] in {other[:2] for other in kept | due}}
    counts.update(spurious=len(spurious))
    for word, found in (("WRONG", wrong), ("MISSED", missed), ("UNREAD", kept - held - gone), ("SPURIOUS", spurious)):
        notes += [f"{word} {dialogue['language']} {dialogue['category']} {one}" for one in sorted(map(str, found))]


# How many values still hold, and how many end; docs/reference/measurements.md has the sums of both.
@pytest.mark.parametrize(("name", "kept", "due"), [("dev", 144, 80), ("held_out", 49, 25)])
def test_minds_are_followed(name, kept, due, record_property):
    counts, notes = Counter(), []
    for dialogue in dialogues(name):
        judge(dialogue, counts, notes)
    report = "\n".join([f"{name} {dict(counts)}", *notes])
    print(report)
    record_property("changing_minds", report)
    assert counts["wrong"] == counts["spurious"] == counts["missed"] == 0, report
    assert counts["unread"] <= 0.05 * counts["kept"], report
    assert (counts["kept"], counts["due"]) == (kept, due)
