"""The embedding models of a store: one is active, another may replace it; their vectors are never mixed.

The active model (serving) embeds every question and new chunk, whatever the settings say. A migration makes vectors of
another (building), and changes one row when all users have them. Those of the former one (retired) are kept until
cleaned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias
from uuid import UUID

from memstore import ids
from memstore.errors import Conflict, EmbedderMismatch
from memstore.providers import Embedder, EmbedderLoader, setting_of

ModelState: TypeAlias = Literal["serving", "building", "retired"]


class ModelChanged(Exception):
    """Another model is active than the one that made these vectors, which are dropped: embed again."""


@dataclass(frozen=True, slots=True)
class Model:
    """An embedding model of the store."""

    id: UUID
    name: str
    dimensions: int
    state: ModelState = "serving"

    @classmethod
    def of(cls, embedder: Embedder) -> Model:
        return cls(model_id(embedder), embedder.name, embedder.dimensions)


def model_id(embedder: Embedder | None) -> UUID:
    """Return the id of the vectors by an embedder; an id of its own stands for none."""
    return ids.model_id(*(("none", 0) if embedder is None else (embedder.name, embedder.dimensions)))


def id_of(model: Model | None) -> UUID | None:
    return None if model is None else model.id


def active_model(models: Sequence[Model]) -> Model | None:
    """Return the active one; None for a store without vectors."""
    return next((model for model in models if model.state == "serving"), None)


def choose_embedder(models: Sequence[Model], setting: Embedder | None, load: EmbedderLoader) -> Embedder | None:
    """Return the embedder of the active model; that of the settings where none is active, and None where it is None.

    Blocking: it may be loaded. Raises `EmbedderMismatch` where the settings name a model that was never the store's.
    """
    active = active_model(models)
    if active is None or setting is None or active.id == model_id(setting):
        return setting
    if model_id(setting) not in {model.id for model in models}:
        raise EmbedderMismatch(
            f"The vectors of this store are made by {active.name!r}, and the embedder is set to {setting.name!r}; they "
            f"do not mix. Set embedder to {setting_of(active.name)!r} (settings, or MEMSTORE_EMBEDDER), or migrate: "
            f"memstore embeddings migrate --to {setting_of(setting.name)}"
        )
    return load(active.name, active.dimensions)


def ensure_active(models: Sequence[Model], model: UUID) -> None:
    """Raise `ModelChanged` if another model is active than the one of some vectors."""
    active = active_model(models)
    if active is not None and active.id != model:
        raise ModelChanged


def ensure_none_building(models: Sequence[Model], but: UUID | None = None) -> None:
    """Raise `Conflict` if vectors of another model than `but` are in the making."""
    if names := [model.name for model in models if model.state == "building" and model.id != but]:
        raise Conflict(
            f"The vectors by {names[0]!r} are not done: finish that with memstore embeddings migrate --to {names[0]}, "
            "or give it up with a migration to the active embedder."
        )
