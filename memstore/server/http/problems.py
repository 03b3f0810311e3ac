"""What went wrong, as `application/problem+json` (RFC 9457): each says what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from memstore.errors import (
    BudgetTooSmall,
    Conflict,
    DatabaseError,
    DatabaseUnreachable,
    EmbedderMismatch,
    InvalidInput,
    MemstoreError,
    ModelUnavailable,
    NotFound,
    ProviderError,
    SchemaOutdated,
)
from memstore.models import Json
from memstore.server.http.paths import taken_at

MEDIA_TYPE = "application/problem+json"
KINDS = "urn:memstore:problem:"
REFERRED = "a problem"
SECONDS = "5"  # until what is away for now is asked for again
STATUS: Mapping[type[MemstoreError], HTTPStatus] = {  # the first that fits counts
    NotFound: HTTPStatus.NOT_FOUND,
    InvalidInput: HTTPStatus.UNPROCESSABLE_ENTITY,
    BudgetTooSmall: HTTPStatus.UNPROCESSABLE_ENTITY,
    Conflict: HTTPStatus.CONFLICT,
    DatabaseUnreachable: HTTPStatus.SERVICE_UNAVAILABLE,
    SchemaOutdated: HTTPStatus.SERVICE_UNAVAILABLE,
    ModelUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    EmbedderMismatch: HTTPStatus.CONFLICT,
    ProviderError: HTTPStatus.BAD_GATEWAY,
    DatabaseError: HTTPStatus.INTERNAL_SERVER_ERROR,
    MemstoreError: HTTPStatus.INTERNAL_SERVER_ERROR,
}
UNREADABLE = "json_invalid"  # pydantic's name for a body that is no JSON
_HUMPS = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Wrong(BaseModel):
    """One value that cannot be used."""

    where: str = Field(description="such as body.budget or query.limit")
    what: str


class ProblemBody(BaseModel):
    """What every error answers with; `detail` says what to do."""

    type: str = Field(description="urn:memstore:problem:… names the kind of problem, for programs")
    title: str
    status: int
    detail: str
    errors: list[Wrong] | None = Field(default=None, description="each value that cannot be used")
    needed: int | None = Field(default=None, description="tokens with which the context fits")
    section: str | None = Field(default=None, description="the largest part of what is needed")


class Problem(HTTPException):
    """An answer that is an error. As one of the framework's it goes through wherever a body is read."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(status, detail, headers)
        self.status, self.kind, self.more = HTTPStatus(status), kind, dict(more or {})

    def body(self) -> Json:
        """Give it as JSON has it."""
        told = {"title": self.status.phrase, "status": self.status.value, "detail": self.detail}
        return {"type": KINDS + self.kind} | told | self.more

    def response(self) -> Response:
        """Give it as it is sent: in ASCII, as a message may quote half a surrogate pair."""
        return Response(json.dumps(self.body()), self.status.value, self.headers, MEDIA_TYPE)


def problem_of(error: MemstoreError) -> Problem:
    """Give the problem that an error of memstore's is."""
    status = next(status for kind, status in STATUS.items() if isinstance(error, kind))
    kind = _HUMPS.sub("-", type(error).__name__).lower()
    more: dict[str, Any] = {}
    if isinstance(error, BudgetTooSmall):
        more = {"needed": error.needed, "section": error.section}
    headers = {"Retry-After": SECONDS} if status is HTTPStatus.SERVICE_UNAVAILABLE else None
    return Problem(status, kind, str(error), headers=headers, more=more)


async def on_memstore_error(_: Request, error: Exception) -> Response:
    """Answer with an error of memstore's."""
    assert isinstance(error, MemstoreError)
    return problem_of(error).response()


async def on_problem(_: Request, error: Exception) -> Response:
    """Answer with a problem."""
    assert isinstance(error, Problem)
    return error.response()


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answer with what the framework found: no such path, no such method, no JSON."""
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    words = {
        HTTPStatus.NOT_FOUND: "There is nothing at this path; /openapi.json lists what there is.",
        HTTPStatus.METHOD_NOT_ALLOWED: "This path does not take this method; the header Allow has those it takes.",
        HTTPStatus.BAD_REQUEST: "The body cannot be read: give JSON in UTF-8.",
    }
    headers = dict(error.headers or {})
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(taken_at(request.scope["path"], request.app.openapi()["paths"]))
    kind = status.phrase.lower().replace(" ", "-")
    return Problem(status, kind, words.get(status, str(error.detail)), headers=headers).response()


async def on_invalid_request(_: Request, error: Exception) -> Response:
    """Answer with what of a request cannot be used, value by value; the values themselves are not repeated."""
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if any(one["type"] == UNREADABLE for one in found):
        detail = f"The body is no JSON: {found[0].get('ctx', {}).get('error', 'it cannot be read')}."
        return Problem(HTTPStatus.BAD_REQUEST, "no-json", detail).response()
    return invalid(list(_wrong(found))).response()


def invalid(wrong: Sequence[Wrong]) -> Problem:
    """Give the problem that these values of a request are."""
    detail = "; ".join(f"{one.where}: {one.what}" for one in wrong) + ". Nothing was done."
    more = {"errors": [one.model_dump() for one in wrong]}
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request", detail, more=more)


def _wrong(found: Sequence[Any]) -> Iterable[Wrong]:
    for one in found:
        where = ".".join(str(part) for part in one["loc"])
        what = one["msg"].removeprefix("Value error, ")
        if isinstance(one["input"], bytes):
            what = "it was not read: send it with Content-Type: application/json"
        elif one["type"] == "extra_forbidden":
            what = "there is no such field here; leave it out, or see /openapi.json"
        yield Wrong(where=where, what=what[:1].lower() + what[1:])


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Give what OpenAPI is told of errors: these, and those that any request may have."""
    every = {400, 401, 403, 413, 422, 429, 500, 503, *statuses}
    return {status: {"description": REFERRED} for status in sorted(every)}


def told_of_problems(app: FastAPI) -> None:
    """Have OpenAPI know the shape of errors, each status once."""
    generated = app.openapi

    def openapi() -> Json:
        known = app.openapi_schema is not None
        schema = generated()
        if not known:
            _refer(schema)
        return schema

    app.openapi = openapi  # type: ignore[method-assign]


def _refer(schema: Json) -> None:
    """Put each documented problem into the components, and a reference in its place."""
    parts = schema["components"]
    shape = ProblemBody.model_json_schema(ref_template="#/components/schemas/{model}")
    parts["schemas"] |= shape.pop("$defs") | {"ProblemBody": shape}
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemBody"}}}
    responses = parts.setdefault("responses", {})
    for path in schema["paths"].values():
        for operation in path.values():
            for status, response in operation["responses"].items():
                if response["description"] == REFERRED:
                    words = f"{HTTPStatus(int(status)).phrase}: `detail` says what to do"
                    responses[status] = {"description": words, "content": content}
                    operation["responses"][status] = {"$ref": f"#/components/responses/{status}"}
