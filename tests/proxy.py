"""A proxy before Postgres that cuts a connection in the middle of a statement, as networks do."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from psycopg.conninfo import conninfo_to_dict

Socket = socket.socket


class CuttingProxy:
    """Listens on a port of 127.0.0.1 and hands on to the server of `url`, which listens on a Unix socket.

    Once `cut(word, arrived)` was called, the first connection on which a client sends that word is cut: before the
    server has it, or once it has `arrived` there and the server has answered, of which the client hears nothing.
    """

    def __init__(self, url: str) -> None:
        options = conninfo_to_dict(url)
        self._server = f"{options['host']}/.s.PGSQL.{options.get('port', 5432)}"
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.url = f"postgresql://{options['user']}@127.0.0.1:{port}/{options['dbname']}"
        self._word: bytes | None = None
        self._arrived = False
        self.cuts = 0
        self._sockets = [self._listener]
        self._threads: list[threading.Thread] = []
        self._begin(self._listen)

    def cut(self, word: bytes, *, arrived: bool) -> None:
        self._word, self._arrived = word, arrived

    def __enter__(self) -> CuttingProxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(timeout=10)
        for one in self._sockets:
            one.close()

    def _begin(self, work: Callable[..., None], *arguments: object) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self._threads[-1].start()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                self._sockets += [client, server]
                server.connect(self._server)
                self._begin(self._hand_on, client, server, True)
                self._begin(self._hand_on, server, client, False)

    def _hand_on(self, one: Socket, other: Socket, from_client: bool) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                if from_client and self._word and self._word in data:
                    self._word, arrived = None, self._arrived
                    self.cuts += 1
                    one.shutdown(socket.SHUT_RDWR)
                    if arrived:
                        other.sendall(data)
                        other.recv(65536)  # the answer, so that it is done
                    break
                other.sendall(data)
        with suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)
