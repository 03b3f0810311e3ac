"""LangChain's PGVector: one collection, each chunk a document with its user in the metadata, filtered by it."""

from __future__ import annotations

import os

from known import DATABASE, Known
from langchain_core.embeddings import Embeddings
from langchain_postgres import PGVector
from lines import Json
from memories import serve_memory


class Looked(Embeddings):
    """Vectors that are known, as LangChain asks for them."""

    def __init__(self) -> None:
        self.known = Known()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.known.many(texts)

    def embed_query(self, text: str) -> list[float]:
        return self.known.one(text)


class Memory:
    def __init__(self) -> None:
        embeddings = Looked()
        self.store = PGVector(
            embeddings,
            connection=os.environ[DATABASE].replace("postgresql:", "postgresql+psycopg:"),
            collection_name="memories",
            embedding_length=embeddings.known.dimensions,
            use_jsonb=True,
        )

    def add(self, user: str, chunks: list[Json]) -> None:
        meta = [{"user": user, "row": one["row"]} for one in chunks]
        self.store.add_texts([one["said"] for one in chunks], meta, ids=[f"{user} {one['row']}" for one in chunks])

    def search(self, user: str, question: str, limit: int) -> list[int]:
        found = self.store.similarity_search(question, k=limit, filter={"user": user})
        return [one.metadata["row"] for one in found]


if __name__ == "__main__":
    serve_memory(["langchain-postgres", "langchain-core"], Memory())
