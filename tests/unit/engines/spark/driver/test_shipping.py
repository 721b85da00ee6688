"""What a program names explicitly travels with the job: Python files to workers, jars to Spark's JVMs."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import Agent, InputEvent, ResourceType, Skills
from emberflow.engines.spark.driver.shipping import add_jars, make_archive
from emberflow.errors import InvalidArgument
from emberflow.plan.agents.agent_plan import AgentPlan


def names_of(*paths: Path) -> list[str]:
    archive, _ = make_archive([str(path) for path in paths])
    return zipfile.ZipFile(io.BytesIO(zlib.decompress(archive))).namelist()


def test_a_session_with_sparks_defaults_accepts_the_archive() -> None:
    """1 MB, less what the rest of a function takes, and with room for a program. Measured in a process of its own: an
    archive also takes the modules of its program, which here are tests."""
    code = "from emberflow.engines.spark.driver.shipping import make_archive; print(len(make_archive()[0]))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert int(printed) < 850 * 1024


def test_files_folders_and_archives_of_modules_are_sent(tmp_path: Path) -> None:
    (tmp_path / "one_file.py").write_text("ONE = 1\n")
    (tmp_path / "folder" / "package").mkdir(parents=True)
    (tmp_path / "folder" / "package" / "__init__.py").touch()
    (tmp_path / "folder" / "data.txt").touch()
    with zipfile.ZipFile(tmp_path / "wheel.whl", "w") as wheel:
        wheel.writestr("packed/__init__.py", "")
        wheel.writestr("packed-1.0.dist-info/METADATA", "")
    names = names_of(tmp_path / "one_file.py", tmp_path / "folder", tmp_path / "wheel.whl")
    assert {"one_file.py", "package/__init__.py", "packed/__init__.py"} <= set(names)
    assert not any(name.endswith((".txt", "METADATA")) for name in names)
    assert "one_file.py" not in names_of()


def test_skills_in_packages_of_the_program_are_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "shop_tools"
    for name in (
        "skills/tea/SKILL.md",
        "skills/tea/brew.py",
        "skills/tea/__pycache__/brew.pyc",
        "secret.txt",
    ):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(name)
    (home / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    agent = Agent().add_action("act", [InputEvent], ShopAction.act)
    skills = Skills.from_package(
        ("shop_tools", "skills"), ("pytest", "py.typed"), ("not_installed_here", "x")
    )
    agent.add_resource("skills", ResourceType.SKILLS, skills)
    outer = (
        Agent()
        .add_action("act", [InputEvent], ShopAction.act)
        .add_resource("inner", ResourceType.AGENT, agent)
    )

    names = make_names(AgentPlan.from_agent(outer).package_data)

    assert {"shop_tools/skills/tea/SKILL.md", "shop_tools/skills/tea/brew.py"} <= set(names)
    assert not any(name.endswith((".pyc", "secret.txt", "py.typed")) for name in names)
    assert not any(name.startswith("shop_tools/") for name in names_of())
    assert not any(".." in name for name in make_names((("shop_tools", "../shop_tools"),)))


def make_names(package_data: tuple[tuple[str, str], ...]) -> list[str]:
    return zipfile.ZipFile(io.BytesIO(zlib.decompress(make_archive((), package_data)[0]))).namelist()


class ShopAction:
    @staticmethod
    def act(event: InputEvent, ctx: Any) -> None: ...


class Session:
    def __init__(self) -> None:
        self.statements: list[str] = []

    def sql(self, statement: str) -> Any:
        self.statements.append(statement)


def test_jars_are_added_to_the_session(tmp_path: Path) -> None:
    jar = tmp_path / "a.jar"
    jar.touch()
    session = Session()
    add_jars(session, [jar.as_uri(), str(jar)])
    assert session.statements == [f"ADD JAR '{jar}'"] * 2
    with pytest.raises(InvalidArgument, match="there is no jar"):
        add_jars(session, [str(tmp_path / "missing.jar")])
