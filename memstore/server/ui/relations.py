"""Who is connected to what, as a graph; and the life of a value, such as Dublin, then Cork, then Porto.

The graph is drawn here: every name has a row of its own, so that no label covers another, and the same facts give the
same picture. Wide pages show an entity between two columns of rows, narrow ones above a single column.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import NamedTuple
from unicodedata import east_asian_width

from starlette.responses import Response

from memstore.models import Fact
from memstore.models.facts import state_of
from memstore.server.ui.contexts import WIDTH
from memstore.server.ui.request import UIRequest, clip

MAX_FACTS, MAX_NODES, MAX_LIVES = 2000, 60, 20
MAX_NAME = 40  # characters; what is longer is a sentence and no thing
OWNED = re.compile(r"(.+)['’]s (.+)")  # "Alice's mum"
YES, NO = "yes", "no"

# Units of a drawing: pixels at its own size.
ROW, MARGIN, PILL, INDENT, CHAR, BOLD = 28, 12, 30, 22, 8.2, 9.2
MAX_INDENT = 6 * INDENT  # a longer chain goes straight down
SPOKE, TEXT = 150, 12  # from an entity to the rows beside it; from a dot to its label
WIDTHS = {2: 1100, 1: 360}  # of a drawing with two columns, and with one
DOT = 6  # the radius of an entity's
TRUNK = 16.0  # where the lines of a single column begin


class Relation(NamedTuple):
    """What a fact says of two things."""

    subject: str
    label: str
    object: str
    fact: Fact


class Node(NamedTuple):
    """A thing, under the one through which it is reached first; `label` is their relation, None for a root."""

    key: str
    relation: Relation | None
    label: str
    is_entity: bool  # facts are about it
    children: list[Node]

    @property
    def size(self) -> int:
        """How many rows it takes."""
        return 1 + sum(child.size for child in self.children)


class Row(NamedTuple):
    """A node as it is drawn. `side` is 1 right of its root, -1 left of it, 0 for a root with its pill's `width`."""

    relation: Relation | None
    name: str
    label: str
    x: float
    y: float
    side: int
    width: float
    path: str
    is_entity: bool


class Drawing(NamedTuple):
    """A graph; `across` are relations between nodes that stand elsewhere already, with their curves."""

    name: str
    width: int
    height: int
    rows: list[Row]
    across: list[tuple[Relation, str]]


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
    """Show the graph of a user's entities, and the values that changed."""
    facts = [fact for fact in await ui.user.facts(state=None, limit=MAX_FACTS) if fact.attribute and fact.value]
    every = find_relations(facts)
    shown, names = choose(every)
    trees = grow(shown)
    return ui.page(
        "relations.html",
        drawings=[draw(trees, shown, names, sides) for sides in (2, 1)],
        relations=shown,
        names=names,
        left_out=len(every) - len(shown),
        lives=find_lives(facts),
    )


def find_relations(facts: Iterable[Fact]) -> list[Relation]:
    """Return what active facts say of two things, each once: as a statement of its own before a quotation."""
    found: dict[tuple[str, str, str], Relation] = {}
    for fact in sorted(facts, key=lambda fact: fact.type == "statement"):
        if state_of(fact) != "active":
            continue
        label, thing = _object(fact)
        relations = [Relation(fact.subject, label, thing, fact)]
        if owned := OWNED.fullmatch(fact.subject):
            relations.append(Relation(owned[1], owned[2], fact.subject, fact))
        for relation in relations:
            ends = relation.subject.casefold(), relation.object.casefold()
            if ends[0] != ends[1] and max(map(len, ends)) <= MAX_NAME:
                found.setdefault((ends[0], relation.label, ends[1]), relation)
    return list(found.values())


def _object(fact: Fact) -> tuple[str, str]:
    """Return a relation and its object: of "likes/tea" = yes that is tea, of "residence" = porto it is Porto."""
    attribute, value = str(fact.attribute), str(fact.value)
    label, _, part = attribute.partition("/")
    if part and value in (YES, NO):
        label, value = label if value == YES else f"{label}: no", part
    else:
        label = attribute.replace("/", " ")
    written = re.search(re.escape(value), fact.text, re.IGNORECASE)
    return label.replace("_", " "), written[0] if written else value


