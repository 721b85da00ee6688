"""Every error that emberflow raises for its users.

EmberflowError
├── ProgramError            the program is invalid; found while it is compiled          EF1xxx
│   ├── NotSupported        this engine or mode cannot do it; the message names an alternative
│   │   ├── PyFlinkOnly     a module or name of PyFlink that emberflow does not have
│   │   └── FlinkAgentsOnly a module or name of Flink Agents that emberflow does not have
│   ├── NotKeyed            a step needs key_by() before it
│   ├── DuplicateUid        two steps share one uid
│   ├── InvalidArgument     an argument or option has an invalid value
│   └── InvalidAgent        an agent's actions, triggers or resources do not fit together
├── JobError                a running job failed                                        EF2xxx
│   ├── StepFailed          a user function raised
│   ├── KeySelectorFailed   the function given to key_by() raised
│   ├── NotSerializable     a value cannot be sent or stored
│   ├── UnknownState        a state name that was not registered in open()
│   ├── SourceFailed        a source could not be read, e.g. its input is truncated
│   ├── SinkFailed          a sink could not write or commit
│   ├── ActionFailed        an agent's action raised, or sent something that cannot be sent
│   ├── StepLimitReached    an agent's actions triggered each other without end
│   ├── MemoryTooLarge      an agent's memory exceeded its limit
│   ├── ResourceFailed      an agent's resource could not be created
│   │   └── UnknownResource an agent asked for a resource that it does not have
│   ├── ToolFailed          a tool failed
│   ├── ReplayMismatch      a repeated action made different durable calls than before
│   ├── CallLogFailed       the durable call log cannot be read or written
│   │   └── ApprovalsFailed an approval question or its answer cannot be read or written
│   ├── ModelFailed         a model service rejected a call, could not be reached or returned an invalid response
│   │   └── ModelRefused    a model, or the content filter of its service, refused to answer
│   ├── OutputMismatch      a model's reply does not fit the requested type
│   ├── BudgetExceeded      an agent's run or key has exceeded its budget
│   ├── ApprovalExpired     an approval question was not answered in time
│   ├── RecordedError       replaces a recorded exception that cannot be recreated
│   ├── WorkerLost          a worker process died more often than the job may restart it
│   └── EngineFailed        the underlying engine failed for an internal reason
├── CheckpointError         stored data does not match the job or cannot be accessed    EF3xxx
│   ├── CheckpointUnusable  the checkpoint directory cannot be read or written
│   ├── ProgramChanged      the program no longer matches the checkpoint
│   ├── CorruptData         stored data failed its checksum or cannot be decoded
│   ├── CheckpointInUse     another job owns the checkpoint directory
│   ├── OwnershipLost       another job has taken over the directory; this one commits nothing more
│   ├── ClassMissing        stored data needs a class that can no longer be imported
│   └── SinkMismatch        the job's state and the sink's committed output do not belong together
└── EnvironmentProblem      this machine lacks something                                EF4xxx
    ├── JavaMissing
    ├── PythonTooOld
    └── PackageMissing

A message has up to four lines: what failed, the cause, what to do, and what was or was not committed.
Errors are sent from Spark's workers to the driver as one marker line (`to_marker`, `from_marker`).
"""

from __future__ import annotations

import base64
import copyreg
import json
import re
from collections.abc import Iterable
from typing import Any, ClassVar

from emberflow.rendering.masked_repr import masked_repr
from emberflow.rendering.plain_text import clean, clean_lines
from emberflow.rendering.secret_names import scrub

SHORT = 120
_NEW_OBJECT: Any = vars(copyreg)["__newobj__"]
"""How pickle creates an object without calling its class."""


def shorten(value: object, limit: int = SHORT) -> str:
    """The value's repr, cut to `limit` characters and with likely secrets masked; never raises."""
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
    """Base of all errors. `code` is stable, `way_out` says what to do, `committed` what was or was not committed."""

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
        kind = type(self)
        if kind.__module__ != __name__:
            # A user's class may have other arguments and attributes, and the name of one of ours.
            return _NEW_OBJECT, (kind, *self.args), self.__dict__
        return _stored_error, (kind.__name__, self.message, self.cause, self.way_out, self.committed)


