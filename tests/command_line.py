"""The command line as a process of its own, and what a command gives back."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

SCRIPT = Path(sys.executable).parent / "memstore"
EMBEDDER = "hashing:256"


class Ended(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ended]


def variables(settings: dict[str, str]) -> dict[str, str]:
    return {f"MEMSTORE_{name.upper()}": value for name, value in settings.items()}


def environment(**more: str) -> dict[str, str]:
    """Give the variables of a process that has no settings but these, and an embedder without weights."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("MEMSTORE_")}
    given = {"MEMSTORE_CONFIG": "", "MEMSTORE_EMBEDDER": EMBEDDER, "COLUMNS": "100"}
    return own | given | more


def script(*args: str, **settings: str) -> Ended:
    env = environment(**variables(settings))
    ran = subprocess.run([SCRIPT, *args], env=env, capture_output=True, text=True, timeout=120)
    return Ended(ran.returncode, ran.stdout, ran.stderr)
