"""Which messages an agent sees: everything is stored, and what a context is made of depends on who looks.

A viewer sees its own messages, what people say to nobody or to it, and what agents say to it; of notices (the roles
system and developer) its own. Whom a message is for is said by `to` in its metadata, else by the @names it begins with.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from memstore.context.formats.parts import OtherAssistantMessage, content_parts
from memstore.context.strategies.base import Turn
from memstore.errors import ConfigurationError, InvalidInput
from memstore.models import Decision, Hit, Json, Message, Reason, Role, Summary, Tier
from memstore.plugins import installed_entry_points
from memstore.store import chunks, messages
from memstore.store.database import Transaction
from memstore.store.summaries import Outline
from memstore.tool_calls import arguments_text, describe_call, describe_result, name_of

GROUP = "memstore.visibility"  # entry points of rules by name
TO = "to"  # the key in a message's metadata
NOTICES = {Role.SYSTEM, Role.DEVELOPER}
_MENTIONS = re.compile(r"\s*(?:[@＠][^\s,:;，、：；]+[\s,，、]*(?:(?:and|&)\s*(?=[@＠]))?)+")
_NAME = re.compile(r"[@＠]([^\s,:;，、：；]+)")
NOBODY = "another assistant"  # one without a name
PREFIX = 2  # tokens of what is before the words, about, besides one for four letters of the name
_POSSESSIVE = re.compile(r"['’]s\Z")


class Why(StrEnum):
    """Why a message is visible to a viewer, or is not."""

    OWN = "its own"
    ADDRESSED = "addressed to it"
    PUBLIC = "a person's, addressed to nobody"
    ANOTHERS = "addressed to another"
    UNADDRESSED = "an agent's, addressed to nobody"
    NOTICE = "a notice that is not said to be its own"
    RESULT = "a tool's result without its call"
    RULE = "as the rule has it"


class Verdict(NamedTuple):
    """Whether a message is visible, and why."""

    visible: bool
    why: str


Rule = Callable[[Message, str], "Verdict | bool"]


@dataclass(frozen=True, slots=True)
class Rules:
    """The rule that memstore brings, as a function of a message and a viewer's name.

    A mention of one of `everyone` addresses every viewer. With `names`, a mention of any other name is none: a person's
    "@property" is then public.
    """

    names: frozenset[str] | None = None
    everyone: frozenset[str] = frozenset({"all", "everyone"})

    def __call__(self, message: Message, viewer: str) -> Verdict:
        """Return whether the viewer sees the message. A tool's result follows its call."""
        own, to = same_name(message.name, viewer), self.addressees(message)
        if message.role == Role.TOOL:
            return Verdict(False, Why.RESULT)
        if message.role not in NOTICES and own:
            return Verdict(True, Why.OWN)
        if to:
            meant = canonical(viewer) in to or any(canonical(name) in to for name in self.everyone)
            return Verdict(meant, Why.ADDRESSED if meant else Why.ANOTHERS)
        if message.role in NOTICES:
            return Verdict(own, Why.OWN if own else Why.NOTICE)
        return Verdict(True, Why.PUBLIC) if message.role == Role.USER else Verdict(False, Why.UNADDRESSED)

    def addressees(self, message: Message) -> frozenset[str]:
        """Return whom a message is for, as names are compared; none for nobody in particular."""
        to = message.meta.get(TO)
        if to is not None:
            return frozenset(canonical(str(name)) for name in (to if isinstance(to, list) else [to]))
        mentions = frozenset(map(canonical, mentioned(message.text or "")))
        if self.names is None or not mentions:
            return mentions
        return mentions & {canonical(name) for name in self.names | self.everyone}


def visible(message: Message, viewer: str, rules: Rule = Rules()) -> Verdict:  # it is frozen
    """Return whether a viewer sees a message by these rules, and why."""
    verdict = rules(message, viewer)
    if isinstance(verdict, tuple):
        return verdict
    return Verdict(bool(verdict), Why.RULE)


def everything(message: Message, viewer: str) -> Verdict:
    """Let every message be seen: the rule "everything"."""
    return Verdict(True, Why.RULE)


KNOWN: dict[str, Rule] = {"addressed": Rules(), "everything": everything}