def choose(relations: Sequence[Relation]) -> tuple[list[Relation], dict[str, str]]:
    """Return relations of at most `MAX_NODES` things, those between entities first; and the things' names by key."""
    subjects = {relation.subject.casefold(): relation.subject for relation in relations}
    chosen, names = [], dict[str, str]()
    for relation in sorted(relations, key=lambda relation: relation.object.casefold() not in subjects):
        new = {name.casefold(): subjects.get(name.casefold(), name) for name in (relation.subject, relation.object)}
        if len(names | new) <= MAX_NODES:
            names |= new
            chosen.append(relation)
    return chosen, names


def grow(relations: Sequence[Relation]) -> list[Node]:
    """Return the things as trees: the one with most relations first, each thing where it is reached first."""
    beside: dict[str, list[tuple[str, str, Relation]]] = defaultdict(list)
    subjects = {relation.subject.casefold() for relation in relations}
    for relation in relations:
        subject, thing = relation.subject.casefold(), relation.object.casefold()
        beside[subject].append((relation.label, thing, relation))
        beside[thing].append((f"← {relation.label}", subject, relation))
    seen: set[str] = set()
    trees = []
    for root in sorted(beside, key=lambda key: (key not in subjects, -len(beside[key]), key)):
        if root in seen:
            continue
        seen.add(root)
        trees.append(Node(root, None, "", root in subjects, []))
        level = trees[-1:]
        while level:
            for node in level:  # those first that have relations of their own
                for label, key, relation in sorted(
                    beside[node.key], key=lambda one: (len(beside[one[1]]) == 1, *one[:2])
                ):
                    if key not in seen:
                        seen.add(key)
                        node.children.append(Node(key, relation, label, key in subjects, []))
            level = [child for node in level for child in node.children]
    return trees


def draw(trees: Sequence[Node], relations: Sequence[Relation], names: Mapping[str, str], sides: int) -> Drawing:
    """Return a drawing: with two sides for wide pages, with one for narrow ones."""
    width = WIDTHS[sides]
    rows: dict[str, Row] = {}
    top = float(MARGIN)
    for tree in trees:
        columns = _columns(tree) if sides == 2 else [tree.children]
        heights = [ROW * sum(child.size for child in column) for column in columns]
        name = _fit(names[tree.key], 26)
        pill = BOLD * _units(name) + 24
        height = max(PILL, *heights) if sides == 2 else PILL + heights[0]
        x, y = (width / 2, top + height / 2) if sides == 2 else (1 + pill / 2, top + PILL / 2)
        rows[tree.key] = root = Row(None, name, "", x, y, 0, pill, "", True)
        for side, column, tall in zip((1, -1), columns, heights, strict=False):
            at = y - tall / 2 if sides == 2 else top + PILL
            for child in column:
                at = _place(child, root, names, rows, at, side, sides)
        top += height + MARGIN
    drawn = {id(row.relation) for row in rows.values()}
    across = [
        (relation, _arc(rows[relation.subject.casefold()], rows[relation.object.casefold()], sides))
        for relation in relations
        if id(relation) not in drawn
    ]
    return Drawing("wide" if sides == 2 else "narrow", width, round(top), list(rows.values()), across)


def _columns(tree: Node) -> list[list[Node]]:
    """Return a root's children in two columns of about the same height, in their order."""
    right: list[Node] = []
    left = list(tree.children)
    while left and 2 * (sum(child.size for child in right) + left[0].size) <= tree.size:
        right.append(left.pop(0))
    return [right, left] if right else [left, right]


