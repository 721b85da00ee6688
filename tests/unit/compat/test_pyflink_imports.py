"""`import pyflink…` resolves to emberflow while the hook is installed, and says what to do where it cannot."""

from __future__ import annotations

import base64
import importlib
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import pytest

from emberflow.cli.exit_codes import ExitCode
from emberflow.cli.main import main
from emberflow.compat.finder import PackageFinder, installed
from emberflow.compat.pyflink.package import PYFLINK
from emberflow.engines.spark.driver.shipping import make_archive
from emberflow.engines.spark.wire.bootstrap import make_bootstrap
from emberflow.errors import InvalidArgument
from emberflow.streams import Duration, MapFunction, StreamExecutionEnvironment


@pytest.fixture
def hook() -> Iterator[None]:
    with installed(PYFLINK):
        yield


def imported(name: str) -> Any:
    return importlib.import_module(name)


@pytest.mark.usefixtures("hook")
def test_names_are_emberflows() -> None:
    assert imported("pyflink.datastream").StreamExecutionEnvironment is StreamExecutionEnvironment
    assert imported("pyflink.datastream.functions").MapFunction is MapFunction
    assert imported("pyflink.common.time").Duration is Duration
    assert imported("pyflink.version").__version__ == imported("pyflink").__version__ == "2.3.0"


@pytest.mark.usefixtures("hook")
def test_names_that_nobody_has_fail_as_python_does() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'pyflink\.nothing'"):
        imported("pyflink.nothing")
    with pytest.raises(ImportError, match="cannot import name 'MapFunctoin'"):
        exec("from pyflink.datastream import MapFunctoin")
    with pytest.raises(AttributeError, match="did you mean 'MapFunction'"):
        _ = imported("pyflink.datastream").MapFunctoin


@pytest.mark.usefixtures("hook")
def test_a_module_can_be_pickled() -> None:
    module = imported("pyflink.datastream")
    assert pickle.loads(cloudpickle.dumps(module)) is module


def test_the_hook_leaves_nothing_behind() -> None:
    def leftovers() -> list[str]:
        return [name for name in sys.modules if name.split(".")[0] == "pyflink"]

    assert leftovers() == []
    with installed(PYFLINK):
        with installed(PYFLINK):
            imported("pyflink.datastream.window")
        assert "pyflink.datastream.window" in leftovers()
    assert leftovers() == []
    assert not any(isinstance(finder, PackageFinder) for finder in sys.meta_path)


def test_a_real_pyflink_that_was_imported_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyflink", ModuleType("pyflink"))
    with pytest.raises(InvalidArgument, match="pyflink was already imported"), installed(PYFLINK):
        pass


PROGRAM = """
from pyflink.datastream import StreamExecutionEnvironment
import pyflink.common.time as flink_time

def stretched(value):
    from pyflink.common import Time
    return value * Time.seconds(1).to_milliseconds(), flink_time.__name__

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1, 2]).map(stretched).print()
env.execute()
"""


def test_a_pyflink_program_runs_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "job.py"
    program.write_text(PROGRAM)
    assert main(["run", "--as", "pyflink", str(program), "--engine", "local", "--quiet"]) == ExitCode.OK
    assert capsys.readouterr().out == "(1000, 'pyflink.common.time')\n(2000, 'pyflink.common.time')\n"
    assert main(["explain", "--as", "pyflink", str(program), "--engine", "local"]) == ExitCode.OK
    assert "map" in capsys.readouterr().out
    program.write_text("from pyflink.table import TableEnvironment")
    assert main(["run", "--as", "pyflink", str(program)]) == ExitCode.BAD_PROGRAM
    assert "what to do: use to_dataframe()" in capsys.readouterr().err
    assert "pyflink" not in sys.modules


WORKER = """
import base64, pickle, sys
sys.path.append({site!r})
for part in sys.stdin.read().split():
    bootstrap = pickle.loads(base64.b64decode(part))
    bootstrap("emberflow.errors")
    try:
        from pyflink.datastream import MapFunction
        import pyflink.common.time
        print(MapFunction.__module__, pyflink.common.time.Time.seconds(1).to_milliseconds())
    except ModuleNotFoundError as error:
        print(error)
"""


def test_workers_resolve_pyflink_for_the_jobs_that_want_it(tmp_path: Path) -> None:
    """A worker process serves one job after another; each brings its own code."""
    plain = make_bootstrap(*make_archive())
    with installed(PYFLINK):
        asking = make_bootstrap(*make_archive())
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            WORKER.format(site=str(Path(str(cloudpickle.__file__)).parents[1])),
        ],
        input=" ".join(
            base64.b64encode(cloudpickle.dumps(item)).decode() for item in (plain, asking, plain, asking)
        ),
        env={"TMPDIR": str(tmp_path), "HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    none, found = "No module named 'pyflink'", "emberflow.streams.functions.function 1000"
    assert done.stdout.splitlines() == [none, found, none, found]


@pytest.mark.usefixtures("hook")
def test_watermark_alignment_is_declared_as_in_pyflink() -> None:
    common = imported("pyflink.common")
    strategy = common.WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment(
        "group", common.Duration.of_seconds(20), common.Duration.of_seconds(1)
    )
    assert strategy.alignment.max_drift_ms == 20_000
