"""Persistent, hierarchical memory for LLM assistants, in Postgres.

    with memstore.open() as store:
        trip = store.user("alice").conversation("lisbon")
        trip.add("user", "I'm allergic to peanuts.")
        store.derive()
        print(trip.context("What should I avoid eating?", budget=2000).messages)

Names are imported when they are first used, so that `import memstore` costs nothing heavy.
"""

# ruff: noqa: F405  (of errors, all are public)

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from memstore import errors
from memstore._version import __version__ as __version__

if TYPE_CHECKING:
    from memstore._sync.client.conversation import ConversationScope
    from memstore._sync.client.space import SpaceScope
    from memstore._sync.client.store import MemoryStore, open
    from memstore._sync.client.user import UserScope
    from memstore.client.conversation import AsyncConversationScope
    from memstore.client.space import AsyncSpaceScope
    from memstore.client.store import AsyncMemoryStore, open_async
    from memstore.client.user import AsyncUserScope
    from memstore.errors import *  # noqa: F403
    from memstore.models import (
        Certificate,
        Context,
        Conversation,
        DeriveReport,
        Entity,
        Fact,
        FactChange,
        Grant,
        Hit,
        InvalidResponse,
        Message,
        Profile,
        Receipt,
        Role,
        Section,
        Summary,
        Tier,
    )
    from memstore.providers.tiktoken import estimate
    from memstore.settings import Settings

_HOMES = {
    "AsyncConversationScope": "memstore.client.conversation",
    "AsyncMemoryStore": "memstore.client.store",
    "AsyncSpaceScope": "memstore.client.space",
    "AsyncUserScope": "memstore.client.user",
    "ConversationScope": "memstore._sync.client.conversation",
    "MemoryStore": "memstore._sync.client.store",
    "Settings": "memstore.settings",
    "SpaceScope": "memstore._sync.client.space",
    "UserScope": "memstore._sync.client.user",
    "estimate": "memstore.providers.tiktoken",
    "open": "memstore._sync.client.store",
    "open_async": "memstore.client.store",
}

__all__ = [
    "AsyncConversationScope",
    "AsyncMemoryStore",
    "AsyncSpaceScope",
    "AsyncUserScope",
    "BudgetTooSmall",
    "Certificate",
    "ConfigurationError",
    "Conflict",
    "Context",
    "Conversation",
    "ConversationScope",
    "DatabaseError",
    "DatabaseUnreachable",
    "DeriveReport",
    "EmbeddedError",
    "EmbedderMismatch",
    "Entity",
    "Erased",
    "ExtensionMissing",
    "Fact",
    "FactChange",
    "Forbidden",
    "Grant",
    "Hit",
    "InvalidInput",
    "InvalidResponse",
    "MemoryStore",
    "MemstoreError",
    "Message",
    "ModelAnswerInvalid",
    "ModelUnavailable",
    "NotFound",
    "Profile",
    "PromptTooLong",
    "ProviderError",
    "ProviderMissing",
    "Receipt",
    "Role",
    "SchemaOutdated",
    "SchemaTooNew",
    "Section",
    "Settings",
    "SpaceScope",
    "Summary",
    "Tier",
    "UserScope",
    "estimate",
    "open",
    "open_async",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'memstore' has no attribute {name!r}")
    home = _HOMES.get(name) or ("memstore.errors" if hasattr(errors, name) else "memstore.models")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
