"""What the package writes is for its user only: files and directories are created in few places, which ensure that."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.support.source_tree import PACKAGE, modules, parsed, short

# Each of these sets the mode itself.
MAY_MAKE_FILES = {
    "connectors/files/file_sink.py",  # the user's output, by the umask
    "engines/spark/wire/bootstrap.py",
    "engines/spark/session/java.py",
    "engines/spark/session/session.py",
    "events/private_files.py",
    "events/stored_files.py",
}
# Files for people, and test data that is checked in: by the umask.
NOT_STORED_BY_JOBS = ("demo", "testing")
MAKING = {"mkdir", "makedirs", "write_text", "write_bytes", "mkfifo", "mknod"}


def is_making(node: ast.Call) -> bool:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in MAKING:
        return True
    if name == "touch":
        # A method of other objects, too; a path's takes a mode.
        return not node.args and not node.keywords
    private = any(isinstance(part, ast.Name) and part.id == "open_private" for part in ast.walk(node))
    if name != "open" or private or any(keyword.arg == "opener" for keyword in node.keywords):
        return False
    texts = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    modes = [text for text in texts if set(text) <= set("rwaxbt+") and set(text) & set("wax")]
    created = any(isinstance(part, ast.Attribute) and part.attr == "O_CREAT" for part in ast.walk(node))
    return bool(modes) or created


def making(path: Path) -> list[str]:
    inside = path.relative_to(PACKAGE).as_posix()
    if inside in MAY_MAKE_FILES or inside.split("/")[0] in NOT_STORED_BY_JOBS:
        return []
    calls = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call) and is_making(node)]
    return [
        f"{short(path)}:{node.lineno} makes a file or directory: use events/private_files.py"
        for node in calls
    ]


def test_files_are_created_for_their_user_only() -> None:
    assert [found for path in modules() for found in making(path)] == []


def test_the_check_recognizes_what_creates_a_file() -> None:
    bad = ["p.mkdir()", "os.makedirs(p)", "open(p, 'w')", "p.open('ab')", "p.write_text('')", "p.touch()"]
    bad += ["os.open(p, os.O_WRONLY | os.O_CREAT, 0o644)"]
    good = [
        "open(p)",
        "open(p, 'rb')",
        "open(p, 'w', opener=open_private)",
        "os.open(p, os.O_RDONLY)",
        "p.open()",
    ]
    for text in bad + good:
        (call,) = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
        assert is_making(call) == (text in bad), text