def _place(
    node: Node, parent: Row, names: Mapping[str, str], rows: dict[str, Row], at: float, side: int, sides: int
) -> float:
    """Place a node and those under it from a height on; return where the next one begins."""
    y = at + ROW / 2
    if parent.side == 0 and sides == 2:
        x, begin = parent.x + side * SPOKE, parent.x + side * parent.width / 2
        path = _curve(begin, parent.y, begin + side * 40, x - side * 50, x, y)
    else:
        begin, low = (TRUNK, parent.y + PILL / 2) if parent.side == 0 else (parent.x, parent.y + DOT)
        base = WIDTHS[2] / 2 + side * SPOKE if sides == 2 else TRUNK
        x = begin if abs(begin - base) >= MAX_INDENT else begin + side * INDENT
        path = f"M{begin:.0f} {low:.0f}V{y - 10:.0f}Q{begin:.0f} {y:.0f} {x:.0f} {y:.0f}"
    space = ((x if side < 0 else WIDTHS[sides] - x) - TEXT - 4) / CHAR
    name = _fit(names[node.key], space - 8)
    label = _fit(node.label, space - _units(name) - 1)
    rows[node.key] = row = Row(node.relation, name, label, x, y, side, 0, path, node.is_entity)
    at += ROW
    for child in node.children:
        at = _place(child, row, names, rows, at, side, sides)
    return at


def _arc(one: Row, other: Row, sides: int) -> str:
    """Return the curve between two nodes; it bends away from the labels."""
    spoke = SPOKE - 60 if one.side == other.side else 0
    bend, other_bend = (WIDTHS[2] / 2 + row.side * spoke if sides == 2 else 0.0 for row in (one, other))
    return _curve(one.x, one.y, bend, other_bend, other.x, other.y)


def _curve(x: float, y: float, bend: float, other_bend: float, other_x: float, other_y: float) -> str:
    return f"M{x:.0f} {y:.0f}C{bend:.0f} {y:.0f} {other_bend:.0f} {other_y:.0f} {other_x:.0f} {other_y:.0f}"


def _units(text: str) -> float:
    """Return about how wide a text is, in letters of ordinary width."""
    return sum(
        2 if east_asian_width(letter) in "WF" else 1.6 if letter in "MWmw@%" else 1.2 if letter.isupper() else 1
        for letter in text
    )


def _fit(text: str, units: float) -> str:
    """Return as much of a text as has room."""
    fitting = min(len(text), max(0, int(units)))  # no letter takes less than one
    while fitting and _units(clip(text, fitting)) > units:
        fitting -= 1
    return clip(text, fitting) if fitting else ""


def find_lives(facts: Iterable[Fact]) -> list[Life]:
    """Return the attributes whose value changed, the latest change first."""
    slots: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    for fact in facts:
        if fact.state in ("active", "superseded"):
            slots[fact.subject.casefold(), str(fact.attribute)].append(fact)
    lives = []
    for (_, attribute), said in slots.items():
        said.sort(key=lambda fact: (_since(fact), fact.state == "active", str(fact.id)))
        runs = [list(run) for _, run in groupby(said, key=lambda fact: str(fact.value).casefold())]
        active = {str(fact.value).casefold() for fact in said if state_of(fact) == "active"}
        if len(runs) > 1 and len(active) < 2:  # those that hold side by side are no life
            lives.append(Life(said[-1].subject, attribute.replace("/", " ").replace("_", " "), _values(runs)))
    lives.sort(key=lambda life: life.values[-1].since, reverse=True)
    return lives[:MAX_LIVES]


def _since(fact: Fact) -> datetime:
    return fact.valid_from or fact.occurred_at


def _until(facts: Sequence[Fact]) -> datetime | None:
    """Return when the last of these facts ends, or expires; None if one of them goes on."""
    those = [fact for fact in facts if fact.state == "active"] or facts
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
        x = WIDTH * (begin - begins[0]).total_seconds() / whole
        width = WIDTH * ((end or last) - begin).total_seconds() / whole
        fact = next((fact for fact in run if fact.type != "statement"), run[0])
        values.append(
            Value(
                _object(fact)[1] if fact.value not in (YES, NO) else str(fact.value),
                fact,
                begin,
                end,
                any(state_of(fact) == "active" for fact in run),
                x,
                max(4.0, width - 4),
            )
        )
    return values
