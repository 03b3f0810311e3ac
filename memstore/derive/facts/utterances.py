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

from memstore.language.sentences import sentences

# Longer messages and sentences are pastes: of the messages the ends are not read, of the sentences nothing.
MAX_SENTENCES = 1000
MAX_SENTENCE_CHARS = 600
_SIGNS = {ord(sign): "'" for sign in "’‘ʼ`´"}
_UNSAID = re.compile(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]{1,200}`|^[ \t]{0,3}>[^\n]*|\[[^\[\]\n]{0,400}\]|https?://\S+",
    re.DOTALL | re.MULTILINE,
)
_QUOTED = re.compile(r"[\"“”„«]((?:[^\"“”„«»\n]|\n(?!\s*\n)){0,500})[\"“”»]")
# What somebody else wrote, as programs mark it: a mail behind its header, a letter behind its greeting, a transcript.
_LETTER_GREETINGS = "Dear|Hi|Hello|Hey|Hallo|Liebe[rs]?|Lieber|Sehr geehrte[rs]?|Cher|Chère|Bonjour|Hola|Estimad[oa]"
_HEADERS = "From|To|Subject|Sent|Von|An|Betreff|De|Para|Asunto|Objet"
_PASTED = re.compile(
    r"^[^\n]{0,120}\b(?:wrote|schrieb|a écrit|escribió) ?:\s"
    rf"|^(?:{_HEADERS}): [^\n]*\n"
    r"|^-{2,} ?(?:Original|Forwarded|Ursprüngliche|Weitergeleitete)\b[^\n]*"
    rf"|(?<=\n)(?:{_LETTER_GREETINGS})\b[^\n.?!]{{0,60}}[,!]?[ \t]*\n"
    r"|^(?:User|Assistant|Human|AI|Bot|System|ChatGPT) ?: ",
    re.MULTILINE,
)
# In single quotation marks, which are apostrophes too.
_SINGLE = re.compile(
    r"(?<![\w'])'(?!(?:cause|cuz|em|til|tis|twas|bout|n|s|d)\b)(?=[^\s'])((?:[^'\n]|'(?=\w)){1,300}?[.!?,]?)'(?![\w'])",
    re.IGNORECASE,
)
_ITEM = re.compile(r"(?<=[:\w,;)])[ \t]*\n\s{0,9}(?:[-*•]|\d{1,2}[.)])[ \t]+")
# "…, ok?" asks for nothing.
_ASKS = re.compile(r"(?<!\bok)(?<!\bokay)[?？][\"')»”\s]*$")
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
        text = _UNSAID.sub(_blank, self.text).translate(_SIGNS)
        if pasted := _PASTED.search(text):
            text = text[: pasted.start()].ljust(len(text))
        text = _without_quotes(text)
        return _ITEM.sub(
            lambda match: ("," if match.string[match.start() - 1] not in ":,;" else " ").ljust(len(match[0])), text
        )

    @cached_property
    def unquoted_text(self) -> str:
        """The text with blanks for what stands in quotation marks, every character in its place."""
        return _without_quotes(self.text.translate(_SIGNS))

    @cached_property
    def asserted(self) -> list[Sentence]:
        """The sentences that are its author's own."""
        text = self.clean_text
        return [
            Sentence(start, stop, _ASKS.search(text, max(start, stop - 20), stop) is not None)
            for start, stop in sentences(text)[:MAX_SENTENCES]
            if stop - start <= MAX_SENTENCE_CHARS and not _NOT_PROSE.search(text, start, stop)
        ]


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
