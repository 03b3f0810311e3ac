"""What a user says about one section of a context: how much it may take, and what stands in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from memstore.models.rows import Json

Amount = int | float  # of tokens where it is an int, a share of the room where it is a float: 1 is a token, 1.0 is all


@dataclass(frozen=True, slots=True)
class Section:
    """The limits of a section of a context: "facts", "summaries", "hits" or "recent", or one of your own, with a text.

    `minimum` and `maximum` are tokens (an int) or a share (a float up to 1.0) of the room, which is the budget without
    the reserve, the tools and the system prompt. What fits into the minimum is in, whatever else there is. `weight`
    says which part of the rest the section may count on (built in: hits 0.45, recent 0.3, summaries 0.15, facts 0.1,
    your own 0.25); what one leaves, others use, those of the highest `priority` first.

    `text` makes a section of your own: a text, or several in the order of preference. A `steady` one stands at the
    start, where a model's cache keeps it, and is chosen without a look at the question; others stand just before the
    question. With `cut`, a text or a recent message that is too long is cut at a sentence, with a mark; without, it is
    left out.
    """

    name: str
    text: str | Sequence[str] | None = None
    minimum: Amount = 0
    maximum: Amount | None = None
    weight: float | None = None
    priority: int = 0
    steady: bool = False
    cut: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts in the order of preference; none for a built-in section."""
        return () if self.text is None else (self.text,) if isinstance(self.text, str) else tuple(self.text)

    def as_dict(self) -> Json:
        """Give the section as JSON has it, without what is as it is by default: `maximum` 0 is not None."""
        given = {one.name: getattr(self, one.name) for one in fields(self) if getattr(self, one.name) != one.default}
        if self.text is not None and not isinstance(self.text, str):
            given["text"] = list(self.text)
        return given
