"""What Spark's Python processes do first: use the compiled pyspark."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from emberflow.engines.spark.session.session import PYTHON_START
from emberflow.testing import SPARK, Host, on_every_host, spark_missing


def prefer_installed_pyspark(path: list[str]) -> list[str]:
    spec = importlib.util.spec_from_file_location("python_start", f"{PYTHON_START}/sitecustomize.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.prefer_installed_pyspark(path)
    return path


def make_pyspark(site: Path) -> str:
    lib = site / "pyspark" / "python" / "lib"
    lib.mkdir(parents=True)
    (site / "pyspark" / "__init__.py").touch()
    return str(lib / "pyspark.zip")


def test_the_zip_of_an_installed_pyspark_goes_to_the_end(tmp_path: Path) -> None:
    zipped, site = make_pyspark(tmp_path), str(tmp_path)
    assert prefer_installed_pyspark([zipped, "a", site, "b"]) == ["a", site, "b", zipped]


def test_the_zip_of_another_spark_stays(tmp_path: Path) -> None:
    zipped = make_pyspark(tmp_path)
    assert prefer_installed_pyspark([zipped, "a"]) == [zipped, "a"], "its package cannot be imported"
    home = str(tmp_path / "spark-4" / "python" / "lib" / "pyspark.zip")
    assert prefer_installed_pyspark([home, str(tmp_path)]) == [home, str(tmp_path)], "its package is the same"


@pytest.mark.skipif(bool(spark_missing()), reason=f"B1 on Spark: {spark_missing()}")
def test_another_sitecustomize_is_run_as_well(tmp_path: Path) -> None:
    import pyspark

    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.theirs = __file__\n")
    zipped = Path(pyspark.__file__).with_name("python") / "lib" / "pyspark.zip"
    assert zipped.exists()
    path = os.pathsep.join([str(zipped), PYTHON_START, str(tmp_path)])
    done = subprocess.run(
        [sys.executable, "-c", "import pyspark, sys; print(pyspark.__file__); print(sys.theirs)"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [pyspark.__file__, str(tmp_path / "sitecustomize.py")]
    assert done.stderr == ""


@on_every_host(hosts=[SPARK])
def test_workers_read_the_installed_pyspark(host: Host) -> None:
    env = host.environment()
    (found,) = env.from_collection([0]).map(where_pyspark_is).execute_and_collect()
    assert ".zip" not in found


def where_pyspark_is(value: Any) -> str:
    import pyspark

    return str(pyspark.__file__)
