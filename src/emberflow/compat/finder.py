"""The import hook: imports of another library resolve to emberflow, in this process and, on Spark, in its workers.

Installed by the `install.py` of each library and by `emberflow run --as`. A real library that is installed is shadowed only
while the hook is installed.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from emberflow.compat.foreign_package import ForeignPackage
from emberflow.errors import InvalidArgument, did_you_mean

# What a Spark worker finds as the package in the shipped code: it makes room for the hook.
_SHIPPED_SOURCE = """\
import sys

del sys.modules["{root}"]
import {install_module}
"""


class StandIn(ModuleType):
    """A module of the library; its names are looked up when they are first used."""

    def __init__(self, name: str, package: ForeignPackage) -> None:
        super().__init__(name, f"{package.product}'s `{name}`, as emberflow has it.")
        self.__dict__["__foreign__"] = package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = find_name(self.__dict__["__foreign__"], self.__name__, name)
        self.__dict__[name] = found
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        # A function that uses the module is sent to workers, which import it there.
        return importlib.import_module, (self.__name__,)

    def __dir__(self) -> list[str]:
        package: ForeignPackage = self.__dict__["__foreign__"]
        return sorted({*self.__dict__, *package.names[self.__name__].split()} - {"__foreign__"})


class PackageFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of the table; for those that are missing the import fails with the way out."""

    def __init__(self, package: ForeignPackage) -> None:
        self.package = package

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package = self.package
        if fullname.partition(".")[0] != package.root:
            return None
        for module, way_out in package.missing_modules.items():
            if _is_within(fullname, module):
                raise package.error(f"emberflow has no {module}", way_out=way_out)
        if fullname in package.own_modules:
            folder = fullname.rpartition(".")[0].replace(".", os.sep)
            return importlib.machinery.PathFinder.find_spec(
                fullname, [os.path.join(entry, folder) for entry in sys.path]
            )
        if fullname not in package.names:
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=self._is_package(fullname))

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        package = self.package
        module = StandIn(spec.name, package)
        module.__dict__["__all__"] = available(package, spec.name)
        if spec.name == package.root:
            shipped = _SHIPPED_SOURCE.format(root=package.root, install_module=package.install_module)
            module.__dict__["__shipped_source__"] = shipped
        return module

    def exec_module(self, module: ModuleType) -> None:
        prefix = module.__name__ + "."
        for name, value in self.package.values.items():
            if name.startswith(prefix) and "." not in name[len(prefix) :]:
                module.__dict__[name[len(prefix) :]] = value

    def _is_package(self, module: str) -> bool:
        package = self.package
        listed = (*package.names, *package.missing_modules, *package.own_modules)
        return any(other.startswith(module + ".") for other in listed)


def find_name(package: ForeignPackage, module: str, name: str) -> Any:
    """The object that stands for a name of the library. Raises the library's error for one that it has and emberflow has
    not, AttributeError for one that neither has."""
    listed = package.names[module].split()
    if name not in listed:
        raise AttributeError(f"module {module!r} has no attribute {name!r}{did_you_mean(name, listed)}")
    found = ours(package, name, module)
    if found is None:
        raise package.error(
            f"emberflow has no {name} ({module}.{name})",
            way_out=package.missing_names.get(name, f"see {package.page} for what maps to what"),
        )
    return found


def available(package: ForeignPackage, module: str) -> list[str]:
    """The names of a module that emberflow has."""
    return [name for name in package.names[module].split() if ours(package, name, module) is not None]


def ours(package: ForeignPackage, name: str, module: str = "") -> Any:
    """What emberflow has for a name; None if it has nothing."""
    if name in package.missing_names:
        return None
    written = package.homes.get(f"{module}.{name}") or package.homes.get(name) or package.home
    home, _, own_name = written.partition(":")
    return getattr(importlib.import_module(home), own_name or name, None)


def root_of_own_modules(package: ForeignPackage, program: Path) -> Path | None:
    """The folder that must be on sys.path for a program that is one of the library's own, such as an example in a clone of
    its repository; None for any other program."""
    for folder in program.parents:
        if folder.name == package.root:
            module = ".".join([package.root, *program.relative_to(folder).with_suffix("").parts])
            if any(_is_within(module, own) for own in package.own_modules):
                return folder.parent
    return None


def install(package: ForeignPackage) -> None:
    """From here on imports of the library resolve to emberflow. Raises InvalidArgument if the real one was imported
    before."""
    for other in package.together_with:
        install(other)
    root = package.root
    real = sys.modules.get(root)
    if real is not None and not isinstance(real, StandIn):
        raise InvalidArgument(
            f"{root} was already imported from {getattr(real, '__file__', 'elsewhere')}",
            way_out=f"import {package.install_module} before anything imports {root}",
        )
    if not is_installed(package):
        sys.meta_path.insert(0, PackageFinder(package))
    importlib.import_module(root)


def uninstall(package: ForeignPackage) -> None:
    """Makes a real library visible again."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not _finds(finder, package)]
    for name in [name for name in sys.modules if _is_within(name, package.root)]:
        del sys.modules[name]


def is_installed(package: ForeignPackage) -> bool:
    """Whether imports of the library resolve to emberflow."""
    return any(_finds(finder, package) for finder in sys.meta_path)


@contextmanager
def installed(package: ForeignPackage) -> Generator[None]:
    """The hook for the time of a `with` block; one that was installed before stays."""
    added = [one for one in (package, *package.together_with) if not is_installed(one)]
    try:
        install(package)
        yield
    finally:
        for one in added:
            if is_installed(one):
                uninstall(one)


def _finds(finder: object, package: ForeignPackage) -> bool:
    return isinstance(finder, PackageFinder) and finder.package.root == package.root


def _is_within(name: str, module: str) -> bool:
    return name == module or name.startswith(module + ".")
