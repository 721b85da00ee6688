from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import pytest

from emberflow.cli import doctor, machine
from emberflow.cli.exit_codes import ExitCode
from emberflow.cli.machine import Check, Status
from emberflow.cli.main import main
from emberflow.engines.spark.session import java
from emberflow.errors import JavaMissing

GOOD = {
    **dict.fromkeys(["grpcio", "grpcio-status", "googleapis-common-protos", "zstandard"], "99.0"),
    "cloudpickle": "3.1.2",
    "pyspark": "4.3.0",
    "pandas": "2.3.3",
    "pyarrow": "26.0.1",
    "protobuf": "6.33.5",
}


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The installed packages that the doctor finds."""
    found = dict(GOOD)
    monkeypatch.setattr(doctor, "installed", found.get)
    monkeypatch.setattr(
        java, "find_java", lambda: java.JavaHome(home=Path("somewhere"), version=21, origin="PATH")
    )
    return found


def named(name: str, engine: str = "spark") -> Check:
    return next(check for check in doctor.diagnose(engine).checks if check.name == name)


def test_a_complete_machine_is_ready(packages: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == ExitCode.OK
    text = capsys.readouterr().out
    assert "ok       pyspark" in text
    assert "21 at somewhere (from PATH)" in text
    assert text.endswith("The spark engine is ready.\n")


def test_without_pyspark_the_local_engine_is_checked(
    packages: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    del packages["pyspark"]
    assert main(["doctor"]) == ExitCode.OK
    text = capsys.readouterr().out
    assert "The local engine is ready." in text
    assert 'pip install "emberflow[spark]"' in text


@pytest.mark.parametrize(
    ("package", "version"),
    [
        ("pyspark", "4.0.1"),
        ("pandas", "3.0.0"),
        ("pyarrow", "17.0.0"),
        ("protobuf", "6.33.4"),
        ("protobuf", None),
    ],
)
def test_a_wrong_or_missing_package_names_the_command_that_fixes_it(
    package: str, version: str | None, packages: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    packages.pop(package)
    if version is not None:
        packages[package] = version
    assert main(["doctor", "--engine", "spark"]) == ExitCode.ENVIRONMENT
    check = named(package)
    assert check.status is Status.BROKEN
    assert check.fix == 'pip install "emberflow[spark]"'
    assert doctor.SPARK_PACKAGES[package] in check.found
    assert "cannot run here yet" in capsys.readouterr().out


def test_missing_java_is_named(packages: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> java.JavaHome:
        raise JavaMissing("only Java 11 here", way_out="install Java 17")

    monkeypatch.setattr(java, "find_java", missing)
    assert named("java") == Check.broken("java", "only Java 11 here", "install Java 17")


def test_spark_connect_is_a_warning(packages: dict[str, str]) -> None:
    del packages["grpcio"]
    assert named("spark connect").status is Status.WARNING
    assert doctor.diagnose("spark").ready


def test_json_holds_the_same(packages: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    del packages["pandas"]
    assert main(["doctor", "--json"]) == ExitCode.ENVIRONMENT
    answer = json.loads(capsys.readouterr().out)
    assert (answer["engine"], answer["ready"]) == ("spark", False)
    pandas = next(check for check in answer["checks"] if check["name"] == "pandas")
    assert pandas == {
        "name": "pandas",
        "status": "missing",
        "found": "not installed, needs >=2.2,<3",
        "fix": 'pip install "emberflow[spark]"',
    }


def test_wanted_versions_are_those_of_the_package() -> None:
    pyproject = Path(__file__).parents[3] / "pyproject.toml"
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    spark = {**doctor.SPARK_PACKAGES, **doctor.CONNECT_PACKAGES}
    assert {name + versions for name, versions in spark.items()} == set(
        project["optional-dependencies"]["spark"]
    )
    core = {name + versions for name, versions in doctor.CORE_PACKAGES.items()}
    assert core == set(project["dependencies"])


def test_variables_of_another_spark_are_reported() -> None:
    checks = machine.check_spark_variables({"SPARK_HOME": "elsewhere", "PYSPARK_PYTHON": "no-such-python"})
    assert [(check.name, check.status) for check in checks] == [
        ("SPARK_HOME", Status.WARNING),
        ("PYSPARK_PYTHON", Status.WARNING),
    ]
    assert machine.check_spark_variables({"PYSPARK_PYTHON": sys.executable}) == []


def test_little_memory_and_disk_are_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "available_memory", lambda: machine.GIB)
    monkeypatch.setattr(machine, "SPARK_DISK_GIB", 1e9)
    found = {check.name: check for check in machine.check_resources(for_spark=True)}
    assert found["memory"].status is Status.WARNING
    assert found["memory"].found == "1.0 GiB available"
    assert found["disk"].status is Status.WARNING
    assert "TMPDIR" in found["disk"].fix
