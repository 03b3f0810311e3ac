"""A model's chat template, rendered as transformers and vLLM do: what is counted is what they send to the model.

That is: Jinja's immutable sandbox, blocks trimmed, `break` and `continue`, `tojson` without escapes of HTML,
`raise_exception`, and `strftime_now` with a date that does not change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from memstore.errors import InvalidInput, ProviderError
from memstore.providers.chat_values import as_template, tools_in_words

TODAY = datetime(2024, 7, 26)  # the default of Llama 3's templates where they are given no date


class MessagesRefused(Exception):
    """Raised by a template for messages that it does not take."""


class ChatTemplate:
    """Renders chats by a Jinja template. `variables` are the special tokens, such as "bos_token". Safe to share.

    Raises ProviderError for a template that is no Jinja.
    """

    def __init__(self, source: str, variables: Mapping[str, str]) -> None:
        self._variables = dict(variables)
        try:
            self._template = _environment().from_string(source)
        except (TemplateError, SyntaxError, RecursionError) as error:
            raise ProviderError(f"The chat template is no Jinja template that can be read: {error}") from error

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()
    ) -> tuple[str, bool]:
        """Return the prompt up to where the reply begins, and whether a server is certain to send the same.

        It is not certain where the prompt has a date, or where the messages had to be changed. A template that refuses
        them is given them with each system message as the user's and neighbours of one role joined, at last with calls
        of tools and their results in words; servers refuse such messages, or join them in ways of their own. Raises
        InvalidInput where the template refuses these too, ProviderError where it does what the sandbox forbids.
        """
        as_given = [as_template(message) for message in messages]
        refused: MessagesRefused | None = None
        for attempt in (as_given, _alternate(as_given), _alternate(tools_in_words(as_given))):
            try:
                prompt, has_date = self._render(attempt, tools)
            except MessagesRefused as error:
                refused = error
            else:
                return prompt, attempt is as_given and not has_date
        raise InvalidInput(f"The model's chat template refuses these messages: {refused}") from refused

    def _render(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> tuple[str, bool]:
        """Return the prompt, and whether it has a date."""
        layouts: list[str] = []

        def strftime_now(layout: str) -> str:
            layouts.append(layout)
            return TODAY.strftime(layout)

        chat = {"messages": messages, "tools": list(tools) or None, "documents": None, "add_generation_prompt": True}
        try:
            prompt = self._template.render(self._variables | chat, strftime_now=strftime_now)
        except MessagesRefused:
            raise
        except (SecurityError, OverflowError, MemoryError, RecursionError) as error:
            raise ProviderError(f"The chat template does what is forbidden to templates: {error}") from error
        # Templates meet what they do not expect (no message at all, a role without content) with errors of every kind.
        except Exception as error:
            raise MessagesRefused(f"{type(error).__name__}: {error}") from error
        return prompt, bool(layouts)


def _alternate(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages for a template that knows a user and a model in turns; system messages become the user's."""
    joined: list[dict[str, Any]] = []
    for message in messages:
        role = "user" if message.get("role") in ("system", "developer") else message.get("role")
        if not joined and role == "assistant":
            joined.append({"role": "user", "content": ""})
        last = joined[-1] if joined else {}
        if last.get("role") == role and role in ("user", "assistant") and "tool_calls" not in {*last, *message}:
            last["content"] = f"{last['content']}\n\n{message['content']}"
        else:
            joined.append({**message, "role": role})
    return joined


class _Generation(Extension):
    """The block that marks what the model wrote, for training: here it is its content."""

    tags = {"generation"}  # noqa: RUF012  (Jinja's own name and type)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    return environment


def _raise_exception(message: str) -> NoReturn:
    raise MessagesRefused(message)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
