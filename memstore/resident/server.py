"""The loop of the resident encoder: a thread to a connection, and an end when nobody has asked for a while."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

from memstore.errors import MemstoreError
from memstore.local_socket import Line, Message, Unanswered, check_peer
from memstore.resident.answers import Answers

LOOKED_AFTER = 5.0  # seconds; how soon it sees that its time is over or its socket gone

logger = logging.getLogger("memstore")


class Encoder:
    """Answers at a socket until nobody asked for so many minutes, somebody says stop, or the socket is removed."""

    def __init__(self, path: Path, listening: socket.socket, embedder: str, minutes: float) -> None:
        self._path = path
        self._listening = listening
        self._identity = path.stat().st_ino
        self._minutes = minutes
        self._answers = Answers(embedder)
        self._ended = threading.Event()
        self._asking = 0
        self._last = self._began = time.monotonic()
        self._counting = threading.Lock()

    def serve(self) -> None:
        """Answer until the end; then whoever is connected is hung up on, and what was opened is closed."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop)
        threading.Thread(target=self._warm_up, name="warm-up", daemon=True).start()
        self._listening.settimeout(min(LOOKED_AFTER, 60 * self._minutes / 4))
        while not self._is_over():
            with suppress(TimeoutError):
                connected, _ = self._listening.accept()
                threading.Thread(target=self._talk, args=[connected], name="line", daemon=True).start()
        self._leave()

    def _warm_up(self) -> None:
        """Load the model before anybody waits for it; whoever asks first is told why where that fails."""
        with suppress(MemstoreError):
            self._answers.embedder  # noqa: B018

    def _stop(self, number: int = 0, frame: FrameType | None = None) -> None:
        self._ended.set()

    def _is_over(self) -> bool:
        with self._counting:
            idle = not self._asking and time.monotonic() - self._last > 60 * self._minutes
        return idle or self._ended.is_set() or not self._is_there()

    def _is_there(self) -> bool:
        with suppress(OSError):
            return self._path.stat().st_ino == self._identity
        return False

    def _leave(self) -> None:
        if self._is_there():
            self._path.unlink(missing_ok=True)
        self._listening.close()
        self._answers.close()

    def _talk(self, connected: socket.socket) -> None:
        """Answer one connection until it is hung up; whoever goes away in the middle is nobody's trouble."""
        with suppress(OSError, ValueError, Unanswered), Line(connected) as line:
            check_peer(connected)
            connected.settimeout(None)
            while (received := line.receive()) is not None:
                line.send(*self._answered(received[0]))

    def _answered(self, message: Message) -> tuple[Message, bytes]:
        with self._counting:
            self._asking += 1
        try:
            return self._ways.get(str(message.get("ask")), self._answers.answer)(message)
        except MemstoreError as error:
            return {"error": str(error), "kind": type(error).__name__}, b""
        except Exception as error:  # whatever a model or a message of another version does: others are answered still
            logger.warning("a question failed: %s", type(error).__name__, exc_info=error)
            return {"error": f"{type(error).__name__} in the resident encoder", "kind": ""}, b""
        finally:
            with self._counting:
                self._asking -= 1
                self._last = time.monotonic()

    @property
    def _ways(self) -> dict[str, Callable[[Message], tuple[Message, bytes]]]:
        return {"status": self._status, "stop": self._end}

    def _status(self, message: Message) -> tuple[Message, bytes]:
        seconds = int(time.monotonic() - self._began)
        return {"process": os.getpid(), "seconds": seconds, "minutes": self._minutes} | self._answers.state(), b""

    def _end(self, message: Message) -> tuple[Message, bytes]:
        self._stop()
        with suppress(Unanswered):  # the loop waits for a connection: here is one
            Line.to(self._path).close()
        return {"stopped": True}, b""
