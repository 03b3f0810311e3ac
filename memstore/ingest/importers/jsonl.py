"""memstore's own format: one message a line, as JSON. Every other format is read into its words.

    {"user"?, "conversation", "role", "content", "name"?, "occurred_at"?, "external_id"?, "tool_calls"?,
     "tool_call_id"?, "metadata"?, "tags"?, "scope"?}

- `content` is a text, or a list of parts (objects), or null with `tool_calls`. Any other null means "not given".
- `occurred_at` is ISO 8601 with a zone, or seconds since 1970. A time without a zone is refused, never guessed.
- A key that is not in the list is refused: `occured_at` would else be lost without a word. Own keys go under
`metadata`. All of this is checked where every message is, before it is stored.
- A message without `external_id` gets one made from what it says, where and when, and from how many equal ones came
  before it in the file. So the same file imported twice adds nothing. Of two files, though, the first "ok" of each in
  one conversation is the same message unless `occurred_at` or `external_id` tells them apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memstore.errors import InvalidInput
from memstore.ingest.validation import check_name, check_names

from .base import Importer, ImportItem, Record, derive_id, parse_time
from .files import MAX_LINE_BYTES, PRETTY, ImportProblem, OpenFile, is_single, numbered_lines, parse_object


class Jsonl(Importer):
    name = "jsonl"
    advice = "get it whole and import it again"
    files = re.compile(r".*\.(?:jsonl|ndjson)(?:\.gz)?", re.IGNORECASE)

    @classmethod
    def sniff(cls, path: Path) -> bool:
        """Return whether a file is of this format; in a zip or folder it would be one of many programs' logs."""
        return is_single(path) and super().sniff(path)

    @staticmethod
    def recognizes(value: Any) -> bool:
        return isinstance(value, dict) and {"conversation", "role"} <= value.keys()

    def read_file(self, file: OpenFile) -> Iterator[ImportItem]:
        for number, line in numbered_lines(file.stream.readline, MAX_LINE_BYTES):
            where = f"{file.where}, line {number}"
            if line is None:
                yield ImportProblem(where, f"the line is longer than {MAX_LINE_BYTES:,} bytes; {PRETTY}")
            elif line.strip():
                try:
                    yield self._read_line(line, where)
                except InvalidInput as error:
                    yield ImportProblem(where, str(error))

    def _read_line(self, line: bytes, where: str) -> Record:
        message = {key: value for key, value in parse_object(line).items() if value is not None}
        user, conversation, scope = (message.pop(key, None) for key in ("user", "conversation", "scope"))
        if conversation is None:
            raise InvalidInput('"conversation" is missing; add it')
        check_name(conversation, "conversation")
        check_names(user=user, scope=scope)
        if "occurred_at" in message:
            message["occurred_at"] = parse_time(message["occurred_at"])
        if "external_id" not in message:
            message["external_id"] = derive_id(user, conversation, message, self.equal_counts)
        return Record(user=user, conversation=conversation, message=message, scope=scope, where=where)
