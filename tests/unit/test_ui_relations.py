"""The relations of a user's entities, and the lives of values: what facts become on the page."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid5

from memstore.models import Fact
from memstore.server.ui.relations import Node, find_lives, find_relations, grow

ALICE = UUID(int=1)


def fact(subject: str, attribute: str, value: str, *, year: int = 2026, text: str = "", **more: Any) -> Fact:
    text = text or f"{subject}: {attribute} {value}."
    given: dict[str, Any] = {"type": "identity", "state": "active", "confidence": 1.0, "recipe": "reader/8", **more}
    at = datetime(year, 3, 1, tzinfo=UTC)
    id = uuid5(ALICE, text + given["type"])
    return Fact(
        user_id=ALICE, id=id, subject=subject, attribute=attribute, value=value, text=text, occurred_at=at, **given
    )


def lines(nodes: list[Node], depth: int = 0) -> list[str]:
    """Give trees as lines, each with its depth; a thing that stands elsewhere, too, in brackets."""
    found = []
    for node in nodes:
        name = f"({node.name})" if node.again else node.name
        found += [f"{depth} {name} {node.label}".strip(), *lines(node.children, depth + 1)]
    return found


def test_a_life_has_each_value_for_as_long_as_it_held() -> None:
    def lived(place: str, year: int, until: int | None, **more: Any) -> Fact:
        end = None if until is None else datetime(until, 3, 1, tzinfo=UTC)
        state = "active" if until is None else "superseded"
        return fact("Alice", "residence", place, year=year, **{"valid_to": end, "state": state, **more})

    told = [
        lived("porto", 2026, None, text="Alice lives in Porto."),
        lived("porto", 2025, None, text='Alice: "I live in Porto"', type="statement"),
        lived("cork", 2022, 2025, text="Alice lives in Cork."),
        lived("dublin", 2019, 2022, text="Alice lives in Dublin."),
        lived("atlantis", 2020, None, text="Alice lives in Atlantis.", state="retracted"),
    ]
    (life,) = find_lives([*told, fact("Alice", "job", "cook"), fact("Alice", "job", "baker", text="Or a baker.")])
    assert [(one.text, one.since.year, one.until and one.until.year) for one in life.values] == [
        ("Dublin", 2019, 2022),
        ("Cork", 2022, 2025),
        ("Porto", 2025, None),
    ]
    assert [one.holds for one in life.values] == [False, False, True]
    assert life.values[-1].fact.type == "identity"  # and not the quotation
    assert all(one.x + one.width <= other.x for one, other in pairwise(life.values))


def test_relations_lead_from_each_thing_to_the_next_and_each_has_its_fact() -> None:
    facts = [
        fact("Alice", "partner", "tom"),
        fact("Tom", "likes/mushroom", "no", text="Tom does not like Mushrooms."),
        fact("Alice", "residence", "porto", text="Alice lives in Porto."),
        fact("Tom", "residence", "porto", text="Tom lives in Porto."),
        fact("Alice's mum", "birthday", "22 march"),
        fact("Alice", "name", "alice"),
        fact("Alice", "residence", "leeds", state="superseded"),
        fact("Alice", "task/" + "write to everybody " * 4, "yes"),
    ]
    trees = grow(find_relations(facts))
    assert lines(trees) == [
        "0 Alice",
        "1 Alice's mum mum",
        "2 22 march birthday",
        "1 Tom partner",
        "2 (Porto) residence",
        "2 Mushroom likes: no",
        "1 Porto residence",
    ]
    (_, tom, _) = trees[0].children
    assert [child.relation and child.relation.fact.text for child in tom.children] == [facts[3].text, facts[1].text]
    assert (tom.is_entity, tom.children[1].is_entity) == (True, False)


def test_an_attribute_is_shown_in_words() -> None:
    told = [fact("Alice", "petname/dog", "rex"), fact("Alice", "appointment/any", "friday")]
    assert [relation.label for relation in find_relations(told)] == ["name (dog)", "appointment"]
