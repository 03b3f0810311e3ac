"""Every error that memstore raises, in one tree. Each message says what to do next."""

from __future__ import annotations

from typing import ClassVar


class MemstoreError(Exception):
    """The base of all errors that memstore raises on purpose.

    `http_status` is what a server answers, `exit_code` what a command ends with.
    """

    http_status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1


class ConfigurationError(MemstoreError):
    """A setting cannot be used as it stands."""

    http_status = 422  # a name in the request that nobody knows
    exit_code = 2


class DatabaseError(MemstoreError):
    """The database refused or failed."""


class DatabaseUnreachable(DatabaseError):
    """Nothing answers at the database's URL."""

    http_status = 503
    exit_code = 3


class ExtensionMissing(DatabaseError):
    """The server has no pgvector extension, or too old a one."""


class SchemaOutdated(DatabaseError):
    """The tables are older than this memstore."""

    http_status = 503


class SchemaTooNew(DatabaseError):
    """The tables were made by a newer memstore than this one."""


class EmbeddedError(MemstoreError):
    """The private Postgres could not be started or stopped."""

    exit_code = 3


class InvalidInput(MemstoreError):
    """An argument is wrong; nothing was stored."""

    http_status = 422
    exit_code = 2


class NotFound(InvalidInput):
    """There is no fact, change, receipt, backfill, certificate or token of this id."""

    http_status = 404


class Forbidden(MemstoreError):
    """The member of a space may not do this there; nothing was changed."""

    http_status = 403


class Conflict(MemstoreError):
    """The call contradicts what is stored, such as a known external id with other content; nothing was changed.

    `number` is the place of that message in the list, from 1.
    """

    http_status = 409
    number: int | None = None


class Erased(Conflict):
    """Messages were erased before; nothing of the call was stored.

    `numbers` are their places in the list, from 1.
    """

    def __init__(self, numbers: tuple[int, ...]) -> None:
        places = ", ".join(map(str, numbers[:5])) + (f" and {len(numbers) - 5} more" if len(numbers) > 5 else "")
        super().__init__(
            f"message {places} was erased, and erased messages do not come back. Nothing of this call was stored: "
            'leave it out, or give on_conflict="skip". A new message with these words has another external_id or time.'
        )
        self.numbers = numbers

    def __reduce__(self) -> tuple[type[Erased], tuple[tuple[int, ...]]]:
        return type(self), (self.numbers,)


class ProviderError(MemstoreError):
    """An embedder, a token counter or a model failed."""

    http_status = 502


class ProviderMissing(ProviderError):
    """The provider is not installed, or nobody knows its name."""

    http_status = 422
    exit_code = 2


class EmbedderMismatch(ProviderError):
    """The user's vectors were made by another embedder than the one that is set."""

    http_status = 409


class ModelUnavailable(ProviderError):
    """A chat model or an embedder cannot be reached, is not installed, or did not answer in time; try again later."""

    http_status = 503


class ModelAnswerInvalid(ProviderError):
    """A chat model's answer cannot be used, and neither can its second one.

    `payload` is the whole text of the last answer; `prompt_tokens` and `completion_tokens` are those of all `calls`.
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
    """A prompt may not fit into the window of a chat model, or its server has cut it."""


class BudgetTooSmall(MemstoreError):
    """The parts that must be in the context do not fit into the budget.

    `needed` and `budget` are tokens of the finished context; `section` names the largest part of what is needed. A
    context with `needed` tokens fits: it was tried. With strategies a smaller budget may fit too, as their texts depend
    on the room.
    """

    http_status = 422
    exit_code = 4

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
