#!/usr/bin/env python3
"""Print the OpenAPI description of the REST server, as a running one has it at /openapi.json."""

from __future__ import annotations

import json
from types import SimpleNamespace

from memstore.server.http.app import create_app
from memstore.settings import Settings

if __name__ == "__main__":
    print(json.dumps(create_app(SimpleNamespace(settings=Settings(), tokens=None)).openapi(), indent=1))