def rule_of(rule: Rule | str | None) -> Rule:
    """Return the rule of a name: "addressed", "everything", an entry point of `memstore.visibility`; or a rule itself.

    Raises `ConfigurationError` for another name, and `InvalidInput` for what cannot be called.
    """
    if rule is None:
        return KNOWN["addressed"]
    if not isinstance(rule, str):
        if not callable(rule):
            raise InvalidInput(f"visibility={rule!r:.60}: give a function of a message and a viewer's name, or a name.")
        return rule
    if rule in KNOWN:
        return KNOWN[rule]
    plugins = installed_entry_points(GROUP)
    if rule not in plugins.names:
        raise ConfigurationError(f"visibility={rule!r}: known are {', '.join(sorted({*KNOWN, *plugins.names}))}.")
    loaded: Rule = plugins[rule].load()
    return loaded


def seen(messages: Sequence[Message], viewer: str, rules: Rule) -> list[bool]:
    """Return for each of a conversation's messages, in order, whether it is visible. A tool's result follows its call.

    By the call's id where results have one, else it is the call that they stand after; without one it is not visible.
    """
    calls: dict[str, bool] = {}
    above = False  # whether the call before, with nothing but results between, is visible
    verdicts = []
    for message in messages:
        if message.role == Role.TOOL:
            own = message.tool_call_id
            verdicts.append(above if own is None else calls.get(own, False))
            continue
        verdict = visible(message, viewer, rules).visible
        for call in message.tool_calls or ():
            if call.get("id") is not None:
                calls[call["id"]] = verdict
        above = verdict and bool(message.tool_calls)
        verdicts.append(verdict)
    return verdicts


def mentioned(text: str) -> list[str]:
    """Return the names that a text begins with.

    >>> mentioned("@bob, @carol: look")
    ['bob', 'carol']
    >>> mentioned("I asked @bob")
    []
    """
    beginning = _MENTIONS.match(text)
    if beginning is None:
        return []
    names = (_POSSESSIVE.sub("", name.rstrip(".!?)…")) for name in _NAME.findall(beginning[0]))
    return [name for name in names if name]


def canonical(name: str) -> str:
    """Return a name as names are compared: without case, blanks as "_"."""
    return "_".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).split())


def same_name(name: str | None, other: str) -> bool:
    """Whether two names are the same one's."""
    return name is not None and canonical(name) == canonical(other)


