"""What is wrong with the arguments of a caller, in words that REST and MCP share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

EXAMPLE_TIME = "2026-11-21T09:30:00+01:00"


def describe_problems(problems: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return by place what is wrong with each value, of the errors of pydantic; the values are not repeated."""
    described = []
    for problem in problems:
        what = problem["msg"].removeprefix("Value error, ")
        if isinstance(problem["input"], bytes):
            what = "it was not read: send it with Content-Type: application/json"
        elif problem["type"] == "missing":
            what = "it is missing"
        elif problem["type"] == "extra_forbidden":
            what = "there is no such field here; leave it out"
        elif problem["type"].startswith("datetime"):
            what = f"give a time such as {EXAMPLE_TIME}"
        described.append({"where": ".".join(map(str, problem["loc"])), "what": what[:1].lower() + what[1:]})
    return described


def join_problems(described: Iterable[Mapping[str, str]]) -> str:
    return "; ".join(f"{problem['where']}: {problem['what']}" for problem in described)
