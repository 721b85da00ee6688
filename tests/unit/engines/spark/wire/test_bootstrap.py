"""Where workers import the shipped code from: never from a place that another user can write."""

from __future__ import annotations

import base64
import importlib
import io
import os
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import cloudpickle
import pytest

from emberflow.engines.spark.driver.shipping import make_archive
from emberflow.engines.spark.wire.bootstrap import make_bootstrap

STRANGER = 4242
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="C10: only root can give a directory to another user")

WORKER = """
import base64, pickle, sys
sys.path.append({site!r})
bootstrap = pickle.loads(base64.b64decode(sys.stdin.read()))
print(bootstrap("shipped").WHO, bootstrap("shipped").__file__)
"""


def archive_of(files: dict[str, str]) -> tuple[bytes, str]:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    data = zlib.compress(buffer.getvalue())
    return data, sha256(data).hexdigest()


OURS = "WHO = 'ours'\n"
ARCHIVE, DIGEST = archive_of({"shipped.py": OURS, "package/__init__.py": ""})
EVIL = "WHO = 'somebody-else'\n"
"""Of a different length: Python's bytecode is valid for a source with the same mtime in seconds and the same length."""


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def worker(temporary: Path, archive: bytes = ARCHIVE, digest: str = DIGEST) -> tuple[str, Path]:
    """What was imported in a process without emberflow, and from where."""
    done = run_worker(temporary, archive, digest)
    assert done.returncode == 0, done.stderr
    who, path = done.stdout.split()
    return who, Path(path)


def run_worker(
    temporary: Path, archive: bytes = ARCHIVE, digest: str = DIGEST
) -> subprocess.CompletedProcess[str]:
    site = str(Path(str(cloudpickle.__file__)).parents[1])
    return subprocess.run(
        # Without site-packages' .pth files, through which an editable emberflow would be found.
        [sys.executable, "-I", "-S", "-c", WORKER.format(site=site)],
        input=base64.b64encode(cloudpickle.dumps(make_bootstrap(archive, digest))).decode(),
        env={"TMPDIR": str(temporary), "HOME": str(temporary.parent / "home"), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )


def test_code_is_unpacked_once_and_for_this_user_only(temporary: Path) -> None:
    who, path = worker(temporary)
    assert who == "ours"
    assert path == temporary / f"emberflow-code-{os.geteuid()}" / DIGEST / "shipped.py"
    modes = {item: item.stat().st_mode & 0o777 for item in [path, *path.parents][:3]}
    assert list(modes.values()) == [0o600, 0o700, 0o700]
    before = path.stat().st_mtime_ns
    assert worker(temporary) == ("ours", path)
    assert path.stat().st_mtime_ns == before, "found and kept, with Python's bytecode"


def plant(folder: Path) -> None:
    for home in (folder / DIGEST, folder):
        home.mkdir(parents=True, exist_ok=True)
        (home / "shipped.py").write_text(EVIL)


def taken_by_a_stranger(place: Path) -> None:
    plant(place)
    os.chown(place, STRANGER, STRANGER)
    place.chmod(0o700)


def a_link_of_a_stranger(place: Path) -> None:
    plant(place.parent / "elsewhere")
    place.symlink_to(place.parent / "elsewhere")


def writable_by_everybody(place: Path) -> None:
    plant(place)
    place.chmod(0o777)


def readable_by_the_group(place: Path) -> None:
    plant(place)
    place.chmod(0o750)


def a_file(place: Path) -> None:
    place.write_text(EVIL)


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(taken_by_a_stranger, marks=as_root),
        a_link_of_a_stranger,
        writable_by_everybody,
        readable_by_the_group,
        a_file,
    ],
)
def test_a_directory_that_is_not_ours_alone_is_never_used(
    temporary: Path, attack: Callable[[Path], None]
) -> None:
    attack(temporary / f"emberflow-code-{os.geteuid()}")
    who, path = worker(temporary)
    assert who == "ours"
    home = path.parents[1]
    assert home.parent == temporary
    assert home.name.startswith(f"emberflow-code-{os.geteuid()}-")
    assert (home.stat().st_mode & 0o777, home.stat().st_uid) == (0o700, os.geteuid())
    assert worker(temporary) == ("ours", path), "found again by its owner"


