"""All configuration, and the only reader of the environment.

Every option is a `MEMSTORE_…` variable of the same name, and a keyword of `memstore.open(settings=Settings(…))`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AnyHttpUrl, BeforeValidator, Field, TypeAdapter, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from memstore.errors import ConfigurationError


def _http_url(value: str) -> str:
    TypeAdapter(AnyHttpUrl).validate_python(value)
    return value


def _listed(value: object) -> object:
    return tuple(filter(None, value.replace(" ", "").split(","))) if isinstance(value, str) else value


Speakers = Annotated[tuple[Literal["user", "assistant", "tool"], ...], NoDecode, BeforeValidator(_listed)]


class Settings(BaseSettings):
    """What a store may be told. An option given here wins over the environment, and that over the default."""

    model_config = SettingsConfigDict(env_prefix="MEMSTORE_", frozen=True, extra="forbid")

    database_url: str = Field(
        default="embedded",
        description="embedded, embedded:FOLDER, or postgresql://… (any Postgres ≥ 15 with pgvector ≥ 0.8)",
    )
    counter: str = Field(default="tiktoken:o200k_base", description="the token counter, as kind:model")
    embedder: str = Field(
        default="sentence-transformers:all-MiniLM-L6-v2",
        description='the embedder, as kind:model; "none" recalls by words alone',
    )
    pool_size: int = Field(default=8, ge=1, le=1000, description="connections that one store may hold")
    max_message_bytes: int = Field(default=4_000_000, ge=1, description="the largest message, in bytes of UTF-8")
    unit_tokens: int = Field(
        default=200, ge=16, le=2000, description="the longest unit of recall, in the embedder's tokens"
    )
    stretch_tokens: int = Field(
        default=1200, ge=50, description="a stretch to be summarized has at most about this many tokens"
    )
    stretch_gap_hours: float = Field(
        default=4.0, gt=0, le=100_000, description="a silence of this many hours ends a stretch"
    )
    outbox_days: float = Field(
        default=30.0, ge=0, le=100_000, description="events are kept for this many days; 0 keeps none"
    )
    receipts_days: float = Field(
        default=30.0, ge=0, le=100_000, description="receipts of contexts are kept for this many days; 0 keeps none"
    )
    summary_tokens: int = Field(default=160, ge=10, description="a summary has at most this many tokens")
    summary_model: str = Field(
        default="none", description='the chat model that writes summaries, as kind:model; "none" chooses sentences'
    )
    facts_model: str = Field(
        default="none", description='the chat model that finds facts, as kind:model; "none" leaves them to the rules'
    )
    llm_daily_tokens: int | None = Field(
        default=None, ge=1, description="tokens that chat models may take and give in a day (UTC), all users together"
    )
    ollama_url: Annotated[str, AfterValidator(_http_url)] = Field(
        default="http://127.0.0.1:11434", description="where Ollama answers; OLLAMA_HOST is not read"
    )
    ollama_num_ctx: int = Field(
        default=8192,
        ge=2048,
        le=2_000_000,
        description="the window that Ollama is asked for, in tokens, answer included",
    )
    ollama_timeout_seconds: float = Field(
        default=300.0, gt=0, le=86_400, description="the longest wait for one answer of Ollama, retries included"
    )
    facts_from: Speakers = Field(
        default=("user",), description="whose messages facts are taken from: of user, assistant, tool, with commas"
    )


def load(given: Mapping[str, Any]) -> Settings:
    """Give the settings, with these options of them; raise `ConfigurationError` that names what cannot be."""
    _check_environment()
    try:
        return Settings(**given)
    except ValidationError as error:
        wrong = [(str(one["loc"][0]), repr(one["input"])[:60], one["msg"]) for one in error.errors()]
    raise ConfigurationError(
        "; ".join(
            f"{name if name in given else f'MEMSTORE_{name.upper()}'}={value}: {why}" for name, value, why in wrong
        )
    )


def _check_environment() -> None:
    """Refuse a variable that is none of ours: a misspelt URL would silently open another database."""
    known = [name.upper() for name in Settings.model_fields]
    for name in os.environ:
        prefix, _, option = name.upper().partition("_")
        if prefix == "MEMSTORE" and option not in known:
            near = get_close_matches(option, known, n=1)
            meant = f"Did you mean MEMSTORE_{near[0]}?" if near else f"There are MEMSTORE_{', MEMSTORE_'.join(known)}."
            raise ConfigurationError(f"The environment has {name}, which is no option of memstore. {meant}")
