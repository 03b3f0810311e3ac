"""The server as a program: opens the store, binds the port, serves until a signal, and lets requests finish."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from ipaddress import ip_address
from typing import TYPE_CHECKING

import uvicorn
from fastapi import FastAPI

from memstore._compat import to_thread
from memstore.client.store import AsyncMemoryStore
from memstore.client.worker import stop_on_signals
from memstore.errors import ConfigurationError
from memstore.server.http.app import create_app
from memstore.server.http.middleware import LOCAL_HOSTS
from memstore.server.http.operations import collect_metrics
from memstore.settings import Settings

if TYPE_CHECKING:  # another extra, which may not be there
    from memstore.server.mcp.server import McpApp

BACKLOG = 2048
KEEP_ALIVE = 75  # seconds; longer than a proxy keeps its side, which would else ask on a connection that ends


class GracefulServer(uvicorn.Server):
    """Stops gracefully: no new connections, requests under way are finished."""

    def stop(self) -> None:
        """Begin to stop."""
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at the first signal; the next one ends the process."""
        with stop_on_signals(self):
            yield


async def serve(
    url: str | None = None,
    *,
    host: str,
    port: int,
    ui_writes: bool = False,
    on_start: Callable[[str, bool], None],
) -> None:
    """Serve a store until SIGTERM or SIGINT; `on_start` is called once it listens, with its URL and
    whether it needs no token. Port 0 is any that is free.

    Raise `ConfigurationError` where others than this machine's user could ask and there is no token.
    """
    async with await AsyncMemoryStore.open(url) as store:
        await to_thread(lambda: store.embedder)  # one that is missing fails now, not at the first request
        named_hosts, is_local = store.settings.server_hosts, _is_loopback(host)
        allow_local = is_local and not named_hosts  # a named host has a proxy, which may let anybody in
        has_tokens = await store.tokens.exist()
        if not has_tokens and not allow_local:
            raise ConfigurationError(
                f"Everybody who reaches {', '.join((host, *named_hosts))} could read every memory: make a token first, "
                "with memstore token create --operator or --user NAME. Without --host and MEMSTORE_SERVER_HOSTS, only "
                "this machine is served."
            )
        bracketed = f"[{host}]" if ":" in host else host
        hosts = (bracketed, *LOCAL_HOSTS, *named_hosts) if is_local or named_hosts else ()
        collect_metrics()
        app = create_app(store, allow_local=allow_local, hosts=hosts, mcp=load_mcp(store), ui_writes=ui_writes)
        with open_socket(host, port) as listener:
            on_start(f"http://{bracketed}:{listener.getsockname()[1]}", not has_tokens)
            await GracefulServer(uvicorn_config(app, store.settings)).serve(sockets=[listener])


def uvicorn_config(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """Return uvicorn's configuration, with no log of its own: its lines have paths, and so names."""
    return uvicorn.Config(
        app,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=round(settings.server_stop_seconds),
    )


def load_mcp(store: AsyncMemoryStore) -> McpApp | None:
    """Return what serves MCP; None where its extra is not installed."""
    if find_spec("mcp") is None:
        return None
    from memstore.server.mcp.server import McpApp  # noqa: PLC0415  (another extra, which may not be there)

    return McpApp(store, timeout=store.settings.server_timeout_seconds)


def open_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket, on any free port for 0. Raise `ConfigurationError` where the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        message = f"{host} has no port {port} for it ({error.strerror}): give another --port, 0 for any."
        raise ConfigurationError(message) from None
    # Connections inherit it. asyncio sets it only for sockets that name their protocol, which this one does not;
    # without it the body of an answer waits 40 ms until the client acknowledges the head.
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return server


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
