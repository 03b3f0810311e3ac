"""Contexts of talk: an answer stands with its question, what says nothing stays out, and lists are gathered."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from memstore import Context
from memstore.client.store import AsyncMemoryStore
from memstore.models import Reason

START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)


async def said(store: AsyncMemoryStore, sessions: Sequence[Sequence[tuple[str, str]]]) -> None:
    """Have alice's store know these sessions, a week apart, each line by its speaker."""
    scope = store.user("alice").conversation("talk")
    lines = [
        {"role": "user", "name": name, "content": text, "occurred_at": START + timedelta(days=7 * day, minutes=minute)}
        for day, session in enumerate(sessions)
        for minute, (name, text) in enumerate(session)
    ]
    await scope.add_many(lines)
    await store.derive()


async def ask(store: AsyncMemoryStore, question: str, budget: int) -> Context:
    """Ask in another conversation, and check what holds of every context."""
    scope = store.user("alice").conversation("now")
    await scope.add("user", "Good day.")
    context = await scope.context(question, budget=budget)
    assert context.tokens == store.counter.count_messages(context.messages) <= budget
    assert context.tokens == sum(context.receipt.sections.values())
    assert context.receipt.id is not None
    assert (await scope.user.replay(context.receipt.id)).messages == context.messages
    return context


def lines_of(context: Context) -> list[str]:
    return [
        line
        for message in context.messages
        if "<memory>" in str(message["content"])
        for line in message["content"].splitlines()
    ]


@pytest.mark.parametrize(
    ("asked", "answer", "question"),
    [
        ("Shall we insulate the attic?", "No, this is not necessary, says the mason.", "What is not necessary?"),
        ("Where does the mason live?", "In Porto.", "Who lives in Porto?"),
        ("Wie viele Fenster hat das Gartenhaus?", "Vier, sagt der Maurer.", "Was sagt der Maurer?"),
        ("Which tiles did the mason choose?", "Those from Seville.", "What came from Seville?"),
    ],
)
async def test_an_answer_stands_behind_its_question(
    store: AsyncMemoryStore, asked: str, answer: str, question: str
) -> None:
    chat = [("Ann", f"The bus number {n} was late again, because of the snow on the hill.") for n in range(9)]
    long = f"Hello Ben! {'The scaffold stands since Monday and it rains. ' * 40}{asked}"
    await said(store, [chat[:4], [("Ann", long), ("Ben", answer)], chat[4:]])
    context = await ask(store, question, 200)
    lines = lines_of(context)
    place = lines.index(f" Ben: {answer}")
    assert lines[place - 1] == f" Ann: {asked}"  # the last sentence alone
    [lead] = [one for one in context.receipt.included if one.note]
    assert lead.start == len(long) - len(asked)
    assert lead.tokens > 0


async def test_a_question_stands_once_where_it_is_shown_anyway(store: AsyncMemoryStore) -> None:
    await said(store, [[("Ann", "Where does the mason live?"), ("Ben", "In Porto.")]])
    scope = store.user("alice").conversation("talk")
    context = await scope.context("Where does the mason live, in Porto?", budget=600)  # among the recent turns
    assert str(context.messages[:-1]).count("Where does the mason live?") == 1
    context = await ask(store, "Where does the mason live, in Porto?", 600)  # as a hit of its own
    assert lines_of(context).count(" Ann: Where does the mason live?") == 1


async def test_in_a_small_context_a_fact_is_offered_beside_a_message_that_answers_worse(
    store: AsyncMemoryStore,
) -> None:
    told = "They gave me the other one today, by the door, four hundred and seventeen, because the old one was stuck."
    others = [
        f"My aunt asks who built the pool with its lockers in {year}, and who paid." for year in range(1980, 1989)
    ]
    await said(store, [[("Alice", told)], *([("Alice", text)] for text in others)])
    alice = store.user("alice")
    [message] = [one for one in await alice.conversation("talk").messages() if one.text == told]
    await alice.add_fact("Alice's locker at the pool is 417.", type="statement", subject="Alice", sources=[message.id])
    question = "Which locker at the pool is mine?"
    assert "is 417" in "\n".join(lines_of(await ask(store, question, 300)))
    large = "\n".join(lines_of(await ask(store, question, 2000)))
    assert told in large
    assert "is 417" not in large, "its message says it"


async def test_what_says_nothing_alone_is_no_hit(store: AsyncMemoryStore) -> None:
    empty = ["Sounds great, Ann!", "Wie schön!", "Wow, congrats! So happy for you.", "Danke dir, sehr gerne!"]
    telling = ["I love my job!", "Sounds like rain."]
    await said(
        store, [[("Ben", text) for text in (*empty, *telling)], [("Ann", "Is the roof great?"), ("Ben", "Yes!")]]
    )
    context = await ask(store, "Ben: great, schön, happy, gerne?", 900)
    lines = lines_of(context)
    assert {f" Ben: {text}" for text in telling} <= {*lines}
    assert not {f" Ben: {text}" for text in empty} & {*lines}
    assert lines[lines.index(" Ben: Yes!") - 1] == " Ann: Is the roof great?"  # with its question it says something
    left_out = [one.reason for one in context.receipt.left_out if one.section == "hits"]
    assert left_out.count(Reason.SAYS_NOTHING) == len(empty)


async def test_questions_that_gather_leave_hits_the_room_of_recent_turns(store: AsyncMemoryStore) -> None:
    chat = [("Ann", f"Look, bus number {n} in the snow on the hill, haha!") for n in range(150)]
    await said(store, [[("Evan", f"I went to see film number {n} in town.")] for n in range(150)])
    scope = store.user("alice").conversation("chat")
    await scope.add_many([{"role": "user", "name": name, "content": text} for name, text in chat])
    await store.derive()
    for gathering, budget in (
        ("How many films did Evan see?", 900),
        ("Give me an overview of the films that Evan saw.", 900),
        ("In which order did Evan see the films?", 3600),
    ):
        many = await scope.context(gathering, budget=budget)
        one = await scope.context("Did Evan see a film in town?", budget=budget)
        assert many.receipt.sections["recent"] < one.receipt.sections["recent"] / 2, gathering
        films = [str(context.messages).count(" to see film number") for context in (many, one)]
        assert films[0] > films[1] + 3, gathering
        summary = await scope.context("Please summarize our conversation so far.", budget=budget)
        assert summary.receipt.sections["recent"] >= one.receipt.sections["recent"], gathering
