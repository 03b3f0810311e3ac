"""What is asked of a context, and what the settings of the conversation and of the system make of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias
from uuid import UUID

from memstore.context.items import SECTION_WEIGHTS, BudgetSpec, merge_sections
from memstore.context.visibility import Rule, VisibilityFilter, rule_of
from memstore.errors import InvalidInput, MemstoreError
from memstore.formats import OPENAI
from memstore.formats.parts import Format
from memstore.ingest.redaction import Redactor
from memstore.ingest.validation import OWN_SETTINGS, check_name, check_text
from memstore.models import Conversation, Json, Message, Profile, Scope, Section
from memstore.providers import TokenCounter
from memstore.search.recall import in_scope
from memstore.settings import Settings
from memstore.store import erasure, messages
from memstore.store.chunks import Filters
from memstore.store.database import Read, Transaction
from memstore.store.erasure import UserVersion
from memstore.store.messages import CLEARED_SETTING
from memstore.strategies import as_json, get_strategies
from memstore.strategies.base import Strategy
from memstore.tool_calls import name_of

PROFILE_SECTION = "profile"

Sections: TypeAlias = "Sequence[Section | Json]"


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for: a context for this conversation, within `budget` tokens less `reserve`.

    None stands for the conversation's setting, else the system's: `defaults`. `sections` stand in place of
    those kept with the conversation that have the same names; `tools` are definitions that are sent with the context.
    Nothing is recalled where what is stored is less relevant than `min_relevance`. `scope` is where it is asked, None
    for everywhere; `conversation_scope` that of a conversation which may not be stored yet. A receipt is kept where
    `keep` says so. `spaces` are those of which something may be in, by name. `held` are the turns of a conversation
    that is not stored, in order. `redacted` counts secrets by their kind.
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
    min_relevance: float = 0.0
    held: Sequence[Message] | None = None
    scope: Scope | None = None
    spaces: Mapping[str, UUID] = field(default_factory=dict)
    conversation_scope: str | None = None
    tools: Sequence[Json] = ()
    keep: bool = True
    redacted: Mapping[str, int] = field(default_factory=dict)

    def redact(self, redactor: Redactor) -> Request:
        """Return the request with the secrets of its texts redacted: in what is sent, counted and kept alike.

        So a receipt has what was sent, and a replay gives the same bytes. Raises `InvalidInput` where a tool or a
        section is named by one.
        """
        if not redactor.detectors:
            return self
        tools = {f"tool_{number}": name_of(tool) for number, tool in enumerate(self.tools)}
        sections = {f"section_{number}": section.name for number, section in enumerate(self.sections)}
        scopes = {f"scope_{number}": name for number, name in enumerate(self.scope.names if self.scope else ())}
        redactor.reject_secret_names(**tools, **sections, **scopes)
        counts: Counter[str] = Counter()
        return replace(
            self,
            query=redactor.redact(self.query, counts),
            system=redactor.redact(self.system, counts),
            viewer=redactor.redact(self.viewer, counts),
            sections=[replace(section, text=redactor.redact_json(section.text, counts)) for section in self.sections],
            redacted=dict(sorted(counts.items())),
        )

    def check(self) -> None:
        if self.budget is not None:
            _check_tokens("budget", self.budget)
        for name, text in (("the query", self.query), ("the system prompt", self.system)):
            if text is not None:
                check_text(text, name)
        if type(self.min_relevance) not in (int, float) or not 0 <= self.min_relevance <= 1:
            raise InvalidInput(f"min_relevance={self.min_relevance!r:.60}: give a number from 0 to 1.")
        if self.query is not None and not self.query.strip():
            raise InvalidInput(
                f"query={self.query!r:.60} asks for nothing; give a question, or None for the newest user message."
            )


@dataclass(frozen=True, slots=True)
class ResolvedRequest:
    """A request with nothing left open: for the messages after `after_seq`, for what the viewer sees of them.

    `last` is the number of the newest message; `exists` tells whether the conversation is stored. `filters` let through
    what may be recalled. A receipt of what
    was erased since `erasure_version` is not kept.
    """

    request: Request
    budget: int
    reserve: int
    strategies: Sequence[Strategy]
    sections: Sequence[Section]
    visibility: VisibilityFilter
    after_seq: int
    last: int
    exists: bool
    profile: Profile | None
    filters: Filters
    erasure_version: UserVersion | None

    def target(self, counter: TokenCounter) -> BudgetSpec:
        return BudgetSpec(self.budget, counter, self.reserve, self.request.format, self.request.tools)

    @property
    def rule(self) -> str:
        rule = self.request.visibility
        return rule if isinstance(rule, str) else getattr(rule, "__name__", type(rule).__name__)


async def resolve(tx: Transaction, request: Request, read_conversation: Read[Conversation | None]) -> ResolvedRequest:
    """Resolve what a request leaves open by the settings of its conversation; raise `InvalidInput` for nonsense.

    The transaction was opened with the read of the conversation and with that of the user's version.
    """
    erasure_version, conversation = tx.result(erasure.VERSION), tx.result(read_conversation)
    if request.as_of is None:
        kept = conversation.settings if conversation else {}
    else:
        kept = await messages.settings_of(tx, request.conversation_id, as_of=request.as_of)
    settings = effective_settings(kept, request.defaults)
    left_open = {name: f"context_{name}" for name in ("budget", "reserve", "viewer")} | {"visibility": "visibility"}
    request = replace(
        request, **{name: settings[key] for name, key in left_open.items() if getattr(request, name) is None}
    )
    if request.budget is None:
        raise InvalidInput(
            "How many tokens may the context have? Give budget=…, or set context_budget: with the conversation "
            "(update), in the settings of the system, or as MEMSTORE_CONTEXT_BUDGET."
        )
    budget, reserve = request.budget, request.reserve or 0
    _check_tokens("budget", budget)
    _check_tokens("reserve", reserve)
    _check_reserve(budget, reserve)
    after_seq, last = messages.cleared_seq(kept), conversation.last_seq if conversation else 0
    if request.held:
        after_seq, last = request.held[0].seq - 1, request.held[-1].seq
    sections = merge_sections(read_sections(settings.get("sections") or []), request.sections)
    return ResolvedRequest(
        request,
        budget,
        reserve,
        get_strategies(settings["strategy"]) if request.strategies is None else request.strategies,
        sections,
        VisibilityFilter(request.viewer, request.visibility),
        after_seq,
        last,
        conversation is not None,
        None,
        await in_scope(tx, Filters(as_of=request.as_of), request.scope, own_conversation=request.conversation_id),
        erasure_version,
    )


def _check_reserve(budget: int, reserve: int) -> None:
    if reserve >= budget:
        raise InvalidInput(f"budget={budget} with reserve={reserve} leaves nothing; give a smaller reserve.")


def _check_tokens(name: str, tokens: object) -> int:
    least = 0 if "reserve" in name else 1
    if type(tokens) is not int or not least <= tokens <= 10**9:
        raise InvalidInput(f"{name}={tokens!r:.60}: give a whole number of tokens from {least} to 10**9.")
    return tokens


def effective_settings(kept: Mapping[str, Any] | None, system: Settings) -> Json:
    """Return every setting of a conversation by name: its own, else the system's; then what else is kept with it."""
    settings = {name: getattr(system, name, None) for name in SETTING_CHECKS} | {"strategy": as_json(system.strategy)}
    given = {name: value for name, value in (kept or {}).items() if value is not None}
    return {name: value for name, value in (settings | given).items() if name != CLEARED_SETTING}


