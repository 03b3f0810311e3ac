"""Any calls in any order: what the store then holds and gives is what a memory of dicts and lists does."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial, wraps
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

import memstore
from memstore.models import HAND, Tier
from tests.client.test_erase import holding
from tests.helpers.user_rows import rows
from tests.plain_memory import Draft, Person, Refused, Room, Said, new_word, words

DOSE = int(os.environ.get("TEST_DOSE", "1"))
STEPS = 50  # calls in a history
HISTORIES = 4  # at dose 1
SETTINGS: dict[str, Any] = {
    "embedder": "hashing:64",
    "segment_tokens": 60,
    "pool_size": 2,
    "mask_secrets": True,
}
MARK, CARD = "[masked card]", "4111 1111 " + "1111 1111"  # what is stored, and what is given in its place
START = datetime(2024, 3, 1, 9, tzinfo=UTC)
NAMES = st.sampled_from(["alice", "bob"])
ROOMS = st.sampled_from(["work", "home"])
WHICH = st.integers(0, 99)  # of what there is, in a circle
SENTENCES = (
    "I live in {}.",
    "I'm allergic to {}.",
    "My dog is called {}.",
    "My sister {} works as a nurse in Leeds.",
    "On Friday I fly to {} for the weekend, and then I go on by train to see the mountains.",
    "Noted: {}.",
    "I pay for {} with [masked card].",
)
NEW = st.tuples(
    st.sampled_from(["user", "user", "assistant"]),
    st.sampled_from(SENTENCES),
    st.booleans(),
    st.integers(0, 30),
    st.sampled_from([True, True, True, False]),
)
KEYS = st.sampled_from(["a", "b", "c"])
SOME = st.lists(WHICH, min_size=1, max_size=3)
New = tuple[str, str, bool, int, bool]
ERASABLE = ["messages"] * 4 + ["fact"] * 2 + ["conversation", "old", "user"]
numbers = count(1)
taken: Counter[str] = Counter()


@dataclass
class Moment:
    """What was known at a moment, and how much had been erased by then."""

    at: datetime
    room: str
    erasures: int
    known: list[Any]
    messages: set[UUID | None]


@dataclass
class Export:
    """A file, and the documents that it holds, of which life of the user."""

    path: Path
    documents: dict[str, str]
    lives: int


@dataclass
class Life:
    """A user of the store, what is to be there of it, and what may be said, asked or taken in again."""

    scope: memstore.UserScope
    model: Person = field(default_factory=Person)
    drafts: list[Draft] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    exports: list[Export] = field(default_factory=list)
    carried: bool = False

    def draft(self, new: New, *, named: bool = False) -> Draft:
        role, sentence, has_id, day, trusted = new
        external_id = f"x{len(self.drafts)}" if has_id or named else None
        self.drafts.append(Draft(role, sentence.format(new_word()), external_id, START + timedelta(days=day), trusted))
        return self.drafts[-1]

    def known(self, room: str, at: datetime) -> list[Any]:
        talk = self.scope.conversation(room)
        contexts = [talk.context("Where do I live?", budget=budget, as_of=at).messages for budget in (200, 2000)]
        return [contexts, self.scope.recall("Where do I live?", limit=100, as_of=at), self.scope.facts(as_of=at)]


def call(**given: Any) -> Callable[[Callable[..., None]], Any]:
    """Have a method called as one step of a history, and counted."""

    def as_rule(method: Callable[..., None]) -> Any:
        @wraps(method)
        def counted(self: Machine, **chosen: Any) -> None:
            taken[method.__name__] += 1
            method(self, **chosen)

        return rule(**given)(counted)

    return as_rule


class Machine(RuleBasedStateMachine):
    """Two users of whom nobody has heard before, and a second store, into which they are carried."""

    def __init__(self, store: memstore.MemoryStore, other: memstore.MemoryStore, folder: Path) -> None:
        super().__init__()
        self.store, self.other, self.folder = store, other, folder
        self.lives: dict[str, Life] = {}

    @initialize(new=st.lists(NEW, min_size=6, max_size=12))
    def begin(self, new: list[New]) -> None:
        number = next(numbers)
        self.lives = {name: Life(self.store.user(f"{name}{number}")) for name in ("alice", "bob")}
        for life in self.lives.values():
            self.store_them(life, "work", [life.draft(one) for one in new], skip=False)

    # -- in

    @call(who=NAMES, room=ROOMS, new=st.lists(NEW, min_size=1, max_size=8), skip=st.booleans())
    def add(self, who: str, room: str, new: list[New], skip: bool) -> None:
        life = self.lives[who]
        self.store_them(life, room, [life.draft(one) for one in new], skip=skip)

    @call(who=NAMES, room=ROOMS, which=SOME, skip=st.booleans(), first=st.sampled_from(["same", "content", "id"]))
    def add_again(self, who: str, room: str, which: list[int], skip: bool, first: str) -> None:
        """What was said before, here or there, erased or not; with another content first, or with another id."""
        life = self.lives[who]
        again = [life.drafts[number % len(life.drafts)] for number in which]
        if first == "content":
            again[0] = replace(again[0], content=f"Noted: {new_word()}.")
        elif first == "id":
            again[0] = replace(again[0], external_id=f"again{len(life.drafts)}")
        life.drafts += [again[0]] if first != "same" else []
        self.store_them(life, room, again, skip=skip)

    def store_them(self, life: Life, room: str, drafts: list[Draft], *, skip: bool) -> None:
        add = partial(life.scope.conversation(room).add_many, [as_given(one) for one in drafts])
        try:
            expected = life.model.add(room, drafts, skip=skip)
        except Refused as refused:
            with pytest.raises(memstore.Conflict) as told:
                add()
            assert isinstance(told.value, memstore.Erased) == (refused.why == "erased")
        else:
            learn(add(on_conflict="skip" if skip else "error"), expected)
        self.look(life, room)

    @call(who=NAMES, room=ROOMS, which=SOME, new=st.lists(NEW, max_size=3))
    def import_file(self, who: str, room: str, which: list[int], new: list[New]) -> None:
        life = self.lives[who]
        drafts = [life.drafts[number % len(life.drafts)] for number in which]
        drafts = [one for one in drafts if one.external_id] + [life.draft(one, named=True) for one in new]
        if not drafts:  # a file without a message is refused
            return
        before = life.model.room(room).last
        kept = life.model.add(room, drafts, skip=True)
        path = self.folder / "history.jsonl"
        lines = [as_given(one) | {"user": life.scope.name, "conversation": room} for one in drafts]
        path.write_text("".join(json.dumps(line, default=str) + "\n" for line in lines))
        done = self.store.import_file(path, format="jsonl")
        assert done.new == life.model.room(room).last - before
        assert done.new + done.known + done.skipped == len(kept)
        assert done.ignored["erased before"] == len(drafts) - len(kept)
        self.look(life, room)

    # -- derived

    @call(who=NAMES, which=WHICH)
    def derive(self, who: str, which: int) -> None:
        life = self.lives[who]
        report = self.store.derive(user=life.scope.name)
        assert (report.failed, report.waiting) == ((), ())
        for said in life.model.live().values():
            said.derived = True
        self.look_at_all(life)
        assert [one.problem for one in self.store.backfills.verify(user=life.scope.name)] == []
        self.check_recall(life, which)

    @call(who=NAMES, room=ROOMS)
    def summarize(self, who: str, room: str) -> None:
        life = self.lives[who]
        if not life.model.room(room).said:
            with pytest.raises(memstore.InvalidInput):
                life.scope.conversation(room).summarize()
        else:
            self.check_summary(life.scope.conversation(room).summarize(), life.model.room(room))

    # -- out

    @call(who=NAMES, which=WHICH, room=st.none() | ROOMS, tier=st.none() | st.sampled_from(list(Tier)))
    def recall(self, who: str, which: int, room: str | None, tier: Tier | None) -> None:
        self.check_recall(self.lives[who], which, room, tier)

    def check_recall(self, life: Life, which: int, room: str | None = None, tier: Tier | None = None) -> None:
        """Ask for what a message says, in a conversation or in all: it is found, and all that is found is there."""
        rooms = life.model.rooms.values() if room is None else [life.model.room(room)]
        here = [one for each in rooms for one in each.said]
        said = here[which % len(here)] if here else None
        query = said.draft.content if said else "Where do I live?"
        hits = life.scope.recall(query, limit=500, conversation=room, tiers=[tier] if tier else list(Tier))
        self.check_hits(life, hits)
        found = {hit.id for hit in hits if hit.tier == Tier.MESSAGES}
        assert found <= {one.id for one in here}
        if said and said.derived and tier in (None, Tier.MESSAGES):
            assert said.id in found

    @call(who=NAMES, room=ROOMS, budget=st.integers(20, 1500), query=st.booleans(), text=st.sampled_from(SENTENCES))
    def context(self, who: str, room: str, budget: int, query: bool, text: str) -> None:
        life = self.lives[who]
        asked = [
            one
            for one in life.model.room(room).said
            if one.draft.role == "user" and one.seq > life.model.room(room).cleared
        ]
        question = text.format("Leeds") if query or not asked else None
        given = question and question.replace(MARK, CARD)
        ask = partial(life.scope.conversation(room).context, given, system=f"Be kind. {CARD}")
        try:
            made = ask(budget=budget)
        except memstore.BudgetTooSmall as error:
            assert error.needed > budget
            budget = error.needed
            made = ask(budget=budget)
        assert made.tokens == self.store.counter.count_messages(made.messages) <= budget
        said = [message["content"] for message in made.messages if message["role"] == "user"]
        assert (said[-1] == question) if question else (asked[-1].draft.content in said)
        assert words(json.dumps(made.messages)) <= life.model.words()
        assert ask(budget=budget).messages == made.messages
        if made.receipt.id is not None:
            assert life.scope.replay(made).messages == made.messages

    @call(who=NAMES, room=ROOMS)
    def remember_the_moment(self, who: str, room: str) -> None:
        life = self.lives[who]
        at = datetime.now(UTC)
        known = life.known(room, at)
        life.moments.append(Moment(at, room, life.model.erasures, known, set(life.model.live())))

    @call(who=NAMES, which=WHICH)
    def look_back(self, who: str, which: int) -> None:
        life = self.lives[who]
        if life.moments:
            moment = life.moments[which % len(life.moments)]
            known = life.known(moment.room, moment.at)
            if moment.erasures == life.model.erasures:
                assert known == moment.known
            self.check_hits(life, known[1])
            assert {hit.id for hit in known[1] if hit.tier == Tier.MESSAGES} <= moment.messages
            assert words(json.dumps(known[0])) <= life.model.words()

    # -- facts by hand

    @call(who=NAMES)
    def add_fact(self, who: str) -> None:
        life, word = self.lives[who], new_word()
        life.scope.add_fact(f"{word} matters.", type="preference")
        life.model.entered[word.lower()] = True
        self.check_facts(life)

    @call(who=NAMES, which=WHICH)
    def edit_fact(self, who: str, which: int) -> None:
        life, word = self.lives[who], new_word()
        if found := [fact for fact in life.scope.facts() if fact.recipe == HAND]:
            made = life.scope.edit_fact(found[which % len(found)], text=f"{word} matters more.")
            life.model.entered[word.lower()] = True
            assert made.id in {one.id for one in life.scope.facts()}
            self.check_facts(life)

    @call(who=NAMES, which=WHICH)
    def retract_fact(self, who: str, which: int) -> None:
        life = self.lives[who]
        if found := life.scope.facts():
            fact = found[which % len(found)]
            assert life.scope.retract_fact(fact).state == "retracted"
            life.model.retracted[fact.id] = frozenset(fact.sources)
            self.check_facts(life)

    @call(who=NAMES, which=WHICH, reject=st.booleans())
    def look_through_what_waits(self, who: str, which: int, reject: bool) -> None:
        life = self.lives[who]
        if waiting := life.scope.facts(state="quarantined"):
            fact = waiting[which % len(waiting)]
            if reject:
                assert life.scope.retract_fact(fact).state == "retracted"
                life.model.retracted[fact.id] = frozenset(fact.sources)
            else:
                has_passed = fact.valid_to is not None and fact.valid_to <= datetime.now(UTC)  # a flight on Friday
                assert life.scope.confirm_fact(fact).state == ("ended" if has_passed else "active")
                life.model.confirmed.add(fact.id)
            self.check_facts(life)

    @call(who=NAMES)
    def propose_fact(self, who: str) -> None:
        life, word = self.lives[who], new_word()
        assert life.scope.add_fact(f"{word} matters.", type="preference", quarantined=True).state == "quarantined"
        life.model.entered[word.lower()] = True
        self.check_facts(life)

    # -- documents

    @call(who=NAMES, key=KEYS)
    def put(self, who: str, key: str) -> None:
        life, text = self.lives[who], f"{new_word()} by {MARK}"
        life.scope.documents().put(("notes",), key, {"text": text.replace(MARK, CARD)})
        life.model.documents[key] = text
        self.check_documents(life)

    @call(who=NAMES, key=KEYS)
    def delete(self, who: str, key: str) -> None:
        life = self.lives[who]
        assert life.scope.documents().delete(("notes",), key) == (life.model.documents.pop(key, None) is not None)
        self.check_documents(life)

    def check_documents(self, life: Life) -> None:
        for query in (None, "what is by whom"):  # everything with a vector is compared
            found = life.scope.documents().search(query=query, limit=100)
            assert {one.key: one.value["text"] for one in found} == life.model.documents

    @call(who=NAMES, which=WHICH)
    def undo(self, who: str, which: int) -> None:
        life = self.lives[who]
        if life.model.retracted:
            fact = sorted(life.model.retracted)[which % len(life.model.retracted)]
            life.scope.undo(life.scope.fact_history(fact)[-1])
            del life.model.retracted[fact]
            assert life.scope.fact(fact).state in ("active", "quarantined")
            self.check_facts(life)

    # -- erased

    @call(who=NAMES, room=ROOMS, which=SOME, what=st.sampled_from(ERASABLE))
    def erase(self, who: str, room: str, which: list[int], what: str) -> None:
        life = self.lives[who]
        getattr(self, f"erase_{what}")(life, room, which)
        self.look_at_all(life)

    def erase_messages(self, life: Life, room: str, which: list[int]) -> None:
        if said := life.model.room(room).said:
            chosen = {said[number % len(said)].id: said[number % len(said)].seq for number in which}
            certificate = life.scope.erase_message(*[id for id in chosen if id])
            assert certificate.scan.is_clean
            assert certificate.counts["messages"] == len(chosen)
            life.model.erase(room, chosen.values())

    def erase_conversation(self, life: Life, room: str, which: list[int]) -> None:
        certificate = life.scope.conversation(room).erase()
        assert certificate.scan.is_clean
        assert certificate.counts.get("messages", 0) == len(life.model.room(room).said)
        life.model.erase_room(room)

    def erase_fact(self, life: Life, room: str, which: list[int]) -> None:
        if found := life.scope.facts():
            fact = found[which[0] % len(found)]
            assert life.scope.erase_fact(fact).scan.is_clean
            life.model.erase_fact(fact.id, fact.text)

    def erase_user(self, life: Life, room: str, which: list[int]) -> None:
        assert life.scope.erase().scan.is_clean
        life.model.erase_all()
        assert life.scope.name not in set(self.store.users(after=life.scope.name[:-1]))

    def erase_old(self, life: Life, room: str, which: list[int]) -> None:
        """What is older than a rule says, which holds for this once."""
        now = datetime.now(UTC)
        days = (now - START).days - which[0] % 15
        life.scope.update(settings={"message_retention_days": days})
        assert self.store.apply_retention(user=life.scope.name) == life.model.erase_before(now - timedelta(days=days))
        life.scope.update(settings={"message_retention_days": None})

    # -- carried

    @call(who=NAMES)
    def export(self, who: str) -> None:
        life = self.lives[who]
        if life.model.rooms:
            path = self.folder / f"{life.scope.name}-{len(life.exports)}.jsonl"
            exported = life.scope.export(path)
            assert exported.messages == len(life.model.live())
            life.exports.append(Export(path, dict(life.model.documents), life.model.lives))

    @call(who=NAMES, which=WHICH)
    def take_the_export_in_again(self, who: str, which: int) -> None:
        life = self.lives[who]
        if life.exports:
            export = life.exports[which % len(life.exports)]
            lost = export.documents.keys() - life.model.documents if export.lives == life.model.lives else ()
            done = self.store.import_file(export.path)
            assert (done.new, done.restored) == (0, {"documents": len(lost)} if lost else {})
            life.model.documents |= {key: export.documents[key] for key in lost}
            # A conversation that was cleared since has other settings than the file says, and keeps them.
            assert all(one.reason.startswith("the conversation") for one in done.problems), done.problems
            self.look_at_all(life)

    @call(who=NAMES)
    def carry(self, who: str) -> None:
        """What another store takes in of an export is row for row what is here; once, as it must be new there."""
        life = self.lives[who]
        if life.model.rooms and not life.carried:
            life.carried = True
            path = self.folder / "carried.jsonl"
            life.scope.export(path)
            assert not self.other.import_file(path).skipped
            name = life.scope.name
            assert carried_rows(self.store.url, name) == carried_rows(self.other.url, name)

    # -- what is there

    @call(who=NAMES, room=ROOMS)
    def clear(self, who: str, room: str) -> None:
        life = self.lives[who]
        life.scope.conversation(room).clear()
        life.model.room(room).cleared = life.model.room(room).last
        self.look(life, room)

    def look_at_all(self, life: Life) -> None:
        for room in ("work", "home"):
            self.look(life, room)
            for summary in life.scope.conversation(room).summaries():
                self.check_summary(summary, life.model.room(room))
        self.check_facts(life)
        self.check_documents(life)
        assert {one.name for one in life.scope.conversations()} == set(life.model.rooms)
        stats = self.store.stats(user=life.scope.name)
        assert stats["messages"] == len(life.model.live())
        assert stats["facts"] >= len(life.scope.facts())

    def look(self, life: Life, room: str) -> None:
        talk, model = life.scope.conversation(room), life.model.room(room)
        learn(talk.messages(), model.said)
        info = talk.info()
        assert (info.last_seq if info else 0) == model.last
        present = [one.seq for one in model.said if one.seq > model.cleared]
        assert [one.seq for one in talk.recent()] == present
        assert len(talk.recent()) == len(present)

    def check_facts(self, life: Life) -> None:
        live = life.model.live()
        for fact in life.scope.facts(state=None):
            assert set(fact.sources) <= set(live)
            said = words(*(live[source].draft.content for source in fact.sources))
            assert words(fact.text, fact.value) <= (set(life.model.entered) if fact.recipe == HAND else said)
            assert fact.sources or fact.recipe == HAND
            believed = [live[source].draft.trusted for source in fact.sources]
            if fact.recipe != HAND and fact.id not in life.model.confirmed | set(life.model.retracted):
                assert all(believed) if fact.state != "quarantined" else not any(believed)
            assert fact.id not in life.model.erased_facts
        active = {one.id: one for one in life.scope.facts()}
        assert not set(active) & set(life.model.retracted)

    def check_summary(self, summary: memstore.Summary, room: Room) -> None:
        covered = [one for one in room.said if summary.from_seq <= one.seq <= summary.to_seq]
        assert words(summary.text) <= words(*(one.draft.content for one in covered))

    def check_hits(self, life: Life, hits: Sequence[memstore.Hit]) -> None:
        live = life.model.live()
        waiting = {fact.id for fact in life.scope.facts(state="quarantined")}
        for hit in hits:
            assert hit.id not in waiting
            assert words(hit.text) <= life.model.words()
            assert set(hit.sources) <= set(live)
            if hit.tier == Tier.MESSAGES:
                assert live[hit.id].draft.content[hit.start :].startswith(hit.text)

    def teardown(self) -> None:
        for life in self.lives.values():
            self.look_at_all(life)


def carried_rows(url: str, name: str) -> dict[str, list[dict[str, Any]]]:
    """Give the rows of a user but for how often it erased something.

    Of watermarks what is pending: where the newest messages were erased, numbers are left of which there is nothing.
    """
    found = rows(url, name)
    for row in found[f"{name}: users"]:
        del row["erasures"]
    for row in found[f"{name}: derivations"]:
        said = [one["seq"] for one in found[f"{name}: messages"] if one["conversation_id"] == row["conversation_id"]]
        done, _ = row.pop("done_seq"), row.pop("last_seq")
        row["pending"] = [seq for seq in said if seq > done]
    return found


def as_given(draft: Draft) -> dict[str, Any]:
    given = {"role": draft.role, "content": draft.content.replace(MARK, CARD), "occurred_at": draft.at}
    given |= {} if draft.trusted else {"metadata": {"trust": "untrusted"}}
    return given | ({"external_id": draft.external_id} if draft.external_id else {})


def learn(stored: Sequence[memstore.Message], expected: Sequence[Said]) -> None:
    """Compare messages with what is to be there, and note the ids of those that are new."""
    assert [(one.seq, one.role, one.content, one.external_id) for one in stored] == [
        (one.seq, one.draft.role, one.draft.content, one.draft.external_id) for one in expected
    ]
    for message, said in zip(stored, expected, strict=True):
        assert said.id in (None, message.id)
        said.id = message.id


@pytest.mark.slow
def test_calls_in_any_order_leave_what_a_plain_memory_would_have(url: str, twin: str, tmp_path: Path) -> None:
    """With TEST_DOSE=30 about 5,000 calls; with another `--hypothesis-seed`, others."""
    slow = settings(
        max_examples=HISTORIES * DOSE,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        phases=[Phase.generate],  # a history is printed as it is: making a shorter one takes minutes
        suppress_health_check=list(HealthCheck),
    )
    with memstore.open(url, settings=SETTINGS) as store, memstore.open(twin, settings=SETTINGS) as other:
        run_state_machine_as_test(partial(Machine, store, other, tmp_path), settings=slow)
        assert holding(url, CARD) == holding(twin, CARD) == {}
    print(f"{taken.total()} steps: {dict(taken)}")
