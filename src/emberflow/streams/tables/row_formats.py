"""How the rows of a table are read from files: JSON lines and CSV, with errors that name the table, the column and the line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from emberflow.connectors.files.csv_format import CsvFormat
from emberflow.connectors.files.stream_formats import LineFormat
from emberflow.events.types.row import Row
from emberflow.streams.tables.row_reader import RowReader
from emberflow.streams.tables.schema import Column


class JsonRows(LineFormat[Row]):
    """Each line is a JSON object with a field for each column; other fields are ignored."""

    what = "a line is not a row of the table"

    def __init__(self, table: str, columns: Sequence[Column], *, missing_is_null: bool) -> None:
        super().__init__()
        self._reader = RowReader(table, columns, missing_is_null=missing_is_null)
        self.owner = f"table {table!r}: "

    def parse(self, text: str) -> list[Row]:
        row = self._reader.row
        return [row(json.loads(line)) for line in text.split("\n") if line and not line.isspace()]


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvForm:
    """How CSV files are written."""

    delimiter: str = ","
    quote: str = '"'
    escape: str | None = None
    null: str | None = None
    """The text that stands for NULL."""


class CsvRows(CsvFormat):
    """Each line has a field for each column, in their order; there is no header."""

    what = "a line is not a row of the table"

    def __init__(self, table: str, columns: Sequence[Column], form: CsvForm) -> None:
        super().__init__(
            header=False,
            delimiter=form.delimiter,
            quotechar=form.quote,
            escapechar=form.escape,
            columns=[column.name for column in columns],
            charset="utf-8",
            max_field_length=131_072,
        )
        self._null = form.null
        self._reader = RowReader(table, columns)
        self.owner = f"table {table!r}: "

    def record(self, names: list[str], fields: list[str]) -> Any:
        null = self._null
        values = fields if null is None else [None if text == null else text for text in fields]
        return self._reader.row(dict(zip(names, values, strict=True)))
