"""Chat models that find facts and write summaries: used where they answer, done without where they do not."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from memstore import ids
from memstore.client.conversation import AsyncConversationScope
from memstore.client.store import AsyncMemoryStore
from memstore.derive.facts import llm_extractor
from memstore.derive.facts.llm_extractor import MAX_ANSWER_TOKENS
from memstore.derive.llm import load_prompt, make_chat
from memstore.derive.summaries.extractive import ExtractiveSummarizer
from memstore.errors import ModelUnavailable
from memstore.providers import ChatMessage
from tests.helpers.fakes import Scripted, ScriptedChatModel
from tests.helpers.user_rows import rows

START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)
WRONG = "I would rather not."
GONE = ModelUnavailable("The model is away.")


@pytest.fixture(autouse=True)
def short_talks_are_summarized(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else they are their own summaries, and no model is asked."""
    monkeypatch.setattr("memstore.derive.summaries.llm.MAX_VERBATIM_TOKENS", 0)


def use(store: AsyncMemoryStore, *, facts: ScriptedChatModel | None = None, summaries: Any = None) -> None:
    store._runtime.chat_models = (summaries, facts)


def found(text: str, *sources: tuple[int, str], **columns: object) -> dict[str, object]:
    """Give a fact as a model answers it; `sources` are numbers of messages and quotes."""
    return {
        "sources": [{"message": number, "quote": quote} for number, quote in sources],
        "text": text,
        "type": "preference",
        "subject": "the user",
    } | columns


def facts(*answered: dict[str, object]) -> dict[str, object]:
    return {"facts": list(answered)}


async def talk(trip: AsyncConversationScope, *days: Sequence[str]) -> None:
    for day, texts in enumerate(days):
        for minute, text in enumerate(texts):
            await trip.add("user", text, occurred_at=START + timedelta(days=day, minutes=minute))


def usage(url: str, *users: str) -> list[tuple[int, int]]:
    kept = []
    with psycopg.connect(url, autocommit=True) as connection:
        for user in users:
            statement = """
                SELECT coalesce(sum(calls), 0)::int, coalesce(sum(prompt_tokens + completion_tokens), 0)::int
                FROM model_usage WHERE user_id = %s AND day = (now() AT TIME ZONE 'UTC')::date
            """
            kept += connection.execute(statement, [ids.user_id(user)]).fetchall()
    return kept


async def invalid(store: AsyncMemoryStore) -> list[tuple[object, ...]]:
    found = await store.user("alice").invalid_responses()
    return [(one.deriver, one.from_seq, one.to_seq, one.payload, one.attempts) for one in found]


def shown(call: Sequence[ChatMessage]) -> str:
    return call[-1]["content"]


# -- facts


async def test_a_models_facts_have_all_their_sources_and_are_found(store: AsyncMemoryStore, url: str) -> None:
    trip = store.user("alice").conversation("c")
    await talk(trip, ["Green tea for me.", "And never coffee.", "I said green tea!"])
    stored = await trip.messages()
    tea = found("The user drinks green tea.", (1, "Green tea for me"), (3, "green tea"), attribute="likes", value="tea")
    model = ScriptedChatModel([facts(tea, found("The user avoids coffee.", (2, "never coffee")))])
    use(store, facts=model)
    report = await store.derive()
    assert (report.facts, report.invalid_responses, report.failed, report.waiting) == (2, 0, (), ())
    assert len(model.calls) == 1, "a call a stretch"
    assert all(str(message.text) in shown(model.calls[0]) for message in stored)
    by_text = {fact.text: fact for fact in await trip.user.facts()}
    fact = by_text["The user drinks green tea."]
    assert set(fact.sources) == {stored[0].id, stored[2].id}
    assert {(span.message_id, span.start, span.stop) for span in fact.spans} == {
        (stored[0].id, 0, 16),
        (stored[2].id, 7, 16),
    }
    assert (fact.attribute, fact.value, fact.confidence, fact.language) == ("likes", "tea", 0.9, "en")
    assert "scripted" in fact.recipe
    assert (await trip.user.recall("Who avoids coffee?", tiers=["facts"]))[0].text == "The user avoids coffee."
    assert usage(url, "alice")[0][0] == 1


