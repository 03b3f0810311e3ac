"""What a statement says, apart from how: its content words, in order.

Cosines cannot tell "prefers tea over coffee" from "prefers coffee over tea" (0.997), nor a left arm from a right one
(0.990). So two statements are one only if their content words agree: function words and fillers left out, numbers as
digits, endings cut, and a few words that mean the same written as one. English, German, French and Spanish at once, for
a fact does not always know its language; in others every word counts.
"""

from __future__ import annotations

import re
from functools import lru_cache

NOT = "not"
_WORD = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’](?=t\b)t)?", re.UNICODE)
_SHORT = re.compile(r"\bcan(?:not|['’]t)\b|n['’]t\b|\bn['’](?=\w)|\b[jlmdsct]['’](?=\w)", re.IGNORECASE)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FILLERS = _words(
    "a an the is are am be been being has have had do does did will would of to in at on as and it its their my"
    " his her our s i we now really very much lot currently also just still actually please way by already recently"
    " gladly so quite called named can"
    " ich wir bin ist sind habe hat haben der die das den dem des ein eine einen einem einer mein meine meinen"
    " meiner meinem im in am zu von und als mit jetzt gerade sehr gern gerne auch schon wirklich gegen kann"
    " je nous suis est ai a avons le la les un une des du de d l j en à au aux et que mon ma mes maintenant beaucoup"
    " vraiment aussi déjà train comme par sais viens"
    " yo soy es estoy está he ha me se el los las una unos unas mi mis del al y ahora mucho muy también ya como sé"
    " gusta gustan"
)
_NOTS = _words(
    "not no never none nothing cannot without nicht nichts kein keine keinen keiner nie niemals ohne ne n pas jamais"
    " aucun aucune sans nunca jamás sin ningún ninguna tampoco"
)
_NUMBERS = {
    word: str(number)
    for words in (
        "one two three four five six seven eight nine ten eleven twelve",
        "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
        "un deux trois quatre cinq six sept huit neuf dix onze douze",
        "uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
    )
    for number, word in enumerate(words.split(), 1)
}
del _NUMBERS["un"]
# Each group is one meaning, the first word its name; all after their endings were cut.
_GROUPS = (
    "live lives living lived reside wohne lebe wohnt lebt habite vis vit vivo vive viviendo",
    "own owns owned possess besitze besitzt tengo tiene tenemos",
    "mother mom mum mutter mama mère maman madre mamá",
    "father dad vater papa père padre papá",
    "colour color",
    "favourite favorite",
    "like likes enjoy enjoys enjoyed mag liebe love loves adore adores aime encanta encantan",
    "hate hates loathe loathes detest hasse déteste odio",
    "job works work working arbeite travaille trabajo",
    "allergy allergies allergic allergie allergisch allergique alergia alérgico alérgica",
    "move moved moving gezogen umgezogen déménagé déménager mudé mudado",
    "learn learning learnt lerne lernt apprends apprendre aprendo aprendiendo",
    "play plays playing spiele spielen spielt joue jouer toco tocar",
    "want wants wish",
    "buy bought got kaufte gekauft acheté compré comprado",
)
_MEANING = {word: group.split()[0] for group in _GROUPS for word in group.split()}
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|es|s|en|e)$")


@lru_cache(maxsize=4096)
def content(text: str) -> tuple[str, ...]:
    """Give the content words of a statement, in order; denials, however many, are one "not" at the end."""
    text = _SHORT.sub(_spelled_out, text)
    said, denied = [], False
    for word in _WORD.findall(text.casefold()):
        if word in _NOTS:
            denied = True
        elif word in _NUMBERS:
            said.append(_NUMBERS[word])
        elif word in _MEANING:
            said.append(_MEANING[word])
        elif word not in _FILLERS:
            said.append(_ENDING.sub("", word))
    return (*said, NOT) if denied else tuple(said)


def _spelled_out(short: re.Match[str]) -> str:
    return f" {NOT} " if "n" in short[0].casefold() else " "
