"""Files and directories for this user only, whatever the umask is: what a job stores contains prompts and answers.

Everything that is written to a checkpoint directory, a savepoint or an event log goes through here. The output of a file
sink belongs to the user and follows the umask.
"""

from __future__ import annotations

import os
from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700
_OTHERS = 0o077


def make_private_folder(folder: str | os.PathLike[str]) -> None:
    """Like mkdir -p, every new directory with mode 0700. If the last one exists and belongs to this user, it is restricted
    to this user. Raises OSError."""
    path = Path(folder)
    if not make_folders(path):
        found = path.stat()
        if found.st_mode & _OTHERS and found.st_uid == os.geteuid():
            path.chmod(FOLDER_MODE)


def make_folders(path: Path) -> bool:
    """Like mkdir -p, every new directory with mode 0700; existing ones are unchanged. False if the last one existed."""
    try:
        return _made(path)
    except FileNotFoundError:
        make_folders(path.parent)
        # Once: in /proc, for example, a directory that exists can have no new ones.
        return _made(path)


def _made(path: Path) -> bool:
    try:
        path.mkdir(FOLDER_MODE)
    except FileExistsError:
        if not path.is_dir():
            raise
        return False
    return True


def open_private(path: str | os.PathLike[str], flags: int) -> int:
    """`os.open` with mode 0600; restricts an existing file of this user. For `open(opener=…)`."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, FILE_MODE)
    try:
        found = os.fstat(descriptor)
        if found.st_mode & _OTHERS and found.st_uid == os.geteuid():
            os.fchmod(descriptor, FILE_MODE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def write_private(path: str | os.PathLike[str], text: str) -> None:
    """Replaces a file; neither atomic nor synced. Raises OSError."""
    with open(path, "w", encoding="utf-8", opener=open_private) as file:
        file.write(text)


def written_by_others(folder: Path) -> str | None:
    """How users other than this one and root can change a directory, or None if they cannot. This user's own group counts
    as this user: where the umask is 002, every user has one."""
    found = folder.stat()
    if found.st_uid not in (0, os.geteuid()):
        return f"it belongs to the user {found.st_uid}"
    open_to = 0o002 if found.st_gid == os.getegid() else 0o022
    return f"its mode is {found.st_mode & 0o7777:04o}" if found.st_mode & open_to else None
