"""A server that speaks Ollama's and OpenAI's HTTP API on a real socket and answers as it was told to, badly if wanted.

Not a mock of the client: the client under test is the real one, and what it meets here are bytes. The shapes are those
of Ollama 0.33 (`/api/chat`, `/api/show`, `/api/tags`, `/api/ps`, `/api/embed`, `/api/version`) and of OpenAI's
`/v1/chat/completions`, `/v1/models`, `/v1/embeddings` with Cohere's `/v1/rerank`; unknown paths are 404 as there.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple

Json = dict[str, Any]
Behaviour = Callable[["Handler"], None]

CHATS = ("/api/chat", "/v1/chat/completions")
UNFINISHED = {"done": False, "done_reason": None, "prompt_eval_count": None, "eval_count": None}
DIGEST = "a80c4f17acd55265feec403c7aef86be0c25983ab279d83f3bcd3abbcb5b8b72"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ScriptedServer

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))

    def _answer(self, body: Any) -> None:
        ours = self.server
        ours.requests.append((self.path, body, dict(self.headers)))
        self.body = body
        if self.path in ours.instead:
            return ours.instead[self.path](self)
        if self.path == "/api/chat" and body.get("_debug_render_only") and ours.render is not None:
            return self.send(200, json.dumps(self._rendered(body)).encode())
        if self.path in CHATS:
            return ours.next(body)(self)
        known = {
            "/api/show": lambda: self._show(body),
            "/api/tags": lambda: {"models": [ours.entry()]},
            "/api/ps": lambda: {"models": [ours.entry() | {"context_length": ours.allotted}]},
            "/api/version": lambda: {"version": "0.33.0"},
            "/api/embed": lambda: {"embeddings": [ours.vector(text) for text in body["input"]]},
            "/v1/models": lambda: {"object": "list", "data": [{"id": ours.model, "max_model_len": ours.trained}]},
            "/v1/embeddings": lambda: {
                "data": [{"index": index, "embedding": ours.vector(text)} for index, text in enumerate(body["input"])][
                    ::-1
                ]  # in any order: the index tells
            },
            "/v1/rerank": lambda: {
                "results": [
                    {"index": index, "relevance_score": float(len(set(body["query"].split()) & set(text.split())))}
                    for index, text in enumerate(body["documents"])
                ]
            },
        }
        if self.path not in known:
            return self.send(404, b"404 page not found")
        found = known[self.path]()
        return None if found is None else self.send(200, json.dumps(found).encode())

    def _rendered(self, body: Json) -> Json:
        assert self.server.render is not None
        prompt = self.server.render(body["messages"], body.get("tools") or [])
        debug = {"rendered_template": prompt, "image_count": 0}
        return {"model": body["model"], "created_at": "2026-08-21T09:00:00Z", "_debug_info": debug}

    def _show(self, body: Json) -> Json | None:
        if body["model"] not in (self.server.model, self.server.model.removesuffix(":latest")):
            return status(404, f"model '{body['model']}' not found")(self)
        return {
            "details": {"family": "qwen3"},
            "model_info": {"general.architecture": "qwen3", "qwen3.context_length": self.server.trained}
            | {key: value if body.get("verbose") else None for key, value in self.server.vocabulary.items()},
            "template": "{{ .Prompt }}",
            "capabilities": self.server.capabilities,
        }

    def send(self, code: int, payload: bytes, headers: Json | None = None, length: int | None = None) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(payload) if length is None else length))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(payload)
        self.wfile.flush()

    def begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def line(self, value: Json) -> None:
        payload = json.dumps(value).encode() + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(payload), payload))
        self.wfile.flush()

    def end_stream(self) -> None:
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def reset(self) -> None:
        """End the connection as a server does that is killed: RST, not FIN."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()


class ScriptedServer(ThreadingHTTPServer):
    """The server, on a free port of 127.0.0.1. Each request to /api/chat takes the next behaviour of `script`."""

    daemon_threads = True

    def __init__(self, script: Iterable[Behaviour] = ()) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = deque(script)
        self.instead: dict[str, Behaviour] = {}
        self.requests: list[tuple[str, Any, Json]] = []
        self.kind = "ollama"  # whose client is meant to ask
        self.model = "qwen3:4b-instruct"
        self.digest = DIGEST
        self.trained: int | None = 40_960
        self.allotted: int | None = 8192
        self.capabilities = ["completion", "tools", "thinking"]
        self.vocabulary: Json = {}  # "tokenizer.ggml.…", told in full to who asks for a verbose answer
        self.render: Callable[[list[Json], list[Json]], str] | None = None  # None: a server that only runs models
        self.closing = threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def entry(self) -> Json:
        return {"name": self.model, "model": self.model, "digest": self.digest}

    def next(self, body: Json) -> Behaviour:
        return self.script.popleft() if self.script else status(500, "the script has no more answers")

    def asked(self, *paths: str) -> list[Json]:
        return [body for each, body, _ in self.requests if each in (paths or CHATS)]

    def vector(self, text: str) -> list[float]:
        """Give a vector of three dimensions that is not of unit length."""
        return [float(len(text)), float(text.count("e")), 1.0]

    def handle_error(self, *_: object) -> None:
        pass  # clients that give up close their connections

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self.shutdown()
        self._thread.join()
        self.server_close()


