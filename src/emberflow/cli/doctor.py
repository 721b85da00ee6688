"""`emberflow doctor`: what this machine has, what it lacks, and the command that fixes it.

Reads installed versions from package metadata and never imports the packages, so that a broken one cannot break the
command. Starts no Spark.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import sys
from dataclasses import asdict, dataclass
from typing import Any

from emberflow.cli import machine
from emberflow.cli.exit_codes import EXIT_CODES_HELP, ExitCode
from emberflow.cli.machine import Check, Status
from emberflow.cli.subcommands import add_command
from emberflow.cli.versions import is_within

OLDEST_PYTHON = (3, 11)

INSTALL_SPARK = 'pip install "emberflow[spark]"'

CORE_PACKAGES = {"cloudpickle": ">=3"}

# As in the extra `spark` of pyproject.toml; a test compares the two.
SPARK_PACKAGES = {
    "pyspark": "==4.3.*",
    "pandas": ">=2.2,<3",
    "pyarrow": ">=18",
    "protobuf": ">=6.33.5",
}
CONNECT_PACKAGES = {
    "grpcio": ">=1.67",
    "grpcio-status": ">=1.67",
    "googleapis-common-protos": ">=1.65",
    "zstandard": ">=0.23",
}

EPILOG = f"""\
examples:
  emberflow doctor                   check for the default engine
  emberflow doctor --engine spark    check for Spark, installed or not
  emberflow doctor --json            the same as JSON

{EXIT_CODES_HELP}"""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """All checks for one engine."""

    engine: str
    checks: tuple[Check, ...]

    @property
    def ready(self) -> bool:
        """Whether a program can run on the engine."""
        return all(check.status is not Status.BROKEN for check in self.checks)


def add_parser(subparsers: Any) -> None:
    """Adds `doctor` to the command line."""
    parser = add_command(
        subparsers,
        "doctor",
        "check this machine",
        EPILOG,
        description="Checks this machine and shows how to fix what is missing.",
    )
    parser.add_argument(
        "--engine", choices=("local", "spark"), help="default: spark if pyspark is installed, otherwise local"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the diagnosis; `ExitCode.ENVIRONMENT` if the engine cannot run here."""
    diagnosis = diagnose(args.engine)
    print(as_json(diagnosis) if args.json else as_text(diagnosis))
    return ExitCode.OK if diagnosis.ready else ExitCode.ENVIRONMENT


def diagnose(engine: str | None = None) -> Diagnosis:
    """Runs the checks for `engine`, or for the default engine of this machine."""
    chosen = engine or ("spark" if installed("pyspark") else "local")
    checks = [_check_python(), *_check_packages(CORE_PACKAGES, "pip install --upgrade emberflow")]
    if chosen == "spark":
        checks.append(_check_java())
        checks += _check_packages(SPARK_PACKAGES, INSTALL_SPARK)
        checks += _check_connect()
        checks += machine.check_spark_variables()
    checks += machine.check_resources(for_spark=chosen == "spark")
    return Diagnosis(engine=chosen, checks=tuple(checks))


def installed(package: str) -> str | None:
    """The installed version of a package, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _check_python() -> Check:
    found = platform.python_version()
    if sys.version_info[:2] < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        return Check.broken(
            "python", f"{found}, needs {wanted} or newer", f"install Python {wanted} or newer"
        )
    return Check.ok("python", f"{found} at {sys.executable}")


def _check_packages(wanted: dict[str, str], fix: str) -> list[Check]:
    checks: list[Check] = []
    for package, versions in wanted.items():
        found = installed(package)
        if found is None:
            checks.append(Check.broken(package, f"not installed, needs {versions}", fix))
        elif not is_within(found, versions):
            checks.append(Check.broken(package, f"{found}, needs {versions}", fix))
        else:
            checks.append(Check.ok(package, found))
    return checks


def _check_connect() -> list[Check]:
    """One line for all of Spark Connect: a program on a local or classic master does not need it."""
    bad = [c for c in _check_packages(CONNECT_PACKAGES, INSTALL_SPARK) if c.status is Status.BROKEN]
    if not bad:
        return [Check.ok("spark connect", "ready")]
    what = ", ".join(f"{check.name} {check.found}" for check in bad)
    return [Check.warning("spark connect", f"not usable: {what}", INSTALL_SPARK)]


def _check_java() -> Check:
    from emberflow.engines.spark.session.java import find_java
    from emberflow.errors import JavaMissing

    try:
        java = find_java()
    except JavaMissing as error:
        return Check.broken("java", error.message, error.way_out)
    return Check.ok("java", f"{java.version} at {java.home} (from {java.origin})")


def as_text(diagnosis: Diagnosis) -> str:
    """The diagnosis as text."""
    width = max(len(check.name) for check in diagnosis.checks)
    lines: list[str] = []
    for check in diagnosis.checks:
        lines.append(f"{check.status.value:<8} {check.name:<{width}}  {check.found}")
        if check.fix:
            lines.append(f"{'':<8} {'':<{width}}  -> {check.fix}")
    lines.append("")
    if diagnosis.ready:
        lines.append(f"The {diagnosis.engine} engine is ready.")
    else:
        lines.append(f"The {diagnosis.engine} engine cannot run here yet.")
        if diagnosis.engine == "spark" and diagnose("local").ready:
            lines.append("Until then, `--engine local` runs programs without Spark and Java.")
    if diagnosis.engine == "local" and installed("pyspark") is None:
        lines.append(f"Spark is not installed; to use it: {INSTALL_SPARK}")
    return "\n".join(lines)


def as_json(diagnosis: Diagnosis) -> str:
    """The diagnosis as JSON: `{"engine", "ready", "checks": [{"name", "status", "found", "fix"}]}`."""
    checks = [asdict(check) for check in diagnosis.checks]
    return json.dumps({"engine": diagnosis.engine, "ready": diagnosis.ready, "checks": checks}, indent=2)
