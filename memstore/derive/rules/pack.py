"""Languages as data: one TOML file each, read once and compiled to patterns.

A rule says how a slot is filled. Its patterns are what stands behind the subject, in the first person:

    say = ["live (in|near) {V}"]           I live in Porto, my sister lives in Porto, moved to Porto
    my  = ["(new )?home is in {V}"]        my home is in Porto, my sister's home is in Porto
    any = ["call me {V}"]                  where a clause begins, with any subject
    anywhere = ["my (<loved>) {V:name}"]   wherever it stands

| in a pattern | stands for |
|---|---|
| `(a\\|b c)`, `(a\\|b)?` | one of them; or none |
| `{V}`, `{V:month}` | the value: words up to where the language says that a value ends, or one of a list |
| `{T}`, `{T:pet}` | what the value is of, or what is yes or no: "allergy/peanut"; a list makes several |
| `{X}` | what is denied in the same breath: "allergic to {T}, not {X}" |
| `<kin>` | one of the words of a list |
| `*` | up to four words |
| `$` | the end of the clause |

`end` says that it is over, by the same patterns: `end`, `end_my`, `end_any`.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from itertools import count
from typing import Any, NamedTuple

FORMS = ("say", "my", "any", "anywhere")
_KEYS = frozenset([*FORMS, "end", "end_my", "end_any", "not", "value", "thing", "moves", "about", "text", "examples"])
_KEYS |= {"unless", "beside", "with", "without"}
SELDOM = 12  # words among which one common word of the language must be
_WORD = re.compile(r"[^\W\d_]+(?=['’])['’]?|[^\W\d_]+")
_PIECE = re.compile(r"\{([VTXC])(?::(\w+))?\}|<(\w+)>(\??)|([()|$*,:]|\)\?)|([^\s()|{}<>$*,:?]+)(\??)|\s+|\?")
_REGEX = re.compile(r"[\\\[({?*+]")
_CAUGHT = re.compile(r"\(\?P<(\w)\d*>")
_NEVER = re.compile(r"(?!)")
_EDGE = r"(?![\w'-])"


class _Patterns(dict[str, re.Pattern[str]]):
    """The patterns of a language; one that it does not need never fits."""

    def __missing__(self, name: str) -> re.Pattern[str]:
        return _NEVER


class SlotType(NamedTuple):
    """What is known of a slot in every language."""

    name: str
    type: str  # of the fact
    many: bool = False  # several values may hold at once
    named: bool = False  # its value is a name
    passing: bool = False  # "this week I'm in Berlin" does not fill it
    former: bool = False  # who has one no longer may have another: "our cat died"
    firm: bool = False  # it holds whatever is done: "I'm allergic to nuts, if you cook"
    to_assistant: bool = False  # it is wished of an assistant alone


@dataclass(frozen=True)
class Rule:
    """One pattern of a rule."""

    slot: SlotType
    source: str  # compiled when a sentence may fit it: most rules never see one
    form: str
    place: tuple[int, bool, int]  # in the file: the first that fits is taken, of one row first what ends
    anchors: frozenset[str]  # words of which the sentence must have one; empty if unknown
    ends: bool
    value: str  # where the pattern catches none
    thing: str
    text: str  # in place of the slot's own
    excluded: re.Pattern[str] | None  # of a value or a thing
    without: re.Pattern[str] | None  # what may not stand in the clause
    needs: re.Pattern[str] | None  # what must stand in the message
    unless: frozenset[str]  # slots that are filled by the same words
    beside: frozenset[str]  # slots, only behind one of which it holds: "I take statins, so no grapefruit"
    moves: bool  # "moved to Friday": of whatever date it was
    about: bool  # its value is whom it is about
    dated: bool  # it needs the times of a clause, which are else left out
    verbatim: bool  # its value is all that is said
    listed: bool  # its value is one of a list
    listed_things: bool

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """What is matched behind the subject."""
        return re.compile(self.source, re.IGNORECASE)

    def excludes(self, value: str) -> bool:
        """Whether this is no value of the slot."""
        return self.excluded is not None and self.excluded.match(value) is not None

    @cached_property
    def catches(self) -> frozenset[str]:
        """Which of v, t, x and c the pattern catches."""
        return frozenset(_CAUGHT.findall(self.source))


class Language(NamedTuple):
    """A language as it was read."""

    code: str
    data: Mapping[str, Any]
    rules: Mapping[str, Sequence[Rule]]  # by each of their anchors; by "" where a rule has none
    patterns: Mapping[str, re.Pattern[str]]
    contractions: Mapping[str, str]
    third: Mapping[str, str]
    texts: Mapping[str, Sequence[str]]  # of facts, by slot: as it holds, as it is over, over without a value

    def candidates(self, words: Iterable[str]) -> Mapping[str, Sequence[Rule]]:
        """Return the rules that a sentence of these words may fit, by their form and in their order."""
        found = {rule.place: rule for word in ("", *words) for rule in self.rules.get(word, ())}
        by_form: dict[str, list[Rule]] = {form: [] for form in FORMS}
        for _, rule in sorted(found.items()):
            by_form[rule.form].append(rule)
        return by_form


def _languages() -> tuple[str, ...]:
    folder = files(__package__).joinpath("languages")
    return tuple(sorted(one.name.removesuffix(".toml") for one in folder.iterdir() if one.name.endswith(".toml")))


LANGUAGES = _languages()  # a file makes a language


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath(name).read_text("utf-8"))


@cache
def _common() -> Mapping[str, Mapping[str, float]]:
    """Return the commonest words of each language; one of several languages tells little of each."""
    words = {code: frozenset(_read(f"languages/{code}.toml").get("common", "").split()) for code in LANGUAGES}
    return {
        code: {word: 1 / sum(word in others for others in words.values()) for word in common}
        for code, common in words.items()
    }


def language_of(text: str) -> str:
    """Return the language of a text by its commonest words, among those with a file; "und" where they do not tell.

    A message of a chat is short, and a detector of seventy languages guesses wrongly on "Me too" more often than it
    helps.
    """
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(text[:4_000])]
    counts = sorted((sum(tells.get(word, 0.0) for word in words), code) for code, tells in _common().items())
    (second, _), (most, code) = [(0.0, ""), *counts][-2:]
    known = most > second and most * SELDOM >= len(words)
    return code if known else "und"


@cache
def slot_types() -> Mapping[str, SlotType]:
    """Return the slots of all languages by name."""
    return {name: SlotType(name, **row) for name, row in _read("slots.toml").items()}


@cache
def language(code: str) -> Language:
    """Return a language, compiled; KeyError for one without a file."""
    if code not in LANGUAGES:
        raise KeyError(code)
    data = _read(f"languages/{code}.toml")
    compiler = _Compiler(data)
    rules: dict[str, list[Rule]] = defaultdict(list)
    rows = [(slot, row) for slot, of_slot in data["rules"].items() for row in of_slot]
    for number, (slot, row) in enumerate(rows):
        if slot not in slot_types() or not row.keys() <= _KEYS:
            unknown = sorted(row.keys() - _KEYS) or "no such slot in slots.toml"
            raise ValueError(f"languages/{code}.toml: rules.{slot}: {unknown}")
        for place, (form, text, ends) in enumerate(_texts(row)):
            rule = compiler.rule(slot, row, form, text, (number, not ends, place), ends=ends)
            for anchor in rule.anchors or ("",):
                rules[anchor].append(rule)
    negation = {"negation": rf"\s?(?:{data['negation']}){_EDGE}\s?"} if "negation" in data else {}
    return Language(
        code,
        data,
        rules,
        _Patterns({name: compiler.of(text) for name, text in {**data["patterns"], **negation}.items()}),
        dict(pair.split("=") for pair in data.get("contractions", "").split("; ") if pair),
        dict(pair.split(":") for pair in data.get("third", "").split()),
        data["texts"],
    )


def _texts(row: Mapping[str, Any]) -> Iterator[tuple[str, str, bool]]:
    for form in FORMS:
        for text in row.get(form, ()):
            yield form, text, False
        for text in row.get("end" if form == "say" else f"end_{form}", ()):
            yield form, text, True


class _Compiler:
    """Compiles what one language writes."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._terms = {name: _words(text) for name, text in data["terms"].items()}
        ends = "|".join([data["value_ends"], *(data.get("first", ""),)]).strip("|")
        self._word = rf"(?!(?:{ends}){_EDGE})[^\s,;:!?()\"“”„«»]+"
        self._common = frozenset(data.get("common", "").split())
        self._joined = f"(?:{data['joined']})"
        self._caught = count()  # a group may stand in several branches of a pattern: v0, v1 …

    def rule(
        self, name: str, row: Mapping[str, Any], form: str, text: str, place: tuple[int, bool, int], *, ends: bool
    ) -> Rule:
        """Compile one pattern of a rule."""
        slot = slot_types()[name]
        nodes = _parse(text)
        self._caught = count()
        pattern = self._alternatives(nodes, many=slot.many)
        excluded = row.get("not")
        return Rule(
            slot=slot,
            source=pattern + _EDGE,
            form=form,
            place=place,
            anchors=self._anchors(nodes) or frozenset(),
            ends=ends,
            value=row.get("value", ""),
            thing=row.get("thing", ""),
            text=row.get("text", ""),
            excluded=self.of(rf"(?:{excluded}){_EDGE}") if excluded else None,
            without=self.of(row["without"]) if "without" in row else None,
            needs=self.of(row["with"]) if "with" in row else None,
            unless=frozenset(row.get("unless", "").split()),
            beside=frozenset(row.get("beside", "").split()),
            moves=row.get("moves", False),
            about=row.get("about", False),
            dated=any(name in text for name in (":date", ":day", "{C:")),
            verbatim="{C:" in text,
            listed="{V:" in text,
            listed_things="{T:" in text,
        )

    def of(self, text: str) -> re.Pattern[str]:
        """Compile a pattern of the language itself, which is a regular expression with `<lists>`."""
        return re.compile(self._expand(text), re.IGNORECASE)

    def _expand(self, text: str) -> str:
        return re.sub(r"(?<!\(\?P)<(\w+)>", lambda found: self._term(found[1]), text)

    def _term(self, name: str) -> str:
        return rf"(?:{self._expand(self._terms[name])})"

    def _alternatives(self, nodes: _Nodes, *, many: bool) -> str:
        return "|".join("".join(self._node(node, many=many) for node in branch) for branch in nodes)

    def _node(self, node: _Node, *, many: bool) -> str:
        if node.kind == "group":
            return rf"(?:{self._alternatives(node.nodes, many=many)}){'?' if node.optional else ''}"
        if node.kind == "word":
            return rf"(?: {re.escape(node.text)}{_EDGE}){'?' if node.optional else ''}"
        if node.kind == "term":
            return rf"(?: {self._term(node.text)}{_EDGE}){'?' if node.optional else ''}"
        if node.kind == "catch":
            name = node.text[0].lower()
            inside = self._term(node.text[2:]) if node.text[2:] else None
            if name == "c":
                return rf" (?P<c{next(self._caught)}>{inside})"
            if name == "v":
                return rf" (?P<v{next(self._caught)}>{inside or rf'{self._word}(?: {self._word}){{0,5}}'}){_EDGE}"
            item = inside or rf"{self._word}(?: {self._word}){{0,3}}"
            more = rf"(?:{self._joined}{item}{_EDGE}){{0,11}}" if many else ""
            return rf" (?P<{name}{next(self._caught)}>{item}{_EDGE}{more})"
        if node.kind == "$":
            return rf"(?=\s*(?:[,.;:!?()](?!\d)|$)|{self._joined}|{self._terms_end()})"
        if node.kind in ",:":
            return rf" ?{node.kind}?" if node.kind == "," else " ?[:–-]"
        return r"(?: [^\s,;:!?()]+){0,4}?"  # "*"

    def _terms_end(self) -> str:
        return rf" (?:{self._expand(self._terms.get('closing', '(?!)'))}){_EDGE}"

    def _anchors(self, nodes: _Nodes) -> frozenset[str] | None:
        """Return words of which every match has one, as few and as rare as may be; None if unknown."""
        every: set[str] = set()
        for branch in nodes:
            sure = [found for node in branch if (found := self._sure_words(node)) is not None]
            if not sure:
                return None
            every |= min(sure, key=lambda words: sum(50 if word in self._common else 1 for word in words))
        return frozenset(every)

    def _sure_words(self, node: _Node) -> frozenset[str] | None:
        if node.optional or node.kind in "$,:*":
            return None
        if node.kind == "group":
            return self._anchors(node.nodes)
        if node.kind == "word":
            return frozenset([node.text.casefold()])
        name = node.text[2:] if node.kind == "catch" else node.text
        listed = self._expand(self._terms[name]) if name in self._terms else ""
        if not listed or _REGEX.search(listed):
            return None
        return frozenset(word.split()[0].casefold() for word in listed.split("|"))


