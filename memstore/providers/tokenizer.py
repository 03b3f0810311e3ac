"""Counts of any open model, offline, by the two files that come with its weights: its tokenizer and its chat template.

The prompt is rendered and tokenized as transformers and vLLM do. That makes the count exact for a server that uses the
same two files; Ollama has templates of its own, and a counter of its own (`memstore.providers.ollama_counter`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from memstore.errors import InvalidInput, ProviderError, ProviderMissing
from memstore.providers import Count
from memstore.providers.chat_template import ChatTemplate
from memstore.providers.chat_values import only_text
from memstore.providers.prompt_counter import Vocabulary, around, expected
from memstore.settings import Settings

TOKENIZER, CONFIG, TEMPLATE = "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"
_DIGEST = re.compile(r"@([0-9a-f]{12})$")


def load(model: str, settings: Settings | None = None) -> TokenizerCounter:
    """Give the counter of the model whose files are at this path: a folder, or its tokenizer.json.

    Beside tokenizer.json there must be a chat template: chat_template.jinja, or "chat_template" in
    tokenizer_config.json. A path that ends in "@" and a digest, as in the counter's name, must have files of that
    digest. Raises ProviderMissing where something is absent, ProviderError where it cannot be read or is another.
    """
    wanted = None if Path(model).exists() else _DIGEST.search(model)
    path = Path(model[: wanted.start()] if wanted else model).expanduser()
    folder, file = (path, path / TOKENIZER) if path.is_dir() else (path.parent, path)
    if not model or not file.is_file():
        raise ProviderMissing(f"{file} is not there: write tokenizer:FOLDER, with the folder of a model's {TOKENIZER}.")
    counter = TokenizerCounter(file, folder)
    if wanted and wanted[1] != counter.digest:
        raise ProviderError(f"The tokenizer or the chat template in {folder} is not the one of {wanted[1]} any more.")
    return counter


class TokenizerCounter:
    """Counts the tokens of the prompt that a model's template makes of a chat. Safe to share by threads.

    Special tokens that a text mentions are one token in a prompt, as they are for servers, and plain text in `count`.
    """

    def __init__(self, file: Path, folder: Path) -> None:
        self._path = folder if file.name == TOKENIZER else file
        config = _config(folder / CONFIG)
        templates = _templates(config, folder)
        variables = {key: text for key, value in config.items() if (text := _token(value)) and key.endswith("_token")}
        written = _read(file)
        self.digest = sha256(
            "\0".join([written, *sorted(templates.values()), *sorted(variables.values())]).encode()
        ).hexdigest()[:12]
        try:
            tokenizer = Tokenizer.from_str(written)
        except Exception as error:  # the library raises bare Exception
            raise ProviderError(f"{file} is no tokenizer: {error}") from error
        self._vocabulary = Vocabulary(tokenizer, _added_bos(tokenizer, variables.get("bos_token")))
        self._templates = {name: ChatTemplate(source, variables) for name, source in templates.items()}

    def __repr__(self) -> str:
        return f"<TokenizerCounter {self.name}>"

    @property
    def name(self) -> str:
        """The full name: "tokenizer:", the path, and 12 digits of the digest of what is in the files."""
        return f"tokenizer:{self._path}@{self.digest}"

    def count(self, text: str) -> int:
        """Give the number of tokens of a text, special tokens being plain text; a lone surrogate counts as U+FFFD."""
        return self._vocabulary.text(text)

    def count_message(self, message: Mapping[str, Any]) -> int:
        """Give what one message is expected to add: its values, and what the template puts around a short one."""
        return expected(message, self._vocabulary, self._around)

    def count_messages(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> Count:
        """Give the tokens of the rendered prompt, with the start of the reply.

        "exact", but "modelled" where the template has no place for a message as it is (see `ChatTemplate.render`), puts
        today's date into the prompt, or where there is more than text. Raises InvalidInput for messages that the
        template refuses, ProviderError for a template that does what it must not.
        """
        prompt, certain = self.render(messages, tools)
        return Count(self._vocabulary.prompt(prompt), "exact" if certain and only_text(messages) else "modelled")

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()
    ) -> tuple[str, bool]:
        """Give the prompt that is counted, and whether it is certain that a server makes the same of the messages."""
        template = self._templates.get("tool_use" if tools else "default", self._templates["default"])
        try:
            return template.render(messages, tools)
        except InvalidInput:
            if messages:
                raise
            return "", False  # templates that look at the first message have nothing to say of no message

    @cached_property
    def _around(self) -> int:
        return around(self.count_messages, self._vocabulary)


def _config(file: Path) -> dict[str, Any]:
    try:
        config = json.loads(_read(file)) if file.is_file() else {}
    except ValueError as error:
        raise ProviderError(f"{file} is no JSON: {error}") from error
    return config if isinstance(config, dict) else {}


def _templates(config: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """Give the templates by name; "default" is there."""
    if (folder / TEMPLATE).is_file():
        return {"default": _read(folder / TEMPLATE)}
    told = config.get("chat_template")
    if isinstance(told, list):
        named = {str(one.get("name")): str(one.get("template")) for one in told if isinstance(one, dict)}
    else:
        named = {"default": told} if isinstance(told, str) else {}
    if "default" not in named:
        raise ProviderMissing(f"{folder} has no chat template: put the model's {TEMPLATE} or {CONFIG} there.")
    return named


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProviderError(f"{file} cannot be read: {error}") from error


def _token(value: object) -> str | None:
    """Give a special token of a configuration: a text, or an object that has it as its content."""
    told = value.get("content") if isinstance(value, Mapping) else value
    return told if isinstance(told, str) else None


def _added_bos(tokenizer: Tokenizer, bos: str | None) -> str | None:
    """Give the token that begins a prompt, if the tokenizer puts it there of itself."""
    return bos if bos is not None and bos in tokenizer.encode("", add_special_tokens=True).tokens else None