async def test_what_postgres_cannot_keep_harms_nothing(store: AsyncMemoryStore, url: str) -> None:
    trip = store.user("alice").conversation("c")
    await talk(trip, ["Green tea for me."], ["I live in Leeds."])
    bad = found("Green\0tea.", (1, "Green tea"), subject="A\0da", attribute="dri\0nk", value="\0")
    use(store, facts=ScriptedChatModel([facts(bad), '{"facts": "\0 \ud800"}']))
    report = await store.derive()
    assert (report.failed, report.invalid_responses) == ((), 1)
    assert {fact.text for fact in await trip.user.facts()} >= {"Green tea."}
    [response] = await invalid(store)
    assert response[3] == '{"facts": "\ufffd \ufffd"}'


# -- what a model's facts mean for the known ones


async def after(store: AsyncMemoryStore, *answered: dict[str, object]) -> dict[str, str]:
    """Have a model find one fact on each day; give the states of all facts by text."""
    trip = store.user("alice").conversation("c")
    said = [str(one["text"]) for one in answered]
    await talk(trip, *([text] for text in said))
    answers = [
        facts(one | {"sources": [{"message": 1, "quote": text}]}) for one, text in zip(answered, said, strict=True)
    ]
    use(store, facts=ScriptedChatModel(answers, context_tokens=16_384))
    await store.derive()
    return {fact.text: fact.state for fact in await trip.user.facts(state="all")}


@pytest.mark.parametrize(
    ("whose", "who", "subject", "state"),
    [
        ("Mia", "The user", "the user", "active"),
        ("Mia", "Lea", "the user's daughter Lea", "active"),
        ("Mia", "Mia", "the user's daughter Mia", "superseded"),
        ("The user", "Mia", "the user's daughter Mia", "active"),
        ("The user", "The user", "the user", "superseded"),
    ],
)
async def test_what_somebody_must_not_eat_ends_where_that_is_denied_of_them(
    store: AsyncMemoryStore, whose: str, who: str, subject: str, state: str
) -> None:
    is_own = whose == "The user"
    more = {"type": "constraint" if is_own else "relationship", "attribute": "diet"}
    nuts = found(f"{whose} can't eat nuts.", subject="the user" if is_own else "the user's daughter Mia", **more)
    again = found(f"{who} can eat nuts again.", subject=subject, ends=["k1"], type="relationship", attribute="diet")
    assert await after(store, nuts, again) == {nuts["text"]: state, again["text"]: "active"}
    types = {fact.text: fact.type for fact in await store.user("alice").facts(state="all")}
    assert types == {nuts["text"]: "constraint", again["text"]: "relationship"}


async def test_a_models_values_supersede_each_other_and_end_by_what_the_reader_reads(store: AsyncMemoryStore) -> None:
    leeds = found("The user lives in Leeds.", attribute="residence", value="Leeds")
    porto = found("The user lives in Porto.", attribute="residence", value="Porto")
    assert await after(store, leeds, porto) == {leeds["text"]: "superseded", porto["text"]: "active"}
    alice = store.user("alice")
    [fact] = await alice.facts()
    assert (fact.attribute, fact.value) == ("residence", "porto")
    use(store)
    await talk(alice.conversation("reader"), [], [], [], ["I live in Rome now."])
    await store.derive()
    assert [one.text for one in await alice.facts()] == ["The user lives in Rome now."], "it meets what the model found"
    [history] = [await alice.fact_history(one) for one in await alice.facts(state="all") if one.value == "leeds"]
    await alice.undo(history[-1])
    assert leeds["text"] in {one.text for one in await alice.facts()}


