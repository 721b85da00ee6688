"""Makes the shipped code importable in a process of Spark, from a directory that only this user can write.

Like the shims, everything here is pickled by value: it is created inside functions and uses no module-level name of this
package. The code of a job is unpacked once per machine and user, so that Python can cache its bytecode; a process may
therefore find a directory that another process created. Anyone who can write there can run code in the job, so three
things are checked before anything is imported: the archive has the digest it was sent with, no other user can write to or
replace the directory, and the files in it are those of the archive.
"""

from __future__ import annotations

from typing import Any


def make_bootstrap(archive: bytes, digest: str) -> Any:
    """A function that makes `emberflow` importable in any process, once, and returns a module of it by name.

    `digest` is the SHA-256 of the archive.
    """
    private_folder = make_private_folder()
    unpacked_in = make_unpacking(archive)

    def bootstrap(module: str) -> Any:
        import hashlib
        import importlib
        import os
        import sys

        state = sys.__dict__.setdefault("_emberflow_shipped", {})
        if state.get("digest") != digest:
            if hashlib.sha256(archive).hexdigest() != digest:
                raise ImportError("the code of this job was changed in transit: its digest does not match")
            home = unpacked_in(os.path.join(private_folder(), digest))
            names = {name.split(".")[0] for name in os.listdir(home)}
            gone = names | state.get("names", set())
            for name in [item for item in sys.modules if item.split(".")[0] in gone]:
                del sys.modules[name]
            # Import hooks of the code that was here before go with it.
            sys.meta_path[:] = [
                item for item in sys.meta_path if type(item).__module__.split(".")[0] not in gone
            ]
            sys.path[:] = [home, *(path for path in sys.path if path != state.get("home"))]
            importlib.invalidate_caches()
            state.update(digest=digest, home=home, names=names)
        return importlib.import_module(module)

    return bootstrap


def make_ownership_check() -> Any:
    """A function that returns whether a directory belongs to this user alone."""

    def is_private(path: str) -> bool:
        import os
        import stat

        try:
            found = os.lstat(path)
        except OSError:
            return False
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077

    return is_private


def make_place_check() -> Any:
    """A function that returns whether no other user can rename or replace what this user creates in a directory."""

    def is_safe_place(path: str) -> bool:
        import os
        import stat

        trusted = {0, os.geteuid(), os.stat("/").st_uid}
        place = os.path.realpath(path)
        while True:
            try:
                found = os.lstat(place)
            except OSError:
                return False
            if not stat.S_ISDIR(found.st_mode) or found.st_uid not in trusted:
                return False
            if found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX:
                return False
            if place == os.path.dirname(place):
                return True
            place = os.path.dirname(place)

    return is_safe_place


def make_private_folder() -> Any:
    """A function that returns a directory for code: this user's, mode 0700, in a place where no other user can rename it."""
    is_private, is_safe_place = make_ownership_check(), make_place_check()

    def folder_in(place: str) -> str:
        import os
        import tempfile

        usual = os.path.join(place, f"emberflow-code-{os.geteuid()}")
        try:
            os.mkdir(usual, 0o700)
        except FileExistsError:
            pass
        if is_private(usual):
            return usual
        # Another user has taken the name. Use an unpredictable one; later processes find it by its owner.
        prefix = f"emberflow-code-{os.geteuid()}-"
        for name in sorted(os.listdir(place)):
            if name.startswith(prefix) and is_private(os.path.join(place, name)):
                return os.path.join(place, name)
        return tempfile.mkdtemp(prefix=prefix, dir=place)

    def private_folder() -> str:
        import os
        import tempfile

        places = [tempfile.gettempdir(), os.path.expanduser("~/.cache")]
        for place in places:
            try:
                os.makedirs(place, 0o700, exist_ok=True)
                if is_safe_place(place):
                    return folder_in(os.path.realpath(place))
            except OSError:
                continue  # Not writable.
        raise ImportError(
            f"there is no safe directory for the code of this job: other users can replace what is in {' or '.join(places)}; "
            "set TMPDIR to a directory that only the workers' user can write to"
        )

    return private_folder


def make_archive_check(archive: bytes) -> Any:
    """A function that returns whether a directory holds exactly the files of the archive."""

    def holds_archive(home: str) -> bool:
        """Except for compiled files, which Python adds."""
        import io
        import os
        import zipfile
        import zlib

        found: set[str] = set()
        for place, folders, files in os.walk(home):
            folders[:] = [name for name in folders if name != "__pycache__"]
            found.update(os.path.relpath(os.path.join(place, name), home) for name in files)
        try:
            with zipfile.ZipFile(io.BytesIO(zlib.decompress(archive))) as packed:
                if found != set(packed.namelist()):
                    return False
                for name in packed.namelist():
                    descriptor = os.open(os.path.join(home, name), os.O_RDONLY | os.O_NOFOLLOW)
                    with open(descriptor, "rb") as file:
                        if file.read() != packed.read(name):
                            return False
        except OSError:
            return False
        return True

    return holds_archive


def make_unpacking(archive: bytes) -> Any:
    """A function that ensures that a directory holds exactly the files of the archive, and returns it."""
    holds_archive = make_archive_check(archive)

    def unpack(target: str) -> None:
        import io
        import os
        import zipfile
        import zlib

        with zipfile.ZipFile(io.BytesIO(zlib.decompress(archive))) as packed:
            for name in packed.namelist():
                path = os.path.join(target, name)
                os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with open(descriptor, "wb") as file:
                    file.write(packed.read(name))

    def unpacked_in(home: str) -> str:
        import os
        import shutil
        import tempfile

        if os.path.isdir(home) and holds_archive(home):
            return home
        # Under another name first: a process that is killed here must not leave an incomplete directory.
        part = tempfile.mkdtemp(prefix=".part-", dir=os.path.dirname(home))
        try:
            unpack(os.path.join(part, "new"))
            for _ in range(3):
                try:
                    os.rename(os.path.join(part, "new"), home)
                    return home
                except OSError:
                    if holds_archive(home):
                        return home  # Another process was first.
                # Modified, or partly cleaned up: move it out of the way.
                try:
                    os.rename(home, tempfile.mkdtemp(prefix="old-", dir=part) + "/home")
                except FileNotFoundError:
                    pass
            raise ImportError(f"another process changes {home} while the code of this job is unpacked there")
        finally:
            shutil.rmtree(part, ignore_errors=True)

    return unpacked_in
