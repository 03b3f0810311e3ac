"""What is answered to each method of the protocol; errors are told so that a model can go on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from memstore.errors import InvalidInput
from memstore.server.mcp import resources
from memstore.server.mcp.arguments import GetContext
from memstore.server.mcp.asked import Asked, Call, Whose
from memstore.server.mcp.catalogue import TOOLS, Tool
from memstore.server.mcp.faults import words, wrong
from memstore.server.mcp.tools import get_context

T = TypeVar("T")

PROMPT = types.Prompt(
    name="with_memory",
    title="Ask with memory",
    description="Puts a question with what is remembered about it, in at most 2,000 tokens.",
    arguments=[types.PromptArgument(name="question", description="What you want to ask.", required=True)],
)


class Answers:
    """The answers about whatever memory a call is about, each within so many seconds where that is said."""

    def __init__(self, whose: Whose, seconds: float | None = None) -> None:
        self._whose = whose
        self._seconds = seconds

    async def list_tools(self, call: Call, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """List the tools."""
        return types.ListToolsResult(tools=[one.listed for one in TOOLS.values()])

    async def call_tool(self, call: Call, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Call a tool; what goes wrong is its result, so that the model reads it."""
        tool = TOOLS.get(params.name)
        if tool is None:
            raise _refused(f"There is no tool {params.name!r:.60}: there are {', '.join(TOOLS)}.")
        try:
            given = tool.arguments.model_validate(params.arguments or {})
        except ValidationError as error:
            return _failed(wrong(error, tool.arguments, tool.name))
        return await self._called(call, tool, given)

    async def _called(self, call: Call, tool: Tool, given: Any) -> types.CallToolResult:
        try:
            result = (await self._timed(call, lambda asked: tool.call(asked, given))).as_json()
        except Exception as error:  # whatever it is: it is told or logged, and the server goes on
            return _failed(words(error, tool.name))
        return types.CallToolResult(content=[_text(_compact(result))], structured_content=result)

    async def list_resources(self, call: Call, _: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        """List the resources that have an address of their own."""
        return types.ListResourcesResult(resources=resources.LISTED)

    async def list_templates(
        self, call: Call, _: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """List the addresses of resources."""
        return types.ListResourceTemplatesResult(resource_templates=resources.TEMPLATES)

    async def read_resource(self, call: Call, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """Read a resource; raises `MCPError` where there is none."""
        uri = str(params.uri)
        try:
            content = await self._timed(call, lambda asked: resources.read(asked, uri))
        except InvalidInput as error:
            raise _refused(str(error), uri=uri) from None
        except Exception as error:  # as of tools
            raise MCPError(types.INTERNAL_ERROR, words(error, "reading a resource"), {"uri": uri}) from None
        return types.ReadResourceResult(contents=[content])

    async def list_prompts(self, call: Call, _: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        """List the prompts."""
        return types.ListPromptsResult(prompts=[PROMPT])

    async def get_prompt(self, call: Call, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """Give a prompt filled in; raises `MCPError` where it cannot be."""
        if params.name != PROMPT.name:
            raise _refused(f"There is no prompt {params.name!r:.60}: there is {PROMPT.name}.")
        try:
            given = GetContext.model_validate({"query": (params.arguments or {}).get("question")})
            found = await self._timed(call, lambda asked: get_context(asked, given))
        except ValidationError:
            raise _refused("question: give what you want to ask, in at most 4,000 characters.") from None
        except InvalidInput as error:
            raise _refused(str(error)) from None
        except Exception as error:  # as of tools
            raise MCPError(types.INTERNAL_ERROR, words(error, PROMPT.name)) from None
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=_text(found.text))])

    async def _timed(self, call: Call, work: Callable[[Asked], Awaitable[T]]) -> T:
        """Do something with the memory that a call is about, within the seconds that it may take."""
        async with asyncio.timeout(self._seconds):
            return await work(await self._whose(call))


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _failed(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[_text(text)], is_error=True)


def _refused(text: str, **data: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, text, data or None)
