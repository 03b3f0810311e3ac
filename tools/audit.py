#!/usr/bin/env python3
"""Ask whether a locked version has a known hole, by pip-audit; exit 1 where one has.

It needs a network that leads to advisories. Where there is none nothing is known, and that is said, not passed over:
with AUDIT=required, as in CI, that is a failure too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

LOCK = Path(__file__).with_name("lock.txt")
SECONDS = 180
COMMAND = [
    "pip_audit",
    "--disable-pip",
    "--require-hashes",
    "-r",
    str(LOCK),
    "--format",
    "json",
    "--progress-spinner",
    "off",
]


def main() -> int:
    """Ask, and print what was found."""
    try:
        asked = subprocess.run([sys.executable, "-m", *COMMAND], capture_output=True, text=True, timeout=SECONDS)
        answer = json.loads(asked.stdout or "{}").get("dependencies", [])
        why = asked.stderr.strip().splitlines()[-1:] or ["no answer"]
    except subprocess.TimeoutExpired:
        answer, why = [], [f"no answer in {SECONDS} seconds"]
    known = [one for one in answer if "skip_reason" not in one]
    if not known:
        print(
            f"pip-audit: SKIPPED, no advisories are to be had from here: {why[0] if not answer else 'not one package is known'}"
        )
        return int(os.environ.get("AUDIT") == "required")
    holes = [(one, hole) for one in known for hole in one["vulns"]]
    for one, hole in holes:
        mended = ", ".join(hole["fix_versions"]) or "no version yet"
        print(f"pip-audit: {one['name']} {one['version']}: {hole['id']}, mended in {mended}")
    unknown = len(answer) - len(known)
    print(
        f"pip-audit: {len(known)} packages, {len(holes)} known holes"
        + (f", {unknown} of which nothing is known" if unknown else "")
    )
    return int(bool(holes))


if __name__ == "__main__":
    sys.exit(main())
