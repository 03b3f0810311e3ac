"""How far token counts are from what models' servers say."""

from __future__ import annotations

from memstore.models import TokenCountErrors
from memstore.store.database import Transaction
from memstore.store.statements import statements

SQL = statements("counter_drift")


async def add(scope: Transaction, model: str, counter: str, *, predicted: int, observed: int) -> None:
    """Keep how far the count of a prompt was from what the server told, both in tokens; `observed` is not 0."""
    miss = abs(predicted - observed)
    values = {"predicted": predicted, "observed": observed, "miss": miss, "share": miss / observed}
    await scope.run(SQL["add"], model=model, counter=counter, **values)


async def drift(scope: Transaction) -> list[TokenCountErrors]:
    """Give what was observed for the user, by model and counter."""
    return await scope.all(SQL["drift"], TokenCountErrors.model_construct)
