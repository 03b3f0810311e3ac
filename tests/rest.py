"""Servers for tests: in this process with no socket or on a free port, and as a process of their own."""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from memstore.client.store import AsyncMemoryStore
from memstore.server.http.app import GracefulServer, create_app, uvicorn_config
from tests.command_line import environment, variables

HASHING = {"embedder": "hashing:256"}
PROBLEM = "application/problem+json"


def path(user: str, *rest: str) -> str:
    """Give the path of something of a user's; names are encoded whole."""
    return "/".join(["/v1/users", *(quote(one, safe="").replace(".", "%2E") for one in (user, *rest))])


def bearer(secret: str | None) -> dict[str, str]:
    return {} if secret is None else {"Authorization": f"Bearer {secret}"}


def said(*texts: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text} for text in texts]}


@asynccontextmanager
async def asking(
    store: AsyncMemoryStore,
    *,
    token: str | None = None,
    allow_local: bool = True,
    hosts: Sequence[str] = ("127.0.0.1",),
    **options: Any,
) -> AsyncIterator[httpx.AsyncClient]:
    """Give a client of an app over the store, with a token where there is one."""
    app = create_app(store, allow_local=allow_local, hosts=hosts, **options)
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=bearer(token)) as client:
            yield client


@asynccontextmanager
async def serving(store: AsyncMemoryStore, **options: Any) -> AsyncIterator[tuple[httpx.AsyncClient, GracefulServer]]:
    app = create_app(store, allow_local=True, hosts=("127.0.0.1",), **options)
    with socket.create_server(("127.0.0.1", 0)) as bound:
        server = GracefulServer(uvicorn_config(app))
        task = asyncio.ensure_future(server.serve(sockets=[bound]))
        try:
            base = f"http://127.0.0.1:{bound.getsockname()[1]}"
            async with httpx.AsyncClient(base_url=base, timeout=60) as client:
                yield client, server
        finally:
            server.stop()
            await task


@contextmanager
def served(url: str, folder: Path, **settings: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a server as a process of its own; give it, and where it answers. Its log is a file of the folder."""
    command = [sys.executable, "-m", "memstore", "-v", "serve", "--port", "0", "--json", "-d", url]
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            command, env=environment(**variables(settings)), stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        assert process.stdout is not None
        said = ""
        while not said.endswith("}\n") and (line := process.stdout.readline()):
            said += line
        yield process, json.loads(said)["url"]
    finally:
        process.kill()
        process.communicate()
