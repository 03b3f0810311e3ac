"""Names of months in the languages that dates are read in, as the Unicode CLDR has them."""

from __future__ import annotations

from collections.abc import Sequence

_NAMES = {
    "en": "january february march april may june july august september october november december",
    "de": "januar februar märz april mai juni juli august september oktober november dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
}
_SHORT = {
    "en": "jan feb mar apr may jun jul aug sep oct nov dec",
    "de": "jan feb märz apr mai juni juli aug sept okt nov dez",
    "fr": "janv févr mars avr mai juin juil août sept oct nov déc",
    "es": "ene feb mar abr may jun jul ago sept oct nov dic",
}
LANGUAGES = tuple(_NAMES)


def months(languages: Sequence[str] = LANGUAGES) -> dict[str, int]:
    """Return the number of each month by its names in these languages, without short ones."""
    return {name: number for code in languages for number, name in enumerate(_NAMES[code].split(), 1)}


def short_months(languages: Sequence[str] = LANGUAGES) -> dict[str, int]:
    """Return the number of each month by its short names in these languages, without their stops."""
    return {name: number for code in languages for number, name in enumerate(_SHORT[code].split(), 1)}
