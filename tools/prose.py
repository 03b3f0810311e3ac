#!/usr/bin/env python3
"""Find hard sentences in the documentation, in docstrings and in messages.

tools/prose.py            check everything; exit 1 if something is found
tools/prose.py docs       README, CONTRIBUTING and docs/ alone
tools/prose.py code       docstrings, errors and the help of commands alone
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "AGENTS.md",
    "docs/**/*.md",
    "examples/**/*.md",
    "skills/**/*.md",
)
MODULES = ("memstore/**/*.py", "schema/**/*.py", "tools/*.py", "benchmarks/*.py")
SHORT_PAGES = re.compile(r"README\.md|docs/(how-to|tutorial|cookbook)/|docs/index\.md")  # sentences of 30 words at most
WORDS = 30

PATTERNS = {
    "whoever": re.compile(r"\b(?:whoever|whomever|whosoever)\b", re.I),
    "of whom": re.compile(r"\bof whom\b", re.I),
    "whence": re.compile(r"\b(?:whence|whither|thence)\b", re.I),
    "beside": re.compile(r"\bbeside\b", re.I),
    "told": re.compile(r"\btold\b(?! apart)", re.I),
    "heard": re.compile(r"\bheard\b", re.I),
    # "What is left out is noted." A question ends with "?", a label has no full stop.
    "what … is": re.compile(r"(?:^|[.;:] |, (?:and|but) )what\b(?: [^\s?.;:]+){1,14}? (?:is|are|was|were)\b", re.I),
}
CODE_LINE = re.compile(r"^(?: {4}|>>>|\.\.\.).*$", re.M)  # of a docstring
GIVE = re.compile(r"Gives?\b(?!.*\bback\b)")
ENTRY_CALLS = {"option", "Option", "Argument", "Field", "Typer", "echo_hint"}  # their strings are read by users

# (path, words of the sentence, why it stands)
EXCEPTIONS: list[tuple[str, str, str]] = []

FENCE = re.compile(r"^( *)(?:```|~~~).*?^\1(?:```|~~~) *$", re.M | re.S)
COMMENT = re.compile(
    r"<!-- (figures|commands|tools|calls|suites)\b.*?(?:<!-- /\w+ -->|<!-- end of \w+ -->|\Z)|<!--.*?-->", re.S
)
BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*] |\d+\. |\||#|>))")
SENTENCE = re.compile(r"(?<=[.!?])[\"')*_”’]*\s+(?=[\"'(*_`“‘]*[^\W_a-z])")


class Finding(NamedTuple):
    """A sentence with the name of the pattern that it has."""

    path: str
    line: int
    pattern: str
    sentence: str


def check_page(path: Path) -> Iterator[Finding]:
    """Return the findings of a Markdown page; blocks of code and generated parts are left out."""
    name = str(path.relative_to(ROOT))
    text = path.read_text(encoding="utf-8")
    for masked in (FENCE, COMMENT):
        text = masked.sub(lambda match: re.sub(r"[^\n]+", "", match[0]), text)
    at = 0
    for block in BLOCK.split(text):
        at = text.index(block, at)
        line = text.count("\n", 0, at + len(block) - len(block.lstrip())) + 1
        at += len(block)
        if block.lstrip().startswith(("#", "---", "![")):
            continue
        cells = block.strip().strip("|").split("|") if block.lstrip().startswith("|") else [block]
        for cell in cells:
            for sentence in split_sentences(plain(cell)):
                yield from check_sentence(name, line, sentence, is_short=bool(SHORT_PAGES.match(name)))


def plain(markdown: str) -> str:
    """Return Markdown as the words that a reader sees; code counts as one word."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)\s]*\)", r"\1", re.sub(r"`[^`]*`", "CODE", markdown))
    text = re.sub(r"<[^>]*>|^\s*(?:[-*>]|\d+\.) ", "", text)
    return " ".join(re.sub(r"[*_]{1,2}(?=\w)|(?<=[\w.:?])[*_]{1,2}", "", text).split())


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph."""
    return SENTENCE.split(text.replace("e.g. ", "e.g.")) if text else []


def check_sentence(path: str, line: int, sentence: str, is_short: bool = False) -> Iterator[Finding]:
    """Return a finding for each pattern that the sentence has."""
    for name, pattern in PATTERNS.items():
        is_label = name.startswith("what") and not re.search(r"[.;:]", sentence)
        if pattern.search(sentence) and not is_label and not sentence.endswith("?"):
            yield Finding(path, line, name, sentence)
    if is_short and len(words := re.findall(r"\w[\w'’.-]*", sentence)) > WORDS:
        yield Finding(path, line, f"over {WORDS} words", f"({len(words)}) {sentence}")


def check_module(path: Path) -> Iterator[Finding]:
    """Return the findings in docstrings, and in the strings of errors and of the command line."""
    name = str(path.relative_to(ROOT))
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = CODE_LINE.sub("", ast.get_docstring(node) or "")
            line = node.body[0].lineno if docstring else 0
            if GIVE.match(docstring):
                yield Finding(name, line, "Give", split_sentences(plain(docstring))[0])
            texts = [(line, docstring)]
        elif isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and _name(node.func) in ENTRY_CALLS):
            texts = [(string.lineno, _read(string)) for string in _strings(node)]
        else:
            continue
        for line, text in texts:
            for sentence in split_sentences(plain(re.sub(r"`[^`]*`", "CODE", text))):
                yield from check_sentence(name, line, sentence)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _strings(node: ast.AST) -> Iterator[ast.Constant | ast.JoinedStr]:
    """Return the outermost strings below a node."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.JoinedStr) or (isinstance(child, ast.Constant) and isinstance(child.value, str)):
            yield child
        else:
            yield from _strings(child)


def _read(string: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(string, ast.Constant):
        return str(string.value)
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "VALUE" for part in string.values)


def main(parts: list[str]) -> int:
    """Print what is found; return 1 if anything is."""
    findings: list[Finding] = []
    if "docs" in parts:
        findings += [each for glob in PAGES for path in sorted(ROOT.glob(glob)) for each in check_page(path)]
    if "code" in parts:
        modules = (path for glob in MODULES for path in sorted(ROOT.glob(glob)) if "_sync" not in path.parts)
        findings += [each for path in modules for each in check_module(path)]
    excused = {
        rule: [each for each in findings if each.path == rule[0] and rule[1] in each.sentence] for rule in EXCEPTIONS
    }
    findings = [each for each in findings if not any(each in found for found in excused.values())]
    for each in findings:
        print(f"{each.path}:{each.line}: {each.pattern}: {each.sentence[:160]}")
    for rule, found in excused.items():
        if not found and ("docs" in parts) == rule[0].endswith(".md"):
            print(f"tools/prose.py: an exception that excuses nothing: {rule}")
            findings.append(Finding(rule[0], 0, "exception", rule[1]))
    if findings:
        print(", ".join(f"{name} {count}" for name, count in Counter(each.pattern for each in findings).most_common()))
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["docs", "code"]))
