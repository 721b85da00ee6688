"""What a vendor's client raises, as a `ModelFailed` that is readable, storable and free of secrets.

Clients are recognized by the attributes of their errors, never by class: no client library is imported here.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

from emberflow.agents.models.chat_message import ChatMessage
from emberflow.agents.models.unsendable import unsendable
from emberflow.errors import EmberflowError, ModelFailed, PackageMissing, describe_cause
from emberflow.operators.admission.throttling import asked_to_wait_s
from emberflow.operators.agents.calls.masked_errors import mask
from emberflow.rendering.plain_text import clean

_LONGEST = 600

_WAYS_OUT = {
    400: "the service rejected the request: see the cause",
    401: "check the key: it is wrong, expired, or meant for another service",
    403: "check the permissions of the key: this model, this region",
    404: "check the name of the model and the address of the service",
    408: "raise timeout, or retry: Retry(…) of the action, or the error handling strategy 'retry'",
    413: "send less: shorten the history, or images",
    422: "the service rejected the request: see the cause",
    429: "lower the limits in the connection's descriptor: max_concurrent, requests_per_minute, tokens_per_minute",
}
_STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "rate_limit_error": 429,
    "api_error": 500,
    "server_error": 500,
    "overloaded_error": 529,
}
"""As OpenAI and Anthropic name them."""
_KEY_HEADERS = frozenset({"authorization", "api-key", "x-api-key"})
_RETRY = "retry: Retry(…) of the action, or the error handling strategy 'retry'"


def failure_of(
    error: Exception,
    service: str,
    *,
    secrets: Collection[str] = (),
    key_from: str = "",
    no_key: str = "",
    timeout_s: Any = None,
    messages: Sequence[ChatMessage] = (),
) -> EmberflowError:
    """The error to raise instead, outside of the `except` block: the original one may contain the request with its key.
    `service` is how the message names what was called, `key_from` where the key that was sent comes from, `no_key` how to
    give one if none was sent, `timeout_s` how long it was waited for an answer, `messages` what was to be sent."""
    if isinstance(error, EmberflowError):
        return error
    chain = list(_chain(error))
    for item in chain:
        if isinstance(item, UnicodeEncodeError):
            return unsendable(service, item, messages)
    status = next((found for item in chain if (found := _status(item)) is not None), None)
    said = mask(_said(error), secrets)[:_LONGEST]
    if status is not None and status >= 300:
        waits = next((found for item in chain if (found := asked_to_wait_s(item)) is not None), None)
        return ModelFailed(
            f"{service} responded with the status {status}",
            cause=said if status >= 400 else _redirect(chain) or said,
            way_out=_way_out(status, key_from, no_key),
            status_code=status,
            retry_after=waits,
        )
    body: Any = getattr(error, "body", None)
    if isinstance(body, dict):
        named = _named_status(cast("dict[str, Any]", body))
        way_out = _RETRY if named is None else _way_out(named, key_from, no_key)
        return ModelFailed(f"{service} reported an error", cause=said, way_out=way_out, status_code=named)
    for item in chain:
        if isinstance(item, json.JSONDecodeError):
            return unreadable(service, not_json(item.doc), secrets)
    if not _is_about_certificates(chain) and _is_timeout(chain):
        return ModelFailed(
            f"{service} did not answer in time",
            cause=_timed_out(chain, timeout_s),
            way_out=f"raise the timeout of the connection, or {_RETRY}",
        )
    problem, way_out = _without_status(chain)
    return ModelFailed(f"{service} {problem}", cause=mask(_root(chain), secrets)[:_LONGEST], way_out=way_out)


def _way_out(status: int, key_from: str, no_key: str) -> str:
    if status < 400:
        return "correct the address of the service: redirects are not followed, because calls contain prompts and keys"
    way_out = _WAYS_OUT.get(status, _RETRY if status >= 500 else "")
    if status in (401, 403) and key_from:
        return f"{way_out}; it is taken from {key_from}"
    return f"no key was sent: {no_key}" if status in (401, 403) and no_key else way_out


def _named_status(body: dict[str, Any]) -> int | None:
    """The status that an error in the body of an answer, or in the middle of a stream, would have had by itself."""
    inner: Any = body.get("error")
    error = cast("dict[str, Any]", inner) if isinstance(inner, dict) else body
    for name in ("code", "status", "status_code"):
        code = str(error.get(name))
        if code.isdecimal() and 400 <= int(code) <= 599:
            return int(code)
    return _STATUS_OF_TYPE.get(str(error.get("type")))


def _without_status(chain: list[BaseException]) -> tuple[str, str]:
    names = _class_names(chain)
    if _is_about_certificates(chain):
        return (
            "could not be reached over TLS",
            "add its CA certificate: ca_file='…' of the connection, or the environment variable SSL_CERT_FILE",
        )
    if any(name in names for name in ("RemoteProtocol", "ReadError", "WriteError", "IncompleteRead")):
        return "closed the connection before the response was complete", _RETRY
    if "Connect" in names:
        return "could not be reached", "check its address, and that it is running"
    return "returned an invalid response", "check that the address is that of a chat service"


def _class_names(chain: list[BaseException]) -> str:
    return " ".join(type(item).__name__ for item in chain)


def _is_about_certificates(chain: list[BaseException]) -> bool:
    return any(isinstance(item, ssl.SSLError) for item in chain) or "CERTIFICATE_VERIFY" in str(chain[-1])


def _is_timeout(chain: list[BaseException]) -> bool:
    return any(isinstance(item, TimeoutError) for item in chain) or "Timeout" in _class_names(chain)


def _timed_out(chain: list[BaseException], timeout_s: Any) -> str:
    """What the clients raise says only how they cancel a request."""
    by_system = next((item for item in chain if isinstance(item, TimeoutError) and item.errno), None)
    if by_system is not None:
        return describe_cause(by_system)
    known = isinstance(timeout_s, int | float) and timeout_s > 0
    return f"the request timed out after {timeout_s * 1000:,.0f} ms" if known else "the request timed out"


def unreadable(service: str, problem: str, secrets: Collection[str] = ()) -> ModelFailed:
    """For a response that does not have the format of the service's interface."""
    return ModelFailed(
        f"{service} returned an invalid response",
        cause=mask(problem, secrets)[:_LONGEST],
        way_out="check that the address is that of a chat service",
    )


