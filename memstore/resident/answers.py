"""What the resident encoder answers: vectors, counts of its model's tokens, and whole recalls."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from typing import Any

import memstore
from memstore import MemoryStore
from memstore.errors import ConfigurationError, ProviderMissing
from memstore.local_socket import Message
from memstore.memory.address import embedded_folder, is_embedded
from memstore.plain import plain
from memstore.providers import Embedder, load_embedder
from memstore.resident.stores import OpenStores
from memstore.settings import load
from memstore.store.folders import Place, place_of

TIMES = ("since", "until", "as_of")


class Answers:
    """An embedder, loaded once, and the stores that were asked about it. Safe to share by threads."""

    def __init__(self, embedder: str) -> None:
        self._asked = embedder
        self._stores = OpenStores()
        self._loading = threading.Lock()

    @property
    def embedder(self) -> Embedder:
        """The embedder; raises what loading it raises, again each time."""
        with self._loading:
            return self._loaded

    @cached_property
    def _loaded(self) -> Embedder:
        found = load_embedder(self._asked)
        if found is None:
            raise ProviderMissing("There is no embedder to stay.")
        return found

    @cached_property
    def _model(self) -> Message:
        """What the model is: who asked one process must not get another model's vectors from the next."""
        found = self.embedder
        probe = found.embed_query("The ferry to Ischia leaves at nine.")
        digest = sha256(probe.astype("<f4").tobytes()).hexdigest()
        return {"name": found.name, "dimensions": found.dimensions, "max_tokens": found.max_tokens, "digest": digest}

    def state(self) -> Message:
        """Give what it is and holds, without loading anything."""
        ready = "_loaded" in self.__dict__
        return {"embedder": self._asked, "ready": ready, "stores": len(self._stores)}

    def answer(self, message: Message) -> tuple[Message, bytes]:
        """Answer a question; raises a `MemstoreError` where it cannot be."""
        match message:
            case {"ask": "model", "embedder": self._asked}:
                return self._model, b""
            case {"ask": "embed" | "count" | "tokenizer", "model": model} if model != self._model:
                raise ConfigurationError(f"This is the encoder of {self._model}, and not of {model}.")
            case {"ask": "embed", "query": str(text)}:
                return {}, self.embedder.embed_query(text).astype("<f4").tobytes()
            case {"ask": "embed", "texts": list(texts)}:
                return {}, self.embedder.embed_documents(texts).astype("<f4").tobytes()
            case {"ask": "count", "text": str(text)}:
                return {"count": self.embedder.count(text)}, b""
            case {"ask": "tokenizer"}:
                return {"tokenizer": getattr(self.embedder, "tokenizer", None)}, b""
            case {"ask": "recall", "options": options, "database": database, "user": user, "asked": asked}:
                with self._store(options, database, message.get("folder")) as store:
                    return {"hits": _recalled(store, user, asked)}, b""
        raise ConfigurationError(f"This is the encoder of {self._asked}, which does not know what was asked.")

    def _store(self, options: Mapping[str, Any], database: str, folder: Place) -> AbstractContextManager[MemoryStore]:
        """Give the store of these settings; of an embedded database, it must lie where the one who asks sees it."""
        here = place_of(embedded_folder(database)) if is_embedded(database) else None
        if here != folder:
            raise ConfigurationError(f"{database} is another folder for the resident encoder than for who asks.")
        key = json.dumps([options, database, here], sort_keys=True)
        return self._stores.asked(key, lambda: self._open(options, database))

    def _open(self, options: Mapping[str, Any], database: str) -> MemoryStore:
        settings = load(options)
        if settings.embedder != self._asked:
            raise ConfigurationError(f"This is the encoder of {self._asked}, and not of {settings.embedder}.")
        return memstore.open(database, settings=settings)

    def close(self) -> None:
        """Close the stores."""
        self._stores.close()


def _recalled(store: MemoryStore, user: str, asked: Message) -> Any:
    times = {name: datetime.fromisoformat(asked[name]) for name in TIMES if asked.get(name)}
    return plain(store.user(user).recall(**asked | times))
