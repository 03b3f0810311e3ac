"""Claude's memory tool over a user's documents: files below /memories that the model reads and writes itself.

    tool = MemstoreMemoryTool(memstore.open().user("alice"))
    client.beta.messages.tool_runner(model=…, max_tokens=…, messages=[…], tools=[tool])

Each file is a document of the namespace `("memories",)`: it is exported and erased with the user, and
`user.documents().search(("memories",), query=…)` finds it by what it says. Folders are there while files are in them.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.types import beta

from memstore.adapters._sync_or_async import call_at_once, maybe_await, run_sync
from memstore.errors import Conflict, InvalidInput
from memstore.models import NewDocument

MEMORY_ROOT = "/memories"
NAMESPACE = ("memories",)
NOT_FOUND = "The path {} does not exist. Please provide a valid path."
Files = dict[str, str]


def _command(function: Callable[..., Any]) -> Any:
    """Return a method that runs a coroutine function as the tool's `_run` does: at once, or awaited."""

    @wraps(function)
    def run(self: Any, *arguments: Any) -> Any:
        return self._run(function(self, *arguments))

    return run


class _Commands:
    """The commands; answers are worded as those of the SDK's own file tool."""

    _run: Callable[..., Any]
    _call: Callable[..., Awaitable[Any]]

    def __init__(self, user: Any, **options: Any) -> None:
        super().__init__(**options)
        self._documents = user.documents()

    @_command
    async def view(self, command: beta.BetaMemoryTool20250818ViewCommand) -> str:
        path = _parse_path(command.path)
        files = await self._files()
        if path in files:
            return _format_file(command.path, files[path], command.view_range)
        below = {name: text for name, text in files.items() if _is_in(name, path)}
        if path and not below:
            raise ToolError(NOT_FOUND.format(command.path))
        return _format_listing(command.path, path, below)

    @_command
    async def create(self, command: beta.BetaMemoryTool20250818CreateCommand) -> str:
        path = _parse_path(command.path)
        files = await self._files()
        if any(_is_in(path, name) for name in files if name != path):
            raise ToolError(f"A part of the path {command.path} is a file.")
        if not path or any(_is_in(name, path) for name in files):
            raise ToolError(f"File {command.path} already exists")
        await self._write({path: command.file_text}, {path: None})
        return f"File created successfully at: {command.path}"

    @_command
    async def str_replace(self, command: beta.BetaMemoryTool20250818StrReplaceCommand) -> str:
        path, text = await self._file(command.path)
        places = [match.start() for match in re.finditer(f"(?={re.escape(command.old_str)})", text)]
        if not places:
            raise ToolError(
                f"No replacement was performed, old_str `{command.old_str}` did not appear verbatim in {command.path}."
            )
        lines = [text.count("\n", 0, place) + 1 for place in places]
        if len(places) > 1:
            raise ToolError(
                f"No replacement was performed. Multiple occurrences of old_str `{command.old_str}` in lines: "
                f"{', '.join(map(str, lines))}. Please ensure it is unique"
            )
        changed = text.replace(command.old_str, command.new_str or "")
        await self._write({path: changed}, {path: text})
        first = max(1, lines[0] - 2)
        snippet = _number_lines(changed.split("\n")[first - 1 : lines[0] + 2], first)
        return (
            f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"
        )

    @_command
    async def insert(self, command: beta.BetaMemoryTool20250818InsertCommand) -> str:
        path, text = await self._file(command.path)
        lines = text.removesuffix("\n").split("\n") if text else []
        if not 0 <= command.insert_line <= len(lines):
            wrong = f"Invalid `insert_line` parameter: {command.insert_line}."
            raise ToolError(f"{wrong} It should be within the range [0, {len(lines)}].")
        lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
        await self._write({path: "\n".join(lines).removesuffix("\n") + "\n"}, {path: text})
        return f"The file {command.path} has been edited."

    @_command
    async def delete(self, command: beta.BetaMemoryTool20250818DeleteCommand) -> str:
        path = _parse_path(command.path)
        if not path:
            raise ToolError(f"Cannot delete the {MEMORY_ROOT} directory itself")
        files = await self._files()
        gone = [name for name in files if _is_in(name, path)]
        if not gone:
            raise ToolError(f"The path {command.path} does not exist")
        await self._call(self._documents.write, (), [(NAMESPACE, name) for name in gone])
        return f"Successfully deleted {command.path}"

    @_command
    async def rename(self, command: beta.BetaMemoryTool20250818RenameCommand) -> str:
        old, new = _parse_path(command.old_path), _parse_path(command.new_path)
        if not old:
            raise ToolError(f"Cannot rename the {MEMORY_ROOT} directory itself")
        files = await self._files()
        if not new or any(_is_in(name, new) for name in files):
            raise ToolError(f"The destination {command.new_path} already exists")
        moved = {name: new + name.removeprefix(old) for name in files if _is_in(name, old)}
        if not moved:
            raise ToolError(f"The path {command.old_path} does not exist")
        if _is_in(new, old) or any(_is_in(new, name) for name in files):
            raise ToolError(f"The destination {command.new_path} is in what is moved, or in a file.")
        known_files = {name: files[name] for name in moved} | dict.fromkeys(moved.values())
        await self._write({moved[name]: files[name] for name in moved}, known_files, removed=[*moved])
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    @_command
    async def clear_all_memory(self) -> str:
        files = await self._files()
        await self._call(self._documents.write, (), [(NAMESPACE, name) for name in files])
        return "All memory cleared"

    async def _files(self) -> Files:
        documents = await self._call(self._documents.search, NAMESPACE, limit=100_000)
        return dict(sorted((document.key, document.value["text"]) for document in documents))

    async def _file(self, path: str) -> tuple[str, str]:
        name = _parse_path(path)
        files = await self._files()
        if name in files:
            return name, files[name]
        is_folder = not name or any(_is_in(other, name) for other in files)
        raise ToolError(f"The path {path} is not a file." if is_folder else NOT_FOUND.format(path))

    async def _write(self, new: Files, known_files: dict[str, str | None], removed: Sequence[str] = ()) -> None:
        """Write files if they are as they are known, None for one that is not there; else refuse."""
        puts = [NewDocument(NAMESPACE, name, {"text": text}, {"text": text}) for name, text in new.items()]
        wanted = {name: text for name, text in known_files.items() if text is not None}
        try:
            await self._call(
                self._documents.write,
                puts,
                [(NAMESPACE, name) for name in removed],
                unchanged=lambda stored: {key: file.value["text"] for (_, key), file in stored.items()} == wanted,
            )
        except Conflict:
            raise ToolError("A file was changed meanwhile: view it, and try again.") from None
        except InvalidInput as error:
            # Such as a path that is a secret where those are masked.
            raise ToolError(str(error)) from None


