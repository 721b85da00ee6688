"""Records the interface of a real PyFlink: the parameters of its methods and the names of Flink's options.

Run with the Python of an environment that has apache-flink installed (2.3.0 made the files that are stored); no JVM is started:

    path/to/flink-env/bin/python tests/compat/record_interface.py
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EXPECTED = Path(__file__).parent / "expected"
MODULES = ("common", "datastream", "datastream/connectors", "metrics")
OPTION = re.compile(r"[a-z][a-z0-9-]*(\.[a-z0-9-]+)+")
JAVA_PACKAGES = re.compile(r"(ch|com|java|javax|org|flink)\.")
JVM_ONLY = ("kafka", "kinesis", "pulsar", "rabbitmq", "cassandra", "elasticsearch", "jdbc", "hybrid_source")


def signatures(home: Path) -> dict[str, dict[str, list[str]]]:
    """class -> method -> its parameters, without self; those that take a Java object are left out."""
    found: dict[str, dict[str, list[str]]] = {}
    for folder in MODULES:
        for path in sorted((home / folder).glob("*.py")):
            if path.stem.removeprefix("dynamic_") in JVM_ONLY:
                continue
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith(("_", "Internal")):
                    found[node.name] = dict(methods(node))
    return found


def methods(owner: ast.ClassDef) -> Iterator[tuple[str, list[str]]]:
    for node in owner.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("_") and node.name != "__init__":
            continue
        names = [argument.arg for argument in node.args.args]
        names += [f"*{node.args.vararg.arg}"] if node.args.vararg else []
        if not any(name.startswith("j_") for name in names):
            yield node.name, names if is_static(node) else names[1:]


def is_static(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(item, ast.Name) and item.id == "staticmethod" for item in node.decorator_list)


def options(home: Path) -> list[str]:
    """The names of options in Flink's `…Options` classes, without those of the Table API."""
    found: set[str] = set()
    for jar in [*(home / "lib").glob("flink-dist*.jar"), *(home / "opt").glob("flink-python*.jar")]:
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if re.fullmatch(r"org/apache/flink/.*Options\.class", name) and "table" not in name:
                    found.update(filter(OPTION.fullmatch, strings(archive.read(name))))
    # Names of strategies, from documentation inside the classes.
    found = {name for name in found if not re.fullmatch(r"restart-strategy\.[a-z-]+-[a-z]+", name)}
    groups = (
        "execution.",
        "parallelism.",
        "pipeline.",
        "python.",
        "restart-strategy.",
        "state.",
        "jobmanager.",
        "taskmanager.",
    )
    return sorted(name for name in found if name.startswith(groups) and not JAVA_PACKAGES.match(name))


def strings(code: bytes) -> Iterator[str]:
    """The text constants of a Java class."""
    sizes: dict[int, int] = {
        **dict.fromkeys((3, 4, 9, 10, 11, 12, 17, 18), 4),
        **dict.fromkeys((7, 8, 16, 19, 20), 2),
        15: 3,
    }
    (count,) = struct.unpack(">H", code[8:10])
    at, number = 10, 1
    while number < count:
        tag = code[at]
        at += 1
        if tag == 1:
            (length,) = struct.unpack(">H", code[at : at + 2])
            yield code[at + 2 : at + 2 + length].decode("utf-8", "replace")
            at += 2 + length
        elif tag in (5, 6):
            at += 8
            number += 1
        else:
            at += sizes[tag]
        number += 1


def main() -> None:
    spec: Any = importlib.util.find_spec("pyflink")
    home = Path(spec.origin).parent
    EXPECTED.mkdir(exist_ok=True)
    text = json.dumps(signatures(home), indent=1, sort_keys=True)
    (EXPECTED / "signatures.json").write_text(text + "\n", encoding="utf-8")
    (EXPECTED / "options.txt").write_text("\n".join(options(home)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
