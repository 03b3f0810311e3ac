"""Leaves out the tests that SUITE_SKIPS names, by name or by a pattern; what names none is an error."""

from __future__ import annotations

import json
import os
from fnmatch import fnmatchcase

import pytest


def is_named(item: pytest.Item, patterns: list[str]) -> bool:
    """Whether a pattern is of a test's name, or of its class and name."""
    name = item.name.partition("[")[0]
    whole = f"{item.parent.name}.{name}" if item.parent else name
    return any(fnmatchcase(name, one) or fnmatchcase(whole, one) for one in patterns)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    patterns = json.loads(os.environ["SUITE_SKIPS"])
    left_out = [item for item in items if is_named(item, patterns)]
    idle = [one for one in patterns if not any(is_named(item, [one]) for item in left_out)]
    if idle:
        raise pytest.UsageError(f"These tests are not there any more: {idle}")
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)
