"""The server as a program: opens the store, binds the port, serves until a signal, and lets requests finish."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import uvicorn
from fastapi import FastAPI

from memstore.errors import ConfigurationError
from memstore.memory.store import AsyncMemoryStore
from memstore.memory.worker import stopped_by_signals
from memstore.server.http import metrics
from memstore.server.http.app import create_app
from memstore.server.http.beside import Beside
from memstore.server.http.door import is_loopback
from memstore.server.inspector.app import inspector
from memstore.server.listening import listening
from memstore.settings import Settings
from memstore.waiting import in_thread

KEPT_ALIVE = 75  # seconds; longer than a proxy keeps its side, which would else ask on a connection that ends
PART = 0.9  # of a request's deadline, for a call of MCP: that it was given up is told before its answer is cut off


@dataclass(frozen=True, slots=True)
class Serving:
    """Where a server answers, and whether it asks for tokens."""

    url: str
    open: bool


class Server(uvicorn.Server):
    """Stops when it is told to: no new connections, streams end, requests under way are finished."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._tell = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and say so."""
        await super().startup(sockets)
        if self.started:
            self._tell()

    def stop(self) -> None:
        """Begin to stop."""
        _app(self).state.bell.stop()
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Have the first signal stop it, and the next one end the process."""
        with stopped_by_signals(self):
            yield


async def serve(
    url: str | None = None,
    *,
    host: str,
    port: int,
    settings: Settings | Mapping[str, Any] | None = None,
    ui: bool = True,
    ui_writes: bool = False,
    told: Callable[[Serving], None],
) -> None:
    """Serve a store until SIGTERM or SIGINT; `told` is called once it answers. Port 0 is any that is free.

    With `ui` there are pages for people, which change something only with `ui_writes`.

    Raises `ConfigurationError` where others than this machine's user could ask and there is no token.
    """
    async with await AsyncMemoryStore.open(url, settings=settings) as store:
        await in_thread(lambda: store.embedder)  # one that cannot be had is told now, not to the first client
        known = store.settings.server_hosts
        at_home = is_loopback(host)
        alone = at_home and not known  # who names another host has a proxy, which may let anybody in
        without = not await store.tokens.exist()
        if without and not alone:
            raise ConfigurationError(
                f"Whoever reaches {', '.join((host, *known))} could read every memory: make a token first, with "
                "memstore token create --operator or --user NAME; or leave --host and MEMSTORE_SERVER_HOSTS out, and "
                "only this machine is served."
            )
        hosts = (host, *known) if at_home or known else ()
        metrics.collect()
        pages = inspector(writes=ui_writes) if ui else None
        app = create_app(store, open_without_tokens=alone, hosts=hosts, mounted=_beside(store), pages=pages)
        with listening(host, port) as bound:
            answering = Serving(_url(host, bound), without)
            await Server(configuration(app, store.settings), lambda: told(answering)).serve(sockets=[bound])


def _beside(store: AsyncMemoryStore) -> dict[str, Beside]:
    """Give what is served beside REST, by path: MCP, where its extra is installed."""
    if find_spec("mcp") is None:
        return {}
    from memstore.server.mcp.http import PREFIX, McpApp  # noqa: PLC0415  (another extra, which may not be there)

    seconds = PART * store.settings.server_timeout_seconds
    return {PREFIX: McpApp(store, check_host=False, timeout=seconds)}  # the door checks the names by which it is asked


def _app(server: Server) -> FastAPI:
    assert isinstance(server.config.app, FastAPI)
    return server.config.app


def configuration(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """Give what uvicorn is told: no log of its own, for its lines have paths, and so names; `told` writes ours."""
    return uvicorn.Config(
        app,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEPT_ALIVE,
        timeout_graceful_shutdown=round(settings.server_stop_seconds),
    )


def _url(host: str, bound: socket.socket) -> str:
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{bound.getsockname()[1]}"
