"""The public face: complete, light, and what the README shows."""

import ast
import inspect
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import get_args

import pytest

import memstore
from memstore import ConversationScope, UserScope, errors
from memstore.client.user_facts import FactInput
from memstore.derive.facts.manual_edits import EDITABLE
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


def test_every_error_is_public_and_says_what_servers_and_commands_make_of_it() -> None:
    classes = {name for name, error in vars(errors).items() if inspect.isclass(error)}
    assert classes <= set(memstore.__all__)
    for name in classes:
        error = getattr(errors, name)
        assert issubclass(error, errors.MemstoreError)
        assert 400 <= HTTPStatus(error.http_status) < 600 and 0 < error.exit_code < 5


def test_what_is_an_argument_in_python_is_one_over_rest() -> None:
    pytest.importorskip("fastapi")
    from memstore.server.http.memory import ContextRequest, FactEdit, NewFactRequest, ProfileParams, RecallRequest

    def arguments(call: Callable[..., object]) -> set[str]:
        return set(inspect.signature(call).parameters) - {"self", "columns"}

    assert set(RecallRequest.model_fields) == arguments(UserScope.recall)
    assert set(ContextRequest.model_fields) == arguments(ConversationScope.context) | {"receipt"}
    assert set(ProfileParams.model_fields) == arguments(UserScope.profile)
    assert set(NewFactRequest.model_fields) == arguments(UserScope.add_fact) | set(FactInput.__annotations__)
    assert set(FactEdit.model_fields) == arguments(UserScope.edit_fact) - {"fact"} | set(FactInput.__annotations__)
    assert set(EDITABLE) == {"text", *FactInput.__annotations__}


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
