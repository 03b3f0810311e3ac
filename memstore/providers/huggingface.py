"""Counts of any open model, offline, by the two files that come with its weights: its tokenizer and its chat template.

The prompt is rendered and tokenized as transformers and vLLM do, which makes the count exact for a server that uses the
same two files; Ollama has templates of its own, and a counter of its own (`ollama_counter`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

from memstore import tool_calls
from memstore.errors import InvalidInput, ProviderError, ProviderMissing
from memstore.providers import Count, tiktoken
from memstore.providers.tiktoken import CountCache
from memstore.text import replace_surrogates
from memstore.tool_calls import name_of, raw_arguments


def load(model: str) -> TokenizerCounter:
    """Return the counter of the model whose files are at this path: a folder, or its tokenizer.json.

    The folder must have a chat template: chat_template.jinja, or "chat_template" in tokenizer_config.json.
    """
    path = Path(model).expanduser()
    folder, file = (path, path / "tokenizer.json") if path.is_dir() else (path.parent, path)
    if not model or not file.is_file():
        raise ProviderMissing(f"{file} is not there: write tokenizer:FOLDER, with the folder of a model's files.")
    return TokenizerCounter(file, folder)


class TokenizerCounter:
    """Counts the tokens of the prompt that a model's template makes of a chat. Safe to share by threads.

    Special tokens that a text mentions are one token in a prompt, as they are for servers, and plain text in `count`.
    """

    def __init__(self, file: Path, folder: Path) -> None:
        config_file = folder / "tokenizer_config.json"
        try:
            config: dict[str, Any] = json.loads(_read(config_file)) if config_file.is_file() else {}
        except ValueError as error:
            raise ProviderError(f"{config_file} is no JSON: {error}") from error
        templates = _templates(config, folder)
        tokens = {key: value for key, value in config.items() if key.endswith("_token")}
        written = {key: token.get("content") if isinstance(token, dict) else token for key, token in tokens.items()}
        variables = {key: text for key, text in written.items() if text and isinstance(text, str)}
        source = _read(file)
        digest = sha256("\0".join([source, *sorted(templates.values()), *sorted(variables.values())]).encode())
        self.name = f"tokenizer:{folder if file.name == 'tokenizer.json' else file}@{digest.hexdigest()[:12]}"
        try:
            tokenizer = Tokenizer.from_str(source)
        except Exception as error:
            # The library raises bare Exception.
            raise ProviderError(f"{file} is no tokenizer: {error}") from error
        # Counted where the tokenizer puts it before a prompt of itself.
        bos = variables.get("bos_token")
        adds_bos = bos in tokenizer.encode("", add_special_tokens=True).tokens
        self._vocabulary = Vocabulary(tokenizer, bos if adds_bos else None)
        self._templates = {name: ChatTemplate(text, variables) for name, text in templates.items()}

    def __repr__(self) -> str:
        return f"<TokenizerCounter {self.name}>"

    def count(self, text: str) -> int:
        """Return the number of tokens of a text, special tokens being plain text; a lone surrogate counts as U+FFFD."""
        return self._vocabulary.count_text(text)

    def count_message(self, message: Mapping[str, Any]) -> int:
        """Return what one message is expected to add: its values, and what the template puts around a short one."""
        return self._vocabulary.count_message(message, self._overhead)

    def count_messages(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> Count:
        """Return the tokens of the rendered prompt: "exact" if it `is_certain` and there is only text."""
        prompt, is_certain = self.render(messages, tools)
        is_exact = is_certain and tiktoken.only_text(messages)
        return Count(self._vocabulary.count_prompt(prompt), "exact" if is_exact else "estimated")

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()
    ) -> tuple[str, bool]:
        """Return the prompt that is counted, and whether it is certain that a server makes the same of the messages."""
        template = self._templates.get("tool_use" if tools else "default", self._templates["default"])
        return template.render(messages, tools)

    @cached_property
    def _overhead(self) -> int:
        return self._vocabulary.message_overhead(self.count_messages)


class Vocabulary:
    """A tokenizer of the library `tokenizers`, without anything that it adds, cuts or keeps. Safe to share by threads.

    `bos` is the token that begins a prompt, where the tokenizer adds one. Counts are remembered, texts are not.
    """

    def __init__(self, tokenizer: Tokenizer, bos: str | None) -> None:
        self._plain, self._special = (Tokenizer.from_str(tokenizer.to_str()) for _ in range(2))
        for copy in (self._plain, self._special):
            copy.no_truncation()
            copy.no_padding()
            if hasattr(copy.model, "_resize_cache"):
                # The library's own, which holds words of the texts.
                copy.model._resize_cache(0)
        self._plain.encode_special_tokens = True
        self._bos = bos
        self._separators = _separators(tokenizer)
        self.count_text = CountCache(lambda text: _length(self._plain, text))
        self._count_piece = CountCache(lambda text: _length(self._special, text))

    def count_prompt(self, text: str) -> int:
        """Return the tokens of a rendered prompt; the first token counts once, by the template or the tokenizer."""
        lacks_bos = self._bos is not None and not text.startswith(self._bos)
        # Every second piece is one token.
        pieces = self._separators.split(text) if self._separators else [text]
        return lacks_bos + len(pieces) // 2 + sum(self._count_piece(piece) for piece in pieces[::2] if piece)

    def count_message(self, message: Mapping[str, Any], overhead: int) -> int:
        """Return what a message is expected to add: its values without the role, and what is around them."""
        values = {key: value for key, value in message.items() if key != "role"}
        return overhead + sum(map(self.count_text, tiktoken.texts(values)))

    def message_overhead(self, count_messages: Callable[[list[Mapping[str, Any]]], int]) -> int:
        """Return the tokens that a template puts around a short message; `count_messages` counts finished chats."""
        turn: list[Mapping[str, Any]] = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "a"}]
        once, thrice = (count_messages(turn * times) for times in (1, 3))
        return max(0, (thrice - once) // 4 - self.count_text("a"))


def _separators(tokenizer: Tokenizer) -> re.Pattern[str] | None:
    """Return a pattern of the tokens that part a prompt, so that a message is tokenized once, not with each prompt.

    The library cuts a text at them before all else, and tokenizes what is between them each for itself. None where that
    is not so: where such a token takes blanks with it, or where the first piece of a text is not treated as the others.
    """
    source = tokenizer.to_str()
    added_tokens = json.loads(source).get("added_tokens") or []
    added = [token for token in added_tokens if token["content"] and not token["normalized"]]
    take_blanks = any(token["lstrip"] or token["rstrip"] or token["single_word"] for token in added)
    if not added or take_blanks or '"prepend_scheme":"first"' in source:
        return None
    longest_first = sorted((token["content"] for token in added), key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, longest_first))})")


def _length(tokenizer: Tokenizer, text: str) -> int:
    return len(tokenizer.encode(replace_surrogates(text), add_special_tokens=False))


def _templates(config: Mapping[str, Any], folder: Path) -> dict[str, str]:
    file = folder / "chat_template.jinja"
    if file.is_file():
        return {"default": _read(file)}
    value = config.get("chat_template") or []
    named = {"default": value} if isinstance(value, str) else {entry["name"]: entry["template"] for entry in value}
    if "default" not in named:
        raise ProviderMissing(f"{folder} has no chat template: put the model's {file.name} there.")
    return named


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProviderError(f"{file} cannot be read: {error}") from error


class _MessagesRefused(Exception):
    """Raised for messages that a template does not take."""


class ChatTemplate:
    """Renders chats by a Jinja template. `variables` are the special tokens, such as "bos_token". Safe to share.

    Raises ProviderError for a template that is no Jinja.
    """

    def __init__(self, source: str, variables: Mapping[str, str]) -> None:
        self._variables = dict(variables)
        extensions = [loopcontrols, _Generation]
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=extensions)
        environment.filters["tojson"] = partial(json.dumps, ensure_ascii=False)
        environment.globals["raise_exception"] = _raise_exception
        try:
            self._template = environment.from_string(source)
        except (TemplateError, SyntaxError, RecursionError) as error:
            raise ProviderError(f"The chat template is no Jinja template that can be read: {error}") from error

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()
    ) -> tuple[str, bool]:
        """Return the prompt up to where the reply begins, and whether a server is certain to send the same.

        It is not certain where the prompt has a date, or where the messages had to be changed: a template that refuses
        them is given them with each system message as the user's, calls of tools and their results in words, and
        neighbours of one role joined. Raises InvalidInput where it refuses these too, or does what is forbidden.
        """
        as_given = [as_template(message) for message in messages]
        try:
            prompt, has_date = self._render(as_given, tools)
        except _MessagesRefused:
            try:
                return self._render(_alternate(as_given), tools)[0], False
            except _MessagesRefused as error:
                # Templates that look at the first message have nothing to say of no message.
                if not messages:
                    return "", False
                raise InvalidInput(f"The model's chat template refuses these messages: {error}") from error
        return prompt, not has_date

    def _render(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> tuple[str, bool]:
        layouts: list[str] = []

        def strftime_now(layout: str) -> str:
            layouts.append(layout)
            # The default of Llama 3's templates where they are given no date.
            return datetime(2024, 7, 26).strftime(layout)

        chat = {"messages": messages, "tools": list(tools) or None, "documents": None, "add_generation_prompt": True}
        try:
            prompt = self._template.render(self._variables | chat, strftime_now=strftime_now)
        except Exception as error:
            # What they do not expect, such as no message at all, templates meet with any error.
            raise _MessagesRefused(f"{type(error).__name__}: {error}") from error
        return prompt, bool(layouts)


def as_template(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message as templates take it: text for content, objects for the arguments of tool calls."""
    template = {key: value for key, value in message.items() if value is not None}
    content = template.get("content", "")
    if isinstance(content, list | tuple):
        content = "\n".join(map(tiktoken.part_text, content))
    template["content"] = content
    if isinstance(template.get("tool_calls"), list | tuple):
        template["tool_calls"] = [_with_object(call) for call in template["tool_calls"]]
    return template


