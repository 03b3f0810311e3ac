"""Templates that somebody else wrote: Jinja in a sandbox that they cannot leave, nor go on in forever.

A template sees the data that it is given and nothing else: no file, no module, no attribute of Python's own objects.
Its loops, calls and filters are counted as steps, and what could make a large thing out of a small one
(`"x" * 10**9`, `9**9**9`, "%1000000d") is refused. Whatever a template makes is measured when it is made, with what it
holds written out: `[a, a]` is twice as large as `a`, though it shares it. So no value is there whose printing,
comparing or hashing, which nothing can interrupt, takes long. The limits are counts, so that the same template over the
same data ends in the same way on every machine; a time limit stands behind them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, cast

from jinja2 import StrictUndefined, Template, TemplateSyntaxError, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context, LoopContext, markup_join, str_join
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from memstore.errors import InvalidInput

STEPS = 2_000_000  # loops, calls, filters; a conversation of 10,000 messages takes some 20 for each
LONGEST = 20_000_000  # characters of a text that a template makes, or of a list when it is written out
ROOM = 64_000_000  # characters of all that a template makes: of joined texts, slices, lists
CELL = 8  # characters that a thing in a list counts for, beside its own
SPLIT = 2_000_000  # characters of a text that is taken apart: each piece takes up to 80 bytes
SHORT = 100  # characters of a text that is looked for where that takes time by its length
LARGEST = 10_000  # of a number that a filter takes, such as a width
BITS = 1024  # of a number that a template computes
SECONDS = 10.0
PER_CALL = 20  # steps: a macro's call takes as long as so many turns of a loop
PER_LIST = 10  # steps: what is known of a list takes some 300 bytes

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
_TAKING_APART = (
    "batch dictsort groupby items join list map reject rejectattr select selectattr slice sort split rsplit splitlines "
    "sum title unique wordcount"
)
_BY_LENGTH = "lstrip rfind rindex rpartition rsplit rstrip strip trim"
FILTERS = frozenset(_FILTERS.split())
TAKING_APART = frozenset(_TAKING_APART.split())
BY_LENGTH = frozenset(_BY_LENGTH.split())
STRIPPED = 100_000  # characters for `striptags`, which takes time by the square of them
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
    room: int = ROOM
    end: float = field(default_factory=lambda: time.monotonic() + SECONDS)
    extents: dict[int, tuple[object, int, int]] = field(default_factory=dict)

    def take(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise SecurityError("it takes too many steps; does a loop of it run over too much?")
        if time.monotonic() > self.end:
            raise SecurityError(f"it takes longer than {SECONDS:g} s")

    def make(self, characters: int) -> None:
        self.room -= characters
        if self.room < 0:
            raise SecurityError(f"all that it makes is more than {ROOM:,} characters")

    def extent(self, value: object) -> tuple[int, int]:
        """Give the size of a value written out, in characters, and how deep lists are nested in it.

        The value is kept, so that its id stays its own. Nothing in a template changes a list that is made.
        """
        if not isinstance(value, _HOLDING):
            return _alone(value), 0
        known = self.extents.get(id(value))
        if known is None:
            self.take(PER_LIST + len(value))
            size, depth = CELL, 0
            for one in _held(value):
                inner, deeper = self.extent(one)
                size, depth = size + inner, max(depth, deeper)
                if size > LONGEST:
                    raise SecurityError(f"a list, written out, becomes longer than {LONGEST:,} characters")
            known = self.extents[id(value)] = value, size, depth + 1
        return known[1:]


_HOLDING = (list, tuple, dict, KeysView, ItemsView, ValuesView)


def _alone(value: object) -> int:
    if isinstance(value, Namespace):  # whatever holds one would grow when that does
        raise SecurityError("a namespace can neither be printed nor stand in a list or in another namespace")
    if isinstance(value, str):
        return CELL + len(value)
    return CELL + (value.bit_length() // 3 if isinstance(value, int) else 0)


def _held(value: Any) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value.keys()
        yield from value.values()
    else:
        yield from value


_METER: ContextVar[_Meter | None] = ContextVar("meter", default=None)


class Sandbox(ImmutableSandboxedEnvironment):
    """A Jinja environment for templates that are not trusted. `run` and `rendered` set the limits."""

    intercepted_binops = frozenset({"+", "*", "**", "%", "//", "/", "-"})

    def __init__(self, **options: Any) -> None:
        options["finalize"] = _printing(options.get("finalize"))
        super().__init__(**{"undefined": StrictUndefined, "keep_trailing_newline": True, **options})
        self.filters = {name: metered(name, made) for name, made in self.filters.items() if name in FILTERS}
        self.filters |= {"_stepping": _stepping, "_joined": _joined, "_made": _made, "_kept": _kept, "_step": _step}
        self.tests = {name: _counted(cast("Callable[..., bool]", test)) for name, test in self.tests.items()}
        self.globals = {name: self.globals[name] for name in ("range", "namespace", "dict")}

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        parsed: nodes.Template = _Measuring().visit(super()._parse(source, name, filename))
        return parsed

    @staticmethod
    def concat(parts: Iterable[str]) -> str:
        """Join what a macro or a block has printed, where that is not too long."""
        parts = list(parts)
        _check_long(sum(map(len, parts)))
        return str(_taken("".join(parts)))

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
        owner, name = getattr(__obj, "__self__", None), getattr(__obj, "__name__", "")
        if isinstance(owner, str):
            texts = [owner, *(one for one in (*args, *kwargs.values()) if isinstance(one, str))]
            _check_texts(name, texts)
            if name == "replace":
                _check_replaced(*texts)
        _take(owner, *args, steps=PER_CALL)
        found = super().call(__context, __obj, *args, **kwargs)
        return found if isinstance(found, Namespace) else _taken(found)

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
    except (SecurityError, RecursionError, MemoryError, ArithmeticError, ValueError, TypeError, SyntaxError) as error:
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
    """Puts a counter into every loop, and a measure on all that makes or compares values without a hook of Jinja's."""

    def visit_For(self, node: nodes.For) -> nodes.For:
        self.generic_visit(node)
        node.iter = _filtered(node.iter, "_stepping")
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), "_joined")

    def visit_Literal(self, node: nodes.Literal) -> nodes.Node:
        self.generic_visit(node)
        stored = isinstance(node, nodes.Tuple) and node.ctx != "load"  # such as a, b in {% for a, b in … %}
        return node if stored else _filtered(node, "_made")

    visit_List = visit_Tuple = visit_Dict = visit_Literal

    def visit_Assign(self, node: nodes.Assign) -> nodes.Node:
        self.generic_visit(node)
        if isinstance(node.target, nodes.NSRef):
            node.node = _filtered(node.node, "_kept")
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        if isinstance(node.arg, nodes.Slice):
            return _filtered(node, "_made")
        return node if isinstance(node.arg, nodes.Const) else _filtered(node, "_step")

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(node, "_step")