def not_json(text: str) -> str:
    """The problem with a response that should be JSON. Not shortened: secrets must be masked before."""
    return f"it is not JSON: {text}" if text.strip() else "it is empty"


def cut_short(service: str) -> ModelFailed:
    """For a stream that ends without its completion event."""
    return ModelFailed(
        f"{service} returned a truncated response",
        cause="the stream ended without a completion event",
        way_out=_RETRY,
    )


def package_missing(package: str, extra: str, error: ImportError) -> PackageMissing:
    """For an SDK of an extra that is not installed."""
    return PackageMissing(
        f"the package {package!r} is not installed",
        cause=describe_cause(error),
        way_out=f'pip install "emberflow[{extra}]", also on the workers',
    )


def key_header(headers: Mapping[str, str]) -> str:
    """The header that sends a key of its own, for messages; empty if there is none."""
    named = (name for name in headers if name.lower() in _KEY_HEADERS)
    return next((f"the header {name!r} of default_headers" for name in named), "")


def header_secrets(headers: Mapping[str, str]) -> list[str]:
    """The keys that headers send, with and without `Bearer`: services repeat them in their errors."""
    sent = [value for name, value in headers.items() if name.lower() in _KEY_HEADERS]
    return [found for value in sent for found in (value, value.rpartition(" ")[2]) if found]


def address_of(url: Any) -> str:
    """An address as it may be shown: without user, password and query."""
    parts = urlsplit(str(url))
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


def _chain(error: BaseException) -> Iterator[BaseException]:
    found: BaseException | None = error
    for _ in range(8):
        if found is None:
            return
        yield found
        found = found.__cause__ or found.__context__


def _status(error: Any) -> int | None:
    for name in ("status_code", "status"):
        found = getattr(error, name, None)
        if isinstance(found, int) and not isinstance(found, bool) and found > 0:
            return int(found)
    return None


def _redirect(chain: list[BaseException]) -> str:
    for item in chain:
        headers: Any = getattr(getattr(item, "response", None), "headers", None)
        if isinstance(headers, Mapping) and (target := cast("Mapping[str, Any]", headers).get("location")):
            return f"it redirects to {clean(address_of(target))}"
    return ""


def _said(error: Any) -> str:
    """The service's own words."""
    found: Any = getattr(error, "body", None)
    for _ in range(3):
        if not isinstance(found, dict):
            break
        body = cast("dict[str, Any]", found)
        found = body.get("message") or body.get("error") or body.get("detail")
    if not found:
        found = getattr(error, "error", None)
    return found if isinstance(found, str) and found else describe_cause(error)


def _root(chain: list[BaseException]) -> str:
    """The description of the first cause with a message: clients wrap it as "Connection error."."""
    said = [item for item in chain if str(item)]
    return describe_cause(said[-1] if said else chain[0])
