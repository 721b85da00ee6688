"""How rows of a table are written to files: JSON lines and CSV, as Flink's formats write them."""

from __future__ import annotations

import csv
import io
import json
from array import array
from datetime import UTC, datetime
from typing import Any

from emberflow.connectors.files.file_sink_options import Encoder
from emberflow.events.types.instant import Instant
from emberflow.events.types.row import Row
from emberflow.streams.tables.data_types import DataType, Kind
from emberflow.streams.tables.row_formats import CsvForm
from emberflow.streams.tables.schema import Schema


class RowEncoder(Encoder[Row]):
    """Base of the encoders: values by their columns' types."""

    def __init__(self, schema: Schema) -> None:
        self._columns = [(column.name, column.data_type) for column in schema.stored]

    def _plain(self, row: Row) -> dict[str, Any]:
        named = zip(self._columns, row, strict=True)
        return {name: plain_value(value, data_type) for (name, data_type), value in named}


class JsonRowEncoder(RowEncoder):
    """A row as a JSON object on a line of its own."""

    def encode(self, value: Row) -> bytes:
        return (_json(self._plain(value)) + "\n").encode()


class CsvRowEncoder(RowEncoder):
    """A row as a line of CSV, without a header. Lists, dictionaries and rows are written as JSON."""

    def __init__(self, schema: Schema, form: CsvForm) -> None:
        super().__init__(schema)
        self._null = form.null or ""
        self._options: dict[str, Any] = {
            "delimiter": form.delimiter,
            "quotechar": form.quote,
            "escapechar": form.escape,
            "lineterminator": "\n",
        }

    def encode(self, value: Row) -> bytes:
        text = io.StringIO()
        csv.writer(text, **self._options).writerow([self._text(item) for item in self._plain(value).values()])
        return text.getvalue().encode()

    def _text(self, value: Any) -> str:
        if value is None:
            return self._null
        return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def plain_value(value: Any, data_type: DataType) -> Any:
    """The value as JSON has it."""
    if value is None:
        return None
    match data_type.kind:
        case Kind.SINGLE:
            return shortest_single(value)
        case Kind.DATE:
            return value.isoformat()
        case Kind.TIMESTAMP:
            return _timestamp(value)
        case Kind.INSTANT:
            return f"{_timestamp(_utc(value))}Z"
        case Kind.ARRAY:
            return [plain_value(item, data_type.parts[0]) for item in value]
        case Kind.MAP:
            return {str(key): plain_value(item, data_type.parts[1]) for key, item in value.items()}
        case Kind.ROW:
            named = zip(data_type.names, data_type.parts, value, strict=True)
            return {name: plain_value(item, part) for name, part, item in named}
        case _:
            return value


def shortest_single(value: float) -> float:
    """The number with the fewest digits that is the same in 4 bytes: 0.1 instead of 0.10000000149011612."""
    single = array("f", [value])
    for digits in range(1, 9):
        short = float(f"{value:.{digits}g}")
        if array("f", [short]) == single:
            return short
    return value


def _timestamp(value: datetime) -> str:
    """As SQL writes it: without a fraction of the second if there is none."""
    fraction = f"{value.microsecond:06d}".rstrip("0")
    return f"{value:%Y-%m-%d %H:%M:%S}{'.' + fraction if fraction else ''}"


def _utc(value: Instant) -> datetime:
    return value.to_datetime().astimezone(UTC)
