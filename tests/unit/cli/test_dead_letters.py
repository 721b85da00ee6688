from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from emberflow.cli.exit_codes import ExitCode
from emberflow.cli.main import main
from emberflow.dead_letters.letter_files import (
    LETTERS,
    REDRIVE,
    LetterEncoder,
    letters_folder,
)
from emberflow.dead_letters.redrive import letters
from emberflow.errors import CorruptData, SourceFailed
from tests.support.letters import letter, taken, write


def test_letters_are_listed_by_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, letter(2), letter(1))
    write(tmp_path, letter(0, agent="other", action=""), agent="other")
    assert main(["dead-letters", "list", str(tmp_path)]) == ExitCode.OK
    assert capsys.readouterr().out.splitlines() == [
        "0000-1  2026-01-01 00:00:00  other  'user-0'  ValueError: bad 0",
        "0001-1  2026-01-01 00:00:00  refunds/decide  'user-1'  ValueError: bad 1",
        "0002-1  2026-01-01 00:00:00  refunds/decide  'user-2'  ValueError: bad 2",
    ]


def test_json_and_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, letter(1))
    main(["dead-letters", "list", str(tmp_path), "--json"])
    assert json.loads(capsys.readouterr().out) == {**letter(1), "redriven": False}
    main(["dead-letters", "show", str(tmp_path), "0001", "--json"])
    assert json.loads(capsys.readouterr().out) == {**letter(1), "redriven": False}
    main(["dead-letters", "show", str(tmp_path), "0001"])
    shown = capsys.readouterr().out
    assert "attempts    3\n" in shown
    assert 'input       {"amount": 1}\n' in shown
    assert "failed_ms   1767225600001 (2026-01-01 00:00:00 UTC)\n" in shown


def test_redriven_letters_are_processed_once_and_in_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(tmp_path, letter(1), letter(2), letter(3))
    assert main(["dead-letters", "redrive", str(tmp_path), "0003", "0001-1"]) == ExitCode.OK
    first, position = taken(folder)
    assert first == [{"amount": 3}, {"amount": 1}]
    assert capsys.readouterr().out.count("redriven ") == 2
    assert main(["dead-letters", "redrive", str(tmp_path), "--all"]) == ExitCode.OK
    assert taken(folder, position) == ([{"amount": 2}], position + 1)
    main(["dead-letters", "redrive", str(tmp_path), "0001"])
    assert "skipped 1 letter: already redriven" in capsys.readouterr().err
    assert taken(folder, position + 1)[0] == []
    main(["dead-letters", "redrive", str(tmp_path), "0001", "--again"])
    assert taken(folder, position + 1)[0] == [{"amount": 1}]
    capsys.readouterr()
    main(["dead-letters", "list", str(tmp_path), "--new"])
    assert "there are no dead letters" in capsys.readouterr().err


def test_a_letter_is_redriven_to_its_own_agent(tmp_path: Path) -> None:
    one, two = write(tmp_path, letter(1)), write(tmp_path, letter(2), agent="other")
    main(["dead-letters", "redrive", str(tmp_path), "--all"])
    assert (taken(one)[0], taken(two)[0]) == ([{"amount": 1}], [{"amount": 2}])


def test_values_of_any_kind_are_redriven_unchanged(tmp_path: Path) -> None:
    folder = Path(letters_folder(str(tmp_path), "refunds"))
    (folder / LETTERS).mkdir(parents=True)
    value = letter(1, key=("a", 1), input={"when": {1, 2}, "nan": float("inf")})
    (folder / LETTERS / "x.jsonl").write_bytes(LetterEncoder(True).encode(value))
    main(["dead-letters", "redrive", str(tmp_path), "--all"])
    assert taken(folder)[0] == [(("a", 1), {"when": {1, 2}, "nan": float("inf")})]


def test_inputs_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path, letter(1))
    target = tmp_path / "inputs.jsonl"
    main(["dead-letters", "redrive", str(tmp_path), "--all", "--to", str(target)])
    assert json.loads(target.read_text()) == {"key": "user-1", "value": {"amount": 1}}
    assert f"wrote 1 letter to {target}" in capsys.readouterr().out
    assert taken(folder)[0] == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["redrive", "{dir}"], "no letters were selected"),
        (["redrive", "{dir}", "0001", "--all"], "no letters were selected"),
        (["redrive", "{dir}", "9"], "'9' matches no letter"),
        (["show", "{dir}", "000"], "'000' matches several letters"),
        (["redrive", "{dir}", "0005"], "cause: it came from a delayed event, not from an input"),
        (["redrive", "{dir}", "0006"], "cause: the job's input is bounded"),
        (["redrive", "{dir}", "--all"], "redrive ... --to FILE writes the inputs to a file"),
        (["list", "{dir}/none"], "name the checkpoint directory of the job"),
    ],
    ids=["none", "both", "unknown", "several", "timer", "bounded", "bounded-all", "no-directory"],
)
def test_invalid_requests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    write(tmp_path, letter(1), letter(2), letter(5, event_type="later"), letter(6, bounded=True))
    code = main(["dead-letters", *(item.format(dir=tmp_path) for item in arguments)])
    assert code == ExitCode.BAD_PROGRAM
    assert text in capsys.readouterr().err


