"""How much of a budget is used where there is enough to say, in natural English."""

import random

from memstore.client.store import AsyncMemoryStore

# A sentence is one of each: nearly no two are the same, and words are as long as they are in life.
ENGLISH = (
    """The landlord called again about the heating
My sister took the night train from Oslo
I finally sold the old cello
We counted eleven swifts above the courtyard
My speech for the wedding is far too long
The tomatoes on the balcony are over
She learnt to swim at fifty-two""",
    """, which nobody had expected,
 on the very day that the children came home,
, as far as I can remember,
 in spite of everything that was said before,
 after three hours on the telephone,""",
    """and now we need somebody with a van.
so I'm making soup for the whole house.
but please don't mention it at dinner.
so could you put it into the calendar?
and I'd do it again tomorrow.""",
)
BUDGETS = (300, 400, 700, 1000, 2000, 5000)


def said(count: int) -> list[dict[str, str]]:
    draw = random.Random(7)
    parts = [part.splitlines() for part in ENGLISH]

    def sentence() -> str:
        opening, middle, end = map(draw.choice, parts)
        return f"{opening}{middle} {end}"

    return [
        {
            "role": "user" if n % 2 == 0 else "assistant",
            "content": " ".join(sentence() for _ in range(draw.choice([1, 1, 2, 3, 7]))),
        }
        for n in range(count)
    ]


async def test_nearly_all_of_a_budget_is_used_where_there_is_enough(store: AsyncMemoryStore) -> None:
    talk = store.user("ann").conversation("talk")
    await talk.add_many(said(500))
    assert (await store.derive()).failed == ()
    used = {
        (budget, format, query): (await talk.context(query, budget=budget, format=format)).tokens
        for budget in BUDGETS
        for format in ("openai", "anthropic", "text")
        for query in ("When does the landlord come about the heating?", None)
    }
    # Nothing is cut: less than a message may stay unused.
    assert {case: used[case] for case in used if not min(0.96 * case[0], case[0] - 40) <= used[case] <= case[0]} == {}
