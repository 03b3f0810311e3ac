"""The embedded server: a private Postgres in a folder of the user's, started, shared and stopped by those who open it.

    FOLDER/lock           held while somebody starts or stops the server
    FOLDER/clients        held, shared, by every process that has the folder open
    FOLDER/server         held by every process of the server, which inherit it, until the last is gone
    FOLDER/data           the cluster, with the database `memstore`; made aside and renamed when it is complete
    FOLDER/run            the socket, unless its path would be too long
    FOLDER/server.log     no statement and no text of a user gets in there

`server` counts who has the folder open, `postmaster` starts and stops the server's processes, `data_directory` makes
the cluster, `programs` finds Postgres' own, and `folder` is the account that all of this belongs to, and the locks.
"""

from __future__ import annotations

from pathlib import Path

import platformdirs

from memstore.errors import EmbeddedError

EMBEDDED = "embedded"


def default_folder() -> Path:
    # Said here, where no driver is loaded.
    return platformdirs.user_data_path("memstore", appauthor=False) / "postgres"


def is_embedded(url: str) -> bool:
    """Whether this is an embedded database, and no URL. "embedded:" is neither: a variable was empty."""
    return url == EMBEDDED or (url.startswith(f"{EMBEDDED}:") and url != f"{EMBEDDED}:")


def embedded_folder(url: str) -> Path:
    """Return the folder of an embedded database: what follows "embedded:", or the user's data folder."""
    _, _, folder = url.partition(":")
    try:
        return (Path(folder) if folder else default_folder()).expanduser()
    except RuntimeError:
        raise EmbeddedError(
            f"The folder of {url} is in a home folder, and this account has none. Set HOME, or give the whole path: "
            "embedded:/FOLDER (MEMSTORE_DATABASE_URL)."
        ) from None
