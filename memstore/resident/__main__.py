"""`python -m memstore.resident SOCKET EMBEDDER MINUTES` leaves an encoder behind in the background, and ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from memstore.local_socket import listen
from memstore.socket_place import take


def main() -> int:
    """Take the place at the socket and go on as a child of nobody; where it is taken, there is nothing to do."""
    path, embedder, minutes = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    os.umask(0o077)
    place = take(path)
    if place is None:
        return 0
    listening = listen(path)  # before anybody hears of it: who connects now waits until the model is loaded
    if os.fork():
        os._exit(0)  # the lock and the socket go on in the child
    os.ftruncate(2, 0)
    from memstore.resident.server import Encoder  # noqa: PLC0415  (after the fork, which is to be small)

    Encoder(path, place, listening, embedder, minutes).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
