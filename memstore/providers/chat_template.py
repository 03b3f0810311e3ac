"""A model's chat template, which is a program that came with its weights: run in Jinja's sandbox, and with an end.

Rendered as transformers and vLLM do, so that what is counted is what they send to the model: blocks trimmed, `tojson`
without escapes of HTML, `raise_exception`, `strftime_now` with a date that does not change.
"""

from __future__ import annotations

import ctypes
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

from memstore.errors import InvalidInput, ProviderError, ProviderMissing
from memstore.providers.chat_values import as_template

try:
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment
except ImportError as error:
    raise ProviderMissing("jinja2 is not installed: `pip install 'memstore[tokenizers]'` brings it.") from error

TODAY = datetime(2024, 7, 26)  # the date that Llama 3's templates take where they are not told one
SECONDS = 10.0  # a chat of 100,000 tokens is rendered in 20 ms
LARGEST = 1_000_000  # characters of a template; those of today's models have up to 20,000
LONGEST = 50_000_000  # characters or items that one operation may make


@dataclass(frozen=True, slots=True)
class Rendered:
    """The prompt, and whether it is the one that a server sends today: not if a date is in it or messages were joined.

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
        self._environment = _environment()
        try:
            self._template = self._environment.from_string(source)
        except (TemplateError, RecursionError) as error:
            raise ProviderError(f"The chat template is no Jinja template that can be read: {error}") from error

    def render(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> Rendered:
        """Give the prompt up to where the reply begins.

        Where the template refuses the messages as they are, it is given them with each system message as the user's and
        neighbours of one role as one. Raises InvalidInput where it refuses these too, ProviderError where it does not
        end within 10 s or does what the sandbox forbids.
        """
        plain = [as_template(message) for message in messages]
        try:
            return self._run(plain, tools, certain=True)
        except Refused:
            pass
        try:
            return self._run(alternating(plain), tools, certain=False)
        except Refused as error:
            raise InvalidInput(f"The model's chat template refuses these messages: {error}") from error

    def _run(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], certain: bool
    ) -> Rendered:
        dated: list[str] = []

        def strftime_now(layout: str) -> str:
            dated.append(layout)
            return TODAY.strftime(layout)

        given = self._variables | {"messages": messages, "tools": list(tools) or None, "documents": None}
        prompt = _ended(lambda: self._template.render(given, strftime_now=strftime_now, add_generation_prompt=True))
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


def _ended(render: Callable[[], str]) -> str:
    """Give what `render` gives; after `SECONDS` end it, wherever it is: a template may loop for ever."""
    found: list[str] = []
    failed: list[Exception] = []

    def run() -> None:
        try:
            found.append(render())
        except _Ended:
            return
        except Exception as error:  # a template may raise anything; it is told apart where it is waited for
            failed.append(error)

    thread = threading.Thread(target=run, name="memstore-template", daemon=True)
    thread.start()
    thread.join(SECONDS)
    if thread.is_alive():
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(_Ended))
        raise ProviderError(f"The chat template did not end within {SECONDS:g} s: it is not one to be trusted.")
    return found[0] if found else _fail(failed[0])


def _fail(error: Exception) -> NoReturn:
    if isinstance(error, Refused):
        raise error
    if isinstance(error, _Forbidden | OverflowError | MemoryError | RecursionError):
        raise ProviderError(f"The chat template does what is forbidden to templates: {error}") from error
    # Templates meet what they do not expect (no message at all, a role without content) with errors of every kind.
    raise Refused(f"{type(error).__name__}: {error}") from error


class _Ended(SystemExit):
    """What ends the thread of a template that takes too long; a thread dies of it without a word."""


class _Forbidden(Exception):
    """An operation that would make more than a prompt can be."""


class _Sandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"+", "*", "**"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" or _made(operator, left, right) > LONGEST:
            raise _Forbidden(f"{operator!r} of something large")
        return super().call_binop(context, operator, left, right)


def _made(operator: str, left: Any, right: Any) -> int:
    """Give the characters or items that adding or repeating makes; 0 of numbers."""
    sizes = [len(value) for value in (left, right) if hasattr(value, "__len__")]
    times = [abs(value) for value in (left, right) if isinstance(value, int)] if operator == "*" else [1]
    return sum(sizes) * max(times, default=1)


class _Generation(Extension):
    """The block that marks what the model wrote, for training: here it is its content."""

    tags = {"generation"}  # noqa: RUF012  (Jinja's own name and type)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _environment() -> _Sandbox:
    environment = _Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation])
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _refuse
    return environment


def _refuse(message: str) -> NoReturn:
    raise Refused(message)


def _tojson(value: Any, ensure_ascii: bool = False, **layout: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, **layout)
