"""Code for Spark's processes: this package and the user's own modules, as one archive.

Spark's mechanisms for sending files do not reach every Python process it starts (offset planning, state
pre-initialization, tasks with Connect), so the archive is part of the functions themselves and unpacks itself where it is
needed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import os
import site
import sys
import sysconfig
import zipfile
import zlib
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

from emberflow.engines.spark.session.session import is_connect
from emberflow.errors import InvalidArgument, NotSupported

_LIMIT_BYTES = 20 * 1024 * 1024
_EPOCH = (1980, 1, 1, 0, 0, 0)


def make_archive(
    python_files: Iterable[str] = (), package_data: Iterable[tuple[str, str]] = ()
) -> tuple[bytes, str]:
    """A compressed zip of emberflow, of every loaded module that is neither installed nor part of Python, of the files,
    folders and archives of modules that the program names, and of data in the program's packages, each given as the package
    and a path in it; and its digest.

    The zip is compressed as a whole: that takes a quarter less than compressing its many small files one by one, and a
    caller's session accepts functions of 1 MB.
    """
    files = _package_files() | _user_files()
    for path in python_files:
        files |= _added_files(Path(path))
    for package, inside in package_data:
        files |= _data_files(package, inside)
    size = sum(len(content) for content in files.values())
    if size > _LIMIT_BYTES:
        raise NotSupported(
            f"the program's own modules are {size // 2**20} MB, too much to send with every task",
            way_out="install them on the cluster, or start the program outside the large source tree",
        )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            # A fixed date: equal files must give equal digests.
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), files[name])
    return _compressed(buffer.getvalue())


@lru_cache(maxsize=1)
def _compressed(data: bytes) -> tuple[bytes, str]:
    """Kept for the next job of the process. Level 9 takes nearly three times as long, and saves half a percent."""
    packed = zlib.compress(data, 6)
    return packed, hashlib.sha256(packed).hexdigest()


def add_jars(session: Any, jars: Iterable[str]) -> None:
    """Makes jars available to the JVMs of a session. One that does not exist raises InvalidArgument."""
    for jar in jars:
        path = Path(jar.removeprefix("file://"))
        if not path.is_file():
            raise InvalidArgument(f"there is no jar {jar!r}", way_out="check the path given to add_jars()")
        if is_connect(session):
            session.addArtifacts(str(path))
        else:
            # Spark's classic sessions ignore jars that are given to addArtifacts().
            session.sql(f"ADD JAR '{path}'")


def _package_files() -> dict[str, bytes]:
    """emberflow and the one package that its core needs."""
    roots = [Path(__file__).resolve().parents[3], Path(str(cloudpickle.__file__)).resolve().parent]
    return {
        str(path.relative_to(root.parent)): path.read_bytes()
        for root in roots
        for path in root.rglob("*.py")
        if "__pycache__" not in path.parts
    }


def _user_files() -> dict[str, bytes]:
    installed = _installed_roots()
    files: dict[str, bytes] = {}
    for name, module in list(sys.modules.items()):
        shipped = vars(module).get("__shipped_source__") if isinstance(module, ModuleType) else None
        if isinstance(shipped, str):
            # A module without a file that says what its file would be.
            files[f"{name}/__init__.py"] = shipped.encode()
            continue
        if name == "__main__" or name.split(".")[0] == "emberflow":
            continue
        path = _source(module)
        if path is None or str(path).startswith(installed):
            continue
        target = name.replace(".", "/") + ("/__init__.py" if path.name == "__init__.py" else ".py")
        try:
            files[target] = path.read_bytes()
        except OSError:
            continue
    for target in list(files):
        # A package without its own __init__ must still be found inside the archive.
        for parent in Path(target).parents:
            if str(parent) != ".":
                files.setdefault(f"{parent}/__init__.py", b"")
    return files


def _added_files(path: Path) -> dict[str, bytes]:
    if path.is_dir():
        found = (item for item in sorted(path.rglob("*.py")) if "__pycache__" not in item.parts)
        return {item.relative_to(path).as_posix(): item.read_bytes() for item in found}
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist() if name.endswith(".py")}
    return {path.name: path.read_bytes()}


def _data_files(package: str, inside: str) -> dict[str, bytes]:
    """Nothing of a package that is installed, or that only workers have."""
    try:
        found = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return {}
    installed, files = _installed_roots(), dict[str, bytes]()
    for place in (found.submodule_search_locations or ()) if found is not None else ():
        root = _resolved(place)
        wanted = root / inside
        if f"{root}{os.sep}".startswith(installed):
            continue
        for path in [wanted] if wanted.is_file() else sorted(wanted.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and ".." not in Path(inside).parts:
                files[f"{package.replace('.', '/')}/{path.relative_to(root).as_posix()}"] = path.read_bytes()
    return files


def _source(module: ModuleType | None) -> Path | None:
    file = getattr(module, "__file__", None)
    return _resolved(file) if isinstance(file, str) and file.endswith(".py") else None


@cache
def _resolved(path: str) -> Path:
    """Kept: a program has thousands of modules, and each job looks at all of them."""
    return Path(path).resolve()


def _installed_roots() -> tuple[str, ...]:
    """Folders of installed packages and of Python itself, each with a separator at its end."""
    roots = [*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()]
    roots += [sysconfig.get_paths(vars={"base": sys.base_prefix, "platbase": sys.base_prefix})["stdlib"]]
    # A .pth file may point to the packages of another environment.
    roots += [entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]
    return tuple({f"{_resolved(root)}{os.sep}" for root in roots})
