"""Every error a user can meet.

EmberflowError
├── ProgramError            the program is wrong; found while it is compiled            EF1xxx
│   ├── NotSupported        this engine or mode cannot do it; the message has the way out
│   ├── NotKeyed            a step needs key_by() before it
│   ├── DuplicateUid        two steps share one uid
│   ├── InvalidArgument     a value that no step accepts
│   └── InvalidAgent        an agent whose actions, triggers or resources do not fit together
├── JobError                a running job failed                                        EF2xxx
│   ├── StepFailed          a user function raised
│   ├── KeySelectorFailed   the function given to key_by() raised
│   ├── NotSerializable     a value cannot travel or be stored
│   ├── UnknownState        a state name that was not registered in open()
│   ├── SourceFailed        a source broke off, e.g. in the middle of a record
│   ├── SinkFailed          a sink could not write or commit
│   ├── ActionFailed        an agent's action raised, or sent something that cannot be sent
│   ├── StepLimitReached    an agent's actions triggered each other without end
│   ├── MemoryTooLarge      an agent's memory grew beyond its limit
│   ├── ResourceFailed      an agent's resource is unknown or could not be made
│   ├── ReplayMismatch      an action that is repeated makes other durable calls than before
│   ├── CallLogFailed       the log of durable calls cannot be written
│   │   └── ApprovalsFailed a question to people or its answer cannot be read or written
│   ├── BudgetExceeded      an agent's run or key has spent more than it may
│   ├── ApprovalExpired     nobody answered a question in time
│   ├── RecordedError       stands for an exception that a recorded call raised and that cannot be made again
│   ├── WorkerLost          a worker process died more often than the job may retry
│   └── EngineFailed        the engine below failed for a reason of its own
├── CheckpointError         what is stored does not fit or cannot be reached            EF3xxx
│   ├── CheckpointUnusable  the directory cannot be read or written
│   ├── ProgramChanged      the program no longer matches the checkpoint
│   ├── CorruptData         bytes that fail their check
│   ├── CheckpointInUse     another job owns the directory
│   ├── OwnershipLost       another job has taken the directory over; this one commits nothing more
│   ├── ClassMissing        stored data of a class that cannot be imported any more
│   └── SinkMismatch        state and what a sink has committed do not belong together
└── EnvironmentProblem      this machine lacks something                                EF4xxx
    ├── JavaMissing
    ├── PythonTooOld
    └── PackageMissing

A message has up to four lines: what happened, the cause, what to do, and what was (not) committed.
Errors travel from Spark's workers to the driver as one marker line (`to_marker`, `from_marker`).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from typing import Any, ClassVar

from emberflow.rendering.masked_repr import masked_repr
from emberflow.rendering.plain_text import clean, clean_lines
from emberflow.rendering.secret_names import scrub

SHORT = 120


def shorten(value: object, limit: int = SHORT) -> str:
    """The value as a user would recognise it, cut to `limit` characters, without what looks like a secret; never raises."""
    return masked_repr(value, limit)


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """`; did you mean 'trigger_ms'?`, for the end of a message about an unknown name; nothing if no known name is close."""
    from difflib import get_close_matches

    near = get_close_matches(str(name), list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def describe_cause(error: BaseException) -> str:
    """`TypeError: message` of an exception, on one line; never raises."""
    if isinstance(error, RecordedError):
        return " ".join(error.described().split())
    if isinstance(error, EmberflowError):
        return str(error).splitlines()[0]
    try:
        text = clean(scrub(" ".join(str(error).split())))
    except Exception as failure:
        text = f"<str() raised {type(failure).__name__}>"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class EmberflowError(Exception):
    """Base of all errors; `code` is stable, `way_out` says what to do."""

    code: ClassVar[str] = "EF0000"

    def __init__(self, message: str, *, cause: str = "", way_out: str = "", committed: str = "") -> None:
        self.message = message
        self.cause = cause
        self.way_out = way_out
        self.committed = committed
        super().__init__(message)

    def __str__(self) -> str:
        lines = [f"{type(self).__name__} [{self.code}]: {self.message}"]
        if self.cause:
            lines.append(f"  cause: {self.cause}")
        if self.way_out:
            lines.append(f"  what to do: {self.way_out}")
        if self.committed:
            lines.append(f"  {self.committed}")
        return clean_lines("\n".join(lines))

    def __reduce__(self) -> tuple[Any, ...]:
        return _stored_error, (type(self).__name__, self.message, self.cause, self.way_out, self.committed)


class ProgramError(EmberflowError):
    """The program is wrong; found before it runs."""

    code = "EF1000"


class NotSupported(ProgramError):
    """This engine or mode cannot do it: the message names the engine or mode that can."""

    code = "EF1001"


class NotKeyed(ProgramError):
    """State or timers without keys: call `key_by()` before the step."""

    code = "EF1002"


class DuplicateUid(ProgramError):
    """Two steps share one uid: give each step its own."""

    code = "EF1003"


class InvalidArgument(ProgramError):
    """A value that no step accepts; the message says which one would be."""

    code = "EF1004"


class InvalidAgent(ProgramError):
    """An agent's actions, triggers or resources do not fit together; the message suggests the name that was
    probably meant."""

    code = "EF1005"


class JobError(EmberflowError):
    """A running job failed."""

    code = "EF2000"


class StepFailed(JobError):
    """A function raised: fix it and run again; the job goes on before that value."""

    code = "EF2101"


class KeySelectorFailed(JobError):
    """The function given to `key_by()` raised, or its key cannot be hashed: make it work for every value, or
    filter before it."""

    code = "EF2102"


class NotSerializable(JobError):
    """A value, state or function object cannot be pickled: keep locks, connections and files out of it; open
    them in `open()`."""

    code = "EF2103"


class UnknownState(JobError):
    """A state name that was not registered: register it in `open()` with a descriptor."""

    code = "EF2104"


class SourceFailed(JobError):
    """A source broke off, for example in the middle of a record: fix the input and run again."""

    code = "EF2105"


class SinkFailed(JobError):
    """A sink could not write or commit: fix its target and run again; nothing is written twice."""

    code = "EF2106"


class WorkerLost(JobError):
    """A worker process died again and again: look for a function that needs too much memory."""

    code = "EF2107"


class EngineFailed(JobError):
    """The engine below failed: `--traceback` shows its report."""

    code = "EF2108"


class ActionFailed(JobError):
    """An agent's action raised, or what triggers it could not be decided: fix the action; `on-error` = `skip`
    leaves such inputs out."""

    code = "EF2201"


class StepLimitReached(JobError):
    """Actions triggered each other without end: let one of them stop sending, or raise `max-steps`."""

    code = "EF2202"


class MemoryTooLarge(JobError):
    """An agent's memory grew beyond its limit: delete what is not needed, or raise `memory.max-bytes`."""

    code = "EF2203"