async def test_of_others_it_finds_several(store: AsyncMemoryStore) -> None:
    """Neither tastes nor what is denied, nor what happened, takes anything away."""
    said = [
        found("The user has chess for a hobby.", attribute="likes", value="chess"),
        found("The user has go for a hobby.", attribute="likes", value="go"),
        found("The user keeps company with Ann.", attribute="partner", value="Ann", type="relationship"),
        found("The user does not keep company with Bob.", attribute="partner", value="Bob", type="relationship"),
        found("The user met Cid.", attribute="partner", value="Cid", type="event"),
        found("The user kept company with Dan.", attribute="partner", value="Dan", valid_to="2020-01-01"),
    ]
    states = await after(store, *said)
    assert states.pop("The user kept company with Dan.") == "ended", "by its date"
    assert set(states.values()) == {"active"}


async def test_known_facts_are_shown_and_end_or_gain_a_source(store: AsyncMemoryStore) -> None:
    trip = store.user("alice").conversation("c")
    await talk(trip, ["I take iron pills, and never any milk."], ["Still no milk.", "I am through with the pills."])
    pills = found("The user takes iron pills.", (1, "I take iron pills"), type="constraint")
    milk = found("The user never drinks milk.", (1, "never any milk"), type="constraint")
    shown_facts: dict[str, str] = {}

    def second(call: Sequence[ChatMessage]) -> Scripted:
        for line in shown(call).split("\n"):
            if line.startswith('["k'):
                k, _, text, *_ = json.loads(line)
                shown_facts[text] = k
        ends = [shown_facts[str(pills["text"])]]
        over = found("The user is through with iron pills.", (2, "I am through with the pills"), ends=ends)
        again = {"k": shown_facts[str(milk["text"])], "message": 1, "quote": "Still no milk"}
        return {"repeats": [again], "facts": [over]}

    use(store, facts=ScriptedChatModel([facts(pills, milk), second], context_tokens=16_384))
    await store.derive()
    by_text = {fact.text: fact for fact in await trip.user.facts(state="all")}
    assert by_text[str(pills["text"])].state == "superseded"
    assert len(by_text[str(milk["text"])].sources) == 2
    ended = await trip.user.fact_history(by_text[str(pills["text"])])
    await trip.user.undo(ended[-1])
    assert str(pills["text"]) in {fact.text for fact in await trip.user.facts()}, "it can be taken back"


async def test_what_a_model_ended_is_decided_anew_by_a_redo(store: AsyncMemoryStore) -> None:
    trip = store.user("alice").conversation("c")
    await talk(trip, ["I take iron pills."], ["I am through with the pills."])
    pills = found("The user takes iron pills.", (1, "I take iron pills"), type="constraint")
    over = found("The user is through with iron pills.", (1, "I am through with the pills"))
    states = []
    for name, ends in (("a", ["k1"]), ("b", ["k1"]), ("c", []), ("d", ["k1"])):
        answers = [facts(pills), facts(over | {"ends": ends})]
        use(store, facts=ScriptedChatModel(answers, name=name, context_tokens=16_384))
        await store.derive(redo="facts")
        [state] = [fact.state for fact in await trip.user.facts(state="all") if fact.text == pills["text"]]
        states.append(state)
    assert states == ["superseded", "superseded", "active", "superseded"]


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


