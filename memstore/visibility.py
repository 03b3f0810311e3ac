"""Who sees what: for `context(viewer=…, visibility=…)` and `recall`.

    room.context(budget=4000, viewer="bob", visibility=lambda message, viewer: "secret" not in message.tags)

A rule of one's own is a pure function of a message and a viewer's name, as `Rule` says; see
docs/reference/visibility.md.
"""

from memstore.context.visibility import Rule, addressed, everything

__all__ = ["Rule", "addressed", "everything"]
