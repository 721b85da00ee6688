"""Damage to one file of a job that is not running: what is done to which file, and what is expected then.

Expected is either a rejection that says what is wrong, or the same results as without damage.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from tests.recovery.torture.plan import Disturbance
from tests.recovery.torture.run_files import RunFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Damaged:
    path: Path
    how: str
    original: bytes
    left: bytes | None

    def __str__(self) -> str:
        return f"{self.path} ({self.how}, {len(self.original)} bytes)"

    def is_there(self) -> bool:
        """Whether the file has not been written since."""
        place = self._place()
        return (place.read_bytes() if place.exists() else None) == self.left

    def put_back(self) -> None:
        if self.is_there():
            place = self._place()
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(self.original)

    def _place(self) -> Path:
        """A start of the job moves files staged by earlier starts into its own folder."""
        staging = self.path.parent
        if self.path.exists() or not staging.name.startswith("inprogress"):
            return self.path
        return next(iter(staging.parent.glob(f"inprogress*/{self.path.name}")), self.path)


def damage(files: RunFiles, item: Disturbance, chance: random.Random) -> Damaged | None:
    """None if there is no file yet that can be damaged in this way."""
    found = sorted(
        path for path in files.disk.rglob(item.target) if path.is_file() and _may_be_damaged(files, path)
    )
    if not found:
        return None
    # Each folder is equally likely: most files are in few of them.
    folder = chance.choice(sorted({path.parent for path in found}))
    in_folder = [path for path in found if path.parent == folder]
    path = in_folder[-1] if item.newest else chance.choice(in_folder)
    original = path.read_bytes()
    left = _damaged(original, item.damage, chance)
    if left is None:
        path.unlink()
    else:
        path.write_bytes(left)
    return Damaged(path=path, how=item.damage, original=original, left=left)


def _may_be_damaged(files: RunFiles, path: Path) -> bool:
    if path.name == "filling" or path.stat().st_size == 0:
        return False
    if files.out in path.parents:
        # Visible output belongs to the user.
        return path.relative_to(files.out).parts[0] == ".emberflow"
    return True


def _damaged(data: bytes, how: str, chance: random.Random) -> bytes | None:
    match how:
        case "delete":
            return None
        case "empty":
            return b""
        case "cut":
            return data[: chance.randrange(len(data))]
        case _:
            place = chance.randrange(len(data))
            flipped = data[place] ^ (1 << chance.randrange(8))
            return data[:place] + bytes([flipped]) + data[place + 1 :]


def refused_clearly(log: str, files: RunFiles, damaged: Path) -> bool:
    """An emberflow error that names the file, or at least its directory."""
    named = (damaged.name, str(files.checkpoints), str(files.out))
    return "[EF" in log and any(name in log for name in named)
