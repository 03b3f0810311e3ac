"""How much of a budget is used where there is enough to say, in natural English and German."""

from __future__ import annotations

import random

import pytest

from memstore.client.store import AsyncMemoryStore

# A sentence is one of each: nearly no two are the same, and words are as long as they are in life.
ENGLISH = (
    """The landlord called again about the heating
My sister took the night train from Oslo
I finally sold the old cello
We counted eleven swifts above the courtyard
The contract still isn't back from the lawyer
There is a bakery near the canal with a blue door
It rained through the tent all night
The doctor says that nothing is broken
My speech for the wedding is far too long
Nobody told me that the meeting had been moved
The tomatoes on the balcony are over
She learnt to swim at fifty-two""",
    """, which nobody had expected,
 on the very day that the children came home,
, as far as I can remember,
 in spite of everything that was said before,
 while Tom was looking for his keys again,
 a week later than we had agreed,
, just as my mother always said it would be,
 after three hours on the telephone,""",
    """and now we need somebody with a van.
so I'm making soup for the whole house.
but please don't mention it at dinner.
and honestly it made me laugh.
which leaves us eleven days until the move.
though the neighbours remember it differently.
so could you put it into the calendar?
and I'd do it again tomorrow.""",
)
GERMAN = (
    """Der Klempner war wegen der Spülmaschine da
Meine Tochter hat beim Kinderturnen einen Handstand geschafft
Wir haben die Steuererklärung endlich abgegeben
Die Straßenbahn wird wegen der Bauarbeiten umgeleitet
Im Keller steht noch das Fahrrad meines Großvaters
Wir sind bei Gewitter von der Hütte abgestiegen
Die Nachbarin gießt im August unsere Balkonpflanzen
Die Bescheinigung vom Arbeitgeber fehlt immer noch
Die Musik in dem Film ging mir nicht aus dem Kopf
Der Kater hat den halben Lachs vom Brett geholt
Übermorgen kommt der Schornsteinfeger
Zum Geburtstag wünscht sie sich einen freien Tag am See""",
    """, womit wirklich keiner gerechnet hatte,
, und zwar genau an dem Tag, als die Kinder zurückkamen,
, soweit ich mich überhaupt erinnern kann,
, trotz allem, was vorher besprochen worden war,
, während Thomas wieder seine Schlüssel suchte,
, eine Woche später als ursprünglich vereinbart,
, genau wie meine Mutter es immer vorausgesagt hat,
, nach drei Stunden in der Warteschleife,""",
    """und jetzt brauchen wir jemanden mit einem Lieferwagen.
deshalb koche ich Kartoffelsuppe für das ganze Haus.
aber erwähne es bitte nicht beim Abendessen.
und ehrlich gesagt musste ich darüber lachen.
damit bleiben uns noch elf Tage bis zum Umzug.
obwohl die Nachbarn das ganz anders in Erinnerung haben.
könntest du das bitte in den Kalender eintragen?
und ich würde es morgen sofort wieder tun.""",
)
Language = tuple[str, str, str]
BUDGETS = (300, 400, 700, 1000, 2000, 5000)


def said(language: Language, count: int) -> list[dict[str, str]]:
    """Give messages of one to seven sentences."""
    draw = random.Random(7)
    parts = [part.splitlines() for part in language]

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


@pytest.mark.parametrize(
    ("language", "question"),
    [(ENGLISH, "When does the landlord come about the heating?"), (GERMAN, "Was ist mit dem Rohr im Keller?")],
)
async def test_nearly_all_of_a_budget_is_used_where_there_is_enough(
    store: AsyncMemoryStore, language: Language, question: str
) -> None:
    talk = store.user("ann").conversation("talk")
    await talk.add_many(said(language, 500))
    assert (await store.derive()).failed == ()
    used = {
        (budget, format, query): (await talk.context(query, budget=budget, format=format)).tokens
        for budget in BUDGETS
        for format in ("openai", "anthropic", "text")
        for query in (question, None)
    }
    # Nothing is cut: less than a message may stay unused.
    assert {case: used[case] for case in used if not min(0.96 * case[0], case[0] - 40) <= used[case] <= case[0]} == {}


@pytest.mark.parametrize("language", [ENGLISH, GERMAN])
async def test_nearly_all_of_a_conversation_leaves_no_more_unused(store: AsyncMemoryStore, language: Language) -> None:
    """Where an earlier window shows what stood for it, there is room for a still earlier one."""
    talk = store.user("ann").conversation("talk")
    whole = sum(message.tokens + 4 for message in await talk.add_many(said(language, 90)))
    assert (await store.derive()).failed == ()
    budgets = [whole * part // 20 for part in range(8, 20)]
    shares = sorted([(await talk.context(budget=budget)).tokens / budget for budget in budgets])
    assert shares[-1] <= 1
    assert shares[1] >= 0.97
    assert shares[0] >= 0.96, "one of twelve may end where the next message is just too long"
