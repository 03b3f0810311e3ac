"""LoCoMo's `locomo10.json`: long talks of two people in sessions, `{"sample_id", "conversation": {"session_1": […]}}`.

A sample is a conversation and a user of its own, for the people of two samples do not know each other. Both are users
with names; with `me` that one's messages have none, and are the user's own. A session has a time without a zone, UTC
unless `timezone` says another, and its messages inherit it. A picture follows its text as "[image: what it shows]".
Questions, summaries and observations are no part of the talk, and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from .files import ONE_FILE, Part, by_number, first_head, read_parts
from .json_stream import keys_in, numbered_values
from .local_times import Clock
from .reading import PLAINLY, Reading
from .records import Found, LeftOut, Record, Skipped, is_id, storable, timed

AGAIN = "get the file again from LoCoMo's authors"
_SESSION = re.compile(r"session_[0-9]{1,6}")
_FORMS = ("%I:%M %p on %d %B, %Y", "%d %B, %Y")


@dataclass(frozen=True, slots=True)
class LoCoMo:
    """Reads LoCoMo's conversations, session by session."""

    @property
    def name(self) -> str:
        """What `--format` calls it."""
        return "locomo"

    def sniff(self, path: Path) -> float:
        """Give 0.9 for an object with two speakers and a session."""
        start = first_head(path, ONE_FILE)
        found = {"speaker_a", "speaker_b"} <= keys_in(start) or {"dia_id", "speaker"} <= keys_in(start)
        return 0.9 if start[:1] in (b"{", b"[") and found else 0.0

    def read(self, path: Path, reading: Reading = PLAINLY) -> Iterator[Found]:
        """Give what was said, session by session."""
        return read_parts(path, ONE_FILE, reading, partial(_part, reading=reading), AGAIN)


def _part(part: Part, reading: Reading) -> Iterator[Found]:
    for number, one in enumerate(numbered_values(part, AGAIN), 1):
        if isinstance(one, Skipped):
            yield one
            continue
        where, given = one
        talk = given.get("conversation", given) if isinstance(given, dict) else None
        if not isinstance(talk, dict):
            yield Skipped(where, f"it is no object with a conversation; {AGAIN}")
            continue
        name = given.get("sample_id")
        yield from _sessions(talk, name if is_id(name) else f"locomo-{number}", where, reading)
        if given.get("qa"):
            yield LeftOut("questions about a conversation", len(given["qa"]) if isinstance(given["qa"], list) else 1)


def _sessions(talk: dict[str, Any], name: str, where: str, reading: Reading) -> Iterator[Found]:
    clock = Clock(reading.timezone or UTC)
    sessions = sorted((key for key in talk if _SESSION.fullmatch(key)), key=by_number)
    if not sessions:
        yield Skipped(where, f"it has no sessions; {AGAIN}")
    last = None
    for session in sessions:
        shown = _time(talk.get(f"{session}_date_time"))
        last = clock.instant(shown) if shown else last
        turns = talk[session]
        if not isinstance(turns, list):
            yield Skipped(f"{where}, {session}", f"it is no list of turns; {AGAIN}")
            continue
        for number, turn in enumerate(turns, 1):
            at = f"{where}, {session}, turn {number}"
            message = _message(turn, f"{session}:{number}", int(session.removeprefix("session_")), reading.me)
            if message is None:
                yield Skipped(at, f"it has no speaker, or no text; {AGAIN}")
            else:
                own = last if shown and number == 1 else None
                said = timed(message, own, last)
                yield Record(user=name, conversation=name, message=said, channel="locomo", where=at)


def _time(value: object) -> datetime | None:
    for form in _FORMS:
        try:
            return datetime.strptime(str(value).strip(), form) if isinstance(value, str) else None
        except ValueError:
            continue
    return None


def _message(turn: Any, place: str, session: int, me: str | None) -> dict[str, Any] | None:
    if not isinstance(turn, dict) or not is_id(turn.get("speaker")) or not isinstance(turn.get("text"), str):
        return None
    caption = turn.get("blip_caption")
    image = f"[image: {caption}]" if isinstance(caption, str) else "[image]" if turn.get("img_url") else ""
    text, metadata = storable("\n\n".join(one for one in (turn["text"], image) if one.strip()))
    if not text.strip():
        return None
    own = turn.get("dia_id")
    message = {"role": "user", "content": text, "external_id": own if is_id(own) else place}
    name = {} if turn["speaker"] == me else {"name": turn["speaker"]}
    return message | name | {"metadata": metadata | {"session": session}}
