"""What an open store holds and its scopes work with: the database, the settings, the providers."""

from __future__ import annotations

from functools import cached_property
from threading import Lock

from memstore.ingest.resources import Resources
from memstore.providers import ChatModel, Embedder, TokenCounter, load_chat_model, load_counter, load_embedder
from memstore.settings import Settings
from memstore.store.database import Database
from memstore.waiting import in_thread

LOADING = Lock()  # several first questions at once must not load the encoder several times


class Opened:
    """An open database and the providers that the settings name, each loaded when it is first needed."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self.database = database
        self.settings = settings

    @cached_property
    def counter(self) -> TokenCounter:
        """The token counter."""
        return load_counter(self.settings.counter, self.settings)

    @cached_property
    def embedder(self) -> Embedder | None:
        """The embedder: torch takes seconds."""
        with LOADING:
            return self.__dict__.get("embedder") or load_embedder(self.settings.embedder)

    @cached_property
    def chat_models(self) -> tuple[ChatModel | None, ChatModel | None]:
        """The chat models that write summaries and find facts; None where rules do."""
        summaries, facts = (
            load_chat_model(name, self.settings) for name in (self.settings.summary_model, self.settings.facts_model)
        )
        return summaries, facts

    async def encoder(self) -> Embedder | None:
        """Give the embedder, loaded in a thread: the event loop does not wait for torch."""
        return await in_thread(lambda: self.embedder)

    async def resources(self) -> Resources:
        """Give what derivers work with."""
        return Resources(self.counter, await self.encoder(), self.settings, *self.chat_models)
