"""A model's chat template, which is a program that came with its weights: run in memstore's sandbox for templates.

Rendered as transformers and vLLM do, so that what is counted is what they send to the model: blocks trimmed, `tojson`
without escapes of HTML, `raise_exception`, `strftime_now` with a date that does not change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import Undefined, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser

from memstore import templates
from memstore.errors import InvalidInput, ProviderError
from memstore.providers.chat_values import as_template, tools_in_words

TODAY = datetime(2024, 7, 26)  # the date that Llama 3's templates take where they are not told one
LARGEST = 1_000_000  # characters of a template; those of today's models have up to 20,000


@dataclass(frozen=True, slots=True)
class Rendered:
    """The prompt, and whether it is the one that a server sends today: not if a date is in it or messages were changed.

    Servers that serve a template without a system role, or one that wants speakers to alternate, refuse such messages
    or join them in ways of their own.
    """

    prompt: str
    certain: bool


class Refused(Exception):
    """What a template says of messages that it does not take."""


class ChatTemplate:
    """Renders chats by a template in Jinja. `variables` are the special tokens: "bos_token" and others. Safe to share.

    Raises ProviderError for a template that is no Jinja.
    """

    def __init__(self, source: str, variables: Mapping[str, str]) -> None:
        if len(source) > LARGEST:
            raise ProviderError(
                f"A chat template of {len(source)} characters is none: the largest allowed is {LARGEST}."
            )
        self._variables = dict(variables)
        try:
            self._template = templates.compiled(_environment(), source)
        except InvalidInput as error:
            raise ProviderError(f"The chat template is no Jinja template that can be read: {error}") from error

    def render(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> Rendered:
        """Give the prompt up to where the reply begins.

        Where the template refuses the messages as they are, it is given them with each system message as the user's and
        neighbours of one role as one; at last with calls of tools and results in words. Raises InvalidInput where it
        refuses these too, ProviderError where it takes too long or does what the sandbox forbids.
        """
        plain = [as_template(message) for message in messages]
        joined = alternating(plain)
        in_words = alternating(tools_in_words(plain))
        refused: Refused | None = None
        for given in (plain, joined, in_words):
            try:
                return self._run(given, tools, certain=given is plain)
            except Refused as error:
                refused = error
        raise InvalidInput(f"The model's chat template refuses these messages: {refused}") from refused

    def _run(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], certain: bool
    ) -> Rendered:
        dated: list[str] = []

        def strftime_now(layout: str) -> str:
            dated.append(layout)
            return TODAY.strftime(layout)

        given = self._variables | {"messages": messages, "tools": list(tools) or None, "documents": None}
        try:
            data = given | {"strftime_now": strftime_now, "add_generation_prompt": True}
            prompt = templates.run(self._template, data)
        except Refused:
            raise
        except (SecurityError, OverflowError, MemoryError, RecursionError) as error:
            raise ProviderError(f"The chat template does what is forbidden to templates: {error}") from error
        # Templates meet what they do not expect (no message at all, a role without content) with errors of every kind.
        except Exception as error:
            raise Refused(f"{type(error).__name__}: {error}") from error
        return Rendered(prompt, certain and not dated)


def alternating(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Give the messages for a template that knows a user and a model, by turns: system messages are the user's."""
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


def _environment() -> templates.Sandbox:
    options = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": False, "undefined": Undefined}
    environment = templates.sandbox(extensions=[loopcontrols, _Generation], **options)
    environment.filters["tojson"] = templates.metered("tojson", _tojson)
    environment.globals["raise_exception"] = _refuse
    return environment


def _refuse(message: str) -> NoReturn:
    raise Refused(message)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