class ProgramError(EmberflowError):
    """The program is invalid. Raised while it is built or compiled, before any record is processed; fix the
    program as the message says.
    """

    code = "EF1000"


class NotSupported(ProgramError):
    """The chosen engine or execution mode does not support this. The message names an engine, mode or step that does."""

    code = "EF1001"


class PyFlinkOnly(NotSupported, ImportError):
    """A PyFlink program imports a module or name that emberflow does not have. The message names what to use instead."""

    code = "EF1006"


class FlinkAgentsOnly(NotSupported, ImportError):
    """A Flink Agents program imports or names something that emberflow does not have. The message names what to use
    instead.
    """

    code = "EF1007"


class NotKeyed(ProgramError):
    """A step that uses keyed state or timers is not on a keyed stream. Call `key_by()` before it."""

    code = "EF1002"


class DuplicateUid(ProgramError):
    """Two steps have the same uid, so their state cannot be distinguished. Give each step its own `uid()`."""

    code = "EF1003"


class InvalidArgument(ProgramError, ValueError):
    """An argument, option or command-line value is invalid. The message names the value and what is accepted. Also a
    `ValueError`.
    """

    code = "EF1004"


class InvalidAgent(ProgramError, ValueError):
    """An agent's actions, triggers or resources do not fit together. Raised when the agent is applied; where a name
    is misspelled, the message suggests the closest one. Also a `ValueError`.
    """

    code = "EF1005"


class JobError(EmberflowError):
    """A running job failed. The message names the step and the value where they are known, and says what was committed."""

    code = "EF2000"


class StepFailed(JobError):
    """A user function raised. Fix the function, or handle such values in it, and run the program again: it continues
    before the value that failed.
    """

    code = "EF2101"


class KeySelectorFailed(JobError):
    """The function given to `key_by()` raised, or returned a key that cannot be hashed. Make it accept every value, or
    filter the stream before it.
    """

    code = "EF2102"


class NotSerializable(JobError):
    """A value, state or function object cannot be pickled, so it cannot be sent to a worker or stored. Keep locks,
    connections and open files out of it; create them in `open()`. Also: a prompt that cannot be encoded as UTF-8.
    """

    code = "EF2103"


class UnknownState(JobError):
    """A function used a state that it did not register. Register it in `open()` with a descriptor."""

    code = "EF2104"


class SourceFailed(JobError):
    """A source could not be read, for example because its input is truncated. Fix the input and run the program again."""

    code = "EF2105"


class SinkFailed(JobError):
    """A sink could not write or commit. Fix its target and run the program again; nothing is written twice."""

    code = "EF2106"


class WorkerLost(JobError):
    """A worker process died more often than the job may restart it. A likely cause is a function that needs too much
    memory.
    """

    code = "EF2107"


class EngineFailed(JobError):
    """The underlying engine failed for an internal reason. `--traceback` shows its report."""

    code = "EF2108"


class ActionFailed(JobError):
    """An agent's action raised, or its trigger condition could not be evaluated. Fix the action, or choose with the
    option `on-error` what happens to such inputs.
    """

    code = "EF2201"


class StepLimitReached(JobError):
    """The actions of one run triggered each other more often than the option `max-steps` allows. Stop the loop, or raise
    the limit.
    """

    code = "EF2202"


class MemoryTooLarge(JobError):
    """An agent's memory of one key exceeded the option `memory.max-bytes`. Delete what is no longer needed, or raise the
    limit.
    """

    code = "EF2203"


class ResourceFailed(JobError):
    """The creation of an agent's resource raised."""

    code = "EF2204"


class UnknownResource(ResourceFailed, KeyError):
    """An agent asked for a resource that it does not have. The message suggests the closest name. Also a `KeyError`."""

    code = "EF2211"


