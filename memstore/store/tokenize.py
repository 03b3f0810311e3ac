"""The terms of a text, by which recall finds words, and the hashes of them in the database.

A query meets a message where they share terms, so both pass through `terms`. It takes the language from the text
alone: English or German by their stop words, and where these do not decide (most short questions), the stems of both.
So a term is missed only between two texts that are clearly of different languages and stem a common word differently.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from uuid import UUID

import Stemmer

from memstore.language import QUESTION_MARKS, load_words, word_set

# A change of terms is another number: maintenance then makes those of stored chunks anew.
TOKENIZER_VERSION = 2
# Longer ones (data, not words) meet by their beginning.
MAX_TERM_CHARS = 200
# Terms that are no words, and the texts that have them.
TEXT_TERMS: Mapping[str, Callable[[str], bool]] = {"?": lambda text: text.rstrip().endswith(QUESTION_MARKS)}

_ENGLISH, _GERMAN = load_words("stop_words", "en"), load_words("stop_words", "de")
# Words of both languages, or of one that are content in the other: they say nothing about the language.
_EITHER = (_ENGLISH & _GERMAN) | word_set("bin bist dies hat man war die den des dem")
_ENGLISH_ONLY, _GERMAN_ONLY = _ENGLISH - _EITHER, _GERMAN - _EITHER

# `\w` knows no combining marks, without which words of Devanagari, Arabic with vowels, Tamil… fall to pieces.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0\u0900-\u0963\u0971-\u0df3"
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u0f18\u0f19\u0f35\u0f37\u0f39\u0f3e\u0f3f"
    "\u0f71-\u0f84\u0f86\u0f87\u0f8d-\u0fbc\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d"
    "\u1071-\u1074\u1082-\u108d\u135d-\u135f\u17b4-\u17d3\u1ab0-\u1ace\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f"
)
_W = rf"[\w{_MARKS}\u200c\u200d]"
_TOKEN = re.compile(
    r"(?P<url>https?://[^\s<>\"']+)"
    r"|(?P<mail>\w[\w.+-]{0,63}@\w[\w-]*+(?:\.\w[\w-]*+)+)"  # bounded: a row of "a-a-a-…" is not read again and again
    r"|(?P<number>\d{1,3}(?:,\d{3})+(?![\d,]))"
    rf"|(?P<word>{_W}+(?:[._:/'’]{_W}+)*)"
)
_PART = re.compile(rf"(?:(?!_){_W})+")
# French and Italian join a short word to the next: "l'hôpital", "dell'arte". Of all other words the part before the
# apostrophe is the word, and what follows an ending, as in Turkish: "İstanbul'da". Not in English "don't".
_ELIDED = re.compile(
    r"(?<![\w'])(?:[cdjlmnstv]|qu|gl|un|(?:jus|lors|puis|quoi|quel|pres)qu|all|coll|dall|dell|nell|sull|quest|quell|bell|sant|anch"
    r"|com|cos|dov|quand|senz|tutt|mezz|pover|grand|entr)'(?=\w\w)"
)
_ENDING = re.compile(r"(?:(?<=\w\w)|(?<=\d))(?:'(?!t\b)\w+)+(?!\w)")
# What nobody sees, so that nobody types it: soft hyphens, spaces of no width, marks of direction and of variants.
_INVISIBLE = re.compile("[\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")
# Cases of Turkish I, and forms of the apostrophe, which are one letter for a search.
_FOLDED = str.maketrans({"ı": "i", "’": "'", "‘": "'", "ʼ": "'", "ʻ": "'"})
# Characters that may be a word alone: Chinese ones and Korean syllables.
_WORD_ALONE = re.compile("[\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
# Chinese, Japanese, Korean, Thai, Lao, Burmese, Khmer: written without spaces, or (Korean) with endings grown on.
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+)"
)


def terms(text: str) -> Counter[str]:
    """Return the terms of a text and how often each occurs.

    Words are folded (NFKC, case) and stemmed, stop words are left out; numbers stay. Identifiers, versions, e-mail
    addresses, URLs and words with an apostrophe are there whole and in parts; scripts without spaces as pairs of
    characters, and alone where a character may be a word.
    """
    words = list(_words(_fold(text)))
    leaning = _leaning(words)
    languages: tuple[str, ...] = ("english", "german")
    stop = _ENGLISH | _GERMAN_ONLY
    if leaning:
        stop, languages = (_ENGLISH, ("english",)) if leaning > 0 else (_GERMAN, ("german",))
    counts: Counter[str] = Counter()
    for word in words:
        if word not in stop:
            term = word[:MAX_TERM_CHARS]
            for stem in _stems(term, languages) if term.isalpha() else (term,):
                # `update` takes as long for each word as all the rest.
                counts[stem] += 1
    return counts


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold()
    return folded.replace("i\u0307", "i").translate(_FOLDED)


def is_english(text: str) -> bool:
    """Return whether a text has stop words of English, and more of them than of German."""
    return _leaning(_words(_fold(text))) > 0


def _leaning(words: Iterable[str]) -> int:
    return sum([(word in _ENGLISH_ONLY) - (word in _GERMAN_ONLY) for word in words])


def hash_term(term: str, user_id: UUID) -> int:
    """Return the hash of a term as the database keeps it: 64 bits, signed, another one for every user.

    The user's id is the key, so that equal words of two users are not to be seen in the index.
    """
    return _hash(term, blake2b(digest_size=8, key=user_id.bytes))


def hash_terms(text: str, user_id: UUID) -> tuple[list[int], list[int]]:
    """Return the hashes of a text's terms, ascending and each once, and their frequencies, at most 32,767 each.

    Those of `TEXT_TERMS` are among them.
    """
    keyed = blake2b(digest_size=8, key=user_id.bytes)
    # Two terms of one hash of 64 bits do not come up in a text; if they did, one's frequency would do for both.
    frequencies = {_hash(term, keyed): count for term, count in terms(text).items()}
    frequencies |= {_hash(term, keyed): 1 for term, has_term in TEXT_TERMS.items() if has_term(text)}
    hashes = sorted(frequencies)
    # A frequency is a smallint.
    return hashes, [min(frequencies[each], 32_767) for each in hashes]


def _hash(term: str, keyed: blake2b) -> int:
    # A third sooner than made anew.
    digest = keyed.copy()
    digest.update(term.encode())
    return int.from_bytes(digest.digest(), "big", signed=True)


def _words(text: str) -> Iterator[str]:
    for token in _TOKEN.finditer(text):
        kind, whole = token.lastgroup, token[0]
        if kind == "number":
            yield whole.replace(",", "")
        elif kind == "word" and whole.isalnum() and whole.isascii():
            yield whole
        elif kind == "word":
            head, _, clitic = whole.rpartition("'")
            word = head if head and clitic in ("s", "ll", "ve", "re", "d", "m") else whole
            joined = word.replace("'", "")
            yield from _parts(joined)
            if joined != word:
                alone = (_ELIDED if _ELIDED.search(word) else _ENDING).sub("", word).replace("'", "")
                if alone != joined:
                    yield from _parts(alone)
        else:
            yield from _parts(whole.rstrip(".,;:!?)]}"))


def _parts(whole: str) -> Iterator[str]:
    parts = _PART.findall(whole.removeprefix("https://").removeprefix("http://"))
    if parts != [whole]:
        yield whole
    for part in parts:
        # The 1 of v2.0.1 is noise.
        if part == whole or len(part) > 1 or not part.isdigit():
            yield from _pairs(part)


def _pairs(word: str) -> Iterator[str]:
    if word.isascii():
        yield word
        return
    for number, run in enumerate(_UNSPACED.split(word)):
        if number % 2 and len(run) > 1:
            yield from (run[i : i + 2] for i in range(len(run) - 1))
            yield from _WORD_ALONE.findall(run)
        elif run:
            yield run


_PER_THREAD = threading.local()


@lru_cache(maxsize=32_768)
def _stems(word: str, languages: tuple[str, ...]) -> tuple[str, ...]:
    # Only words of letters come here, and few stay: an address or a number is not kept in the process's memory.
    return tuple({_stemmer(language).stemWord(word): None for language in languages})


def _stemmer(language: str) -> Stemmer.Stemmer:
    # One for each thread, for PyStemmer's may not be shared; its own cache is off, as `_stems` has one.
    stemmers: dict[str, Stemmer.Stemmer] = vars(_PER_THREAD).setdefault("stemmers", {})
    if language not in stemmers:
        stemmers[language] = Stemmer.Stemmer(language, 0)
    return stemmers[language]
