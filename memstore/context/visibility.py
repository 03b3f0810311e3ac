"""Which messages an agent sees: everything is stored, and what a context is made of depends on who looks. Pure.

A viewer sees its own messages, what people say to nobody or to it, and what agents say to it; of notices (the roles
system and developer) its own. Whom a message is for is said by `to` in its metadata, else by the @names it begins with.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from memstore.errors import ConfigurationError, InvalidInput
from memstore.models import Message, Role
from memstore.plugins import installed_entry_points

GROUP = "memstore.visibility"  # entry points of rules by name
TO = "to"  # the key in a message's metadata
NOTICES = {Role.SYSTEM, Role.DEVELOPER}
_MENTIONS = re.compile(r"\s*(?:[@＠][^\s,:;，、：；]+[\s,，、]*(?:(?:and|&)\s*(?=[@＠]))?)+")
_NAME = re.compile(r"[@＠]([^\s,:;，、：；]+)")
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
        """Return whether the viewer sees the message. A tool's result follows its call: see `Sight`."""
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
