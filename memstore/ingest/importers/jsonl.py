"""memstore's own format, docs/reference/formats.md: one message a line, as JSON. Others are read into its words.

A key that is not known is refused where every message is checked: `occured_at` would else be lost without a word. A
message without `external_id` gets one made from what it says, where and when, and from how many equal ones came before
it in the file, so the same file imported twice adds nothing.
"""

from __future__ import annotations

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
    files = ("*.jsonl", "*.jsonl.gz", "*.ndjson", "*.ndjson.gz")

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
