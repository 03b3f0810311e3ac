"""Requests as the SDK can read them: it refuses half a surrogate pair, over stdio without an answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

import anyio
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope

from memstore.text import replace_escaped_surrogates


async def readable_body(scope: Scope, receive: Receive) -> Receive:
    """Return a `receive` that gives the body whole and without lone surrogates."""
    body = replace_escaped_surrogates(await Request(scope, receive).body())
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def read() -> Message:
        return next(messages, None) or await receive()

    return read


def refuse_body(max_bytes: int) -> Response:
    message = f"The request has more than {max_bytes:,} bytes, and was not read: send it in parts."
    error = JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=INVALID_REQUEST, message=message))
    body, status = error.model_dump_json(by_alias=True, exclude_unset=True), HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    return Response(body, status, media_type="application/json")


@asynccontextmanager
async def readable_lines(
    lines: ReadStream[SessionMessage | Exception], answers: WriteStream[SessionMessage]
) -> AsyncIterator[ReadStream[SessionMessage | Exception]]:
    """Yield the messages of `lines` without lone surrogates; answer a line that is none."""
    send, receive = anyio.create_memory_object_stream[SessionMessage | Exception]()

    async def relay() -> None:
        async with send, lines:
            async for item in lines:
                if message := _message_of(item):
                    await send.send(message)
                else:
                    unreadable = "This line is no JSON-RPC message in UTF-8, and was not read."
                    error = ErrorData(code=PARSE_ERROR, message=unreadable)
                    await answers.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=None, error=error)))

    async with anyio.create_task_group() as group:
        group.start_soon(relay)
        yield receive
        group.cancel_scope.cancel()


def _message_of(item: SessionMessage | Exception) -> SessionMessage | None:
    if isinstance(item, SessionMessage):
        return item
    line = item.errors()[0]["input"] if isinstance(item, ValidationError) else None
    if not isinstance(line, str):
        return None
    try:
        line = replace_escaped_surrogates(line.encode())
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError:
        return None
