"""Who sees what: for `context(viewer=…, visibility=…)` and `recall`.

    room.context(budget=4000, viewer="bob", visibility=Rules(everyone=frozenset({"team"})))

A rule of one's own is a pure function of a message and a viewer's name, as `Rule` says; see
docs/reference/visibility.md.
"""

from memstore.context.visibility import Rule, Rules, Verdict, Why, everything, mentioned, visible

__all__ = ["Rule", "Rules", "Verdict", "Why", "everything", "mentioned", "visible"]
