"""Every error that memstore raises, in one tree. Each message says what to do next.

MemstoreError
├── ConfigurationError           a setting cannot be used as it stands
├── DatabaseError                the database refused or failed
│   ├── DatabaseUnreachable      nothing answers at the URL
│   ├── ExtensionMissing         the server has no pgvector, or too old a one
│   ├── SchemaOutdated           the tables are older than this memstore
│   └── SchemaTooNew             the tables were made by a newer memstore
├── EmbeddedError                the private Postgres could not be started or stopped
├── InvalidInput                 what was given cannot be stored; nothing of it was
│   └── NotFound                 what was named is not there
├── Conflict                     the id is known with other content; what is stored stays
│   └── Erased                   it was erased, and does not come back
├── ProviderError                an embedder, counter or model failed
│   ├── ProviderMissing          it is not installed, or nobody knows its name
│   ├── EmbedderMismatch         the stored vectors were made by another embedder
│   ├── ModelUnavailable         a chat model is away for now; what waits for it goes on waiting
│   ├── ModelAnswerInvalid       a chat model answered, twice, with something that cannot be used
│   └── PromptTooLong            a prompt does not fit into a chat model's window, or was cut there
└── BudgetTooSmall               what must be in the context does not fit
"""

from __future__ import annotations


class MemstoreError(Exception):
    """Whatever memstore raises on purpose."""


class ConfigurationError(MemstoreError):
    """A setting cannot be used as it stands."""


class DatabaseError(MemstoreError):
    """The database refused or failed."""


class DatabaseUnreachable(DatabaseError):
    """Nothing answers at the database's URL."""


class ExtensionMissing(DatabaseError):
    """The server has no pgvector extension, or too old a one."""


class SchemaOutdated(DatabaseError):
    """The tables are older than this memstore."""


class SchemaTooNew(DatabaseError):
    """The tables were made by a newer memstore than this one."""


class EmbeddedError(MemstoreError):
    """The private Postgres could not be started or stopped."""


class InvalidInput(MemstoreError):
    """What was given cannot be stored; nothing of it was."""


class NotFound(InvalidInput):
    """A fact, a change, a receipt, a backfill or a token was named that is not there."""


class Conflict(MemstoreError):
    """The same external id was given with other content; what is stored stays as it is."""


class Erased(Conflict):
    """Messages were erased before; nothing of the call was stored.

    `numbers` are their places among those that were given, from 1.
    """

    def __init__(self, numbers: tuple[int, ...]) -> None:
        told = ", ".join(map(str, numbers[:5])) + (f" and {len(numbers) - 5} more" if len(numbers) > 5 else "")
        super().__init__(
            f"message {told} was erased, and what was erased does not come back. Leave it out, or give "
            'on_conflict="skip"; what is said anew has another external_id, or another time. Nothing of this call was '
            "stored."
        )
        self.numbers = numbers

    def __reduce__(self) -> tuple[type[Erased], tuple[tuple[int, ...]]]:
        return type(self), (self.numbers,)


class ProviderError(MemstoreError):
    """An embedder, a token counter or a model failed."""


class ProviderMissing(ProviderError):
    """The provider is not installed, or nobody knows its name."""


class EmbedderMismatch(ProviderError):
    """The user's vectors were made by another embedder than the one that is set."""


class ModelUnavailable(ProviderError):
    """A chat model cannot be reached, is not there, or did not answer in time: later it may."""


class ModelAnswerInvalid(ProviderError):
    """A chat model's answer cannot be used, and neither could its second one.

    `payload` is the text of the last answer, whole; `prompt_tokens` and `completion_tokens` are what all `calls` have
    cost.
    """

    def __init__(
        self, message: str, payload: str, prompt_tokens: int = 0, completion_tokens: int = 0, calls: int = 1
    ) -> None:
        super().__init__(message)
        self.payload = payload
        self.prompt_tokens = prompt_tokens
        self.completion_tokens = completion_tokens
        self.calls = calls

    def __reduce__(self) -> tuple[type[ModelAnswerInvalid], tuple[str, str, int, int, int]]:
        return type(self), (str(self), self.payload, self.prompt_tokens, self.completion_tokens, self.calls)


class PromptTooLong(ProviderError):
    """A prompt may not fit into the window of a chat model, or the server shows that it cut it."""


class BudgetTooSmall(MemstoreError):
    """What must be in the context does not fit into the budget.

    `needed` and `budget` are tokens of the finished rendering; `section` names the largest part of what is needed. With
    `needed` it fits: it was tried. It is also the least that does, but for strategies: what they make, and so what must
    be in, depends on the room that they are given, and with less room they may make less.
    """

    def __init__(self, needed: int, budget: int, section: str) -> None:
        super().__init__(
            f"The context needs at least {needed} tokens and the budget is {budget}: "
            f"the largest part of that is {section}. Give budget={needed} or more, or less of that."
        )
        self.needed = needed
        self.budget = budget
        self.section = section

    def __reduce__(self) -> tuple[type[BudgetTooSmall], tuple[int, int, str]]:
        return type(self), (self.needed, self.budget, self.section)