def check_settings(settings: Mapping[str, Any]) -> Json:
    """Return a conversation's settings as they are kept; None takes one away. Other names than memstore's are free.

    Raises `InvalidInput` for a value that cannot be.
    """
    if CLEARED_SETTING in settings:
        raise InvalidInput(f"{CLEARED_SETTING!r} is what clear() keeps with the conversation; call that.")
    checks = {**OWN_SETTINGS, **SETTING_CHECKS}
    return {
        name: checks[name](value) if name in checks and value is not None else value for name, value in settings.items()
    }


def check_budget_left(kept: Mapping[str, Any], changed: Mapping[str, Any], system: Settings) -> None:
    """Raise `InvalidInput` if changed settings of a conversation leave nothing of its budget.

    Either number may be one that is kept already, or the system's.
    """
    settings = effective_settings({**kept, **changed}, system)
    budget, reserve = settings["context_budget"], settings["context_reserve"]
    if {"context_budget", "context_reserve"} & changed.keys() and budget is not None:
        _check_reserve(budget, reserve)


def _check_viewer(name: str) -> str:
    check_name(name, "context_viewer")
    return name


def _check_rule(name: object) -> str:
    if not isinstance(name, str):
        raise InvalidInput(f"visibility={name!r:.60}: a rule is kept by its name; give a function to context().")
    try:
        rule_of(name)
    except MemstoreError as error:
        raise InvalidInput(str(error)) from None
    return name


