"""Processes by what they are: a pid out of a file says nothing until its command line agrees."""

from __future__ import annotations

import subprocess
from pathlib import Path

PROC = Path("/proc")


def command_of(pid: int) -> str:
    """Give the command line of a process; empty if it is gone, or dead and not yet taken leave of."""
    if _has_proc():
        return _from_proc(pid)
    return _ps("command=", "-p", str(pid)).strip()


def processes_of(mark: str) -> list[int]:
    """Give the processes whose command line or title holds the mark."""
    if _has_proc():
        pids = [int(entry.name) for entry in PROC.iterdir() if entry.name.isdecimal()]
        return [pid for pid in pids if mark in _from_proc(pid)]
    lines = [line.split(maxsplit=1) for line in _ps("pid=,command=", "-ax").splitlines() if mark in line]
    return [int(pid) for pid, _ in lines]


def _has_proc() -> bool:
    return (PROC / "self").exists()


def _from_proc(pid: int) -> str:
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""


def _ps(columns: str, *which: str) -> str:
    command = ["ps", "-ww", *which, "-o", columns]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
    return done.stdout.decode(errors="replace")
