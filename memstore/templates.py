"""Templates that somebody else wrote: Jinja in a sandbox that they cannot leave, nor go on in forever.

A template sees the data that it is given and nothing else: no file, no module, no attribute of Python's own objects.
Its loops, calls and filters are counted as steps, what it makes is measured, and what could make a large thing out of a
small one (`"x" * 10**9`, `9**9**9`, "%1000000d") is refused. The limits are counts, so that the same template over the
same data ends in the same way on every machine; a time limit stands behind them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateSyntaxError, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from memstore.errors import InvalidInput

STEPS = 2_000_000  # loops, calls, filters; a conversation of 10,000 messages takes some 20 for each
LONGEST = 20_000_000  # characters of a text that a template makes
LARGEST = 10_000  # of a number that a filter takes, such as a width
BITS = 1024  # of a number that a template computes
SECONDS = 10.0
PER_CALL = 20  # steps: a macro's call takes as long as so many turns of a loop

_FILTERS = (
    "abs batch capitalize count d default dictsort e escape first float groupby indent int items join last length list "
    "lower map max min reject rejectattr replace reverse round safe select selectattr slice sort string striptags sum "
    "title tojson trim truncate unique upper wordcount"
)
_STRING_METHODS = (
    "capitalize casefold count endswith find index isalnum isalpha isdecimal isdigit isidentifier islower isnumeric "
    "isspace istitle isupper lower lstrip partition removeprefix removesuffix replace rfind rindex rpartition rsplit "
    "rstrip split splitlines startswith strip swapcase title upper"
)
FILTERS = frozenset(_FILTERS.split())
METHODS: Mapping[type, frozenset[str]] = {
    str: frozenset(_STRING_METHODS.split()),
    dict: frozenset({"get", "items", "keys", "values"}),
    list: frozenset({"count", "index"}),
    tuple: frozenset({"count", "index"}),
    int: frozenset(),
    float: frozenset(),
    bytes: frozenset(),
}


@dataclass(slots=True)
class _Meter:
    """What one rendering may still take."""

    steps: int
    end: float = field(default_factory=lambda: time.monotonic() + SECONDS)

    def take(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise SecurityError("it takes too many steps; does a loop of it run over too much?")
        if time.monotonic() > self.end:
            raise SecurityError(f"it takes longer than {SECONDS:g} s")


_METER: ContextVar[_Meter | None] = ContextVar("meter", default=None)


class Sandbox(ImmutableSandboxedEnvironment):
    """A Jinja environment for templates that are not trusted. `run` and `rendered` set the limits."""

    intercepted_binops = frozenset({"+", "*", "**", "%", "//", "/", "-"})

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"undefined": StrictUndefined, "keep_trailing_newline": True, **options})
        self.filters = {name: _metered(made) for name, made in self.filters.items() if name in FILTERS}
        self.filters |= {"_stepping": _stepping, "_joined": _joined}
        self.globals = {name: self.globals[name] for name in ("range", "namespace", "dict")}

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        parsed: nodes.Template = _Measuring().visit(super()._parse(source, name, filename))
        return parsed

    def wrap_str_format(self, value: Any) -> None:
        """Let `str.format` be an attribute like others, which is refused: its widths are unlimited."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Whether a template may have this attribute: of data, only the methods of `METHODS`."""
        for kind, allowed in METHODS.items():
            if isinstance(obj, kind):
                return attr in allowed
        return super().is_safe_attribute(obj, attr, value)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call something for a template: a step, and more for what is large."""
        owner = getattr(__obj, "__self__", None)
        if isinstance(owner, str) and getattr(__obj, "__name__", "") == "replace":
            _check_replaced(owner, *args)
        _take(owner, *args, steps=PER_CALL)
        return _taken(super().call(__context, __obj, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Compute for a template, where the result cannot be huge."""
        numbers = all(isinstance(one, int | float) for one in (left, right))
        if operator != "+" and not numbers:
            raise SecurityError(f"{operator!r} takes numbers")
        if operator == "**" and (abs(left) > LARGEST or not 0 <= right <= 64):
            raise SecurityError(f"{left!r:.20} ** {right!r:.20} is too large")
        if any(isinstance(one, int) and one.bit_length() > BITS for one in (left, right)):
            raise SecurityError("a number is too large")
        return _taken(super().call_binop(context, operator, left, right))


def sandbox(**options: Any) -> Sandbox:
    """Give a sandbox with these options of `jinja2.Environment`; names that a template does not know are errors."""
    return Sandbox(**options)