def read_sections(value: Sections) -> tuple[Section, ...]:
    """Return sections from sections or JSON objects. Raises `InvalidInput`, which says what to give instead."""
    if not isinstance(value, list | tuple):
        raise InvalidInput(f"sections={value!r:.60}: give a list of sections.")
    sections = tuple(map(_read_section, value))
    names = [section.name for section in sections]
    if twice := {name for name in names if names.count(name) > 1}:
        raise InvalidInput(f"The section {', '.join(sorted(twice))} is given twice; say everything about it in one.")
    return sections


def _read_section(section: object) -> Section:
    if isinstance(section, dict) and isinstance(section.get("name"), str):
        field_names = [field.name for field in fields(Section)]
        if unknown := set(section) - set(field_names):
            raise InvalidInput(
                f"A section has no {', '.join(sorted(map(str, unknown)))}; it has {', '.join(field_names)}."
            )
        section = Section(**section)
    if not isinstance(section, Section):
        raise InvalidInput(
            f'{section!r:.60} is no section: give Section("facts", maximum=0.1) or {{"name": "facts", …}}.'
        )
    for problem in _problems(section):
        raise InvalidInput(f"{section.name}: {problem}")
    for text in section.texts:
        check_text(text, f"a text of the section {section.name!r}")
    return section


def _problems(section: Section) -> Iterator[str]:
    name, least, most, weight = section.name, section.minimum, section.maximum, section.weight
    text: object = section.text
    reserved = ("system", "question", "memory", "standing", "record", "overhead", "tools", "reserve")
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_-]{0,39}", name) or name in reserved:
        yield "a section's name has small letters, digits, - and _, and is none of ours."
    if name != PROFILE_SECTION and (name in SECTION_WEIGHTS) == (text is not None):
        yield f"give a text to a section of your own, and none to {', '.join(SECTION_WEIGHTS)}."
    if not isinstance(text, str | list | tuple | None):
        yield f"text={text!r:.60}: give a text, or a list of them."
    for what, amount in (("minimum", least), ("maximum", 0 if most is None else most)):
        if type(amount) not in (int, float) or not 0 <= amount <= (1.0 if type(amount) is float else amount):
            yield f"{what}={amount!r}: give tokens (a whole number) or a share of the room (0.0 to 1.0)."
    if most is not None and type(least) is type(most) and least > most:
        yield f"the minimum {least} is more than the maximum {most}."
    if weight is not None and not (type(weight) in (int, float) and 0 <= weight <= 1000):
        yield f"weight={weight!r}: give a number from 0 to 1000."
    if type(section.priority) is not int or type(section.static) is not bool:
        yield f"give a whole number as priority={section.priority!r}, and True or False as static={section.static!r}."


# How each setting of contexts is read that a conversation may have of its own, as the system has all but sections.
SETTING_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "context_budget": partial(_check_tokens, "context_budget"),
    "context_reserve": partial(_check_tokens, "context_reserve"),
    "context_viewer": _check_viewer,
    "strategy": as_json,
    "visibility": _check_rule,
    "sections": lambda sections: [section.as_dict() for section in read_sections(sections)],
}
