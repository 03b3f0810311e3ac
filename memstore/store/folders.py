"""The folder of an embedded database: where it is, and which one. Without the driver, which takes long to load."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import platformdirs

Place = list[int] | None


def default_folder() -> Path:
    """Give the folder of the store that is opened without a name."""
    return platformdirs.user_data_path("memstore", appauthor=False) / "postgres"


def place_of(folder: Path) -> Place:
    """Give the disk and the file that a path leads to, and when its database was made; None where there is none.

    In another container the same path may lead elsewhere, and a database that was removed and made anew is another one.
    """
    with suppress(OSError):
        data = (folder / "data").stat()
        return [data.st_dev, data.st_ino, (folder / "data" / "PG_VERSION").stat().st_mtime_ns]
    return None