class ToolFailed(JobError):
    """A tool could not do its work: an MCP server reported an error, cannot be reached, or lost its connection. In a chat,
    the model receives the message; an action may catch it.
    """

    code = "EF2213"


class ReplayMismatch(JobError):
    """A repeated action made different durable calls than the ones recorded for it. Make the action deterministic or
    restore its code until such runs are done, or set the option `on-replay-mismatch` to `restart`.
    """

    code = "EF2205"


class CallLogFailed(JobError):
    """The durable call log cannot be read or written. Always stops the job and never becomes an action's outcome. Free
    space or repair the storage, then start the job again.
    """

    code = "EF2206"


class ApprovalsFailed(CallLogFailed):
    """An approval question or its answer is corrupted, or cannot be read or written. Stops the job and, like any
    `CallLogFailed`, never becomes an action's outcome. The message names the file.
    """

    code = "EF2210"


class ModelFailed(JobError):
    """A model service rejected a call, could not be reached, or returned an invalid response. `status_code` is that of
    its answer, if there was one; `retry_after` are the seconds that it asks to wait.
    """

    code = "EF2221"

    def __init__(
        self,
        message: str,
        *,
        cause: str = "",
        way_out: str = "",
        committed: str = "",
        status_code: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, cause=cause, way_out=way_out, committed=committed)
        self.status_code = status_code
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[Any, ...]:
        make, arguments, *state = super().__reduce__()
        return (make, arguments, *(state or (self.__dict__,)))


class ModelRefused(ModelFailed):
    """A model, or the content filter of its service, refused to answer a question that needs an answer of a certain type. The
    cause is what it said. Asking again does not help: change the question, or give the action a `fallback`.
    """

    code = "EF2223"


class OutputMismatch(JobError):
    """A model's reply does not fit the requested type. `for_model` tells the model what to correct."""

    code = "EF2222"

    @property
    def for_model(self) -> str:
        """What to send to the model, so that it answers again."""
        return f"Your reply does not fit: {self.cause}. Answer again, with nothing but the corrected JSON."


class BudgetExceeded(JobError):
    """An agent's run or key has spent more than its budget. Raise the budget, wait for its next window, or give the action
    a `fallback`.
    """

    code = "EF2207"


class ApprovalExpired(JobError):
    """A question of `ctx.ask_human` was not answered before its deadline. Give the question a `default`, or the action a
    `fallback`.
    """

    code = "EF2208"


class RecordedError(JobError):
    """Raised on replay in place of an exception that could not be stored or whose class can no longer be imported.

    `names` are the qualified names of the exception's class and its bases, `message` is its message; cause, context
    and notes are those of the exception. `Retry(on=…)`, error events and dead letters treat it as that exception.
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
        make, arguments, *state = super().__reduce__()
        return (make, arguments, *state) if state else (make, (*arguments, self.names))


def _recorded(  # pyright: ignore[reportUnusedFunction] - called by stored bytes
    names: tuple[str, ...], message: str, cause: str, way_out: str, committed: str
) -> RecordedError:
    """Reads an error stored by the previous version."""
    return RecordedError(message, names=names, cause=cause, way_out=way_out, committed=committed)


def names_of(error: BaseException | type[BaseException]) -> tuple[str, ...]:
    """The qualified names of an exception's class and its bases, up to BaseException. Our own errors are
    `emberflow:Name`: these names are stored and must not depend on the module a class lives in."""
    if isinstance(error, RecordedError):
        return tuple(map(stable_name, error.names))
    kind = error if isinstance(error, type) else type(error)
    return tuple(
        stable_name(f"{base.__module__}.{base.__qualname__}") for base in kind.__mro__ if base is not object
    )


def stable_name(name: str) -> str:
    """The stored name of an exception class; maps names written by the previous version to today's."""
    return f"emberflow:{name.removeprefix(_HERE)}" if name.startswith(_HERE) else name


_HERE = f"{__name__}."


