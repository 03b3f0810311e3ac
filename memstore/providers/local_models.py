"""Models of sentence-transformers that are on this machine: found and loaded without a network."""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from memstore.errors import ProviderError, ProviderMissing
from memstore.providers.optional import brought_by, missing

EXTRA = "sentence-transformers"
LIBRARY = "sentence_transformers"
OWN = "all-MiniLM-L6-v2"  # comes with memstore

# Whoever loads sets two switches of the whole process, and puts them back: no progress bars, no network.
_LOADING = threading.Lock()


def check(name: str) -> None:
    """Refuse a name that cannot be loaded, as far as that is known without loading anything; raises as `load` does."""
    if find_spec(LIBRARY) is None:
        raise missing(LIBRARY, EXTRA)
    if name:
        _place(name)


def load(name: str, kind: str) -> Any:
    """Return a model as the library's class `kind`, such as "SentenceTransformer", from a folder or by its name.

    Raises ProviderMissing for a model that is not on this machine and for a library that is not installed,
    ProviderError where the model cannot be loaded.
    """
    place = _place(name)
    with brought_by(EXTRA, LIBRARY, "torch", "transformers"):
        make = getattr(importlib.import_module(LIBRARY), kind)
    with _LOADING, _without_progress_bars(), _without_network():
        try:
            return make(place, local_files_only=True)
        except OSError as error:
            raise ProviderMissing(
                f"The model {name!r} is not on this machine, or not whole, and memstore downloads nothing. Give "
                f"the folder that holds it, or fetch it once: `hf download {name}`."
            ) from error
        except Exception as error:  # whatever torch, transformers and the model's own code may raise
            raise ProviderError(f"The model {name!r} cannot be loaded: {error}") from error


def _place(name: str) -> str:
    if name == OWN:
        return str(Path(__file__).with_name(OWN))
    folder = Path(name).expanduser()
    if folder.is_dir():
        return str(folder)
    if not re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", name):
        raise ProviderMissing(f"There is no folder {name!r}, and it is not the name of a model.")
    return name


@contextmanager
def _without_progress_bars() -> Iterator[None]:
    logging = importlib.import_module("transformers.utils.logging")
    if not logging.is_progress_bar_enabled():
        yield
        return
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.enable_progress_bar()


@contextmanager
def _without_network() -> Iterator[None]:
    # With local_files_only too, huggingface_hub asks its server for a list of agents, to name one in its user agent.
    constants = vars(importlib.import_module("huggingface_hub.constants"))
    before = constants["HF_HUB_OFFLINE"]
    constants["HF_HUB_OFFLINE"] = True
    try:
        yield
    finally:
        constants["HF_HUB_OFFLINE"] = before