async def test_an_answer_of_no_use_is_kept_and_asked_for_again(store: AsyncMemoryStore, url: str) -> None:
    trip = store.user("alice").conversation("c")
    await talk(trip, ["I'm allergic to peanuts."], ["Green tea for me."])
    tea = facts(found("The user drinks green tea.", (1, "Green tea")))
    use(store, facts=ScriptedChatModel([WRONG, tea]))
    report = await store.derive()
    assert (report.invalid_responses, report.facts, report.failed, report.waiting) == (1, 1, (), ())
    assert [fact.text for fact in await trip.user.facts()] == ["The user drinks green tea."], (
        "the reader does not stand in"
    )
    [response] = await trip.user.invalid_responses()
    assert (response.deriver, response.conversation_id, response.from_seq, response.to_seq) == ("facts", trip.id, 1, 1)
    assert (response.payload, response.attempts, response.recipe.partition("/")[0]) == (WRONG, 1, "llm-facts")
    assert "The script gave" in response.error
    assert await store.user("bob").invalid_responses() == []
    stats = await store.stats()
    assert (stats["pending"], stats["failed"], stats["invalid_responses"]) == (0, 0, 1)
    # Asked again and refused again, it is one; answered, it is none.
    use(store, facts=ScriptedChatModel([WRONG, tea]))
    again = await store.derive(redo="facts")
    assert (again.redone, again.invalid_responses) == (1, 1)
    assert await invalid(store) == [("facts", 1, 1, WRONG, 2)]
    peanuts = facts(found("The user must not eat peanuts.", (1, "allergic to peanuts")))
    use(store, facts=ScriptedChatModel([peanuts, tea]))
    done = await store.derive(redo="facts")
    assert (done.redone, done.invalid_responses) == (1, 0)
    assert await invalid(store) == []
    assert len(await trip.user.facts()) == 2
    assert (await store.derive(redo="facts")).redone == 0, "all is of one recipe now"
    assert usage(url, "alice")[0][0] == 6


async def test_what_is_not_believed_is_kept_with_its_reason(store: AsyncMemoryStore) -> None:
    trip = store.user("alice").conversation("c")
    await talk(trip, ["Green tea for me, and no pork."])
    wrong = [found("The user has a dog.", (1, "my dog")), found("The user eats pork.", (1, "and no pork"))]
    use(store, facts=ScriptedChatModel([facts(*wrong)]))
    report = await store.derive()
    assert (report.facts, report.invalid_responses, report.refused, report.quarantined) == (0, 0, 2, 1)
    [response] = await trip.user.invalid_responses()
    assert (
        response.error == "Not believed: 1 because its quote stands nowhere; 1 because its quote denies what it says."
    )
    assert "my dog" in response.payload
    [event] = await trip.user.events(types=["facts_extracted"])
    assert event.body["refused"] == 2
    stats = await store.stats()
    assert (stats["invalid_responses"], stats["refused"]) == (0, 2)
    use(store, facts=ScriptedChatModel())
    assert (await store.derive(redo="facts")).redone == 0, "asked again, it says the same"


async def test_the_reader_and_a_model_do_not_say_one_thing_twice(store: AsyncMemoryStore) -> None:
    trip = store.user("alice").conversation("c")
    said = "The user lives in Leeds."
    await talk(trip, ["I live in Leeds."])
    await store.derive()
    leeds = found(said, (1, "I live in Leeds"), type="identity", attribute="residence", value="Leeds")
    use(store, facts=ScriptedChatModel([facts(leeds)]))
    await talk(trip, [], ["And so on: I live in Leeds."])
    await store.derive()
    [fact] = await trip.user.facts(state="all")
    assert (fact.text, fact.value, len(fact.sources)) == (said, "leeds", 2), "the model's says no less"
    use(store)
    await talk(trip.user.conversation("d"), [], [], ["I live in Leeds."])
    await store.derive()
    [fact] = await trip.user.facts(state="all")
    assert (fact.text, len(fact.sources)) == (said, 3)
    await store.derive(redo="facts")
    assert {fact.text: fact.value for fact in await trip.user.facts(state="all")} == {
        said: "leeds",
        'The user: "And so on: I live in Leeds."': "leeds",  # which the reader quotes
    }


async def test_a_bad_summary_is_made_of_sentences_until_it_is_answered(store: AsyncMemoryStore, url: str) -> None:
    trip = store.user("alice").conversation("c")
    await talk(trip, ["Green tea for me."], ["I live in Leeds."], ["More."])
    use(store, summaries=ScriptedChatModel([{"summary": "The user drinks tea."}, WRONG, {"summary": "More."}]))
    report = await store.derive()
    assert (report.summaries, report.invalid_responses) == (3, 1)
    first, second, _ = await trip.summaries(level=1)
    assert (first.text, second.recipe) == ("The user drinks tea.", ExtractiveSummarizer.recipe)
    assert "Leeds" in second.text
    assert await invalid(store) == [("summaries", 2, 2, WRONG, 1)]
    use(store, summaries=ScriptedChatModel([{"summary": "Tea."}, {"summary": "Leeds is home."}, {"summary": "More."}]))
    assert (await store.derive(redo="summaries")).redone == 1
    assert [one.text for one in await trip.summaries(level=1)] == ["Tea.", "Leeds is home.", "More."]
    assert await invalid(store) == []
    hits = await trip.user.recall("Leeds", tiers=["summaries"])
    assert [hit.text for hit in hits if "Leeds" in hit.text] == ["Leeds is home."]


