"""Documents of an export in: those that are not there, but for what was erased with the user."""

from __future__ import annotations

from datetime import timedelta

from memstore.errors import InvalidInput
from memstore.export import units
from memstore.export.shapes import DocumentLine
from memstore.export.source import Batch
from memstore.ingest.importers import Imported, Skipped
from memstore.ingest.importers.records import ERASED
from memstore.models import Json
from memstore.store import documents, erasures, messages, restores
from memstore.store.database import Database


async def store_documents(database: Database, batch: Batch, done: Imported, dry_run: bool) -> int:
    """Store the documents of a batch that are new; give how many. What is there stays as it is, as it may be newer."""
    first = batch.first
    fresh: list[Json] = []
    vectors: list[Json] = []
    async with database.scope(first.user_id) as scope:
        given = [(one.where, one.line) for one in batch.lines if isinstance(one.line, DocumentLine)]
        there = await documents.documents(scope, [line.id for _, line in given], expired=True)
        known = {documents.id_of(scope.user_id, one.namespace, one.key) for one in there}
        since = await erasures.latest(scope)
        for where, line in given:
            if since is not None and line.updated_at <= since:
                done.left_out[ERASED] += 1
            elif line.id not in known:
                try:
                    vectors += _vectors(line)
                except InvalidInput as error:
                    done.skip(Skipped(where, str(error)))
                    continue
                known.add(line.id)
                fresh.append(_row(line))
        if fresh and not dry_run:
            await messages.make_user(scope, first.user)
            await restores.add_documents(scope, fresh, vectors)
    return len(fresh)


def _row(line: DocumentLine) -> Json:
    ttl = None if line.ttl is None else timedelta(seconds=line.ttl)
    return line.model_dump(exclude={"kind", "user", "vectors", "ttl"}) | {"ttl": ttl}


def _vectors(line: DocumentLine) -> list[Json]:
    return [
        {
            "id": line.id,
            "path": one.path,
            "model_id": one.model_id,
            "embedding": units.read_vector(one.vector, one.path),
            "text": one.text,
        }
        for one in line.vectors
    ]
