"""What counts as "too many requests", in the forms in which clients raise errors."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from emberflow.operators.admission.throttling import Throttle, throttle_of
from emberflow.testing import ScriptedError


class Refused(Exception):
    def __init__(self, **attributes: Any) -> None:
        super().__init__("refused")
        vars(self).update(attributes)


def response(status: int, **headers: str) -> Any:
    named = {name.replace("_", "-").title(): value for name, value in headers.items()}
    return SimpleNamespace(status_code=status, headers=named)


NOW = "Mon, 16 Nov 2026 02:00:00 GMT"

SHAPES: dict[str, tuple[Exception, Throttle | None]] = {
    "status_code": (ScriptedError("no", 429), Throttle(None)),
    "status": (Refused(status=503), Throttle(None)),
    "overloaded": (Refused(status_code=529), Throttle(None)),
    "own time": (Refused(retry_after=2), Throttle(2.0)),
    "a timedelta": (Refused(status_code=429, retry_after=timedelta(seconds=1.5)), Throttle(1.5)),
    "a response": (Refused(response=response(429, retry_after="7")), Throttle(7.0)),
    "milliseconds": (Refused(response=response(429, retry_after_ms="250", retry_after="1")), Throttle(0.25)),
    "a moment": (
        Refused(response=response(429, retry_after="Mon, 16 Nov 2026 02:00:30 GMT", date=NOW)),
        Throttle(30.0),
    ),
    "headers of its own": (Refused(status=429, headers={"Retry-After": "3"}), Throttle(3.0)),
    "a mapping": (
        Refused(response={"ResponseMetadata": {"HTTPStatusCode": 429, "HTTPHeaders": {"retry-after": "4"}}}),
        Throttle(4.0),
    ),
    "nonsense in the header": (Refused(response=response(429, retry_after="soon")), Throttle(None)),
    "another status": (Refused(status_code=500), None),
    "another status in a response": (Refused(response=response(400, retry_after="7")), None),
    "a word as code": (Refused(code="rate_limited"), None),
    "nothing at all": (ValueError("429"), None),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape: str) -> None:
    error, expected = SHAPES[shape]
    assert throttle_of(error) == expected


def test_a_wrapped_error() -> None:
    outer = RuntimeError("the call failed")
    outer.__cause__ = Refused(status_code=429)
    assert throttle_of(outer) == Throttle(None)


def test_cyclic_causes_end() -> None:
    one, other = ValueError("a"), ValueError("b")
    one.__cause__, other.__cause__ = other, one
    assert throttle_of(one) is None
