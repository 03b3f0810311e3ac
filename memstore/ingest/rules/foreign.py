"""Facts of French, Spanish and Chinese, kept as they were said: `Alice: "J'habite à Lyon."`

Two things make a clause a fact: it fills a slot, or it matches a row of the tables here. English and German have rules
of their own (`extraction`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from memstore.ingest.rules.asides import closed_up
from memstore.ingest.rules.dates import anchor
from memstore.ingest.rules.drafts import FactDraft, Said
from memstore.ingest.rules.slots import FORMER, GRAMMARS, REPORTED, TEMPORARY, Statement
from memstore.models import kind_of

_LONGEST = 600

# (type, confidence, pattern): what a clause begins with, after words that lead in.
_ROWS = {
    "fr": (
        ("constraint", 0.9, r"j'ai (?:de l'|du |de la |une |des |un )?(?:\w+ )?(?:asthme|diabète|allergie\w*|migraines?"
         r"|épilepsie|dys(?:lexie|calculie|praxie)|\w*(?:arthr|bronch|sinus|hépat|gastr|ot|appendic|tendin|cyst|dermat"
         r"|méning|col|laryng|pharyng|conjonctiv|rhin|pancréat)ite|tdah|cancer|eczéma|hypertension)(?!\w)"),
        ("constraint", 0.9, r"(?:je suis|(?:mon|ma) \w+ est) (?:\w+ment )?(?:\w+(?:lexique|praxique|leptique|thmatique)"
         r"|diabétique|autiste|daltonien(?:ne)?|malentendante?|sourde?|aveugle|c[oœ]e?liaque|intolérante?)(?!\w)"),
        ("constraint", 0.9, r"je ne (?:peux|dois) pas (?:manger|boire|prendre|porter)"),
        ("relationship", 0.9, r"j'ai (?:un|une|deux|trois|quatre) (?:\w+ )?(?:frères?|sœurs?|enfants?|filles?|fils"
         r"|cousine?s?)"),
        ("relationship", 0.85, r"(?:mon|ma) (?:\w+ )?(?:mère|père|sœur|frère|femme|mari|copine|copain|fille|fils"
         r"|amie?) (?:\w+ )?"
         r"(?:est|a|habite|travaille|s'appelle|vient|aime)"),
        ("strength", 0.75, r"je (?:sais|peux) (?:jouer|nager|conduire|cuisiner|coder|parler)|je joue (?:du|de la|de l'"
         r"|au)"),
        ("weakness", 0.7, r"j'ai (?:du mal|peur) (?:à|de)"),
        ("interest", 0.75, r"je (?:fais|pratique) (?:du|de la|de l') \w+|je m'intéresse|je collectionne"),
        ("goal", 0.6, r"je (?:veux|voudrais|compte|souhaite) (?:apprendre|devenir|visiter|acheter|écrire|courir"
         r"|arrêter|déménager)"),
        ("plan", 0.75, r"(?:demain|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|la semaine prochaine|le mois"
         r" prochain),? "
         r"(?:je|nous|on) (?:vais|allons|va|pars|partons|prends)"),
        ("event", 0.75, r"(?:hier|avant-hier|lundi dernier|la semaine dernière|le mois dernier|l'année dernière|il y a"
         r" \w+ \w+),? "
         r"(?:j'ai|je suis|nous avons|on a|je me suis)"),
        ("event", 0.75, r"(?:j'ai|je suis|nous avons|nous sommes) .{2,80}(?:hier|la semaine dernière|le mois dernier"
         r"|l'an dernier)"),
    ),
    "es": (
        ("constraint", 0.9, r"tengo (?:\w+ )?(?:asma|diabetes|alergia|migrañas?|epilepsia|celiaquía|dis(?:lexia"
         r"|calculia"
         r"|praxia)|\w{3,}itis|tdah|cáncer|hipertensión)(?!\w)|(?:soy|mi \w+ es) (?:celíac[oa]|diabétic[oa]|asmátic[oa]"
         r"|epiléptic[oa]|disléxic[oa]|autista|daltónic[oa]|sord[oa]|cieg[oa]|intolerante)(?!\w)"),
        ("constraint", 0.9, r"no puedo (?:comer|beber|tomar|llevar)"),
        ("relationship", 0.9, r"tengo (?:un|una|dos|tres|cuatro) (?:\w+ )?(?:herman[oa]s?|hij[oa]s?|prim[oa]s?)"),
        ("relationship", 0.85, r"mi (?:\w+ )?(?:madre|padre|hermana|hermano|mujer|marido|novia|novio|hija|hijo"
         r"|amig[oa]) (?:\w+ )?"
         r"(?:es|está|tiene|vive|trabaja|se llama|viene)"),
        ("strength", 0.75, r"sé (?:tocar|nadar|conducir|cocinar|programar|hablar)|toco (?:el|la)"),
        ("weakness", 0.7, r"me (?:cuesta|da miedo)"),
        ("interest", 0.75, r"(?:practico|colecciono|hago) \w+|me intereso por|me interesa"),
        ("goal", 0.6, r"(?:quiero|quisiera|espero|pienso) (?:aprender|ser|visitar|comprar|escribir|correr|dejar"
         r"|mudarme)"),
        ("plan", 0.75, r"(?:mañana|el (?:lunes|martes|miércoles|jueves|viernes|sábado|domingo)|la semana que viene|el"
         r" mes que viene),? "
         r"(?:voy|vamos|viajo|salgo|vuelo)"),
        ("event", 0.75, r"(?:ayer|anteayer|la semana pasada|el mes pasado|el año pasado|hace \w+ \w+),? (?:\w+"
         r" ){0,2}?(?:fui|fuimos|hice|vi"
         r"|compré|estuve|conocí|visité|empecé|terminé|gané|perdí)"),
        ("event", 0.75, r"(?:fui|fuimos|hice|compré|conocí|visité|gané|perdí|empecé|terminé) .{2,80}(?:ayer"
         r"|pasad[oa])"),
    ),
    "zh": (
        ("identity", 0.95, r"我(?:的名字)?(?:叫|是)(?!不是|说|想|觉得)[^的，,。]{1,12}$"),
        ("identity", 0.9, r"我(?:现在)?(?:住在|搬到|来自|在)[^，,]{1,12}(?:了|工作|上班|上学)?$"),
        ("identity", 0.9, r"我今年[\d一二三四五六七八九十]+岁"),
        ("constraint", 0.95, r"我患?有(?:轻度|严重的?|一点|先天性)?(?:哮喘|糖尿病|癫痫|阅读障碍|读写障碍|高血压"
         r"|心脏病|自闭症|多动症|抑郁症)(?!的|患者)"
         r"|我对.{1,10}过敏|我(?:不吃|不能吃|不喝|不能喝).{1,10}"),
        ("relationship", 0.9, r"我(?:的)?(?:妈妈|爸爸|姐姐|妹妹|哥哥|弟弟|妻子|丈夫|女儿|儿子|朋友).{0,6}"
         r"(?:住在|叫|是|在)"),
        ("relationship", 0.85, r"我(?:有|养了)[一两三]?(?:只|条|个)(?:猫|狗|兔子|姐姐|妹妹|哥哥|弟弟|女儿|儿子)"),
        ("preference", 0.85, r"我(?:很|非常|最)?(?:喜欢|讨厌|爱)(?!你|您)"),
        ("goal", 0.6, r"我(?:想|打算)(?:学|去|买|当)"),
        ("event", 0.75, r"(?:昨天|前天|上周.?|上个月|去年)我?.{0,6}(?:去|买|看|参加|搬|开始)了?"),
    ),
}  # fmt: skip
_TABLES = {
    language: tuple((type, confidence, re.compile(pattern, re.IGNORECASE)) for type, confidence, pattern in rows)
    for language, rows in _ROWS.items()
}
_LEAD_IN = re.compile(
    r"(?:(?:oui|non|bon|alors|donc|et|mais|bonjour|salut|merci|ah|oh|au fait|d'ailleurs|sí|no|bueno|pues|y|pero|hola"
    r"|gracias"
    r"|por cierto|además|entonces|你好|嗯|对了|是的|其实)[ ,，:;.!¡—-]+)+",
    re.IGNORECASE,
)
_ASKS = re.compile(r"[?？]\W*$|[吗呢](?:\W*)$")
_WHEN = re.compile(
    r"(?:avant-)?hier|demain|(?:lun|mar|mercre|jeu|vendre|same)di(?: \w+)?|(?:la semaine|le mois|l['’]an(?:née)?) \w+"
    r"|il y a \w+ \w+|ayer|anteayer|mañana|el \w+(?: pasado)?|la semana (?:pasada|que viene)|hace \w+ \w+"
    r"|昨天|前天|明天",
    re.IGNORECASE,
)

# What kind of fact a slot is, by the first part of its attribute; all others are of identity.
_TYPES = {
    attribute: type
    for type, attributes in {
        "constraint": "diet eats allergy health medication regimen restriction",
        "relationship": "expecting partner marital_status pet petname",
        "preference": "likes favourite",
        "plan": "plan appointment deadline",
        "goal": "wants",
        "interest": "habit",
        "strength": "language",
        "procedure": "answers",
    }.items()
    for attribute in attributes.split()
}


def type_of(attribute: str, *, kin: bool = False) -> str:
    """Give the type of the facts that fill an attribute; whoever has a constraint, it is one."""
    root = attribute.removeprefix(FORMER).removeprefix(TEMPORARY).removeprefix(REPORTED).split("/")[0]
    type = _TYPES.get(root, "identity")
    return "relationship" if kin and type != "constraint" else type


def extract_foreign(said: Said, language: str, statements: Sequence[Statement]) -> list[FactDraft]:
    """Give the facts that a French, Spanish or Chinese message says, in its order; none of any other language.

    `statements` are those of the message that fill slots. No text raises an error.
    """
    if said.role != "user" or language not in _TABLES:
        return []
    drafts: dict[int, FactDraft] = {}
    for start, stop, slot, words, who in statements:
        subject = f"{said.subject}'s {who}" if who else said.subject
        type = type_of(slot.attribute, kin=bool(who))
        drafts[start] = quoted(said, (start, stop), type, 0.9, language, subject, words)
    for start, stop in _clauses(said, language):
        found = _row(said.stated[start:stop], language)
        if found and not any(one.start < stop and start < one.stop for one in drafts.values()):
            drafts[start] = quoted(said, (start, stop), *found, language, said.subject)
    return [drafts[start] for start in sorted(drafts)]


def _clauses(said: Said, language: str) -> Iterator[tuple[int, int]]:
    grammar, text = GRAMMARS[language], said.stated
    for start, stop in said.sentences:
        sentence = text[start:stop]
        if stop - start > _LONGEST or _ASKS.search(sentence) or re.search(r"[\"“”„«»「」『』]", sentence):
            continue
        if grammar.doubtful.search(sentence) or grammar.reported.search(sentence) or grammar.asks.search(sentence):
            continue
        gaps = list(grammar.next_clause.finditer(sentence))
        starts, stops = [0, *(gap.end() for gap in gaps)], [*(gap.start() for gap in gaps), len(sentence)]
        begin = None
        for first, last in zip(starts, stops, strict=True):
            begin = first if begin is None else begin
            if not _WHEN.fullmatch(sentence[begin:last]):  # "Hier," belongs to what follows
                yield start + begin, start + last
                begin = None


def _row(clause: str, language: str) -> tuple[str, float] | None:
    lead_in = _LEAD_IN.match(clause)
    words = clause[lead_in.end() if lead_in else 0 :].replace("’", "'").strip(" .!¡。！")
    unreal = GRAMMARS[language].unreal
    for type, confidence, pattern in _TABLES[language]:
        if pattern.match(words) and (type == "goal" or not unreal.search(words)):
            return type, confidence
    return None


def quoted(
    said: Said, span: tuple[int, int], type: str, confidence: float, language: str, subject: str, words: str = ""
) -> FactDraft:
    """Give the words of a message in `span` as a fact, as they were said: `Alice: "J'habite à Lyon."`

    `words` are given where they are not those of the span alone: they have a subject that the span leaves out.
    """
    clause = closed_up(words or said.stated[slice(*span)]).strip(" ,;.!¡。！，；")
    anchored, begins = anchor(clause, said.occurred_at, past=type not in ("plan", "goal"), language=language)
    told = begins is None or begins > said.occurred_at or type in ("plan", "goal")
    end = "。" if language == "zh" else "."
    text = f'{said.subject}: "{anchored[:1].upper()}{anchored[1:]}{end}"'
    return FactDraft(text, type, kind_of(type), subject, confidence, language, *span, None if told else begins)