def type_name(error: BaseException) -> str:
    """The name of an exception's class; for a RecordedError, of the class it replaces."""
    return error.type_name if isinstance(error, RecordedError) else type(error).__name__


class CheckpointError(EmberflowError):
    """Stored data does not match the job or cannot be accessed. The stored data is left unchanged."""

    code = "EF3000"


class CheckpointUnusable(CheckpointError):
    """The checkpoint directory cannot be read or written, or belongs to another engine, another job or a newer version.
    Choose another directory, or fix this one.
    """

    code = "EF3001"


class ProgramChanged(CheckpointError):
    """The program's stateful steps no longer match the checkpoint. Give the steps the `uid()` they had, or start with an
    empty directory.
    """

    code = "EF3002"


class CorruptData(CheckpointError):
    """Stored data failed its checksum, is truncated or cannot be decoded. The message names the file and what is lost if
    it is given up.
    """

    code = "EF3003"


class CheckpointInUse(CheckpointError):
    """Another job owns the checkpoint directory. The message names its process and host; stop that job, or use another
    directory.
    """

    code = "EF3004"


class OwnershipLost(CheckpointError):
    """Another job has taken over the checkpoint directory. This process commits nothing more; the other one continues."""

    code = "EF3005"


class ClassMissing(CheckpointError):
    """Stored data contains an instance of a class that can no longer be imported. Restore the class under its old name, or
    give up the state of the step that the message names.
    """

    code = "EF3006"


class SinkMismatch(CheckpointError):
    """The job's state and the output that a sink has committed do not belong together; continuing would lose output.
    Restore the older of the two, or start over with both empty.
    """

    code = "EF3007"


class EnvironmentProblem(EmberflowError):
    """This machine lacks something that the program needs. `emberflow doctor` lists what is missing."""

    code = "EF4000"


class JavaMissing(EnvironmentProblem):
    """No Java 17 or newer was found. Install `emberflow[java]`, or set JAVA_HOME."""

    code = "EF4001"


class PythonTooOld(EnvironmentProblem):
    """Python is older than 3.11. Use a newer Python."""

    code = "EF4002"


class PackageMissing(EnvironmentProblem):
    """A package of an optional extra is not installed. The message names the extra."""

    code = "EF4003"


def _classes(root: type[EmberflowError] = EmberflowError) -> dict[str, type[EmberflowError]]:
    found = {root.__name__: root}
    for child in root.__subclasses__():
        found.update(_classes(child))
    return found


def _stored_error(
    name: str, message: str, cause: str, way_out: str, committed: str, names: tuple[str, ...] = ()
) -> EmberflowError:
    """Recreates an error from stored bytes, which refer to it as `emberflow._stored_error`."""
    kind = globals().get(name)
    if not (isinstance(kind, type) and issubclass(kind, EmberflowError)):
        # Of a user, as the previous version stored it.
        kind = _classes().get(name, EmberflowError)
    if issubclass(kind, RecordedError):
        return kind(message, names=names, cause=cause, way_out=way_out, committed=committed)
    return kind(message, cause=cause, way_out=way_out, committed=committed)


_stored_error.__module__ = "emberflow"
_rebuild = _stored_error
"""The name in bytes that the previous version stored."""


_MARKER = re.compile(r"EMBERFLOW-ERROR:([A-Za-z0-9+/=]+)")


def to_marker(error: EmberflowError) -> str:
    """Encodes an error as one line that survives inside another engine's stack trace."""
    fields = [type(error).__name__, error.message, error.cause, error.way_out, error.committed]
    payload = json.dumps([field[:800] for field in fields])
    return "EMBERFLOW-ERROR:" + base64.b64encode(payload.encode()).decode()


def from_marker(text: str) -> EmberflowError | None:
    """The error encoded in another engine's stack trace, or None."""
    found = _MARKER.search(text)
    if not found:
        return None
    try:
        name, message, cause, way_out, committed = json.loads(base64.b64decode(found.group(1)))
    except (ValueError, TypeError):
        return None
    return _stored_error(name, message, cause, way_out, committed)
