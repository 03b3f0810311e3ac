"""Libraries that only an extra of memstore's brings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from memstore.errors import ProviderMissing


@contextmanager
def brought_by(extra: str, *modules: str) -> Iterator[None]:
    """Import `modules` in here: where one of them is not installed, `ProviderMissing` says which extra brings it.

    Whatever else fails while they are imported is a broken install, and shows its own error.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in modules:
            raise
        raise missing(error.name, extra) from error


def missing(module: str, extra: str) -> ProviderMissing:
    """Give the error that says which extra brings a module."""
    return ProviderMissing(f"{module} is not installed: `pip install '.[{extra}]'`, in memstore's folder, brings it.")
