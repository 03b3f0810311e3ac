"""Whose memory a path is about, `/prefix/{user}/…`, read as it was sent: who checks and who answers read it alike."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

from memstore.errors import InvalidInput
from memstore.ingest.check import check_name


class Addressed(NamedTuple):
    """The user that a path names, and what follows the name and its slash."""

    user: str
    rest: str


def addressed(sent: bytes, prefix: str) -> Addressed | None:
    """Give what a path (`raw_path`) says; None for one that does not begin so, or names what no user may be called.

    A name is one part of the path, percent-encoded: what is not might be of any encoding. A prefix that is written in
    another way is none: what stands behind it would be taken for a name by one reader, and for a prefix by another.
    """
    path = sent.partition(b"?")[0].decode("latin-1")
    name, _, rest = path.removeprefix(f"{prefix}/").partition("/")
    if not path.startswith(f"{prefix}/") or not name.isascii():
        return None
    try:
        user = unquote(name, errors="strict")
        check_name(user, "user")
    except (UnicodeDecodeError, InvalidInput):
        return None
    return Addressed(user, rest)
