from __future__ import annotations

import re
from pathlib import Path

import pytest

from emberflow.agents.yaml.nodes import MOST_VALUES, read_file, read_text
from emberflow.errors import InvalidAgent


def test_values_know_their_place() -> None:
    root = read_text("a: 1\nb:\n  - x\n  - y: true\n", "f.yaml")

    assert root.plain() == {"a": 1, "b": ["x", {"y": True}]}
    assert str(root.value["b"].value[1].value["y"].place) == "f.yaml:4:8"
    assert str(root.value["b"].value[1].keys["y"]) == "f.yaml:4:5"


def test_a_date_is_text() -> None:
    assert read_text("api_version: 2024-06-01", "f").plain() == {"api_version": "2024-06-01"}


def test_anchors_and_merge_keys_are_expanded() -> None:
    text = "x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}\nz: {<<: [{a: 9}, *x]}\nw: *x\n"

    assert read_text(text, "f").plain() == {
        "x": {"a": 1, "b": 2},
        "y": {"a": 1, "b": 3},
        "z": {"a": 9, "b": 2},
        "w": {"a": 1, "b": 2},
    }


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)

BAD = {
    "a duplicate key": ("a: 1\nb: 2\na: 3\n", "f.yaml:3:1: duplicate key 'a'"),
    "an unfinished list": ("a: [1, 2\nb: 3\n", "f.yaml:2:2: this is not valid YAML"),
    "a tab": ("a:\n\t- 1\n", "f.yaml:2:1: this is not valid YAML"),
    "two documents": ("a: 1\n---\nb: 2\n", "f.yaml:2:1: this is not valid YAML"),
    "an unknown anchor": ("a: *b\n", "f.yaml:1:4: this is not valid YAML"),
    "a Python object": ("a: !!python/object/apply:os.system ['ls']\n", "f.yaml:1:4: the tag !!python/object"),
    "a Python name": ("a: !!python/name:os.system\n", "f.yaml:1:4: the tag !!python/name:os.system"),
    "a tag of its own": ("a: !mine 3\n", "f.yaml:1:4: the tag !mine is not allowed"),
    "a set": ("a: !!set {x, y}\n", "f.yaml:1:4: the tag !!set is not allowed"),
    "bytes": ("a: !!binary aGVsbG8=\n", "f.yaml:1:4: the tag !!binary is not allowed"),
    "a key that is a number": ("1: a\n", "f.yaml:1:1: the key '1' is not a string"),
    "a key that is a list": ("? [a]\n: b\n", "f.yaml:1:3: the key 'sequence' is not a string"),
    "a merge of a string": ("a: {<<: b}\n", "f.yaml:1:9: << merges mappings only"),
    "a list that contains itself": ("a: &a [*a]\n", "the value contains itself"),
    "a bomb of aliases": (BOMB, f"the file has more than {MOST_VALUES:,} values"),
    "a number that takes minutes to read": ("a: 1" + ":59" * 100_000, "more than 400 characters"),
    "a number that cannot be shown": (f"a: 0x{'f' * 5_000}", "more than 400 characters"),
    "a word for a truth value": ("a: !!bool maybe", "f.yaml:1:4: 'maybe' cannot be read"),
    "nothing for a number": ("a: !!int ''", "f.yaml:1:4: '' cannot be read"),
    "a character that does not exist": ('a: "\\UFFFFFFFF"', "f.yaml is not valid YAML"),
    "half a character": ('a: "\\ud800"', "contains an unpaired surrogate"),
    "deep nesting": ("[" * 200 + "]" * 200, "values are nested more than 100 levels deep"),
    "very deep nesting": ("[" * 50_000, "f.yaml"),
    "nothing": ("", "the YAML file f.yaml is empty"),
    "comments only": ("# later\n", "the YAML file f.yaml is empty"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused(case: str) -> None:
    text, message = BAD[case]
    with pytest.raises(InvalidAgent, match=re.escape(message)):
        read_text(text, "f.yaml")


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes("a: é".encode("latin-1"))
    for name in ("latin.yaml", "missing.yaml"):
        with pytest.raises(InvalidAgent, match=f"the YAML file .*{name} cannot be read"):
            read_file(tmp_path / name)
