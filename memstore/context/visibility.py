"""Which messages an agent sees. All messages are stored; a context leaves out those that its viewer does not see.

By the rule "addressed" an agent sees its own messages, messages of people to nobody in particular or to it, and what
other agents say to it; of the roles system and developer only its own or those to it. A message is for the names in
`to` of its metadata, else for the @names that its text begins with.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

from memstore.errors import ConfigurationError, InvalidInput
from memstore.formats.parts import OtherAssistantMessage, content_parts
from memstore.models import ADDRESSEE, INSTRUCTION_ROLES, Fact, Hit, Json, Message, Role, Summary, Tier
from memstore.models.contexts import Decision, Reason
from memstore.store import chunks, messages
from memstore.store.database import Transaction
from memstore.store.summaries import Outline
from memstore.strategies.base import Turn
from memstore.tool_calls import arguments_text, describe_call, describe_result, name_of

Rule = Callable[[Message, str], bool]
S = TypeVar("S", Outline, Summary)


def addressed(message: Message, viewer: str) -> bool:
    """The rule "addressed". Tool results never come here: the filter decides them by their call."""
    is_own, to = same_name(message.name, viewer), addressees(message)
    if message.role not in INSTRUCTION_ROLES and is_own:
        return True
    if to:
        return not to.isdisjoint({canonical(viewer), "all", "everyone"})
    return is_own or message.role == Role.USER


def everything(message: Message, viewer: str) -> bool:
    return True


def addressees(message: Message) -> set[str]:
    """Return the names that a message is for, in canonical form; none if it is for nobody in particular.

    >>> sorted(addressees(Message.model_construct(text="@Bob, @carol: ask @dave", meta={})))
    ['bob', 'carol']
    """
    to = message.meta.get(ADDRESSEE)
    if to is not None:
        return {canonical(str(name)) for name in (to if isinstance(to, list) else [to])}
    beginning = re.match(r"\s*(?:@[^\s,:;，：；]+[\s,，]*)+", message.text or "")
    mentions = re.split(r"[\s,，]+", beginning[0]) if beginning else []
    names = [mention[1:].rstrip(".!?") for mention in mentions]
    return {canonical(name) for name in names if name}


def canonical(name: str) -> str:
    """Return the form in which names are compared: case folded, blanks as "_"."""
    return "_".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).split())


def same_name(name: str | None, other: str) -> bool:
    return name is not None and canonical(name) == canonical(other)


RULES: dict[str, Rule] = {"addressed": addressed, "everything": everything}


def rule_of(rule: Rule | str | None) -> Rule:
    """Return the rule of this name. A function is returned as it is; None is the rule "addressed".

    Raises `ConfigurationError` for an unknown name, and `InvalidInput` for anything else that is no function.
    """
    if rule is None:
        return addressed
    if not isinstance(rule, str):
        if not callable(rule):
            raise InvalidInput(f"visibility={rule!r:.60}: give the name of a rule, or a function (message, viewer).")
        return rule
    if rule not in RULES:
        raise ConfigurationError(f"visibility={rule!r}: known are {', '.join(sorted(RULES))}.")
    return RULES[rule]


class VisibilityFilter:
    """Filters what one viewer sees, for one request. Without a viewer everything is seen.

    A message is seen if the rule says so, a tool's result if its call is seen, and a summary if all its messages are
    seen. A fact is seen if one of its messages is seen, or if it has none, because somebody entered it by hand.
    """

    def __init__(self, viewer: str | None, rule: Rule | str | None = None) -> None:
        self.viewer = viewer
        self._rule = rule_of(rule)
        self._visible: dict[UUID, bool] = {}
        self._hidden: dict[tuple[str, str], dict[UUID, int]] = defaultdict(dict)

    @property
    def is_active(self) -> bool:
        return self.viewer is not None

    def sees(self, message: Message) -> bool:
        return self.viewer is None or bool(self._rule(message, self.viewer))

    def filter_messages(self, history: Sequence[Message]) -> list[Message]:
        """Return the messages of a conversation that are seen, in order.

        The call of a tool's result is the one with its `tool_call_id`, or the last one if it has no id.
        """
        if not self.is_active:
            return list(history)
        calls: dict[str, bool] = {}
        is_last_call_seen = False
        seen = []
        for message in history:
            if message.role == Role.TOOL:
                call_id = message.tool_call_id
                visible = is_last_call_seen if call_id is None else calls.get(call_id, False)
            else:
                visible = self._visible[message.id] = self.sees(message)
                is_last_call_seen = visible and bool(message.tool_calls)
                calls |= {str(call["id"]): visible for call in message.tool_calls or () if call.get("id") is not None}
            if visible:
                seen.append(message)
            else:
                self._hide("recent", "message", message.id, message.tokens)
        return seen

    async def filter_hits(self, tx: Transaction, hits: Sequence[Hit]) -> list[Hit]:
        if not self.is_active:
            return list(hits)
        facts = {hit.id for hit in hits if hit.tier == Tier.FACTS}
        kept = await self._kept(tx, {hit.id: hit.sources for hit in hits}, facts)
        for hit in hits:
            if hit.id not in kept:
                self._hide("facts" if hit.tier == Tier.FACTS else "hits", hit.tier, hit.id, 0)
        return [hit for hit in hits if hit.id in kept]

    async def filter_facts(self, tx: Transaction, facts: Sequence[Fact]) -> list[Fact]:
        seen = set(await self.filter_fact_ids(tx, [fact.id for fact in facts]))
        return [fact for fact in facts if fact.id in seen]

    async def filter_fact_ids(self, tx: Transaction, facts: Sequence[UUID]) -> list[UUID]:
        if not self.is_active or not facts:
            return list(facts)
        kept = await self._kept(tx, dict.fromkeys(facts, ()), set(facts))
        return [fact for fact in facts if fact in kept]

    async def filter_summaries(self, tx: Transaction, summaries: Sequence[S]) -> list[S]:
        if not self.is_active or not summaries:
            return list(summaries)
        kept = await self._kept(tx, {summary.id: () for summary in summaries}, set())
        for summary in summaries:
            if summary.id not in kept:
                self._hide("summaries", "summary", summary.id, summary.tokens)
        return [summary for summary in summaries if summary.id in kept]

    def decisions(self) -> list[Decision]:
        """Return what was left out because the viewer does not see it: one decision for each section and kind."""
        decisions = []
        for (section, kind), sizes in self._hidden.items():
            many = f" ({len(sizes)} of this kind)" if len(sizes) > 1 else ""
            about = (section, kind, next(iter(sizes)), sum(sizes.values()), Reason.NOT_VISIBLE)
            decisions.append(Decision(*about, note=f"not visible to {self.viewer}{many}"))
        return decisions

    async def _kept(self, tx: Transaction, sources: Mapping[UUID, Sequence[UUID]], facts: set[UUID]) -> set[UUID]:
        """Return which items are seen. `sources` are the messages of each item; where it has none, they are read."""
        unread = {item for item, ids in sources.items() if not ids}
        sources = {**sources, **await chunks.load_sources(tx, sorted(unread - facts), sorted(unread & facts))}
        if unknown := sorted({message for ids in sources.values() for message in ids} - self._visible.keys()):
            rows: dict[UUID, Message | None] = dict(await messages.by_ids(tx, unknown))
            if results := [id for id, row in rows.items() if row and row.role == Role.TOOL]:
                rows |= await messages.sayings(tx, results)  # their calls decide
            self._visible |= {id: bool((row := rows.get(id)) and self.sees(row)) for id in unknown}

        def is_visible(item: UUID, ids: Sequence[UUID]) -> bool:
            seen = [self._visible.get(id, False) for id in ids]
            if item in facts:
                return not seen or any(seen)
            return bool(seen) and all(seen)

        return {item for item, ids in sources.items() if is_visible(item, ids)}

    def _hide(self, section: str, kind: str, id: UUID, tokens: int) -> None:
        self._hidden[section, str(kind)][id] = tokens


def as_seen_by(viewer: str | None, turns: Iterable[Turn]) -> list[Turn]:
    """Return turns as the viewer's model gets them: messages of other assistants have the role user, and their name.

    Their tool calls and results become text, because no API accepts tool calls from a user.
    """
    # A model takes every message of the role assistant for its own words.
    return list(turns) if viewer is None else [_turn_as_seen_by(viewer, turn) for turn in turns]


def _turn_as_seen_by(viewer: str, turn: Turn) -> Turn:
    first = turn.messages[0]
    if first.role != Role.ASSISTANT or same_name(first.name, viewer):
        return turn
    tools = {call.get("id"): name_of(call) for call in first.tool_calls or ()}
    name = first.name or "another assistant"
    return replace(
        turn, messages=tuple(_as_users(message, name, tools.get(message.tool_call_id)) for message in turn.messages)
    )


def _as_users(message: Message, name: str, tool: str | None) -> Message:
    # An estimate for the name and what joins it to the text.
    tokens = message.tokens + 2 + len(name) // 4
    changed: Json = {"role": str(Role.USER), "name": name, "tool_calls": None, "tool_call_id": None, "tokens": tokens}
    if message.role == Role.TOOL:
        opening, calls = f"{describe_result(message.name or tool)}\n", []
    else:
        opening, calls = "", [describe_call(name_of(call), arguments_text(call)) for call in message.tool_calls or ()]
    if opening or calls:
        # The text is not the one that was counted.
        changed |= {"counter": ""}
    if message.parts is None:
        changed |= {"text": "\n".join(filter(None, [f"{opening}{message.text or ''}", *calls]))}
    else:
        before, after = (
            [{"type": "text", "text": text} for text in texts if text] for texts in ([opening.strip()], calls)
        )
        changed |= {"parts": [*before, *_parts_of_user(message.parts), *after]}
    return OtherAssistantMessage.model_construct(**(vars(message) | changed))


def _parts_of_user(parts: list[Json]) -> Iterator[Json]:
    """Yield the parts a user message may contain; another model's reasoning is left out."""
    for part in content_parts(parts):
        if part.kind != "thought":
            yield {"type": "text", "text": part.text} if part.kind == "text" else part.raw