def test_all_skips_what_cannot_be_redriven(tmp_path: Path) -> None:
    folder = write(tmp_path, letter(1), letter(5, event_type="later"))
    assert main(["dead-letters", "redrive", str(tmp_path), "--all"]) == ExitCode.OK
    assert taken(folder)[0] == [{"amount": 1}]


def test_a_running_source_finds_later_requests(tmp_path: Path) -> None:
    folder = write(tmp_path, letter(1))
    assert taken(folder, bounded=False) == ([], 0)
    main(["dead-letters", "redrive", str(tmp_path), "--all"])
    assert taken(folder, bounded=False) == ([{"amount": 1}], 1)


def test_damaged_files_are_named(tmp_path: Path) -> None:
    folder = write(tmp_path, letter(1))
    main(["dead-letters", "redrive", str(tmp_path), "--all"])
    (folder / "redrive" / "00000000.json").write_text("{}")
    with pytest.raises(SourceFailed, match=r"the redriven letters in .*00000000\.json cannot be read"):
        taken(folder)
    (folder / LETTERS / "letters-1.jsonl").write_text("{")
    from emberflow.dead_letters.redrive import letters

    (folder / "redrive" / "00000000.json").unlink()
    with pytest.raises(CorruptData, match=r"letters-1\.jsonl is corrupted"):
        letters(tmp_path)


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ([], ["list"], ["show"], ["redrive"]):
        with pytest.raises(SystemExit):
            main(["dead-letters", *command, "--help"])
        assert "emberflow dead-letters redrive state/ --all" in capsys.readouterr().out


def test_a_number_is_not_reused_after_its_file_was_removed(tmp_path: Path) -> None:
    """The job has read past it: letters under an old number would never be processed."""
    folder = write(tmp_path, letter(1), letter(2))
    main(["dead-letters", "redrive", str(tmp_path), "0001"])
    _, position = taken(folder)
    (folder / REDRIVE / "00000000.json").unlink()
    main(["dead-letters", "redrive", str(tmp_path), "0002"])

    assert taken(folder, position) == ([{"amount": 2}], position + 1)


@pytest.mark.parametrize("damage", ["removed", "flipped", "emptied"])
def test_a_corrupted_request_is_rejected_and_the_advice_works(tmp_path: Path, damage: str) -> None:
    folder = write(tmp_path, letter(1), letter(2))
    main(["dead-letters", "redrive", str(tmp_path), "0001"])
    main(["dead-letters", "redrive", str(tmp_path), "0002"])
    path = folder / REDRIVE / "00000000.json"
    if damage == "removed":
        path.unlink()
    else:
        path.write_bytes(b"" if damage == "emptied" else b"?" + path.read_bytes()[1:])
        with pytest.raises(CorruptData, match="restore the file") as listed:
            letters(tmp_path)
        assert str(path) in str(listed.value)
    with pytest.raises(SourceFailed, match="00000000") as caught:
        taken(folder)
    (advised,) = re.findall(r"\{.*\}", str(caught.value))
    path.write_text(advised)

    assert taken(folder) == ([{"amount": 2}], 2)
    main(["dead-letters", "redrive", str(tmp_path), "0001"])
    assert taken(folder, 2) == ([{"amount": 1}], 3)


def test_letters_that_cannot_be_read_are_moved_away_as_advised(tmp_path: Path) -> None:
    folder = write(tmp_path, letter(1))
    write(tmp_path, letter(2), name="letters-2")
    path = folder / LETTERS / "letters-1.jsonl"
    path.write_bytes(b"{" + path.read_bytes())
    with pytest.raises(CorruptData, match="move it out of the checkpoint directory"):
        letters(tmp_path)
    path.rename(tmp_path.parent / f"{tmp_path.name}.letters")

    assert [item.id for item in letters(tmp_path)] == ["0002-1"]