class ResourceFailed(JobError):
    """A resource of an agent is unknown or could not be made."""

    code = "EF2204"


class ReplayMismatch(JobError):
    """An action that is repeated makes other durable calls than before: bring the old code back until such
    runs are done, or `on-replay-mismatch` = `restart`."""

    code = "EF2205"


class CallLogFailed(JobError):
    """The log of durable calls cannot be written: free space or repair the disk, then start again."""

    code = "EF2206"


class ApprovalsFailed(CallLogFailed):
    """An answer is a durable call's as well: like the log's failure, this is never an action's outcome."""

    code = "EF2210"


class BudgetExceeded(JobError):
    """An agent's run or key has spent more than it may: raise the budget, wait for the next window, or give
    the action a `fallback`."""

    code = "EF2207"


class ApprovalExpired(JobError):
    """Nobody answered a question of `ctx.ask_human` in time: answer in time, give `default=`, or a `fallback`."""

    code = "EF2208"


class RecordedError(JobError):
    """What a durable call raised, on a replay, where the exception itself could not be stored or its class is gone.

    `names` are those of its class and bases (`module.qualified name`), `message` is its message; cause, context and
    notes hang on it as on the exception. `Retry(on=…)`, error events and dead letters take it for the exception.
    """

    code = "EF2209"

    def __init__(
        self,
        message: str,
        *,
        names: tuple[str, ...] = (),
        cause: str = "",
        way_out: str = "",
        committed: str = "",
    ) -> None:
        super().__init__(message, cause=cause, way_out=way_out, committed=committed)
        self.names = names

    @property
    def type_name(self) -> str:
        """The name of the exception's class, without its module."""
        return re.split(r"[.:]", self.names[0])[-1] if self.names else type(self).__name__

    def described(self) -> str:
        """`TypeError: message` of the exception."""
        return f"{self.type_name}: {self.message}" if self.message else self.type_name

    def __str__(self) -> str:
        head = f"{type(self).__name__} [{self.code}]: "
        return (
            head
            + (self.described() if self.names else self.message)
            + super().__str__()[len(head + self.message) :]
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (*super().__reduce__()[:1], (*super().__reduce__()[1], self.names))


def _recorded(  # pyright: ignore[reportUnusedFunction] - called by stored bytes
    names: tuple[str, ...], message: str, cause: str, way_out: str, committed: str
) -> RecordedError:
    """As the version before stored one."""
    return RecordedError(message, names=names, cause=cause, way_out=way_out, committed=committed)


def names_of(error: BaseException | type[BaseException]) -> tuple[str, ...]:
    """`module.qualified name` of an exception's class and of its bases, up to BaseException. Ours are `emberflow:Name`:
    these names are stored, and must not depend on where a class is."""
    if isinstance(error, RecordedError):
        return tuple(map(stable_name, error.names))
    kind = error if isinstance(error, type) else type(error)
    return tuple(
        stable_name(f"{base.__module__}.{base.__qualname__}") for base in kind.__mro__ if base is not object
    )


def stable_name(name: str) -> str:
    """The stored name of one of our errors, also as the version before wrote it."""
    return f"emberflow:{name.removeprefix(_HERE)}" if name.startswith(_HERE) else name


_HERE = f"{__name__}."


def type_name(error: BaseException) -> str:
    """The name of an exception's class; of the one it stands for if it was recorded."""
    return error.type_name if isinstance(error, RecordedError) else type(error).__name__


class CheckpointError(EmberflowError):
    """Stored data does not fit or cannot be reached."""

    code = "EF3000"


class CheckpointUnusable(CheckpointError):
    """The directory cannot be read or written, or belongs to another engine or a newer version: choose another
    one, or fix this one."""

    code = "EF3001"


class ProgramChanged(CheckpointError):
    """The program no longer matches the checkpoint: give steps the `uid()` they had, or start with an empty
    directory."""

    code = "EF3002"


class CorruptData(CheckpointError):
    """Bytes that fail their check: the message names the file and what giving it up costs."""

    code = "EF3003"


class CheckpointInUse(CheckpointError):
    """Another job owns the checkpoint directory: the message names its process, host and start; stop it, or
    use another directory."""

    code = "EF3004"


class OwnershipLost(CheckpointError):
    """Another job has taken the directory over; this process commits nothing more."""

    code = "EF3005"


class ClassMissing(CheckpointError):
    """Stored data of a class that cannot be imported any more: bring the class back under its old name, or
    give up the state of the step that the message names."""

    code = "EF3006"


class SinkMismatch(CheckpointError):
    """State and what a sink has committed do not belong together: restore what is older, or start over; the
    message names both folders."""

    code = "EF3007"


class EnvironmentProblem(EmberflowError):
    """This machine lacks something; `emberflow doctor` looks for it."""

    code = "EF4000"


class JavaMissing(EnvironmentProblem):
    """There is no Java 17 or newer: `pip install "emberflow[java]"`, or set JAVA_HOME."""

    code = "EF4001"


class PythonTooOld(EnvironmentProblem):
    """Python is older than 3.11."""

    code = "EF4002"


class PackageMissing(EnvironmentProblem):
    """A package of an extra is not installed; the message names the extra."""

    code = "EF4003"


def _classes(root: type[EmberflowError] = EmberflowError) -> dict[str, type[EmberflowError]]:
    found = {root.__name__: root}
    for child in root.__subclasses__():
        found.update(_classes(child))
    return found


def _stored_error(
    name: str, message: str, cause: str, way_out: str, committed: str, names: tuple[str, ...] = ()
) -> EmberflowError:
    """What stored bytes call to make an error. They name it `_stored_error` of the package."""
    kind = _classes().get(name, EmberflowError)
    if issubclass(kind, RecordedError):
        return kind(message, names=names, cause=cause, way_out=way_out, committed=committed)
    return kind(message, cause=cause, way_out=way_out, committed=committed)


_stored_error.__module__ = "emberflow"
_rebuild = _stored_error
"""Its name in bytes of the version before."""


_MARKER = re.compile(r"EMBERFLOW-ERROR:([A-Za-z0-9+/=]+)")


def to_marker(error: EmberflowError) -> str:
    """One line that survives a trip through a foreign engine's stack trace."""
    fields = [type(error).__name__, error.message, error.cause, error.way_out, error.committed]
    payload = json.dumps([field[:800] for field in fields])
    return "EMBERFLOW-ERROR:" + base64.b64encode(payload.encode()).decode()


def from_marker(text: str) -> EmberflowError | None:
    """The error inside a foreign stack trace, or None."""
    found = _MARKER.search(text)
    if not found:
        return None
    try:
        name, message, cause, way_out, committed = json.loads(base64.b64decode(found.group(1)))
    except (ValueError, TypeError):
        return None
    return _stored_error(name, message, cause, way_out, committed)