def _filtered(node: nodes.Node, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


@pass_context
def _stepping(context: Context, values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        _take()
        yield value


@pass_context
def _made(context: Context, value: Any) -> Any:
    _extent(value)
    return _taken(value)


@pass_context
def _kept(context: Context, value: Any) -> Any:
    _extent(value)
    _take()
    return value


@pass_context
def _step(context: Context, value: Any) -> Any:
    _take()
    return value


@pass_context
def _joined(context: Context, parts: list[Any]) -> Any:
    _check_long(sum(_extent(part)[0] - CELL for part in parts))
    return _taken((markup_join if context.eval_ctx.autoescape else str_join)(parts))


def _printing(finalize: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    """Give what prints a value: lists by their measure, and then as this says."""

    def printed(value: Any) -> Any:
        _extent(value)
        if isinstance(value, _HOLDING):
            value = _taken(str(value))
        return value if finalize is None else finalize(value)

    return printed


def _counted(test: Callable[..., bool]) -> Callable[..., bool]:
    @wraps(test)
    def counted(*args: Any, **kwargs: Any) -> bool:
        _take()
        return test(*args, **kwargs)

    return counted


def metered(name: str, made: Callable[..., Any]) -> Callable[..., Any]:
    """Give a filter whose work is counted. Its result is at most as many times larger as its numbers say."""

    @wraps(made)
    def metered(*args: Any, **kwargs: Any) -> Any:
        args = tuple(list(one) if _is_passing(one) else one for one in args)
        told = args[1:] if hasattr(made, "jinja_pass_arg") else args  # without what Jinja passes to some
        given = [*told, *kwargs.values()]
        if any(isinstance(one, int | float) and not abs(one) <= LARGEST for one in given[1:]):
            raise SecurityError(f"a number that a filter takes is above {LARGEST}")
        _check_texts(name, [one for one in given if isinstance(one, str)])
        if name == "replace":
            _check_replaced(*[one for one in given if isinstance(one, str)])
        if name in ("join", "indent"):
            _check_grown(given)
        if name == "tojson":
            _check_layout(given)
        if name == "sum" and any(isinstance(one, list | tuple) for one in given[1:]):
            raise SecurityError("'sum' takes numbers")
        _take(*given)
        found = made(*args, **kwargs)
        return found if any(found is one for one in given) else _taken(found)

    return metered


def _is_passing(value: object) -> bool:
    """Tell whether something can be read once only, as what `map` gives: it is measured as a list."""
    return isinstance(value, Iterator) and not isinstance(value, LoopContext)


def _check_texts(name: str, texts: list[str]) -> None:
    """Refuse to take a text apart, or to look for one in it, where that takes much more than the text."""
    longest = STRIPPED if name == "striptags" else SPLIT if name in TAKING_APART else LONGEST
    if any(len(text) > longest for text in texts):
        raise SecurityError(f"{name!r} takes texts of at most {longest:,} characters")
    if name in BY_LENGTH and any(len(text) > SHORT for text in texts[1:]):
        raise SecurityError(f"{name!r} looks for at most {SHORT} characters")


def _check_replaced(text: str = "", old: str = "", new: str = "", *_: object) -> None:
    _check_long(len(text) + text.count(old) * len(new))


def _check_layout(given: list[Any]) -> None:
    """Refuse JSON whose indents or separators would make it too long."""
    value, *layout = given
    widths = [len(one) if isinstance(one, str) else one for one in layout if isinstance(one, str | int)]
    widths += [len(text) for one in layout if isinstance(one, list | tuple) for text in one if isinstance(text, str)]
    size, depth = _extent(value)
    _check_long(size // CELL * (depth + 1) * max(widths, default=0))


def _check_grown(given: list[Any]) -> None:
    """Refuse to join, or to indent, where the longest text as often as there are places would be too long."""
    longest = max((len(one) for one in given if isinstance(one, str)), default=0)
    places = max((len(one) for one in given if isinstance(one, list | tuple | dict | range)), default=1)
    widths = [one for one in given[1:] if isinstance(one, int)]
    _check_long(longest * max([places, *widths]))


def _check_long(characters: int) -> None:
    if characters > LONGEST:
        raise SecurityError(f"a text becomes longer than {LONGEST:,} characters")


def _extent(value: object) -> tuple[int, int]:
    meter = _METER.get()
    return (CELL, 0) if meter is None else meter.extent(value)


def _take(*values: object, steps: int = 1) -> None:
    """Take steps, and one more for each thing in a list, or for 100 characters; refuse what holds too much."""
    meter = _METER.get()
    if meter is not None:
        meter.take(steps + sum(map(_weight, values)))
        for value in values:
            if isinstance(value, _HOLDING):
                meter.extent(value)


def _weight(value: object) -> int:
    if isinstance(value, str):
        return len(value) // 100
    return len(value) if isinstance(value, (*_HOLDING, range)) else 0


def _taken(value: Any) -> Any:
    """Give a value that was made, counted; refuse what is too long."""
    if isinstance(value, str):
        _check_long(len(value))
    _take(value)
    meter = _METER.get()
    if meter is not None and isinstance(value, (str, *_HOLDING)):
        meter.make(len(value) * (1 if isinstance(value, str) else CELL))
    return value
