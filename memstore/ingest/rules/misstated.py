"""What somebody takes back in the same breath: blanks in its place, so that only what is right is read.

"I said my birthday is the 14th of March. That was a typo, it's the 24th."  ->  "my birthday is the 24th."
"I said I live in Leeds, that was wrong, I live in Bonn."                   ->  "I live in Bonn."
"""

from __future__ import annotations

import re

_SAID = r"\bI (?:said|told you|wrote|mentioned|typed)(?: (?:earlier|before|yesterday|that)){0,2} "
_BACK = (
    r"[.,;!—–-]{1,3}\s{1,9}(?:(?:but|and|sorry|oops),? ){0,2}(?:that|this|which|it)(?:'s| is"
    r"| was) (?:actually )?(?:a typo"
    r"|wrong|an? (?:mistake|error)|my mistake|incorrect|not (?:right|true|correct))[.,;:!—–-]{1,3}\s{1,9}"
)
_IS = r"(?:is|are|was|were)"
# Every part is bounded: what is not taken back is read once from each of its words.
_VALUE = re.compile(
    rf"(?P<said>{_SAID})?(?P<claim>\b(?:my|our|the) (?:[\w'-]{{1,30}} ){{1,4}}?{_IS})"
    rf"(?P<wrong> [^.,;!?\n]{{1,60}}?{_BACK}(?:actually,? )?(?:it(?:'s| is| was| should be| should have been)|I meant"
    r"|make that))(?= \S)",
    re.IGNORECASE,
)
_CLAUSE = re.compile(rf"{_SAID}[^.,;!?\n]{{1,100}}?{_BACK}(?=(?:I|my|our|we)\b(?! mean))", re.IGNORECASE)


def without_misstatements(text: str) -> str:
    """Blank what a text takes back itself; of the same length, and the same text where it takes nothing back."""
    text = _VALUE.sub(_corrected, text)
    return _CLAUSE.sub(lambda found: " " * len(found[0]), text)


def _corrected(found: re.Match[str]) -> str:
    return f"{' ' * len(found['said'] or '')}{found['claim']}{' ' * len(found['wrong'])}"
