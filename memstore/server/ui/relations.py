"""Who is connected to what, as a tree; and the life of a value, such as Dublin, then Cork, then Porto."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import NamedTuple

from starlette.responses import Response

from memstore.models import Fact
from memstore.models.facts import STORED_ACTIVE
from memstore.server.ui.contexts import CHART_WIDTH
from memstore.server.ui.request import UIRequest

MAX_FACTS, MAX_RELATIONS, MAX_LIVES = 2000, 80, 20
# What is longer is a sentence and no thing.
MAX_NAME_CHARS = 40
POSSESSIVE = re.compile(r"(.+)['’]s (.+)")
YES, NO = "yes", "no"


class Relation(NamedTuple):
    """What a fact says of two things."""

    subject: str
    label: str
    object: str
    fact: Fact


class Node(NamedTuple):
    """A thing, under the one through which it is reached first; `label` is their relation, "" for a root.

    A thing that is reached by another relation, too, stands there `again`, without what is under it. Facts are about
    one that `is_entity`.
    """

    name: str
    relation: Relation | None
    label: str
    is_entity: bool
    again: bool
    children: list[Node]


class Value(NamedTuple):
    """A value of an attribute: when it held, and whether it does now. `x` and `width` are its bar's."""

    text: str
    fact: Fact
    since: datetime
    until: datetime | None
    holds: bool
    x: float
    width: float


class Life(NamedTuple):
    """The values of an attribute, one after the other."""

    subject: str
    label: str
    values: list[Value]


async def show_relations(ui: UIRequest) -> Response:
    """Show a user's entities with their relations, and the values that changed."""
    facts = [fact for fact in await ui.user.facts(state=None, limit=MAX_FACTS) if fact.attribute and fact.value]
    relations = find_relations(facts)
    return ui.page(
        "relations.html",
        trees=grow(relations[:MAX_RELATIONS]),
        left_out=len(relations[MAX_RELATIONS:]),
        lives=find_lives(facts),
    )


def find_relations(facts: Iterable[Fact]) -> list[Relation]:
    """Return what active facts say of two things, each once, those between entities first.

    A statement of its own comes before a quotation.
    """
    by_ends: dict[tuple[str, str, str], Relation] = {}
    for fact in sorted(facts, key=lambda fact: fact.type == "statement"):
        if fact.state != "active":
            continue
        label, thing = _object(fact)
        relations = [Relation(fact.subject, label, thing, fact)]
        if owned := POSSESSIVE.fullmatch(fact.subject):
            relations.append(Relation(owned[1], owned[2], fact.subject, fact))
        for relation in relations:
            ends = relation.subject.casefold(), relation.object.casefold()
            if ends[0] != ends[1] and max(map(len, ends)) <= MAX_NAME_CHARS:
                by_ends.setdefault((ends[0], relation.label, ends[1]), relation)
    subjects = {subject for subject, _, _ in by_ends}
    return [by_ends[key] for key in sorted(by_ends, key=lambda key: key[2] not in subjects)]


def _object(fact: Fact) -> tuple[str, str]:
    """Return a relation and its object: of "likes/tea" = yes that is tea, of "residence" = porto it is Porto."""
    attribute, value = str(fact.attribute), str(fact.value)
    label, _, part = attribute.partition("/")
    if part and value in (YES, NO):
        label, value = label if value == YES else f"{label}: no", part
    else:
        label = _label(attribute)
    written = re.search(re.escape(value), fact.text, re.IGNORECASE)
    return label.replace("_", " "), written[0] if written else value


def _label(attribute: str) -> str:
    """Return an attribute in words: "petname/dog" as "name (dog)", "appointment/any" as "appointment"."""
    name, _, part = attribute.replace("_", " ").partition("/")
    name = {"petname": "name"}.get(name, name)
    return name if part in ("", "any") else f"{name} ({part})"


