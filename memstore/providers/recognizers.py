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
from types import ModuleType
from typing import Any

from memstore.providers.optional import brought_by

_DETECTORS = (
    *("artifactory", "aws", "azure_storage_key", "basic_auth", "discord", "github_token", "gitlab_token", "mailchimp"),
    *("pypi_token", "sendgrid", "slack", "square_oauth", "stripe", "telegram_token", "twilio"),
)
_IN_A_PHRASE = {"aws", "basic_auth"}  # whose one group is the secret: `aws_secret_key = "(…)"`, `://name:(…)@`


@dataclass(frozen=True, slots=True)
class Recognizers:
    """What the libraries know."""

    patterns: tuple[tuple[re.Pattern[str], bool], ...]  # of keys; and whether the secret is what is in the group
    account: Any
    social_security: Any

    def keys(self, line: str) -> Iterator[tuple[int, int]]:
        """Give where keys of services, tokens and passwords in URLs stand in a line."""
        for pattern, grouped in self.patterns:
            for found in pattern.finditer(line):
                yield found.span(1) if grouped else found.span()

    def is_account(self, signs: str) -> bool:
        """Whether this is an IBAN: of a country's length and shape, with the right check digits."""
        return bool(self.account.is_valid(signs))

    def is_social_security(self, number: str) -> bool:
        """Whether this is a number of the US social security that may have been given out."""
        return bool(self.social_security.is_valid(number))


@cache
def load() -> Recognizers:
    """Give them; raises `ProviderMissing` where the extra `secrets` is not installed."""
    with brought_by("secrets", "detect_secrets", "stdnum"):
        ssn, iban = (import_module(f"stdnum.{name}") for name in ("us.ssn", "iban"))
        found = {name: import_module(f"detect_secrets.plugins.{name}") for name in _DETECTORS}
    patterns = [(one, name in _IN_A_PHRASE and one.groups == 1) for name in found for one in _patterns(found[name])]
    return Recognizers(tuple(patterns), iban, ssn)


def _patterns(module: ModuleType) -> Iterator[re.Pattern[str]]:
    """Give what the detector of a module finds."""
    for one in vars(module).values():
        if isinstance(one, type) and one.__module__ == module.__name__:
            yield from getattr(one, "denylist", ())
