"""Whose words become facts, and whether these hold at once or wait until somebody confirms them. Pure.

A tool's output is never believed alone, whatever is set: it is text of whoever wrote the page, the file or the mail
that the tool has read. Nor is what a person pastes or quotes, or what the application says is untrusted; a message can
only lower the trust of its role, since whoever writes a file that is imported writes its metadata too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memstore.ingest.validation import TRUST, TRUSTED
from memstore.models import Message, Role
from memstore.settings import Settings

LEVELS = {Role.USER: 2, Role.ASSISTANT: 1, Role.TOOL: 0}  # of a source
BY_HAND, UNTRUSTED = 3, 0
# A fence of any length, closed or not; ticks anywhere, tildes where a line begins: elsewhere they are a tone of voice.
_FENCED = re.compile(
    r"(`{3,}+).*?(?:\1|\Z)|^[^\w\n]{0,20}?(~{3,}+).*?(?:^[^\w\n]{0,20}?\2|\Z)", re.DOTALL | re.MULTILINE
)
_QUOTED = re.compile(
    r"(?:^|[\r\v\f\x85\u2028\u2029])(?:[^\S\n]|[\u200b-\u200f\ufeff]){0,20}"
    r"(?:(?:[-*+•]|\d{1,3}[.)])[^\S\n]{1,5})?[>＞][^\n]*",
    re.MULTILINE,
)
_MARKS = ("```", "~~~", ">", "＞")


@dataclass(frozen=True, slots=True)
class TrustPolicy:
    """The roles that facts are taken from, and those of them whose facts hold at once."""

    roles: frozenset[str]
    trusted: frozenset[str]

    @classmethod
    def of(cls, settings: Settings) -> TrustPolicy:
        """Return what the settings say."""
        roles = frozenset(settings.fact_roles)
        return cls(roles, roles & frozenset(settings.trusted_roles))

    def recipe(self, recipe: str) -> str:
        """Return a recipe with the roles that facts are taken from, unless these are users alone, and who waits."""
        if self.roles != {Role.USER}:
            recipe = f"{recipe} from {','.join(sorted(self.roles)) or 'nobody'}"
        if waiting := self.roles - self.trusted:
            recipe = f"{recipe} doubting {','.join(sorted(waiting))}"
        return recipe

    def level(self, message: Message, start: int, stop: int) -> int:
        """Return how far the characters from `start` to `stop` of a message are trusted: 0, 1 or 2."""
        if message.meta.get(TRUST, TRUSTED) != TRUSTED or _not_own(message, start, stop):
            return UNTRUSTED
        return LEVELS[Role(message.role)]

    def is_trusted(self, message: Message, level: int) -> bool:
        """Whether what a message says at this level is a fact at once."""
        return level > UNTRUSTED and message.role in self.trusted


def _not_own(message: Message, start: int, stop: int) -> bool:
    """Whether characters of a message touch what was pasted into it, or quoted line by line."""
    text = message.text or ""
    if not any(mark in text for mark in _MARKS):
        return False
    blocks = [found.span() for pattern in (_FENCED, _QUOTED) for found in pattern.finditer(text)]
    return any(begin < stop and start < end for begin, end in blocks)
