"""Runs at the start of Spark's Python processes, because `engines/spark/session/session.py` puts this folder on their path.

Spark puts a zip of pyspark first on the path of every Python process that it starts. Python does not cache bytecode of
modules in a zip, so each of the ten or so processes of a query compiles pyspark again: 0.6 s of work each. If the zip
belongs to an installed pyspark, which has the same modules compiled, it is moved to the end of the path.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_HERE = os.path.dirname(os.path.abspath(__file__))


def prefer_installed_pyspark(path: list[str]) -> None:
    """Sorts a search path in place."""
    for entry in [entry for entry in path if os.path.basename(entry) == "pyspark.zip"]:
        package = os.path.dirname(os.path.dirname(os.path.dirname(entry)))
        installed = os.path.basename(package) == "pyspark" and os.path.isfile(
            os.path.join(package, "__init__.py")
        )
        if installed and os.path.dirname(package) in path:
            path.remove(entry)
            path.append(entry)


def run_next() -> None:
    """Python runs only one module of this name; another one may be on the path, too."""
    found = PathFinder.find_spec("sitecustomize", [entry for entry in sys.path if entry != _HERE])
    if found is not None and found.loader is not None:
        module = sys.modules["sitecustomize"] = module_from_spec(found)
        found.loader.exec_module(module)


if __name__ == "sitecustomize":
    sys.path[:] = [entry for entry in sys.path if entry != _HERE]
    prefer_installed_pyspark(sys.path)
    run_next()
