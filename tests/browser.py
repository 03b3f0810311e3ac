"""The distribution's Chromium, for tests of pages."""

import shutil
from pathlib import Path

_found = shutil.which("chromium") or shutil.which("chromium-browser")
CHROMIUM = Path(_found) if _found else None
FLAGS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]  # a container is sandbox enough, and has no GPU
