"""Secrets that libraries know: keys of services by detect-secrets, check digits by python-stdnum. The extra `secrets`.

Of detect-secrets the detectors of known shapes are asked, each for what it finds in a line; none of them is let verify
what it found, which would ask the service over the network. Those that guess (entropy, names of variables) find
"secrets" in any code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from string import ascii_letters
from types import ModuleType
from typing import Any
from unicodedata import decimal

from memstore.providers.optional import brought_by

# Of a card the first digits say who issued it: of the numbers that pass the check digit by chance they rule out nine
# in ten, such as times in milliseconds.
_ISSUED = (
    *(("4", length) for length in (13, 16, 19)),  # Visa
    *((str(first), 16) for first in (*range(51, 56), *range(2221, 2721))),  # Mastercard
    *((first, 15) for first in ("34", "37")),  # American Express
    *((first, 16) for first in ("6011", "644", "645", "646", "647", "648", "649", "65")),  # Discover
    *((first, 16) for first in ("35", "62")),  # JCB, UnionPay
    *((first, 14) for first in ("300", "301", "302", "303", "304", "305", "36", "38")),  # Diners Club
)
_BY_LENGTH = {
    length: tuple(first for first, long in _ISSUED if long == length) for length in {long for _, long in _ISSUED}
}

_AS_DIGITS = str.maketrans({one: str(int(one, 36)) for one in ascii_letters})  # of an IBAN

_DETECTORS = (
    *("artifactory", "aws", "azure_storage_key", "basic_auth", "discord", "github_token", "gitlab_token", "mailchimp"),
    *("openai", "pypi_token", "sendgrid", "slack", "square_oauth", "stripe", "telegram_token", "twilio"),
)
_IN_A_PHRASE = {"aws", "basic_auth"}  # whose one group is the secret: `aws_secret_key = "(…)"`, `://name:(…)@`


@dataclass(frozen=True, slots=True)
class Recognizers:
    """What the libraries know."""

    patterns: tuple[tuple[re.Pattern[str], bool], ...]  # of keys; and whether the secret is what is in the group
    luhn: Any
    account: Any
    social_security: Any

    def keys(self, line: str) -> Iterator[tuple[int, int]]:
        """Give where keys of services, tokens and passwords in URLs stand in a line."""
        for pattern, grouped in self.patterns:
            for found in pattern.finditer(line):
                yield found.span(1) if grouped else found.span()

    def is_card(self, number: str) -> bool:
        """Whether digits, with blanks or hyphens between them, are the number of a card that somebody issues."""
        digits = "".join(filter(str.isdecimal, number))
        if not digits.isascii():  # of another script
            digits = "".join(str(decimal(one)) for one in digits)
        return digits.startswith(_BY_LENGTH.get(len(digits), ("x",))) and bool(self.luhn.is_valid(digits))

    def is_account(self, number: str) -> bool:
        """Whether this is an IBAN: of a country's length and shape, with the right check digits."""
        signs = "".join(filter(str.isalnum, number))
        if not signs.isascii() or int((signs[4:] + signs[:4]).translate(_AS_DIGITS)) % 97 != 1:
            return False  # 40 times as quick as to look at its country first
        return bool(self.account.is_valid(signs))

    def is_social_security(self, number: str) -> bool:
        """Whether this is a number of the US social security that may have been given out."""
        return bool(self.social_security.is_valid(number))


@cache
def load() -> Recognizers:
    """Give them; raises `ProviderMissing` where the extra `secrets` is not installed."""
    with brought_by("secrets", "detect_secrets", "stdnum"):
        ssn, iban, luhn = (import_module(f"stdnum.{name}") for name in ("us.ssn", "iban", "luhn"))
        found = {name: import_module(f"detect_secrets.plugins.{name}") for name in _DETECTORS}
    patterns = [(one, name in _IN_A_PHRASE and one.groups == 1) for name in found for one in _patterns(found[name])]
    return Recognizers(tuple(patterns), luhn, iban, ssn)


def _patterns(module: ModuleType) -> Iterator[re.Pattern[str]]:
    """Give what the detector of a module finds."""
    for one in vars(module).values():
        if isinstance(one, type) and one.__module__ == module.__name__:
            yield from getattr(one, "denylist", ())
