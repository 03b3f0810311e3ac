"""How a deriver makes its rows: the one it was built with, by rules or by asking a chat model."""

from __future__ import annotations

from typing import Protocol


class Method(Protocol):
    """A way to make rows of messages, which says how much it takes at once and what its rows are kept under."""

    @property
    def batch(self) -> int:
        """How many messages are thought about at once."""

    @property
    def asks(self) -> bool:
        """Whether a chat model is asked: one conversation at a time, so that what was paid for is soon written."""

    @property
    def recipe(self) -> str:
        """How it makes them: what was made by another recipe may be made anew. May raise `ModelUnavailable`."""