def grow(relations: Sequence[Relation]) -> list[Node]:
    """Return the things as trees: the one with most relations first, each thing where it is reached first."""
    beside: dict[str, list[tuple[str, str, Relation]]] = defaultdict(list)
    subjects = {relation.subject.casefold(): relation.subject for relation in relations}
    names = {relation.object.casefold(): relation.object for relation in relations} | subjects
    for relation in relations:
        subject, thing = relation.subject.casefold(), relation.object.casefold()
        beside[subject].append((relation.label, thing, relation))
        beside[thing].append((f"← {relation.label}", subject, relation))
    seen: set[str] = set()
    shown: set[int] = set()
    trees = []
    for root in sorted(beside, key=lambda key: (key not in subjects, -len(beside[key]), key)):
        if root in seen:
            continue
        seen.add(root)
        trees.append(Node(names[root], None, "", root in subjects, False, []))
        queue = [(root, trees[-1])]
        # The queue grows meanwhile; those come first that have relations of their own.
        for key, node in queue:
            for label, other, relation in sorted(beside[key], key=lambda edge: (len(beside[edge[1]]) == 1, *edge[:2])):
                again = other in seen
                # It stands there already.
                if id(relation) in shown or (again and other == relation.subject.casefold()):
                    continue
                shown.add(id(relation))
                node.children.append(Node(names[other], relation, label, other in subjects, again, []))
                if not again:
                    seen.add(other)
                    queue.append((other, node.children[-1]))
    return trees


def find_lives(facts: Iterable[Fact]) -> list[Life]:
    """Return the attributes whose value changed, the latest change first."""
    slots: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    for fact in facts:
        if fact.state in (*STORED_ACTIVE, "superseded"):
            slots[fact.subject.casefold(), str(fact.attribute)].append(fact)
    lives = []
    for (_, attribute), said in slots.items():
        said.sort(key=lambda fact: (_since(fact), fact.state in STORED_ACTIVE, str(fact.id)))
        runs = [list(run) for _, run in groupby(said, key=lambda fact: str(fact.value).casefold())]
        active = {str(fact.value).casefold() for fact in said if fact.state == "active"}
        # Those that hold side by side are no life.
        if len(runs) > 1 and len(active) < 2:
            lives.append(Life(said[-1].subject, _label(attribute), _values(runs)))
    lives.sort(key=lambda life: life.values[-1].since, reverse=True)
    return lives[:MAX_LIVES]


def _since(fact: Fact) -> datetime:
    return fact.valid_from or fact.occurred_at


def _until(facts: Sequence[Fact]) -> datetime | None:
    """Return when the last of these facts ends, or expires; None if one of them goes on."""
    those = [fact for fact in facts if fact.state in STORED_ACTIVE] or facts
    ends = [min((end for end in (fact.valid_to, fact.expires_at) if end is not None), default=None) for fact in those]
    return None if None in ends else max(end for end in ends if end is not None)


def _values(runs: Sequence[Sequence[Fact]]) -> list[Value]:
    """Return a life's values: each holds until it ends or the next one begins."""
    begins = [_since(run[0]) for run in runs]
    ends = [_until(run) for run in runs]
    for number, begin in enumerate(begins[1:]):
        ends[number] = min(ends[number] or begin, begin)
    last = ends[-1] or max(datetime.now(UTC), begins[-1])
    whole = max(1.0, (last - begins[0]).total_seconds())
    values = []
    for run, begin, end in zip(runs, begins, ends, strict=True):
        x = CHART_WIDTH * (begin - begins[0]).total_seconds() / whole
        width = CHART_WIDTH * ((end or last) - begin).total_seconds() / whole
        fact = next((fact for fact in run if fact.type != "statement"), run[0])
        values.append(
            Value(
                _object(fact)[1] if fact.value not in (YES, NO) else str(fact.value),
                fact,
                begin,
                end,
                any(fact.state == "active" for fact in run),
                x,
                max(4.0, width - 4),
            )
        )
    return values
