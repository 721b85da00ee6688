"""What a SKILL.md says, and which files of a skill can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from emberflow.agents.agent_skills.skill import Skill, read_skill
from emberflow.errors import ResourceFailed
from tests.support.skill_folders import write_skill


def read(folder: Path, text: str) -> Skill:
    (folder / "SKILL.md").write_text(text)
    return read_skill(folder, "here")


def test_all_fields(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "---\nname: pdf-forms\ndescription: >\n  Fills forms.\n  Use it for PDFs.\nlicense: MIT\n"
        "compatibility: needs qpdf\nmetadata:\n  version: 2\n  deep: {a: 1}\n---\n# Forms\n---\nnot the end\n",
    )
    assert (found.name, found.description) == ("pdf-forms", "Fills forms. Use it for PDFs.")
    assert (found.license, found.compatibility, found.metadata) == ("MIT", "needs qpdf", {"version": "2"})
    assert found.content == "# Forms\n---\nnot the end\n"


def test_lines_may_end_as_on_windows(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_bytes(b"\xef\xbb\xbf---\r\nname: a\r\ndescription: b\r\n---\r\nDo it.\r\n")
    assert read_skill(tmp_path, "").name == "a"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Do it.", "does not start with front matter"),
        ("---\nname: a\ndescription: b\nDo it.", "does not start with front matter"),
        ("---\nname: [\n---\nx", "is not valid YAML"),
        ("---\njust text\n---\nx", "must be a mapping of fields"),
        ("---\ndescription: b\n---\nx", "must have a string field 'name'"),
        ("---\nname: a\n---\nx", "must have a string field 'description'"),
        ("---\nname: 5\ndescription: b\n---\nx", "must have a string field 'name'"),
        ("---\nname: A b\ndescription: b\n---\nx", "lowercase letters"),
        ("---\nname: -a\ndescription: b\n---\nx", "lowercase letters"),
        ("---\nname: ../a\ndescription: b\n---\nx", "lowercase letters"),
        (f"---\nname: {'a' * 65}\ndescription: b\n---\nx", "longer than 64"),
        (f"---\nname: a\ndescription: {'b' * 1025}\n---\nx", "longer than 1,024"),
        ("---\nname: a\ndescription: b\n---\n \n", "no instructions"),
        (f"---\nname: a\nx: {'y' * 20_000}\n---\nx", "longer than 16,384"),
        (
            "---\nname: !!python/object/apply:os.system [id]\ndescription: b\n---\nx",
            "SKILL.md:2:7: the tag !!python/object/apply:os.system is not allowed",
        ),
        ("---\nname: a\nname: b\ndescription: b\n---\nx", "SKILL.md:3:1: duplicate key 'name'"),
        (f"---\nname: a\ndescription: b\nx: 0x{'f' * 5000}\n---\nx", "more than 400 characters"),
        ('---\nname: a\ndescription: "\\UFFFFFFFF"\n---\nx', "is not valid YAML"),
        ('---\nname: a\ndescription: "\\ud800"\n---\nx', "an unpaired surrogate"),
        ("x" * 2_000_000, "larger than 1,048,576"),
    ],
)
def test_what_is_wrong_is_named(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ResourceFailed) as raised:
        read(tmp_path, text)
    assert said in str(raised.value)


@pytest.mark.parametrize("form", ["[{}]", "{{<<: [{}]}}"], ids=["lists", "merged"])
def test_nested_aliases_do_not_grow(form: str, tmp_path: Path) -> None:
    lines = [f"a{n}: &a{n} {form.format(', '.join([f'*a{n - 1}'] * 9))}" for n in range(1, 30)]
    text = "\n".join(["---", "name: a", "description: b", "a0: &a0 {x: 1}", *lines, "---", "x"])
    with pytest.raises(ResourceFailed, match="more than 100,000 values"):
        read(tmp_path, text)


def test_files(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "greeter")
    (folder / "image.png").write_bytes(b"\x89PNG\xff")
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    found = read_skill(folder, "")
    assert found.files() == ["image.png", "link", "reference.md", "scripts/ask.sh"]
    assert found.read("reference.md") == "# Reference"
    assert found.read("./scripts/../reference.md") == "# Reference"
    assert found.read("image.png") == "base64: iVBOR/8="
    for path in (
        "nothing",
        "scripts",
        "link",
        "../secret",
        "/etc/passwd",
        str(tmp_path / "secret"),
        "a\0b",
        "",
        ".",
    ):
        assert found.read(path) is None, path
