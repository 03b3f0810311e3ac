"""mem0 without a model (`infer=False`): each chunk is a memory of its user, stored verbatim.

    qdrant     the local qdrant that is its default
    pgvector   Postgres, with the HNSW index that is its default there

Without its extra for language (spaCy and a model from the network) it finds no entities. Its threshold is 0, so that it
gives as many as are asked for.
"""

from __future__ import annotations

import os
import sys

os.environ |= {"MEM0_TELEMETRY": "False", "OPENAI_API_KEY": "none"}  # read when it is imported; nobody is called
os.environ.setdefault("MEM0_DIR", os.environ["MEMSTORE_BENCHMARK_FOLDER"])

from known import DATABASE, FOLDER, Known
from lines import Json
from mem0 import Memory as Mem0
from mem0.embeddings.base import EmbeddingBase
from memories import serve_memory


class Looked(EmbeddingBase):
    """Vectors that are known, as mem0 asks for them."""

    def __init__(self, known: Known) -> None:
        super().__init__()
        self.known = known

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self.known.one(text)


def vector_store(kind: str, dimensions: int) -> Json:
    where = (
        {"connection_string": os.environ[DATABASE]} if kind == "pgvector" else {"path": f"{os.environ[FOLDER]}/qdrant"}
    )
    return {"provider": kind, "config": {"collection_name": "memories", "embedding_model_dims": dimensions} | where}


class Memory:
    def __init__(self) -> None:
        known = Known()
        history = f"{os.environ[FOLDER]}/history.db"
        stored = vector_store(sys.argv[1], known.dimensions)
        self.memory = Mem0.from_config({"vector_store": stored, "history_db_path": history})
        self.memory.embedding_model = Looked(known)

    def add(self, user: str, chunks: list[Json]) -> None:
        for one in chunks:
            message = {"role": "user" if one["role"] == "user" else "assistant", "content": one["said"]}
            self.memory.add([message], user_id=user, infer=False, metadata={"row": one["row"]})

    def search(self, user: str, question: str, limit: int) -> list[int]:
        found = self.memory.search(question, top_k=limit, filters={"user_id": user}, threshold=0.0)
        return [one["metadata"]["row"] for one in found["results"]]


if __name__ == "__main__":
    serve_memory(["mem0ai", "qdrant-client"], Memory())
