"""The contract between steps of a chain, and how a step emits.

A `Receiver` accepts batches and watermarks: another operator, an exchange or a sink. An operator emits into its
`Output`, which passes every batch to all receivers of the main output and sends tagged values to side outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import MethodType
from typing import Any, Protocol

from emberflow.errors import EmberflowError, StepFailed, describe_cause, shorten
from emberflow.events.batch import Batch
from emberflow.events.isolation import COPIES, Isolation
from emberflow.events.output_tag import OutputTag
from emberflow.events.types.typed_call import TypedCall
from emberflow.operators.host_services import HostServices


@dataclass(frozen=True, slots=True)
class Step:
    """Identifies a step in errors and metrics."""

    uid: str
    name: str
    location: str = ""

    def failed(self, value: object, error: BaseException) -> BaseException:
        """The error shown to the user when a function raised for a record, whatever it raised: libraries raise some that do
        not derive from Exception (SystemExit, a panic of a Rust extension)."""
        return self._failed(
            f"could not process the value {shorten(value)}",
            "fix the function, or handle such values in it; --traceback shows the Python stack",
            "running the program again starts before this value",
            error,
        )

    def failed_in(self, what: str, error: BaseException) -> BaseException:
        """The same without a record: in `open()`, or in a timer."""
        return self._failed(
            f"failed in {what}",
            "fix the function; --traceback shows the Python stack",
            "running the program again starts there",
            error,
        )

    def misfit(self, value: object, declared: object, problem: object) -> StepFailed:
        """The error for a value that the step emitted although it is not of its declared type."""
        where = f" ({self.location})" if self.location else ""
        return StepFailed(
            f"step {self.name!r}{where} emitted {shorten(value)}, which does not fit its declared type {declared}",
            cause=str(problem),
            way_out="emit values of the declared type, or declare another one",
            committed="what was processed since the last checkpoint is not committed",
        )

    def _failed(self, problem: str, way_out: str, again: str, error: BaseException) -> BaseException:
        if isinstance(error, EmberflowError | KeyboardInterrupt):
            return error
        where = f" ({self.location})" if self.location else ""
        return StepFailed(
            f"step {self.name!r}{where} {problem}",
            cause=describe_cause(error),
            way_out=way_out,
            committed=f"what was processed since the last checkpoint is not committed; {again}",
        )


class Receiver(Protocol):
    def on_batch(self, batch: Batch) -> None: ...

    def on_watermark(self, watermark: int) -> None: ...


@dataclass(slots=True)
class Output:
    """Where an operator's records go."""

    main: list[Receiver] = field(default_factory=list[Receiver])
    side: dict[str, list[Receiver]] = field(default_factory=dict[str, list[Receiver]])
    isolation: Isolation = COPIES

    def batch(self, batch: Batch) -> None:
        if batch.values:
            self._to_each(self.main, batch)

    def watermark(self, watermark: int) -> None:
        for receiver in self.main:
            receiver.on_watermark(watermark)
        for receivers in self.side.values():
            for receiver in receivers:
                receiver.on_watermark(watermark)

    def mixed(self, batch: Batch) -> None:
        """Like `batch`, for functions that may yield `(OutputTag, value)` pairs among their results."""
        for value in batch.values:
            if value.__class__ is tuple and len(value) == 2 and value[0].__class__ is OutputTag:
                break
        else:
            # Nearly always: nothing but this loop is spent on it.
            self.batch(batch)
            return
        tagged = [i for i, value in enumerate(batch.values) if value.__class__ is tuple and is_tagged(value)]
        chosen: dict[str | None, list[int]] = {}
        marks = set(tagged)
        for i, value in enumerate(batch.values):
            chosen.setdefault(value[0].tag_id if i in marks else None, []).append(i)
        for tag_id, positions in chosen.items():
            part = take(batch, positions)
            if tag_id is None:
                self.batch(part)
                continue
            part.values = [value[1] for value in part.values]
            self.aside(tag_id, part)

    def aside(self, tag_id: str, batch: Batch) -> None:
        """Like `batch`, for a side output."""
        self._to_each(self.side.get(tag_id, ()), batch)

    def _to_each(self, receivers: Sequence[Receiver], batch: Batch) -> None:
        """Each receiver has records of its own: what one does to them must not reach the others."""
        if len(receivers) == 1:
            receivers[0].on_batch(batch)
            return
        # All copies first: the first receiver may change its records.
        again = self.isolation.for_another
        others = [
            Batch(again(batch.values), batch.timestamps, batch.watermarks, batch.keys, batch.origins)
            for _ in receivers[1:]
        ]
        for receiver in receivers[:1]:
            receiver.on_batch(batch)
        for receiver, part in zip(receivers[1:], others, strict=True):
            receiver.on_batch(part)


def is_tagged(value: tuple[Any, ...]) -> bool:
    return len(value) == 2 and value[0].__class__ is OutputTag


def take(batch: Batch, positions: Sequence[int]) -> Batch:
    """The records at these positions."""
    values, timestamps, watermarks, keys = batch.values, batch.timestamps, batch.watermarks, batch.keys
    origins = batch.origins
    return Batch(
        [values[i] for i in positions],
        None if timestamps is None else [timestamps[i] for i in positions],
        None if watermarks is None else [watermarks[i] for i in positions],
        None if keys is None else [keys[i] for i in positions],
        None if origins is None else [origins[i] for i in positions],
    )


def open_function(function: Any, context: Any) -> None:
    """`open()` of a user's function object, if it has one."""
    opener = getattr(function, "open", None)
    if opener is not None:
        opener(context)


def has_own_open(function: Any) -> bool:
    """Whether `open()` does anything: that of our function classes does not."""
    opener = getattr(function, "open", None)
    return opener is not None and str(getattr(opener, "__module__", "")).partition(".")[0] != _OURS


_OURS = __name__.partition(".")[0]


def function_behind(call: Any, method: str) -> Any:
    """The function object whose `method` a step calls; a plain callable is returned unchanged."""
    if isinstance(call, TypedCall):
        call = call.call
    return call.__self__ if isinstance(call, MethodType) and call.__name__ == method else call


def close_function(function: Any) -> None:
    """`close()` of a user's function object, if it has one."""
    closer = getattr(function, "close", None)
    if closer is not None:
        closer()


class Operator:
    """A step that works record by record and keeps nothing between records."""

    in_flight = 0
    """Calls that have been started and not ended."""
    background = 0
    """Calls that continue although nothing waits for them here."""
    full = False
    """Whether more records would only wait for calls to end."""

    function: Any = None
    """The user's function object, if the step has one that may have operator state."""

    in_turn = False
    """Whether the stage serves groups of keys one after another, each with an event time of its own (`HostServices.in_turn`)."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.output = Output()
        self.isolation = COPIES
        """Replaced, with the output, for a program that reuses objects."""

    def open(self, context: Any) -> None:
        """Called once before the first record, with the step's runtime context."""

    def connect(self, host: HostServices) -> None:
        """Receives the engine's services, before `open`."""

    def on_batch(self, batch: Batch) -> None:
        raise NotImplementedError(type(self).__name__)

    def on_watermark(self, watermark: int) -> None:
        self.output.watermark(watermark)

    def sync(self) -> None:
        """Flushes what was recorded about the work so far, such as an event log, to disk."""

    def close(self) -> None:
        """Called once after the last record."""
