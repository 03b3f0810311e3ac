"""Arguments of tools as models write them, what is wrong with others in one sentence, and their schema."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator
from pydantic.json_schema import GenerateJsonSchema

from memstore.errors import InvalidInput
from memstore.models import Json
from memstore.server.validation import describe_problems, join_problems


def as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _as_day(value: Any) -> Any:
    """Return the first day of a year or a month, which would be read as seconds since 1970."""
    for form in ("%Y", "%Y-%m"):
        with suppress(ValueError):
            return datetime.strptime(str(value).strip(), form).replace(tzinfo=UTC)
    return value


# Models write times without a zone, days and years, whatever the schema says.
Time = Annotated[
    datetime,
    BeforeValidator(_as_day),
    AfterValidator(lambda moment: moment if moment.tzinfo else moment.replace(tzinfo=UTC)),
]


class Tolerant(BaseModel):
    """Arguments of which an optional one may be null or empty, and a text a number; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

    @model_validator(mode="before")
    @classmethod
    def _leave_out(cls, values: Any) -> Any:
        fields = cls.model_fields
        if not isinstance(values, dict):
            return values
        return {
            name: value
            for name, value in values.items()
            if name not in fields or fields[name].is_required() or not _is_empty(value)
        }


class Arguments(Tolerant):
    """The arguments of a tool. Raises `InvalidInput` for wrong ones."""

    @model_validator(mode="wrap")
    @classmethod
    def _explain(cls, values: Any, validate: Any) -> Self:
        try:
            return validate(values)  # type: ignore[no-any-return]
        except ValidationError as error:
            problems = describe_problems(error.errors(include_url=False, include_context=False))
            more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
            raise InvalidInput(f"Nothing was done: {join_problems(problems[:3])}{more}.") from None


def _is_empty(value: Any) -> bool:
    return value is None or value == [] or (isinstance(value, str) and not value.strip())


class _UntitledSchema(GenerateJsonSchema):
    """A schema without titles, which repeat the names: a model reads it in every conversation."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def short_schema(arguments: type[BaseModel]) -> Json:
    """Return the schema of arguments as a model needs it: without titles, nulls and least lengths of texts."""
    schema = arguments.model_json_schema(schema_generator=_UntitledSchema)
    for part in (schema, *schema.get("$defs", {}).values()):
        part.pop("title", None)
        part.pop("description", None)
        part["properties"] = {name: _shorten(each) for name, each in part["properties"].items()}
    return schema


def _shorten(part: Json) -> Json:
    part = _without_null(part)
    dropped = {"minLength"} | ({"default"} if part.get("default") is None else set())
    return {key: _shorten(value) if key == "items" else value for key, value in part.items() if key not in dropped}


def _without_null(part: Json) -> Json:
    if "anyOf" not in part:
        return part
    other_keys = {key: value for key, value in part.items() if key != "anyOf"}
    kind: Json = next(each for each in part["anyOf"] if each.get("type") != "null")
    return kind | other_keys
