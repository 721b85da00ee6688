"""Objects of a bucket, or files of any file system that pyarrow supports, by their path below one address.

Used by `object_store.py` only. Raises all failures as `CallLogFailed`, without passwords.
"""

# pyarrow.fs has no type information:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pyarrow import fs

from emberflow.durable.redaction import redacted, shown
from emberflow.errors import CallLogFailed, describe_cause
from emberflow.events.private_files import make_private_folder

T = TypeVar("T")

# These have real directories, which must exist before a file can be created.
_WITH_DIRECTORIES = ("local", "hdfs")
# These are listed folder by folder, in several requests.
_IN_SEVERAL_ANSWERS = (*_WITH_DIRECTORIES, "abfs")
_ONE_ANSWER = 900
"""A bucket lists a thousand objects per request, folders included."""


@dataclass(frozen=True, slots=True)
class Listed:
    path: str
    token: tuple[int | None, int | None]
    """Changes when the object is rewritten with another length."""


class ObjectFiles:
    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._system: Any
        self._base: str
        self._system, self._base = self._guarded("cannot be opened", lambda: _open(uri))

    @property
    def place(self) -> str:
        """For messages."""
        return shown(self._uri)

    def put(self, path: str, data: bytes) -> None:
        """Creates an object atomically, except for an empty one that Azure may leave."""
        if self._system.type_name not in _WITH_DIRECTORIES:
            self.overwrite(path, data)
            return
        # Written under a name that no reader looks for until it is complete.
        draft = f"{path}.draft"
        self.overwrite(draft, data)
        base = self._base
        self._guarded("cannot be written", lambda: self._system.move(f"{base}/{draft}", f"{base}/{path}"))

    def overwrite(self, path: str, data: bytes) -> None:
        """Writes an object that may exist; a crash may leave a truncated one."""

        def put() -> None:
            full = f"{self._base}/{path}"
            folder = full.rpartition("/")[0]
            if self._system.type_name == "local":
                make_private_folder(folder)
            elif self._system.type_name in _WITH_DIRECTORIES:
                self._system.create_dir(folder, recursive=True)
            with self._system.open_output_stream(full, compression=None) as stream:
                stream.write(data)

        self._guarded("cannot be written", put)

    def get(self, path: str) -> bytes | None:
        def get() -> bytes | None:
            try:
                with self._system.open_input_stream(f"{self._base}/{path}", compression=None) as stream:
                    return stream.read()
            except FileNotFoundError:
                return None
            except OSError:
                # An object that disappears while it is read causes various errors.
                if self._system.get_file_info(f"{self._base}/{path}").type == fs.FileType.NotFound:
                    return None
                raise

        return self._guarded("cannot be read", get)

    def look(self, path: str) -> Listed | None:
        info = self._guarded("cannot be read", lambda: self._system.get_file_info(f"{self._base}/{path}"))
        return Listed(path, (info.mtime_ns, info.size)) if info.type == fs.FileType.File else None

    def _list_once(self, folder: str) -> list[Listed]:
        def listed() -> list[Listed]:
            start = f"{self._base}/{folder}".rstrip("/")
            infos = self._system.get_file_info(fs.FileSelector(start, recursive=True, allow_not_found=True))
            return [
                Listed(info.path[len(self._base) :].strip("/"), (info.mtime_ns, info.size))
                for info in infos
                if info.type == fs.FileType.File
            ]

        return self._guarded("cannot be read", listed)

    def list(self, folder: str = "") -> list[Listed]:
        """Everything below a folder, in one request per thousand objects. An object that is moved during the listing is
        shown in one of its places, unless it is moved twice."""
        found = self._list_once(folder)
        while self._system.type_name in _IN_SEVERAL_ANSWERS or len(found) >= _ONE_ANSWER:
            # The listing takes several requests: an object may be written after the first one, and the object that it
            # replaces be removed before the last.
            before, found = found, self._list_once(folder)
            if {listed.path for listed in before} <= {listed.path for listed in found}:
                break
        return found

    def remove(self, path: str) -> None:
        self._remove(lambda: self._system.delete_file(f"{self._base}/{path}"))

    def remove_folder(self, folder: str) -> None:
        self._remove(lambda: self._system.delete_dir(f"{self._base}/{folder}"))

    def _remove(self, operation: Callable[[], None]) -> None:
        def remove() -> None:
            try:
                operation()
            except FileNotFoundError:
                pass

        self._guarded("cannot be cleaned", remove)

    def _guarded(self, what: str, operation: Callable[[], T]) -> T:
        try:
            return operation()
        except (OSError, ValueError, NotImplementedError) as error:
            # Without the original error: its message might contain a key.
            raise CallLogFailed(
                f"the durable call log in {shown(self._uri)} {what}",
                cause=redacted(describe_cause(error), self._uri),
                way_out="check that the bucket or directory exists, has space left and can be written by this process,"
                " then start the job again",
                committed="calls whose answer was not written are made again",
            ) from None


# One request instead of three for a small object, and fail within seconds instead of a quarter of an hour.
_BETTER_SETTINGS = {
    "s3": "allow_delayed_open=true",
    "gs": "retry_limit_seconds=30",
    "gcs": "retry_limit_seconds=30",
}


def _open(uri: str) -> tuple[Any, str]:
    better = _BETTER_SETTINGS.get(uri.partition("://")[0])
    if better is not None and better.partition("=")[0] not in uri:
        try:
            return _opened(uri + ("&" if "?" in uri else "?") + better)
        except ValueError:
            pass  # This version of pyarrow does not know the setting, or the address is invalid anyway.
    return _opened(uri)


def _opened(uri: str) -> tuple[Any, str]:
    system, path = fs.FileSystem.from_uri(uri)
    return system, path.rstrip("/")
