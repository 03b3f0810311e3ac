#!/usr/bin/env python3
"""Write docs/reference/openapi.json: what the REST server says of itself.

tools/openapi.py            write it
tools/openapi.py --check    exit 1 when it is stale
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from memstore.server.http.app import create_app
from memstore.settings import Settings

FILE = Path(__file__).parents[1] / "docs" / "reference" / "openapi.json"


def document() -> str:
    """Give the description; no store is opened for it."""
    closed: Any = SimpleNamespace(settings=Settings(), tokens=None)
    return json.dumps(create_app(closed).openapi(), indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    wanted = document()
    if "--check" not in sys.argv:
        FILE.write_text(wanted, encoding="utf-8")
        return 0
    stale = not FILE.is_file() or FILE.read_text(encoding="utf-8") != wanted
    if stale:
        print(f"{FILE.name} is not what the server says; run tools/openapi.py")
    return int(stale)


if __name__ == "__main__":
    sys.exit(main())
