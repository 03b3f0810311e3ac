#!/usr/bin/env python3
"""Record `memstore demo` in a terminal as a moving picture: docs/pictures/demo.svg, light and dark, without a script.

tools/cast.py [FILE]

The text and its colours are exactly what the command printed. Only the pace is made up: the demo prints its results at
once, and the picture shows them line by line.
"""

from __future__ import annotations

import os
import pty
import re
import struct
import sys
import termios
from fcntl import ioctl
from html import escape
from pathlib import Path
from typing import NamedTuple

from rich.cells import cell_len

COLUMNS, ROWS = 96, 26
CELL, LINE = 7.8, 18.0  # pixels, of a 13 px font
LINE_SECONDS, STEP_SECONDS, END_SECONDS = 0.12, 1.8, 5.0
COMMAND = "memstore demo"
SGR = re.compile(r"\x1b\[([\d;]*)m")
ERASED_LINE = re.compile(r"(?:\n(?:\x1b\[\?25h)?\r?\x1b\[1A)?\x1b\[2K")  # the line, or with a step up the one before
OTHER_CODES = re.compile(r"\x1b\[[\d;?]*[A-Za-ln-z]|\x1b[()].|[\x07\x0e\x0f]")
COLOURS = {30: "k", 31: "r", 32: "g", 33: "y", 34: "b", 35: "m", 36: "c", 90: "d"}
LIGHT = {"k": "#57606a", "r": "#cf222e", "g": "#116329", "y": "#7d4e00", "b": "#0550ae", "m": "#8250df", "c": "#1b7c83"}
DARK = {"k": "#8b949e", "r": "#ff7b72", "g": "#7ee787", "y": "#e3b341", "b": "#79c0ff", "m": "#d2a8ff", "c": "#76e3ea"}


class Span(NamedTuple):
    """Characters of one style, from a column on."""

    column: int
    style: str
    text: str


def record() -> str:
    """Return everything that the command writes to a terminal of this size."""
    pid, terminal = pty.fork()
    if not pid:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMSTORE_")}
        environment |= {"TERM": "xterm-256color", "MEMSTORE_CONFIG": "", "COLUMNS": str(COLUMNS)}
        command = Path(sys.executable).parent / "memstore"
        os.execve(command, [str(command), "demo"], environment)  # nosec B606  # this program, fixed arguments
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    pieces = []
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # how Linux says that the other end is closed
            piece = b""
        if not piece:
            break
        pieces.append(piece)
    if code := os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise SystemExit(f"memstore demo ended with {code}")
    return b"".join(pieces).decode()


def read_lines(output: str) -> list[list[Span]]:
    """Return the lines as they stand at the end, wrapped at the terminal's width."""
    lines: list[list[Span]] = []
    style = ""
    output = ERASED_LINE.sub("\r", output.replace("\r\n", "\n"))
    for line in OTHER_CODES.sub("", output).split("\n"):
        lines.append([])
        column = 0
        for part in re.split(r"(\x1b\[[\d;]*m)", line.rpartition("\r")[2]):  # progress writes over its own line
            if code := SGR.fullmatch(part):
                style = _style(code[1], style)
                continue
            for character in part:
                width = cell_len(character)
                if column + width > COLUMNS:
                    lines.append([])
                    column = 0
                spans = lines[-1]
                if spans and spans[-1].style == style:
                    spans[-1] = spans[-1]._replace(text=spans[-1].text + character)
                else:
                    spans.append(Span(column, style, character))
                column += width
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _style(codes: str, style: str) -> str:
    """Return the classes that hold after an escape sequence: a letter for the colour, B for bold."""
    for code in map(int, (codes or "0").split(";")):
        if code == 0:
            style = ""
        elif code == 1:
            style = style.replace("B", "") + "B"
        elif code in COLOURS:
            style = COLOURS[code] + ("B" if "B" in style else "")
    return style


