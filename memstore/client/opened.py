"""What an open store holds and its scopes work with: the database, the settings, the providers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from threading import Lock
from typing import Any

from memstore._compat import to_thread
from memstore.context.strategies.registry import as_json
from memstore.context.visibility import rule_of
from memstore.derive.resources import Resources
from memstore.errors import ConfigurationError, MemstoreError, ProviderMissing
from memstore.ingest.redaction import Redactor, redactor_for
from memstore.plugins import installed_entry_points
from memstore.providers import (
    ChatModel,
    Embedder,
    Reranker,
    TokenCounter,
    load_chat_model,
    load_counter,
    load_embedder,
    load_exactly,
    load_reranker,
)
from memstore.providers.naming import counter_for
from memstore.settings import Settings, place
from memstore.store.database import Database

NONE = "none"
MOST_COUNTERS = 16  # beside the settings' own: each may have counts of 9 MB, and callers name models as they like
NAMED = {
    "counter": "memstore.counters",
    "embedder": "memstore.embedders",
    "summary_model": "memstore.chat_models",
    "facts_model": "memstore.chat_models",
    "reranker": "memstore.rerankers",
}
CHECKED: Mapping[str, Callable[[Any], object]] = {
    "strategies": lambda value: as_json(list(value)),
    "visibility": rule_of,
}
LOADING = Lock()  # several first questions at once must not load a model several times


class Opened:
    """An open database and the providers that the settings name, each loaded when it is first needed.

    A reranker that is given stands in place of the settings'.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings,
        reranker: Reranker | None = None,
    ) -> None:
        self.database = database
        self.settings = settings
        self._counters: dict[str, TokenCounter] = {}
        self._embedders: dict[tuple[str, int], Embedder] = {}
        self._reranker = reranker

    @cached_property
    def counter(self) -> TokenCounter:
        """The token counter."""
        return load_counter(self.settings.counter, self.settings)

    @cached_property
    def redactor(self) -> Redactor:
        """What marks secrets in all that is stored."""
        return redactor_for(self.settings)

    def taking(self, **names: str | None) -> Redactor:
        """Return what redacts what is stored under these names. Raises `InvalidInput` where one holds a secret."""
        self.redactor.reject_secret_names(**names)
        return self.redactor

    async def counter_of(self, model: str | None) -> TokenCounter:
        """Give the counter that knows a model's tokens best, each loaded once while it is asked for.

        That of the settings for None.
        """
        name = self.counter.name if model is None else counter_for(model)
        if name == self.counter.name:
            return self.counter
        found = self._counters.get(name)
        if found is None:
            found = self._counters.setdefault(name, await to_thread(load_counter, name, self.settings))
        self._counters.pop(name, None)
        self._counters[name] = found
        for oldest in list(self._counters)[:-MOST_COUNTERS]:
            self._counters.pop(oldest, None)
        return found

    @cached_property
    def embedder(self) -> Embedder | None:
        """The embedder, loaded when it is first needed."""
        with LOADING:
            return self.__dict__.get("embedder") or load_embedder(self.settings.embedder)

    def exactly(self, name: str, dimensions: int) -> Embedder:
        """Give the embedder of this name that serves a user, loaded once: the settings' own where it is that.

        Blocking, and seconds the first time. Raises `EmbedderMismatch` where it cannot be had.
        """
        own = self.embedder
        if own is not None and (own.name, own.dimensions) == (name, dimensions):
            return own
        found = self._embedders.get((name, dimensions))
        if found is None:
            with LOADING:
                found = self._embedders.get((name, dimensions)) or load_exactly(name, dimensions)
                self._embedders[name, dimensions] = found
        return found

    @cached_property
    def chat_models(self) -> tuple[ChatModel | None, ChatModel | None]:
        """The chat models that write summaries and find facts; None where rules do."""
        summaries, facts = (
            load_chat_model(name, self.settings) for name in (self.settings.summary_model, self.settings.facts_model)
        )
        return summaries, facts

    async def reranker(self) -> Reranker | None:
        """Return what reads the best hits once more, loaded in a thread; None where nothing is set."""
        if self._reranker is None and self.settings.reranker != NONE:
            self._reranker = await to_thread(self._loaded_reranker)
        return self._reranker

    def _loaded_reranker(self) -> Reranker | None:
        with LOADING:  # a cross-encoder takes seconds to load
            return self._reranker or load_reranker(self.settings.reranker)

    async def encoder(self) -> Embedder | None:
        """Return the embedder, loaded in a thread: the event loop does not wait for it."""
        return await to_thread(lambda: self.embedder)

    async def resources(self) -> Resources:
        """Give what derivers work with."""
        return Resources(self.counter, await self.encoder(), self.settings, *self.chat_models, exactly=self.exactly)


def check_usable(settings: Settings) -> None:
    """Refuse names that nobody knows before anything is opened: of providers, strategies and the rule of visibility.

    Nothing is loaded, and no server is asked. Raises `ProviderMissing`, `InvalidInput` or `ConfigurationError`, which
    say where the value stands.
    """
    for name in (*NAMED, *CHECKED):
        value = getattr(settings, name)
        try:
            check_option(name, value)
        except MemstoreError as error:
            raise type(error)(f"{place(name, value)}: {error}") from None
    budget, reserve = settings.context_budget, settings.context_reserve
    if budget is not None and reserve >= budget:
        raise ConfigurationError(
            f"context_reserve={reserve} leaves nothing of context_budget={budget}: give a smaller reserve."
        )


def check_option(name: str, value: Any) -> None:
    """Refuse a value of an option that names what nobody knows: a provider, a strategy, a rule of visibility."""
    if name in NAMED:
        kinds = installed_entry_points(NAMED[name]).names
        if value.partition(":")[0] not in kinds and (value != NONE or name == "counter"):
            known = [f"{kind}:…" for kind in sorted(kinds)] + ([] if name == "counter" else [NONE])
            raise ProviderMissing(
                f"nobody knows this provider. Known are {', '.join(known)}; or install the package that brings it."
            )
    elif name in CHECKED:
        CHECKED[name](value)
