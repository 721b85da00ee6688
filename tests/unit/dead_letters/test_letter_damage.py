"""Dead letters and redriven ones are damaged: no wrong input is processed, and none is skipped silently."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from emberflow.dead_letters.letter_files import LETTERS, NEXT, REDRIVE, LetterEncoder
from emberflow.dead_letters.redrive import letters, redrive
from emberflow.errors import CheckpointError, CorruptData, SourceFailed
from tests.support.letters import letter, taken, write


def flips(data: bytes, step: int) -> list[bytes]:
    return [
        data[: at // 8] + bytes([data[at // 8] ^ 1 << at % 8]) + data[at // 8 + 1 :]
        for at in range(0, 8 * len(data), step)
    ]


def test_any_changed_bit_of_a_letter_is_detected(tmp_path: Path) -> None:
    folder = write(tmp_path, letter(1), letter(2))
    path = folder / LETTERS / "letters-1.jsonl"
    for data in flips(path.read_bytes()[:-1], 7):
        path.write_bytes(data)
        with pytest.raises(CheckpointError, match=re.escape(str(path))) as caught:
            letters(tmp_path)
        assert "move it out of the checkpoint directory" in caught.value.way_out


@pytest.mark.parametrize(
    "key", [{10: 1, 9: 2}, {1: "a", "b": 2}, float("nan"), "\ud800", ("a", 1), {"checksum": 1}]
)
def test_letters_of_every_kind_pass_their_check(tmp_path: Path, key: object) -> None:
    write(tmp_path, letter(1, key=key, input={"checksum": key}))
    assert [item.id for item in letters(tmp_path)] == ["0001-1"]


def test_any_changed_bit_of_a_redriven_letter_is_detected(tmp_path: Path) -> None:
    folder = write(tmp_path, letter(1))
    redrive(letters(tmp_path))
    path = folder / REDRIVE / "00000000.json"
    whole = path.read_bytes()
    for data in flips(whole, 7):
        path.write_bytes(data)
        with pytest.raises(SourceFailed, match=re.escape(str(path))) as caught:
            taken(folder)
        assert '{"version": 1, "letters": []}' in caught.value.way_out
        with pytest.raises(CheckpointError, match=re.escape(str(path))):
            letters(tmp_path)
    path.write_bytes(whole)
    assert taken(folder) == ([{"amount": 1}], 1)


def test_a_missing_last_file_is_detected(tmp_path: Path) -> None:
    """No file follows it, so only the stored next number reveals it."""
    folder = write(tmp_path, letter(1))
    redrive(letters(tmp_path))
    path = folder / REDRIVE / "00000000.json"
    path.unlink()
    with pytest.raises(SourceFailed, match=r"00000000\.json are missing") as caught:
        taken(folder)
    (advised,) = re.findall(r"\{.*\}", str(caught.value))
    path.write_text(advised)
    assert taken(folder) == ([], 1)


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "delete"])
def test_the_number_of_the_next_file(tmp_path: Path, damage: str) -> None:
    folder = write(tmp_path, letter(1), letter(2))
    first, second = letters(tmp_path)
    redrive([first])
    path = folder / REDRIVE / NEXT
    whole = path.read_bytes()
    if damage == "delete":
        path.unlink()
    else:
        flipped = whole.replace(b'"next": 1', b'"next": 3')
        path.write_bytes({"flip": flipped, "cut": whole[: len(whole) // 2], "empty": b""}[damage])
        for act in (lambda: redrive([second]), lambda: taken(folder)):
            with pytest.raises(CorruptData, match=re.escape(f"{path} is corrupted")) as caught:
                act()
            assert "delete it if no file was ever removed" in caught.value.way_out
        path.unlink()
    redrive([second])
    assert taken(folder) == ([{"amount": 1}, {"amount": 2}], 2)


def test_the_first_versions_files_are_read(tmp_path: Path) -> None:
    folder = write(tmp_path, letter(1), letter(2))
    path = folder / LETTERS / "letters-1.jsonl"
    lines = [
        json.loads(line) for line in LetterEncoder(False).encode_all([letter(1), letter(2)]).splitlines()
    ]
    for body in lines:
        assert (body.pop("version"), body.pop("checksum", None) is not None) == (2, True)
    path.write_text("".join(json.dumps({"version": 1, **body}) + "\n" for body in lines))
    (folder / REDRIVE).mkdir()
    (folder / REDRIVE / "00000004.json").write_text(json.dumps({"version": 1, "letters": [lines[0]]}))
    (folder / REDRIVE / NEXT).write_text("5")
    assert [(item.id, item.redriven) for item in letters(tmp_path)] == [("0001-1", True), ("0002-1", False)]
    redrive(letters(tmp_path)[1:])
    assert taken(folder, 4) == ([{"amount": 1}, {"amount": 2}], 6)
