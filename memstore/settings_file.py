"""The file with the system's settings: where it is, and what it holds.

It is TOML, with the options of `Settings` by their names. It lies where `MEMSTORE_CONFIG` says, else in the user's
folder for configuration, as `memstore.toml`; with `MEMSTORE_CONFIG` set to nothing there is none.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

from platformdirs import user_config_path

from memstore.errors import ConfigurationError

VARIABLE = "MEMSTORE_CONFIG"
NAME = "memstore.toml"


def path() -> Path | None:
    """Give where the file is, or would be; None where `MEMSTORE_CONFIG` is set to nothing."""
    named = next((value for name, value in os.environ.items() if name.upper() == VARIABLE), None)
    if named is None:
        return user_config_path("memstore", appauthor=False) / NAME
    try:
        return Path(named).expanduser() if named.strip() else None
    except RuntimeError:  # "~nobody" of a user that there is not
        raise ConfigurationError(f"{VARIABLE}={named!r:.60}: there is no such user; give a whole path.") from None


def read() -> dict[str, Any]:
    """Give what the file says; nothing where there is none. Raises `ConfigurationError` for one that is no TOML.

    A file that `MEMSTORE_CONFIG` names must be there: the default would silently be another database.
    """
    file = path()
    if file is None:
        return {}
    try:
        return tomllib.loads(_text(file))
    except FileNotFoundError:
        if VARIABLE not in map(str.upper, os.environ):
            return {}
        raise ConfigurationError(f"{VARIABLE} names {file}, which is not there.") from None
    except RecursionError:
        raise ConfigurationError(f"{file} is nested too deeply. Correct it, or move it away.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} is no TOML: {error}. Correct it, or move it away.") from None
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}.") from None


def _text(file: Path) -> str:
    """Give what is in the file, a mark of its byte order aside. Refuses a pipe, which may block."""
    if file.exists() and not file.is_file():
        raise ConfigurationError(f"{file} is no regular file. Correct it, or move it away.")
    return file.read_text(encoding="utf-8-sig")
