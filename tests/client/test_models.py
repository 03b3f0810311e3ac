"""Chat models that find facts and write summaries: used where they answer, done without where they do not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from memstore import ids
from memstore.client.conversation import AsyncConversationScope
from memstore.client.store import AsyncMemoryStore
from memstore.errors import ModelUnavailable
from memstore.events import Event
from memstore.providers import ChatMessage
from tests.helpers.fakes import Scripted, ScriptedChatModel
from tests.helpers.user_rows import rows

START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)
WRONG = "I would rather not."
GONE = ModelUnavailable("The model is away.")


def use(store: AsyncMemoryStore, *, facts: ScriptedChatModel | None = None, summaries: Any = None) -> None:
    """Have the store ask these models."""
    store._runtime.chat_models = (summaries, facts)


def found(text: str, *sources: tuple[int, str], **columns: object) -> dict[str, object]:
    """Give a fact as a model answers it; `sources` are numbers of messages and quotes."""
    return {
        "sources": [{"message": number, "quote": quote} for number, quote in sources],
        "text": text,
        "type": "preference",
        "kind": "semantic",
        "subject": "The user",
        "attribute": None,
        "value": None,
        "confidence": 0.75,
        "language": "en",
        "valid_from": None,
        "valid_to": None,
    } | columns


def facts(*answered: dict[str, object]) -> dict[str, object]:
    return {"facts": list(answered)}


async def talk(trip: AsyncConversationScope, *days: Sequence[str]) -> None:
    """Add a session of user messages for each day."""
    for day, texts in enumerate(days):
        for minute, text in enumerate(texts):
            await trip.add("user", text, occurred_at=START + timedelta(days=day, minutes=minute))


def usage(url: str, *users: str) -> list[tuple[int, int]]:
    """Give calls and tokens of each user, as they are kept for today."""
    kept = []
    with psycopg.connect(url, autocommit=True) as connection:
        for user in users:
            connection.execute("SELECT set_config('memstore.user_id', %s, false)", [str(ids.user_id(user))])
            statement = """
                SELECT coalesce(sum(calls), 0)::int, coalesce(sum(prompt_tokens + completion_tokens), 0)::int
                FROM model_usage WHERE user_id = %s AND day = (now() AT TIME ZONE 'UTC')::date
            """
            kept += connection.execute(statement, [ids.user_id(user)]).fetchall()
    return kept


async def letters(store: AsyncMemoryStore) -> list[tuple[object, ...]]:
    """Give deriver, range, payload and attempts of Alice's dead letters."""
    found = await store.user("alice").dead_letters()
    return [(one.deriver, one.from_seq, one.to_seq, one.payload, one.attempts) for one in found]


def shown(call: Sequence[ChatMessage]) -> str:
    return call[-1]["content"]


# -- facts


async def test_a_models_facts_have_all_their_sources_and_are_found(store: AsyncMemoryStore, url: str) -> None:
    trip = store.user("alice").conversation("c")
    await talk(trip, ["Green tea for me.", "And never coffee.", "I said green tea!"])
    stored = await trip.messages()
    tea = found("The user drinks green tea.", (1, "Green tea for me"), (3, "green tea"), attribute="drink", value="tea")
    model = ScriptedChatModel([facts(tea, found("The user avoids coffee.", (2, "never coffee")))])
    use(store, facts=model)
    report = await store.derive()
    assert (report.facts, report.letters, report.failed, report.waiting) == (2, 0, (), ())
    assert len(model.calls) == 1, "a call a stretch"
    assert all(str(message.text) in shown(model.calls[0]) for message in stored)
    by_text = {fact.text: fact for fact in await trip.user.facts()}
    fact = by_text["The user drinks green tea."]
    assert set(fact.sources) == {stored[0].id, stored[2].id}
    assert {(span.message_id, span.start, span.stop) for span in fact.spans} == {
        (stored[0].id, 0, 16),
        (stored[2].id, 7, 16),
    }
    assert (fact.attribute, fact.value, fact.confidence, fact.language) == ("drink", "tea", 0.75, "en")
    assert "scripted" in fact.recipe
    assert (await trip.user.recall("Who avoids coffee?", tiers=["facts"]))[0].text == "The user avoids coffee."
    assert usage(url, "alice")[0][0] == 1


