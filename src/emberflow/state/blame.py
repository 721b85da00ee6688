"""Naming the culprit when state cannot be stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emberflow.errors import NotSerializable, shorten
from emberflow.events.codecs import encode


def unserializable_state(
    step: str, entries: Mapping[Any, Mapping[str, Any]], error: NotSerializable
) -> NotSerializable:
    """The error a user can act on: which step, key and state hold the value that cannot be stored."""
    for key, entry in entries.items():
        for name, value in entry.items():
            try:
                encode(value)
            except NotSerializable as cause:
                return NotSerializable(
                    f"step {step!r}: the state {name!r} of key {shorten(key)} holds {shorten(value)}, "
                    "which cannot be stored",
                    cause=cause.cause,
                    way_out="keep plain data in state; open locks, connections and files in open()",
                    committed="nothing of the current batch was committed",
                )
    return error
