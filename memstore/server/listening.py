"""The port on which a server listens."""

from __future__ import annotations

import socket

from memstore.errors import ConfigurationError

BACKLOG = 2048


def listening(host: str, port: int) -> socket.socket:
    """Give a socket that listens there, on any free port for 0; raises `ConfigurationError` where that cannot be."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        found = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        told = f"{host} has no port {port} for it ({error.strerror}): give another --port, 0 for any."
        raise ConfigurationError(told) from None
    # Connections inherit it. asyncio sets it only on those of a socket that names its protocol, as this one does not,
    # and the body of an answer would wait 40 ms until the client acknowledges the head.
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found
