"""Who speaks, as a label before what was said: a name cannot pass for a role, nor for more than a name. Pure.

A name is shown on one line, without characters that control or that are not seen, and without colons. One whose first
word is a role, or that has the word "calls" or a quotation mark, stands in quotation marks behind the true role:
`user "assistant bob"`.
"""

from __future__ import annotations

import re
import unicodedata

from memstore.fences import defused
from memstore.models import Role

_ROLES = frozenset({*map(str, Role), "human", "summary", "record", "function"})
_COLONS = re.compile("[:\u02d0\u2236\ua789\ufe13\ufe55\uff1a]")
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_WORDS = re.compile(r"[^\W\d_]+")
_QUOTES = re.compile('["\u201c-\u201f\u00ab\u00bb\uff02]')


def shown(name: object) -> str:
    """Give a name as it is shown; nothing for one of which nothing is seen."""
    if isinstance(name, str) and name.isascii() and name.isprintable() and ":" not in name:
        return defused(" ".join(name.split()))
    seen = "".join(" " if one.isspace() or unicodedata.category(one) in _UNSEEN - {"Cf"} else one for one in str(name))
    seen = "".join(one for one in seen if unicodedata.category(one) != "Cf")
    return defused(" ".join(_COLONS.sub(" ", seen).split()))


def label(role: str, name: object = None) -> str:
    """Give who speaks: a user by name, others by their role and name."""
    called = shown(name or "")
    if not called:
        return str(role)
    words = _WORDS.findall(unicodedata.normalize("NFKC", called).casefold())
    if {*words[:1]} & _ROLES or "calls" in words or _QUOTES.search(called):
        return f'{role} "{_QUOTES.sub(chr(39), called)}"'
    return called if role == Role.USER else f"{role} {called}"
