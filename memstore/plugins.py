"""What installed packages bring: entry points by name, and the libraries of memstore's extras."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import EntryPoints, entry_points

from memstore.errors import ProviderMissing


def installed_entry_points(group: str) -> EntryPoints:
    """Return the entry points of a group, such as "memstore.embedders". A package installed later is not seen."""
    return _read(group, tuple(sys.path))


# Reading opens a file of each installed package, and opening a store asks six times.
@lru_cache(maxsize=64)
def _read(group: str, path: tuple[str, ...]) -> EntryPoints:
    return entry_points(group=group)


@contextmanager
def require_extra(extra: str, *modules: str) -> Iterator[None]:
    """Import `modules` in here: where one of them is not installed, `ProviderMissing` says which extra brings it.

    Whatever else fails while they are imported is a broken install, and shows its own error.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in modules:
            raise
        raise missing_extra(error.name, extra) from error


def missing_extra(module: str, extra: str) -> ProviderMissing:
    """Return the error that says which extra brings a module."""
    return ProviderMissing(
        f"{module} is not installed: `pip install 'memstore-llm[{extra}]'` brings it (in a clone: '.[{extra}]')."
    )
