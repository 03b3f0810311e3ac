"""Models of sentence-transformers that are on this machine: named, found, and loaded without a network.

A name is a model and how it is computed: "all-MiniLM-L6-v2?backend=openvino" or "FOLDER?precision=bf16". The model is a
folder, or in Hugging Face's cache on this machine.
"""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qsl

from memstore.errors import ConfigurationError, ProviderError, ProviderMissing
from memstore.providers.optional import brought_by, missing

EXTRA = "local"
LIBRARY = "sentence_transformers"
BACKENDS: Mapping[str, tuple[str, ...]] = {  # and the modules that each needs
    "torch": (),
    "onnx": ("onnxruntime", "optimum"),
    "openvino": ("openvino", "optimum"),
}
PRECISIONS = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}  # of weights and sums in torch

# Whoever loads sets two switches of the whole process, and puts them back: no progress bars, no network.
_LOADING = threading.Lock()


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model by name, and how it is computed: other vectors come of another backend, precision or file."""

    name: str
    backend: str = "torch"
    precision: str = "fp32"
    file: str = field(default="", kw_only=True)  # of ONNX or OpenVINO in the model's folder, a quantized one perhaps

    def __str__(self) -> str:
        """Give the one name that all ways of writing this one have."""
        said = (("backend", self.backend, "torch"), ("file", self.file, ""), ("precision", self.precision, "fp32"))
        options = "&".join(f"{name}={value}" for name, value, default in said if value != default)
        return f"{self.name}?{options}" if options else self.name


def local_model(written: str) -> LocalModel:
    """Read a name with its options; raises `ConfigurationError` for options that there are not."""
    if written and Path(written).expanduser().is_dir():
        return LocalModel(written)
    name, _, options = written.partition("?")
    given = dict(parse_qsl(options, keep_blank_values=True))
    backend, precision = given.pop("backend", "torch"), given.pop("precision", "fp32")
    read = LocalModel(name, backend, precision, file=given.pop("file", ""))
    for option, value, known in (("backend", backend, BACKENDS), ("precision", precision, PRECISIONS)):
        if value not in known:
            raise ConfigurationError(f"{written!r}: there is no {option}={value}, but {', '.join(known)}.")
    if given or (options and not parse_qsl(options)):
        raise ConfigurationError(f"{written!r}: a model's options are backend, precision and file, as ?name=value&….")
    if backend == "torch" and read.file:
        raise ConfigurationError(f"{written!r}: a file is for the backends onnx and openvino.")
    if backend != "torch" and precision != "fp32":
        raise ConfigurationError(f"{written!r}: with {backend} name a file of that precision: file=….")
    return read


def check(written: str) -> None:
    """Refuse a name that cannot be loaded, as far as that is known without loading anything; raises as `load` does."""
    model = local_model(written)
    if find_spec(LIBRARY) is None:
        raise missing(LIBRARY, EXTRA)
    _check_installed(model)
    if model.name:
        _place(model.name)


def load(model: LocalModel, kind: str, folder: Path | None = None, **arguments: Any) -> Any:
    """Give a model as the library's class `kind`, such as "SentenceTransformer", from a folder or by its name.

    Takes 3 to 8 s the first time (importing torch and its company), 0.2 s after. Raises `ProviderMissing` for a model
    that is not on this machine and for a library that is not installed, `ProviderError` where it cannot be loaded.
    """
    place = _place(model.name) if folder is None else str(folder)
    make = getattr(load_library(), kind)
    _check_installed(model)
    if model.backend != "torch":
        arguments |= {"backend": model.backend, "model_kwargs": {"file_name": model.file} if model.file else {}}
    with _LOADING, _without_progress_bars(), _without_network():
        try:
            loaded = make(place, local_files_only=True, **arguments)
        except OSError as error:
            raise ProviderMissing(
                f"The model {model.name!r} is not on this machine, or not whole, and memstore downloads nothing. Give "
                f"the folder that holds it, or fetch it once: `hf download {model.name}`."
            ) from error
        except Exception as error:  # whatever torch, transformers and the model's own code may raise
            raise ProviderError(f"The model {str(model)!r} cannot be loaded: {error}") from error
    if model.precision != "fp32":
        loaded.to(getattr(importlib.import_module("torch"), PRECISIONS[model.precision]))
    return loaded


def load_library(otherwise: str = "") -> ModuleType:
    """Give sentence-transformers; raises `ProviderMissing` with what to do `otherwise` where it is not installed."""
    with brought_by(EXTRA, LIBRARY, "torch", "transformers", otherwise=otherwise):
        return importlib.import_module(LIBRARY)


def _check_installed(model: LocalModel) -> None:
    lacking = [module for module in BACKENDS[model.backend] if find_spec(module) is None]
    if lacking:
        raise ProviderMissing(
            f"backend={model.backend} needs {' and '.join(lacking)}: `pip install "
            f"'sentence-transformers[{model.backend}]'` brings what it needs."
        )


def _place(name: str) -> str:
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
