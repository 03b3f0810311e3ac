"""What is borrowed: embedding models, token counters, rerankers and chat models.

`base` has their Protocols, which a provider of your own follows, and what loads one by its name, "kind:model". The
other modules are the built-in providers, one a library or service, and what they share: `services` (asking a server
again, reading a model's answer), `counters` (messages as the texts that are counted), `batching`.
"""

from memstore.providers.base import (
    MINILM,
    ChatMessage,
    ChatModel,
    Completion,
    Count,
    CountKind,
    Embedder,
    EmbedderLoader,
    Reranker,
    Scores,
    T,
    TokenCounter,
    Vectors,
    load_chat_model,
    load_counter,
    load_embedder,
    load_reranker,
    load_stored_embedder,
    setting_of,
    vectors_name,
)

__all__ = [
    "MINILM",
    "ChatMessage",
    "ChatModel",
    "Completion",
    "Count",
    "CountKind",
    "Embedder",
    "EmbedderLoader",
    "Reranker",
    "Scores",
    "T",
    "TokenCounter",
    "Vectors",
    "load_chat_model",
    "load_counter",
    "load_embedder",
    "load_reranker",
    "load_stored_embedder",
    "setting_of",
    "vectors_name",
]
