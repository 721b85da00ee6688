"""What a user imports first must not import heavy packages."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("pyspark", "py4j", "pandas", "pyarrow", "numpy", "google.protobuf", "grpc")

CODE = "import sys, {module}; print(*sorted(name for name in {heavy!r} if name in sys.modules))"


@pytest.mark.parametrize(
    "module", ["emberflow", "emberflow.streams", "emberflow.agents", "emberflow.cli.main"]
)
def test_import_is_light(module: str) -> None:
    code = CODE.format(module=module, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