def draw(lines: list[list[Span]]) -> str:
    """Return the picture."""
    lines = [[Span(0, "d", "$ "), Span(2, "B", COMMAND)], *lines]
    width, height = COLUMNS * CELL + 32, ROWS * LINE + 56
    seconds, moments = 1.0, [0.0]
    for line in lines[1:]:
        text = "".join(span.text for span in line)
        seconds += STEP_SECONDS if re.match(r"[2-5]\. |── system|your own:", text) else LINE_SECONDS
        moments.append(seconds)
    total = seconds + END_SECONDS
    scroll, cover = [], []
    for count, moment in enumerate(moments, 1):
        at = f"{100 * moment / total:.2f}%"
        if count <= ROWS:
            cover.append(f"{at}{{transform:translateY({count * LINE:g}px)}}")
        else:
            scroll.append(f"{at}{{transform:translateY({(ROWS - count) * LINE:g}px)}}")
    rows = "\n".join(row for place, line in enumerate(lines) if (row := _row(line, place)))
    end = max(0, len(lines) - ROWS) * LINE
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" \
aria-label="A terminal that runs {COMMAND}">
<!-- written by tools/cast.py from what the command printed -->
<style>
svg{{--bg:#ffffff;--fg:#1f2328;--edge:#d0d7de;--d:#6e7781;{_variables(LIGHT)}}}
@media (prefers-color-scheme:dark){{svg{{--bg:#0d1117;--fg:#e6edf3;--edge:#30363d;--d:#8b949e;{_variables(DARK)}}}}}
text{{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:var(--fg);white-space:pre}}
{"".join(f".{name}{{fill:var(--{name})}}" for name in [*LIGHT, "d"])}.B{{font-weight:bold}}
.scroll{{animation:scroll {total:.1f}s step-end infinite}}.cover{{fill:var(--bg);animation:cover {total:.1f}s step-end infinite}}
@keyframes scroll{{0%{{transform:none}}{"".join(scroll)}100%{{transform:translateY({-end:g}px)}}}}
@keyframes cover{{{"".join(cover)}100%{{transform:translateY({ROWS * LINE:g}px)}}}}
@media (prefers-reduced-motion:reduce){{.scroll{{animation:none}}.cover{{display:none}}}}
</style>
<rect x=".5" y=".5" width="{width - 1:g}" height="{height - 1:g}" rx="8" fill="var(--bg)" stroke="var(--edge)"/>
<g fill="var(--edge)"><circle cx="20" cy="20" r="6"/><circle cx="40" cy="20" r="6"/><circle cx="60" cy="20" r="6"/></g>
<clipPath id="w"><rect x="0" y="40" width="{width:g}" height="{ROWS * LINE + 4:g}"/></clipPath>
<g clip-path="url(#w)"><g class="scroll">
{rows}
</g><rect class="cover" x="1" y="40" width="{width - 2:g}" height="{ROWS * LINE + 4:g}"/></g>
</svg>
"""


def _variables(colours: dict[str, str]) -> str:
    return ";".join(f"--{name}:{value}" for name, value in colours.items())


def _row(line: list[Span], place: int) -> str:
    """Return a line; every span is put into its column, so that no font shifts a table."""
    y = f"{54 + place * LINE:g}"
    spans = [span for span in line if span.text.strip()]
    texts = []
    for span in spans:
        text = span.text.rstrip()
        column = span.column + cell_len(text) - cell_len(text.lstrip())
        texts.append((16 + column * CELL, " ".join(span.style), text.lstrip()))
    parts = "".join(
        f'<tspan x="{x:g}"{f" class={style!r}" if style else ""}>{escape(text, quote=False)}</tspan>'
        for x, style, text in texts
    )
    return f'<text y="{y}">{parts}</text>' if parts else ""


if __name__ == "__main__":
    file = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "pictures" / "demo.svg")
    file.write_text(draw(read_lines(record())), encoding="utf-8")
    print(f"{file}: {file.stat().st_size:,} bytes")