async def test_a_fact_that_nobody_said_is_not_stored(store: AsyncMemoryStore) -> None:
    trip = store.user("alice").conversation("c")
    await talk(trip, ["Green tea for me."])
    await trip.add("assistant", "You like chess.", occurred_at=START + timedelta(minutes=3))
    invented = [
        found("The user has a dog.", (1, "my dog")),
        found("The user likes chess.", (2, "You like chess")),
        found("The user likes tea.", (7, "Green tea")),
    ]
    use(store, facts=ScriptedChatModel([facts(*invented, found("The user likes green tea.", (1, "Green tea")))]))
    report = await store.derive()
    assert (report.facts, report.letters) == (1, 0)
    assert [fact.text for fact in await trip.user.facts()] == ["The user likes green tea."]


async def test_a_fact_that_is_said_again_later_is_reinforced(store: AsyncMemoryStore) -> None:
    trip = store.user("alice").conversation("c")
    await talk(trip, ["Green tea for me."], ["Green tea again."])
    told = "The user drinks green tea."
    use(store, facts=ScriptedChatModel([facts(found(told, (1, "Green tea"))), facts(found(told, (1, "Green tea")))]))
    assert (await store.derive()).facts == 1
    [fact] = await trip.user.facts()
    assert set(fact.sources) == {message.id for message in await trip.messages()}
    actions = [change.action for change in await trip.user.fact_history(fact)]
    assert actions == ["added", "reinforced"]


async def test_what_postgres_cannot_keep_harms_nothing(store: AsyncMemoryStore, url: str) -> None:
    trip = store.user("alice").conversation("c")
    await talk(trip, ["Green tea for me."], ["I live in Leeds."])
    bad = found("Green\0tea.", (1, "Green tea"), subject="A\0da", attribute="dri\0nk", value="\0")
    use(store, facts=ScriptedChatModel([facts(bad), '{"facts": "\0 \ud800"}']))
    report = await store.derive()
    assert (report.failed, report.letters) == ((), 1)
    assert {fact.text for fact in await trip.user.facts()} >= {"Green tea."}
    [letter] = await letters(store)
    assert letter[3] == '{"facts": "\ufffd \ufffd"}'


# -- what a model's facts mean for the known ones


async def after(store: AsyncMemoryStore, *answered: dict[str, object]) -> dict[str, str]:
    """Have a model find one fact on each day; give the states of all facts by text."""
    trip = store.user("alice").conversation("c")
    await talk(trip, *(["I say so."] for _ in answered))
    use(
        store,
        facts=ScriptedChatModel([facts(one | {"sources": found("", (1, "I say so"))["sources"]}) for one in answered]),
    )
    await store.derive()
    return {fact.text: fact.state for fact in await trip.user.facts(state="all")}


async def test_a_models_values_supersede_as_the_rules_do_whatever_it_calls_them(store: AsyncMemoryStore) -> None:
    leeds = found("The user lives in Leeds.", attribute="home city", value="Leeds")
    porto = found("The user moved to Porto.", attribute="city", value="Porto")
    assert await after(store, leeds, porto) == {leeds["text"]: "superseded", porto["text"]: "active"}
    alice = store.user("alice")
    [fact] = await alice.facts()
    assert (fact.attribute, fact.value) == ("residence", "porto")
    use(store)
    await talk(alice.conversation("rules"), [], [], [], ["I live in Rome."])
    await store.derive()
    assert [one.value for one in await alice.facts()] == ["rome"], "and what the rules read meets what the model found"
    [history] = [await alice.fact_history(one) for one in await alice.facts(state="all") if one.value == "leeds"]
    await alice.undo(history[-1])
    assert leeds["text"] in {one.text for one in await alice.facts()}


async def test_what_a_model_calls_single_has_one_value_at_a_time(store: AsyncMemoryStore) -> None:
    cello, viola = (
        found(f"The user has the chair of the {name}.", attribute=attribute, value=name, single=True)
        for name, attribute in (("cello", "chair"), ("Viola", "Chair"))
    )
    assert await after(store, cello, viola) == {cello["text"]: "superseded", viola["text"]: "active"}


