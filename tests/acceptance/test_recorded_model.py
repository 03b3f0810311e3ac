"""What a real language model finds in whole histories, by recorded answers to the prompts as they are now.

How they were made, and the figures that were judged by hand, is told in tests/data/model/README.md.
"""

import json
import os
import subprocess
import threading
import time
from collections.abc import Sequence
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

import memstore
from memstore import Fact
from memstore.derive.llm import load_prompt
from memstore.providers.tiktoken import load as load_counter
from memstore.settings import ONNX_MINILM
from tests.command_line import EMBEDDER, SCRIPT, environment
from tests.helpers.user_rows import rows
from tests.model_server import Behaviour, Json, ScriptedServer, hangs, says

FOLDER = Path(__file__).parents[1] / "data" / "model"
WINDOW = 16_384
COUNTER = load_counter("o200k_base")


class RecordedModel(ScriptedServer):
    """Answers from tests/data/model/NAME.json.

    A prompt is known by its messages and schema; where what is known has changed a little, by the messages that it asks
    about, and the numbers of known facts are set to those of today. With RECORD_ANSWERS an answer that is not there is
    asked of whoever writes FOLDER/HASH.answer beside FOLDER/HASH.json, and recorded.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.path = FOLDER / f"{name}.json"
        self.recording: Json = json.loads(self.path.read_text("utf-8"))
        self.trained = self.allotted = WINDOW
        self.lost: list[str] = []  # known facts that a recorded answer names, and that are not shown today
        self.hangs = False  # at every second call
        self.is_hanging = threading.Event()
        self.tokens = 0  # of all prompts and answers, in the vocabulary of o200k
        if not os.environ.get("RECORD_ANSWERS"):
            said = "The prompt has changed: record its answers anew (tests/data/model/README.md)."
            assert self.recording["prompt"] == load_prompt("facts").digest, said

    @property
    def messages(self) -> list[Json]:
        """The history, in the order in which it is taken in."""
        return list(self.recording["messages"])

    def next(self, body: Json) -> Behaviour:
        if self.hangs and len(self.asked()) % 2 == 0:
            self.is_hanging.set()
            return hangs
        raw = json.dumps([body["messages"], body["format"]], sort_keys=True, ensure_ascii=False)
        key, shown = sha256(raw.encode()).hexdigest()[:10], body["messages"][-1]["content"]
        asked = sha256(shown.partition("The messages:")[2].encode()).hexdigest()[:10]
        answers = self.recording["answers"]
        entry = answers.get(key) or next((one for one in answers.values() if one["asked"] == asked), None)
        if entry is None:
            entry = answers[key] = {"asked": asked, "known": known_in(shown)} | self._record(key, body)
            self.recording["prompt"] = load_prompt("facts").digest
            self._write()
        prompt_tokens, answer_tokens = entry["tokens"]
        self.tokens += prompt_tokens + answer_tokens
        answer = self._renumber(entry, known_in(shown))
        return says(answer, prompt_eval_count=prompt_tokens, eval_count=answer_tokens)

    def _write(self) -> None:
        said = [json.dumps(one, ensure_ascii=False) for one in self.recording["messages"]]
        answers = [f'"{key}": {json.dumps(one, ensure_ascii=False)}' for key, one in self.recording["answers"].items()]
        prompt, lines, entries = json.dumps(self.recording["prompt"]), ",\n".join(said), ",\n".join(answers)
        text = f'{{\n"prompt": {prompt},\n"messages": [\n{lines}\n],\n"answers": {{\n{entries}\n}}\n}}\n'
        self.path.write_text(text, "utf-8")

    def _renumber(self, entry: Json, known: dict[str, str]) -> Json:
        numbers = {text: k for k, text in known.items()}
        today = {k: numbers.get(text) for k, text in entry["known"].items()}
        self.lost += [entry["known"][k] for k in named_in(entry["answer"]) if today.get(k) is None and k in today]
        text = json.dumps(entry["answer"])
        for k, new in today.items():
            text = text.replace(f'"{k}"', f'"new {new}"')
        answer: Json = json.loads(text.replace('"new ', '"'))
        return answer

    def _record(self, key: str, body: Json) -> Json:
        folder = Path(os.environ["RECORD_ANSWERS"])
        (folder / f"{key}.json").write_text(json.dumps(body, ensure_ascii=False, indent=1), "utf-8")
        written = folder / f"{key}.answer"
        while not written.exists():
            time.sleep(0.2)
        answer = json.loads(written.read_text("utf-8"))
        said = "".join(one["content"] for one in body["messages"])
        sizes = [COUNTER.count(text) for text in (said, json.dumps(answer, ensure_ascii=False, separators=(",", ":")))]
        return {"answer": answer, "tokens": sizes}


def known_in(prompt: str) -> dict[str, str]:
    """Return the known facts that a prompt shows, by their numbers."""
    lines = [json.loads(line) for line in prompt.split("\n") if line.startswith('["k')]
    return {line[0]: line[2] for line in lines}


def named_in(answer: Json) -> list[Any]:
    return [one["k"] for one in answer["repeats"]] + [k for fact in answer["facts"] for k in fact.get("ends", ())]


LASTING = """
36 Jahre | Südvorstadt | Lenas Mann | eine Tochter Mia | Produktmanagerin | Brandt Logistik | kick-off | höchstens fünf
| Petersen | Haselnussallergie. | Notaufnahme | Sertralin 50 mg | grapefruit juice | 14. April | 28. April
| The cat Findus | Brandt Logistik was stopped | thinking of quitting | Sertralin 100 mg | now vegetarian
| without meat | gekündigt | Kelvin Robotics | Head of Product | Bahrenfelder Straße | Kita place | kein Sertralin mehr
| wieder Grapefruit | 18 July | broken her hip | Kassel | all nuts | facing backwards | ICE 1708 | BahnCard 50
| lena.h@posteo.example
"""  # of March to June, in whatever state; the issue that asked for it counts 32
ENDED = {  # what is ended, and by what
    "Lena ist Produktmanagerin.": "Head of Product",
    "Lena arbeitet bei Brandt Logistik in Leipzig.": "Kelvin Robotics",
    "Lena wohnt in der Südvorstadt.": "move to Hamburg-Altona",
    "Lena hat am 14. April 2026 um 9 Uhr einen Zahnarzttermin und kann dann keine Meetings machen.": "28. April",
    "Lena has been taking Sertralin 50 mg since January 2026.": "100 mg",
    "Lena has been taking Sertralin 100 mg since 6 April 2026, her doctor raised the dose.": "abgesetzt",
    "Lena must not drink grapefruit juice because of her Sertralin, on her doctor's advice.": "wieder Grapefruit",
    "Lena's husband Jonas is now vegetarian.": "eats fish",
    "Lena und Jonas haben eine Tochter Mia, die am 2. März 2026 vier Jahre alt ist.": "fünf Jahre",
    "Lena is thinking of quitting Brandt Logistik, but as of 9 April 2026 has not decided yet.": "gekündigt",
    "Lena hat eine Haselnussallergie.": "all nuts",
    "Nordfracht is a client of Lena's employer Brandt Logistik.": "no longer a client",
}
OMAR_ENDED = {
    "The user lives in Lyon, in the Croix-Rousse.", "The user works at the Café des Halles.",
    "The user is a waiter by profession.", "The user wants plans shown as tables.",
    "The user is vegan and wants meal plans without anything from animals.",
    "The user takes ibuprofen 400 mg twice a day for knee pain, given by the doctor.",
    "The user now takes ibuprofen 600 mg, prescribed by the doctor.",
    "The user has been allergic to penicillin since childhood.", "The user smokes a pack a day.",
    "The user's girlfriend is Inès.", "The user's girlfriend Inès works nights at the hospital.",
    "The user's phone number is 06 11 22 33 44.", "The user has knee pain.",
    "The user's knee has become worse.",
    "The user's sister Salma is pregnant, and the baby is due in June 2026.",
    "The user's colleague Karim from the kitchen team wants to run with the user.",
}  # fmt: skip
ANA_ENDED = {
    "Ana trabaja en el turno de noche, quince noches al mes.",
    "Ana wants to be answered in English, even when she writes in Spanish.",
    "Ana's mother is moving in with Ana and her family in March 2026.",
    "Ana's landlord wants to raise the rent to 1.600 € from July 2026.",
    "Ana wants a letter drafted about the landlord's rent increase that does not mention her mother.",
    "Ana's mother has a parrot called Lola, who swears.",
    "Ana's twin Nil is allergic to penicillin.",
    "Ana has the swimming course booked, on Tuesdays at half past five.",
    "Ana takes one tablet of Ferogradumet each morning, not with coffee.",
    "Ana has low iron, according to her doctor.",
}
MANON_ENDED = {
    "Manon a rendez-vous chez la dentiste Nadia Ferhat le mardi 24 février 2026 à 9h30.",
    "Manon's son Oscar must not eat egg: he is allergic to it, the paediatrician has been almost sure since his rash at"
    " Christmas 2025.",
    "Manon et sa famille ont une chatte de 16 ans, Biscotte, et une tortue, Gaston.",
    "Manon prend 75 µg de lévothyroxine le matin à jeun.",
    "Le cardiologue d'Armand, le père de Manon, s'appelle aussi Dr Lambert, et selon Manon c'est la même personne que"
    " son endocrinologue.",
    "Manon is an acoustic engineer at Halden & Ruys.",
    "Manon has been vegetarian since 2019.",
    "Manon habite avec sa famille à Ixelles, rue du Page 48, au 3e étage sans ascenseur.",
    "Zélie, la fille de Manon, chausse du 34.",
    "Manon et sa famille ont décidé de vendre la voiture et de prendre un biporteur, avec la caisse à l'avant.",
    "Manon est alto aux Contretemps, qui répètent tous les jeudis à 20h.",
    "Armand, le père de Manon, vit tout seul dans sa maison à Dinant.",
}
MANON_STAYS = """
jamais avec des listes à puces | latex | noix de cajou | pochette verte | apixaban | Red wine | coriander
| never on Wednesdays | 0470 55 01 23 | habite à Arlon | Kamiel Bogaert | Nadia Ferhat, rue Vanderkindere 77 | Declan
| Hélène Lambert | Michel Lambert | 88-2213-07 | Claire | Maureen | alto | Gaston | no meat
"""
OVER = {  # by the date that was told
    "The user is training for the Annecy marathon on 17 May 2026.",
    "The user has a driving test on 3 March 2026, on the third try.",
}
GOLD = """
first video game tournament | main hobbies are playing video games and watching movies | action and sci-fi movies
| writing, reading, watching movies and exploring nature | dramas and romcoms | which she recommended to Nate
| first watched her favorite romantic drama | finished her first full screenplay
| submit her first screenplay to film festivals | allergic to most reptiles and to animals with fur
| Hanging out with friends brings Joanna joy | a great way to express her feelings | two pet turtles
| people outside of his circle | does not expect to win big
"""

OUTDATED = """
Produktmanagerin | Brandt Logistik | Südvorstadt | Mia (4) | vier Jahre | hab eine Haselnussallergie | keine Haselnüsse
| 50 mg | 100 mg | no grapefruit juice | kein Grapefruitsaft | must not drink | am 14. April | 14. April, 9 Uhr
| vegetarian now | now vegetarian | I'll quit | thinking of quitting
"""  # what Lena and the assistant said, and what was made of it, that is not so in September
QUESTIONS = {  # and what answers them: each part, in one wording or another
    "What can I cook for Jonas and me tonight?": "eats fish | without meat",
    "Which medicine do I take at the moment?": "kein Sertralin mehr",
    "Where do I live and work now?": "Hamburg | Kelvin Robotics",
    "How old is Mia and where does she go?": "fünf Jahre/fünf geworden | Sonnenblume",
    "When is my next dentist appointment?": "22. September",
    "How should I travel by train? Seat and card?": "forward-facing | BahnCard 50",
}


def add(store: memstore.MemoryStore, said: Sequence[Json]) -> None:
    for (user, conversation), part in groupby(said, key=lambda one: (one["user"], one["conversation"])):
        own = [{key: value for key, value in one.items() if key not in ("user", "conversation")} for one in part]
        store.user(user).conversation(conversation).add_many(own)


def derive(
    url: str, server: RecordedModel, said: Sequence[Json], embedder: str = EMBEDDER, *, refused: int = 1
) -> list[Fact]:
    settings = {"embedder": embedder, "facts_model": "ollama:qwen3:4b-instruct", "ollama_url": server.url}
    with memstore.open(url, settings=settings | {"ollama_num_ctx": WINDOW, "ollama_timeout_seconds": 3600}) as store:
        add(store, said)
        report = store.derive()
        assert (report.failed, report.waiting, report.invalid_responses) == ((), (), 0)
        assert report.refused <= refused, "the model answers well"
        assert server.lost == []
        return store.user(said[0]["user"]).facts(state="all")


def count(wanted: str, facts: Sequence[Fact]) -> int:
    texts = [fact.text for fact in facts]
    return sum(any(part.strip() in text for text in texts) for part in wanted.split("|"))


def ended(facts: Sequence[Fact]) -> set[str]:
    return {fact.text for fact in facts if fact.state == "superseded"}


def test_lena_s_year(url: str) -> None:
    with RecordedModel("lena") as server:
        facts = derive(url, server, server.messages[:36])
        assert count(LASTING, facts) >= 32
        assert len(facts) <= 45, "none twice"
        assert server.tokens / 36 <= 300
        facts = derive(url, server, server.messages[36:])
        assert server.tokens / 50 <= 260
    assert ended(facts) == set(ENDED), "all that has changed, and nothing else"
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store:
        by_id = {fact.id: fact.text for fact in facts}
        for fact in (fact for fact in facts if fact.state == "superseded"):
            changes = [one for one in store.user("lena").fact_history(fact) if one.action == "superseded"]
            assert ENDED[fact.text] in by_id[changes[-1].other_id], fact.text  # type: ignore[index]
    active = [fact.text for fact in facts if fact.state == "active"]
    assert [text for text in active if "fünf Sätze" in text or "five sentences" in text] == [
        "Lena möchte immer kurze Antworten von höchstens fünf Sätzen."
    ], "said again in English"


def test_small_contexts_have_no_outdated_value_without_its_successor(url: str) -> None:
    embedder = ONNX_MINILM
    with RecordedModel("lena") as server:
        derive(url, server, server.messages[:36], embedder)
        derive(url, server, server.messages[36:], embedder)
    with memstore.open(url, settings={"embedder": embedder}) as store:
        conversation = store.user("lena").conversation("today")
        for question, answer in QUESTIONS.items():
            for budget in (300, 600):
                context = conversation.context(question, budget=budget)
                text = "\n".join(message["content"] for message in context.messages)
                marked = "(later: ", "nicht mehr am 14. April, sondern"  # which a fact says itself
                unmarked = "\n".join(line for line in text.splitlines() if not any(one in line for one in marked))
                shown = [part for part in OUTDATED.split("|") if part.strip() in unmarked]
                assert shown == [], (question, budget, text)
                assert "all nuts" in text, (question, budget)
                assert "fünf Sätze" in text or "five sentences" in text, (question, budget)
            assert all(any(one in text for one in part.strip().split("/")) for part in answer.split("|")), text
            assert any(one.reason == "superseded" and one.kind == "messages" for one in context.receipt.left_out)
        assert "50 mg" in str(conversation.context("Which medicine did I take in March 2026?", budget=600).messages)


def test_omar_s_year(url: str) -> None:
    with RecordedModel("omar") as server:
        facts = derive(url, server, server.messages)
        assert server.tokens / 40 <= 260
    assert ended(facts) == OMAR_ENDED, "whatever he is called"
    assert {fact.text for fact in facts if fact.state == "ended"} >= OVER
    [brother] = [fact.text for fact in facts if fact.subject == "The user's brother Karim"]
    assert brother == "The user's brother Karim lives in Oran."


def test_ana_s_half_year(url: str) -> None:
    with RecordedModel("ana") as server:
        facts = derive(url, server, server.messages)
    assert ended(facts) == ANA_ENDED
    assert not [fact.text for fact in facts if fact.state == "quarantined"]


def test_manon_s_ten_months(url: str) -> None:
    with RecordedModel("manon") as server:
        facts = derive(url, server, server.messages, refused=8)
        assert server.tokens / 60 <= 320
    assert ended(facts) == MANON_ENDED
    active = [fact for fact in facts if fact.state == "active"]
    assert count(MANON_STAYS, active) == len(MANON_STAYS.split("|")), "what was only touched on still holds"
    over = [fact.text for fact in facts if fact.state == "ended"]
    assert any("27 March" in text for text in over), "the form, by its date"


@pytest.mark.slow
def test_kills_while_the_model_answers_lose_one_call_each_and_change_no_row(url: str, twin: str) -> None:
    with RecordedModel("omar") as server:
        assert len(derive(twin, server, server.messages)) == 42
    with memstore.open(url, settings={"embedder": EMBEDDER}) as store, RecordedModel("omar") as server:
        add(store, server.messages)
        own = {"MEMSTORE_OLLAMA_URL": server.url, "MEMSTORE_OLLAMA_NUM_CTX": str(WINDOW)}
        env = environment(MEMSTORE_EMBEDDER=EMBEDDER, MEMSTORE_FACTS_MODEL="ollama:qwen3:4b-instruct", **own)
        calls = len(server.recording["answers"])
        server.hangs = True
        for _ in range(calls):
            server.is_hanging.clear()
            with subprocess.Popen([SCRIPT, "derive", "-d", url], env=env, stdout=-1, stderr=-1) as process:
                while process.poll() is None and not server.is_hanging.wait(0.05):
                    pass
                process.kill()
        assert len(server.asked()) == 2 * calls - 1, "each but the first was under way once"
    assert rows(url, "omar") == rows(twin, "omar")


def test_a_chat_in_which_a_user_without_a_name_says_one(url: str) -> None:
    with RecordedModel("chat") as server:
        derive(url, server, server.messages[:12])
        facts = derive(url, server, server.messages[12:])
    assert ended(facts) == {
        "Peter lives in Munich.",
        "Peter takes metformin for his blood sugar.",
        "Peter drives to Lake Garda with Eva on Friday, 8 May 2026.",
    }
    assert {fact.subject for fact in facts} == {"The user"}


def test_two_sessions_of_locomo(url: str) -> None:
    with RecordedModel("locomo") as server:
        facts = derive(url, server, server.messages)
        assert server.tokens / 51 <= 260
    assert count(GOLD, facts) == 15
    assert ended(facts) == set()
