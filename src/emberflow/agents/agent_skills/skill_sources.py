"""Brings skills to this machine: a folder in which every subfolder is a skill, and which belongs to this process if it was
copied, unpacked or downloaded."""

from __future__ import annotations

import hashlib
import http.client
import importlib.resources
import io
import shutil
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from emberflow.agents.agent_skills.skills import SkillSourceSpec
from emberflow.agents.agent_skills.unpacking import MAX_UNPACKED_BYTES, Unpacked, unpack
from emberflow.errors import EmberflowError, ResourceFailed, describe_cause
from emberflow.plan.agents.resources import Secret

MAX_ARCHIVE_BYTES = 50 * 1024 * 1024
DOWNLOAD_TIMEOUT_S = 90.0


def bring(source: SkillSourceSpec, owned: ExitStack) -> Path:
    """The folder; `owned` removes it if it was made here. Blocks. Raises ResourceFailed."""
    try:
        if source.scheme == "local":
            return _local(Path(source.params["path"]), owned)
        if source.scheme == "package":
            return _packaged(source.params["package"], source.params["resource"], owned)
        return unpack(io.BytesIO(_downloaded(source.params)), _new_folder(owned))
    except EmberflowError as error:
        raise _failed(source, error.cause or error.message) from error
    except (OSError, ImportError, ValueError) as error:
        raise _failed(source, describe_cause(error)) from error


def _failed(source: SkillSourceSpec, cause: str) -> ResourceFailed:
    return ResourceFailed(
        f"the skills {source} cannot be loaded",
        cause=cause,
        way_out="they must be reachable where the job runs; the next use tries again",
    )


def _new_folder(owned: ExitStack) -> Path:
    made = Path(tempfile.mkdtemp(prefix="emberflow-skills-")).resolve()
    owned.callback(shutil.rmtree, made, ignore_errors=True)
    return made


def _local(path: Path, owned: ExitStack) -> Path:
    if path.is_dir():
        return path.resolve()
    if not path.exists():
        raise ValueError(f"there is no folder or file {str(path)!r}")
    return _unpacked(path, owned)


def _packaged(package: str, resource: str, owned: ExitStack) -> Path:
    if ".." in Path(resource).parts or Path(resource).is_absolute():
        raise ValueError(f"{resource!r} is not a path inside the package")
    found: Traversable = importlib.resources.files(package)
    for part in Path(resource).parts:
        found = found.joinpath(part)
    if isinstance(found, Path):
        return _local(found, owned)
    if found.is_dir():
        # Inside a zip file that is itself on the module path.
        folder = _new_folder(owned)
        into = Unpacked(folder)
        for name, item in _files(found, ""):
            with item.open("rb") as file:
                into.add(name, file, 0)
        return folder
    if not found.is_file():
        raise ValueError(f"the package {package!r} has no {resource!r}")
    return unpack(io.BytesIO(found.read_bytes()), _new_folder(owned))


def _files(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for item in folder.iterdir():
        if item.is_dir():
            yield from _files(item, f"{prefix}{item.name}/")
        else:
            yield f"{prefix}{item.name}", item


def _unpacked(path: Path, owned: ExitStack) -> Path:
    if path.stat().st_size > MAX_ARCHIVE_BYTES:
        raise ValueError(f"{path.name!r} is larger than {MAX_ARCHIVE_BYTES:,} bytes")
    with path.open("rb") as file:
        return unpack(file, _new_folder(owned))


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Stays with http and https, never goes back to http, and takes no headers to another server."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        before, after = urlsplit(req.full_url), urlsplit(newurl)
        if after.scheme not in ("http", "https") or (before.scheme == "https" and after.scheme == "http"):
            raise urllib.error.URLError(f"it redirects from {before.scheme} to {after.scheme}")
        made = super().redirect_request(req, fp, code, msg, headers, newurl)
        if made is not None and (before.scheme, before.netloc) != (after.scheme, after.netloc):
            made.headers.clear()
        return made


def _downloaded(params: dict[str, Any]) -> bytes:
    request = urllib.request.Request(params["url"], headers=_revealed(params.get("headers", {})))
    if request.type not in ("http", "https"):
        raise ValueError(f"skills are downloaded over http or https, not {request.type}")
    opener = urllib.request.build_opener(_Redirects)
    try:
        with opener.open(request, timeout=DOWNLOAD_TIMEOUT_S) as response:
            data = _read(response)
            length = response.headers.get("Content-Length")
    except urllib.error.HTTPError as error:
        error.close()
        raise ValueError(f"the server responded with {error.code} {str(error.reason)[:200]}") from error
    except http.client.InvalidURL:
        # Its message contains what was taken for a port, perhaps a password.
        raise ValueError("the address, or the one that it redirects to, is not valid") from None
    except http.client.HTTPException as error:
        raise ValueError(f"the server's response is malformed: {type(error).__name__}") from error
    if length is not None and length.isdigit() and int(length) != len(data):
        raise ValueError(f"the connection closed after {len(data):,} of {length} bytes")
    wanted = params.get("sha256")
    if wanted is not None and hashlib.sha256(data).hexdigest() != wanted:
        raise ValueError("the SHA-256 checksum of the file does not match")
    return data


def _revealed(headers: dict[str, Any]) -> dict[str, str]:
    revealed = {
        name: value.resolve() if isinstance(value, Secret) else str(value) for name, value in headers.items()
    }
    for name, value in revealed.items():
        # The client would show the value in its error.
        if not value.isascii() or not value.isprintable():
            raise ValueError(
                f"the header {name!r} contains a line break or another character that cannot be sent"
            )
    return revealed


def _read(response: Any) -> bytes:
    """Servers that send a byte now and then do not time out by themselves."""
    data = bytearray()
    until = time.monotonic() + DOWNLOAD_TIMEOUT_S
    while chunk := response.read1(1 << 20):
        data += chunk
        if len(data) > MAX_ARCHIVE_BYTES:
            raise ValueError(f"the file is larger than {MAX_ARCHIVE_BYTES:,} bytes")
        if time.monotonic() > until:
            raise ValueError(f"the download took longer than {DOWNLOAD_TIMEOUT_S:g} seconds")
    return bytes(data)


__all__ = ["MAX_ARCHIVE_BYTES", "MAX_UNPACKED_BYTES", "bring"]
