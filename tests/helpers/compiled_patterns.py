"""Prints how many patterns memstore compiles, and those with possessive or atomic groups, as JSON.

`re` of Python 3.11.2 finds the wrong spans with these; possessive repeats of one character are right.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import sys
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any

import memstore
from memstore.errors import ProviderMissing

COMPILED: dict[str, int] = {}
compile_pattern = _compiler.compile


def record(pattern: Any, flags: int = 0) -> Any:
    """Compile as `re` does, and note what memstore asks for."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"] in ("re", __name__):
        frame = frame.f_back
    if isinstance(pattern, str) and frame.f_globals["__name__"].startswith("memstore"):
        COMPILED[pattern] = int(flags)
    return compile_pattern(pattern, flags)


def has_group(parsed: Any) -> bool:
    """Return whether a parsed pattern has an atomic group, or a possessive repeat of more than one character."""
    for kind, value in parsed:
        if kind == _constants.ATOMIC_GROUP or (
            kind == _constants.POSSESSIVE_REPEAT and not _compiler._simple(value[2])
        ):
            return True
        if any(map(has_group, inner(value))):
            return True
    return False


def inner(value: Any) -> list[Any]:
    if isinstance(value, _parser.SubPattern):
        return [value]
    return [one for part in value for one in inner(part)] if isinstance(value, tuple | list) else []


_compiler.compile = record
for name in list(sys.modules):
    if name.startswith("memstore"):
        del sys.modules[name]
re.purge()
for module in pkgutil.walk_packages(memstore.__path__, "memstore.", onerror=lambda _: None):
    if "._sync" not in module.name and not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except (ImportError, ProviderMissing):
            pass  # of an extra that is not installed
        except Exception as error:
            if type(error).__name__ != "ProviderMissing":  # of the package as it is imported anew
                raise
pack = importlib.import_module("memstore.derive.rules.pack")
for code in pack.LANGUAGES:
    language = pack.language(code)
    for rule in (rule for rules in language.rules.values() for rule in rules):
        _ = rule.pattern
    for pattern in language.patterns:
        _ = language.patterns[pattern]
# A check that can fail: both are found.
assert all(has_group(_parser.parse(wrong)) for wrong in ("(?:ab)++", "x(?>a|b)", "(?:a|(?:bc)*+)"))
print(json.dumps([len(COMPILED), [text for text, flags in COMPILED.items() if has_group(_parser.parse(text, flags))]]))
