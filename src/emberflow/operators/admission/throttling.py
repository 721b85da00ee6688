"""Whether an error means "too many requests", and how long to wait: read from whatever a vendor's client raises.

Recognized by the error's attributes, never by its class: no client library is imported here.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

TOO_MANY = (429, 503, 529)

_gives_up: ContextVar[bool] = ContextVar("_gives_up", default=False)


@contextmanager
def without_throttle_retries() -> Generator[None]:
    """Calls made in this block are not retried when a service throttles them: there is another service to call."""
    token = _gives_up.set(True)
    try:
        yield
    finally:
        _gives_up.reset(token)


def first_refusal_counts() -> bool:
    return _gives_up.get()


@dataclass(frozen=True, slots=True)
class Throttle:
    """The service asks for fewer requests, for `retry_after_s` if it is given."""

    retry_after_s: float | None = None


def throttle_of(error: BaseException) -> Throttle | None:
    """None if the error is about something else. Wrapped errors count: clients often hide the one with the status."""
    found: BaseException | None = error
    for _ in range(5):
        if found is None:
            return None
        own = _seconds(getattr(found, "retry_after", None))
        if own is not None or _status(found) in TOO_MANY:
            return Throttle(own if own is not None else asked_to_wait_s(found))
        found = found.__cause__ or found.__context__
    return None


def _status(error: Any) -> int | None:
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        about: Any = cast("Mapping[str, Any]", response).get("ResponseMetadata") or {}
        return _whole(about.get("HTTPStatusCode"))
    for holder, names in (
        (error, ("status_code", "status", "http_status", "code")),
        (response, ("status_code", "status")),
    ):
        for name in names:
            found = _whole(getattr(holder, name, None))
            if found is not None:
                return found
    return None


def _whole(value: Any) -> int | None:
    # Clients also use integer enums; a bool is not a status.
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else None


def asked_to_wait_s(error: Any) -> float | None:
    """The seconds that the headers of an error's response ask to wait."""
    response = getattr(error, "response", None)
    headers = getattr(error, "headers", None) or getattr(response, "headers", None)
    if isinstance(response, Mapping):
        about: Any = cast("Mapping[str, Any]", response).get("ResponseMetadata") or {}
        headers = about.get("HTTPHeaders")
    if headers is None or not hasattr(headers, "items"):
        return None
    named = {str(name).lower(): value for name, value in headers.items()}
    in_ms = _seconds(named.get("retry-after-ms"))
    if in_ms is not None:
        return in_ms / 1000
    return _seconds(named.get("retry-after"), since=named.get("date"))


def _seconds(value: Any, since: Any = None) -> float | None:
    """A number of seconds, or an HTTP date."""
    if value is None or isinstance(value, bool):
        return None
    if hasattr(value, "total_seconds"):
        return max(0.0, value.total_seconds())
    try:
        return max(0.0, float(value))
    except (TypeError, ValueError):
        pass
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(str(value))
        # By the service's own clock, if it is given: the local one may be wrong.
        now = parsedate_to_datetime(str(since)) if since else datetime.now(UTC)
        return max(0.0, (moment - now).total_seconds())
    except (TypeError, ValueError):
        return None
