"""The socket on which a server listens."""

from __future__ import annotations

import socket

from memstore.server.addresses import open_socket


def test_an_answer_in_two_packets_is_not_held_back() -> None:
    with (
        open_socket("127.0.0.1", 0) as server,
        socket.create_connection(server.getsockname()),
        server.accept()[0] as connection,
    ):
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