async def test_what_a_model_does_not_call_single_has_several(store: AsyncMemoryStore) -> None:
    """Neither hobbies nor what is denied, nor what happened, takes anything away."""
    said = [
        found("The user has chess for a hobby.", attribute="hobby", value="chess"),
        found("The user has go for a hobby.", attribute="hobby", value="go"),
        found("The user has the first chair.", attribute="chair", value="first", single=True),
        found("The user has no second chair.", attribute="chair", value="second", single=True),
        found("The user met Ann.", attribute="met", value="Ann", single=True, type="event", kind="episodic"),
        found("The user met Bob.", attribute="met", value="Bob", single=True, type="event", kind="episodic"),
        found("The user had the last chair.", attribute="chair", value="last", single=True, valid_to="2020-01-01"),
    ]
    assert set((await after(store, *said)).values()) == {"active"}


@pytest.mark.parametrize(("roles", "believed"), [("", set()), ("assistant", {"The assistant likes tea."})])
async def test_a_model_believes_whom_the_setting_names_and_nobody_else(
    url: str, roles: str, believed: set[str]
) -> None:
    settings = {"embedder": "hashing:256", "fact_roles": roles}
    async with await AsyncMemoryStore.open(url, settings=settings) as store:
        trip = store.user("alice").conversation("c")
        await talk(trip, ["I like tea."])
        await trip.add("assistant", "I like tea too.", occurred_at=START + timedelta(minutes=3))
        mine = found("The user likes tea.", (1, "I like tea"))
        yours = found("The assistant likes tea.", (2, "I like tea too"), subject="The assistant")
        model = ScriptedChatModel([facts(mine, yours)])
        use(store, facts=model)
        await store.derive()
        assert {fact.text for fact in await trip.user.facts()} == believed
        assert len(model.calls) == len(believed), "where nobody is believed nothing is asked"


# -- answers that nobody can use


async def test_a_bad_answer_becomes_a_letter_and_the_rules_read_the_stretch(store: AsyncMemoryStore, url: str) -> None:
    trip = store.user("alice").conversation("c")
    await talk(trip, ["I'm allergic to peanuts."], ["Green tea for me."])
    tea = facts(found("The user drinks green tea.", (1, "Green tea")))
    use(store, facts=ScriptedChatModel([WRONG, tea]))
    report = await store.derive()
    assert (report.letters, report.facts, report.failed, report.waiting) == (1, 2, (), ())
    by_recipe = {fact.recipe.partition("/")[0]: fact.text for fact in await trip.user.facts()}
    assert "peanuts" in by_recipe["rules"]
    assert "green tea" in by_recipe["llm-facts"]
    [letter] = await trip.user.dead_letters()
    assert (letter.deriver, letter.conversation_id, letter.from_seq, letter.to_seq) == ("facts", trip.id, 1, 1)
    assert (letter.payload, letter.attempts, letter.recipe.partition("/")[0]) == (WRONG, 1, "llm-facts")
    assert "The script gave" in letter.error
    assert await store.user("bob").dead_letters() == []
    stats = await store.stats()
    assert (stats["pending"], stats["failed"], stats["dead_letters"]) == (0, 0, 1)
    # Asked again and refused again, it is one letter; answered, it is none, and the rules' fact makes room.
    use(store, facts=ScriptedChatModel([WRONG, tea]))
    again = await store.derive(redo="facts")
    assert (again.redone, again.letters) == (1, 1)
    assert await letters(store) == [("facts", 1, 1, WRONG, 2)]
    peanuts = facts(found("The user must not eat peanuts.", (1, "allergic to peanuts")))
    use(store, facts=ScriptedChatModel([peanuts, tea]))
    done = await store.derive(redo="facts")
    assert (done.redone, done.letters) == (1, 0)
    assert await letters(store) == []
    assert {fact.recipe.partition("/")[0] for fact in await trip.user.facts()} == {"llm-facts"}
    assert (await store.derive(redo="facts")).redone == 0, "all is of one recipe now"
    assert usage(url, "alice")[0][0] == 6


