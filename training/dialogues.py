"""Print what a store knows after histories in which something changes: dialogues.py FILE.jsonl [--list]

The old value and what still holds are facts whose words overlap those that the history names. A recall is good if the
first hit with the new words stands before all with the old ones alone, or these are marked.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import memstore
from memstore.models import Fact, Hit

SESSION = timedelta(hours=6)
BUDGET = 300
MARKS = ("(later: ", " until ", "no longer", "not ")


def says(text: str, words: str, value: str | None) -> bool:
    """Return whether a text has the words of a history, or their value."""
    text = text.casefold()
    return words.casefold()[:30] in text or bool(value and value.casefold() in text)


class History:
    """A history in a store."""

    def __init__(self, user: Any, told: dict[str, Any]) -> None:
        self.user, self.told = user, told
        self.sessions: list[list[tuple[datetime, dict[str, Any]]]] = []
        for message in told["messages"]:
            at = datetime.fromisoformat(message["at"]).replace(tzinfo=UTC)
            if not self.sessions or at - self.sessions[-1][-1][0] > SESSION:
                self.sessions.append([])
            self.sessions[-1].append((at, message))

    def tell(self, session: int) -> None:
        """Tell a session of the history, if it has so many."""
        conversation = self.user.conversation(f"session {session}")
        for at, message in self.sessions[session] if session < len(self.sessions) else ():
            name = self.told["name"] if message["role"] == "user" else None
            conversation.add(message["role"], message["text"], name=name, occurred_at=at)

    def facts_of(self, words: str) -> list[Fact]:
        """Return the facts, in any state, whose source overlaps these words of a message."""
        facts = self.user.facts(state=None)
        messages = self.user.messages(list({span.message_id for fact in facts for span in fact.spans}))
        starts = {message.id: (message.text or "").find(words) for message in messages}
        stop = len(words)
        return [
            fact
            for fact in facts
            if any(
                (at := starts.get(span.message_id, -1)) >= 0 and span.start < at + stop and at < span.stop
                for span in fact.spans
            )
        ]

    def recalls_well(self, hits: Sequence[Hit]) -> bool:
        """Return whether a recall puts the present value first, or marks the outdated one."""
        new = [place for place, hit in enumerate(hits) if says(hit.text, self.told["new_text"], self.told["new"])]
        old = [place for place, hit in enumerate(hits) if says(hit.text, self.told["old_text"], self.told["old"])]
        alone = [place for place in old if place not in new]
        is_first = bool(new) and (not alone or new[0] < alone[0])
        return is_first or (bool(alone) and all(hits[place].later for place in alone))

    def count(self, show: bool) -> Counter[str]:
        """Return what is right of this history, of what there is."""
        told, counts = self.told, Counter[str]()
        old, new = self.facts_of(told["old_text"]), self.facts_of(told["new_text"])
        is_ended = bool(old) and all(fact.state != "active" for fact in old)
        counts.update(old=bool(old), new=bool(new), both=bool(old and new), superseded=is_ended)
        for one in told["holds"]:
            facts = self.facts_of(one["text"])
            ended = [fact.text for fact in facts if fact.state == "superseded"]
            counts.update(holds=bool(facts), ended_wrongly=bool(ended))
            counts.update(protection_ended=bool(ended) and one["what"].startswith("protects"))
            if show and ended:
                print("  ENDED WRONGLY", ended)
        hits = self.user.recall(told["question"])
        context = self.user.conversation("now").context(told["question"], budget=BUDGET)
        lines = "\n".join(str(message["content"]) for message in context.messages).splitlines()
        unmarked = [
            line for line in lines if says(line, told["old_text"], None) and not any(mark in line for mark in MARKS)
        ]
        counts.update(recall=self.recalls_well(hits), context_without_unmarked=not unmarked)
        counts.update(context_with_new=any(says(line, told["new_text"], told["new"]) for line in lines))
        if show:
            print(
                told["id"], told["kind"], [(each.text, each.state) for each in old], "=>", [each.text for each in new]
            )
            print("  recall", [(hit.text[:60], hit.later) for hit in hits[:3]], "unmarked", unmarked)
        return counts


def main() -> None:
    """Derive the histories of a file, and print how often each thing is right."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--list", action="store_true", help="print each history")
    parser.add_argument("--at-once", action="store_true", help="derive all sessions together, in any order")
    options = parser.parse_args()
    told = [json.loads(line) for line in options.file.read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory() as folder, memstore.open(f"embedded:{folder}/store") as store:
        histories = [History(store.user(f"user {each['id']}"), each) for each in told]
        for session in range(max(len(history.sessions) for history in histories)):
            for history in histories:
                history.tell(session)
            if not options.at_once:
                store.derive()
        store.derive()
        counts = sum((history.count(options.list) for history in histories), Counter[str]())
    print(f"of {len(told)} histories: {dict(counts)}")


if __name__ == "__main__":
    main()
