"""Options of a file sink: how records are encoded, which folder they go to, how files are named and rolled.

Names and arguments follow PyFlink. Everything here is shipped to the workers, so it must be picklable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, Generic, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from emberflow.errors import InvalidArgument
from emberflow.events.types.printing import java_form_of
from emberflow.events.types.type_information import TypeInformation

T = TypeVar("T", contravariant=True)


class Encoder(Generic[T]):
    """Encodes a record as bytes, including its newline; subclass it for your own format."""

    def encode(self, value: T) -> bytes:
        """The bytes of one record."""
        raise NotImplementedError(type(self).__name__)

    def encode_all(self, values: Sequence[T]) -> bytes:
        """The bytes of many records, one after another."""
        return b"".join([self.encode(value) for value in values])

    def for_type(self, type_info: TypeInformation[Any] | None) -> Encoder[T]:
        """The encoder for records of this declared type, or None; itself unless the type makes a difference."""
        return self

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder[Any]:
        """The record on a line of its own: `str(value)`; records of a declared type as Flink writes them, `(And,5)` for a
        tuple and `+I[And, 5]` for a row."""
        return _StringEncoder(charset_name)

    @staticmethod
    def json_lines() -> Encoder[Any]:
        """The value as JSON on a line of its own."""
        return _JsonLinesEncoder()


class _StringEncoder(Encoder[Any]):
    def __init__(self, charset: str, type_info: TypeInformation[Any] | None = None) -> None:
        try:
            "".encode(charset)
        except LookupError as error:
            raise InvalidArgument(
                f"there is no charset {charset!r}",
                way_out="use a name that Python knows, such as 'UTF-8' or 'latin-1'",
            ) from error
        self._charset = charset
        self._type_info = type_info

    def for_type(self, type_info: TypeInformation[Any] | None) -> Encoder[Any]:
        return _StringEncoder(self._charset, type_info)

    def encode(self, value: Any) -> bytes:
        return self.encode_all((value,))

    def encode_all(self, values: Sequence[Any]) -> bytes:
        written = java_form_of(self._type_info)
        if written is None:
            return "".join([f"{value}\n" for value in values]).encode(self._charset)
        return "".join([f"{written(value)}\n" for value in values]).encode(self._charset)


class _JsonLinesEncoder(Encoder[Any]):
    def encode(self, value: Any) -> bytes:
        return (json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n").encode()


@dataclass(frozen=True, slots=True)
class BucketContext:
    """What a bucket assigner receives besides the record."""

    timestamp: int | None
    current_processing_time: int


class BucketAssigner:
    """Chooses the folder below the base path for each record; subclass it for your own rule."""

    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        """A relative path such as `day=2026-01-31`; `""` is the base path itself."""
        raise NotImplementedError(type(self).__name__)

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """All files directly below the base path."""
        return BasePathBucketAssigner()

    @staticmethod
    def date_time_bucket_assigner(
        format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None
    ) -> BucketAssigner:
        """By the time of writing, in Java's date format; in the machine's time zone unless one is given."""
        return DateTimeBucketAssigner(format_str, timezone_id)

    @staticmethod
    def of(function: Callable[[Any], str]) -> BucketAssigner:
        """Uses a function of the record."""
        return _FunctionBucketAssigner(function)


class BasePathBucketAssigner(BucketAssigner):
    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        return ""


class _FunctionBucketAssigner(BucketAssigner):
    def __init__(self, function: Callable[[Any], str]) -> None:
        self._function = function

    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        return self._function(element)


_JAVA_DATE = {
    "yyyy": "%Y",
    "yy": "%y",
    "MM": "%m",
    "dd": "%d",
    "HH": "%H",
    "mm": "%M",
    "ss": "%S",
    "DDD": "%j",
}
_JAVA_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")


def to_strftime(java_format: str) -> str:
    """Converts Java's date format to Python's."""
    parts: list[str] = []
    end = 0
    for token in _JAVA_TOKEN.finditer(java_format):
        if token.start() != end:
            break
        end = token.end()
        text = token.group()
        if token.group(2) is None:
            literal = text if token.group(1) is None else token.group(1).replace("''", "'") or "'"
            parts.append(literal.replace("%", "%%"))
        elif text in _JAVA_DATE:
            parts.append(_JAVA_DATE[text])
        else:
            raise InvalidArgument(
                f"the letters {text!r} of the date format {java_format!r} are not supported",
                way_out=f"use {', '.join(_JAVA_DATE)}, and put other letters in single quotes",
            )
    if end != len(java_format):
        raise InvalidArgument(
            f"the date format {java_format!r} has an unclosed quote", way_out="close it with '"
        )
    return "".join(parts)


class DateTimeBucketAssigner(BucketAssigner):
    def __init__(self, format_str: str, timezone_id: str | None) -> None:
        self._format = to_strftime(format_str)
        self._zone: tzinfo | None = None
        self._last = (-1, "")
        if timezone_id is not None:
            try:
                self._zone = ZoneInfo(timezone_id)
            except (ZoneInfoNotFoundError, ValueError) as error:
                raise InvalidArgument(
                    f"there is no time zone {timezone_id!r}",
                    way_out="use a name such as 'Europe/Berlin' or 'UTC'",
                ) from error

    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        second = context.current_processing_time // 1000
        if self._last[0] != second:
            self._last = (second, datetime.fromtimestamp(second, self._zone).strftime(self._format))
        return self._last[1]


@dataclass(frozen=True, slots=True)
class RollingPolicy:
    """When a file is closed before its epoch ends. Every file is closed with its epoch (a checkpoint or a micro-batch)."""

    part_size: int | None = None

    @staticmethod
    def default_rolling_policy(
        part_size: int = 1024 * 1024 * 128,
        rollover_interval: int = 60 * 1000,
        inactivity_interval: int = 60 * 1000,
    ) -> RollingPolicy:
        """Starts a new file after `part_size` bytes; the intervals are accepted for compatibility with Flink and have no
        effect, because no file outlives an epoch."""
        if part_size <= 0:
            raise InvalidArgument(
                f"a part size of {part_size} bytes is invalid", way_out="give a part size greater than zero"
            )
        return RollingPolicy(part_size)

    @staticmethod
    def on_checkpoint_rolling_policy() -> RollingPolicy:
        """Starts a new file for every epoch, whatever its size."""
        return RollingPolicy()


@dataclass(frozen=True, slots=True)
class OutputFileConfig:
    """Prefix and suffix of every file name."""

    part_prefix: str = "part"
    part_suffix: str = ""

    def __post_init__(self) -> None:
        for part in (self.part_prefix, self.part_suffix):
            if "/" in part or "\\" in part or "\0" in part:
                raise InvalidArgument(
                    f"{part!r} cannot be part of a file name",
                    way_out="choose folders with with_bucket_assigner()",
                )

    def get_part_prefix(self) -> str:
        """The prefix of every file name."""
        return self.part_prefix

    def get_part_suffix(self) -> str:
        """The suffix of every file name."""
        return self.part_suffix

    @staticmethod
    def builder() -> OutputFileConfigBuilder:
        """Starts building a configuration of file names; finish with `build()`."""
        return OutputFileConfigBuilder()


class OutputFileConfigBuilder:
    def __init__(self) -> None:
        self._prefix = "part"
        self._suffix = ""

    def with_part_prefix(self, prefix: str) -> OutputFileConfigBuilder:
        self._prefix = prefix
        return self

    def with_part_suffix(self, suffix: str) -> OutputFileConfigBuilder:
        self._suffix = suffix
        return self

    def build(self) -> OutputFileConfig:
        return OutputFileConfig(self._prefix, self._suffix)
