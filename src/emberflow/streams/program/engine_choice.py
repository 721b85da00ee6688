"""Which engine hosts a program: the argument, else EMBERFLOW_ENGINE, else Spark where it is at hand, else local."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import sys
from typing import Any

from emberflow.errors import InvalidArgument, PackageMissing, did_you_mean
from emberflow.plan.job_contract import Engine

_MODULES = {"local": "emberflow.engines.local.engine", "spark": "emberflow.engines.spark.engine"}
_log = logging.getLogger("emberflow")


def choose_engine(engine: str | Engine | None, options: dict[str, Any]) -> Engine:
    """Makes the engine. `options` go to its constructor."""
    if engine is not None and not isinstance(engine, str):
        return engine
    name, why = _name(engine, options)
    if name not in _MODULES:
        raise InvalidArgument(
            f"there is no engine {name!r}{did_you_mean(name, _MODULES)}", way_out="use 'local' or 'spark'"
        )
    if name == "spark" and importlib.util.find_spec("pyspark") is None:
        raise PackageMissing(
            "the engine 'spark' needs pyspark, which is not installed",
            way_out='pip install "emberflow[spark]", or use engine="local" (`--engine local` on the command line)',
        )
    _log.info("engine %s (%s)", name, why)
    return importlib.import_module(_MODULES[name]).make_engine(**options)


def default_engine() -> str:
    """The name of the engine of a program that does not choose one."""
    return _name(None, {})[0]


def _name(engine: str | None, options: dict[str, Any]) -> tuple[str, str]:
    if engine is not None:
        return engine, "as the program says"
    if options.get("spark") is not None:
        return "spark", "a session was given"
    named = os.environ.get("EMBERFLOW_ENGINE")
    if named:
        return named, "EMBERFLOW_ENGINE"
    if "pyspark" in sys.modules and _active_session():
        return "spark", "a SparkSession is active"
    if importlib.util.find_spec("pyspark") is not None:
        return "spark", "pyspark is installed"
    return "local", "pyspark is not installed"


def _active_session() -> bool:
    session = getattr(sys.modules.get("pyspark.sql"), "SparkSession", None)
    return session is not None and session.getActiveSession() is not None
