"""The timeout of a request, which `RequestMiddleware` sets."""

from starlette.types import Scope


def disable_timeout(scope: Scope) -> None:
    """Disable it for this response: a stream, deriving, or what has a timeout of its own."""
    scope["state"]["deadline"].reschedule(None)
