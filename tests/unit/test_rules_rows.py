"""What people say of their lives fills the slot that it is about, row by row; the page of facts has what is read."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memstore.ingest.rules.drafts import Said
from memstore.ingest.rules.slots import statements_with_slots
from memstore.ingest.rules.slotted import slotted

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "facts.md"
MONDAY = datetime(2023, 5, 8, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("language", "sentence", "attribute", "value"),
    [
        ("en", "I'm no longer dating Leo.", "former/partner", "leo"),
        ("en", "My husband dumped me last year.", "former/partner", ""),
        ("en", "I'm not a nurse any more.", "former/job", "nurse"),
        ("en", "I gave up rowing.", "former/habit/rowing", ""),
        ("en", "I moved away from Leeds.", "former/residence", "leeds"),
        ("en", "I was laid off by Siemens.", "former/employer", "siemens"),
        ("en", "I no longer work as a nurse.", "former/job", "nurse"),
        ("en", "I quit my job as a nurse.", "former/job", "nurse"),
        ("en", "I lost my job.", "former/employer", ""),
        ("en", "I was made redundant.", "former/employer", ""),
        ("en", "I dropped out of law.", "former/studies", "law"),
        ("en", "I stopped being vegan.", "former/diet", "vegan"),
        ("en", "My girlfriend left me.", "former/partner", ""),
        ("en", "I broke up with Leo at the station.", "former/partner", "leo"),
        ("en", "We had to put down our dog.", "former/pet/dog", ""),
        ("en", "I sold my car.", "former/car", ""),
        ("en", "The exam is cancelled.", "former/plan/exam", ""),
        ("en", "We called off the trip.", "former/plan/trip", ""),
        ("en", "I left Seefeld School.", "former/school", "seefeld school"),
        ("en", "I'm a pupil at Seefeld.", "school", "seefeld"),
        ("en", "I settled down in Leeds.", "residence", "leeds"),
        ("en", "My new home is Leeds.", "residence", "leeds"),
        ("en", "I'm visiting Leeds.", "temporary/residence", "leeds"),
        ("en", "My hometown is Leeds.", "hometown", "leeds"),
        ("en", "I got a job as a nurse.", "job", "nurse"),
        ("en", "I'm retired.", "job", "retired"),
        ("en", "We retired.", "job", "retired"),
        ("en", "My father retired last year.", "job", "retired"),
        ("en", "I dropped out of Seefeld School.", "former/school", "seefeld school"),
        ("en", "It's sesame that I'm allergic to.", "allergy/sesame", "yes"),
        ("en", "It's tree nuts I'm allergic to.", "allergy/tree nut", "yes"),
        ("en", "I joined Siemens.", "employer", "siemens"),
        ("en", "I got a job at Siemens.", "employer", "siemens"),
        ("en", "My employer is Siemens.", "employer", "siemens"),
        ("en", "I study law.", "studies", "law"),
        ("en", "I switched my major to law.", "studies", "law"),
        ("en", "I can eat eggs again.", "eats/egg", "yes"),
        ("en", "I changed my name to Ada Keller.", "name", "ada keller"),
        ("en", "I go by Max.", "nickname", "max"),
        ("en", "My wife is Anna.", "partner", "anna"),
        ("en", "I live at 12 Elm Road.", "address", "12 elm road"),
        ("en", "Keep your answers short.", "answers/length", "short"),
        ("en", "I prefer short answers.", "answers/length", "short"),
        ("en", "I outgrew my peanut allergy.", "allergy/peanut", "no"),
        ("en", "I take bisolvon 20 mg.", "medication/bisolvon", "yes"),
        ("en", "I've gone off coffee.", "likes/coffee", "no"),
        ("en", "I quit smoking.", "smoking", "no"),
        ("en", "I'm a non-smoker.", "smoking", "no"),
        ("en", "I'm a smoker.", "smoking", "yes"),
        ("en", "I no longer drink alcohol.", "drinking", "no"),
        ("en", "I'm sober.", "drinking", "no"),
        ("en", "My new car is a Golf.", "car", "golf"),
        ("en", "I sold my bike.", "owns/bike", "no"),
        ("en", "The deadline for the report was moved to Friday.", "deadline/report", "friday"),
        ("en", "The deadline for the report is Friday.", "deadline/report", "friday"),
        ("en", "The report is due on Friday.", "deadline/report", "friday"),
        ("en", "The new date for the exam is 5 May.", "plan/exam", "5 may"),
        ("de", "Ich bin ans Gymnasium Seefeld gewechselt.", "school", "gymnasium seefeld"),
        ("de", "Ich besuche das Gymnasium Seefeld.", "school", "gymnasium seefeld"),
        ("de", "Ich wohne nicht mehr in Bonn.", "former/residence", "bonn"),
        ("de", "Ich arbeite nicht mehr als Lehrer.", "former/job", "lehrer"),
        ("de", "Ich habe bei Siemens gekündigt.", "former/employer", "siemens"),
        ("de", "Ich wurde entlassen.", "former/employer", ""),
        ("de", "Ich studiere nicht mehr Medizin.", "former/studies", "medizin"),
        ("de", "Wir haben unsere Hochzeit abgesagt.", "former/marital_status", "verlobt"),
        ("de", "Ich bin nicht mehr verheiratet.", "former/marital_status", "verheiratet"),
        ("de", "Leo hat sich von mir getrennt.", "former/partner", ""),
        ("de", "Wir haben uns getrennt.", "former/partner", ""),
        ("de", "Ich habe mein Auto verkauft.", "former/car", ""),
        ("de", "Die Prüfung wurde abgesagt.", "former/plan/prüfung", ""),
        ("de", "Ich bin wieder zurück in Bonn.", "residence", "bonn"),
        ("de", "Ich komme ursprünglich aus Bonn.", "hometown", "bonn"),
        ("de", "Ich bin in Bonn geboren.", "hometown", "bonn"),
        ("de", "Ich bin selbstständig.", "job", "selbstständig"),
        ("de", "Ich habe eine neue Stelle als Lehrer.", "job", "lehrer"),
        ("de", "Ich habe bei Siemens angefangen.", "employer", "siemens"),
        ("de", "Ich bin zu Siemens gewechselt.", "employer", "siemens"),
        ("de", "Ich esse wieder Fleisch.", "diet", "omnivore"),
        ("de", "Unsere Katze heißt Momo.", "petname/katze", "momo"),
        ("de", "Ich habe am 3. Mai Geburtstag.", "birthday", "3. mai"),
        ("de", "Ich habe geheiratet.", "marital_status", "verheiratet"),
        ("de", "Ich bin mit Leo verlobt.", "partner", "leo"),
        ("de", "Meine E-Mail ist a@b.de.", "email", "a@b.de"),
        ("de", "Bitte antworte mir auf Englisch.", "answers/language", "englisch"),
        ("de", "Ich nehme kein Ibuprofen mehr.", "medication/ibuprofen", "no"),
        ("de", "Ich mag Kaffee nicht mehr.", "likes/kaffee", "no"),
        ("de", "Ich hasse Kaffee.", "likes/kaffee", "no"),
        ("de", "Ich rauche nicht mehr.", "smoking", "no"),
        ("de", "Ich fahre einen Golf.", "car", "golf"),
        ("de", "Ich habe mein Fahrrad verkauft.", "owns/fahrrad", "no"),
        ("de", "Ich habe ein neues Fahrrad.", "owns/fahrrad", "yes"),
        ("de", "Am 3. Mai habe ich eine Prüfung.", "plan/prüfung", "3. mai"),
        ("fr", "Je n'habite plus à Lyon.", "former/residence", "lyon"),
        ("fr", "J'ai quitté Lyon.", "former/residence", "lyon"),
        ("fr", "Je ne suis plus professeur.", "former/job", "professeur"),
        ("fr", "J'ai démissionné de Renault.", "former/employer", "renault"),
        ("fr", "J'ai démissionné.", "former/employer", ""),
        ("fr", "Je n'étudie plus le droit.", "former/studies", "droit"),
        ("fr", "Je ne suis plus végétarienne.", "former/diet", "végétarienne"),
        ("fr", "On s'est séparés.", "former/partner", ""),
        ("fr", "Notre chien est mort.", "former/pet/chien", ""),
        ("fr", "J'ai vendu ma voiture.", "former/car", ""),
        ("fr", "La réunion est annulée.", "former/plan/réunion", ""),
        ("fr", "Je viens de Lyon.", "hometown", "lyon"),
        ("fr", "J'ai trouvé un travail de professeur.", "job", "professeur"),
        ("fr", "J'étudie le droit.", "studies", "droit"),
        ("fr", "Je mange de nouveau de la viande.", "diet", "omnivore"),
        ("fr", "Je ne mange plus de viande.", "diet", "végétarien"),
        ("fr", "Je ne mange pas de poisson.", "eats/poisson", "no"),
        ("fr", "Appelle-moi Max.", "nickname", "max"),
        ("fr", "Je suis né le 3 mai.", "birthday", "3 mai"),
        ("fr", "On s'est mariés.", "marital_status", "mariée"),
        ("fr", "Mon numéro est le 06 12 34 56 78.", "phone", "06 12 34 56 78"),
        ("fr", "Mon e-mail est a@b.fr.", "email", "a@b.fr"),
        ("fr", "Ma nouvelle adresse est 3 rue Verte.", "address", "3 rue verte"),
        ("fr", "Réponds en anglais.", "answers/language", "anglais"),
        ("fr", "Je ne suis plus allergique aux noix.", "allergy/noix", "no"),
        ("fr", "J'ai arrêté de boire.", "drinking", "no"),
        ("fr", "Je bois du vin.", "drinking", "yes"),
        ("fr", "J'ai vendu mon vélo.", "owns/vélo", "no"),
        ("fr", "J'ai un vélo.", "owns/vélo", "yes"),
        ("es", "Ya no vivo en Lima.", "former/residence", "lima"),
        ("es", "Ya no soy enfermera.", "former/job", "enfermera"),
        ("es", "Dejé mi trabajo en Siemens.", "former/employer", "siemens"),
        ("es", "He perdido mi trabajo.", "former/employer", ""),
        ("es", "Ya no estudio derecho.", "former/studies", "derecho"),
        ("es", "Ya no soy vegana.", "former/diet", "vegana"),
        ("es", "Nos hemos separado.", "former/partner", ""),
        ("es", "Mi perro murió.", "former/pet/perro", ""),
        ("es", "He vendido mi coche.", "former/car", ""),
        ("es", "La reunión ha sido cancelada.", "former/plan/reunión", ""),
        ("es", "Soy de Lima.", "hometown", "lima"),
        ("es", "Conseguí un trabajo de enfermera.", "job", "enfermera"),
        ("es", "Empecé a trabajar en Siemens.", "employer", "siemens"),
        ("es", "Vuelvo a comer carne.", "diet", "omnívoro"),
        ("es", "Ya no como carne.", "diet", "vegetariano"),
        ("es", "Ya no como pescado.", "eats/pescado", "no"),
        ("es", "Llámame Max.", "nickname", "max"),
        ("es", "Nací el 3 de mayo.", "birthday", "3 de mayo"),
        ("es", "Nos casamos.", "marital_status", "casada"),
        ("es", "Mi número es 612 345 678.", "phone", "612 345 678"),
        ("es", "Mi correo es a@b.es.", "email", "a@b.es"),
        ("es", "Mi nueva dirección es Calle Verde 3.", "address", "calle verde 3"),
        ("es", "Responde siempre en inglés.", "answers/language", "inglés"),
        ("es", "Ya no soy alérgica a las nueces.", "allergy/nuece", "no"),
        ("es", "Mi gato se llama Momo.", "petname/gato", "momo"),
        ("es", "Conduzco un Golf.", "car", "golf"),
        ("es", "He vendido mi moto.", "owns/moto", "no"),
        ("es", "Tengo una moto.", "owns/moto", "yes"),
        ("es", "La reunión ha sido aplazada al lunes.", "plan/reunión", "lunes"),
        ("es", "La reunión se ha pasado al lunes.", "plan/reunión", "lunes"),
        ("es", "Tengo una reunión el lunes.", "plan/reunión", "lunes"),
        ("zh", "我不住在北京了。", "former/residence", "北京"),
        ("zh", "我不在华为工作了。", "former/employer", "华为"),
        ("zh", "我从华为辞职了。", "former/employer", "华为"),
        ("zh", "我不是老师了。", "former/job", "老师"),
        ("zh", "我不再是素食者了。", "former/diet", "素食者"),
        ("zh", "我不再吃素了。", "former/diet", "素食者"),
        ("zh", "我和小李分手了。", "former/partner", "小李"),
        ("zh", "我们分手了。", "former/partner", ""),
        ("zh", "我来自北京。", "hometown", "北京"),
        ("zh", "我退休了。", "job", "退休"),
        ("zh", "我为华为工作。", "employer", "华为"),
        ("zh", "我不再吃鱼了。", "eats/鱼", "no"),
        ("zh", "我改名叫李明了。", "name", "李明"),
        ("zh", "我已婚。", "marital_status", "已婚"),
        ("zh", "我离婚了。", "marital_status", "离婚"),
        ("zh", "我订婚了。", "marital_status", "订婚"),
        ("zh", "我的电话是13800138000。", "phone", "13800138000"),
        ("zh", "请用英文回答。", "answers/language", "英文"),
        ("zh", "我家的猫叫咪咪。", "petname/猫", "咪咪"),
    ],
)
def test_a_sentence_fills_its_slot(language: str, sentence: str, attribute: str, value: str) -> None:
    (found,) = statements_with_slots(Said(sentence, "user", "Alice", MONDAY), language)
    assert (found.slot.attribute, found.slot.value) == (attribute, value)


def test_nobody_is_five_hundred_years_old() -> None:
    assert not statements_with_slots(Said("I am 500 now.", "user", "Alice", MONDAY), "en")


def examples() -> list[tuple[str, ...]]:
    """Give the rows of the first table of the page of facts: what is said, the facts, their types."""
    table = PAGE.read_text(encoding="utf-8").partition("|---|---|---|\n")[2].partition("\n\n")[0]
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in table.splitlines()]


@pytest.mark.parametrize(("said", "told", "types"), examples())
def test_the_page_of_facts_tells_what_is_read(said: str, told: str, types: str) -> None:
    asked = re.fullmatch(r"\*(.+)\* (.+)", said)
    before = Said(asked[1] if asked else "Hi Alice!", "user", "Bob", MONDAY)
    drafts = [one.draft for one in slotted(Said(asked[2] if asked else said, "user", "Alice", MONDAY), [before])]
    assert " · ".join(one.text for one in drafts) == re.sub(r" \*\(.+\)\*", "", told)
    every = [one.type for one in drafts]
    assert types in (", ".join(every), *(every if len(set(every)) == 1 else ()))
