"""Identities of runs, calls, events, approvals and dead letters, wherever they are stored or shown.

An identity is a 128-bit digest of a canonical encoding that includes the type. 32-bit hashes (`key_groups.py`) decide
where a key is processed, never its identity: different keys may share one.

The rule: two values have the same identity if and only if they are the same key in a dictionary, because that is how
state is found. 1, 1.0, True and Decimal(1) are one key and have one identity; 1 and "1" and b"1" are three. A named tuple
equals its plain tuple. Other objects are encoded by class and by what makes them equal: a dataclass by the fields that it
compares, an enum by its member, everything else by what pickle would keep of it (`__reduce_ex__`), never by pickled
bytes, which differ between equal objects. Classes and functions are encoded by module and qualified name.

Values that cannot be distinguished after a restart have no identity: NaN, anywhere in the value, objects that are equal
only to themselves, lambdas and functions defined in functions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from datetime import datetime, time
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from hashlib import blake2b
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any
from uuid import UUID

from emberflow.errors import EmberflowError, InvalidArgument, RecordedError, describe_cause, shorten
from emberflow.events.key_groups import time_in_utc
from emberflow.events.stored_types import stable_path
from emberflow.events.types.row import Row, equal_parts
from emberflow.events.types.type_information import TypeInformation, spelled

DIGEST_BYTES = 16
DIGITS = 2 * DIGEST_BYTES
"""Digits of an identity as a string; those of version 1 had 16, from a 32-bit hash."""
PLAIN = frozenset({str, int, bool, bytes})
"""Types whose values always have an identity."""
_LARGEST_POWER = 5_000
"""Decimals with more digits than this are not compared with whole numbers: they would have to be expanded."""


class NoIdentity(Exception):
    """The value, or a part of it, cannot be identified after a restart."""


def identity_of(key: Any, owner: str = "") -> str:
    """The identity of an owner's key, 32 hexadecimal digits; raises InvalidArgument for a value that has none."""
    try:
        return _digest(_text(owner) + _encode(key, strict=True))
    except Exception as error:
        reason = str(error) if isinstance(error, NoIdentity) else describe_cause(error)
        raise InvalidArgument(
            f"the key {shorten(key)} has no identity that survives a restart",
            cause=reason,
            way_out="return strings, numbers, or tuples or frozen dataclasses of them from the key selector",
        ) from error


def fingerprint(value: Any) -> str:
    """The identity of a value that is not a key, such as an argument; what has no identity counts as its type."""
    try:
        return _digest(_encode(value, strict=False))
    except RecursionError:
        return _digest(_named(b"?", type(value)))


def text_identity(*parts: str) -> str:
    """The identity of a name made of strings; ("a", "bc") and ("ab", "c") differ."""
    return _digest(_encode(parts, strict=True))


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=DIGEST_BYTES).hexdigest()


def _encode(value: Any, *, strict: bool) -> bytes:
    """No encoding is a prefix of another one, so that a sequence of them is unambiguous."""
    kind: Any = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind is str:
        return _text(value)
    if kind is int or kind is bool:
        return b"n%x;" % value
    if kind is tuple:
        return _items(b"t", value, strict)
    if kind is bytes:
        return b"b%d:" % len(value) + value
    if value is None:
        return b"0;"
    if kind is float:
        return _float(value, strict)
    try:
        return _other(kind, value, strict)
    except (NoIdentity, RecursionError):
        raise
    except Exception as error:
        if strict:
            raise NoIdentity(f"{shorten(value)}: {describe_cause(error)}") from error
        # A connection, a lock, a generator: use its type.
        return _named(b"?", kind)


def _text(value: str) -> bytes:
    data = str.encode(value, "utf-8", "surrogatepass")
    return b"s%d:" % len(data) + data


def _items(tag: bytes, items: Any, strict: bool) -> bytes:
    return b"%b%d:" % (tag, len(items)) + b"".join([_encode(item, strict=strict) for item in items])


def _unordered(tag: bytes, items: Iterable[Any], strict: bool) -> bytes:
    found = sorted([_encode(item, strict=strict) for item in items])
    return b"%b%d:" % (tag, len(found)) + b"".join(found)


def _named(tag: bytes, thing: Any) -> bytes:
    return tag + _text(stable_path(thing))


# numbers: equal numbers of any type have the same encoding


def _float(value: float, strict: bool) -> bytes:
    if value.is_integer():
        return b"n%x;" % int(value)
    if value != value and strict:
        raise NoIdentity("NaN is not equal to itself")
    return b"n%b;" % value.hex().encode()


def _complex(value: complex, strict: bool) -> bytes:
    if value.imag == 0:
        return _float(value.real, strict)
    return b"c" + _float(value.real, strict) + _float(value.imag, strict)


def _decimal(value: Decimal, strict: bool) -> bytes:
    if value.is_nan():
        return _float(float("nan"), strict)
    if value.is_infinite():
        return _float(float(value), strict)
    exponent: Any = value.as_tuple().exponent
    if not value or max(abs(value.adjusted()), abs(exponent)) <= _LARGEST_POWER:
        return _fraction(Fraction(value) if value else Fraction(0), strict)
    # Not with normalize(), which rounds.
    digits = "".join(map(str, value.as_tuple().digits)).encode()
    kept = digits.strip(b"0")
    power = exponent + len(digits) - len(digits.rstrip(b"0"))
    return b"n%d*%be%d;" % (-1 if value < 0 else 1, kept, power)


