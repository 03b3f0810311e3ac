"""Relative dates of French, Spanish and Chinese: patterns of ours find the phrase, the library dateparser resolves it.

Its own search in a text is not used: it takes "may" and "sat" for dates. English and German are resolved in `dates`,
because of what the library knows in no language: weekends, weeks as a whole, "a couple of", and weekdays with a word
that says which ("上周五", "letzten Freitag").
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import NamedTuple

_DAYS = {
    "fr": "lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche",
    "es": "lunes|martes|miércoles|jueves|viernes|sábado|domingo",
    "zh": "(?:周|星期|礼拜)[一二三四五六日天]",
}
MONTH_NAMES = {
    "fr": "janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre",
    "es": "enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre",
}
_VALUES = {
    "fr": {"un": 1, "une": 1, "deux": 2, "trois": 3, "quatre": 4, "cinq": 5, "six": 6, "sept": 7, "huit": 8, "neuf": 9,
           "dix": 10},
    "es": {"un": 1, "una": 1, "dos": 2, "tres": 3, "cuatro": 4, "cinco": 5, "seis": 6, "siete": 7, "ocho": 8,
           "nueve": 9,
           "diez": 10},
    "zh": {"一": 1, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10},
}  # fmt: skip
_UNITS = {
    "day": r"jours?|días?|天|日",
    "week": r"semaines?|semanas?|个?(?:周|星期|礼拜)",
    "month": r"mois|mes(?:es)?|个月",
    "year": r"ans?|années?|años?|年",
}
_UNIT = {
    "fr": "jours?|semaines?|mois|années?|ans?",
    "es": "días?|semanas?|meses|mes|años?",
    "zh": "天|周|个?星期|个?礼拜|个月|年",
}


def _number(language: str) -> str:
    if language == "zh":
        return rf"(?:\d{{1,3}}|[{''.join(_VALUES[language])}]{{1,3}})"
    return rf"(?:\d{{1,3}}|{'|'.join(sorted(_VALUES[language], key=len, reverse=True))})"


# The name of a group says how long the stretch is, and which way it lies: 0 the tense decides, 1 past, 2 future.
_FORMS = {
    "fr": rf"(?P<day_1>hier soir|avant-hier|hier)|(?P<day_0>aujourd'hui|ce (?:matin|soir)|cet après-midi)"
    r"|(?P<day_2>après-demain|demain)"
    rf"|(?P<weekday_1>(?:{_DAYS['fr']}) (?:dernier|passé))|(?P<weekday_2>(?:{_DAYS['fr']}) prochain)"
    r"|(?P<unit_1>la semaine (?:dernière|passée)|le mois (?:dernier|passé)|l'an(?:née)? (?:derni(?:er|ère)|passée?))"
    r"|(?P<unit_2>la semaine prochaine|le mois prochain|l'an(?:née)? prochaine?)"
    rf"|(?P<count_1>il y a {_number('fr')} (?:{_UNIT['fr']}))|(?P<count_2>dans {_number('fr')} (?:{_UNIT['fr']}))"
    rf"|(?<=le )(?P<date_0>(?:1er|\d{{1,2}}) (?:{MONTH_NAMES['fr']}))(?! \d{{4}})"
    rf"|(?<=en )(?P<month_0>{MONTH_NAMES['fr']})(?! \d{{4}})|(?<!le )(?P<weekday_0>{_DAYS['fr']})(?! \d)",
    "es": rf"(?P<day_1>anteayer|ayer|anoche)|(?P<day_0>hoy|esta (?:mañana|tarde|noche))|(?P<day_2>pasado mañana"
    r"|(?<!la )(?<!por )(?<!esta )mañana)"
    rf"|(?P<weekday_1>el (?:pasado (?:{_DAYS['es']})|(?:{_DAYS['es']}) pasado))"
    rf"|(?P<weekday_2>el (?:próximo (?:{_DAYS['es']})|(?:{_DAYS['es']}) (?:próximo|que viene)))"
    r"|(?P<unit_1>la semana pasada|el mes pasado|el año pasado)|(?P<unit_2>la (?:próxima semana|semana (?:que viene"
    r"|próxima))|el (?:próximo (?:mes|año)|(?:mes|año) (?:que viene|próximo)))"
    rf"|(?P<count_1>hace {_number('es')} (?:{_UNIT['es']}))|(?P<count_2>(?:dentro de"
    rf"|en) {_number('es')} (?:{_UNIT['es']}))"
    rf"|(?<=el )(?P<date_0>\d{{1,2}} de (?:{MONTH_NAMES['es']}))(?! de \d{{4}})"
    rf"|(?<=en )(?P<month_0>{MONTH_NAMES['es']})(?! de \d{{4}})|(?<=el )(?P<weekday_0>{_DAYS['es']})(?! \d)",
    "zh": rf"(?P<day_1>大前天|前天|昨天|昨晚)|(?P<day_0>今天|今晚|今早)|(?P<day_2>明天|明晚|后天)"
    rf"|(?P<weekday_1>上个?{_DAYS['zh']})|(?P<weekday_2>下个?{_DAYS['zh']})"
    r"|(?P<unit_1>上个?(?:周|星期|礼拜)|上个月|去年|前年)|(?P<unit_2>下个?(?:周|星期|礼拜)|下个月|明年)"
    rf"|(?P<count_1>{_number('zh')}(?:{_UNIT['zh']})(?:以前|之前|前))|(?P<count_2>{_number('zh')}(?:{_UNIT['zh']})(?:以后|之后"
    rf"|后))"
    r"|(?<![年\d])(?P<date_0>\d{1,2}月\d{1,2}[日号])|(?<![年\d个])(?P<month_0>\d{1,2}月)(?!\d)"
    rf"|(?P<weekday_0>{_DAYS['zh']})",
}
_PATTERNS = {
    language: re.compile(form if language == "zh" else rf"\b(?:{form})\b", re.IGNORECASE)
    for language, form in _FORMS.items()
}
# What the library does not know under the name that people use.
_KNOWN_AS = {
    "hier soir": "hier", "ce soir": "aujourd'hui", "ce matin": "aujourd'hui", "cet après-midi": "aujourd'hui",
    "l'an dernier": "l'année dernière", "l'an passé": "l'année dernière", "l'année passée": "l'année dernière",
    "la semaine passée": "la semaine dernière", "le mois passé": "le mois dernier",
    "l'an prochain": "l'année prochaine",
    "anoche": "ayer", "esta mañana": "hoy", "esta tarde": "hoy", "esta noche": "hoy", "pasado mañana": "en 2 días",
    "la semana que viene": "en 1 semana", "la próxima semana": "en 1 semana", "la semana próxima": "en 1 semana",
    "el mes que viene": "en 1 mes", "el próximo mes": "en 1 mes", "el mes próximo": "en 1 mes",
    "el año que viene": "en 1 año", "el próximo año": "en 1 año", "el año próximo": "en 1 año",
    "昨晚": "昨天", "今晚": "今天", "今早": "今天", "明晚": "明天", "前年": "2年前", "上个周": "上周", "下个周": "下周",
    "上星期": "上周", "上个星期": "上周", "上礼拜": "上周", "上个礼拜": "上周", "下星期": "下周", "下个星期": "下周",
    "下礼拜": "下周", "下个礼拜": "下周",
}  # fmt: skip
_UNTIL = re.compile(r"(?:\bjusqu['’](?:à|au|en)(?: la)?|\bhasta(?: el| la)?|到) ?$", re.IGNORECASE)
LANGUAGES = frozenset(_FORMS)


class Phrase(NamedTuple):
    """A relative date in a text: where it stands, how long it lasts (day, week, month or year), its first day."""

    start: int
    stop: int
    unit: str
    first: date


def phrases(text: str, said_at: datetime, language: str, *, past: bool) -> list[Phrase]:
    """Give the relative dates of a text in "fr", "es" or "zh"; `past` says which Friday a bare "vendredi" is."""
    found = []
    for match in _PATTERNS[language].finditer(text):
        form, _, way = (match.lastgroup or "").partition("_")
        first = _resolved(
            match[0].lower(),
            form,
            said_at,
            language,
            past={"1": True, "2": False}.get(way, past and not _UNTIL.search(text[: match.start()])),
        )
        if first:
            unit = _unit_of(form, match[0])
            found.append(Phrase(match.start(), match.end(), unit, _beginning(first, unit)))
    return found


def _resolved(said: str, form: str, said_at: datetime, language: str, *, past: bool) -> date | None:
    phrase = _KNOWN_AS.get(said, said)
    if form == "weekday" and phrase[0] in "上下":  # the one of last week, of next week
        monday = said_at.date().toordinal() - said_at.weekday()
        return date.fromordinal(
            monday + (-7 if phrase[0] == "上" else 7) + min(6, "一二三四五六日天".index(phrase[-1]))
        )
    if form == "weekday":
        day = re.search(_DAYS[language], phrase)
        phrase = day[0].replace("礼拜", "星期") if day else phrase
    if form == "count":
        phrase = re.sub(
            rf"{_number(language)}(?= |[天周星礼月年个])", lambda word: _digits(word[0], language), phrase, count=1
        )
        phrase = re.sub("个?(?:星期|礼拜)", "周", phrase).replace("以", "").replace("之", "")
    if form == "date" and language == "zh":
        month, day_of = re.findall(r"\d+", phrase)
        return _date(said_at, int(month), int(day_of), past)
    import dateparser  # noqa: PLC0415  (a fifth of a second, for one phrase in many)

    settings = {
        "RELATIVE_BASE": said_at.replace(tzinfo=None),
        "PREFER_DATES_FROM": "past" if past else "future",
        "PREFER_DAY_OF_MONTH": "first",
    }
    try:
        parsed = dateparser.parse(phrase, languages=[language], settings=settings)
    except (ValueError, OverflowError):
        return None
    return parsed.date() if parsed else None


def _digits(word: str, language: str) -> str:
    if word.isdigit():
        return word
    values = _VALUES[language]
    tens, ten, ones = word.partition("十")
    return str(values.get(tens, 1) * 10 + values.get(ones, 0) if ten else values.get(word, 1))


def _date(said_at: datetime, month: int, day: int, past: bool) -> date | None:
    try:
        this = date(said_at.year, month, day)
        if past and this > said_at.date():
            return this.replace(year=this.year - 1)
        return this.replace(year=this.year + 1) if not past and this < said_at.date() else this
    except ValueError:  # 31 June
        return None


def _unit_of(form: str, said: str) -> str:
    if form in ("day", "weekday", "date"):
        return "day"
    if form == "month":
        return "month"
    return next((unit for unit in ("month", "week", "year", "day") if re.search(_UNITS[unit], said)), "day")


def _beginning(day: date, unit: str) -> date:
    if unit == "week":
        return date.fromordinal(day.toordinal() - day.weekday())
    if unit == "month":
        return day.replace(day=1)
    return day.replace(month=1, day=1) if unit == "year" else day
