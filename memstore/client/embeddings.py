"""The embedders of a store's users: another in the place of one, while recall goes on."""

from __future__ import annotations

from collections.abc import Callable

from memstore._compat import to_thread
from memstore.client.opened import Opened
from memstore.derive.resources import Resources
from memstore.errors import InvalidInput
from memstore.ingest.check import check_name
from memstore.models import EmbeddingStatus, Moved
from memstore.providers import Embedder, load_embedder, load_exactly, vectors_name

Told = Callable[[int, int], None]


class AsyncEmbeddings:
    """What an operator does to have users found by another embedder. Any of it may be killed, and done again.

    `progress(done, total)` is called with units, from whatever thread this runs in. While another process is at it, all
    but `status` raise `Conflict`.
    """

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._database = opened.database

    async def migrate(self, to: str, *, progress: Told | None = None) -> Moved:
        """Have every user found by the embedder `to`, such as "sentence-transformers:FOLDER", in place of the present.

        Its vectors are made beside the old ones, which serve until a user has all of them: then, in one transaction,
        the new ones do. Every process goes on as it was opened; the setting `embedder` says what new users get. Raises
        `ProviderMissing` and the like where the embedder cannot be had, before anything is done.
        """
        from memstore.derive.embedding_migration import migrate

        check_name(to, "to")
        target = await to_thread(_loaded, to)
        return await migrate(self._database, self._resources(target), target, progress or _quiet)

    async def status(self) -> list[EmbeddingStatus]:
        """Give which embedders serve, are being made or are retired, for how many users, and what is missing."""
        from memstore.derive.embedding_migration import status

        return await status(self._database)

    async def rollback(self, leaving: str | None = None, *, progress: Told | None = None) -> Moved:
        """Have users found by the embedder again that served before the last migration, or before that to `leaving`.

        What came since gets its vectors first. A migration that is not done is given up; what it has made is kept until
        `clean`. Where nobody can go back, as all have or the old vectors were removed, its `users` are 0. Raises
        `InvalidInput` where users were moved to several, and `leaving` does not say from which to go.
        """
        from memstore.derive.embedding_migration import rollback

        named = None if leaving is None else vectors_name(leaving)
        return await rollback(self._database, self._resources(None), named, progress or _quiet)

    async def clean(self) -> Moved:
        """Remove the vectors of embedders that serve no more: there is no way back then.

        Raises `Conflict` while a migration is not done.
        """
        from memstore.derive.embedding_migration import clean

        return await clean(self._database)

    def _resources(self, target: Embedder | None) -> Resources:
        """Give what vectors are made with: the store's own embedder need not be loaded for it, nor a chat model."""
        return Resources(self._opened.counter, target, self._opened.settings, exactly=self._opened.exactly)


def _loaded(name: str) -> Embedder:
    """Give an embedder that other processes will find by the name that is kept with its vectors."""
    found = load_embedder(name)
    if found is None:
        raise InvalidInput('"none" makes no vectors: name the embedder that is to serve, as kind:model.')
    return found if name == found.name else load_exactly(found.name, found.dimensions)


def _quiet(done: int, total: int) -> None:
    """Report nothing."""
