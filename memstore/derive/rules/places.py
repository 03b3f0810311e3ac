"""Which values are countries: "I live in Germany" takes nothing from "I live in Berlin", it is only less exact.

The names are those of the Unicode CLDR, by Babel, in the languages that slots are read in, and a few of everyday use.
Which town lies in which country is not known here: that takes a gazetteer of tens of megabytes.
"""

from __future__ import annotations

from functools import cache

from babel import Locale

COUNTRY = "/country"  # the end of an attribute that holds a country which somebody has not moved to, but is in
_LANGUAGES = ("en", "de", "fr", "es", "zh")
_EVERYDAY = (
    "usa|us|u.s.|states|america|uk|u.k.|britain|great britain|england|scotland|wales|northern ireland|holland|czech"
    " republic|amerika|großbritannien|england|schottland|nordirland|tschechien|angleterre|écosse|pays de galles"
    "|grande-bretagne|amérique|hollande|inglaterra|escocia|gales|gran bretaña|ee. uu.|holanda|英格兰|苏格兰"
)


def is_country(value: str) -> bool:
    """Whether a value, in lower case without an article, is the name of a country or of a continent."""
    return value in _countries()


@cache
def _countries() -> frozenset[str]:
    names = {name.casefold() for language in _LANGUAGES for name in Locale(language).territories.values()}
    # Names of towns too: Granada in Spain is no Grenada.
    towns = {
        "granada",
        "singapore",
        "singapur",
        "singapour",
        "新加坡",
        "monaco",
        "gibraltar",
        "luxembourg",
        "luxemburg",
        "luxemburgo",
    }
    return frozenset({*names, *_EVERYDAY.split("|")} - towns)
