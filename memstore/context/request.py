"""What is asked of an assembly, and what the conversation's own settings and the system's make of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from memstore.context import sections as own
from memstore.context.defaults import (
    BUDGET,
    LARGEST_BUDGET,
    RESERVE,
    SECTIONS,
    STRATEGIES,
    VIEWER,
    VISIBILITY,
    effective,
)
from memstore.context.formats import OPENAI, Format
from memstore.context.sight import Sight
from memstore.context.strategies.registry import read_back
from memstore.context.strategies.view import Strategy
from memstore.context.visibility import Rule
from memstore.errors import InvalidInput
from memstore.ingest.redaction import Redactor
from memstore.ingest.validation import check_text
from memstore.models import Json, Section
from memstore.settings import Settings
from memstore.store import erasure, messages
from memstore.store.database import Transaction
from memstore.store.erasure import UserVersion
from memstore.tool_calls import name_of


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for: a context for this conversation, within `budget` tokens less `reserve`.

    What is None is as the conversation's settings have it, else the system's: `defaults`. `sections` stand in place of
    those kept with the conversation that have the same names; `tools` are definitions that are sent beside the context.
    """

    user_id: UUID
    conversation_id: UUID
    query: str | None
    defaults: Settings = field(kw_only=True)
    budget: int | None = None
    system: str | None = None
    reserve: int | None = None
    as_of: datetime | None = None
    strategies: Sequence[Strategy] | None = None
    sections: Sequence[Section] = ()
    viewer: str | None = None
    visibility: Rule | str | None = None
    format: Format = OPENAI
    tools: Sequence[Json] = ()
    keep: bool = True  # the receipt
    # How many secrets of which kind were masked in what is asked.
    found: Mapping[str, int] = field(default_factory=dict)

    def redacted(self, redactor: Redactor) -> Request:
        """Give the request with the secrets of its texts marked: in what is sent, counted and kept alike.

        So a receipt has what was sent, and a replay gives the same bytes. Raises `InvalidInput` where a tool or a
        section is named by one.
        """
        if not redactor.detectors:
            return self
        redactor.reject_secret_names(**{f"tool_{number}": name_of(one) for number, one in enumerate(self.tools)})
        redactor.reject_secret_names(**{f"section_{number}": one.name for number, one in enumerate(self.sections)})
        counts: Counter[str] = Counter()
        return replace(
            self,
            query=redactor.redact(self.query, counts),
            system=redactor.redact(self.system, counts),
            viewer=redactor.redact(self.viewer, counts),
            sections=[replace(one, text=redactor.redact_json(one.text, counts)) for one in self.sections],
            found=dict(sorted(counts.items())),
        )

    def masks(self) -> str | None:
        """Say how many secrets were masked; None where none were."""
        told = ", ".join(f"{count} {kind}" for kind, count in self.found.items())
        return f"secrets in what was asked were masked before it was sent: {told}" if told else None

    def check_texts(self) -> None:
        """Refuse texts that nobody could store or send."""
        for name, text in (("the query", self.query), ("the system prompt", self.system)):
            if text is not None:
                check_text(text, name)
        if self.query is not None and not self.query.strip():
            raise InvalidInput(
                f"query={self.query!r:.60} asks for nothing; give a question, or None for the newest user message."
            )


@dataclass(frozen=True, slots=True)
class Assembly:
    """A request with nothing left open: for the stretch after the message `after`, for what the viewer sees of it."""

    request: Request
    budget: int
    reserve: int
    strategies: Sequence[Strategy]
    sections: Sequence[Section]
    sight: Sight
    after: int
    last: int  # the number of the newest message
    exists: bool  # the conversation
    epoch: UserVersion | None  # in which it was read: a receipt of what was erased since is not kept
    hints: Sequence[str] = ()  # for the receipt: what is kept with the conversation and not known here

    @property
    def rule(self) -> str:
        """The name of the rule of visibility."""
        rule = self.request.visibility
        return rule if isinstance(rule, str) else getattr(rule, "__name__", type(rule).__name__)


async def ahead(scope: Transaction, request: Request) -> None:
    """Read what `settled` does."""
    await erasure.user_version(scope)
    await messages.conversation(scope, request.conversation_id)


async def settled(scope: Transaction, request: Request) -> Assembly:
    """Settle what a request leaves open by the settings of its conversation; raise `InvalidInput` for nonsense."""
    epoch = await erasure.user_version(scope)
    conversation = await messages.conversation(scope, request.conversation_id)
    if request.as_of is None:
        kept = conversation.settings if conversation else {}
    else:
        kept = await messages.settings_of(scope, request.conversation_id, as_of=request.as_of)
    settings = effective(kept, request.defaults)
    left_open = {"budget": BUDGET, "reserve": RESERVE, "viewer": VIEWER, "visibility": VISIBILITY}
    request = replace(
        request, **{name: settings[key] for name, key in left_open.items() if getattr(request, name) is None}
    )
    budget, reserve = _checked(request)
    chosen, _, unknown = read_back(settings[STRATEGIES])
    return Assembly(
        request,
        budget,
        reserve,
        chosen if request.strategies is None else request.strategies,
        own.merged(own.sections_of(settings.get(SECTIONS) or []), request.sections),
        Sight(request.viewer, request.visibility, request.conversation_id),
        messages.cleared(kept),
        conversation.last_seq if conversation else 0,
        conversation is not None,
        epoch,
        tuple(unknown) if request.strategies is None else (),
    )


def _checked(request: Request) -> tuple[int, int]:
    if request.budget is None:
        raise InvalidInput(
            "How many tokens may the context have? Give budget=…, or set context_budget: with the conversation "
            "(update), in the settings of the system, or as MEMSTORE_CONTEXT_BUDGET."
        )
    budget, reserve = request.budget, request.reserve or 0
    for name, tokens in (("budget", budget), ("reserve", reserve)):
        if type(tokens) is not int:
            raise InvalidInput(f"{name}={tokens!r} must be a whole number of tokens.")
    if not 1 <= budget <= LARGEST_BUDGET or not 0 <= reserve < budget:
        raise InvalidInput(
            f"budget={budget} with reserve={reserve} leaves nothing; "
            "give a budget of at least 1 token and at most 10**9, and a smaller reserve."
        )
    return budget, reserve
