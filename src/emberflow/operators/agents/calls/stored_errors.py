"""How the log stores and restores exceptions.

An exception is restored faithfully wherever possible: same class, `args`, message, notes, cause and context. pickle
alone does not do that: it calls the class with `args`, which fails for classes with keyword-only arguments, it drops
causes, and a class that no longer exists makes everything stored with it unreadable. So restoring is tried out when an
exception is stored:

1. as pickled by pickle, if the restored exception is the same;
2. as its class, `args` and those attributes that can be stored, restored without calling the class;
3. as names and message. It is restored as a `RecordedError`, and so is one whose class no longer exists.

Secrets are masked in all of them; an object in which a secret cannot be replaced, such as a request with its headers, is
dropped.

`Retry(on=…)` uses `is_error_of`, which compares classes by name: it has the same result on the first run and on a replay.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from emberflow.errors import EmberflowError, RecordedError, names_of, stable_name
from emberflow.events.codecs import decode, encode
from emberflow.events.stored_types import stored_type
from emberflow.operators.agents.calls.masked_errors import mask, without_secrets

LARGEST = 256 * 1024
"""The maximum size of an exception in bytes; a larger one keeps its class and the beginning of its message."""
LONGEST_MESSAGE = 10_000
_DEEPEST = 8
"""The maximum length of a chain of causes."""


@stored_type()
@dataclass(frozen=True, slots=True, kw_only=True)
class StoredError:
    """One exception. Contains nothing that requires the exception's class to be read."""

    names: tuple[str, ...]
    """The class and its bases, as `module.qualified name`."""
    message: str
    pickled: bytes | None = None
    """The exception itself, without causes, notes and group members."""
    parts: bytes | None = None
    """Its `args` and attributes, for a class that pickle does not restore."""
    notes: tuple[str, ...] = ()
    cause: StoredError | None = None
    context: StoredError | None = None
    suppress_context: bool = False
    members: tuple[StoredError, ...] = ()
    """The members of an exception group."""
    attempts: int = 1


Secrets = tuple[str, ...]


def stored(error: BaseException, attempts: int = 1, secrets: Collection[str] = ()) -> StoredError:
    """The stored form of an exception; never raises."""
    # A copy: other threads may create resources in the meantime.
    return replace(_stored(error, tuple(secrets), _DEEPEST, set()), attempts=attempts)


def _stored(error: BaseException, secrets: Secrets, depth: int, seen: set[int]) -> StoredError:
    seen.add(id(error))

    def linked(other: BaseException | None) -> StoredError | None:
        return (
            None
            if other is None or not depth or id(other) in seen
            else _stored(other, secrets, depth - 1, seen)
        )

    if isinstance(error, RecordedError):
        # Stored again: it represents the same exception as before.
        kept = StoredError(names=error.names, message=error.message)
    elif isinstance(error, BaseExceptionGroup):
        group: Any = error  # pyright: ignore[reportUnknownVariableType]
        members = tuple(_stored(item, secrets, depth - 1, seen) for item in group.exceptions) if depth else ()
        kept = StoredError(
            names=names_of(group), message=_short(mask(group.message, secrets)), members=members
        )
    else:
        kept = _alone(error, secrets)
    return replace(
        kept,
        notes=tuple(_short(mask(str(note), secrets)) for note in error.__dict__.get("__notes__", ())),
        cause=linked(error.__cause__),
        context=linked(error.__context__),
        suppress_context=error.__suppress_context__,
    )


def _alone(error: BaseException, secrets: Secrets) -> StoredError:
    """Without causes, notes and group members."""
    text = mask(_text(error), secrets)
    kept = StoredError(names=names_of(error), message=_short(text))
    for form in (_pickled, _parts):
        try:
            tried = form(kept, error, secrets)
            found = _revived_alone(tried)
        except Exception:
            continue
        if type(found) is type(error) and _text(found) == text:
            return tried
    # Too large, or with an attribute that its message depends on: keep the class with its message.
    try:
        tried = replace(kept, parts=encode(((kept.message,), {})))
        found = _revived_alone(tried)
        if type(found) is type(error) and _text(found) == kept.message:
            return tried
    except Exception:
        return kept
    return kept


