"""What is borrowed: embedding models, token counters, rerankers and chat models.

Here are their Protocols, which a provider of your own follows, and the registry of those that are installed. A provider
is named "kind:model". Its kind is an entry point of the group `memstore.counters`, `memstore.embedders`,
`memstore.rerankers` or `memstore.chat_models`: a function that takes the model's name, and the settings where it needs
them, and returns the provider. A function of a module that no package brings is named "module:function", or
"module:function:model".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from threading import RLock
from typing import Any, Generic, Literal, Protocol, Self, TypeVar, cast, runtime_checkable
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from memstore.errors import ConfigurationError, EmbedderMismatch, MemstoreError, ProviderError, ProviderMissing
from memstore.plugins import installed_entry_points
from memstore.settings import ONNX_MINILM, Settings, load as load_settings

Vectors = NDArray[np.float32]
Scores = NDArray[np.floating[Any]]
# Of "role" and "content".
ChatMessage = Mapping[str, str]
CountKind = Literal["exact", "server", "estimated", "upper_bound"]
T = TypeVar("T", bound=BaseModel)

# The name of its vectors, whichever library computed them.
MINILM = "sentence-transformers:all-MiniLM-L6-v2"
# Of a vector that lies in its row as it is, of a page of 8 KB.
MAX_DIMENSIONS = 2000


class Count(int):
    """A number of tokens, and how it is known: `kind`. Arithmetic gives plain ints.

    "exact": the rendered prompt is counted, by the rule and the vocabulary that the counter's name says. "server": by
    the service that runs the model, asked. "estimated": by a rule that is known to be near what the server does, or
    above it, which may differ. "upper_bound": not exceeded, within what the counter states.
    """

    kind: CountKind

    def __new__(cls, tokens: int, kind: CountKind) -> Self:
        """Return the number with its kind."""
        count = super().__new__(cls, tokens)
        count.kind = kind
        return count

    def __reduce__(self) -> tuple[type[Count], tuple[int, CountKind]]:
        return Count, (int(self), self.kind)


class TokenCounter(Protocol):
    """Counts tokens, and says with each count of a chat how it is known. Blocking, and safe to share by threads."""

    @property
    def name(self) -> str:
        """The full name, kept with every stored count."""

    def count(self, text: str) -> int:
        """Return the number of tokens of a text; special tokens that it mentions are plain text."""

    def count_message(self, message: Mapping[str, Any]) -> int:
        """Return what one message is expected to add to a chat, its overhead included: an estimate to plan with."""

    def count_messages(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> Count:
        """Return the number of tokens of the finished chat, overhead of messages and of the reply's start included.

        `tools` are definitions of tools as OpenAI and Ollama take them: {"type": "function", "function": {…}}.
        Raises InvalidInput for messages that cannot be counted, such as those that the model's template refuses.
        """


class Embedder(Protocol):
    """Turns texts into vectors of unit length. Blocking, and safe to share by threads: derivers run at once."""

    @property
    def name(self) -> str:
        """The full name, kept with every stored vector: the same name must mean the same vectors."""

    @property
    def dimensions(self) -> int:
        """The number of components of a vector."""

    @property
    def max_tokens(self) -> int:
        """The model's window, in its own tokens without the special ones; text beyond it is not read."""

    def count(self, text: str) -> int:
        """Return the number of the model's own tokens of a text, without the special ones."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts to be found: shape (texts, dimensions), float32, each of length 1."""

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question: shape (dimensions,), float32, of length 1."""


@runtime_checkable
class SelectiveEmbedder(Protocol):
    """An Embedder that says which texts it can read."""

    def knows(self, text: str) -> bool:
        """Return whether the model knows the words of a text; words decide where it does not."""


def embed_texts(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Return the vectors of texts. Raises `ProviderError` for what are none."""
    return check_vectors(embedder, embedder.embed_documents(texts), (len(texts), embedder.dimensions))


