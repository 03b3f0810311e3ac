"""Requests as the SDK can read them: it refuses half a surrogate pair, over stdio without an answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError
from starlette.types import Message, Receive

from memstore.text import replace_escaped_surrogates

UNREADABLE = "This line is no JSON-RPC message in UTF-8, and was not read."


def readable_body(receive: Receive, most_bytes: int) -> Receive:
    """Return a `receive` that gives a body whole and without lone surrogates; one of more than `most_bytes` as sent."""

    async def read() -> Message:
        message = await receive()
        body = bytearray(message.get("body", b""))
        while message.get("more_body") and len(body) <= most_bytes:
            message = await receive()
            body += message.get("body", b"")
        if message["type"] == "http.request":
            message["body"] = replace_escaped_surrogates(bytes(body))
        return message

    return read


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
                    error = ErrorData(code=PARSE_ERROR, message=UNREADABLE)
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
