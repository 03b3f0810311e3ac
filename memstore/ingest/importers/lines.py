"""Long files line by line: a line is given with its number, and one that is too long to hold is passed by."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any, NoReturn

from memstore.errors import InvalidInput

from .files import BOM, ByteStream
from .records import shown

LONGEST_LINE = 16 * 1024 * 1024  # bytes
PRETTY = "write each message as one JSON object on a line of its own, in UTF-8"


def numbered_lines(stream: ByteStream, longest: int = LONGEST_LINE) -> Iterator[tuple[int, bytes | None]]:
    """Give the lines with their numbers from 1, without the file's BOM, and None for one longer than `longest`."""
    number = 0
    while line := stream.readline(longest + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(BOM)
        if len(line) <= longest or line.endswith(b"\n"):
            # A line of nothing but a BOM is a line too.
            yield number, line or b"\n"
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(longest)
        yield number, None


def parsed(line: bytes) -> dict[str, Any]:
    """Give the object of JSON that a line is; InvalidInput for what is none, or says a key twice."""
    try:
        value = _JSON.decode(line.decode())
    except UnicodeDecodeError as error:
        raise InvalidInput(f"byte {error.start + 1} of the line is not UTF-8; save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        raise InvalidInput(f"it is not JSON ({error.msg}, at character {error.pos + 1}); {PRETTY}") from None
    except RecursionError:
        raise InvalidInput("it is nested too deep; make it flatter") from None
    except ValueError:
        raise InvalidInput("it holds a number of thousands of digits; write it as a text") from None
    if not isinstance(value, dict):
        raise InvalidInput(f"it is not a JSON object; {PRETTY}")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise InvalidInput(f'the key "{shown(twice)}" is given twice; leave the one that is meant')
    return found


def _not_a_number(constant: str) -> NoReturn:
    raise InvalidInput(f"{constant} is not JSON; write null or a text")


def _finite(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise InvalidInput("it holds a number too large for a float; write it as a text")
    return number


_JSON = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_not_a_number, parse_float=_finite)
