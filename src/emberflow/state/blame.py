"""Identifies the step, key and state of a value that cannot be stored or read."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any

from emberflow.errors import CheckpointError, ClassMissing, CorruptData, NotSerializable, shorten
from emberflow.events.codecs import StoredUnpickler, decode, encode, missing_class


def unserializable_state(
    step: str, entries: Mapping[Any, Mapping[str, Any]], error: NotSerializable
) -> NotSerializable:
    """The error for a value that cannot be stored, with the step, key and state that contain it."""
    for key, entry in entries.items():
        if cause := _not_storable(key):
            return NotSerializable(
                f"step {step!r}: the key {shorten(key)} cannot be stored",
                cause=cause,
                way_out="return strings, numbers, or tuples or frozen dataclasses of them from the function given to key_by()",
                committed="nothing of the current batch was committed",
            )
        for name, value in entry.items():
            if cause := _not_storable(value):
                return NotSerializable(
                    f"step {step!r}: the state {name!r} of key {shorten(key)} contains {shorten(value)}, "
                    "which cannot be stored",
                    cause=cause,
                    way_out="keep plain data in state; create locks, connections and files in open()",
                    committed="nothing of the current batch was committed",
                )
    return error


def _not_storable(value: object) -> str:
    """Why the value cannot be stored; empty if it can."""
    try:
        encode(value)
    except NotSerializable as error:
        return error.cause or error.message
    return ""


Entries = Mapping[Any, Mapping[str, Any]]
"""key -> name of the state -> value"""


def decode_state(data: bytes, step: str, entries: Callable[[Any], Mapping[Any, Any]]) -> Any:
    """Decodes stored state; errors name the step, and the key if a class is missing. `entries` finds entries in it, by
    key, or by step and key if `step` is empty."""
    try:
        return decode(data)
    except ClassMissing as error:
        raise _placed(data, step, entries, error) from error
    except CorruptData as error:
        of_step = f" of step {step!r}" if step else ""
        raise CorruptData(
            f"the state{of_step} cannot be decoded",
            cause=error.cause or error.message,
            way_out="if the cause is raised by a class of yours, such as an exception whose __init__ takes other arguments than"
            " it passes on, give it defaults or a __reduce__ and run the program again; otherwise restore the checkpoint"
            " directory from a backup taken while the job was stopped; without one, start with an empty one and another output"
            " folder, from the last savepoint if there is one",
        ) from error


def _placed(
    data: bytes, step: str, entries: Callable[[Any], Mapping[Any, Any]], error: ClassMissing
) -> CheckpointError:
    name = missing_class(data)
    uid, what = _culprit(data, step, entries) or (step, "its state")
    where = f"step {uid!r}: {what}" if uid else "the state"
    return ClassMissing(
        f"{where} needs {name}, which cannot be imported",
        cause=error.cause,
        way_out=f"restore {name} (a class that was moved must still be importable under its old name); or give up the state of"
        f" {f'step {uid!r}' if uid else 'its step'}: create a savepoint (emberflow savepoint create), give the step"
        " another uid() and start from it in a new checkpoint directory with allow_non_restored_state",
        committed="nothing was changed",
    )


def _culprit(data: bytes, step: str, entries: Callable[[Any], Mapping[Any, Any]]) -> tuple[str, str] | None:
    """The step, and which state of which key contains an object of a missing class; None if unknown."""
    try:
        found = entries(_Lenient(BytesIO(memoryview(data)[1:])).load())
        for uid, keys in [(step, found)] if step else found.items():
            for key, entry in keys.items():
                if _holds_a_stand_in(key):
                    return uid, "one of its keys"
                for state, value in entry.items():
                    if _holds_a_stand_in(value):
                        return uid, f"the state {state!r} of key {shorten(key)}"
    except Exception:
        pass  # Nothing may prevent the error itself from being shown.
    return None


class _StandIn:
    """Replaces an object of a missing class."""

    def __new__(cls, *args: Any, **kwargs: Any) -> _StandIn:
        return object.__new__(cls)

    def __setstate__(self, state: Any) -> None:
        pass

    def extend(self, items: Any) -> None:
        pass

    append = extend

    def __setitem__(self, name: Any, value: Any) -> None:
        pass


class _Lenient(StoredUnpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        try:
            return super().find_class(module_name, global_name)
        except (ImportError, AttributeError):
            return type(global_name, (_StandIn,), {"__module__": module_name})


class _Seeker(pickle.Pickler):
    found = False

    def reducer_override(self, obj: Any, /) -> Any:
        if isinstance(obj, _StandIn) or (isinstance(obj, type) and issubclass(obj, _StandIn)):
            self.found = True
        return NotImplemented


def _holds_a_stand_in(value: Any) -> bool:
    seeker = _Seeker(BytesIO(), 5)
    try:
        seeker.dump(value)
    except Exception:
        pass  # A stand-in cannot be pickled.
    return seeker.found
