"""Formats: any records, any split and any restart give the same records; damage is named."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.connectors.files.file_source import FileSource, FileSourceBuilder
from emberflow.connectors.files.stream_formats import LineFormat, StreamFormat
from emberflow.errors import InvalidArgument, PackageMissing, SourceFailed
from tests.support.reading import read_all, read_planned, read_restarting

LIMITS = st.lists(st.integers(1, 5), min_size=1, max_size=3)
SUFFIXES = st.sampled_from(["", ".gz", ".bz2", ".xz"])
PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}
# Newlines and carriage returns belong to the format; surrogates cannot be written.
LINES = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\n\r\ufeff"), max_size=12), max_size=25
)
FIELDS = st.text(st.characters(codec="utf-8", exclude_characters="\ufeff"), max_size=6)


def source_of(stream_format: StreamFormat, *paths: str | Path) -> FileSource:
    return FileSourceBuilder(stream_format, *paths).build()


def check_every_way(
    stream_format: StreamFormat, files: list[bytes], suffix: str, limits: list[int]
) -> list[Any]:
    with TemporaryDirectory() as folder:
        for number, data in enumerate(files):
            Path(folder, f"{number:03d}{suffix}").write_bytes(PACK[suffix](data))
        source = source_of(stream_format, folder)
        whole = read_all(source)
        start = source.start(1)[0]
        assert read_all(source, limit=limits[0]) == whole
        assert read_restarting(source, 0, start, limits, 1) == whole
        assert read_planned(source, 0, start, limits) == whole
        return whole


@pytest.fixture
def small_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LineFormat, "split_bytes", 17)
    monkeypatch.setattr("emberflow.connectors.files.stream_formats.RECORD_BYTES", 3)


@pytest.mark.usefixtures("small_splits")
class TestAnyCut:
    @settings(deadline=None, max_examples=60)
    @given(
        st.lists(LINES, min_size=1, max_size=3),
        SUFFIXES,
        LIMITS,
        st.sampled_from(["\n", "\r\n"]),
        st.booleans(),
    )
    def test_text(
        self, files: list[list[str]], suffix: str, limits: list[int], newline: str, ends_with_newline: bool
    ) -> None:
        data: list[bytes] = []
        expected: list[str] = []
        for lines in files:
            text = newline.join(lines)
            if lines and (ends_with_newline or not lines[-1]):
                text += newline
            data.append(text.encode())
            expected += lines
        assert check_every_way(StreamFormat.text_line_format(), data, suffix, limits) == expected

    @settings(deadline=None, max_examples=40)
    @given(LINES, st.sampled_from(["utf-16", "utf-16-le", "cp037", "latin-1"]), LIMITS)
    def test_charsets(self, lines: list[str], charset: str, limits: list[int]) -> None:
        plain = [line.encode(charset, "replace").decode(charset) for line in lines]
        plain = [line.replace("\n", "?").replace("\r", "?") for line in plain]
        data = "".join(line + "\n" for line in plain).encode(charset)
        assert check_every_way(StreamFormat.text_line_format(charset), [data], ".gz", limits) == plain

    @settings(deadline=None, max_examples=60)
    @given(
        st.lists(
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8"), max_size=8),
                lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=3),
                max_leaves=5,
            ),
            max_size=20,
        ),
        SUFFIXES,
        LIMITS,
        st.booleans(),
    )
    def test_json(self, values: list[Any], suffix: str, limits: list[int], ascii_only: bool) -> None:
        text = "\n\n".join(json.dumps(value, ensure_ascii=ascii_only) for value in values)
        assert check_every_way(StreamFormat.json_lines(), [text.encode()], suffix, limits) == values

    @settings(deadline=None, max_examples=80)
    @given(
        st.lists(st.tuples(FIELDS, FIELDS, FIELDS), max_size=15),
        SUFFIXES,
        LIMITS,
        st.sampled_from([",", ";", "\t"]),
        st.booleans(),
        st.sampled_from(["\n", "\r\n"]),
    )
    def test_csv(
        self,
        rows: list[tuple[str, ...]],
        suffix: str,
        limits: list[int],
        delimiter: str,
        header: bool,
        newline: str,
    ) -> None:
        text = io.StringIO()
        # Python's writer leaves a lone carriage return unquoted unless it ends lines with one itself.
        quoting = csv.QUOTE_ALL if newline == "\n" else csv.QUOTE_MINIMAL
        writer = csv.writer(text, delimiter=delimiter, lineterminator=newline, quoting=quoting)
        names = ["a", "b c", 'd"e'] if header else ["_c0", "_c1", "_c2"]
        writer.writerows([names, *rows] if header else rows)
        stream_format = StreamFormat.csv(header=header, delimiter=delimiter)
        found = check_every_way(stream_format, [text.getvalue().encode()], suffix, limits)
        assert found == [dict(zip(names, row, strict=True)) for row in rows]

    @settings(deadline=None, max_examples=25)
    @given(st.lists(st.integers(0, 99), max_size=30), st.integers(1, 9), LIMITS, st.booleans())
    def test_parquet(self, values: list[int], group: int, limits: list[int], pick: bool) -> None:
        buffer = io.BytesIO()
        table = pa.table(
            {"n": pa.array(values, pa.int64()), "s": pa.array([str(v) for v in values], pa.string())}
        )
        pq.write_table(table, buffer, row_group_size=group)
        rows = [{"n": value} if pick else {"n": value, "s": str(value)} for value in values]
        stream_format = StreamFormat.parquet(["n"] if pick else None)
        assert check_every_way(stream_format, [buffer.getvalue()], "", limits) == rows


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=60), st.sampled_from(["text", "json", "csv", "parquet"]), SUFFIXES, st.booleans())
def test_no_bytes_raise_anything_but_source_failed(data: bytes, kind: str, suffix: str, packed: bool) -> None:
    formats: dict[str, StreamFormat] = {
        "text": StreamFormat.text_line_format(),
        "json": StreamFormat.json_lines(),
        "csv": StreamFormat.csv(),
        "parquet": StreamFormat.parquet(),
    }
    with TemporaryDirectory() as folder:
        path = Path(folder, "data" + suffix)
        path.write_bytes(PACK[suffix](data) if packed else data)
        text = f"{path} what to do"
        try:
            read_all(source_of(formats[kind], path), limit=3)
        except SourceFailed as error:
            text = str(error)
        assert str(path) in text
        assert "what to do" in text


def read_until_damage(source: FileSource) -> tuple[list[Any], SourceFailed, Any]:
    """The delivered records, the error, and the position at which a restart continues."""
    position = source.start(1)[0]
    found: list[Any] = []
    try:
        for chunk in source.read(0, position, 2):
            found += chunk.values
            position = chunk.position
    except SourceFailed as error:
        return found, error, position
    raise AssertionError("no damage was found")


def text_of(error: SourceFailed, path: Path) -> list[str]:
    return str(error).replace(str(path), "FILE").splitlines()


MEND = "  what to do: fix the file from there on and run again: reading continues at this record"


def test_a_truncated_json_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n{"a": 2}\n{"a": 3}\n{"a": ')
    source = source_of(StreamFormat.json_lines(), path)
    found, error, position = read_until_damage(source)
    assert found == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert text_of(error, path) == [
        "SourceFailed [EF2105]: a line is not valid JSON in FILE, line 4 (byte 27): '{\"a\": '",
        "  cause: JSONDecodeError: Expecting value: line 1 column 7 (char 6)",
        MEND,
    ]
    path.write_text('{"a": 1}\n{"a": 2}\n{"a": 3}\n{"a": 4}\n{"a": 5}\n')
    assert [value for chunk in source.read(0, position, 9) for value in chunk.values] == [{"a": 4}, {"a": 5}]


def test_invalid_utf8(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"ok\nfine\nbad \xff\xfe byte\nlater\n")
    found, error, _ = read_until_damage(source_of(StreamFormat.text_line_format(), path))
    assert found == ["ok", "fine"]
    assert text_of(error, path) == [
        r"SourceFailed [EF2105]: a line cannot be decoded in FILE, line 3 (byte 8): 'bad \\xff\\xfe byte\n'",
        "  cause: UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 4: invalid start byte",
        MEND,
    ]


def test_a_csv_row_inside_an_open_quote(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('name,note\nann,hi\nbob,"never closed\nstill open')
    source = source_of(StreamFormat.csv(), path)
    found, error, position = read_until_damage(source)
    assert found == [{"name": "ann", "note": "hi"}]
    assert text_of(error, path) == [
        "SourceFailed [EF2105]: a row is incomplete in FILE, line 3 (byte 17): "
        "'bob,\"never closed\\nstill open'",
        "  cause: Error: unexpected end of data",
        MEND,
    ]
    path.write_text('name,note\nann,hi\nbob,"closed"\n')
    rest = [value for chunk in source.read(0, position, 9) for value in chunk.values]
    assert rest == [{"name": "bob", "note": "closed"}]


def test_a_csv_row_with_too_few_fields(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b,c\n1,2,3\n4,5,6\n7,8,9\n1,2\n")
    found, error, _ = read_until_damage(source_of(StreamFormat.csv(), path))
    assert len(found) == 3
    assert text_of(error, path) == [
        "SourceFailed [EF2105]: a row has 2 fields instead of 3 in FILE, line 5 (byte 24): '1,2\\n'",
        MEND,
    ]


def test_csv_headers_that_cannot_name_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b,a\n1,2,3\n")
    _, error, _ = read_until_damage(source_of(StreamFormat.csv(), path))
    assert "two columns have the same name" in str(error)
    assert "header=False" in error.way_out
    _, error, _ = read_until_damage(source_of(StreamFormat.csv(columns=["x", "y", "z"]), path))
    assert "two columns have the same name" in str(error)
    path.write_text("a,b\n1,2\n")
    _, error, _ = read_until_damage(source_of(StreamFormat.csv(columns=["x", "y"]), path))
    assert "the columns are not ['x', 'y']" in str(error)


def test_csv_without_a_header_may_name_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n1;2\n\n3;4\n\n")
    source = source_of(StreamFormat.csv(header=False, delimiter=";", columns=["x", "y"]), path)
    assert read_all(source) == [{"x": "1", "y": "2"}, {"x": "3", "y": "4"}]


def test_csv_fields_may_be_allowed_to_be_long(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a\n" + "x" * 200_000 + "\n")
    limit = csv.field_size_limit()
    try:
        _, error, _ = read_until_damage(source_of(StreamFormat.csv(), path))
        assert "max_field_length" in error.way_out
        assert len(str(error)) < 500 + len(str(path))
        [row] = read_all(source_of(StreamFormat.csv(max_field_length=300_000), path))
        assert len(row["a"]) == 200_000
    finally:
        csv.field_size_limit(limit)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("kind", ["text", "csv"])
def test_a_truncated_archive(tmp_path: Path, suffix: str, kind: str) -> None:
    whole = tmp_path / ("whole" + suffix)
    path = tmp_path / ("a" + suffix)
    lines = [f"{number * 2654435761 % 2**64:x}" for number in range(60_000)]
    stream_format = StreamFormat.text_line_format() if kind == "text" else StreamFormat.csv()
    packed = PACK[suffix]("".join(line + "\n" for line in lines).encode())
    whole.write_bytes(packed)
    path.write_bytes(packed[: len(packed) * 2 // 3])
    source = source_of(stream_format, path)
    found, error, position = read_until_damage(source)
    expected = lines if kind == "text" else [{lines[0]: line} for line in lines[1:]]
    assert found == expected[: len(found)]
    assert suffix == ".bz2" or len(found) > 10_000
    line = len(found) + (2 if kind == "csv" and found else 1)
    assert f"the file is truncated in {path}, line {line} (byte" in str(error)
    assert "ended before the end-of-stream marker" in error.cause
    path.write_bytes(packed)
    rest = [value for chunk in source.read(0, position, 10_000) for value in chunk.values]
    assert found + rest == expected


def test_broken_utf16_delivers_the_lines_before(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("one\ntwo\nthr".encode("utf-16-le") + b"\x00\xdc" + "x\n".encode("utf-16-le"))
    found, error, _ = read_until_damage(source_of(StreamFormat.text_line_format("utf-16-le"), path))
    assert found == ["one", "two"]
    assert "line 3 (byte 8): 'thr'" in str(error)


@pytest.mark.parametrize("kind", ["text", "csv", "json"])
def test_a_byte_order_mark_is_not_data(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a"
    path.write_text("\ufeff1\n2\n", encoding="utf-8")
    expected = {"text": ["1", "2"], "csv": [{"1": "2"}], "json": [1, 2]}[kind]
    formats = {
        "text": StreamFormat.text_line_format,
        "csv": StreamFormat.csv,
        "json": StreamFormat.json_lines,
    }
    assert read_all(source_of(formats[kind](), path)) == expected


def test_parquet_without_a_footer(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": [1, 2, 3]}), path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    _, error, _ = read_until_damage(source_of(StreamFormat.parquet(), path))
    assert text_of(error, path)[0] == (
        f"SourceFailed [EF2105]: the file FILE ({len(data) // 2} bytes) is not a complete Parquet file"
    )
    assert "the footer is written last, so a file without one was not finished" in error.way_out


def test_parquet_damaged_in_its_middle_delivers_the_groups_before(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    numbers = list(range(3000))
    pq.write_table(
        pa.table({"n": numbers}), path, row_group_size=1000, compression="zstd", use_dictionary=False
    )
    begin = pq.ParquetFile(path).metadata.row_group(2).column(0).data_page_offset
    data = bytearray(path.read_bytes())
    data[begin : begin + 200] = b"\xff" * 200
    path.write_bytes(bytes(data))
    found, error, _ = read_until_damage(source_of(StreamFormat.parquet(), path))
    assert found == [{"n": number} for number in range(2000)]
    assert "is corrupted in row group 2" in str(error)


def test_missing_parquet_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": [1], "m": [2]}), path)
    _, error, _ = read_until_damage(source_of(StreamFormat.parquet(["n", "x"]), path))
    assert text_of(error, path)[0] == "SourceFailed [EF2105]: the file FILE has no column x; it has n, m"


def test_parquet_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(PackageMissing) as caught:
        StreamFormat.parquet()
    assert "Parquet files are read with pyarrow, which is not installed" in str(caught.value)
    assert caught.value.way_out == 'pip install "emberflow[files]"'


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: StreamFormat.text_line_format("utf-99"), "there is no charset 'utf-99'"),
        (lambda: StreamFormat.csv(delimiter="ab"), "invalid CSV options"),
        (lambda: StreamFormat.csv(columns=["a", "a"]), "two CSV columns have the same name"),
    ],
)
def test_impossible_formats_are_rejected(make: Callable[[], StreamFormat], text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        make()
