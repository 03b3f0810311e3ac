"""Which messages an agent sees: everything is stored, and what a context is made of depends on who looks. Pure.

A viewer sees its own messages, what people say to nobody or to it, and what agents say to it; of notices (the roles
system and developer) its own. Whom a message is for is said by the mentions at the starts of its paragraphs, or by
`to` in its metadata, which then counts alone. docs/reference/visibility.md has the grammar, with examples.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from memstore.errors import ConfigurationError, InvalidInput
from memstore.installed import brought
from memstore.models import Message, Role

GROUP = "memstore.visibility"  # entry points of rules by name
TO = "to"  # the key in a message's metadata
AT = "@＠﹫"
NOTICES = {Role.SYSTEM, Role.DEVELOPER}

# What numbers the items of a list ("1.", "a)", "[x]", "iv:"), an emoji by its name (":wave:"), and a tag of HTML.
MARKER = re.compile(
    r"(?:\d{1,9}|[^\W\d_]|[ivxlcIVXLC]{2,6})[.)\]}:、．）：\u20e3]|:[\w+-]{1,40}:"
    r"|</?[a-zA-Z][\w-]{0,20}(?:\s[^<>]{0,200})?/?>"
)
WORDS = frozenset({"Lu", "Ll", "Lt", "Lo", "Nd"})  # categories of what a sentence may begin with
# Shown as nothing, though Unicode has them as letters, marks or unassigned (Default_Ignorable_Code_Point).
IGNORED = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
BETWEEN = re.compile(r"[*_~]*[\s,;、，]*(?:(?:and|und|et|y|e|og|och|en|и)\s+|[&+/和と]\s*)?[*_~]*", re.I)
# No longer than that: a text of nothing but openers would be read to its end for each of them.
QUOTED_NAME = re.compile(r'"(\s*[^"\s][^"\n]{0,199})"|“(\s*[^”\s][^”\n]{0,199})”|\[(\s*[^]\s][^]\n]{0,199})]')
POSSESSIVE = re.compile(r"['’]s(?!\w)", re.I)
FENCE = re.compile(r"\s*(`{3,}(?=[^`]*$)|~{3,})(.*)")
INSIDE = "-.'’·@"  # part of a name between two characters of it


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

    A mention of one of `everyone` addresses every viewer. Where `names` are given, a mention of any other name is none:
    a person's "@property" or "@types/node" is then public.
    """

    names: frozenset[str] | None = None
    everyone: frozenset[str] = frozenset({"all", "everyone"})

    def __call__(self, message: Message, viewer: str) -> Verdict:
        """Give whether the viewer sees the message. A tool's result follows its call: see `Sight`."""
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
        """Give whom a message is for, in the form in which names are compared; none for nobody in particular."""
        said = message.meta.get(TO)
        if said is not None:
            names = said if isinstance(said, list) else [said]
            return frozenset(canonical(str(name)) for name in names)
        found = frozenset(canonical(name) for name in mentioned(message.text or ""))
        if self.names is None:
            return found
        return found & {canonical(name) for name in self.names | self.everyone}


def visible(message: Message, viewer: str, rules: Rule = Rules()) -> Verdict:  # it is frozen
    """Give whether a viewer sees a message by these rules, and why."""
    verdict = rules(message, viewer)
    if isinstance(verdict, tuple):
        return verdict
    return Verdict(bool(verdict), Why.RULE)


def everything(message: Message, viewer: str) -> Verdict:
    """Let every message be seen: the rule "everything"."""
    return Verdict(True, Why.RULE)


KNOWN: dict[str, Rule] = {"addressed": Rules(), "everything": everything}


def rule_of(given: Rule | str | None, names: Iterable[str] | None = None) -> Rule:
    """Give the rule of this name, or the one that is given itself; `names` are who there is, for "addressed".

    A name is "addressed", "everything", or an entry point of the group `memstore.visibility`. Raises
    `ConfigurationError` for another one, and `InvalidInput` for what cannot be called.
    """
    if given is None or given == "addressed":
        return KNOWN["addressed"] if names is None else Rules(frozenset(names))
    if not isinstance(given, str):
        if not callable(given):
            raise InvalidInput(
                f"visibility={given!r:.60}: give a function of a message and a viewer's name, or a name."
            )
        return given
    if given in KNOWN:
        return KNOWN[given]
    found = brought(GROUP)
    if given not in found.names:
        raise ConfigurationError(f"visibility={given!r}: known are {', '.join(sorted({*KNOWN, *found.names}))}.")
    rule: Rule = found[given].load()
    return rule