class MemstoreMemoryTool(_Commands, BetaAbstractMemoryTool):
    """The memory tool of a user of a blocking store."""

    _run, _call = staticmethod(run_sync), staticmethod(call_at_once)


class AsyncMemstoreMemoryTool(_Commands, BetaAsyncAbstractMemoryTool):
    """The memory tool of a user of an async store, or of a blocking one, which is asked in a thread."""

    _run, _call = staticmethod(lambda coroutine: coroutine), staticmethod(maybe_await)


def _parse_path(text: str) -> str:
    """Return a path below the root, without its ends; "" for the root itself."""
    if text != MEMORY_ROOT and not text.startswith(f"{MEMORY_ROOT}/"):
        raise ToolError(f"Path must start with {MEMORY_ROOT}, got: {text}")
    path = posixpath.normpath(text.removeprefix(MEMORY_ROOT).lstrip("/") or ".")
    if path == ".." or path.startswith("../"):
        raise ToolError(f"Path {text} would escape {MEMORY_ROOT} directory")
    return "" if path == "." else path


def _is_in(name: str, path: str) -> bool:
    return not path or name == path or name.startswith(f"{path}/")


def _format_file(title: str, text: str, view_range: list[int] | None) -> str:
    lines = text.split("\n")
    if len(lines) > 999_999:
        raise ToolError(f"File {title} exceeds maximum line limit of 999,999 lines.")
    first, last = view_range if view_range and len(view_range) == 2 else (1, -1)
    first = max(1, first)
    shown = _number_lines(lines[first - 1 : None if last == -1 else last], first)
    return f"Here's the content of {title} with line numbers:\n{shown}"


def _number_lines(lines: list[str], first: int) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, first))


def _format_listing(title: str, path: str, files: Files) -> str:
    """List files and folders below a path, two levels deep, without hidden ones; a folder has the size of its files."""
    sizes: dict[tuple[str, ...], int] = {}
    for name, text in files.items():
        parts = name.removeprefix(path).lstrip("/").split("/")
        if any(part.startswith(".") for part in parts):
            continue
        size = len(text.encode())
        for depth in range(1, min(len(parts), 2) + 1):
            place = (*parts[:depth], *([""] if depth < len(parts) else []))
            sizes[place] = sizes.get(place, 0) + size
    header = f"Here're the files and directories up to 2 levels deep in {title}, excluding hidden items:"
    total = sum(len(text.encode()) for text in files.values())
    lines = [f"{_format_size(size)}\t{title}/{'/'.join(place)}" for place, size in sorted(sizes.items())]
    return "\n".join([header, f"{_format_size(total)}\t{title}", *lines])


def _format_size(count: float) -> str:
    unit = "B"
    for unit in "BKMG":
        if count < 1024 or unit == "G":
            break
        count /= 1024
    return f"{int(count)}{unit}" if count == int(count) else f"{count:.1f}{unit}"
