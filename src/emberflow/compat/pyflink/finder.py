"""The import hook: `import pyflink…` resolves to emberflow, in this process and, on Spark, in its workers.

Used by `install.py` and by `emberflow run --as pyflink`. A real PyFlink that is installed is shadowed only while the hook
is installed.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from emberflow.compat.pyflink import missing, names
from emberflow.errors import InvalidArgument, PyFlinkOnly, did_you_mean

ROOT = "pyflink"

# What a Spark worker finds as the package `pyflink` in the shipped code: it makes room for the hook.
SHIPPED_SOURCE = """\
import sys

del sys.modules["pyflink"]
import emberflow.compat.pyflink.install
"""


class StandIn(ModuleType):
    """A module of PyFlink; its names are looked up when they are first used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = find_name(self.__name__, name)
        self.__dict__[name] = found
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        # A function that uses the module is sent to workers, which import it there.
        return importlib.import_module, (self.__name__,)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *names.NAMES[self.__name__].split()})


class PyFlinkFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of the table; for those that are missing the import fails with the way out."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] != ROOT:
            return None
        for module, way_out in missing.MODULES.items():
            if fullname == module or fullname.startswith(module + "."):
                raise PyFlinkOnly(f"emberflow has no {module}", way_out=way_out)
        if fullname not in names.NAMES:
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=_is_package(fullname))

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = StandIn(spec.name, f"PyFlink's `{spec.name}`, as emberflow has it.")
        module.__dict__["__all__"] = available(spec.name)
        if spec.name == ROOT:
            module.__dict__["__shipped_source__"] = SHIPPED_SOURCE
        return module

    def exec_module(self, module: ModuleType) -> None:
        prefix = module.__name__ + "."
        for name, value in names.VALUES.items():
            if name.startswith(prefix) and "." not in name[len(prefix) :]:
                module.__dict__[name[len(prefix) :]] = value


def find_name(module: str, name: str) -> Any:
    """The object that stands for a name of PyFlink. Raises PyFlinkOnly for one that PyFlink has and emberflow has not,
    AttributeError for one that neither has."""
    listed = names.NAMES[module].split()
    if name not in listed:
        raise AttributeError(f"module {module!r} has no attribute {name!r}{did_you_mean(name, listed)}")
    found = ours(name)
    if found is None:
        raise PyFlinkOnly(
            f"emberflow has no {name} ({module}.{name})",
            way_out=missing.NAMES.get(name, "see docs/from-pyflink.md for what maps to what"),
        )
    return found


def available(module: str) -> list[str]:
    """The names of a module that emberflow has."""
    return [name for name in names.NAMES[module].split() if ours(name) is not None]


def ours(name: str) -> Any:
    """What emberflow has for a name; None if it has nothing."""
    home, _, own_name = names.HOMES.get(name, names.STREAMS).partition(":")
    return getattr(importlib.import_module(home), own_name or name, None)


def install() -> None:
    """From here on `import pyflink…` resolves to emberflow. Raises InvalidArgument if the real PyFlink was imported before."""
    real = sys.modules.get(ROOT)
    if real is not None and not isinstance(real, StandIn):
        raise InvalidArgument(
            f"pyflink was already imported from {getattr(real, '__file__', 'elsewhere')}",
            way_out="import emberflow.compat.pyflink.install before anything imports pyflink",
        )
    if not any(isinstance(finder, PyFlinkFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, PyFlinkFinder())
    importlib.import_module(ROOT)


def uninstall() -> None:
    """Makes a real PyFlink visible again."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, PyFlinkFinder)]
    for name in [name for name, module in sys.modules.items() if isinstance(module, StandIn)]:
        del sys.modules[name]


@contextmanager
def installed() -> Generator[None]:
    """The hook for the time of a `with` block; one that was installed before stays."""
    before = any(isinstance(finder, PyFlinkFinder) for finder in sys.meta_path)
    install()
    try:
        yield
    finally:
        if not before:
            uninstall()


def _is_package(module: str) -> bool:
    return any(other.startswith(module + ".") for other in (*names.NAMES, *missing.MODULES))