def seen(messages: Sequence[Message], viewer: str, rules: Rule) -> list[bool]:
    """Give for each of a conversation's messages, in order, whether it is visible. A tool's result follows its call.

    By the call's id where results have one, else it is the call that they stand after; without one it is not visible.
    """
    calls: dict[str, bool] = {}
    above = False  # whether the call before, with nothing but results between, is visible
    found = []
    for message in messages:
        if message.role == Role.TOOL:
            own = message.tool_call_id
            found.append(above if own is None else calls.get(own, False))
            continue
        verdict = visible(message, viewer, rules).visible
        for call in message.tool_calls or ():
            if call.get("id") is not None:
                calls[call["id"]] = verdict
        above = verdict and bool(message.tool_calls)
        found.append(verdict)
    return found


def mentioned(text: str) -> list[str]:
    """Give the names that are mentioned at the starts of a text's paragraphs, in order.

    >>> mentioned("@bob, @carol: look")
    ['bob', 'carol']
    >>> mentioned("I asked @bob")
    []
    """
    if not any(sign in text for sign in AT):
        return []
    return [name for line in _spoken_lines(text) for name in _addressed(line)]


def canonical(name: str) -> str:
    """Give a name as names are compared: case, how it is composed, and what is not shown make no difference."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return "_".join(_shown(unicodedata.normalize("NFKC", folded)).split())


def same_name(name: str | None, other: str) -> bool:
    """Whether two names are the same one's."""
    return name is not None and canonical(name) == canonical(other)


def _spoken_lines(text: str) -> list[str]:
    """Give the lines that are the writer's own words: neither quoted nor code between fences.

    A fence that is not closed fences nothing, and who writes nothing but a quote says it.
    """
    own: list[str] = []
    quoted: list[str] = []
    fenced: list[str] = []
    fence = ""
    for line in text.splitlines():
        mark = FENCE.match(line)
        if fence:
            fenced.append(line)
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
        elif mark:
            fence, fenced = mark[1], [mark[2]]
        else:
            (quoted if line.lstrip().startswith(">") else own).append(line)
    if fence:
        own += fenced
    return own if fenced or any(map(str.strip, own)) else quoted


def _shown(text: str) -> str:
    """Give a text without the characters that are shown as nothing."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        one for one in IGNORED.sub("", text) if one.isspace() or unicodedata.category(one) not in ("Cf", "Cc")
    )


def _addressed(line: str) -> Iterator[str]:
    if not any(sign in line for sign in AT):
        return
    line = _shown(line)
    place = _first_mention(line)
    italic = "_" in line[:place]
    while line[place : place + 1] and line[place] in AT:
        name, place = _name(line, place + 1, italic)
        if not name:
            return
        yield name
        between = BETWEEN.match(line, place)
        assert between is not None
        place, italic = between.end(), italic or between[0].endswith("_")


def _first_mention(line: str) -> int:
    """Give where the mention is that a line begins with, after signs, emoji, tags, numbers of a list; or its end.

    Code between backticks is no mention.
    """
    place = 0
    while place < len(line):
        if line[place] in AT and _name(line, place + 1, False)[0]:
            return place
        marker = MARKER.match(line, place)
        if marker is None and (line[place] == "`" or unicodedata.category(line[place]) in WORDS):
            break
        place = marker.end() if marker else place + 1
    return len(line)


def _name(line: str, start: int, italic: bool) -> tuple[str, int]:
    """Give the name that begins here, and where it ends; the "_" of "_@bob_" is none of it."""
    if quoted := QUOTED_NAME.match(line, start):
        return next(filter(None, quoted.groups())), quoted.end()
    end = start
    while end < len(line):
        inside = line[end] in INSIDE and end > start and _is_of_name(line[end + 1 : end + 2])
        if not _is_of_name(line[end]) and (not inside or POSSESSIVE.match(line, end)):
            break
        end += 1
    name = line[start:end]
    return name.rstrip("_") if italic else name, end


def _is_of_name(character: str) -> bool:
    """Whether it is a letter, a digit, "_", a mark, or (a part of) an emoji."""
    return character != "" and (
        character.isalnum()
        or character == "_"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or unicodedata.category(character) in ("Mn", "Mc", "Me", "So")
    )