def embed_query(embedder: Embedder, text: str) -> Vectors:
    """Return the vector of a question. Raises `ProviderError` for what is none."""
    return check_vectors(embedder, embedder.embed_query(text), (embedder.dimensions,))


def check_vectors(embedder: Embedder, vectors: object, shape: tuple[int, ...]) -> Vectors:
    """Return vectors as an array. Raises `ProviderError` for other than finite numbers of the shape."""
    advice = "Nothing of them was stored: mend the embedder, then derive again."
    return check_numbers(f"The embedder {embedder.name!r}", vectors, shape, advice).astype(np.float32, copy=False)


def check_numbers(provider: str, numbers: object, shape: tuple[int, ...], advice: str) -> NDArray[Any]:
    """Return a provider's numbers as an array. Raises `ProviderError` for other than finite ones of the shape."""
    try:
        array = np.asarray(numbers)
        returned = f"{array.dtype} of the shape {array.shape}"
    except ValueError:
        array, returned = np.empty(0), "lists of several lengths"
    if array.shape == shape and array.dtype.kind in "fiu":
        if np.isfinite(array).all():
            return array
        returned += ", not all finite"
    raise ProviderError(
        f"{provider} must return finite numbers of the shape {shape}, and returned {returned}. {advice}"
    )


# Loads by a name and dimensions, as `load_stored_embedder`.
EmbedderLoader = Callable[[str, int], Embedder]


class Reranker(Protocol):
    """Says how well texts answer a question, having read both together. Blocking, and safe to share by threads."""

    @property
    def name(self) -> str:
        """The full name, kept with the receipts of contexts: the same name must mean the same scores."""

    def scores(self, query: str, texts: Sequence[str]) -> Scores:
        """Return a score for each text, the higher the better: shape (texts,), finite, on any scale they share."""


@dataclass(frozen=True, slots=True)
class Completion(Generic[T]):
    """A chat model's answer, and what it has cost in the model's own tokens, a refused first answer included.

    `is_whole` is False where the model had more to say than fits: its answer can be used, and the rest asked for.
    """

    answer: T
    prompt_tokens: int
    completion_tokens: int
    calls: int = 1
    is_whole: bool = True


class ChatModel(Protocol):
    """Answers a chat with an object of a given shape. Blocking, and safe to share by threads."""

    @property
    def name(self) -> str:
        """The full name, with the digest of the weights where that is known: it is kept with what the model made.

        May ask the server, the first time; raises `ModelUnavailable` where that is away.
        """

    @property
    def context_tokens(self) -> int:
        """The model's window in its own tokens: prompt and answer together. May ask the server as `name` does."""

    def max_prompt_tokens(self, messages: Sequence[ChatMessage]) -> int:
        """Return a number of tokens that the prompt of these messages hardly exceeds, everything around them included.

        What is to be sent must keep `max_prompt_tokens(messages) + max_tokens <= context_tokens`.
        """

    def complete(self, messages: Sequence[ChatMessage], schema: type[T], *, max_tokens: int) -> Completion[T]:
        """Return the model's answer of at most `max_tokens` tokens, read as `schema`; of a cut one, what is whole.

        Returns or raises within a set time. Raises `PromptTooLong` before anything is sent where the prompt may not
        fit, `ModelUnavailable` where the model is away, `ModelAnswerInvalid` where it answers with something else.
        """


# Several first questions at once must not load a model several times, and a loader may load another.
_LOADING = RLock()
# Hundreds of megabytes each: stores share.
_LOADED: WeakValueDictionary[tuple[str, str], Any] = WeakValueDictionary()


def load_counter(name: str, settings: Settings | None = None) -> TokenCounter:
    """Return the token counter of this name, such as "tiktoken:o200k_base". Nothing is asked of a server yet.

    `settings` say where a server is; by default they are those of the environment.
    """
    return cast(TokenCounter, _load("memstore.counters", name, settings))


