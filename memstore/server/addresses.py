"""Addresses: the socket on which a server listens, and the user whom a URL path names."""

from __future__ import annotations

import socket
from typing import NamedTuple
from urllib.parse import unquote

from memstore.errors import ConfigurationError, InvalidInput
from memstore.ingest.check import check_name

BACKLOG = 2048
LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")


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


class UserPath(NamedTuple):
    """The user that a path names, and what follows the name and its slash."""

    user: str
    rest: str


def parse_user_path(raw_path: bytes, prefix: str) -> UserPath | None:
    """Parse `/prefix/{user}/…` from the undecoded path; return None where it names no valid user.

    The name is one percent-encoded part of the path. The prefix must be written literally: a percent-encoded one
    would let the router and this function see different users.
    """
    path = raw_path.partition(b"?")[0].decode("latin-1")
    name, _, rest = path.removeprefix(f"{prefix}/").partition("/")
    if not path.startswith(f"{prefix}/") or not name.isascii():
        return None
    try:
        user = unquote(name, errors="strict")
        check_name(user, "user")
    except (UnicodeDecodeError, InvalidInput):
        return None
    return UserPath(user, rest)
