"""The folder of an embedded database. Without the driver, which takes long to load."""

from __future__ import annotations

from pathlib import Path

import platformdirs


def default_folder() -> Path:
    """Give the folder of the store that is opened without a name."""
    return platformdirs.user_data_path("memstore", appauthor=False) / "postgres"