# -- models that are away


async def test_a_model_that_is_away_keeps_nobody_waiting_but_itself(store: AsyncMemoryStore, url: str) -> None:
    trip = store.user("alice").conversation("c")
    await talk(trip, ["I'm allergic to peanuts."], ["Green tea for me."])
    use(store, facts=ScriptedChatModel([GONE]))
    report = await store.derive()
    assert (report.messages, report.chunks, report.summaries, report.facts) == (2, 2, 2, 0)
    assert (report.failed, len(report.waiting)) == ((), 1)
    assert report.waiting[0] == "facts: The model is away."
    stats = await store.stats()
    assert (stats["pending"], stats["failed"]) == (1, 0)
    assert await invalid(store) == []
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
    asked, written = ScriptedChatModel([likes] * 5), ScriptedChatModel([summary] * 6)
    use(store, facts=asked, summaries=written)
    report = await store.derive()
    assert (report.facts, report.summaries, report.waiting) == (5, 6, ())
    assert {fact.text for fact in await alice.facts()} == {
        f"The user likes {name}{n}." for name in names for n in (1, 2, 3)
    }
    for name in names:
        nest = await alice.conversation(name).summaries()
        assert [(one.from_seq, one.to_seq, one.text) for one in nest] == [
            (n, n, f"About {name}{n}.") for n in (1, 2, 3)
        ]
    assert usage(url, "alice")[0][0] == 18
    assert (await store.stats())["pending"] == 0


async def test_of_a_segment_of_several_calls_only_the_call_under_way_is_lost(store: AsyncMemoryStore, url: str) -> None:
    class Killed(BaseException):
        pass

    def killed(_: Sequence[ChatMessage]) -> Scripted:
        raise Killed

    def likes(messages: Sequence[ChatMessage]) -> Scripted:
        liked = shown(messages).partition("The messages:")[2].partition("I like ")[2][:2]
        return facts(found(f"The user likes {liked}.", (1, f"I like {liked}")))

    alice = store.user("alice")
    await talk(alice.conversation("c"), [f"I like a{n}. {'It is so. ' * 30}" for n in range(4)])
    prompt = ScriptedChatModel().max_prompt_tokens(make_chat(load_prompt("facts").text, []))
    model = ScriptedChatModel(
        [likes, killed, likes, GONE, likes, likes], context_tokens=prompt + MAX_ANSWER_TOKENS + 600
    )
    use(store, facts=model)
    with pytest.raises(Killed):
        await store.derive()
    assert len((await store.derive()).waiting) == 1
    assert (await store.derive()).facts == 2
    assert {fact.text for fact in await alice.facts()} == {f"The user likes a{n}." for n in range(4)}
    assert (len(model.calls), usage(url, "alice")[0][0]) == (6, 4)


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


