"""Unpacks zip files that may be hostile: nothing is written outside of the target, and not more than the limits allow."""

from __future__ import annotations

import stat
import zipfile
import zlib
from pathlib import Path
from typing import IO

from emberflow.errors import ResourceFailed, shorten
from emberflow.events.private_files import make_private_folder, open_private

MAX_UNPACKED_BYTES = 200 * 1024 * 1024
MAX_FILES = 5_000
DEEPEST = 32
_CHUNK = 65_536


def unpack(archive: IO[bytes], target: Path) -> Path:
    """Raises ResourceFailed."""
    try:
        with zipfile.ZipFile(archive) as opened:
            into = Unpacked(target)
            for item in opened.infolist():
                mode = item.external_attr >> 16
                if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                    raise _refused(item.filename, "it is a link or a special file")
                if item.flag_bits & 0x1:
                    raise _refused(item.filename, "it is encrypted")
                if item.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    # Others can ask for gigabytes of memory.
                    raise _refused(item.filename, "it is not compressed with deflate")
                if item.is_dir():
                    into.path_of(item.filename)
                    continue
                with opened.open(item) as file:
                    into.add(item.filename, file, mode)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError, OverflowError) as error:
        # Damaged positions and sizes raise almost anything.
        raise ResourceFailed("the zip file is damaged", cause=str(error) or type(error).__name__) from error
    return target


class Unpacked:
    """A directory that files are added to, within limits."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._names: set[str] = set()
        self._bytes = 0

    def add(self, name: str, content: IO[bytes], mode: int) -> None:
        """Writes a file; it is executable if its mode says so, or if it is a script and there is no mode."""
        path = self.path_of(name)
        if name.casefold() in self._names:
            raise _refused(name, "there are two files with that name")
        self._names.add(name.casefold())
        if len(self._names) > MAX_FILES:
            raise ResourceFailed("the zip file cannot be used", cause=f"it has more than {MAX_FILES:,} files")
        try:
            make_private_folder(path.parent)
            with open(path, "xb", opener=open_private) as file:
                start = chunk = content.read(_CHUNK)
                while chunk:
                    # The sizes that the archive states may be wrong.
                    self._bytes += len(chunk)
                    if self._bytes > MAX_UNPACKED_BYTES:
                        raise ResourceFailed(
                            "the zip file cannot be used",
                            cause=f"it has more than {MAX_UNPACKED_BYTES:,} bytes",
                        )
                    file.write(chunk)
                    chunk = content.read(_CHUNK)
        except FileExistsError as error:
            raise _refused(name, "there are two files with that name") from error
        except OSError as error:
            raise _refused(name, f"it cannot be written: {error.strerror}") from error
        if mode & 0o111 or (not mode and start.startswith(b"#!")):
            path.chmod(0o700)

    def path_of(self, name: str) -> Path:
        """Where a file belongs; raises ResourceFailed for a name that leads elsewhere."""
        parts = name.rstrip("/").split("/")
        if (
            name.startswith("/")
            or "\\" in name
            or ":" in parts[0]
            or not all(parts)
            or any(part in (".", "..") for part in parts)
            or not name.isprintable()
        ):
            raise _refused(name, "its path leads outside the folder")
        if len(parts) > DEEPEST:
            raise _refused(name, f"it is more than {DEEPEST} folders deep")
        return self._target.joinpath(*parts)


def _refused(name: str, why: str) -> ResourceFailed:
    return ResourceFailed("the zip file cannot be used", cause=f"{shorten(name)}: {why}")