class VisibilityFilter:
    """What one viewer sees in the course of one request; everything where there is no viewer.

    Messages are seen by the rule, a tool's result with its call. Of what is made of messages, a summary is seen where
    all of them are, a fact where one of them is, or where it has none: then somebody entered it by hand.
    """

    def __init__(self, viewer: str | None = None, rule: Rule | str | None = None, conversation: UUID | None = None):
        self.viewer = viewer
        self._rule = rule_of(rule)
        self._visible_seqs: dict[int, bool] = {}  # of the conversation that is looked at
        self._visible_ids: dict[UUID, bool] = {}
        self._hidden: dict[tuple[str, str], dict[UUID, int]] = defaultdict(dict)
        self._conversation = conversation
        self._looked_at = 0  # messages of the conversation
        self._is_known = False  # the viewer, in that conversation
        self._nameless: set[UUID] = set()  # hidden, of assistants without a name, in other conversations

    @property
    def is_active(self) -> bool:
        """Whether there is a viewer."""
        return self.viewer is not None

    def sees(self, message: Message) -> bool:
        """Return whether a message other than a tool's result is seen."""
        return self.viewer is None or visible(message, self.viewer, self._rule).visible

    def may_see(self, message: Message) -> bool:
        """Return the same, and True for a tool's result, whose call is not at hand."""
        return message.role == Role.TOOL or self.sees(message)

    def messages(self, history: Sequence[Message]) -> list[Message]:
        """Return those of a conversation's messages, in order, that are seen."""
        if self.viewer is None or not history:
            return list(history)
        verdicts = seen(history, self.viewer, self._rule)
        self._looked_at = len(history)
        self._is_known = self._is_known or any(map(self._concerns_viewer, reversed(history)))
        for message, verdict in zip(history, verdicts, strict=True):
            if message.role != Role.TOOL:  # its call may stand before the first of these
                self._visible_ids[message.id] = self._visible_seqs[message.seq] = verdict
            if not verdict:
                self._hide("recent", "message", message.id, message.tokens)
        return [message for message, verdict in zip(history, verdicts, strict=True) if verdict]

    async def hits(self, scope: Transaction, hits: Sequence[Hit]) -> list[Hit]:
        """Return those hits that are seen."""
        if not self.is_active:
            return list(hits)
        sources = {hit.id: hit.sources for hit in hits}
        later = await chunks.load_sources(scope, [], [hit.id for hit in hits if not hit.sources])
        kept = await self._kept(scope, sources | later, {hit.id for hit in hits if hit.tier == Tier.FACTS})
        for hit in hits:
            if hit.id not in kept:
                self._hide("facts" if hit.tier == Tier.FACTS else "hits", hit.tier, hit.id, 0)
        return [hit for hit in hits if hit.id in kept]

    async def fact_ids(self, scope: Transaction, facts: Sequence[UUID]) -> list[UUID]:
        """Return the ids of those facts that are seen."""
        if not self.is_active or not facts:
            return list(facts)
        sources = dict.fromkeys(facts, ()) | await chunks.load_sources(scope, [], facts)
        kept = await self._kept(scope, sources, set(facts))
        return [fact for fact in facts if fact in kept]

    async def outlines(self, scope: Transaction, conversation: UUID, outlines: Sequence[Outline]) -> list[Outline]:
        """Return those of a conversation's summaries that are seen."""
        if not self.is_active or not outlines:
            return list(outlines)
        # Where much is hidden, the ends of a range tell of most summaries that they are: few are read as a whole.
        await self._look_by_seq(scope, conversation, (seq for one in outlines for seq in _ends(one)))
        likely = [one for one in outlines if all(map(self._visible_seqs.get, _ends(one)))]
        await self._look_by_seq(scope, conversation, (seq for one in likely for seq in _range(one)))
        kept = {one.id for one in likely if all(map(self._visible_seqs.get, _range(one)))}
        for one in outlines:
            if one.id not in kept:
                self._hide("summaries", "summary", one.id, one.tokens)
        return [one for one in outlines if one.id in kept]

    async def summaries(self, scope: Transaction, summaries: Sequence[Summary]) -> list[Summary]:
        """Return those summaries, of any level, that are seen."""
        if not self.is_active or not summaries:
            return list(summaries)
        sources = await chunks.load_sources(scope, [summary.id for summary in summaries], [])
        kept = await self._kept(scope, {summary.id: sources.get(summary.id, ()) for summary in summaries}, set())
        return [summary for summary in summaries if summary.id in kept]

    def count_hidden(self, *sections: str) -> int:
        """Return how many items of these sections were looked at and are not seen."""
        return sum(len(sizes) for (section, _), sizes in self._hidden.items() if section in sections)

    def decisions(self) -> list[Decision]:
        """Return what was left out because the viewer does not see it: one decision for each section and kind."""
        decisions = []
        for (section, kind), sizes in self._hidden.items():
            many = f" ({len(sizes)} of this kind)" if len(sizes) > 1 else ""
            note = f"not visible to {self.viewer}{many}"
            first, tokens = next(iter(sizes)), sum(sizes.values())
            decisions.append(Decision(section, kind, first, tokens, Reason.NOT_VISIBLE, note=note))
        return decisions

    def hints(self) -> list[str]:
        """Return what people should know: that nobody knows the viewer, and what is hidden for want of a name."""
        hints = []
        if self._looked_at and not self._is_known and isinstance(self._rule, Rules):
            hints.append(
                f"nobody called {self.viewer!r} spoke or was mentioned in the newest {self._looked_at:,} messages that "
                "were looked at: is that the viewer's name?"
            )
        if self._nameless:
            hints.append(
                f"{len(self._nameless):,} messages of assistants without a name, in other conversations, are hidden "
                f"from {self.viewer!r}: nobody can tell whose they are. Add messages of assistants with name=…"
            )
        return hints

    def _concerns_viewer(self, message: Message) -> bool:
        """Whether the viewer said the message or is mentioned by it."""
        if self.viewer is None or same_name(message.name, self.viewer):
            return True
        return isinstance(self._rule, Rules) and canonical(self.viewer) in self._rule.addressees(message)

    async def _kept(self, scope: Transaction, sources: dict[UUID, tuple[UUID, ...]], facts: set[UUID]) -> set[UUID]:
        """Return the items that are seen, of these and the messages that each was made of."""
        await self._look_by_id(scope, {message for ids in sources.values() for message in ids})
        seen = self._visible_ids.get
        return {
            item
            for item, ids in sources.items()
            if (not ids or any(map(seen, ids)) if item in facts else ids and all(map(seen, ids)))
        }

    async def _look_by_id(self, scope: Transaction, ids: set[UUID]) -> None:
        if unknown := sorted(ids - self._visible_ids.keys()):
            rows = await messages.known(scope, unknown)
            deciding = dict.fromkeys(unknown) | await self._deciding(scope, rows.values())
            for id, message in deciding.items():
                self._visible_ids[id] = message is not None and self.sees(message)
                if message is not None and not self._visible_ids[id] and self._is_nameless(message):
                    self._nameless.add(message.id)

    async def _look_by_seq(self, scope: Transaction, conversation: UUID, seqs: Iterable[int]) -> None:
        if unknown := sorted(set(seqs) - self._visible_seqs.keys()):
            rows = await messages.numbered(scope, conversation, unknown)
            deciding = await self._deciding(scope, rows.values())
            for seq, row in rows.items():
                message = deciding[row.id]
                self._visible_seqs[seq] = message is not None and self.sees(message)

    async def _deciding(self, scope: Transaction, rows: Iterable[Message]) -> dict[UUID, Message | None]:
        """Return for each message the one that decides whether it is seen: for a tool's result its call."""
        deciding: dict[UUID, Message | None] = {row.id: row for row in rows}
        if results := [id for id, row in deciding.items() if row and row.role == Role.TOOL]:
            deciding |= await messages.sayings(scope, results)
        return deciding

    def _is_nameless(self, message: Message) -> bool:
        return message.role == Role.ASSISTANT and not message.name and message.conversation_id != self._conversation

    def _hide(self, section: str, kind: str, id: UUID, tokens: int) -> None:
        self._hidden[section, str(kind)][id] = tokens