@as_root
def test_names_that_match_the_fallback_are_checked_as_well(temporary: Path) -> None:
    for name in (f"emberflow-code-{os.geteuid()}", f"emberflow-code-{os.geteuid()}-aaa"):
        taken_by_a_stranger(temporary / name)
    assert worker(temporary)[0] == "ours"


def test_the_directory_of_earlier_versions_is_ignored(temporary: Path) -> None:
    plant(temporary / f"emberflow-{os.geteuid()}-{DIGEST[:16]}")
    who, path = worker(temporary)
    assert (who, path.parts[-3]) == ("ours", f"emberflow-code-{os.geteuid()}")


def changed(home: Path) -> None:
    (home / "shipped.py").write_text(EVIL)


def linked(home: Path) -> None:
    (home.parent / "evil.py").write_text("WHO = 'ours'\n")
    (home / "shipped.py").unlink()
    (home / "shipped.py").symlink_to(home.parent / "evil.py")


def cleaned_up_in_part(home: Path) -> None:
    (home / "shipped.py").unlink()


def added(home: Path) -> None:
    (home / "re.py").write_text("raise SystemExit('evil')\n")


def half_unpacked(home: Path) -> None:
    for path in sorted(home.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


@pytest.mark.parametrize("damage", [changed, linked, cleaned_up_in_part, added, half_unpacked])
def test_what_differs_from_the_archive_is_unpacked_again(
    temporary: Path, damage: Callable[[Path], None]
) -> None:
    _, path = worker(temporary)
    damage(path.parent)
    assert worker(temporary) == ("ours", path)
    assert path.read_text() == OURS
    assert not path.is_symlink()
    assert sorted(item.name for item in path.parent.iterdir()) == ["__pycache__", "package", "shipped.py"]
    assert [item.name for item in path.parents[1].iterdir()] in (
        [DIGEST],
        ["evil.py", DIGEST],
        [DIGEST, "evil.py"],
    )


def test_an_archive_with_another_digest_is_rejected(temporary: Path) -> None:
    evil, _ = archive_of({"shipped.py": EVIL})
    done = run_worker(temporary, evil, DIGEST)
    assert done.returncode != 0
    assert "ImportError: the code of this job was changed in transit" in done.stderr
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_place_where_others_can_rename_is_skipped(temporary: Path, mode: int) -> None:
    temporary.chmod(mode)
    who, path = worker(temporary)
    home = temporary.parent / "home" / ".cache" / f"emberflow-code-{os.geteuid()}"
    assert (who, path.parents[1]) == ("ours", home)
    assert list(temporary.iterdir()) == []


def test_without_any_safe_place_the_job_fails(temporary: Path) -> None:
    temporary.chmod(0o777)
    temporary.parent.chmod(0o777)
    done = run_worker(temporary)
    assert done.returncode != 0
    assert "set TMPDIR to a directory that only the workers' user can write to" in done.stderr


def test_the_full_digest_is_sent() -> None:
    archive, digest = make_archive()
    assert digest == sha256(archive).hexdigest()
    assert make_archive() == (archive, digest)


def test_packages_of_another_environment_are_not_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "lib" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "reached_by_a_pth_file.py").touch()
    (tmp_path / "own_module_of_a_user.py").touch()
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path), str(packages)])
    for name in ("reached_by_a_pth_file", "own_module_of_a_user"):
        monkeypatch.setitem(sys.modules, name, importlib.import_module(name))
    names = zipfile.ZipFile(io.BytesIO(zlib.decompress(make_archive()[0]))).namelist()
    assert "own_module_of_a_user.py" in names
    assert "reached_by_a_pth_file.py" not in names
