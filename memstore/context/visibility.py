"""Which messages an agent sees: everything is stored, and a context depends on its viewer.

A viewer sees its own messages, what people say to nobody or to it, and what agents say to it; of notices (the roles
system and developer) its own. Whom a message is for is said by `to` in its metadata, else by the @names it begins with.
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

_MENTIONS = re.compile(r"\s*(?:@[^\s,:;，：；]+[\s,，]*)+")

Rule = Callable[[Message, str], bool]
S = TypeVar("S", Outline, Summary)


def addressed(message: Message, viewer: str) -> bool:
    """Return whether a viewer sees a message: the rule "addressed". Of a tool's result its call is asked."""
    is_own, to = same_name(message.name, viewer), addressees(message)
    if message.role not in INSTRUCTION_ROLES and is_own:
        return True
    if to:
        return not to.isdisjoint({canonical(viewer), "all", "everyone"})
    return is_own or message.role == Role.USER


def everything(message: Message, viewer: str) -> bool:
    """Let every message be seen: the rule "everything"."""
    return True


def addressees(message: Message) -> set[str]:
    """Return whom a message is for, as names are compared; none for nobody in particular.

    >>> sorted(addressees(Message.model_construct(text="@Bob, @carol: ask @dave", meta={})))
    ['bob', 'carol']
    """
    to = message.meta.get(ADDRESSEE)
    if to is not None:
        return {canonical(str(name)) for name in (to if isinstance(to, list) else [to])}
    beginning = _MENTIONS.match(message.text or "")
    mentions = re.split(r"[\s,，]+", beginning[0]) if beginning else []
    names = [mention[1:].rstrip(".!?") for mention in mentions]
    return {canonical(name) for name in names if name}


def canonical(name: str) -> str:
    """Return a name as names are compared: without case, blanks as "_"."""
    return "_".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).split())


def same_name(name: str | None, other: str) -> bool:
    return name is not None and canonical(name) == canonical(other)


KNOWN: dict[str, Rule] = {"addressed": addressed, "everything": everything}


def rule_of(rule: Rule | str | None) -> Rule:
    """Return the rule of this name; a rule is returned as it is, and "addressed" for None.

    Raises `ConfigurationError` for an unknown name, and `InvalidInput` for what cannot be called.
    """
    if rule is None:
        return addressed
    if not isinstance(rule, str):
        if not callable(rule):
            raise InvalidInput(f"visibility={rule!r:.60}: give a function of a message and a viewer's name, or a name.")
        return rule
    if rule not in KNOWN:
        raise ConfigurationError(f"visibility={rule!r}: known are {', '.join(sorted(KNOWN))}.")
    return KNOWN[rule]


class VisibilityFilter:
    """What one viewer sees in the course of one request; everything where there is no viewer.

    Messages are seen by the rule, a tool's result with its call. Of what is made of messages, a summary is seen where
    all of them are, a fact where one of them is, or where it has none: then somebody entered it by hand.
    """

    def __init__(self, viewer: str | None = None, rule: Rule | str | None = None) -> None:
        self.viewer = viewer
        self._rule = rule_of(rule)
        self._visible: dict[UUID, bool] = {}
        self._hidden: dict[tuple[str, str], dict[UUID, int]] = defaultdict(dict)

    @property
    def is_active(self) -> bool:
        return self.viewer is not None

    def sees(self, message: Message) -> bool:
        """Return whether a message other than a tool's result is seen."""
        return self.viewer is None or bool(self._rule(message, self.viewer))

    def messages(self, history: Sequence[Message]) -> list[Message]:
        """Return those of a conversation's messages, in order, that are seen. A tool's result follows its call.

        By the call's id where results have one, else it is the call that they stand after.
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

    async def hits(self, tx: Transaction, hits: Sequence[Hit]) -> list[Hit]:
        if not self.is_active:
            return list(hits)
        facts = {hit.id for hit in hits if hit.tier == Tier.FACTS}
        kept = await self._kept(tx, {hit.id: hit.sources for hit in hits}, facts)
        for hit in hits:
            if hit.id not in kept:
                self._hide("facts" if hit.tier == Tier.FACTS else "hits", hit.tier, hit.id, 0)
        return [hit for hit in hits if hit.id in kept]

    async def facts(self, tx: Transaction, facts: Sequence[Fact]) -> list[Fact]:
        seen = set(await self.fact_ids(tx, [fact.id for fact in facts]))
        return [fact for fact in facts if fact.id in seen]

    async def fact_ids(self, tx: Transaction, facts: Sequence[UUID]) -> list[UUID]:
        if not self.is_active or not facts:
            return list(facts)
        kept = await self._kept(tx, dict.fromkeys(facts, ()), set(facts))
        return [fact for fact in facts if fact in kept]

    async def summaries(self, tx: Transaction, summaries: Sequence[S]) -> list[S]:
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
        """Return which items are seen. Each has the messages it was made of; where there are none, they are read."""
        unread = {item for item, ids in sources.items() if not ids}
        sources = {**sources, **await chunks.load_sources(tx, sorted(unread - facts), sorted(unread & facts))}
        if unknown := sorted({message for ids in sources.values() for message in ids} - self._visible.keys()):
            rows: dict[UUID, Message | None] = dict(await messages.by_ids(tx, unknown))
            if results := [id for id, row in rows.items() if row and row.role == Role.TOOL]:
                rows |= await messages.sayings(tx, results)  # their calls decide
            self._visible |= {id: bool((row := rows.get(id)) and self.sees(row)) for id in unknown}
        seen = self._visible.get
        return {
            item
            for item, ids in sources.items()
            if (not ids or any(map(seen, ids)) if item in facts else ids and all(map(seen, ids)))
        }

    def _hide(self, section: str, kind: str, id: UUID, tokens: int) -> None:
        self._hidden[section, str(kind)][id] = tokens


def as_seen_by(viewer: str | None, turns: Iterable[Turn]) -> list[Turn]:
    """Return turns as the viewer's model is shown them: another assistant's words as a user's, behind its name.

    Its calls of tools and their results are in words, because no API takes calls from a user.
    """
    # A chat knows two sides. A model takes whatever stands under the role assistant for what it has said itself, and
    # goes on in that voice.
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
    # About those of its name and what joins it to the text.
    tokens = message.tokens + 2 + len(name) // 4
    changed: Json = {"role": str(Role.USER), "name": name, "tool_calls": None, "tool_call_id": None, "tokens": tokens}
    if message.role == Role.TOOL:
        opening, calls = f"{describe_result(message.name or tool)}\n", []
    else:
        opening, calls = "", [describe_call(name_of(call), arguments_text(call)) for call in message.tool_calls or ()]
    if opening or calls:
        # Its text is another one than was counted.
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
    """Yield the parts that a user may send; what another model thought it did not say."""
    for part in content_parts(parts):
        if part.kind != "thought":
            yield {"type": "text", "text": part.text} if part.kind == "text" else part.raw