def _pickled(kept: StoredError, error: BaseException, secrets: Secrets) -> StoredError:
    if without_secrets(error, secrets) is not error:
        raise ValueError("it contains a secret")
    data = _checked(error, secrets)
    # pickle calls the class: the restored exception must have the same contents, not only the same message.
    if not _same(decode(data), error):
        raise ValueError("it cannot be restored")
    return replace(kept, pickled=data)


def _checked(value: Any, secrets: Secrets) -> bytes:
    data = encode(value)
    if len(data) > LARGEST or any(secret.encode() in data for secret in secrets):
        raise ValueError("it is too large or contains a secret")
    return data


def _same(found: Any, error: BaseException) -> bool:
    if type(found) is not type(error) or found.__dict__.keys() != error.__dict__.keys():
        return False
    if isinstance(error, EmberflowError):
        return str(found) == str(error)
    return len(found.args) == len(error.args) and encode(found.args) == encode(error.args)


def _parts(kept: StoredError, error: BaseException, secrets: Secrets) -> StoredError:
    attributes: dict[str, Any] = {}
    for name, value in without_secrets(error.__dict__, secrets).items():
        try:
            decode(_checked(value, secrets))
        except Exception:
            continue
        if name != "__notes__":
            attributes[name] = value
    data = _checked((without_secrets(error.args, secrets), attributes), secrets)
    decode(data)
    return replace(kept, parts=data)


def revived(kept: StoredError) -> BaseException:
    """The restored exception or its replacement; never raises. A new one each time: raising changes an exception."""
    found = _revived_group(kept) if kept.members else None
    if found is None:
        try:
            found = _revived_alone(kept)
        except Exception:
            found = RecordedError(kept.message, names=kept.names)
    if kept.notes:
        found.__notes__ = list(kept.notes)
    if kept.cause is not None:
        found.__cause__ = revived(kept.cause)
    if kept.context is not None:
        found.__context__ = revived(kept.context)
    found.__suppress_context__ = kept.suppress_context
    return found


def _revived_alone(kept: StoredError) -> BaseException:
    if kept.pickled is not None:
        found = decode(kept.pickled)
    elif kept.parts is not None:
        kind: Any = _class_named(kept.names[0])
        args, attributes = decode(kept.parts)
        # Without calling the class: the arguments of its constructor are unknown.
        found = kind.__new__(kind, *args)
        found.args = args
        found.__dict__.update(attributes)
    else:
        return RecordedError(kept.message, names=kept.names)
    if not isinstance(found, BaseException):
        raise TypeError(f"{kept.names[0]} is not restored as an exception")
    return found


def _revived_group(kept: StoredError) -> BaseException:
    members: list[Any] = [revived(item) for item in kept.members]
    try:
        kind: Any = _class_named(kept.names[0])
        made = kind.__new__(kind, kept.message, members)
        if isinstance(made, BaseExceptionGroup):
            return made  # pyright: ignore[reportUnknownVariableType]
    except Exception:
        pass
    return BaseExceptionGroup(kept.message, members)


def _class_named(name: str) -> Any:
    """The class with this `module.qualified name`; raises if there is none."""
    name = stable_name(name)
    ours, _, own = name.rpartition(":")
    parts = ["emberflow", "errors", own] if ours == "emberflow" else name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        try:
            found: Any = import_module(".".join(parts[:end]))
        except ImportError:
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        if isinstance(found, type) and issubclass(found, BaseException) and names_of(found)[0] == name:
            return found
        break
    raise LookupError(name)


def is_error_of(error: BaseException, kinds: tuple[type[BaseException], ...]) -> bool:
    """Whether an exception, or the one it represents, is of one of these classes; classes are also compared by name."""
    if not isinstance(error, RecordedError) and isinstance(error, kinds):
        return True
    known = names_of(error)
    return any(names_of(kind)[0] in known for kind in kinds)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as failure:
        return f"<str() raised {type(failure).__name__}>"


def _short(text: Any) -> str:
    text = str(text)
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 1] + "…"
