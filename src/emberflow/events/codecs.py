"""Encodes Python values as bytes.

pickle handles everything that both sides can import; what it rejects (a lambda, a class defined in a function) goes
through cloudpickle. The first byte names the codec, so that a reader never guesses.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from io import BytesIO
from typing import Any

import cloudpickle

from emberflow.errors import (
    CheckpointError,
    ClassMissing,
    CorruptData,
    NotSerializable,
    describe_cause,
    shorten,
)
from emberflow.events.stored_types import class_before

PICKLE = 1
CLOUDPICKLE = 2
_PICKLE_TAG = bytes([PICKLE])
_CLOUDPICKLE_TAG = bytes([CLOUDPICKLE])
_missing_classes: Callable[[bytes], None] | None = None


def encode(value: Any) -> bytes:
    """Encodes a value; raises NotSerializable."""
    try:
        return _PICKLE_TAG + pickle.dumps(value, 5)
    except Exception:
        try:
            return _CLOUDPICKLE_TAG + cloudpickle.dumps(value, 5)
        except Exception as error:
            raise NotSerializable(
                f"the value {shorten(value)} cannot be serialized",
                cause=describe_cause(error),
                way_out="keep locks, connections and open files out of records and state; create them in open()",
            ) from error


def decode(data: bytes) -> Any:
    """Decodes bytes written by `encode`; raises CorruptData, or ClassMissing."""
    if not data or data[0] not in (PICKLE, CLOUDPICKLE):
        raise CorruptData(f"{len(data)} bytes with an unknown codec cannot be read")
    try:
        try:
            return pickle.loads(memoryview(data)[1:])
        except (AttributeError, ImportError):
            if _missing_classes is not None:
                _missing_classes(data[1:])
            return StoredUnpickler(BytesIO(memoryview(data)[1:])).load()
    except CheckpointError:
        raise
    except Exception as error:
        missing = missing_class(data) if isinstance(error, AttributeError | ImportError) else ""
        if missing:
            raise ClassMissing(
                f"stored data needs {missing}, which cannot be imported",
                cause=describe_cause(error),
                way_out=f"restore {missing}: a class that was moved must still be importable under its old name",
            ) from error
        raise CorruptData(f"{len(data)} bytes cannot be decoded", cause=describe_cause(error)) from error


def unpickle(data: bytes | memoryview) -> Any:
    """For pickles stored in other formats than `encode`'s. Finds our own classes that have moved since; raises pickle's errors."""
    try:
        return pickle.loads(data)
    except (AttributeError, ImportError):
        return StoredUnpickler(BytesIO(data)).load()


def missing_class(data: bytes) -> str:
    """`module.Name` of the first class or function in encoded data that cannot be imported; empty if all can."""
    finder = _Finder(BytesIO(memoryview(data)[1:]))
    try:
        finder.load()
    except Exception:
        return finder.missing
    return ""


class StoredUnpickler(pickle.Unpickler):
    """Also finds our own classes that have moved since they were stored without a stable name."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        try:
            return super().find_class(module_name, global_name)
        except (ImportError, AttributeError):
            found = class_before(module_name, global_name)
            if found is None:
                raise
            return found


class _Finder(StoredUnpickler):
    missing = ""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        try:
            return super().find_class(module_name, global_name)
        except (ImportError, AttributeError):
            self.missing = f"{module_name}.{global_name}"
            raise


def use_for_missing_classes(handler: Callable[[bytes], None]) -> None:
    """For tools that read state without its program: `handler` receives pickled bytes with classes that cannot be
    imported, and makes them importable."""
    global _missing_classes
    _missing_classes = handler


def find_unserializable(values: list[Any]) -> Any:
    """The first value that cannot be encoded, for an error message; None if all can."""
    for value in values:
        try:
            encode(value)
        except NotSerializable:
            return value
    return None
