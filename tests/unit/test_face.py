"""The public face: complete, light, and what the README shows."""

from __future__ import annotations

import inspect
import subprocess
import sys

import memstore

HEAVY = (
    "onnxruntime",
    "tokenizers",
    "torch",
    "sqlalchemy",
    "sqlmodel",
    "psycopg",
    "pydantic",
    "numpy",
    "alembic",
    "tiktoken",
)


def test_every_public_name_is_there_and_told() -> None:
    assert memstore.__all__ == sorted(memstore.__all__)
    for name in memstore.__all__:
        assert inspect.getdoc(getattr(memstore, name)), name
    assert set(memstore.__all__) <= set(dir(memstore))
    assert set(memstore._HOMES) <= set(memstore.__all__)


def test_importing_memstore_imports_nothing_heavy() -> None:
    code = f"import sys, memstore; print([name for name in {HEAVY!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_opening_and_listing_facts_does_not_import_an_encoder(url: str) -> None:
    code = (
        "import sys, memstore\n"
        f"with memstore.open({url!r}) as store:\n"
        "    store.user('a').conversation('c').add('user', 'hi')\n"
        "    store.user('a').facts()\n"
        "print([name for name in ('onnxruntime', 'torch') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_every_error_is_in_the_tree_and_the_tree_has_every_error() -> None:
    from memstore import errors

    classes = {name for name, one in vars(errors).items() if inspect.isclass(one)}
    drawn = {line.lstrip(" │├└─").split(" ")[0] for line in str(errors.__doc__).splitlines() if "─" in line}
    assert classes == drawn | {"MemstoreError"}
    assert classes <= set(memstore.__all__)
    for name in classes:
        assert issubclass(getattr(errors, name), errors.MemstoreError)


def test_both_worlds_have_the_same_names() -> None:
    pairs = [
        (memstore.AsyncMemoryStore, memstore.MemoryStore),
        (memstore.AsyncUserScope, memstore.UserScope),
        (memstore.AsyncConversationScope, memstore.ConversationScope),
    ]
    for one, other in pairs:
        public = {name for name in dir(one) if not name.startswith("_")}
        assert public == {name for name in dir(other) if not name.startswith("_")}
        for name in public:
            if callable(getattr(one, name)):
                assert list(inspect.signature(getattr(one, name)).parameters) == list(
                    inspect.signature(getattr(other, name)).parameters
                )
