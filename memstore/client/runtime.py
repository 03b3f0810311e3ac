"""What an open store works with: the database, the settings, and the providers, each loaded when first needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from memstore._compat import to_thread
from memstore.context.visibility import rule_of
from memstore.derive.dependencies import Dependencies
from memstore.errors import ConfigurationError, MemstoreError
from memstore.ingest.redaction import Redactor, redactor_for
from memstore.ingest.validation import OWN_SETTINGS
from memstore.plugins import installed_entry_points
from memstore.providers import (
    ChatModel,
    Embedder,
    Reranker,
    TokenCounter,
    find_loader,
    load_chat_model,
    load_counter,
    load_embedder,
    load_reranker,
    load_stored_embedder,
)
from memstore.providers.tiktoken import counter_for
from memstore.settings import Settings, source_of
from memstore.store.database import Database
from memstore.store.embedding_models import ModelChanged, load_active_embedder
from memstore.strategies import as_json


class Runtime:
    """The database, the settings and the providers of an open store. A `reranker` overrides the settings' own."""

    def __init__(self, database: Database, settings: Settings, reranker: Reranker | None) -> None:
        self.database = database
        self.settings = settings
        self._counters: dict[str, TokenCounter] = {}
        self._embedders: dict[tuple[str, int], Embedder] = {}
        # The active one, in a tuple, once it is known.
        self._active: tuple[Embedder | None] | None = None
        self._reranker = reranker

    @cached_property
    def counter(self) -> TokenCounter:
        """The settings' token counter."""
        return load_counter(self.settings.counter, self.settings)

    async def load_counter(self, model: str | None) -> TokenCounter:
        """Return the counter that knows a model's tokens best; the settings' own for None."""
        name = self.counter.name if model is None else counter_for(model)
        if name == self.counter.name:
            return self.counter
        if name not in self._counters:
            self._counters[name] = await to_thread(load_counter, name, self.settings)
        return self._counters[name]

    @cached_property
    def redactor(self) -> Redactor:
        """The redactor that masks secrets before anything is stored."""
        return redactor_for(self.settings)

    @cached_property
    def embedder(self) -> Embedder | None:
        """The settings' embedder. Blocking, and half a second or more the first time."""
        return load_embedder(self.settings.embedder, self.settings)

    async def load_embedder(self) -> Embedder | None:
        """Return the settings' embedder, loaded in a thread the first time."""
        return self.embedder if "embedder" in self.__dict__ else await to_thread(lambda: self.embedder)

    async def load_active_embedder(self) -> Embedder | None:
        """Return the store's active embedder; the settings' where none is active, None where that is none.

        Raises `EmbedderMismatch` if the settings name one that was never the store's, or it cannot be had.
        """
        if self._active is None:
            setting = await self.load_embedder()
            self._active = (await load_active_embedder(self.database, setting, self.load_embedder_by_name),)
        return self._active[0]

    async def run_with_embedder(self, task: Callable[[Embedder | None], Any]) -> Any:
        """Return the result of a task that is given the active embedder; it is repeated if another becomes active."""
        while True:
            embedder = await self.load_active_embedder()
            try:
                return await task(embedder)
            except ModelChanged:
                self._active = None

    async def run_with_dependencies(self, task: Callable[[Dependencies], Any]) -> Any:
        """Do so for a task that is given the dependencies of derivers."""
        dependencies = await self.load_dependencies()
        return await self.run_with_embedder(lambda embedder: task(replace(dependencies, embedder=embedder)))

    def load_embedder_by_name(self, name: str, dimensions: int) -> Embedder:
        """Return the embedder of this name and size, loaded once. Blocking, and seconds the first time.

        Raises `EmbedderMismatch` if it cannot be had.
        """
        embedder, key = self.embedder, (name, dimensions)
        if embedder is not None and (embedder.name, embedder.dimensions) == key:
            return embedder
        if key not in self._embedders:
            self._embedders[key] = load_stored_embedder(name, dimensions, self.settings)
        return self._embedders[key]

    @cached_property
    def chat_models(self) -> tuple[ChatModel | None, ChatModel | None]:
        """The chat models for summaries and for facts; None where none is asked."""
        settings = self.settings
        return load_chat_model(settings.summary_model, settings), load_chat_model(settings.facts_model, settings)

    async def load_reranker(self) -> Reranker | None:
        """Return the reranker, loaded in a thread the first time; None if none is set."""
        if self._reranker is None and self.settings.reranker != "none":
            self._reranker = await to_thread(load_reranker, self.settings.reranker, self.settings)
        return self._reranker

    async def load_dependencies(self) -> Dependencies:
        """Return the dependencies of derivers, with the embedder loaded."""
        embedder = await self.load_embedder()
        return Dependencies(
            self.counter, embedder, self.settings, *self.chat_models, load_by_name=self.load_embedder_by_name
        )


def _check_provider(group: str, name: str) -> None:
    if name.partition(":")[0] not in installed_entry_points(group).names and (
        name != "none" or group == "memstore.counters"
    ):
        find_loader(group, name)


CHECKS: dict[str, Callable[[Any], object]] = {
    "counter": partial(_check_provider, "memstore.counters"),
    "embedder": partial(_check_provider, "memstore.embedders"),
    "summary_model": partial(_check_provider, "memstore.chat_models"),
    "facts_model": partial(_check_provider, "memstore.chat_models"),
    "reranker": partial(_check_provider, "memstore.rerankers"),
    **{name: check for name, check in OWN_SETTINGS.items() if name.startswith("fact_")},
    "strategy": lambda names: as_json(list(names)),
    "visibility": rule_of,
}


def validate_settings(settings: Settings) -> None:
    """Raise an error that says where a setting stands if it names an unknown provider, strategy or visibility rule.

    Nothing is loaded, and no server is asked.
    """
    for name, check in CHECKS.items():
        value = getattr(settings, name)
        try:
            check(value)
        except MemstoreError as error:
            raise type(error)(f"{source_of(name, value)}: {error}") from None
    budget, reserve = settings.context_budget, settings.context_reserve
    if budget is not None and reserve >= budget:
        raise ConfigurationError(
            f"context_reserve={reserve} leaves nothing of context_budget={budget}: give a smaller reserve."
        )
