"""What memstore logs, as JSON: a line a record, without content."""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime

FIELDS = "memstore"  # `extra={FIELDS: {…}}` of a record: numbers and names of its own


class JsonLines(logging.Formatter):
    """A record as one JSON object: `time`, `level`, `logger`, `message`, and what else the record tells.

    Of an error it has the class and where it was raised: a message may quote what somebody said.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Give the line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, FIELDS, {}),
        }
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            line |= {"error": type(error).__name__, "raised": traceback.format_tb(error.__traceback__)}
        return json.dumps(line, ensure_ascii=False, default=str)