def _fraction(value: Fraction, strict: bool) -> bytes:
    if value.denominator == 1:
        return b"n%x;" % value.numerator
    try:
        near = float(value)
    except OverflowError:
        near = 0.0
    if near == value:
        return _float(near, strict)
    return b"n%x/%x;" % (value.numerator, value.denominator)


_TUPLE: Any = tuple
_FROZENSET: Any = frozenset
_BASES: tuple[tuple[Any, Callable[[Any, bool], bytes]], ...] = (
    (str, lambda value, strict: _text(value)),
    (int, lambda value, strict: b"n%x;" % int.__index__(value)),
    (float, lambda value, strict: _float(float.__pos__(value), strict)),
    (tuple, lambda value, strict: _items(b"t", list(_TUPLE.__iter__(value)), strict)),
    (bytes, lambda value, strict: b"b%d:" % len(value) + bytes.__getitem__(value, slice(None))),
    (frozenset, lambda value, strict: _unordered(b"f", _FROZENSET.__iter__(value), strict)),
    (complex, _complex),
    (Decimal, _decimal),
    (Fraction, _fraction),
)


@functools.lru_cache(maxsize=10_000)
def _as_base(kind: Any) -> Callable[[Any, bool], bytes] | None:
    """How to encode a class whose objects are equal to those of a built-in class."""
    for base, encode in _BASES:
        if issubclass(kind, base):
            same = kind.__eq__ is base.__eq__ and kind.__hash__ is base.__hash__
            return encode if same else None
    return None


# everything else


def _other(kind: Any, value: Any, strict: bool) -> bytes:
    as_base = _as_base(kind)
    if as_base is not None:
        return as_base(value, strict)
    if isinstance(value, Enum):
        member = _text(value.name) if value.name else _encode(value.value, strict=strict)
        return _named(b"e", kind) + member
    if kind.__module__ == "numpy" and kind.__hash__ is not None and hasattr(value, "item"):
        plain = value.item()
        if type(plain).__module__ != "numpy" and hash(plain) == hash(value) and plain == value:
            return _encode(plain, strict=strict)
    if isinstance(value, Row):
        return b"r" + _items(b"t", equal_parts(value), strict)
    # The following are not keys themselves, but parts of keys and arguments.
    if isinstance(value, list):
        return _items(b"l", value, strict)
    if isinstance(value, dict):
        return _unordered(b"d", value.items(), strict)  # pyright: ignore[reportUnknownArgumentType]
    if kind is set:
        return _unordered(b"f", value, strict)
    if isinstance(value, bytearray | memoryview):
        return _encode(bytes(value), strict=strict)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, type):
        return _named(b"k", value)
    if isinstance(value, FunctionType | BuiltinFunctionType | MethodType):
        return _function(value, strict)
    return _object(kind, value, strict)


def _function(value: Any, strict: bool) -> bytes:
    if strict and "<" in value.__qualname__:
        raise NoIdentity(
            f"{value.__qualname__} cannot be distinguished from others defined in the same place"
        )
    owner = getattr(value, "__self__", None)
    return _named(b"u", value) + _encode(None if isinstance(value, FunctionType) else owner, strict=False)


def _object(kind: Any, value: Any, strict: bool) -> bytes:
    start = _named(b"o", kind)
    if isinstance(value, datetime):
        offset = value.utcoffset()
        moment = value if offset is None else (value - offset).replace(tzinfo=None)
        own = getattr(value, "__dict__", None)
        return (
            start + _text(moment.replace(fold=0).isoformat()) + _encode((offset is None, own), strict=strict)
        )
    if isinstance(value, time):
        offset = value.utcoffset()
        if offset is not None:
            return start + _encode(time_in_utc(value, offset), strict=strict)
        value = value.replace(fold=0)
    if kind is UUID:
        return start + _encode(value.int, strict=strict)
    if kind.__module__ == TypeInformation.__module__:
        # As it was when such identities were first stored: one class for all types.
        return _named(b"o", TypeInformation) + _items(b"t", spelled(value), strict)
    if is_dataclass(value) and kind.__dataclass_params__.eq:
        compared = [getattr(value, field.name) for field in fields(value) if field.compare]
        return start + _items(b"t", compared, strict)
    return start + _reduced(kind, value, strict)


def _reduced(kind: Any, value: Any, strict: bool) -> bytes:
    """Encodes what pickle would keep."""
    reduced: Any = value.__reduce_ex__(4)
    if reduced.__class__ is str:
        return _text(reduced)
    if strict and kind.__eq__ is object.__eq__:
        raise NoIdentity(f"objects of the class {kind.__qualname__} are equal only to themselves")
    if kind.__reduce__ in _OF_ERRORS:
        return _error(value, strict)
    make, arguments, *rest = reduced
    # State unchanged, items of lists and dictionaries as sequences.
    state = [
        part if at == 0 or part is None or callable(part) else list(part) for at, part in enumerate(rest)
    ]
    return _named(b"u", make) + _encode((arguments, *state), strict=strict)


_OF_ERRORS = (EmberflowError.__reduce__, RecordedError.__reduce__)


def _error(error: EmberflowError, strict: bool) -> bytes:
    """One of our own errors, encoded as it was pickled when such identities were first stored: an argument of a recorded
    call must keep its identity, however errors are pickled today."""
    message = (error.message, error.cause, error.way_out, error.committed)
    if isinstance(error, RecordedError):
        make, arguments = "emberflow.errors._recorded", (error.names, *message)
    else:
        make, arguments = "emberflow.errors._rebuild", (type(error).__name__, *message)
    return b"u" + _text(make) + _encode((arguments,), strict=strict)
