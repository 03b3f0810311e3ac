"""The tools as a client lists them: names, descriptions, schemas, and what they do to what is stored."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import mcp_types as types

from memstore.server.mcp import arguments, results, tools
from memstore.server.mcp.arguments import Arguments
from memstore.server.mcp.asked import Asked
from memstore.server.mcp.results import Result


@dataclass(frozen=True)
class Tool:
    """A tool: what it takes, does and gives."""

    title: str
    call: Callable[[Asked, Any], Awaitable[Result]]
    arguments: type[Arguments]
    result: type[Result]
    reads: bool = False
    destroys: bool = False
    repeatable: bool = False

    @property
    def name(self) -> str:
        """What clients call it."""
        return self.call.__name__

    @cached_property
    def listed(self) -> types.Tool:
        """The tool as a client lists it."""
        return types.Tool(
            name=self.name,
            title=self.title,
            description=inspect.getdoc(self.call),
            input_schema=schema(self.arguments, "validation"),
            output_schema=schema(self.result, "serialization"),
            annotations=types.ToolAnnotations(
                title=self.title,
                read_only_hint=self.reads,
                destructive_hint=self.destroys,
                idempotent_hint=self.repeatable or self.reads,
                open_world_hint=False,
            ),
        )


TOOLS = {
    one.name: one
    for one in (
        Tool("Search memories", tools.search_memories, arguments.SearchMemories, results.Found, reads=True),
        Tool("Add a memory", tools.add_memory, arguments.AddMemory, results.Kept, repeatable=True),
        Tool("Read a memory", tools.get_memory, arguments.GetMemory, results.Detail, reads=True),
        Tool("List memories", tools.list_memories, arguments.ListMemories, results.Page, reads=True),
        Tool("Update a memory", tools.update_memory, arguments.UpdateMemory, results.Kept, destroys=True),
        Tool(
            "Delete a memory",
            tools.delete_memory,
            arguments.DeleteMemory,
            results.Deleted,
            destroys=True,
            repeatable=True,
        ),
        Tool("Get a context", tools.get_context, arguments.GetContext, results.ContextText, reads=True),
        Tool("Remember messages", tools.remember_messages, arguments.RememberMessages, results.Remembered),
    )
}


def schema(model: type[Arguments] | type[Result], mode: Any) -> dict[str, Any]:
    """Give the JSON schema of a model without what says nothing to another one: titles, and that null may be given."""
    made = model.model_json_schema(mode=mode)
    made.pop("description", None)
    slim: dict[str, Any] = _slim(made)
    return slim


def _slim(node: Any) -> Any:
    if isinstance(node, list):
        return [_slim(one) for one in node]
    if not isinstance(node, dict):
        return node
    kept = {name: _slim(value) for name, value in node.items() if not (name == "title" and isinstance(value, str))}
    some = kept.get("anyOf")
    if isinstance(some, list) and {"type": "null"} in some:
        rest = [one for one in some if one != {"type": "null"}]
        kept = (rest[0] if len(rest) == 1 else {"anyOf": rest}) | {
            name: value for name, value in kept.items() if name != "anyOf" and (name, value) != ("default", None)
        }
    return kept
