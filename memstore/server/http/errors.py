"""Errors as `application/problem+json` (RFC 9457): each says what to do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from memstore import errors
from memstore.models import Json
from memstore.server.validation import describe_problems, join_problems

MEDIA_TYPE = "application/problem+json"


class FieldError(BaseModel):
    """One value that cannot be used."""

    where: str = Field(description="such as body.budget or query.limit")
    what: str


class ProblemBody(BaseModel):
    """The body of every error response; `detail` says what to do."""

    type: str = Field(description="urn:memstore:problem:… names the kind of problem, for programs")
    title: str
    status: int
    detail: str
    errors: list[FieldError] | None = Field(default=None, description="each value that cannot be used")
    needed: int | None = Field(default=None, description="tokens with which the context fits")
    section: str | None = Field(default=None, description="the largest part of what is needed")


class Problem(HTTPException):
    """An error response. One with the status 503 says when to ask again."""

    def __init__(
        self, status: int, kind: str, detail: str, *, headers: Mapping[str, str] | None = None, **extra: Any
    ) -> None:
        again = {"Retry-After": "5"} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
        super().__init__(status, detail, {**again, **(headers or {})})
        self.kind, self.extra = kind, extra

    def response(self) -> Response:
        """Return the problem as it is sent: in ASCII, as a message may quote half a surrogate pair."""
        type, title = f"urn:memstore:problem:{self.kind}", HTTPStatus(self.status_code).phrase
        body = {"type": type, "title": title, "status": self.status_code, "detail": self.detail}
        return Response(json.dumps(body | self.extra), self.status_code, self.headers, MEDIA_TYPE)


def body_too_large() -> Problem:
    detail = "Send it in parts, or raise server_body_bytes; a form of a page has at most 64 KiB."
    return Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body-too-large", detail)


def user_not_found() -> Problem:
    """Return the 404 for a user who does not exist or is another token's: callers cannot tell which."""
    return Problem(HTTPStatus.NOT_FOUND, "not-found", "There is no such user, or it is not this token's.")


class IssuerUnavailable(Exception):
    """The issuer of tokens gives no keys, so that none can be checked."""


def issuer_unavailable() -> Problem:
    """Return the 503 for callers whose token cannot be checked; it does not name the issuer."""
    detail = "The issuer of this token gives no keys to check it with: try again, or ask the operator."
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, "no-issuer", detail)


def database_unavailable() -> Problem:
    """Return the 503 for callers who are not authenticated: it does not name the database's host."""
    detail = "The database does not answer: memstore doctor says why."
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, "no-database", detail)


async def handle_error(_: Request, error: Exception) -> Response:
    return problem_from(error).response()


def problem_from(error: Exception) -> Problem:
    if isinstance(error, Problem):
        return error
    if isinstance(error, RequestValidationError):
        return _invalid_request(error)
    if isinstance(error, HTTPException):
        # No such path or method, no JSON.
        status, detail = HTTPStatus(error.status_code), str(error.detail)
        if status == HTTPStatus.BAD_REQUEST:
            detail = "The body cannot be read: give JSON in UTF-8."
        elif status == HTTPStatus.NOT_FOUND:
            detail = "There is nothing at this path; /openapi.json lists what there is."
        return Problem(status, status.phrase.lower().replace(" ", "-"), detail, headers=error.headers)
    assert isinstance(error, errors.MemstoreError)
    extra: Json = {"needed": error.needed, "section": error.section} if isinstance(error, errors.BudgetTooSmall) else {}
    kind = "".join(f"-{sign.lower()}" if sign.isupper() else sign for sign in type(error).__name__).lstrip("-")
    return Problem(error.http_status, kind, str(error), **extra)


def _invalid_request(error: RequestValidationError) -> Problem:
    """Return the invalid values of a request, by their places; the values themselves are not repeated."""
    if any(each["type"] == "json_invalid" for each in error.errors()):
        return Problem(HTTPStatus.BAD_REQUEST, "no-json", "The body is no JSON: it cannot be read.")
    wrong = describe_problems(error.errors())
    detail = f"{join_problems(wrong)}. Nothing was done."
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request", detail, errors=wrong)


# In OpenAPI every error is the "default" response; `ProblemAPI` puts its shape into the components.
ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "An error: `detail` says what to do",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemBody"}}},
    }
}


class ProblemAPI(FastAPI):
    def openapi(self) -> Json:
        schema: Json = super().openapi()
        shape = ProblemBody.model_json_schema(ref_template="#/components/schemas/{model}")
        schema["components"]["schemas"] |= shape.pop("$defs", {}) | {"ProblemBody": shape}
        return schema