async def test_a_bad_summary_is_made_of_sentences_until_it_is_answered(store: AsyncMemoryStore, url: str) -> None:
    trip = store.user("alice").conversation("c")
    await talk(trip, ["Green tea for me."], ["I live in Leeds."], ["More."])
    use(store, summaries=ScriptedChatModel([{"summary": "The user drinks tea."}, WRONG]))
    report = await store.derive()
    assert (report.summaries, report.letters) == (2, 1)
    first, second = await trip.summaries(level=1)
    assert (first.text, second.recipe) == ("The user drinks tea.", "extractive/6")
    assert "Leeds" in second.text
    assert await letters(store) == [("summarize", 2, 2, WRONG, 1)]
    use(store, summaries=ScriptedChatModel([{"summary": "Tea."}, {"summary": "Leeds is home."}]))
    assert (await store.derive(redo="summaries")).redone == 1
    assert [one.text for one in await trip.summaries(level=1)] == ["Tea.", "Leeds is home."]
    assert await letters(store) == []
    hits = await trip.user.recall("Leeds", tiers=["summaries"])
    assert [hit.text for hit in hits if "Leeds" in hit.text] == ["Leeds is home."]


# -- models that are away


async def test_a_model_that_is_away_keeps_nobody_waiting_but_itself(store: AsyncMemoryStore, url: str) -> None:
    trip = store.user("alice").conversation("c")
    await talk(trip, ["I'm allergic to peanuts."], ["Green tea for me."])
    use(store, facts=ScriptedChatModel([GONE]))
    report = await store.derive()
    assert (report.messages, report.units, report.summaries, report.facts) == (2, 2, 1, 0)
    assert (report.failed, len(report.waiting)) == ((), 1)
    assert report.waiting[0] == "facts: The model is away."
    stats = await store.stats()
    assert (stats["pending"], stats["failed"]) == (1, 0)
    assert await letters(store) == []
    use(store, facts=ScriptedChatModel([facts(), facts(found("The user drinks green tea.", (1, "Green tea")))]))
    assert (await store.derive()).facts == 1
    assert (await store.stats())["pending"] == 0


async def test_what_was_paid_for_before_a_model_went_away_is_kept(store: AsyncMemoryStore, url: str) -> None:
    """Of several conversations as of several stretches, for facts as for summaries."""
    alice = store.user("alice")
    names = ["a", "b", "c"]
    for name in names:
        await talk(alice.conversation(name), [f"I like {name}1."], [f"I like {name}2."], [f"I like {name}3."])

    def likes(messages: Sequence[ChatMessage]) -> Scripted:
        liked = shown(messages).partition("I like ")[2][:2]
        return facts(found(f"The user likes {liked}.", (1, f"I like {liked}")))

    def summary(messages: Sequence[ChatMessage]) -> Scripted:
        return {"summary": f"About {shown(messages).partition('I like ')[2][:2]}."}

    use(store, facts=ScriptedChatModel([likes] * 4 + [GONE]), summaries=ScriptedChatModel([summary] * 3 + [GONE]))
    report = await store.derive()
    assert (report.facts, report.summaries, len(report.waiting)) == (4, 3, 2)
    assert usage(url, "alice")[0][0] == 7
    assert len(await alice.facts()) == 4
    asked, written = ScriptedChatModel([likes] * 5), ScriptedChatModel([summary] * 3)
    use(store, facts=asked, summaries=written)
    report = await store.derive()
    assert (report.facts, report.summaries, report.waiting) == (5, 3, ())
    assert {fact.text for fact in await alice.facts()} == {
        f"The user likes {name}{n}." for name in names for n in (1, 2, 3)
    }
    for name in names:
        nest = await alice.conversation(name).summaries()
        assert [(one.from_seq, one.to_seq, one.text) for one in nest] == [(n, n, f"About {name}{n}.") for n in (1, 2)]
    assert usage(url, "alice")[0][0] == 15
    assert (await store.stats())["pending"] == 0


