"""One case in, one answer out, each a line of JSON: how a system is driven in a process and an environment of its own.

The standard library alone: this file is imported in every environment. What comes in is

    {"id": …, "budget": tokens, "system": text or null, "facts": [text, …], "messages": [OpenAI's format, …]}

and what goes out, after one line {"versions": {…}}, is {"messages": […]} or {"error": class, "says": text}. Memories
(memories.py) take and give other objects.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

Json = dict[str, Any]


def serve(packages: list[str], answer: Callable[[Json], list[Json] | Json]) -> None:
    """Answer the lines of stdin until it ends. What libraries print goes to stderr, so that it spoils no answer."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as out:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        _tell(out, {"versions": {name: version(name) for name in packages}})
        for line in sys.stdin:
            try:
                given = answer(json.loads(line))
                reply: Json = given if isinstance(given, dict) else {"messages": given}
            except Exception as error:  # whatever a system raises is its answer
                reply = {"error": type(error).__name__, "says": str(error)[:300]}
            _tell(out, reply)


def _tell(out: Any, reply: Mapping[str, Any]) -> None:
    out.write(json.dumps(reply) + "\n")
    out.flush()