def compiled(environment: Sandbox, source: str) -> Template:
    """Give the template, or raise `InvalidInput` that says in which line it is wrong."""
    try:
        return environment.from_string(source)
    except TemplateSyntaxError as error:
        raise InvalidInput(f"The template is wrong in line {error.lineno}: {error.message}.") from None
    except (SecurityError, RecursionError, ArithmeticError, ValueError, TypeError) as error:
        raise InvalidInput(f"The template cannot be compiled: {error}.") from None


def rendered(template: Template, data: Mapping[str, Any], *, steps: int = STEPS, longest: int = LONGEST) -> str:
    """Give what `run` gives, or raise `InvalidInput` that says in which line the template fails."""
    try:
        return run(template, data, steps=steps, longest=longest)
    except Exception as error:  # what a template does wrong may end in any error of Python's
        raise InvalidInput(f"The template fails{_line(error)}: {_told(error)}.") from None


def run(template: Template, data: Mapping[str, Any], *, steps: int = STEPS, longest: int = LONGEST) -> str:
    """Give the text that the template makes of the data. Raises what it raises; `SecurityError` for what is forbidden.

    `longest` are characters. The data must be JSON's kinds, or classes of them: strings, numbers, lists, dicts; and
    functions that a template may call.
    """
    token = _METER.set(_Meter(steps))
    try:
        parts, length = [], 0
        for part in template.generate(**data):
            parts.append(part)
            length += len(part)
            if length > longest:
                raise SecurityError(f"it makes more than {longest:,} characters")
        return "".join(parts)
    finally:
        _METER.reset(token)


def _told(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it calls itself without an end"
    return str(error).rstrip(".") or type(error).__name__


def _line(error: Exception) -> str:
    """Give the line of the template where it failed; Jinja puts its lines into the traceback."""
    line, traceback = "", error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == "<template>":
            line = f" in line {traceback.tb_lineno}"
        traceback = traceback.tb_next
    return line


class _Measuring(NodeTransformer):
    """Puts a counter into every loop, and a measure on every `~`, for which Jinja has no hook."""

    def visit_For(self, node: nodes.For) -> nodes.For:
        self.generic_visit(node)
        node.iter = nodes.Filter(node.iter, "_stepping", [], [], None, None, lineno=node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return nodes.Filter(node, "_joined", [], [], None, None, lineno=node.lineno)


@pass_context
def _stepping(context: Context, values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        _take()
        yield value


@pass_context
def _joined(context: Context, text: Any) -> Any:
    return _taken(text)


def _metered(made: Callable[..., Any]) -> Callable[..., Any]:
    """Give a filter whose work is counted. Its result is at most as many times larger as its numbers say."""

    @wraps(made)
    def metered(*args: Any, **kwargs: Any) -> Any:
        given = [*args, *kwargs.values()]
        if any(isinstance(one, int | float) and not abs(one) <= LARGEST for one in given[1:]):
            raise SecurityError(f"a number that a filter takes is above {LARGEST}")
        if made.__name__ == "do_replace":
            _check_replaced(*[one for one in given if isinstance(one, str)])
        if made.__name__ in ("do_join", "sync_do_join", "do_indent"):
            _check_grown(given)
        _take(*given)
        return _taken(made(*args, **kwargs))

    return metered


def _check_replaced(text: str = "", old: str = "", new: str = "", *_: object) -> None:
    if len(text) + text.count(old) * len(new) > LONGEST:
        raise SecurityError(f"a text becomes longer than {LONGEST:,} characters")


def _check_grown(given: list[Any]) -> None:
    """Refuse to join, or to indent, where the longest text as often as there are places would be too long."""
    longest = max((len(one) for one in given if isinstance(one, str)), default=0)
    places = max((len(one) for one in given if isinstance(one, list | tuple | range)), default=1)
    widths = [one for one in given[1:] if isinstance(one, int)]
    if longest * max([places, *widths]) > LONGEST:
        raise SecurityError(f"a text becomes longer than {LONGEST:,} characters")


def _take(*values: object, steps: int = 1) -> None:
    """Take steps, and one more for each thing in a list, or for 100 characters."""
    meter = _METER.get()
    if meter is not None:
        meter.take(steps + sum(map(_weight, values)))


def _weight(value: object) -> int:
    if isinstance(value, str):
        return len(value) // 100
    return len(value) if isinstance(value, list | tuple | dict | range) else 0


def _taken(value: Any) -> Any:
    """Give the value, counted; refuse a text that is too long."""
    if isinstance(value, str) and len(value) > LONGEST:
        raise SecurityError(f"a text becomes longer than {LONGEST:,} characters")
    _take(value)
    return value
