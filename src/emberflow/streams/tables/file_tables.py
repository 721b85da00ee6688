"""Tables in files: the options of the connector `filesystem`, and the source and the sink that they describe."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from emberflow.connectors.files.file_sink import FileSink
from emberflow.connectors.files.file_sink_options import BucketAssigner
from emberflow.connectors.files.file_source import FileSource, FileSourceBuilder
from emberflow.connectors.files.local_paths import local_path
from emberflow.errors import InvalidArgument, NotSupported, did_you_mean
from emberflow.events.types.row import Row
from emberflow.streams.settings.configuration import as_boolean
from emberflow.streams.settings.option_values import duration_ms
from emberflow.streams.tables.data_types import Kind
from emberflow.streams.tables.row_encoders import CsvRowEncoder, JsonRowEncoder
from emberflow.streams.tables.row_formats import CsvForm, CsvRows, JsonRows
from emberflow.streams.tables.schema import Schema
from emberflow.streams.tables.table_descriptor import TableDescriptor


class Format(Enum):
    """How rows are stored in files."""

    JSON = "json"
    CSV = "csv"


FAIL_ON_MISSING = "json.fail-on-missing-field"
_COMMON = ("path", "format", "source.monitor-interval")
_OF_FORMAT = {
    Format.JSON: (FAIL_ON_MISSING,),
    Format.CSV: ("csv.field-delimiter", "csv.quote-character", "csv.escape-character", "csv.null-literal"),
}
_NESTED = (Kind.ARRAY, Kind.MAP, Kind.ROW)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTable:
    """A table in files, with checked options."""

    name: str
    schema: Schema
    path: str
    format: Format
    monitor_ms: int | None = None
    """How often the folder is searched for new files; None for those that exist when the job starts."""
    missing_is_null: bool = False
    csv: CsvForm

    def source(self) -> FileSource[Row]:
        """Reads the stored columns."""
        columns = self.schema.stored
        rows: Any
        if self.format is Format.CSV:
            nested = [column for column in columns if column.data_type.kind in _NESTED]
            if nested:
                raise NotSupported(
                    f"column {nested[0].name!r} of table {self.name!r} is {nested[0].data_type}, which is not read from CSV",
                    way_out="store the table as JSON, or declare the column as STRING",
                )
            rows = CsvRows(self.name, columns, self.csv)
        else:
            rows = JsonRows(self.name, columns, missing_is_null=self.missing_is_null)
        builder: FileSourceBuilder[Row] = FileSource.for_record_stream_format(rows, self.path)
        return (builder if self.monitor_ms is None else builder.monitor_continuously(self.monitor_ms)).build()

    def sink(self) -> FileSink[Row]:
        """Writes the stored columns, in files directly below the path."""
        encoder = (
            CsvRowEncoder(self.schema, self.csv) if self.format is Format.CSV else JsonRowEncoder(self.schema)
        )
        return (
            FileSink.for_row_format(self.path, encoder)
            .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
            .build()
        )


def file_table(name: str, descriptor: TableDescriptor) -> FileTable:
    """The table that a descriptor describes; raises InvalidArgument for options that it does not have or lacks."""
    options = descriptor.options
    format = _format(name, options.get("format", Format.JSON.value))
    known = (*_COMMON, *_OF_FORMAT[format])
    for key in options:
        if key not in known:
            raise InvalidArgument(
                f"table {name!r} has the unknown option {key!r}{did_you_mean(key, known)}",
                way_out=f"the options of {format.value} files are {', '.join(known)}",
            )
    for needed, example in (("path", "file:///data/reviews.jsonl"), ("format", "json")):
        if not options.get(needed):
            raise InvalidArgument(
                f"table {name!r} has no option {needed!r}", way_out=f"option({needed!r}, {example!r})"
            )
    monitor = options.get("source.monitor-interval")
    fails = options.get(FAIL_ON_MISSING)
    return FileTable(
        name=name,
        schema=descriptor.schema,
        path=local_path(options["path"]),
        format=format,
        monitor_ms=None if monitor is None else duration_ms("source.monitor-interval", monitor),
        missing_is_null=fails is not None and not as_boolean(FAIL_ON_MISSING, fails),
        csv=CsvForm(
            delimiter=options.get("csv.field-delimiter", ",").replace("\\t", "\t"),
            quote=options.get("csv.quote-character", '"'),
            escape=options.get("csv.escape-character"),
            null=options.get("csv.null-literal"),
        ),
    )


def _format(table: str, name: str) -> Format:
    names = [format.value for format in Format]
    if name not in names:
        raise NotSupported(
            f"table {table!r} has the format {name!r}, which is not supported{did_you_mean(name, names)}",
            way_out="use json or csv; for other formats make a stream with FileSource or from_dataframe(), and a table "
            "of it with t_env.from_data_stream(stream, schema)",
        )
    return Format(name)
