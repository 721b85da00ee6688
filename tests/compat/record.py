"""Runs the programs on a real PyFlink and records what they print, as `expected/<program>.txt`.

Run with the Python of an environment that has apache-flink (2.3.0 made the files that are stored) and a Java (17 or newer,
JAVA_HOME); all programs, or the named ones:

    path/to/flink-env/bin/python tests/compat/record.py [program ...]

The programs share one JVM, so a run takes a few minutes. `record_interface.py` records the interface, without a JVM.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

HERE = Path(__file__).parent
MARK = "=== program "


def run_all(names: list[str]) -> None:
    """In the child: one program after another; Flink's own printing goes to the same standard output."""
    for name in names:
        sys.stdout.flush()
        os.write(1, f"{MARK}{name}\n".encode())
        try:
            runpy.run_path(str(HERE / "programs" / f"{name}.py"), run_name="__main__")
        except BaseException:
            traceback.print_exc()
            os.write(1, b"=== failed\n")
        sys.stdout.flush()


def record(names: list[str]) -> None:
    with tempfile.TemporaryFile() as output:
        subprocess.run([sys.executable, __file__, "--child", *names], stdout=output, check=False)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    for part in text.split(MARK)[1:]:
        name, _, printed = part.partition("\n")
        if "=== failed" in printed:
            print(f"{name}: failed, nothing recorded", file=sys.stderr)
            continue
        (HERE / "expected" / f"{name}.txt").write_text(printed, encoding="utf-8")
        print(f"{name}: {len(printed.splitlines())} lines", file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        run_all(sys.argv[2:])
    else:
        record(sys.argv[1:] or sorted(path.stem for path in (HERE / "programs").glob("*.py")))