def _with_object(call: Any) -> Any:
    """Return a tool call whose arguments are an object: OpenAI writes them as JSON in a string."""
    if not isinstance(call, Mapping) or not isinstance(call.get("function"), Mapping):
        return call
    arguments = raw_arguments(call)
    return {**call, "function": {**call["function"], "arguments": {} if arguments is None else arguments}}


def _alternate(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages for a template that knows a user and a model in turns, of texts alone."""
    joined: list[dict[str, Any]] = []
    names: dict[Any, str] = {}
    for message in messages:
        calls = [call for call in message.get("tool_calls") or () if isinstance(call, Mapping)]
        names |= {call.get("id"): name_of(call) for call in calls}
        text = str(message.get("content") or "")
        if message.get("role") == "tool":
            tool = names.get(message.get("tool_call_id")) or message.get("name")
            text = f"{tool_calls.describe_result(tool)}\n{text}"
        for call in calls:
            line = tool_calls.describe_call(name_of(call), tiktoken.as_json(raw_arguments(call) or {}))
            text = f"{text}\n{line}" if text else line
        role = "assistant" if message.get("role") == "assistant" else "user"
        if not joined and role == "assistant":
            joined.append({"role": "user", "content": ""})
        if joined and joined[-1]["role"] == role:
            joined[-1]["content"] += f"\n\n{text}"
        else:
            joined.append({"role": role, "content": text})
    return joined


class _Generation(Extension):
    """The block that marks what the model wrote, for training: here it is its content."""

    tags = {"generation"}  # noqa: RUF012  (Jinja's own name and type)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise_exception(message: str) -> NoReturn:
    raise _MessagesRefused(message)