async def test_a_redo_whose_model_is_away_leaves_everything(store: AsyncMemoryStore, url: str) -> None:
    trip = store.user("alice").conversation("c")
    await talk(trip, ["I'm allergic to peanuts."], ["I live in Leeds."], ["More."])
    await store.derive()
    before = rows(url, "alice")
    use(store, facts=ScriptedChatModel([facts()]), summaries=ScriptedChatModel([{"summary": "x."}]))
    for redo in ("facts", "summaries"):
        report = await store.derive(redo=redo)
        assert (report.redone, report.failed, len(report.waiting)) == (0, (), 1)
    assert rows(url, "alice") == before
    assert usage(url, "alice")[0][0] == 2, "what was paid for nothing counts for the day's tokens"


# -- cost


async def test_the_cap_of_a_day_is_one_for_all_users(url: str) -> None:
    async with await AsyncMemoryStore.open(url, settings={"embedder": "hashing:256", "llm_daily_tokens": 1}) as store:
        for name in ("alice", "bob"):
            await talk(store.user(name).conversation("c"), ["Green tea for me."])
        use(store, facts=ScriptedChatModel([facts()] * 4))
        report = await store.derive()
        assert "MEMSTORE_LLM_DAILY_TOKENS" in report.waiting[0]
        assert sorted(calls for calls, _ in usage(url, "alice", "bob")) == [0, 1]
        assert (await store.stats())["pending"] == 1
        assert (await store.derive()).waiting, "another run is of the same day"
        use(store, summaries=ScriptedChatModel([{"summary": "Tea."}]))
        with pytest.raises(ModelUnavailable, match="MEMSTORE_LLM_DAILY_TOKENS"):
            await store.user("bob").conversation("c").summarize()
    async with await AsyncMemoryStore.open(url, settings={"embedder": "hashing:256"}) as store:
        use(store, facts=ScriptedChatModel([facts()]))
        assert (await store.derive()).waiting == ()


# -- summaries


async def test_a_summary_on_demand_is_the_models_and_is_made_once(store: AsyncMemoryStore, url: str) -> None:
    trip = store.user("alice").conversation("c")
    await talk(trip, ["Green tea for me.", "And never coffee."])
    sentences = await trip.summarize()
    model = ScriptedChatModel([WRONG, {"summary": "Tea it is."}])
    use(store, summaries=model)
    assert (await trip.summarize()).id == sentences.id, "nobody could use the answer"
    assert await letters(store) == [("summary", 1, 2, WRONG, 1)]
    made = await trip.summarize()
    assert (made.text, made.level, await letters(store)) == ("Tea it is.", 0, [])
    assert (await trip.summarize()).id == made.id
    assert (len(model.calls), usage(url, "alice")[0][0]) == (2, 2)
    assert (await trip.user.recall("tea", tiers=["summaries"]))[0].text == "Tea it is."
    use(store, summaries=ScriptedChatModel())
    with pytest.raises(ModelUnavailable):
        await trip.summarize(1, 1)


# -- events


async def test_events_tell_what_a_model_made_and_what_waits_tells_nothing(store: AsyncMemoryStore) -> None:
    trip = store.user("alice").conversation("c")
    await talk(trip, ["Green tea for me."], ["More."])
    use(
        store,
        facts=ScriptedChatModel([facts(found("The user drinks green tea.", (1, "Green tea"))), GONE]),
        summaries=ScriptedChatModel([GONE, {"summary": "Tea."}]),
    )
    told: list[Event] = []
    with store.subscribe(told.append):
        await store.derive()
    kinds = [event.type for event in told]
    assert kinds == ["facts_extracted"]
    [extracted] = await trip.user.events(types=["facts_extracted"])
    assert extracted.body == {"recipe": extracted.body["recipe"], "from_seq": 1, "to_seq": 1, "facts": 1}
    assert extracted.body["recipe"].startswith("llm-facts/2/scripted/")
    await store.derive()
    [completed] = await trip.user.events(types=["summarization_completed"])
    assert completed.body["strategy"].startswith("llm-summary/1/scripted/")
    assert (completed.body["from_seq"], completed.body["to_seq"], completed.body["summaries"]) == (1, 2, 1)
    assert completed.body["saved"] == completed.body["before"] - completed.body["after"]
    assert "tea" not in str([event.body for event in [*told, extracted, completed]]).casefold()