class _Node(NamedTuple):
    kind: str  # group, word, term, catch, or the sign itself
    text: str = ""
    optional: bool = False
    nodes: Any = ()


_Nodes = Sequence[Sequence[_Node]]


def _parse(text: str) -> _Nodes:
    """Return the branches of a pattern, each a list of nodes."""
    stack: list[list[list[_Node]]] = [[[]]]
    place = 0
    while place < len(text):
        found = _PIECE.match(text, place)
        if found is None:
            raise ValueError(f"not understood in {text!r}: {text[place:]!r}")
        place = found.end()
        catch, of, term, spared, sign, word, optional = found.groups()
        if catch:
            stack[-1][-1].append(_Node("catch", f"{catch}:{of}" if of else catch))
        elif term:
            stack[-1][-1].append(_Node("term", term, bool(spared)))
        elif word:
            stack[-1][-1].append(_Node("word", word, bool(optional)))
        elif sign == "(":
            stack.append([[]])
        elif sign == "|":
            stack[-1].append([])
        elif sign and sign.startswith(")"):
            optional = text.startswith("?", place)
            place += bool(optional)
            inside = stack.pop()
            stack[-1][-1].append(_Node("group", "", bool(optional), inside))
        elif sign:
            stack[-1][-1].append(_Node(sign))
    return stack[0]


def _words(text: str) -> str:
    """Return a list of words as alternatives: "@name" is a file, a star any letters."""
    if not text.startswith("@"):
        return text
    listed = files(__package__).joinpath(f"words/{text[1:]}.txt").read_text("utf-8")
    lines = [line.partition("#")[0] for line in listed.splitlines()]
    entries = (entry.strip() for line in lines for entry in line.split(","))
    return "|".join(entry.replace("*", r"\w*") if entry[0] == "*" else entry for entry in entries if entry)
