"""All configuration, and the only reader of the environment.

Every option is a `MEMSTORE_…` variable of the same name, and a keyword of `memstore.open(settings=Settings(…))`.
"""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """What a store may be told. An option given here wins over the environment, and that over the default."""

    model_config = SettingsConfigDict(env_prefix="MEMSTORE_", frozen=True, extra="forbid")

    database_url: str = Field(
        "embedded",
        description="embedded, embedded:FOLDER, or postgresql://… (any Postgres ≥ 15 with pgvector ≥ 0.8)",
    )
    counter: str = Field("tiktoken:o200k_base", description="the token counter, as kind:model")
    embedder: str = Field(
        "sentence-transformers:all-MiniLM-L6-v2",
        description='the embedder, as kind:model; "none" recalls by words alone',
    )
    pool_size: int = Field(8, ge=1, le=1000, description="connections that one store may hold")
    max_message_bytes: int = Field(4_000_000, ge=1, description="the largest content of a message, in bytes of UTF-8")
    unit_tokens: int = Field(200, ge=16, le=2000, description="longest unit of recall, in the embedder's tokens")
    stretch_tokens: int = Field(
        1200, ge=50, description="a stretch to be summarized has at most about this many tokens"
    )
    stretch_gap_hours: float = Field(4.0, gt=0, description="a silence of this many hours ends a stretch")
    summary_tokens: int = Field(160, ge=10, description="a summary has at most this many tokens")