async def test_a_user_whose_words_a_model_never_answers_holds_up_nobody(store: AsyncMemoryStore, url: str) -> None:
    """Such as by words that make it write until the time is over."""

    def answer(chat: Sequence[ChatMessage]) -> Any:
        return GONE if "poison" in shown(chat) else facts()

    names = [f"user{number}" for number in range(5)]
    for name in names:
        await talk(store.user(name).conversation("c"), ["poison" if name == "user3" else "Green tea for me."])
    model = ScriptedChatModel([answer] * 9)
    use(store, facts=model)
    report = await store.derive()
    assert len(report.waiting) == 1
    assert (await store.stats())["pending"] == 1
    assert sorted(calls for calls, _ in usage(url, *names)) == [0, 1, 1, 1, 1]
    use(store, facts=(away := ScriptedChatModel([GONE] * 9)))
    for name in names:
        await talk(store.user(name).conversation("d"), ["Green tea for me."])
    await store.derive()
    assert len(away.calls) == 2, "a server that is away is not asked for each of them"


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
    assert await invalid(store) == [("summary", 1, 2, WRONG, 1)]
    made = await trip.summarize()
    assert (made.text, made.level, await invalid(store)) == ("Tea it is.", 0, [])
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
        summaries=ScriptedChatModel([GONE, {"summary": "Tea."}, {"summary": "More."}]),
    )
    await store.derive()
    told = await trip.user.events(types=["facts_extracted", "summarization_completed"])
    assert [event.type for event in told] == ["facts_extracted"]
    [extracted] = await trip.user.events(types=["facts_extracted"])
    assert extracted.body == {"recipe": extracted.body["recipe"], "from_seq": 1, "to_seq": 1, "facts": 1}
    assert extracted.body["recipe"].startswith("llm-facts/5/scripted/")
    await store.derive()
    [completed] = await trip.user.events(types=["summarization_completed"])
    assert completed.body["strategy"].startswith("llm-summary/1/scripted/")
    assert (completed.body["from_seq"], completed.body["to_seq"], completed.body["summaries"]) == (1, 2, 2)
    assert completed.body["saved"] == completed.body["before"] - completed.body["after"]
    assert "tea" not in str([event.body for event in [*told, extracted, completed]]).casefold()


@pytest.mark.parametrize("answers", [[WRONG, GONE], [facts(found("Tea.", (1, "Green tea")))]])
async def test_what_a_failed_segment_cost_counts_for_the_day(
    url: str, answers: list[Scripted], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A segment of which each run asks anew must come to the day's limit."""

    def fail(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    async with await AsyncMemoryStore.open(url, settings={"embedder": "hashing:256"}) as store:
        await talk(store.user("alice").conversation("c"), ["Green tea for me.", "I live in Leeds."])
        if len(answers) == 1:
            monkeypatch.setattr(llm_extractor, "find_source", fail)
        for runs in (1, 2):
            use(store, facts=ScriptedChatModel(answers))
            report = await store.derive()
            assert len(report.failed + report.waiting) == 1
            assert usage(url, "alice")[0][0] == runs


async def test_a_model_reads_what_another_assistant_remembered_and_ends_it_by_the_order_of_messages(
    store: AsyncMemoryStore,
) -> None:
    user, saved = store.user("alice"), {"imported_memory": "saved memory"}
    text = "User is allergic to nuts. User rents a boat on the lake."
    await user.conversation("c").add("user", text, metadata=saved, occurred_at=START)
    nuts = found("The user is allergic to nuts.", (1, "User is allergic to nuts."), type="constraint")
    boat = found("The user rents a boat on the lake.", (1, "User rents a boat on the lake."), subject="User")
    use(store, facts=ScriptedChatModel([facts(nuts, boat)]))
    await store.derive()
    assert {(fact.subject, fact.text) for fact in await user.facts()} == {
        ("The user", "The user is allergic to nuts."),
        ("The user", "The user rents a boat on the lake."),
    }

    def sold(call: Sequence[ChatMessage]) -> dict[str, object]:
        (known,) = re.findall(r'"(k\d)", ?"\w+", ?"The user rents', shown(call))
        quote = "I no longer rent the boat on the lake."
        return facts(found("The user no longer rents the boat on the lake.", (1, quote), ends=[known]))

    use(store, facts=ScriptedChatModel([sold]))
    said = "I no longer rent the boat on the lake."
    await user.conversation("c").add("user", said, occurred_at=START - timedelta(days=2))
    await store.derive()
    assert {fact.text for fact in await user.facts()} == {
        "The user is allergic to nuts.",
        "The user no longer rents the boat on the lake.",
    }
