"""Tables in files: what is read and written, and errors that name the table, the column, the line and the value."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from emberflow.errors import InvalidArgument, NotSupported, SourceFailed
from emberflow.streams import Instant, Row, StreamExecutionEnvironment
from emberflow.streams.tables import DataTypes, Schema, StreamTableEnvironment, TableDescriptor

KINDS = (
    Schema.new_builder()
    .column("s", DataTypes.STRING())
    .column("b", DataTypes.BOOLEAN())
    .column("i", DataTypes.INT())
    .column("f", DataTypes.FLOAT())
    .column("d", DataTypes.DATE())
    .column("t", DataTypes.TIMESTAMP(3))
    .column("l", DataTypes.TIMESTAMP_LTZ(3))
    .build()
)
NESTED = (
    Schema.new_builder()
    .column("a", DataTypes.ARRAY(DataTypes.INT()))
    .column("m", DataTypes.MAP(DataTypes.STRING(), DataTypes.BOOLEAN()))
    .column("r", DataTypes.ROW([DataTypes.FIELD("x", DataTypes.DOUBLE())]))
    .build()
)
SMALL = (
    Schema.new_builder().column("id", DataTypes.STRING()).column("n", DataTypes.TINYINT().not_null()).build()
)


def tables() -> StreamTableEnvironment:
    return StreamTableEnvironment.create(
        StreamExecutionEnvironment.get_execution_environment(engine="local", parallelism=1)
    )


def described(path: Path | str, schema: Schema, format: str = "json", **options: str) -> TableDescriptor:
    builder = (
        TableDescriptor.for_connector("filesystem").schema(schema).format(format).option("path", str(path))
    )
    for key, value in options.items():
        builder.option(f"{format}.{key.replace('_', '-')}", value)
    return builder.build()


def rows_of(path: Path, schema: Schema, format: str = "json", **options: str) -> list[Row]:
    t_env = tables()
    t_env.create_temporary_table("mine", described(path, schema, format, **options))
    with t_env.from_path("mine").execute().collect() as rows:
        return list(rows)


def failure(path: Path, *lines: str, schema: Schema = SMALL, format: str = "json") -> str:
    path.write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(SourceFailed) as caught:
        rows_of(path, schema, format)
    return str(caught.value)


def test_json_becomes_values_of_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(
        '{"s": 5, "b": "true", "i": "7", "f": 0.5, "d": "2026-01-31", "t": "2026-01-31 10:00:00.5",'
        ' "l": "2026-01-31T10:00:00Z", "other": 1}\n'
        '{"s": null, "b": null, "i": null, "f": null, "d": null, "t": null, "l": null}\n'
    )
    noon = Instant.of_datetime(datetime.fromisoformat("2026-01-31T10:00:00+00:00"))
    first, second = rows_of(path, KINDS)
    assert list(first) == [
        "5",
        True,
        7,
        0.5,
        date(2026, 1, 31),
        datetime(2026, 1, 31, 10, 0, 0, 500_000),
        noon,
    ]
    assert list(second) == [None] * 7


def test_nested_json(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": [1, null], "m": {"k": true}, "r": {"x": 1}}\n')
    assert rows_of(path, NESTED) == [Row(a=[1, None], m={"k": True}, r=Row(x=1.0))]
    problem = failure(path, '{"a": [], "m": {"k": "maybe"}, "r": null}', schema=NESTED)
    assert (
        "column 'm' of table 'mine' is MAP<STRING, BOOLEAN>, but at ['k'], which is BOOLEAN, the value is 'maybe'"
        in problem
    )


def test_csv_becomes_values_of_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("'a;b';-;3\n")
    schema = Schema.new_builder().column("s", "STRING").column("f", "FLOAT").column("n", "INT").build()
    options = {"field_delimiter": ";", "quote_character": "'", "null_literal": "-"}
    assert rows_of(path, schema, "csv", **options) == [Row(s="a;b", f=None, n=3)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"id": "a", "n": "x"}', "column 'n' of table 'mine' is TINYINT NOT NULL, but the value is 'x'"),
        ('{"id": "a", "n": 128}', "but the value is 128"),
        ('{"id": "a", "n": 1.5}', "but the value is 1.5"),
        ('{"id": "a", "n": true}', "but the value is True"),
        ('{"id": "a", "n": null}', "but the value is None"),
        ('{"idd": "a", "n": 1}', "column 'id' of table 'mine' is missing; did you mean 'idd'?"),
        ('["a", 1]', "table 'mine' needs JSON objects, not ['a', 1]"),
        ('{"id": "a", "n"', "JSONDecodeError"),
    ],
)
def test_a_line_that_is_no_row_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "rows.jsonl"
    problem = failure(path, '{"id": "good", "n": 1}', line)
    assert f"table 'mine': a line is not a row of the table in {path}, line 2" in problem
    assert said in problem


def test_a_csv_line_that_is_no_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    problem = failure(path, "a,1", "b,x", format="csv")
    assert f"table 'mine': a line is not a row of the table in {path}, line 2 (byte 4): 'b,x\\n'" in problem
    assert "column 'n' of table 'mine' is TINYINT NOT NULL, but the value is 'x'" in problem
    assert f"table 'mine': a row has 1 fields instead of 2 in {path}, line 1" in failure(
        path, "a", format="csv"
    )


def test_a_missing_field_is_null_on_request(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"n": 1}\n')
    assert rows_of(path, SMALL, fail_on_missing_field="false") == [Row(id=None, n=1)]


def test_a_file_that_does_not_exist_is_named_with_its_table(tmp_path: Path) -> None:
    with pytest.raises(SourceFailed, match=r"table 'mine': there is no file or folder .*nothing\.jsonl"):
        rows_of(tmp_path / "nothing.jsonl", SMALL)


@pytest.mark.parametrize("format", ["json", "csv"])
def test_what_is_written_is_read_again(tmp_path: Path, format: str) -> None:
    t_env = tables()
    rows = [
        ("a,b", True, 1, 0.1, date(2026, 1, 2), datetime(2026, 1, 2, 3), Instant(5, 500_000_000)),
        ("ü", False, -1, 3.0, date(1999, 1, 1), datetime(1999, 1, 1), Instant(0, 0)),
    ]
    t_env.create_temporary_table("out", described(tmp_path / "out", KINDS, format))
    fields = [DataTypes.FIELD(column.name, column.data_type) for column in KINDS.columns]
    made = t_env.from_elements(rows, DataTypes.ROW(fields))
    made.execute_insert("out").wait()
    with made.execute().collect() as given:
        assert sorted(rows_of(tmp_path / "out", KINDS, format), key=str) == sorted(given, key=str)
    written = "".join(part.read_text() for part in (tmp_path / "out").iterdir())
    if format == "json":
        assert written.splitlines()[0] == (
            '{"s":"a,b","b":true,"i":1,"f":0.1,"d":"2026-01-02","t":"2026-01-02 03:00:00","l":"1970-01-01 00:00:05.5Z"}'
        )


def test_rows_that_do_not_fit_a_table_are_not_written(tmp_path: Path) -> None:
    t_env = tables()
    t_env.create_temporary_table("out", described(tmp_path / "out", SMALL))
    with pytest.raises(InvalidArgument, match="does not fit into table 'out'"):
        t_env.from_elements([("a", "b")], ["id", "n"]).execute_insert("out")


def descriptor(connector: str = "filesystem", **options: Any) -> TableDescriptor:
    builder = TableDescriptor.for_connector(connector).schema(SMALL)
    for key, value in options.items():
        builder.option(key.replace("__", "."), value)
    return builder.build()


def test_what_tables_in_files_cannot_do_is_refused(tmp_path: Path) -> None:
    t_env = tables()
    with pytest.raises(NotSupported, match="connector 'kafka'"):
        descriptor("kafka")
    with pytest.raises(NotSupported, match="format 'parquet'"):
        t_env.from_descriptor(descriptor(path="x", format="parquet"))
    with pytest.raises(InvalidArgument, match="no option 'format'"):
        t_env.create_temporary_table("a", descriptor(path="x"))
    with pytest.raises(InvalidArgument, match="unknown option 'pth'; did you mean 'path'"):
        t_env.create_temporary_table("a", descriptor(pth="x", format="json"))
    with pytest.raises(InvalidArgument, match="unknown option 'csv"):
        t_env.create_temporary_table(
            "a",
            TableDescriptor(
                connector="filesystem",
                schema=SMALL,
                options={"path": "x", "format": "json", "csv.null-literal": ""},
            ),
        )
    with pytest.raises(
        NotSupported, match="column 'a' of table 'unnamed' is ARRAY<INT>, which is not read from CSV"
    ):
        t_env.from_descriptor(described(tmp_path, NESTED, "csv"))
    with pytest.raises(NotSupported, match="partitioned"):
        TableDescriptor.for_connector("filesystem").partitioned_by("a")
    with pytest.raises(InvalidArgument, match="no schema"):
        TableDescriptor.for_connector("filesystem").build()


def test_a_folder_can_be_watched(tmp_path: Path) -> None:
    watched = tables().from_descriptor(
        TableDescriptor.for_connector("filesystem")
        .schema(SMALL)
        .option("format", "json")
        .option("path", f"file:///{tmp_path}")
        .option("source.monitor-interval", "10 ms")
        .build()
    )
    (tmp_path / "a.jsonl").write_text('{"id": "a", "n": 1}\n')
    with watched.execute().collect() as rows:
        assert next(rows) == Row(id="a", n=1)
        (tmp_path / ".b").write_text('{"id": "b", "n": 2}\n')
        (tmp_path / ".b").rename(tmp_path / "b.jsonl")
        assert next(rows) == Row(id="b", n=2)