def _range(one: Outline) -> range:
    return range(one.from_seq, one.to_seq + 1)


def _ends(one: Outline) -> tuple[int, ...]:
    seqs = _range(one)
    return (*seqs[:2], *seqs[-2:])


def as_seen_by(viewer: str | None, turns: Iterable[Turn]) -> list[Turn]:
    """Return turns as the viewer's model is shown them: another assistant's words as a user's, behind its name.

    Its calls of tools and their results are told in words, because no API takes calls from a user.
    """
    # A chat knows two sides. A model takes whatever stands under the role assistant for what it has said itself, and
    # goes on in that voice.
    return list(turns) if viewer is None else [_turn_as_seen_by(viewer, turn) for turn in turns]


def _turn_as_seen_by(viewer: str, turn: Turn) -> Turn:
    first = turn.messages[0]
    if first.role != Role.ASSISTANT or same_name(first.name, viewer):
        return turn
    tools = {call.get("id"): name_of(call) for call in first.tool_calls or ()}
    name = first.name or NOBODY
    return replace(turn, messages=tuple(_as_users(one, name, tools.get(one.tool_call_id)) for one in turn.messages))


def _as_users(message: Message, name: str, tool: str | None) -> Message:
    tokens = message.tokens + PREFIX + len(name) // 4
    changed: Json = {"role": str(Role.USER), "name": name, "tool_calls": None, "tool_call_id": None, "tokens": tokens}
    if message.role == Role.TOOL:
        opening, calls = f"{describe_result(tool or message.name)}\n", []
    else:
        opening, calls = "", [describe_call(name_of(call), arguments_text(call)) for call in message.tool_calls or ()]
    if opening or calls:
        changed |= {"counter": ""}  # its text is another one than was counted
    if message.parts is None:
        changed |= {"text": "\n".join(filter(None, [f"{opening}{message.text or ''}", *calls]))}
    else:
        before, after = ([{"type": "text", "text": one} for one in some if one] for some in ([opening.strip()], calls))
        changed |= {"parts": [*before, *_parts_of_user(message.parts), *after]}
    return OtherAssistantMessage.model_construct(**(vars(message) | changed))


def _parts_of_user(parts: list[Json]) -> Iterator[Json]:
    """Yield the parts that a user may send; what another model thought it did not say."""
    for part in content_parts(parts):
        if part.kind != "thought":
            yield {"type": "text", "text": part.text} if part.kind == "text" else part.raw
