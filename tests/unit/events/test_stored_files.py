"""Small stored files: any damage is an error that names the file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.errors import CheckpointUnusable, CorruptData
from emberflow.events.stored_files import create_once, read_json, write_atomically, write_json

BODY = {"format": 1, "name": "Jürgen", "counts": {"a": 1, "b": [True, None, 2.5]}}


def read(path: Path) -> dict[str, object]:
    return read_json(path, newest=1, way_out="restore it")


def test_written_objects_are_read_back(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", BODY)
    assert read(tmp_path / "a.json") == BODY
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
@settings(deadline=None, max_examples=300)
def test_a_flipped_bit_is_an_error_or_changes_nothing(
    at: int, bit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("flip") / "a.json"
    write_json(path, BODY)
    data = bytearray(path.read_bytes())
    data[at % len(data)] ^= 1 << bit
    path.write_bytes(data)
    try:
        found = read(path)
    except CorruptData:
        with pytest.raises(CorruptData, match=f"{path} is corrupted") as caught:
            read(path)
        assert caught.value.way_out == "restore it"
        return
    # Whitespace, for example. A changed name "checksum" is rejected by the code that knows the names.
    assert {name: value for name, value in found.items() if name in BODY} == BODY


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 64, b"{", b"[]", b"7", b'{"format": "1"}', b"{}", b'{"format": 0}']
)
def test_anything_but_an_object_is_an_error(data: bytes, tmp_path: Path) -> None:
    write_atomically(tmp_path / "a.json", data)
    with pytest.raises(CorruptData, match=r"a\.json is corrupted"):
        read(tmp_path / "a.json")


def test_the_format_without_a_checksum_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(BODY))
    assert read(tmp_path / "a.json") == BODY


def test_a_newer_format_asks_for_an_update(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {**BODY, "format": 2})
    with pytest.raises(CheckpointUnusable, match=r"a\.json was written by a newer version"):
        read(tmp_path / "a.json")


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()
    with pytest.raises(CheckpointUnusable, match=r"a\.json cannot be read"):
        read(tmp_path / "a.json")
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "b.json")


def test_a_file_is_created_once(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "answer"
    assert create_once(path, b"first")
    assert not create_once(path, b"second")
    assert path.read_bytes() == b"first"
    assert [item.name for item in path.parent.iterdir()] == ["answer"], "no temporary file is left"
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_file_that_cannot_be_created_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(OSError, match="No space left"):
        create_once(tmp_path / "answer", b"first")
    assert not [*tmp_path.iterdir()]
