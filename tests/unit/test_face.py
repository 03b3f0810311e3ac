"""The public face: complete, light, and what the README shows."""

import ast
import inspect
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

import memstore
from memstore import ConversationScope
from memstore.formats import FORMATS, FormatName
from memstore.models import Role, RoleName


def test_every_public_name_is_there_and_told() -> None:
    assert memstore.__all__ == sorted(memstore.__all__)
    for name in memstore.__all__:
        assert inspect.getdoc(getattr(memstore, name)), name
    assert dir(memstore) == memstore.__all__, "what a tab shows"
    assert set(memstore._HOMES) <= set(memstore.__all__)


def test_every_class_has_a_name_of_its_own() -> None:
    classes = Counter(
        node.name
        for path in Path(memstore.__file__).parent.rglob("*.py")
        if "_sync" not in path.parts
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in classes.items() if count > 1] == []


def test_every_error_is_in_the_tree_and_the_tree_has_every_error() -> None:
    from memstore import errors as tree

    classes = {name for name, one in vars(tree).items() if inspect.isclass(one)}
    drawn = {line.lstrip(" │├└─").split(" ")[0] for line in str(tree.__doc__).splitlines() if "─" in line}
    assert classes == drawn | {"MemstoreError"}
    assert classes <= set(memstore.__all__)
    for name in classes:
        assert issubclass(getattr(tree, name), tree.MemstoreError)


@pytest.mark.parametrize(
    ("given", "named"), [("foo", "'foo'"), ("mysql://a:b@c/d", "'mysql:'"), ("password=Xs3 user=u", "What was given")]
)
def test_what_is_no_database_is_named_unless_it_may_hold_a_password(given: str, named: str) -> None:
    with pytest.raises(memstore.ConfigurationError, match=f"^{named} is no database"):
        memstore.open(given)


def test_type_checkers_know_the_words_that_are_taken() -> None:
    """Strings of modules whose annotations are not evaluated."""
    add, context = (inspect.signature(one).parameters for one in (ConversationScope.add, ConversationScope.context))
    assert (add["role"].annotation, set(get_args(RoleName))) == ("Role | RoleName", {role.value for role in Role})
    assert (context["format"].annotation, set(get_args(FormatName))) == ("FormatName | Format", set(FORMATS))
