"""Which language a text is in, by its commonest words.

A message of a chat is short, and a detector of seventy languages guesses wrongly on "Me too" more often than it helps.
"""

from __future__ import annotations

import re

_HAN = re.compile(r"[\u4e00-\u9fff]")
_KANA_OR_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
_WORD = re.compile(r"[^\W\d_]+(?=['’])['’]?|[^\W\d_]+")
_COMMON = {
    language: frozenset(words.split())
    for language, words in {
        "en": "the i i' a an and is are am was to of in my it you that for on with not have don at be this but we me no"
        " he she they",
        "de": "ich der die das und ist nicht ein eine mein meine wir du zu mit auf für im am es habe bin war aber auch"
        " den in an was seit sie er jetzt noch von wohne wohnt lebe",
        "fr": "je j' le les des et est ne pas un une mon ma nous vous à dans pour sur avec c' l' d' suis ai au du que"
        " très la en a il elle de on",
        "es": "yo el los las y es no un una mi mis que en de con para por muy me se soy estoy tengo al del lo pero ya"
        " la a he ha como ahora también trabajo hoy este esta quizás",
    }.items()
}
# A word of several languages tells little of each.
_TELLS = {
    language: {word: 1 / sum(word in common for common in _COMMON.values()) for word in words}
    for language, words in _COMMON.items()
}


def language_of(text: str) -> str:
    """Give the language of a text (ISO 639-1) among en, de, fr, es and zh; "und" where the words do not tell."""
    text = text[:4_000]
    if _KANA_OR_HANGUL.search(text):
        return "und"
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(text)]
    if len(_HAN.findall(text)) > len(words):
        return "zh"
    counts = sorted((sum(tells.get(word, 0) for word in words), language) for language, tells in _TELLS.items())
    (second, _), (most, language) = counts[-2:]
    return language if most > second else "und"
