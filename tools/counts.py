#!/usr/bin/env python3
"""Count what makes the package hard to read, and refuse more of it than there is: tools/counts.py [--by-module]

LIMITS go down, but for the lines of a new feature, which its commit names. Counted are, in `memstore/` without its
generated twins: module constants, regular expressions, comments behind a line, names that are pronouns, functions of a
complexity above 20 (by ruff), and lines.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "memstore"
LIMITS = {
    "module constants": 682,
    "regular expressions": 116,
    "comments behind a line": 141,
    "pronouns as names": 1,  # `Decision.others`, which is public
    "functions of a complexity above 20": 0,
    "lines": 43_645,
}
CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")
PRONOUNS = {"one", "some", "own", "others"}
ALLOWED = ("type: ignore", "noqa", "pragma", "fmt:")
LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT}
COMPLEXITY = ("--select=C901", "--config=lint.mccabe.max-complexity=20", "--output-format=concise", "--exit-zero")


def count(text: str) -> Counter[str]:
    """Return the counts of a module."""
    tree = ast.parse(text)
    counts = Counter({"lines": text.count("\n")})
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        names = [node.id for target in targets if target for node in ast.walk(target) if isinstance(node, ast.Name)]
        counts["module constants"] += sum(bool(CONSTANT.fullmatch(name)) for name in names)
    for node in ast.walk(tree):
        counts["regular expressions"] += isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile"
    counts["pronouns as names"] = sum(name in PRONOUNS for name in bound_names(tree))
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    counts["comments behind a line"] = sum(
        token.type == tokenize.COMMENT
        and before.type not in LAYOUT
        and not any(word in token.string for word in ALLOWED)
        for before, token in pairwise(tokens)
    )
    return counts


def bound_names(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a module gives to values, parameters and fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def count_complex() -> int:
    """Return how many functions are too complex."""
    command = [sys.executable, "-m", "ruff", "check", *COMPLEXITY, "--exclude=memstore/_sync", str(PACKAGE)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.count(" C901 ")


def main() -> int:
    """Print the counts with their limits, and return 1 if any is above."""
    by_module = {
        path.relative_to(PACKAGE): count(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
        if "_sync" not in path.parts
    }
    counts = sum(by_module.values(), Counter[str]())
    counts["functions of a complexity above 20"] = count_complex()
    if "--by-module" in sys.argv:
        for path, of_module in by_module.items():
            print(path, *(f"{number} {what}," for what, number in of_module.items() if number))
    above = [what for what, limit in LIMITS.items() if counts[what] > limit]
    for what, limit in LIMITS.items():
        print(f"{counts[what]:>6} {what} (at most {limit}){' TOO MANY' if what in above else ''}")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