def load_embedder(name: str, settings: Settings | None = None) -> Embedder | None:
    """Return the embedder of this name, such as "onnx:all-MiniLM-L6-v2"; None for "none".

    As long as anybody in this process holds it, it is not loaded again. Raises `ConfigurationError` where its vectors
    are too wide to be stored.
    """
    if name == "none":
        return None
    embedder: Embedder = _load("memstore.embedders", name, settings)
    if embedder.dimensions > MAX_DIMENSIONS:
        raise ConfigurationError(
            f"{embedder.name} makes vectors of {embedder.dimensions:,} dimensions; a row holds {MAX_DIMENSIONS:,}. "
            "Give another embedder, or have it make shorter ones (Matryoshka models can, by embedding_dimensions)."
        )
    return embedder


def setting_of(name: str) -> str:
    """Return the setting that has vectors of this name made, without an extra where that can be."""
    return ONNX_MINILM if name == MINILM else name


def load_stored_embedder(name: str, dimensions: int, settings: Settings | None = None) -> Embedder:
    """Return the embedder that has made the vectors kept under this name; raises `EmbedderMismatch` without it."""
    settings = load_settings({}) if settings is None else settings
    # What stands in the database names no function to be called: one of your own is the one that is set.
    is_installed = name.partition(":")[0] in installed_entry_points("memstore.embedders").names
    try:
        embedder = load_embedder(setting_of(name) if is_installed else settings.embedder, settings)
    except MemstoreError as error:
        raise EmbedderMismatch(f"Vectors were made by {name!r}, and that cannot be had here: {error}") from error
    if embedder is None or (embedder.name, embedder.dimensions) != (name, dimensions):
        raise EmbedderMismatch(
            f"Vectors were made by {name!r} with {dimensions} dimensions; here it is "
            + ("none" if embedder is None else f"{embedder.name!r} with {embedder.dimensions}")
            + ". Install what brings it, name it as MEMSTORE_EMBEDDER, or migrate (memstore embeddings migrate)."
        )
    return embedder


def load_reranker(name: str, settings: Settings | None = None) -> Reranker | None:
    """Return the reranker of this name, such as "cross-encoder:FOLDER", as `load_embedder` does; None for "none"."""
    return None if name == "none" else cast(Reranker, _load("memstore.rerankers", name, settings))


def load_chat_model(name: str, settings: Settings | None = None) -> ChatModel | None:
    """Return the chat model of this name, such as "ollama:qwen3:4b-instruct"; None for "none". Asks no server yet."""
    return None if name == "none" else cast(ChatModel, _load("memstore.chat_models", name, settings))


def _load(group: str, name: str, settings: Settings | None) -> Any:
    """Return a provider; one that is made without the settings, such as a local model, is shared by all who ask."""
    load, model = find_loader(group, name)
    if len(signature(load).parameters) > 1:
        return load(model, load_settings({}) if settings is None else settings)
    with _LOADING:
        provider = _LOADED.get((group, name))
        if provider is None:
            provider = load(model)
            # A class with __slots__ may refuse.
            with suppress(TypeError):
                _LOADED[group, name] = provider
        return provider


def find_loader(group: str, name: str) -> tuple[Callable[..., Any], str]:
    """Return the function that loads a provider, and the model's name for it; raises `ProviderMissing`."""
    kind, _, model = name.partition(":")
    entries = installed_entry_points(group)
    if kind in entries.names:
        return entries[kind].load(), model
    function, _, model = model.partition(":")
    if all(part.isidentifier() for part in (*kind.split("."), function)):
        try:
            load = getattr(import_module(kind), function, None)
        except ModuleNotFoundError as error:
            if not f"{kind}.".startswith(f"{error.name}."):
                # It is a module that it needs.
                raise
        else:
            if not callable(load):
                raise ProviderMissing(f"The module {kind} of {name!r} has no function {function}.")
            return load, model
    raise ProviderMissing(
        f"Nobody knows the provider {name!r}. {group} has {', '.join(f'{each}:…' for each in sorted(entries.names))}; "
        "a function of your own is named module:function."
    )
