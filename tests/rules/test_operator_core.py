"""The operator core has no clocks, no threads and no I/O: what needs them comes from the host (`operators/host_services.py`).

Coroutines of operators run on the host's event loop and may use its time, which tests replace; they start nothing there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.support.source_tree import PACKAGE, parsed, short

CORE = PACKAGE / "operators"
FORBIDDEN_MODULES = {
    *("time", "sched", "signal"),
    *("threading", "_thread", "queue", "concurrent", "multiprocessing", "subprocess", "select", "selectors"),
    *("os", "io", "pathlib", "shutil", "tempfile", "glob", "fileinput", "sqlite3", "mmap", "fcntl"),
    *("socket", "ssl", "http", "urllib", "ftplib", "smtplib", "requests", "httpx"),
    *("random", "secrets"),
}
FORBIDDEN_CALLS = {"open", "print", "input", "exec", "eval", "breakpoint"}
FORBIDDEN_NAMES = {
    *("datetime.now", "datetime.utcnow", "datetime.today", "date.today"),
    *("uuid.uuid1", "uuid.uuid4", "uuid4", "uuid1"),
}
ON_THE_HOSTS_LOOP = {
    *("AbstractEventLoop", "CancelledError", "Future", "TimerHandle"),
    *("current_task", "get_running_loop", "sleep", "timeout", "wait_for"),
}
EXCEPTIONS = {
    # Users' actions request resources from their own threads.
    ("agents/resources/resource_cache.py", "threading"),
    # A service that names a time without its own clock is assumed to have the same clock.
    ("admission/throttling.py", "datetime.now"),
    # The name of this process in a ledger that several processes share.
    ("admission/limit_share.py", "uuid.uuid4"),
}


def used(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """What the core must not use, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            yield from ((name, node.lineno) for name in names if name.split(".")[0] in FORBIDDEN_MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module.split(".")[0] in FORBIDDEN_MODULES:
                yield node.module, node.lineno
            elif node.module == "asyncio":
                yield "from asyncio", node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
            if name in FORBIDDEN_NAMES or (node.value.id == "asyncio" and node.attr not in ON_THE_HOSTS_LOOP):
                yield name, node.lineno
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in FORBIDDEN_CALLS | FORBIDDEN_NAMES:
            yield ast.unparse(node.func), node.lineno


def test_the_core_has_no_clocks_threads_or_files() -> None:
    found = {
        (path.relative_to(CORE).as_posix(), name): f"{short(path)}:{line} uses {name}: ask the host for it"
        for path in sorted(CORE.rglob("*.py"))
        for name, line in used(parsed(path))
    }
    assert [text for what, text in found.items() if what not in EXCEPTIONS] == []
    assert found.keys() >= EXCEPTIONS, "an exception that is not needed"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("import time", 1),
        ("import os.path", 1),
        ("from concurrent.futures import Future", 1),
        ("from asyncio import sleep", 1),
        ("asyncio.to_thread(f)", 1),
        ("asyncio.create_task(f())", 1),
        ("open('file')", 1),
        ("datetime.now(UTC)", 1),
        ("async def f():\n    await asyncio.sleep(1)", 0),
        ("asyncio.get_running_loop().time()", 0),
        ("operator.open(context)", 0),
        ("from emberflow.event_time.clock import Clock", 0),
    ],
)
def test_the_check_recognizes_what_the_core_must_not_use(text: str, wrong: int) -> None:
    assert len(list(used(ast.parse(text)))) == wrong