class Read(NamedTuple):
    """A prompt that was read: how many tokens it has, and what the request asked for."""

    prompt: str
    tokens: int
    num_ctx: int
    num_predict: int

    @property
    def fits(self) -> bool:
        return self.tokens + self.num_predict <= self.num_ctx


class ReadingServer(ScriptedServer):
    """A server that reads what it is sent: it renders each chat, counts it by a tokenizer of its own, and tells that.

    What is longer than the window is refused, as a real one does that may not cut. Where the script has ended, `reply`
    says what is done about a prompt.
    """

    def __init__(
        self,
        render: Callable[[list[Json], list[Json]], str],
        tokens: Callable[[str], int],
        reply: Callable[[str], Behaviour],
    ) -> None:
        super().__init__()
        self.render = render
        self.tokens = tokens
        self.reply = reply
        self.read: list[Read] = []

    def next(self, body: Json) -> Behaviour:
        assert self.render is not None
        assert (body["truncate"], body["shift"], body["stream"]) == (False, False, True)
        prompt, options = self.render(body["messages"], body.get("tools") or []), body["options"]
        self.read.append(Read(prompt, self.tokens(prompt), options["num_ctx"], options["num_predict"]))
        if self.read[-1].tokens > options["num_ctx"]:
            return status(400, "the input length exceeds the context length")
        return self.script.popleft() if self.script else self.reply(prompt)


def chat(content: str, **fields: Any) -> Json:
    """Give the body of an answer of /api/chat; a field given as None is left out."""
    body = {
        "model": "qwen3:4b-instruct",
        "created_at": "2026-08-21T09:00:00Z",
        "message": {"role": "assistant", "content": content},
        "done": True,
        "done_reason": "stop",
        "total_duration": 1_000_000,
        "prompt_eval_count": 100,
        "eval_count": 20,
    } | fields
    return {key: value for key, value in body.items() if value is not None}


def completion(content: str, **fields: Any) -> Json:
    told = chat(content, **fields)
    usage = {"prompt_tokens": told.get("prompt_eval_count"), "completion_tokens": told.get("eval_count")}
    choice = {"index": 0, "message": told.get("message"), "finish_reason": told.get("done_reason")}
    return {"id": "1", "object": "chat.completion", "model": told["model"], "choices": [choice], "usage": usage}


def says(content: str | Json, **fields: Any) -> Behaviour:
    text = content if isinstance(content, str) else json.dumps(content)

    def behave(handler: Handler) -> None:
        body = chat(text, **fields) if handler.path == CHATS[0] else completion(text, **fields)
        handler.send(200, json.dumps(body).encode())

    return behave


def streams(*pieces: str, then: Behaviour | None = None, **fields: Any) -> Behaviour:
    """Answer piece by piece, then with what tells the end and the counts; or with `then` in its place."""

    def behave(handler: Handler) -> None:
        handler.begin_stream()
        for piece in pieces:
            handler.line(chat(piece, **UNFINISHED))
        if then is not None:
            return then(handler)
        read = getattr(handler.server, "read", None)
        counted = {"prompt_eval_count": read[-1].tokens} if read else {}
        handler.line(chat("", **counted | {"eval_count": len(pieces)} | fields))
        return handler.end_stream()

    return behave


def streams_events(*events: Json) -> Behaviour:
    """Answer piece by piece as OpenAI does."""

    def behave(handler: Handler) -> None:
        handler.begin_stream()
        for event in events:
            payload = b"data: " + json.dumps(event).encode() + b"\n\n"
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(payload), payload))
        handler.end_stream()

    return behave


def fails_in_the_stream(handler: Handler) -> None:
    """Tell an error where status 200 was told long ago."""
    handler.line({"error": "llama runner process has terminated"})
    handler.end_stream()


def ends_in_the_stream(handler: Handler) -> None:
    """End in good order, but without `done`."""
    handler.end_stream()


def raw(payload: bytes, code: int = 200, **headers: str) -> Behaviour:
    return lambda handler: handler.send(code, payload, headers)


def status(code: int, error: str, **headers: str) -> Behaviour:
    return raw(json.dumps({"error": error}).encode(), code, **{k.replace("_", "-"): v for k, v in headers.items()})


def hangs(handler: Handler) -> None:
    """Send nothing more, before the headers or within a stream."""
    handler.server.closing.wait(60)


def hangs_in_the_body(handler: Handler) -> None:
    handler.send(200, b'{"model": "qwen3:4b-instruct", ', length=1000)
    handler.server.closing.wait(60)


def drips(handler: Handler) -> None:
    """Send a byte now and then, for ever: no silence is ever long."""
    handler.send(200, b"{", length=1_000_000)
    while not handler.server.closing.wait(0.05):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def streams_for_ever(word: str) -> Behaviour:
    """Say a word again and again, whatever was asked for."""

    def behave(handler: Handler) -> None:
        handler.begin_stream()
        while not handler.server.closing.is_set():
            if handler.path == CHATS[0]:
                handler.line(chat(word, **UNFINISHED))
            else:
                payload = b"data: " + json.dumps({"choices": [{"delta": {"content": word}}]}).encode() + b"\n\n"
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(payload), payload))

    return behave


def resets(handler: Handler) -> None:
    """Break off, before the headers or within a stream."""
    handler.reset()


def resets_in_the_body(handler: Handler) -> None:
    handler.send(200, b'{"model": "qwen3:4b-instruct", "message": {"ro', length=1000)
    handler.reset()
