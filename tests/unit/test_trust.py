"""Which characters of a message are its writer's own."""

import pytest

from memstore.derive.facts.drafts import TRUST_LEVELS, TrustPolicy
from memstore.ingest.add import ConversationRef, build_row
from memstore.models import Role

SAID = "I live in Porto."
TRUST = TrustPolicy(frozenset({"user"}), frozenset({"user"}))


def level(text: str) -> int:
    made = build_row({"role": "user", "content": text}, ConversationRef("alice", "c"), 100_000)
    start = text.index(SAID)
    return TRUST.trust_level(made, start, start + len(SAID))


@pytest.mark.parametrize(
    "around",
    [
        "Look:\n```\n{}\n```",  # however short it is
        "Look:\n```\n{}",
        "- first:\n    ```text\n    {}\n    ```",
        "See ```{}``` there",
        "````\n```\n{}\n```\n````",
        "Look:\n~~~\n{}\n~~~\n",
        "Look:\n> {}",
        "Look:\n- > {}",
        "Look:\n1. > {}",
        "Look:\r> {}",
        "Look:\u2028> {}",
        "\ufeff> {}",
        "Look:\n\u200b> {}",
        "Look:\n＞ {}",
    ],
)
def test_what_is_pasted_or_quoted_is_believed_as_little_as_a_tool(around: str) -> None:
    assert level(around.format(SAID)) == TRUST_LEVELS[Role.TOOL]


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "```\nx = 1\n```\n{}",  # own words after a short block
        "> What about you?\n\n{}",
        "> What about you?\n{} 3 > 2.",
        "Hello~~~ {}",
        "-> {}",
        "`x` and ``y``: {}",
    ],
)
def test_what_stands_beside_a_paste_is_the_writers_own(around: str) -> None:
    assert level(around.format(SAID)) == TRUST_LEVELS[Role.USER]


def test_long_messages_are_read_in_time_that_grows_with_them() -> None:
    for filler in ("> ", "\r", "~" * 3 + "\n", "`" * 3 + "\n", "- ", " ~~ "):
        assert level(filler * 8_000 + "\nx\n" + SAID) in TRUST_LEVELS.values()
