"""What a message asserts in its author's own words, by sentences.

Left out is code, and quoted or pasted text. Every character that stays keeps its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from memstore.derive.facts import drafts
from memstore.language.sentences import sentences

_APOSTROPHES = dict.fromkeys(map(ord, "’‘ʼ`´"), "'")
_UNSAID = re.compile(r"`[^`\n]{1,200}`|\[[^\[\]\n]{0,400}\]|https?://\S+")
_QUOTED = re.compile(r"[\"“”„«]((?:[^\"“”„«»\n]|\n(?!\s*\n)){0,500})[\"“”»]")
# What somebody else wrote, as programs mark it: a mail behind its header, a letter behind its greeting, a transcript.
_PASTED = re.compile(
    r"^[^\n]{0,120}\b(?:wrote|schrieb|a écrit|escribió) ?:\s"
    r"|^(?:From|To|Subject|Sent|Von|An|Betreff|De|Para|Asunto|Objet): [^\n]*\n"
    r"|^-{2,} ?(?:Original|Forwarded|Ursprüngliche|Weitergeleitete)\b[^\n]*"
    r"|(?<=\n)(?:Dear|Hi|Hello|Hey|Hallo|Liebe[rs]?|Sehr geehrte[rs]?|Cher|Chère|Bonjour|Hola|Estimad[oa])\b"
    r"[^\n.?!]{0,60}[,!]?[ \t]*\n"
    r"|^(?:User|Assistant|Human|AI|Bot|System|ChatGPT) ?: ",
    re.MULTILINE,
)
# In single quotation marks, which are apostrophes too.
_SINGLE = re.compile(
    r"(?<![\w'])'(?!(?:cause|cuz|em|til|tis|twas|bout|n|s|d)\b)(?=[^\s'])((?:[^'\n]|'(?=\w)){1,300}?[.!?,]?)'(?![\w'])",
    re.IGNORECASE,
)
_NOT_PROSE = re.compile(r"[\\{}<>|]|==|\w_\w|\w\(\w*\)|^\s*(?:import|from|def|class|return) \w")


class Sentence(NamedTuple):
    """The characters of a message that are one sentence; `asks` if its last clause does."""

    start: int
    stop: int
    asks: bool


@dataclass(frozen=True)
class Utterance:
    """A message as it is read for facts; `speaker` is the subject of its facts, None for "The user"."""

    text: str
    role: str
    speaker: str | None
    occurred_at: datetime

    @property
    def subject(self) -> str:
        return self.speaker or "The user"

    def named_in(self, language: str) -> str:
        return self.speaker or ("Der Nutzer" if language == "de" else self.subject)

    @cached_property
    def clean_text(self) -> str:
        """The text with blanks for what its author does not say, every character in its place."""
        text = self.text
        for start, stop in drafts.pasted(text):
            text = text[:start] + re.sub(r"[^\n]", " ", text[start:stop]) + text[stop:]
        text = _UNSAID.sub(_blank, text).translate(_APOSTROPHES)
        if pasted := _PASTED.search(text):
            text = text[: pasted.start()].ljust(len(text))
        return _without_quotes(text)

    @cached_property
    def unquoted_text(self) -> str:
        """The text with blanks for what stands in quotation marks, every character in its place."""
        return _without_quotes(self.text.translate(_APOSTROPHES))

    @cached_property
    def asserted(self) -> list[Sentence]:
        """The sentences that are its author's own; a message of more than 1,000 and a long sentence are pastes."""
        text = self.clean_text
        return [
            Sentence(start, stop, _asks(text[start:stop]))
            for start, stop in sentences(text)[:1000]
            if stop - start <= 600 and not _NOT_PROSE.search(text, start, stop)
        ]


def _asks(sentence: str) -> bool:
    """Whether a sentence asks something: "…, ok?" asks for nothing."""
    return re.search(r"(?<!\bok)(?<!\bokay)[?？][\"')»”\s]*$", sentence[-20:]) is not None


def in_quotes(words: str) -> str:
    """Return words on one line without double quotation marks, which would end those that are put around them."""
    return " ".join(words.replace('"', "'").split())


def _without_quotes(text: str) -> str:
    for quoted in (_QUOTED, _SINGLE):
        text = quoted.sub(lambda match: f" {match[1]} " if _is_nickname(match[1]) else _blank(match), text)
    return text


def _is_nickname(quoted: str) -> bool:
    """Whether what stands in quotation marks is no speech: call me "Sam"."""
    words = quoted.split()
    return 0 < len(words) < 3 and quoted == " ".join(words)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def type_of(words: str, types: Mapping[str, re.Pattern[str]]) -> str | None:
    """Return the type of one's own that has one of these words; `types` are patterns of words by name."""
    return next((name for name, pattern in types.items() if pattern.search(words)), None)
