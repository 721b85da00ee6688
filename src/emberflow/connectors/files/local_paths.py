"""Local paths given by users, and the files below them.

Used by the file source and the file sink; other file systems are rejected here, in one place.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from emberflow.errors import InvalidArgument, NotSupported, SourceFailed, describe_cause

PathLike = str | os.PathLike[str]


def local_path(path: PathLike) -> str:
    """The absolute path for a path or a file:// URL; workers may run in another folder than the program."""
    text = os.fspath(path)
    if not text:
        raise InvalidArgument("the path is empty", way_out="give the path of a file or a folder")
    scheme, found, _ = text.partition("://")
    if found:
        if scheme != "file":
            raise NotSupported(
                f"{text} is on a file system that file sources and sinks do not support yet",
                way_out="give a local path, or mount the file system",
            )
        # `f"file:///{path}"` with an absolute path has one slash too many.
        text = "/" + unquote(urlsplit(text).path).lstrip("/")
    return os.path.abspath(os.path.expanduser(text))


def is_hidden(name: str) -> bool:
    """Whether a file is being written or is bookkeeping, by its name."""
    return name.startswith((".", "_"))


def list_files(paths: tuple[str, ...]) -> list[str]:
    """All files below the paths, sorted, without hidden ones; a path given explicitly is never hidden."""
    found: set[str] = set()
    for path in paths:
        if os.path.isdir(path):
            found.update(_below(path))
        elif os.path.exists(path):
            found.add(path)
        else:
            raise SourceFailed(
                f"there is no file or folder {path}",
                way_out="check the path; a relative path is resolved from the folder the program was started in",
            )
    return sorted(found)


def _below(folder: str) -> Iterator[str]:
    for place, folders, files in os.walk(folder, onerror=_cannot_list, followlinks=True):
        folders[:] = [name for name in folders if not is_hidden(name)]
        yield from (os.path.join(place, name) for name in files if not is_hidden(name))


def _cannot_list(error: OSError) -> None:
    # A folder that was removed between two scans has no files; one that cannot be read would hide some.
    if not isinstance(error, FileNotFoundError):
        raise SourceFailed(
            f"the folder {error.filename} cannot be listed",
            cause=describe_cause(error),
            way_out="give the job's user read permission for the folder",
        ) from error
