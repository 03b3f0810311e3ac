"""Values of memstore's as JSON has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any
from uuid import UUID


def to_json(value: Any) -> Any:
    """Return a value of memstore's as JSON has it."""
    if hasattr(value, "as_dict"):
        return to_json(value.as_dict())
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value) if field.repr}
    if hasattr(type(value), "model_fields"):  # pydantic's; asking by its class would import it for --help
        return {name: to_json(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {str(key): to_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(one) for one in value]
    return value.isoformat() if isinstance(value, datetime) else str(value) if isinstance(value, UUID) else value
