"""What viewers see of conversations, remembered in the process: messages never change, and the rule is a pure function.

Kept for memstore's own rule alone: one of a user's may look at more than the message, whatever it promises.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime
from threading import Lock
from uuid import UUID

from memstore.assemble.visibility import Rule, Rules

MOST = 1_000_000  # verdicts, some 100 bytes each
CONVERSATIONS = 256

Key = tuple[UUID, UUID, datetime, str, Rules]
Known = dict[int, bool]  # whether a message is seen, by its number


class Verdicts:
    """Verdicts by user, conversation, viewer and rule: those asked for last are kept. Safe to share by threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[Key, Known] = OrderedDict()

    def of(self, user: UUID, conversation: UUID, created_at: datetime, viewer: str | None, rule: Rule) -> Known:
        """Give what is known, to be added to.

        A conversation that was deleted and made again has another `created_at`.
        """
        if viewer is None or not isinstance(rule, Rules):
            return {}
        with self._lock:
            key = (user, conversation, created_at, viewer, rule)
            found = self._kept.setdefault(key, {})
            self._kept.move_to_end(key)
            while len(self._kept) > 1 and (len(self._kept) > CONVERSATIONS or self._size() > MOST):
                self._kept.popitem(last=False)
            return found

    def _size(self) -> int:
        return sum(map(len, self._kept.values()))


VERDICTS = Verdicts()
