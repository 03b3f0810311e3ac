"""What comes in that is no message of the protocol: it is answered, where the library would drop it without a word.

A client waits for an answer to each of its requests. A text that holds half of a surrogate pair, which programs send
that cut texts anywhere, made its whole request unreadable, and the client waited for ever.
"""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any, Self

import anyio
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

NO_JSON = "This is no JSON: a request is one line of it, in UTF-8."
NO_REQUEST = (
    "This is no request that can be read. Where it is JSON, a text in it may hold half of a surrogate pair "
    "(\\ud800 to \\udfff alone), which no UTF-8 has: cut texts between characters."
)


class Answered:
    """The messages that come in, in order; what is none is answered on the way."""

    def __init__(self, incoming: ReadStream[SessionMessage | Exception], outgoing: WriteStream[SessionMessage]) -> None:
        self._incoming, self._outgoing = incoming, outgoing

    @property
    def last_context(self) -> Any:
        """The context of whoever sent the last message, for the library."""
        return getattr(self._incoming, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """Give the next message."""
        while isinstance(item := await self._incoming.receive(), Exception):
            answer = refusal(item)
            if answer is not None:
                await self._outgoing.send(SessionMessage(answer))
        return item

    async def aclose(self) -> None:
        """Read no more."""
        await self._incoming.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def refusal(error: Exception) -> JSONRPCError | None:
    """Give what is answered to a line that could not be read, by its id where it has one; None for a notification."""
    sent = error.errors()[0]["input"] if isinstance(error, ValidationError) else None
    try:
        asked = json.loads(sent) if isinstance(sent, str | bytes) else sent
    except (ValueError, RecursionError):
        return _error(None, PARSE_ERROR, NO_JSON)
    if isinstance(asked, dict) and "method" in asked and "id" not in asked:
        return None
    id = asked.get("id") if isinstance(asked, dict) else None
    known = id if type(id) is int or (isinstance(id, str) and id.isprintable()) else None
    return _error(known, INVALID_REQUEST, NO_REQUEST)


def _error(id: int | str | None, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=message))
