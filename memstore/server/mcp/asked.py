"""A call, and whose memory it is about. What it takes to open one is imported by whoever does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp.server import ServerRequestContext

if TYPE_CHECKING:
    from memstore.memory.store import AsyncMemoryStore
    from memstore.memory.user import AsyncUserScope
    from memstore.server.mcp.deriving import Deriving


@dataclass(frozen=True, slots=True)
class Asked:
    """Whose memory a call is about, and what it works with."""

    store: AsyncMemoryStore
    user: AsyncUserScope
    deriving: Deriving

    @property
    def is_believed(self) -> bool:
        """Whether what a model remembers holds before a person has confirmed it."""
        return self.store.settings.mcp_memories == "active"


Call = ServerRequestContext[Any]
Whose = Callable[[Call], Awaitable[Asked]]
