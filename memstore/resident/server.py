"""The loop of the resident encoder: a thread to a connection, and an end when nobody has asked for a while."""

from __future__ import annotations

import logging
import os
import resource
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
from memstore.socket_place import leave, say_ready

LOOKED_AFTER = 5.0  # seconds; how soon it sees that its time is over or its socket gone
SECONDS_OF_SILENCE = 60.0  # after which a line is hung up; who has more to ask connects again
MOST_LINES = 128  # threads, which wait
FILES_PER_LINE = 4  # of those that the system allows: stores and models need some too
SECONDS_TO_RECOVER = 0.1  # where the system refuses a file or a thread

logger = logging.getLogger("memstore")


class Encoder:
    """Answers at a socket until nobody asked for so many minutes, somebody says stop, or the socket is removed.

    `place` is the descriptor of the lock that makes it the one who answers there.
    """

    def __init__(self, path: Path, place: int, listening: socket.socket, embedder: str, minutes: float) -> None:
        self._path = path
        self._place = place
        self._listening = listening
        self._identity = path.stat().st_ino
        self._minutes = minutes
        self._answers = Answers(embedder)
        self._ended = threading.Event()
        self._asking = 0
        self._last = self._began = time.monotonic()
        self._counting = threading.Lock()
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._lines = threading.Semaphore(max(1, min(MOST_LINES, files // FILES_PER_LINE)))

    def serve(self) -> None:
        """Answer until the end; then whoever is connected is hung up on, and what was opened is closed."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop)
        threading.Thread(target=self._warm_up, name="warm-up", daemon=True).start()
        self._listening.settimeout(min(LOOKED_AFTER, 60 * self._minutes / 4))
        while not self._is_over():
            self._accept()
        self._leave()

    def _accept(self) -> None:
        """Wait for a connection and have a thread answer it; with too many, the newest is hung up."""
        try:
            connected, _ = self._listening.accept()
        except TimeoutError:
            return
        except OSError:  # too many open files; who waits in the queue is answered once there are fewer
            self._ended.wait(SECONDS_TO_RECOVER)
            return
        if not self._lines.acquire(blocking=False):
            connected.close()
            return
        try:
            threading.Thread(target=self._talk, args=[connected], name="line", daemon=True).start()
        except RuntimeError:  # the system gives no more threads
            connected.close()
            self._lines.release()

    def _warm_up(self) -> None:
        """Load the model before anybody waits for it; whoever asks first is told why where that fails."""
        try:
            with suppress(MemstoreError):
                self._answers.embedder  # noqa: B018
        finally:
            say_ready(self._place)

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
        leave(self._path, self._place)

    def _talk(self, connected: socket.socket) -> None:
        """Answer one connection until it is hung up; whoever goes away in the middle is nobody's trouble."""
        try:
            with suppress(OSError, ValueError, Unanswered), Line(connected) as line:
                check_peer(connected)
                connected.settimeout(SECONDS_OF_SILENCE)
                while (received := line.receive()) is not None:
                    line.send(*self._answered(received[0]))
        finally:
            self._lines.release()

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
